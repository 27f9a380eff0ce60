"""Regions and lines drawn once and measured in every pane."""

import numpy as np
import pytest
from pane_events import LEFT, NONE, PIXEL, picture, stroke
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from app.images.display import Tool
from app.images.profile import ProfilePlot
from engine.metrics.roi import line_profile, region_mask, roi_statistics


@pytest.mark.parametrize("tool", [Tool.RECTANGLE, Tool.ELLIPSE])
def test_a_region_drawn_once_is_measured_in_every_pane(grid, qtbot, tool):
    grid.link.set_tool(tool)
    window = grid.link.window
    with qtbot.waitSignal(grid.inspector.statistics_changed):
        stroke(grid.pane("fbp"), (100, 90), (180, 150))
    assert grid.link.window == window
    view = grid.pane("fbp").view
    first, last = view.to_mm(QPointF(100, 90)), view.to_mm(QPointF(180, 150))
    box = (*first, *last)
    measured = grid.inspector.statistics
    assert [m.name for m in measured] == ["REFERENCE", "FBP", "DIFFPIR", "DC-PNPDP"]
    for pane, found in zip(grid.image_panes(), measured, strict=True):
        inside = pane.image[region_mask(pane.image.shape, PIXEL, box, tool is Tool.ELLIPSE)]
        inside = inside.astype(np.float64)
        assert inside.size > 50
        assert found.statistics.mean == pytest.approx(inside.mean())
        assert found.statistics.sd == pytest.approx(inside.std())
        assert found.statistics.minimum == inside.min()
        assert found.statistics.maximum == inside.max()
        assert found.statistics.area_mm2 == pytest.approx(inside.size * 0.64)
        (shape,) = pane.view.drawn.items.values()
        assert shape.isVisible()
        assert shape.label.text() == f"Region 1\n{inside.mean():.0f} ± {inside.std():.0f} HU"
        handle = 3 / view.pixels_per_mm()
        expected = np.array(box) + np.array([-1, -1, 1, 1]) * handle
        assert shape.path().boundingRect().getCoords() == pytest.approx(expected)


def test_a_region_can_be_moved_and_resized_and_removed(grid):
    grid.link.set_tool(Tool.RECTANGLE)
    pane = grid.pane("fbp")
    stroke(pane, (100, 90), (180, 150))
    box = np.array(grid.link.measurements.region.box)
    scale = pane.view.pixels_per_mm()
    stroke(pane, (140, 120), (150, 140))
    moved = np.array(grid.link.measurements.region.box)
    np.testing.assert_allclose(moved - box, np.array([10, 20, 10, 20]) / scale)
    stroke(pane, (190, 170), (200, 190))
    resized = np.array(grid.link.measurements.region.box)
    np.testing.assert_allclose(resized[:2], moved[:2])
    np.testing.assert_allclose(resized[2:] - moved[2:], np.array([10, 20]) / scale)
    QTest.keyClick(pane, Qt.Key.Key_Delete)
    assert grid.link.measurements.region is None
    assert not pane.view.drawn.items


def test_the_numbers_follow_a_running_image_but_not_every_frame(grid, qtbot):
    grid.link.set_tool(Tool.RECTANGLE)
    stroke(grid.pane("fbp"), (100, 90), (180, 150))
    calls = []
    grid.inspector.statistics_changed.connect(calls.append)
    with qtbot.waitSignal(grid.inspector.statistics_changed):
        for seed in range(20):
            grid.pane("fbp").set_image(picture(seed), PIXEL)
    assert len(calls) == 1
    region = grid.link.measurements.region
    expected = roi_statistics(picture(19), PIXEL, region.box)
    assert calls[0][1].statistics == expected


def test_a_line_is_one_plot_of_all_panes(grid, qtbot):
    plot = ProfilePlot()
    qtbot.addWidget(plot)
    grid.inspector.profiles_changed.connect(plot.set_profiles)
    grid.link.set_tool(Tool.RULER)
    stroke(grid.pane("reference"), (60, 100), (200, 130))
    line = grid.link.measurements.line
    assert list(plot.curves) == ["REFERENCE", "FBP", "DIFFPIR", "DC-PNPDP"]
    for pane in grid.image_panes():
        x, y = plot.curves[pane.name].getData()
        expected = line_profile(pane.image, PIXEL, line.start, line.end)
        np.testing.assert_array_equal(x, expected.distance_mm)
        np.testing.assert_array_equal(y, expected.values)
        assert plot.curves[pane.name].opts["pen"].color().name() == pane.run_style.colour.lower()
    items = len(plot.getPlotItem().items)
    stroke(grid.pane("reference"), (200, 130), (220, 60))  # its end, taken and moved
    assert grid.link.measurements.line.start == pytest.approx(line.start)
    assert len(plot.getPlotItem().items) == items
    grid.remove("fbp")
    grid.link.measurements.clear()
    assert not plot.curves
    assert not plot.getPlotItem().listDataItems()


def test_a_click_is_not_a_region(grid):
    grid.link.set_tool(Tool.ELLIPSE)
    QTest.mouseClick(grid.pane("fbp").view.viewport(), LEFT, NONE, QPoint(80, 80))
    assert grid.link.measurements.region is None
    QTest.keyClick(grid.pane("fbp"), Qt.Key.Key_Escape)
    assert grid.link.tool is Tool.WINDOW


def test_regions_follow_turn_and_zoom(grid):
    grid.link.set_tool(Tool.RECTANGLE)
    pane = grid.pane("fbp")
    stroke(pane, (100, 90), (180, 150))
    before = grid.inspector.statistics[1].statistics
    grid.link.rotate(True)
    grid.link.set_zoom(2)
    grid.inspector.refresh()
    assert grid.inspector.statistics[1].statistics == before
