"""Messages from anybody: numbers, texts and bytes are read, foreign pickles stay shut."""

import os
import pickle
import subprocess
import sys

import pytest
from distributed import protocol
from distributed.core import Status, clean_exception
from distributed.protocol.serialize import Serialize, ToPickle
from rogue_worker import Canary, sung

from engine.workflows.cluster import own_pickles
from engine.workflows.cluster.own_pickles import NOT_OPENED, ForeignPickle, only_own_pickles


@pytest.fixture
def canary(tmp_path):
    yield tmp_path / "canary"
    assert not sung(tmp_path / "canary")


@pytest.fixture(autouse=True)
def forgotten():
    """What these tests pickle is another process's; a cluster of other tests may be open."""
    before = set(own_pickles._known)
    yield
    for one in set(own_pickles._known) - before:
        del own_pickles._known[one]


def strange(message):
    """As another process writes it."""
    frames = [bytes(frame) for frame in protocol.dumps(message, on_error="raise")]
    own_pickles._known.clear()
    return frames


@pytest.mark.parametrize("wrapper", [Serialize, ToPickle])
def test_a_pickle_of_another_process_is_a_text(canary, wrapper):
    frames = strange({"op": "event", "event": [1, wrapper(Canary(canary))]})
    with only_own_pickles():
        assert protocol.loads(frames) == {"op": "event", "event": (1, NOT_OPENED)}
        again = protocol.loads(frames, deserialize=False)["event"][1]
        assert again == NOT_OPENED or type(again).__name__ == "Serialized"  # passed on, unopened


def test_data_pass(canary):
    said = {"name": "w", "numbers": [1, 2.5], "image": b"\x00\xff", "status": Status.running}
    frames = strange(said)
    with only_own_pickles():
        assert protocol.loads(frames) == {**said, "numbers": (1, 2.5)}


def test_an_enumeration_imports_nothing():
    """Dask imports the module that such an entry names."""
    import msgpack

    evil = {"__Enum__": True, "name": "x", "__module__": "dask.unknown", "__name__": "y"}
    with only_own_pickles():
        assert protocol.loads([msgpack.dumps({"status": evil})]) == {"status": NOT_OPENED}
    assert "dask.unknown" not in sys.modules


def test_what_this_process_has_pickled_it_opens():
    with only_own_pickles():
        frames = [bytes(frame) for frame in protocol.dumps({"task": ToPickle({3, 4})})]
        assert protocol.loads(frames) == {"task": {3, 4}}
        assert protocol.pickle.loads(protocol.pickle.dumps(os.getpid)) is os.getpid


def test_an_exception_is_not_opened_either(canary):
    evil = pickle.dumps(Canary(canary))
    with only_own_pickles():
        kind, _, trace = clean_exception(evil, evil)
        assert (kind, trace) == (Exception, None)
        with pytest.raises(ForeignPickle):
            protocol.pickle.loads(evil)


AROUND = """
import sys
from engine.workflows.cluster import own_pickles

def holders():
    return {
        (name, known)
        for name, module in list(sys.modules.items())
        if name.startswith("distributed") and name != "distributed.protocol.pickle"
        for known, value in list(vars(module).items())
        if value in (own_pickles._loads, own_pickles._read) or value is own_pickles.pickle
    }

before = holders()
assert {("distributed.client", "loads"), ("distributed.scheduler", "pickle")} <= before
with own_pickles.only_own_pickles(), own_pickles.only_own_pickles():
    assert not holders(), holders()
assert holders() == before
"""


def test_no_module_of_dask_keeps_a_way_around_and_all_is_put_back():
    subprocess.run([sys.executable, "-c", AROUND], check=True)
