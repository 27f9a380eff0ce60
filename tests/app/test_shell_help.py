"""The help finds its pages, shows them legibly and lists the shortcuts that exist."""

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QPalette, QTextDocument, QTextTable
from PySide6.QtWidgets import QApplication

from app.images.keys import KEY_HELP, MOUSE_HELP
from app.runs.bar import KEYS
from app.shell.help_window import FIRST, FOLDER, HelpWindow, pages, shortcuts_page
from app.theme import make_palette
from engine.files.folders import RESOURCES


@pytest.fixture
def window(qtbot):
    made = HelpWindow()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def small(qtbot, tmp_path):
    """Two pages that point at each other and elsewhere."""
    (tmp_path / "a.md").write_text(
        "# First\n\n[on](b.md) [out](https://example.org/x)\n" + "x\n\n" * 99
    )
    (tmp_path / "b.md").write_text("# Second\n\nword WORD [back](a.md)\n\nword\n")
    (tmp_path / "notes.txt").write_text("not a page")
    made = HelpWindow(folder=tmp_path)
    qtbot.addWidget(made)
    return made


def click_link(qtbot, view, target):
    """Where the pointer finds the link."""
    for y in range(0, view.viewport().height(), 4):
        for x in range(0, view.viewport().width(), 6):
            if view.anchorAt(QPoint(x, y)) == target:
                qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, y))
                return
    raise AssertionError(f"no link to {target} on the page")


def test_what_a_beginner_needs_comes_first_and_titles_are_headings():
    found = pages()
    assert tuple(page.name for page in found[:4]) == FIRST
    assert [page.title for page in found[:4]] == [
        "The workstation",
        "How to read the plots",
        "The formulas",
        "Shortcuts",
    ]
    assert {page.name for page in found} - {"shortcuts"} == {p.stem for p in FOLDER.glob("*.md")}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_every_link_of_every_page_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target.partition("#")[0]).is_file(), target


def test_every_page_opens_and_has_text(window):
    window.open()
    for page in window.pages:
        assert window.show_page(page.name)
        assert page.title in window.view.toPlainText()
        assert window.contents.currentItem().text() == page.title
    assert not window.show_page("no such page")


def test_the_list_is_used_with_the_keyboard(qtbot, window):
    window.open("workstation")
    window.contents.setFocus()
    qtbot.keyClick(window.contents, Qt.Key.Key_Down)
    assert window.page.name == "reading-the-plots"


def test_the_shortcuts_are_those_of_the_program(window):
    window.set_actions([("&File", "&Open…", "Ctrl+O"), ("Run", "Save && go", "F9"), ("A", "b", "")])
    window.open("shortcuts")
    text = window.view.toPlainText()
    for keys, does in (*KEY_HELP, *MOUSE_HELP, ("Ctrl+O", "Open…"), ("F9", "Save & go")):
        assert f"{keys}\n{does}" in text
    for keys in KEYS.values():
        assert keys in text
    assert "File menu" in text
    assert "A menu" not in text
    window.set_actions([("File", "Shut", "Ctrl+W")])  # while the page is open
    assert "Shut" in window.view.toPlainText()
    assert "Open…" not in window.view.toPlainText()


def test_signs_of_markdown_in_a_shortcut_stay_signs(window):
    page = shortcuts_page([("Menu", "A|B *c* <d> _e_", "Ctrl+|")])
    window.view.show_markdown(page, FOLDER)
    text = window.view.toPlainText()
    assert "A|B *c* <d> _e_" in text
    assert "Ctrl+|" in text


def test_links_between_pages_go_back_and_forth_to_the_same_place(qtbot, small):
    small.open("a")
    QApplication.processEvents()
    assert not small.backButton.isEnabled()
    assert "No page before" in small.backButton.toolTip()
    click_link(qtbot, small.view, "b.md")
    assert small.page.title == "Second"
    small.show_page("a")
    small.view.verticalScrollBar().setValue(100)
    small.show_page("b")
    qtbot.mouseClick(small.backButton, Qt.MouseButton.LeftButton)
    assert small.page.title == "First"
    assert small.view.verticalScrollBar().value() == 100
    qtbot.mouseClick(small.forwardButton, Qt.MouseButton.LeftButton)
    assert small.page.title == "Second"
    assert not small.forwardButton.isEnabled()


def test_an_address_opens_in_the_browser_only_on_a_click(qtbot, small, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    small.open("a")
    QApplication.processEvents()
    assert opened == []
    click_link(qtbot, small.view, "https://example.org/x")
    assert opened == ["https://example.org/x"]
    assert small.page.title == "First"


@pytest.mark.parametrize(
    "link",
    ["file:///etc/passwd", "javascript:alert(1)", "../../../etc/passwd", "notes.txt", "c.md"],
)
def test_other_links_do_nothing(small, monkeypatch, link):
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: pytest.fail("opened"))
    small.open("a")
    small.follow(QUrl(link))
    assert small.page.title == "First"


def test_a_model_card_outside_the_help_folder_can_be_read(window):
    window.open("priors")
    window.follow(QUrl("../priors/ct-small.md"))
    assert window.page.path == Path(RESOURCES / "priors" / "ct-small.md").resolve()
    window.back()
    assert window.page.name == "priors"


def test_find_counts_marks_and_goes_round(qtbot, small):
    small.open("b")
    qtbot.keyClick(small, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    line = small.finder.line
    qtbot.keyClicks(line, "word")
    assert small.finder.told.text() == "3 found"
    assert len(small.view.extraSelections()) == 3
    places = []
    for _ in range(4):
        qtbot.keyClick(line, Qt.Key.Key_Return)
        places.append(small.view.textCursor().selectionStart())
    assert places[:3] == sorted(set(places))
    assert places[3] == places[0]
    qtbot.keyClicks(line, "s")
    assert small.finder.told.text() == "not found"
    qtbot.keyClick(line, Qt.Key.Key_Escape)
    assert small.view.extraSelections() == []


@pytest.mark.parametrize("dark", [False, True])
def test_tables_have_lines_and_a_head_in_the_colours_of_the_theme(window, dark):
    window.view.setPalette(make_palette(dark))
    window.open("reading-the-plots")
    palette = window.view.palette()
    tables = [
        frame
        for frame in window.view.document().rootFrame().childFrames()
        if isinstance(frame, QTextTable)
    ]
    assert len(tables) == 2
    for table in tables:
        assert table.format().border() == 1
        assert table.format().cellPadding() >= 4
        assert table.format().borderBrush().color() == palette.color(QPalette.ColorRole.Mid)
        head = table.cellAt(0, 0).format().background().color()
        assert head == palette.color(QPalette.ColorRole.AlternateBase)


def test_a_change_of_theme_draws_the_page_again_at_the_same_place(window):
    window.view.setPalette(make_palette(True))
    window.open("formulas")
    window.view.verticalScrollBar().setValue(200)
    window.view.setPalette(make_palette(False))
    code = window.view.document().find("argmin").block().blockFormat().background().color()
    assert code == make_palette(False).color(QPalette.ColorRole.AlternateBase)
    assert window.view.verticalScrollBar().value() == 200


def test_pictures_fit_the_page_and_come_from_the_resources_only(window):
    window.open()
    view = window.view
    kind = QTextDocument.ResourceType.ImageResource.value
    for link in ("../../../../etc/passwd", "https://example.org/a.png", "file:///etc/passwd"):
        assert view.loadResource(kind, QUrl(link)) is None
    view.show_markdown("# Picture\n\n![results](workstation-ct.png)\n", FOLDER)
    QApplication.processEvents()
    high = view.document().size().height()
    assert high > 150
    assert view.document().size().width() <= view.viewport().width()
    window.resize(640, 680)
    QApplication.processEvents()
    assert view.document().size().height() < high


def test_no_page_stands_there_twice(qtbot, window):
    window.resize(900, 600)
    window.show()
    qtbot.waitExposed(window)
    for page in pages():
        window.open(page.name)
        QApplication.processEvents()
        text = window.view.toPlainText()
        assert text.count(text.strip().split("\n")[0] + "\n") == 1, page.name


def test_a_page_that_cannot_be_read_says_so(small, tmp_path):
    small.open("a")
    (tmp_path / "b.md").unlink()
    small.show_page("b")
    assert "cannot be read" in small.view.toPlainText()
