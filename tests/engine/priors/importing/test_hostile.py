"""A corpus of hostile files: every one is refused in a sentence, and nothing in it runs."""

import pickle
import time
from pathlib import Path

import pytest
from hostile_archives import archive_corpus
from hostile_pickles import raw_corpus
from hostile_snapshots import snapshot, snapshot_corpus

from engine.cli import main
from engine.physics.units import IntensityMap
from engine.priors.importing import import_checkpoint
from engine.spec.errors import RequestError

CT = IntensityMap("hu", 800.0)
LONGEST_SECONDS = 5  # of computing, so that a busy computer does not count
MOST_MEMORY = 2 << 30


@pytest.fixture(scope="module")
def canary(tmp_path_factory):
    """A file that any executed payload would create."""
    return tmp_path_factory.mktemp("canary") / "alive"


@pytest.fixture(scope="module")
def corpus(canary):
    return {**raw_corpus(canary), **snapshot_corpus(canary), **archive_corpus(canary)}


@pytest.fixture
def little_memory():
    """Reserving more than 2 GB at once fails, even if it would never be used (on Linux)."""
    usage = Path("/proc/self/statm")
    if not usage.exists():
        yield
        return
    import resource

    now = int(usage.read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_MEMORY, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def test_every_hostile_file_is_refused(tmp_path, corpus, canary, capsys, little_memory):
    assert len(corpus) >= 200
    out = tmp_path / "out.safetensors"
    for name, content in corpus.items():
        path = tmp_path / f"{name}.pt"
        path.write_bytes(content)
        start = time.process_time()
        code = main(["prior", "import", str(path), str(out), "--hu-scale", "800"])
        assert time.process_time() - start < LONGEST_SECONDS, name
        errors = capsys.readouterr().err
        assert code == 2, (name, errors)
        assert errors.count("\n") == 1, (name, errors)
        assert "Traceback" not in errors
        assert len(errors) < 700 + len(str(path)), (name, errors)
        assert str(path) in errors
        assert not out.exists(), name
        assert not canary.exists(), name
        path.unlink()
    print(f"{len(corpus)} hostile files refused")


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("raw-reduce-system", "posix.system"),
        ("raw-global-text", "posix.system"),
        ("raw-names-computed", "posix.system"),
        ("raw-inst", "posix.system"),
        ("raw-reduce-eval", "builtins.eval"),
        ("raw-names-dotted", "collections.OrderedDict.__class__"),
        ("raw-ext1", "EXT1"),
        ("raw-obj", "OBJ"),
        ("snapshot-system-in-state", "posix.system"),
        ("snapshot-nested-system-as-object", "posix.system"),
        ("snapshot-nested-system-as-type", "posix.system"),
        ("snapshot-class-unknown", "os.system"),
        ("file-system", "posix.system"),
        ("file-a-whole-module", "torch.nn.modules.linear.Linear"),
        ("file-compressed-bomb", "compressed"),
        ("file-legacy", "before 2020"),
        ("file-tar", "tar archive"),
    ],
)
def test_the_refusal_names_what_was_found(tmp_path, corpus, name, quoted):
    path = tmp_path / "x.pt"
    path.write_bytes(corpus[name])
    with pytest.raises(RequestError) as refusal:
        import_checkpoint(path, tmp_path / "out.safetensors", intensity=CT)
    assert quoted in str(refusal.value)


def test_source_code_in_a_snapshot_is_never_run(tmp_path, canary):
    """A genuine snapshot whose source would act when executed is simply a snapshot."""
    path = tmp_path / "x.pkl"
    path.write_bytes(snapshot(lambda c: None, f"open({str(canary)!r}, 'w').close()"))
    import_checkpoint(path, tmp_path / "x.safetensors", intensity=CT)
    assert (tmp_path / "x.safetensors").exists()
    assert not canary.exists()


def test_the_canary_would_sing(tmp_path):
    """The payloads do act when they are loaded the usual way: the tests above test something."""
    alive = tmp_path / "alive"
    pickle.loads(raw_corpus(alive)["raw-reduce-system"])
    assert alive.exists()


@pytest.mark.parametrize("place", ["absent.pkl", "folder", "/dev/null"])
def test_what_is_not_a_file_is_refused(tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(RequestError, match="not imported"):
        import_checkpoint(tmp_path / place, tmp_path / "x.safetensors", intensity=CT)
