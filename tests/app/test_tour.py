"""The picture tour: every step leaves a picture, and the export holds the run's own image."""

import os
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage
from window_driver import HU, choose, save_phantom

from app.tour import __main__ as tour
from app.tour import ct, parts
from app.tour import visit as experiments
from app.tour.fixture import Stage
from app.tour.user_input import TourError, wait
from app.tour.visit import Camera, Step, Visit, walk

SIZE = QSize(1280, 720)
FEWEST_COLOURS = 200  # text, buttons and a grey image: a blank window has a handful


@pytest.fixture(autouse=True)
def person(tmp_path, monkeypatch, qapp):
    """Somebody's settings, and the look of the application before the tour."""
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"DUALSCOPE_{name}", str(tmp_path / name.lower()))
    palette, style, sheet = qapp.palette(), qapp.style().objectName(), qapp.styleSheet()
    yield
    qapp.setStyleSheet(sheet)
    qapp.setStyle(style)
    qapp.setPalette(palette)


def colours(path):
    image = QImage(str(path)).convertToFormat(QImage.Format.Format_RGB32)
    assert image.size() == SIZE, path.name
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)
    return len(np.unique(pixels[::2, ::2]))


def test_the_quick_tour_leaves_its_pictures_and_the_reconstruction(tmp_path, monkeypatch, capsys):
    out, seen = tmp_path / "out", {}

    def remember(visit, steps, say):
        good = walk(visit, steps, say)
        seen["image"] = visit.newest("dc-pnpdp").images[0].copy()
        return good

    monkeypatch.setattr("app.tour.visit.walk", remember)
    assert tour.main([str(out), "--quick", "--size", "1280x720"]) == 0
    names = [f"{number:02d}-{step.name}.png" for number, step in enumerate(ct.STEPS, 1)]
    assert sorted(path.name for path in out.glob("*.png")) == names
    assert capsys.readouterr().out.split() == [str(out / name) for name in names]
    pictures = [out / name for name in names]
    assert min(colours(path) for path in pictures) > FEWEST_COLOURS
    assert len({path.read_bytes() for path in pictures}) == len(pictures), "a step shows nothing"
    exported = {path.suffix for path in (out / "export").iterdir()}
    assert exported == {".dcm", ".png", ".npy"}
    array = np.load(out / "export" / "dualscope-ct.npy")
    np.testing.assert_array_equal(np.squeeze(array), seen["image"])
    assert not (tmp_path / "config").exists(), "a person's settings were touched"
    assert not (tmp_path / "state").exists()


def test_a_step_that_fails_is_named_and_ends_the_tour(tmp_path, monkeypatch, capsys):
    def refuse(visit):
        raise TourError("the button is gone")

    steps = (Step("look", lambda visit: None), Step("break", refuse), Step("never", refuse))
    monkeypatch.setattr(ct, "STEPS", steps)
    assert tour.main([str(tmp_path / "out"), "--quick"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [
        str(tmp_path / "out" / "01-look.png"),
        "Step 'break' failed: the button is gone",
    ]
    assert os.environ["DUALSCOPE_CONFIG"] == str(tmp_path / "config")


def test_a_window_that_does_not_fit_is_a_fault(tmp_path):
    with Stage(SIZE) as stage:
        camera = Camera(stage.window, tmp_path, QSize(300, 200))
        visit = Visit(stage.window, camera, stage.folder, tmp_path, 5)
        said = []
        assert not walk(visit, [Step("tiny", lambda visit: None)], said.append)
    assert "does not get smaller than" in said[0]
    assert not Path(stage.folder).exists()


def test_the_tour_ends_with_an_experiment(tmp_path):
    with Stage(SIZE) as stage:
        window = stage.window
        window.data.open(str(save_phantom(tmp_path)), HU)
        wait(lambda: window.setup.data is not None, "the small image")
        window.experiments.show()
        choose(window.experiments.view.panel.inputs, "The open data")
        visit = Visit(window, Camera(window, tmp_path, SIZE), stage.folder, tmp_path, 4)
        said = []
        assert walk(visit, experiments.STEPS, said.append), said
    assert colours(said[0]) > FEWEST_COLOURS


def test_by_default_there_are_two_themes_and_a_small_window():
    assert tour.looks_of(None, None, quick=False) == list(tour.DEFAULTS)
    assert tour.looks_of(None, None, quick=True) == [((1600, 1000), "dark")]
    assert tour.looks_of((1280, 720), "light", quick=False) == [((1280, 720), "light")]
    assert {theme for _, theme in tour.DEFAULTS} == {"dark", "light"}


def test_no_two_pictures_have_one_name():
    names = [step.name for step in (*ct.STEPS, *parts.MRI, *experiments.STEPS, *parts.VOLUME)]
    assert len(set(names)) == len(names)


def test_a_size_is_written_as_width_x_height(capsys):
    with pytest.raises(SystemExit) as ended:
        tour.main(["out", "--size", "large"])
    assert ended.value.code == 2
    assert "write it as 1600x1000" in capsys.readouterr().err
