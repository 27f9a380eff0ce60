"""Axial, coronal and sagittal of an open series: which voxel appears where, how long things are.

The phantom's value is a different number everywhere in the patient: 3x + 5y + 7z. So a flip, a
transposition or a wrong order of slices cannot go unseen, whatever way the series was acquired.
"""

import math

import numpy as np
import pytest
from dicom_files import write_slice
from pane_events import LEFT, NONE
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from window_driver import choose, press, sentences, until

from app.data import opening
from app.images.caption import edge_letters
from app.images.display import Orientation, Tool
from app.runs.stack import StackImages
from app.tools.volume.series_source import SeriesSource, geometry_notes
from app.tools.volume.source import DIFFERENCE, REFERENCE, RESULT
from app.tools.volume.space import Thick
from engine.data.images.slab import Slab, project

ROWS, COLUMNS, SLICES = 26, 34, 9
ROW_MM, COLUMN_MM, APART = 2.0, 1.0, 4.0
COS, SIN = math.cos(math.radians(20)), math.sin(math.radians(20))
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
UP = (0, 0, -1)  # a column that runs from the head to the feet
ACQUIRED = {  # along a row, along a column, from InstanceNumber to InstanceNumber
    "axial": (X, Y, Z),
    "axial, from the head": (X, Y, UP),
    "axial, prone": ((-1, 0, 0), (0, -1, 0), Z),
    "sagittal": (Y, UP, (-1, 0, 0)),
    "sagittal, other way": (Y, UP, X),
    "coronal": (X, UP, Y),
    "oblique": (X, (0, COS, SIN), (0, -SIN, COS)),
}
LETTERS = {"Axial": "RALP", "Coronal": "RHLF", "Sagittal": "AHPF"}  # left, top, right, bottom
SIGNS = {"Axial": ((0, 1), (1, 1)), "Coronal": ((0, 1), (2, -1)), "Sagittal": ((1, 1), (2, -1))}


def value(point):
    return np.asarray(point) @ np.array([3.0, 5.0, 7.0])


def points(acquired):
    """Where the voxels of slice n of the acquisition lie: [slice, row, column, xyz]."""
    row, column, step = (np.array(way, float) for way in ACQUIRED[acquired])
    origin = np.array([-11.0, 23.0, 40.0])
    n, r, c = np.mgrid[:SLICES, :ROWS, :COLUMNS][..., None]
    return origin + n * APART * step + r * ROW_MM * column + c * COLUMN_MM * row


def save(folder, acquired):
    places = points(acquired)
    row, column, _ = ACQUIRED[acquired]
    for n in range(SLICES):
        stored = np.rint(value(places[n])).astype(int) + 1024
        write_slice(
            folder / f"{(5 * n) % SLICES}.dcm",  # names in another order
            stored=stored,
            ImageOrientationPatient=[*map(float, (*row, *column))],
            ImagePositionPatient=[float(v) for v in places[n, 0, 0]],
            PixelSpacing=[ROW_MM, COLUMN_MM],
            SliceThickness=APART,
            InstanceNumber=n + 1,
            SOPInstanceUID=f"1.2.3.4.{n + 1}",
        )
    return folder


def source_of(folder):
    source = SeriesSource(opening.try_open(str(folder), {}), None, 2)
    while source.unread:
        source.refresh()
    return source


def place(source, voxel):
    at = source.data.placements[voxel[0]]
    row, column = np.array(at.along_row), np.array(at.along_column)
    return np.array(at.position) + voxel[1] * ROW_MM * column + voxel[2] * COLUMN_MM * row


@pytest.mark.parametrize("acquired", ACQUIRED)
def test_every_voxel_of_a_series_is_where_the_patient_has_it(tmp_path, acquired):
    source = source_of(save(tmp_path, acquired))
    corners = value(points(acquired)[:, 0, 0])
    assert sorted(image[0, 0] for image in source.source) == sorted(np.rint(corners))
    voxel = (6, 4, 30)
    for axis, cut in enumerate(source.cuts):
        picture = source.cut(RESULT, axis, voxel)
        for row, column in np.ndindex(picture.shape):
            found = cut.voxel((column, row), voxel, source.shape)
            assert abs(picture[row, column] - value(place(source, found))) <= 0.5 + 1e-6
    assert not geometry_notes(source.data)


@pytest.mark.parametrize("acquired", [name for name in ACQUIRED if name != "oblique"])
def test_cuts_across_a_series_look_the_same_however_it_was_acquired(tmp_path, acquired):
    """Along each edge the patient's own axes rise as the letters say, pixel by pixel."""
    source = source_of(save(tmp_path, acquired))
    voxel = (6, 4, 30)
    for axis, cut in enumerate(source.cuts):
        if axis == 0:
            continue  # as it was acquired
        assert "".join(edge_letters(cut.placement, Orientation())) == LETTERS[cut.name]
        picture = source.cut(RESULT, axis, voxel)
        (right, right_sign), (down, down_sign) = SIGNS[cut.name]
        slopes = np.array([3.0, 5.0, 7.0])
        across = np.diff(picture, axis=1) / cut.pixel_mm[1]
        along = np.diff(picture, axis=0) / cut.pixel_mm[0]
        assert np.all(across == right_sign * slopes[right])
        assert np.all(along == down_sign * slopes[down])


def test_letters_of_an_oblique_series_name_both_sides(tmp_path):
    axial, coronal, sagittal = source_of(save(tmp_path, "oblique")).cuts
    upright = Orientation()
    assert tuple(edge_letters(axial.placement, upright)) == ("R", "AF", "L", "PH")
    assert tuple(edge_letters(coronal.placement, upright)) == ("R", "HA", "L", "FP")
    assert tuple(edge_letters(sagittal.placement, upright)) == ("AF", "HA", "PH", "FP")


@pytest.mark.parametrize("acquired", ["axial, from the head", "sagittal", "oblique"])
def test_a_slab_is_as_thick_as_it_says_and_around_its_cut(tmp_path, acquired):
    source = source_of(save(tmp_path, acquired))
    voxel = (4, 12, 15)
    for axis, cut in enumerate(source.cuts):
        step = (APART, ROW_MM, COLUMN_MM)[axis]
        assert cut.step_mm == pytest.approx(step)
        span = cut.span(voxel, source.shape, Thick(Slab.MEAN, 12.0))
        assert len(span) == round(12 / step)
        assert span[0] <= voxel[axis] <= span[-1]
        stack = np.moveaxis(source.source, axis, 0)[span[0] : span[-1] + 1]
        stack = (
            np.stack([cut.picture(np.repeat(one[None], 9, 0), voxel) for one in stack])
            if (axis == 0)
            else np.stack([source.cut(RESULT, axis, _at(voxel, axis, n)) for n in span])
        )
        for how, function in ((Slab.MAXIMUM, np.max), (Slab.MEAN, np.mean), (Slab.MINIMUM, np.min)):
            slab = source.cut(RESULT, axis, voxel, Thick(how, 12.0))
            np.testing.assert_allclose(slab, function(stack, axis=0), rtol=1e-6)
    edge = source.cuts[0].span((0, 0, 0), source.shape, Thick(Slab.MEAN, 20.0))
    assert list(edge) == [0, 1, 2], "a slab ends where the volume does"


def _at(voxel, axis, number):
    found = list(voxel)
    found[axis] = number
    return tuple(found)


def test_a_projection_is_numpys_own_along_every_axis():
    volume = np.random.default_rng(0).normal(size=(7, 11, 13)).astype(np.float32)
    for axis in range(3):
        for how, function in ((Slab.MAXIMUM, np.max), (Slab.MEAN, np.mean), (Slab.MINIMUM, np.min)):
            np.testing.assert_allclose(
                project(volume, axis, how), function(volume, axis=axis), rtol=1e-5, atol=1e-6
            )


def test_slices_that_are_not_there_yet_take_no_part_in_a_slab(tmp_path):
    source = source_of(save(tmp_path, "axial"))
    source.read -= {4}
    thick = Thick(Slab.MAXIMUM, 12.0)
    found = source.cut(RESULT, 0, (4, 12, 15), thick)
    np.testing.assert_array_equal(found, np.maximum(source.source[3], source.source[5]))
    coronal = source.cut(RESULT, 1, (4, 12, 15), thick)
    assert np.isnan(coronal[SLICES - 1 - 4]).all(), "the head is up"
    assert np.isfinite(np.delete(coronal, SLICES - 1 - 4, 0)).all()


def test_a_slanted_and_an_uneven_stack_say_so(tmp_path):
    for n in range(5):
        write_slice(
            tmp_path / f"{n}.dcm",
            ImagePositionPatient=[0.0, 1.0 * n, 4.0 * n + (2.0 if n > 2 else 0.0)],
            InstanceNumber=n + 1,
            SOPInstanceUID=f"1.2.3.4.{n + 1}",
        )
    notes = geometry_notes(opening.try_open(str(tmp_path), {}))
    assert [note.split()[0] for note in notes] == ["Slices", "The"]


# -- in the window --------------------------------------------------------------------------


@pytest.fixture
def cuts(bench, tmp_path):
    """The window with the cuts of the open series."""
    window = bench.window
    bench.open(save(tmp_path / "series", "axial, from the head"))
    window.menus.actions["mpr"].trigger()
    looking = window.volumes.browser
    until(lambda: "A" in looking.sources and not looking.sources["A"].unread, what="the slices")
    bench.wait_quiet()
    yield looking.view
    bench.wait_quiet()
    choose(looking.view.slab.how, "Thin cuts")
    looking.close()
    looking.sources = {}


def centre(pane, row, column):
    """Where on the screen the middle of a pixel is."""
    mm = pane.view.pixel_mm
    rows, columns = pane.image.shape
    x, y = (column + 0.5 - columns / 2) * mm[1], (row + 0.5 - rows / 2) * mm[0]
    where = pane.view.mm_to_screen().map(x, y)
    return QPoint(round(where[0]), round(where[1]))


def test_the_open_series_is_seen_in_three_planes_with_the_patients_letters(bench, cuts):
    axial, coronal, sagittal = cuts.panes.panes
    assert [pane.name.split(",")[0] for pane in (axial, coronal, sagittal)] == [
        "Axial",
        "Coronal",
        "Sagittal",
    ]
    assert axial.overlay.text.letters == ("R", "A", "L", "P")
    assert coronal.overlay.text.letters == ("R", "H", "L", "F")
    assert sagittal.overlay.text.letters == ("A", "H", "P", "F")
    assert cuts.panes.voxel[0] == bench.window.panes.slice, "it begins on the slice that was seen"
    assert not cuts.whats[DIFFERENCE].isVisible(), "there is no result"
    assert not cuts.export.isVisible()
    assert cuts.window_box.window_model.window == bench.window.grid.link.window


def test_a_click_finds_the_same_point_of_the_patient_in_all_planes(bench, cuts):
    axial, coronal, sagittal = cuts.panes.panes
    QTest.mouseClick(coronal.view.viewport(), LEFT, NONE, centre(coronal, 2, 9))
    bench.wait_quiet()
    # 9 columns of 1 mm from the right; 2 slices of 4 mm below the top, which is at z = 40
    expected = value((-11 + 9, 0, 40 - 2 * APART))
    _, row, _ = cuts.panes.voxel
    expected += 5 * (23 + row * ROW_MM)
    for pane in (axial, coronal, sagittal):
        pane.link.set_cursor(pane.link.state.crosshair)
        assert pane.readout().startswith(f"HU {expected:.0f} @")
        pane.link.set_cursor(None)


def test_lengths_across_the_slices_are_those_of_the_patient(bench, cuts):
    coronal = cuts.panes.panes[1]
    cuts.tools.buttons[Tool.RULER].click()
    assert all(link.tool is Tool.RULER for link in cuts.panes.links)
    target = coronal.view.viewport()
    first, last = centre(coronal, 1, 3), centre(coronal, 7, 23)
    QTest.mousePress(target, LEFT, NONE, first)
    QTest.mouseMove(target, last)
    QTest.mouseRelease(target, LEFT, NONE, last)
    (one,) = coronal.link.measurements.all
    scale = coronal.view.pixels_per_mm()
    assert one.length_mm == pytest.approx(math.hypot(6 * APART, 20 * COLUMN_MM), abs=1.5 / scale)
    assert not cuts.panes.links[0].measurements.all
    press(cuts, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert not coronal.link.measurements.all
    cuts.tools.buttons[Tool.WINDOW].click()


def test_a_maximum_is_shown_said_and_marked_in_the_other_planes(bench, cuts):
    cuts.panes.go_to((4, 12, 15))
    choose(cuts.slab.how, "Maximum (MIP)")
    cuts.slab.mm.setValue(12)
    bench.wait_quiet()
    axial, coronal, _ = cuts.panes.panes
    volume = cuts.panes.shape
    span = cuts.panes.cuts[0].span((4, 12, 15), volume, cuts.slab.value)
    assert len(span) == 3
    source = bench.window.volumes.browser.sources["A"]
    np.testing.assert_array_equal(axial.image, source.source[span[0] : span[-1] + 1].max(0))
    assert "Maximum (MIP) over 12 mm" in axial.overlay.text.top_right
    lines = [line.line() for line in coronal.view._slab_lines if line.isVisible()]
    assert len(lines) == 4
    heights = sorted(line.y1() for line in lines if line.y1() == line.y2())
    assert heights[1] - heights[0] == pytest.approx(12.0)
    middle = coronal.link.state.crosshair[1]
    assert sum(heights) / 2 == pytest.approx(middle)
    choose(cuts.slab.how, "Thin cuts")
    bench.wait_quiet()
    assert not any(line.isVisible() for line in coronal.view._slab_lines)


def test_the_stack_of_a_run_is_seen_beside_its_source(bench, cuts, tmp_path):
    window = bench.window
    data, size = window.setup.data, (ROWS, COLUMNS)
    stack = StackImages(range(SLICES), size, tmp_path)
    window.store.create("stack", {"input": data.text, "options": data.options, "solver": "fbp"}, "")
    window.store.change("stack", stack=stack, slices=tuple(range(SLICES)), modality="CT")
    window.show_run("stack")
    window.menus.actions["mpr"].trigger()
    until(lambda: cuts.facts and cuts.shown.has_reference, what="the stack")
    bench.wait_quiet()
    assert np.isnan(cuts.panes.panes[0].image).all(), "nothing is reconstructed yet"
    source = window.volumes.browser.sources["A"].source
    for number in range(SLICES):
        stack.put(number, np.array(source[number]) + 10)
        stack.metrics[number] = {}
    window.store.change("stack")
    until(lambda: len(cuts.shown.stored) == SLICES, what="the slices")
    bench.wait_quiet()
    for what, shift in ((RESULT, 10), (REFERENCE, 0)):
        cuts.show_what(what)
        bench.wait_quiet()
        row = cuts.panes.voxel[1]
        image, truth = cuts.panes.panes[1].image, source[:, row]
        order = slice(None) if image[0, 0] == truth[0, 0] + shift else slice(None, None, -1)
        np.testing.assert_array_equal(image, truth[order] + shift)
    assert cuts.whats[REFERENCE].text() == "Source"
    cuts.show_what(DIFFERENCE)
    bench.wait_quiet()
    assert all(np.all(pane.image == 10) for pane in cuts.panes.differences)


def test_one_slice_has_no_planes(bench):
    bench.open("demo:ct")
    bench.window.menus.actions["mpr"].trigger()
    assert sentences(bench.window)[-1] == "These data have one slice."
