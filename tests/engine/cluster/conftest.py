"""Two workers for all tests of the folder: starting them takes longer than most tests."""

import pytest

from engine.cluster.places import LocalWorkers


@pytest.fixture(scope="package")
def shared():
    from engine.cluster.site import Kept

    with LocalWorkers(2).open() as site:
        yield Kept(site)
