"""The fuzzing command: its limits are part of the verdict, and its good inputs are read."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")

if sys.platform == "linux":
    import fuzz_run
    from fuzz_targets import TARGETS, Target, trial
else:
    TARGETS = {}


@pytest.mark.parametrize("name", TARGETS)
def test_good_inputs_are_read_or_nothing_would_be_tried(name, tmp_path):
    target = TARGETS[name]
    (tmp_path / "seeds").mkdir()
    seeds = list(target.seeds(tmp_path / "seeds"))
    assert seeds
    for seed in seeds:
        target.use(seed, tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_what_fuzzing_has_found_stays_mended(name):
    for path in sorted((fuzz_run.CORPUS / name).glob("*")):
        trial(TARGETS[name])(path.read_bytes())


def _hang(content, folder):
    begun = fuzz_run.time.process_time()
    while fuzz_run.time.process_time() < begun + 0.2:
        pass


LEFT_OPEN = []


def _leak(content, folder):
    LEFT_OPEN.append((folder / "x").open("w"))


def _bug(content, folder):
    raise KeyError


@pytest.mark.parametrize(("use", "said"), [(_hang, "s for one input"), (_leak, "descriptors")])
def test_time_and_descriptors_are_part_of_the_verdict(use, said, monkeypatch):
    monkeypatch.setattr(fuzz_run, "SECONDS", 0.1)
    monkeypatch.setattr(fuzz_run, "LOOK_EVERY", 40)
    one = fuzz_run.watched(trial(Target(use, None)))
    with pytest.raises(AssertionError, match=said):
        all(one(b"") is None for _ in range(200))
    for stream in LEFT_OPEN:
        stream.close()


def test_anything_but_a_sentence_is_a_finding():
    with pytest.raises(KeyError):
        trial(Target(_bug, None))(b"")


def test_a_target_runs_in_a_process_of_its_own(tmp_path):
    row = fuzz_run.run("records", 1, tmp_path / "findings")
    assert row["findings"] == []
    assert row["inputs"] > 0
    assert 0 < row["peak_mb"] < fuzz_run.MEMORY_MB
