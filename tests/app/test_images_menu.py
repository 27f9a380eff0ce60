"""The menu of a right click, and the tools of the left button."""

import pytest
from pane_events import LEFT, NONE, drag, stroke
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from app.images.display import Tool
from app.images.menu import PaneMenu
from app.images.tools import TOOLS, ToolButtons
from app.images.window_level import OF_FILE, PRESETS, WindowLevel
from engine.spec.marks import CORNERS

RIGHT = Qt.MouseButton.RightButton


def right_click(pane, at=(150, 150)):
    QTest.mouseClick(pane.view.viewport(), RIGHT, NONE, QPoint(*at))
    QApplication.processEvents()
    menus = [menu for menu in pane.findChildren(PaneMenu) if menu.isVisible()]
    return menus[-1] if menus else None


def actions(menu):
    """Not by QAction.menu(): what that gives is deleted after use."""
    inner = menu.findChildren(QMenu)
    found = {f"{one.title()}/{name}": act for one in inner for name, act in actions(one).items()}
    titles = {one.title() for one in inner}
    own = [action for action in menu.actions() if action.text() and action.text() not in titles]
    return found | {action.text().split("\t")[0]: action for action in own}


def choose(pane, name, at=(150, 150)):
    menu = right_click(pane, at)
    found = actions(menu)
    found[name].trigger()
    menu.close()
    return found


def test_a_right_click_opens_the_menu_and_a_right_drag_zooms(grid):
    pane = grid.pane("fbp")
    drag(pane, RIGHT, 0, 60)
    assert grid.link.state.zoom > 1.2
    assert not pane.findChildren(PaneMenu)
    zoom = grid.link.state.zoom
    menu = right_click(pane)
    assert menu is not None
    assert grid.link.state.zoom == zoom
    menu.close()


def test_the_window_is_chosen_inverted_and_reset_to_that_of_the_file(grid):
    pane, model = grid.pane("fbp"), grid.link.window_model
    model.set_default(WindowLevel(55, 333))
    lung = PRESETS[1]
    choose(pane, f"Window/{lung.name}  {lung.centre:g}/{lung.width:g}")
    assert model.window == lung.window
    choose(pane, "Invert")
    assert model.window.invert
    choose(pane, "Reset to the window of the file")
    assert model.window == WindowLevel(55, 333)
    assert model.name == OF_FILE


def test_view_actions_of_the_menu(grid):
    pane, link = grid.pane("fbp"), grid.link
    choose(pane, "1:1, a pixel for a pixel")
    assert pane.view.magnification() == pytest.approx(1)
    choose(pane, "Fit")
    assert link.state.zoom == 1
    assert not choose(pane, "Smooth between pixels") or not link.smooth
    choose(pane, "This image alone")
    assert grid.maximised is pane
    assert choose(pane, "This image alone")["This image alone"].isCheckable()
    assert grid.maximised is None
    choose(pane, "Turn/Mirror left and right")
    assert link.state.orientation.mirrored


def test_the_marks_of_pictures_can_be_moved(grid):
    pane = grid.pane("fbp")
    assert "Save picture…" not in actions(PaneMenu(pane, QPoint(9, 9)))  # nobody would save it
    for corner in CORNERS[1:]:
        choose(pane, f"Marks of saved pictures/{corner.capitalize()}")
        assert grid.link.mark_corner == corner


def test_pictures_are_asked_for(grid, qtbot):
    pane = grid.pane("diffpir")
    grid.link.offers_pictures = True
    for name, signal in (
        ("Save picture…", grid.link.save_wanted),
        ("Copy picture", grid.link.copy_wanted),
    ):
        with qtbot.waitSignal(signal) as caught:
            choose(pane, name)
        assert caught.args == [pane]


def test_a_measurement_is_removed_by_its_menu(grid):
    pane = grid.pane("fbp")
    grid.link.set_tool(Tool.RULER)
    stroke(pane, (60, 100), (200, 130))
    choose(pane, "Remove Length 1", at=(130, 115))
    assert not grid.link.measurements.all


def test_the_menu_opens_by_key(grid):
    pane = grid.pane("fbp")
    menu = pane.menu_at(QPoint(50, 50))
    assert menu.isVisible()
    menu.close()


def test_an_empty_image_offers_nothing_of_it(grid):
    pane = grid.pane("fbp")
    pane.clear()
    menu = PaneMenu(pane, QPoint(9, 9))
    assert not any(action.isEnabled() for action in actions(menu).values())


# -- tools ----------------------------------------------------------------------------------


def test_every_tool_has_a_button_with_a_picture_and_a_name(grid, qtbot):
    bar = ToolButtons(grid.link)
    qtbot.addWidget(bar)
    assert set(bar.buttons) == set(TOOLS) == set(Tool)
    for tool, button in bar.buttons.items():
        assert not button.icon().isNull()
        assert button.text() == TOOLS[tool][0]
        QTest.mouseClick(button, LEFT)
        assert grid.link.tool is tool
    grid.link.set_tool(Tool.WINDOW)
    assert bar.buttons[Tool.WINDOW].isChecked()
    bar.show()
    narrow = bar.sizeHint().width()
    bar.set_labelled(True)
    assert bar.sizeHint().width() > narrow
    assert bar.minimumWidth() == narrow  # names never keep a window from getting narrow


def test_pan_and_zoom_are_tools_too(grid):
    pane, link = grid.pane("fbp"), grid.link
    link.set_tool(Tool.ZOOM)
    window = link.window
    drag(pane, LEFT, 0, 100)
    assert link.state.zoom == pytest.approx(2, rel=0.01)
    link.set_tool(Tool.PAN)
    before = link.state.centre
    drag(pane, LEFT, 20, 10)
    moved = link.state.centre
    scale = pane.view.pixels_per_mm()
    assert (before[0] - moved[0]) * scale == pytest.approx(20)
    assert (before[1] - moved[1]) * scale == pytest.approx(10)
    assert link.window == window
