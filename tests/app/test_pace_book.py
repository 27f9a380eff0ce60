"""How long something will take, from what this machine has shown."""

import pytest

from app.pace_book import MOST, PaceBook, about
from app.shell.settings import AppSettings


@pytest.fixture
def paces(tmp_path, qapp):
    settings = AppSettings(tmp_path / "settings.json")
    yield PaceBook(settings)
    settings._timer.stop()


def job(**changes):
    scan = {"views": changes.pop("views", 20)}
    settings = {"nfe": changes.pop("nfe", 10)}
    base = {"solver": "dc-pnpdp", "prior": "auto", "device": "auto"}
    return {**base, "acquisition": scan, "settings": settings, **changes}


def test_the_time_grows_with_calls_pixels_and_slices(paces):
    paces.learn(job(), "CT", (100, 100), 2.0)
    assert paces.seconds(job(), "CT", (100, 100)) == pytest.approx(2.0)
    assert paces.seconds(job(nfe=50), "CT", (100, 200)) == pytest.approx(20.0)


def test_what_was_never_measured_is_said_to_be_unknown(paces):
    paces.learn(job(), "CT", (100, 100), 2.0)
    for other in (job(solver="diffpir"), job(prior="tv"), job(device="cuda")):
        assert paces.seconds(other, "CT", (100, 100)) is None
    assert paces.seconds(job(), "MR", (100, 100)) is None


def test_the_nearest_amount_of_data_counts(paces):
    for views, seconds in ((20, 2.0), (90, 8.0)):
        paces.learn(job(views=views), "CT", (100, 100), seconds)
    assert paces.seconds(job(views=30), "CT", (100, 100)) == pytest.approx(2.0)
    assert paces.seconds(job(views=180), "CT", (100, 100)) == pytest.approx(8.0)


def test_the_newest_measurements_are_kept_and_nonsense_in_the_file_is_ignored(paces):
    paces.settings.set("paces", {"dc-pnpdp auto auto CT 20": "soon"})
    assert paces.seconds(job(), "CT", (10, 10)) is None
    for views in range(1, MOST + 5):
        paces.learn(job(views=views), "CT", (10, 10), 1.0)
    assert len(paces.settings.get("paces")) == MOST


def test_times_in_words():
    assert [about(s) for s in (0.2, 40, 600, 9000)] == [
        "about 1 s",
        "about 40 s",
        "about 10 min",
        "about 2.5 h",
    ]
