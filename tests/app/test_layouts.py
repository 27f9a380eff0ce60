"""Reading, Compare and Research in the real window, and what the images gain from each."""

import pytest
from pane_events import drag
from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPalette
from PySide6.QtWidgets import QAbstractButton, QApplication, QToolButton, QToolTip
from window_driver import HU, activate, click, press, save_phantom, until

from app.images.display import Tool
from app.images.pages import LARGE_PX, most_large, pages_of
from app.layouts.layouts import LAYOUTS
from app.layouts.rail import WIDEST, Strip
from app.layouts.tab_order import parts_of
from app.shell.settings import CHOICES
from app.theme import Theme
from app.window import first_size

Key = Qt.Key
SIZES = ((1600, 1000), (1280, 720))


@pytest.fixture(scope="module")
def read(shared):
    """A reference and three runs."""
    shared.open(save_phantom(shared.folder), HU)
    shared.fill(method="dc-pnpdp", prior="tv", nfe=3, cg_iterations=2)
    click(shared.window.left.solver.both)
    shared.wait_idle()
    return shared


@pytest.fixture
def images(read, bench):
    read.window.resize(1600, 1000)
    read.window.layouts.choose("research")
    activate(read.window)
    settle()
    yield read
    read.window.menus.actions["second window"].setChecked(False)
    read.window.layouts.set_count("large")
    read.window.layouts.choose("research")
    for part in read.window.layouts.parts.values():
        part.set_folded(False)
    read.window.resize(1600, 1000)


def settle():
    for _ in range(3):  # layouts of layouts
        QApplication.processEvents()


def sides(window):
    """The smaller side of every image that is seen."""
    views = [pane.view for pane in window.grid.image_panes() if pane.isVisible()]
    return [min(view.width(), view.height()) for view in views]


def places(window):
    return [(pane.isVisible(), pane.geometry()) for pane in window.grid.image_panes()]


def show(window, size, name):
    window.resize(*size)
    click(window.switcher.buttons[name])
    settle()
    assert (window.width(), window.height()) == size, "the window does not get that small"


@pytest.mark.parametrize(("size", "count"), [(SIZES[0], 3), (SIZES[1], 2)])
def test_in_reading_every_image_has_512_pixels_a_side(images, size, count):
    window = images.window
    show(window, size, "reading")
    assert len(sides(window)) == count
    assert min(sides(window)) >= LARGE_PX
    seen = [key for key in window.grid if window.grid.pane(key).isVisible()]
    assert seen[0] == "reference"
    press(window.grid.pane(seen[0]), Key.Key_PageDown)
    others = [key for key in window.grid if window.grid.pane(key).isVisible()]
    assert others[0] == "reference"
    assert others != seen
    assert min(sides(window)) >= LARGE_PX


def test_in_compare_a_and_b_have_512_pixels_a_side_beside_the_curves(images):
    window = images.window
    show(window, SIZES[0], "compare")
    assert len(sides(window)) == 2
    assert min(sides(window)) >= LARGE_PX
    assert all(plot.isVisible() and plot.height() >= 80 for plot in window.center.plots.plots)
    a, b = window.grid.compare_keys()
    assert window.grid.pane(a).isVisible()
    assert window.grid.pane(b).isVisible()
    assert window.center.bar.sources.isVisible()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", LAYOUTS)
def test_nothing_is_outside_the_window(images, size, name):
    window = images.window
    show(window, size, name)
    inside = window.rect()
    for button in (*window.run_bar.buttons.values(), *window.switcher.buttons.values()):
        assert button.isVisible()
        corner = button.mapTo(window, button.rect().bottomRight())
        assert inside.contains(corner), button.text()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_as_many_images_as_are_asked_for(images, count):
    window = images.window
    show(window, SIZES[0], "reading")
    window.menus.actions[f"images {count}"].trigger()
    settle()
    assert len(sides(window)) == count
    assert window.settings.get("images") == str(count)


def test_the_current_run_is_brought_into_sight(images):
    window = images.window
    show(window, SIZES[1], "reading")
    for entry in images.runs():
        window.show_run(entry.run_id)
        assert window.grid.pane(entry.run_id).isVisible(), entry.name


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_message_moves_no_image(images, name):
    window = images.window
    show(window, SIZES[0], name)
    before = places(window)
    window.messages.error("This went wrong, and " + "it takes many words to say so, " * 8)
    settle()
    assert window.messages.isVisible()
    assert places(window) == before
    assert window.center.rect().contains(window.messages.geometry())
    assert window.messages.sentence.height() >= window.messages.sentence.heightForWidth(
        window.messages.sentence.width()
    )
    window.messages.queue.clear()
    settle()
    assert places(window) == before


@pytest.mark.parametrize(("key", "part"), [("F2", "left"), ("F3", "plots"), ("F4", "right")])
def test_what_is_folded_gives_its_room_to_the_images(images, key, part):
    window, grid = images.window, images.window.grid
    before, folding = grid.size(), window.layouts.parts[part]
    taken = folding.height() if part == "plots" else folding.width()
    press(window, Key[f"Key_{key}"])
    settle()
    left = folding.height() if part == "plots" else folding.width()
    gained = grid.height() - before.height() if part == "plots" else grid.width() - before.width()
    assert left <= 40, "a strip"
    assert gained == taken - left
    assert not window.menus.actions[part].isChecked()
    strip = window.center.plots.foldButton if part == "plots" else folding.strip
    click(strip)
    settle()
    assert grid.size() == before
    assert window.menus.actions[part].isChecked()


def test_keys_choose_the_layout_wherever_the_focus_is(images):
    window = images.window
    for name, layout in LAYOUTS.items():
        press(window.left.solver.run, Key[f"Key_{layout.keys}"])
        assert window.layouts.name == name
        assert window.switcher.buttons[name].isChecked()
        assert window.menus.actions[f"layout {name}"].isChecked()


def test_the_layout_and_its_folds_are_remembered(benches):
    first = benches(loaded=False)
    first.window.layouts.choose("reading")
    first.window.layouts.fold("left", False)
    first.window.split.setSizes([400, 1100, 24])
    width = first.window.layouts.rails["left"].width()
    first.close()
    again = benches(loaded=False).window
    assert again.layouts.name == "reading"
    assert again.switcher.buttons["reading"].isChecked()
    folded = {name: part.folded for name, part in again.layouts.parts.items()}
    assert folded == {"left": False, "right": True, "plots": True}
    assert again.layouts.rails["left"].width() == width
    again.layouts.choose("compare")
    assert again.layouts.rails["left"].folded
    again.layouts.choose("reading")
    assert not again.layouts.rails["left"].folded


def test_the_names_of_the_layouts_are_those_of_the_setting():
    assert tuple(LAYOUTS) == CHOICES["layout"]


def test_tab_goes_through_the_images_and_then_on_below_them(images):
    window = images.window
    window.grid.pane("reference").setFocus()
    for key in list(window.grid)[1:]:
        window.focusNextChild()
        assert window.focusWidget() is window.grid.pane(key)
    window.focusNextChild()
    assert window.focusWidget() is window.center.plots.foldButton
    window.grid.pane("reference").setFocus()
    window.focusPreviousChild()
    assert window.center.bar.isAncestorOf(window.focusWidget())


def test_the_images_go_to_a_window_of_their_own_and_come_back(images):
    window, grid = images.window, images.window.grid
    before = places(window)
    press(window, Key.Key_F9)
    settle()
    second = window.images_window
    assert second.isAncestorOf(grid)
    assert second.isAncestorOf(window.center.bar)
    assert window.center.elsewhere.isVisible()
    press(grid.pane("reference"), Key.Key_4)
    assert grid.link.window.width == 1800
    press(grid.pane("reference"), Key.Key_F6)
    assert window.layouts.name == "reading"
    window.messages.error("Told where the settings are.")
    settle()
    assert window.center.isAncestorOf(window.messages)
    assert window.center.rect().contains(window.messages.geometry())
    window.messages.queue.clear()
    window.layouts.choose("research")
    second.close()
    settle()
    assert window.isAncestorOf(grid)
    assert not window.center.elsewhere.isVisible()
    assert not window.menus.actions["second window"].isChecked()
    assert places(window) == before


@pytest.mark.parametrize("screen", [(1280, 720), (1366, 768), (1600, 1000), (3840, 2160)])
def test_the_first_window_fits_the_screen_with_its_frame(screen):
    title = 30
    size = first_size(QSize(*screen), title)
    assert size.width() <= screen[0]
    assert size.height() + title <= screen[1]


def test_the_theme_changes_everything_while_the_window_is_open(benches, tmp_path, request):
    app = QApplication.instance()
    palette, style, sheet = app.palette(), app.style().objectName(), app.styleSheet()
    request.addfinalizer(lambda: app.setPalette(palette))
    request.addfinalizer(lambda: app.setStyle(style))
    request.addfinalizer(lambda: app.setStyleSheet(sheet))
    theme = Theme(app, "dark")
    bench = benches(theme=theme)
    bench.open(save_phantom(tmp_path), HU)
    bench.run(nfe=3)
    window = bench.window
    window.grid.link.set_tool(Tool.RULER)
    drag(bench.pane("reference"), Qt.MouseButton.LeftButton, 60, 10)
    until(lambda: window.right.profile.isVisible(), what="the profile")
    click(window.center.plots.spectraButton)
    drawn = (*window.center.plots.plots, window.center.plots.spectra.images, window.right.profile)
    for plot in drawn:
        plot.grab()  # what was drawn may be kept
    label = window.left.solver.form.rows["nfe"].label
    assert label.font().bold()
    for mode in ("light", "dark", "light"):
        window.menus.actions[f"theme {mode}"].trigger()
        settle()
        wanted = app.palette().color(QPalette.ColorRole.WindowText)
        for plot in window.center.plots.plots:
            for side in ("left", "bottom"):
                assert plot.getPlotItem().getAxis(side).textPen().color() == wanted
        for part in (*drawn, window.center.plots, window.left, window.right, window.run_bar):
            grey = part.grab().toImage().pixelColor(3, 3).lightness()
            assert (grey > 128) == (mode == "light"), part
        assert label.font().bold(), "a changed value is no longer marked"
    theme.deleteLater()


def laid_out(widget):
    """All that is in its layouts; what Qt keeps to itself is left alone."""
    for part in parts_of(widget):
        yield part
        yield from laid_out(part)


def worded(window):
    """The buttons that are seen with their words."""
    alone = Qt.ToolButtonStyle.ToolButtonIconOnly
    for button in laid_out(window):
        if not isinstance(button, QAbstractButton):
            continue
        named = not isinstance(button, QToolButton) or button.toolButtonStyle() != alone
        if button.isVisible() and button.text() and named and not isinstance(button, Strip):
            yield button


def cut_off(window):
    """Buttons without room for their words, or out of the window."""
    cut = []
    for button in worded(window):
        words = button.fontMetrics().horizontalAdvance(button.text().replace("&", ""))
        picture = button.iconSize().width() if not button.icon().isNull() else 0
        if button.width() < words + picture:
            cut.append(button.text())
    for bar in (window.center.bar.tool_buttons, window.center.bar.mode_buttons, window.run_bar):
        if bar.width() < bar.minimumSizeHint().width():
            cut.append(bar.accessibleName())
    return cut


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", LAYOUTS)
def test_no_word_on_a_button_is_cut(images, size, name):
    show(images.window, size, name)
    assert not cut_off(images.window)


@pytest.mark.parametrize("name", LAYOUTS)
def test_letters_half_as_large_again_fit_into_a_small_window(benches, tmp_path, request, name):
    app = QApplication.instance()
    usual = app.font()
    request.addfinalizer(lambda: app.setFont(usual))
    large = app.font()
    large.setPointSizeF(1.5 * large.pointSizeF())
    app.setFont(large)
    bench = benches()
    bench.open(save_phantom(tmp_path), HU)
    bench.run(nfe=2)
    show(bench.window, SIZES[1], name)
    assert not cut_off(bench.window)


@pytest.mark.parametrize("name", LAYOUTS)
def test_words_as_long_as_german_ones_fit_into_a_small_window(benches, name):
    window = benches().window
    show(window, SIZES[1], name)
    for button in list(worded(window)):
        if button.maximumWidth() == WIDEST:  # others are made to measure
            button.setText(button.text() + "n" * max(3, len(button.text()) * 2 // 5))
    show(window, SIZES[0], name)
    show(window, SIZES[1], name)
    assert not cut_off(window)


def test_a_tool_tip_leaves_its_curves_to_be_seen(images):
    plot = images.window.center.plots.gap
    where = QPoint(60, 60)
    QApplication.sendEvent(
        plot.viewport(), QHelpEvent(QEvent.Type.ToolTip, where, plot.mapToGlobal(where))
    )
    (tip,) = [w for w in QApplication.topLevelWidgets() if w.inherits("QTipLabel")]
    assert tip.isVisible()
    assert tip.text() == plot.toolTip()
    assert not tip.geometry().intersects(plot.rect().translated(plot.mapToGlobal(QPoint(0, 0))))
    QToolTip.hideText()
    until(lambda: not any(w.inherits("QTipLabel") for w in QApplication.topLevelWidgets()))


def test_without_data_the_images_offer_to_open_some(benches):
    window = benches(loaded=False).window
    window.layouts.choose("reading")
    settle()
    demo = window.grid._empty.buttons["CT demo"]
    assert demo.isVisible()
    click(demo)
    until(lambda: "reference" in window.grid, what="the demo")
    assert not demo.isVisible()


def test_as_many_images_as_stay_large():
    assert most_large(1546, 860) == 3
    assert most_large(1232, 580) == 2
    assert most_large(1846, 960) == 3
    assert most_large(1880, 1112) == 4
    assert most_large(600, 300) == 1


def test_the_first_image_and_the_comparison_are_on_every_page():
    assert pages_of("abcde", "", 3) == [list("abc"), list("ade")]
    assert pages_of("abcd", "", 3) == [list("abc"), list("acd")]
    assert pages_of("abcd", "X", 3) == [list("abX"), list("acX"), list("adX")]
    assert pages_of("ab", "X", 3) == [list("abX")]
    assert pages_of("abc", "", 1) == [["a"], ["b"], ["c"]]
    assert pages_of("abc", "X", 1) == [["X"]]
    assert pages_of("abc", "X", 2) == [["a", "X"]]


def test_the_pager_counts_the_pages_and_turns_them(images):
    window = images.window
    show(window, SIZES[1], "reading")
    pager = window.center.pager
    assert pager.isVisible()
    assert pager.words.text() == "3 of 3"
    window.grid.turn_page(1)
    assert pager.words.text() == "1 of 3"
    show(window, SIZES[0], "research")
    until(lambda: not pager.isVisible(), what="the pager to go")
