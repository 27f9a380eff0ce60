"""The help: a list of pages at the left, the page at the right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QToolButton,
    QWidget,
)

from app.images.keys import KEY_HELP, MOUSE_HELP
from app.runs.bar import KEYS, TIPS
from app.shell.find_bar import FindBar
from app.shell.page_view import PageView
from app.widgets import in_column, in_row
from engine.files.folders import RESOURCES

FOLDER: Final = RESOURCES / "help"
SHORTCUTS: Final = "shortcuts"
FIRST: Final = ("workstation", "reading-the-plots", "formulas", SHORTCUTS)
LARGEST: Final = 1 << 20
Action = tuple[str, str, str]  # menu, text, shortcut


@dataclass(frozen=True)
class Page:
    """``name`` is what a link says, without its suffix."""

    name: str
    title: str
    path: Path | None = None


def pages(folder: Path = FOLDER) -> list[Page]:
    """What a beginner needs first, the rest by title."""
    found = {path.stem: Page(path.stem, _title(path), path) for path in folder.glob("*.md")}
    found[SHORTCUTS] = Page(SHORTCUTS, "Shortcuts")
    rest = sorted((name for name in found if name not in FIRST), key=lambda n: found[n].title)
    return [found[name] for name in (*FIRST, *rest) if name in found]


def read(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(LARGEST).decode("utf-8", "replace")


def shortcuts_page(actions: Iterable[Action] = ()) -> str:
    """Markdown; menus in the order in which their first action comes."""
    menus: dict[str, list[tuple[str, str]]] = {}
    for menu, text, shortcut in actions:
        if shortcut:
            plain = text.replace("&&", "\0").replace("&", "").replace("\0", "&")
            menus.setdefault(menu.replace("&", ""), []).append((shortcut, plain))
    parts = ["# Shortcuts", "Keys act on the part of the window that has the focus."]
    parts += [_table(f"{menu} menu", rows) for menu, rows in menus.items()]
    parts += [
        _table("While a run goes", [(KEYS[name], TIPS[name]) for name in KEYS]),
        _table("Keys on an image", KEY_HELP),
        _table("Mouse on an image", MOUSE_HELP),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heading: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"## {heading}", "", "| Key | What it does |", "|---|---|"]
    lines += [f"| **{_cell(keys)}** | {_cell(does)} |" for keys, does in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Signs that Markdown would read as its own are meant as they are."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>|#+-=~" else sign for sign in text)


def _title(path: Path) -> str:
    for line in read(path).splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return path.stem


ROW_PX: Final = 24
OUTSIDE: Final = ("http", "https", "mailto")


class HelpWindow(QWidget):
    """Not modal; pages are read from the disk when they are looked at."""

    def __init__(self, parent: QWidget | None = None, folder: Path = FOLDER) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("Dualscope help")
        self.resize(960, 680)
        self.folder = folder
        self.actions_shown: list[Action] = []
        self.pages: list[Page] = []
        self._trail: list[tuple[Page, int]] = []  # page and how far it was scrolled
        self._place = -1
        self.contents = QListWidget(self)
        self.contents.setAccessibleName("Help pages")
        self.contents.setToolTip("Choose the page to read.")
        self.contents.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.contents.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view = PageView(self)
        self.view.setToolTip("The page; links to other pages open here.")
        self.backButton = self._button("◀", "Back", QKeySequence.StandardKey.Back)
        self.forwardButton = self._button("▶", "Forward", QKeySequence.StandardKey.Forward)
        self.finder = FindBar("this page", self)
        head = in_row(self.backButton, self.forwardButton, None, self.finder, spacing=4)
        split = QSplitter(self)
        split.setChildrenCollapsible(False)
        split.addWidget(self.contents)
        split.addWidget(self.view)
        split.setStretchFactor(1, 1)
        split.setSizes([208, 752])
        in_column(head, (split, 1), spacing=8, margins=8, parent=self)

        self.contents.currentItemChanged.connect(self._on_chosen)
        self.view.link_clicked.connect(self.follow)
        self.backButton.clicked.connect(self.back)
        self.forwardButton.clicked.connect(self.forward)
        self.finder.wanted.connect(self._on_find)
        self.finder.typed.connect(self._on_typed)
        close = QShortcut(QKeySequence.StandardKey.Close, self)
        close.activated.connect(self.close)
        self._show_buttons()

    def set_actions(self, actions: Iterable[Action]) -> None:
        """(menu, text, shortcut) of everything in the menus, for the page of shortcuts."""
        self.actions_shown = list(actions)
        if self.page is not None and self.page.name == SHORTCUTS:
            self._render(self.page)

    def open(self, name: str = "") -> None:
        """Show a page by its name, or the one that was open last."""
        if not self.pages:
            self._fill()
        if name or self._place < 0:
            self.show_page(name or self.pages[0].name)
        self.show()
        self.raise_()
        self.activateWindow()

    @property
    def page(self) -> Page | None:
        return self._trail[self._place][0] if self._place >= 0 else None

    def show_page(self, name: str) -> bool:
        """False when there is no such page."""
        if not self.pages:
            self._fill()
        for page in self.pages:
            if page.name == name:
                self._visit(page)
                return True
        return False

    @Slot(QUrl)
    def follow(self, link: QUrl) -> None:
        """A page opens here, an address in the browser; anything else does nothing."""
        if link.scheme() in OUTSIDE:
            QDesktopServices.openUrl(link)
        elif not link.scheme() and link.path():
            base = self.folder
            if self.page is not None and self.page.path is not None:
                base = self.page.path.parent
            self._follow_file((base / link.path()).resolve())

    def _follow_file(self, path: Path) -> None:
        if path.parent == self.folder.resolve() and self.show_page(path.stem):
            return
        inside = path.is_relative_to(RESOURCES) or path.is_relative_to(self.folder.resolve())
        if inside and path.suffix == ".md" and path.is_file():
            self._visit(Page(path.stem, path.stem, path))

    @Slot()
    def back(self) -> None:
        self._go(self._place - 1)

    @Slot()
    def forward(self) -> None:
        self._go(self._place + 1)

    def _go(self, place: int) -> None:
        if 0 <= place < len(self._trail):
            self._remember_scroll()
            self._place = place
            page, scroll = self._trail[place]
            self._render(page)
            self.view.verticalScrollBar().setValue(scroll)

    def _visit(self, page: Page) -> None:
        if page == self.page:
            return
        self._remember_scroll()
        self._trail = [*self._trail[: self._place + 1], (page, 0)]
        self._place = len(self._trail) - 1
        self._render(page)

    def _remember_scroll(self) -> None:
        if (page := self.page) is not None:
            self._trail[self._place] = (page, self.view.verticalScrollBar().value())

    def _render(self, page: Page) -> None:
        if page.path is None:
            text, folder = shortcuts_page(self.actions_shown), self.folder
        else:
            folder = page.path.parent
            try:
                text = read(page.path)
            except OSError as error:
                text = f"# {page.title}\n\nThis page cannot be read: {error.strerror or error}.\n"
        self.view.show_markdown(text, folder)
        self._on_typed(self.finder.line.text())
        self._select_in_contents(page)
        self._show_buttons()

    def _select_in_contents(self, page: Page) -> None:
        self.contents.blockSignals(True)
        rows = [row for row, known in enumerate(self.pages) if known == page]
        self.contents.setCurrentRow(rows[0] if rows else -1)
        self.contents.blockSignals(False)

    def _fill(self) -> None:
        self.pages = pages(self.folder)
        self.contents.blockSignals(True)
        self.contents.clear()
        for page in self.pages:
            item = QListWidgetItem(page.title, self.contents)
            item.setToolTip(page.title)
            item.setSizeHint(QSize(0, ROW_PX))
        self.contents.blockSignals(False)

    def _button(self, sign: str, name: str, key: QKeySequence.StandardKey) -> QToolButton:
        button = QToolButton(self)
        button.setText(sign)
        button.setAccessibleName(name)
        button.setShortcut(QKeySequence(key))
        return button

    def _show_buttons(self) -> None:
        for button, can, where in (
            (self.backButton, self._place > 0, "before"),
            (self.forwardButton, self._place + 1 < len(self._trail), "after"),
        ):
            button.setEnabled(can)
            keys = button.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            tip = f"Go to the page read {where} this one." if can else f"No page {where} this one."
            button.setToolTip(f"{tip} ({keys})")

    @Slot(QListWidgetItem, QListWidgetItem)
    def _on_chosen(self, item: QListWidgetItem | None, before: QListWidgetItem | None) -> None:
        if item is not None:
            self._visit(self.pages[self.contents.row(item)])

    @Slot(str, bool)
    def _on_find(self, words: str, backwards: bool) -> None:
        if not self.view.find_words(words, backwards):
            self.finder.say("not found")

    @Slot(str)
    def _on_typed(self, words: str) -> None:
        count = self.view.mark(words)
        self.finder.say("" if not words else f"{count} found" if count else "not found")
