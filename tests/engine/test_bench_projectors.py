"""``dualscope bench projectors`` measures all it promises."""

from engine.cli import bench_projectors
from engine.cli.bench import interleaved_times


def test_every_projector_and_both_data_steps_are_measured():
    rows = bench_projectors.measure(1, size=24, large={"16 x 16, 5 views": (16, 5)})
    names = [row.get("projector", row["case"]) for row in rows]
    for name in ("stored matrix, batch 1", "no matrix, batch 8", "ASTRA (CPU)", "scikit-image"):
        assert names.count(name) == 2
    for name in ("FBP before", "FBP", "forward", "adjoint", "(a stored matrix)"):
        assert names.count(name) == 1
    steps = [row for row in rows if row["table"].startswith("Limited-angle")]
    assert [row["case"].split(":")[0] for row in steps] == [
        *("paper-lact, before", "paper-lact, now", "paper-lact, low floor"),
        *("default, before", "default, now"),
    ]
    for before, *others in (steps[:3], steps[3:]):
        assert before["times before"] == 1
        assert all(row["times before"] == row["ms"] / before["ms"] for row in others)


def test_work_is_measured_in_turn_and_the_first_round_only_warms_up():
    done = []
    times = interleaved_times({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, 2)
    assert done == ["a", "b"] * 3
    assert [len(values) for values in times.values()] == [2, 2]
