"""The training benchmark compares both ways of one network and says images per hour."""

from engine.cli.bench_training import measure


def test_each_network_is_measured_plain_and_fused():
    rows = measure(rounds=1, size=32)
    assert [row["case"].split(", ")[::2] for row in rows] == [
        [name, way] for name in ("ct-small", "mr-small") for way in ("plain", "fused")
    ]
    assert all(row["images per hour"] > 0 for row in rows)
    assert rows[0]["times plain"] == 1
