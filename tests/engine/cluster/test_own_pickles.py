"""Messages from anybody: numbers, texts and bytes are read, foreign pickles stay shut."""

import os
import sys

import pytest
from distributed import protocol
from distributed.core import Status, clean_exception
from distributed.protocol.serialize import Serialize, ToPickle
from rogue_worker import Canary, sung

from engine.workflows.cluster.own_pickles import (
    NOT_OPENED,
    ForeignPickle,
    _loads,
    _read,
    only_own_pickles,
)


@pytest.fixture
def canary(tmp_path):
    yield tmp_path / "canary"
    assert not sung(tmp_path / "canary")


def strange(message):
    """As another process writes it."""
    return [bytes(frame) for frame in protocol.dumps(message, on_error="raise")]


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
    evil = protocol.pickle.dumps(Canary(canary))
    with only_own_pickles():
        kind, _, trace = clean_exception(evil, evil)
        assert (kind, trace) == (Exception, None)
        with pytest.raises(ForeignPickle):
            protocol.pickle.loads(evil)


def test_no_module_of_dask_keeps_a_way_around_and_all_is_put_back():
    def holders():
        return {
            (name, known)
            for name, module in list(sys.modules.items())
            if name.startswith("distributed") and name != "distributed.protocol.pickle"
            for known, value in list(vars(module).items())
            if value in (_loads, _read) or getattr(value, "__name__", "") == "pickle"
            if type(value).__name__ != "SimpleNamespace"
        }

    before = holders()
    assert ("distributed.client", "loads") in before
    with only_own_pickles(), only_own_pickles():
        assert {known for _, known in holders()} <= {"pickle"}
        left = [sys.modules[name].pickle.__name__ for name, known in holders()]
        assert set(left) <= {"distributed.protocol.pickle"}, "Python's own"
    assert holders() == before
