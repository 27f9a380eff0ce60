"""The browser shows what is open and asks for what is clicked."""

import pytest
from data_files import CT_SMALL, MIXED, STUDY, VOLUME, volume_file
from dicom_files import picture, write_series, write_slice
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from app.data.browser import EMPTY, DataBrowser
from app.data.presenter import DataPresenter
from app.data.recent import RecentFiles
from engine.data.dataset import Check, Fact

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def browser(tasks, tmp_path, qtbot):
    presenter = DataPresenter(tasks, RecentFiles(tasks, tmp_path / "config" / "recent.json"))
    browser = DataBrowser(presenter)
    qtbot.addWidget(browser)
    browser.resize(260, 600)
    browser.show()
    yield browser
    qtbot.waitUntil(lambda: not tasks.busy)


def opened(qtbot, browser, path, options=None):
    with qtbot.waitSignal(browser.presenter.opened) as signal:
        browser.presenter.open(str(path), options)
    qtbot.waitUntil(lambda: not browser.presenter.tasks.busy)
    return signal.args[0]


def click_row(qtbot, browser, row):
    where = browser.series.visualRect(browser.series.items.index(row, 0))
    browser.series.scrollTo(browser.series.items.index(row, 0))
    where = browser.series.visualRect(browser.series.items.index(row, 0))
    qtbot.mouseClick(browser.series.viewport(), LEFT, pos=where.center())


def current_row(browser):
    return browser.series.currentIndex().row()


def visible_texts(widget):
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def test_an_empty_browser_says_what_to_do(qtbot, browser):
    assert EMPTY in visible_texts(browser)
    with qtbot.waitSignal(browser.presenter.opened) as signal:
        qtbot.mouseClick(browser.ctDemo, LEFT)
    assert signal.args[0].name == "CT demo"
    assert not browser.empty.isVisible()
    assert browser.series.isVisible()


def test_the_series_are_listed_with_thumbnails_and_the_open_one_is_selected(qtbot, browser):
    opened(qtbot, browser, STUDY)
    model = browser.series.items
    assert model.rowCount() == 7
    assert model.item(6).text() == "MR series 700, 7 slices\nANGIO Projected from   C"
    assert current_row(browser) == 6
    shown = model.item(6).icon().pixmap(48, 48).toImage()
    assert max(shown.pixelColor(x, 24).lightness() for x in range(48)) > 60


def test_clicking_another_series_opens_it(qtbot, browser):
    opened(qtbot, browser, STUDY)
    with qtbot.waitSignal(browser.presenter.opened):
        click_row(qtbot, browser, 3)
    assert browser.presenter.current.name == "MR series 2"
    assert current_row(browser) == 3


def test_arrow_keys_go_to_the_next_series(qtbot, browser):
    opened(qtbot, browser, STUDY)
    browser.series.setFocus()
    with qtbot.waitSignal(browser.presenter.opened):
        qtbot.keyClick(browser.series, Qt.Key.Key_Up)
    assert [i.number for i in browser.presenter.current.series if i.chosen] == [6]


def test_what_cannot_be_opened_is_grey_and_says_why(qtbot, browser):
    opened(qtbot, browser, MIXED)
    item = browser.series.items.item(0)
    assert not item.isEnabled()
    assert "Computed Radiography" in item.toolTip()
    assert "--" not in item.toolTip()
    before = browser.presenter.current
    click_row(qtbot, browser, 0)
    qtbot.waitUntil(lambda: not browser.presenter.tasks.busy)
    assert browser.presenter.current is before
    assert current_row(browser) == 3


def test_after_a_failed_opening_the_open_series_is_selected_again(qtbot, browser):
    opened(qtbot, browser, MIXED.parent)
    scout = next(i for i in browser.presenter.current.series if i.screen_text == "Scout")
    before = current_row(browser)
    with qtbot.waitSignal(browser.presenter.failed) as failed:
        click_row(qtbot, browser, scout.number - 1)
    assert "localizer" in failed.args[0]
    assert current_row(browser) == before


def test_the_slider_and_the_number_ask_for_slices(qtbot, browser, tmp_path):
    opened(qtbot, browser, volume_file(tmp_path), VOLUME)
    assert browser.slices.words.text() == "Slice 21 of 40"
    browser.slices.slider.setFocus()
    with qtbot.waitSignal(browser.slice_wanted) as wanted:
        qtbot.keyClick(browser.slices.slider, Qt.Key.Key_Right)
    assert wanted.args == [21]
    assert browser.slices.words.text() == "Slice 22 of 40"
    browser.slices.spin.setFocus()
    browser.slices.spin.selectAll()
    qtbot.keyClicks(browser.slices.spin, "7")
    with qtbot.waitSignal(browser.slice_wanted) as wanted:
        qtbot.keyClick(browser.slices.spin, Qt.Key.Key_Return)
    assert wanted.args == [6]
    assert browser.slices.slider.value() == 7


def test_following_another_view_asks_for_nothing(qtbot, browser, tmp_path):
    opened(qtbot, browser, volume_file(tmp_path), VOLUME)
    with qtbot.assertNotEmitted(browser.slice_wanted):
        browser.set_slice(11)
    assert browser.slices.words.text() == "Slice 12 of 40"
    assert browser.slices.spin.value() == 12


def test_one_slice_needs_no_slider(qtbot, browser):
    opened(qtbot, browser, CT_SMALL)
    assert not browser.slices.isVisible()


def test_facts_fold_away_and_tell_their_origin(qtbot, browser):
    opened(qtbot, browser, STUDY)
    assert not browser.facts.isVisible()
    qtbot.mouseClick(browser.found.head, LEFT)
    assert browser.facts.isVisible()
    values = {
        browser.facts.grid.itemAtPosition(row, 0)
        .widget()
        .text(): browser.facts.grid.itemAtPosition(row, 1).widget()
        for row in range(browser.facts.grid.rowCount())
        if browser.facts.grid.itemAtPosition(row, 0) is not None
    }
    assert values["pixel"].text() == "0.390625 x 0.390625 mm"
    assert values["pixel"].toolTip() == "From: PixelSpacing."


def test_every_warning_is_shown_in_full(qtbot, browser):
    data = opened(qtbot, browser, STUDY)
    texts = visible_texts(browser.warnings)
    assert texts == [f"⚠ {words}" for words in data.warnings]
    assert len(texts) == 1
    found = visible_texts(browser.checks)
    sentences = [check.sentence for check in data.checks if check.verdict != "good"]
    assert sentences
    assert all(any(words in text for text in found) for words in sentences)
    QApplication.processEvents()
    labels = [*browser.warnings.findChildren(QLabel), *browser.checks.findChildren(QLabel)]
    for label in filter(QLabel.wordWrap, labels):
        assert label.height() >= label.heightForWidth(label.width()), "nothing is cut off"


def test_a_warning_that_a_check_says_is_not_said_twice(browser):
    browser.checks.show_checks([Check("centre", "corrected", "The centre was found.", "")])
    browser._show_warnings(["The centre was found.", "Water is assumed."])
    texts = [label.text() for label in browser.warnings.findChildren(QLabel)]
    assert texts == ["⚠ Water is assumed."]


def test_a_check_is_told_by_shape_word_and_colour_and_says_what_to_do(qtbot, browser, tmp_path):
    heights = [0.0, 2.0, 2.0, 4.0]
    write_series(tmp_path, heights, BurnedInAnnotation="YES")
    data = opened(qtbot, browser, tmp_path)
    assert browser.checks.isVisible(), "it is unfolded when there is something to read"
    assert browser.checked.head.text().endswith("Checks: 1 blocking, 1 doubtful")
    rows = [
        [browser.checks.grid.itemAtPosition(row, column).widget() for column in (0, 1)]
        for row in range(len(data.checks))
    ]
    marks = [mark.text() for mark, _ in rows]
    assert marks == ["✖", "⚠", *"✓" * (len(marks) - 2)], "the worst comes first"
    assert rows[0][1].text().startswith("Places, blocks a run: 1 place holds several slices")
    assert "into a folder of their own" in rows[0][1].toolTip()
    assert len({mark.styleSheet() for mark, _ in rows}) == 3
    assert data.blocked.startswith("1 place holds")


def test_good_checks_fold_away_and_new_ones_unfold_them(qtbot, browser, tmp_path):
    stored = [picture(number) for number in range(3)]
    stored[1][0, 0] = 0
    for number, values in enumerate(stored):
        place = [0.0, 0.0, 2.0 * number]
        write_slice(tmp_path / f"{number}.dcm", stored=values, ImagePositionPatient=place)
    opened(qtbot, browser, tmp_path)
    assert browser.checked.folded
    presenter = browser.presenter
    more = Check("air", "corrected", "Below air.", "Nothing need be done.")
    presenter.current.dataset.check(more.name, more.verdict, more.sentence, more.fix)
    with qtbot.waitSignal(presenter.checks_changed):
        presenter.show_slice(0)
    assert not browser.checked.folded
    assert "1 corrected" in browser.checked.head.text()


def test_what_is_known_of_the_noise_is_shown_with_its_origin(browser):
    browser.checks.show_checks([], [Fact("noise", "0.018 of the scale", "edge of k-space")])
    line = browser.checks.grid.itemAtPosition(0, 1).widget()
    assert (line.text(), line.toolTip()) == ("Noise: 0.018 of the scale", "From: edge of k-space.")


def test_other_data_replace_the_warnings_and_facts(qtbot, browser, tmp_path):
    opened(qtbot, browser, STUDY)
    opened(qtbot, browser, volume_file(tmp_path), VOLUME)
    assert visible_texts(browser.warnings) == []
    assert browser.series.items.rowCount() == 1


def test_another_file_of_the_same_kind_has_a_line_of_its_own(qtbot, browser, tmp_path):
    opened(qtbot, browser, volume_file(tmp_path), VOLUME)
    other = (tmp_path / "volume.npy").rename(tmp_path / "other.npy")
    opened(qtbot, browser, other, VOLUME)
    assert browser.series.items.item(0).text() == "CT image, 40 slices\nother.npy"


def test_the_menu_offers_recent_files_and_forgets_them(qtbot, browser):
    opened(qtbot, browser, CT_SMALL)
    opened(qtbot, browser, STUDY)
    qtbot.mouseClick(browser.openButton, LEFT)
    assert browser.menu.isVisible()
    qtbot.waitUntil(lambda: not browser.presenter.tasks.busy)
    texts = [action.text() for action in browser.menu.actions()]
    assert texts.index("98892003") < texts.index("CT_small.dcm")
    browser.menu.close()
    action = next(a for a in browser.menu.actions() if a.text() == "CT_small.dcm")
    with qtbot.waitSignal(browser.presenter.opened):
        action.trigger()
    assert browser.presenter.current.name == "CT series 1"
    qtbot.waitUntil(lambda: not browser.presenter.tasks.busy)
    with qtbot.waitSignal(browser.presenter.recent.changed):
        next(a for a in browser.menu.actions() if a.text() == "Clear recent files").trigger()
    assert "CT_small.dcm" not in [action.text() for action in browser.menu.actions()]


def test_the_file_dialog_does_not_block_and_opens_what_was_selected(qtbot, browser):
    browser.menu.file.trigger()
    dialog = browser.menu.dialog
    assert isinstance(dialog, QFileDialog)
    assert dialog.isVisible()
    with qtbot.waitSignal(browser.presenter.opened):
        dialog.fileSelected.emit(str(CT_SMALL))
    dialog.close()
    assert browser.menu.dialog is None


def test_what_is_being_read_is_shown_after_a_moment_without_moving_anything(qtbot, browser):
    before = browser.series.geometry(), browser.empty.geometry()
    browser.presenter.busy.emit("Opening a folder with a very long name …")
    assert browser.busy.text() == ""
    qtbot.waitUntil(lambda: browser.busy.text() != "")
    assert (browser.series.geometry(), browser.empty.geometry()) == before
    assert browser.busy.toolTip().startswith("Opening a folder")
    browser.presenter.busy.emit("")
    assert browser.busy.text() == ""


def test_the_stacks_of_a_series_are_lines_that_say_which_is_which(qtbot, browser, tmp_path):
    for echo in (2.0, 4.0):
        write_series(tmp_path / f"{echo:g}", [0.0, 2.0, 4.0], "MR", EchoTime=echo)
    data = opened(qtbot, browser, tmp_path)
    texts = [browser.series.items.item(row).text() for row in range(2)]
    assert texts == [f"MR series 3, 3 slices\necho {n} of 2 (TE {2 * n} ms)" for n in (1, 2)]
    assert data.name == "MR series 3, echo 1 of 2 (TE 2 ms)"
    with qtbot.waitSignal(browser.presenter.opened):
        click_row(qtbot, browser, 1)
    assert browser.presenter.current.series[1].chosen
