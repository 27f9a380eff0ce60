"""Two workers for all tests of the folder: starting them takes longer than most tests."""

import pytest

from engine.workflows.cluster.compute_targets import LocalWorkers


@pytest.fixture(scope="package")
def shared():
    from engine.workflows.cluster.connection import Kept

    with LocalWorkers(2).open() as site:
        yield Kept(site)
