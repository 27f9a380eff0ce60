"""The look: one palette for light and one for dark, and the colours of runs.

Dark is the default (images are read in dim rooms); the system's own choice wins when it has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from engine.spec.run_colours import BLUE as BLUE
from engine.spec.run_colours import GREEN, NAIVE, NAIVE_STYLE
from engine.spec.run_colours import VERMILLION as VERMILLION

GRID_PX: Final = 8
SMALLEST_TEXT_PX: Final = 11
STYLE_SHEET: Final = Path(__file__).resolve().parent.parent / "resources" / "style" / "base.qss"

_Role = QPalette.ColorRole
_ROLES: Final[tuple[tuple[QPalette.ColorRole, str, str], ...]] = (  # role, light, dark
    (_Role.Window, "#f2f2f2", "#232323"),
    (_Role.WindowText, "#1b1b1b", "#e4e4e4"),
    (_Role.Base, "#ffffff", "#1a1a1a"),
    (_Role.AlternateBase, "#f0f0f0", "#202020"),
    (_Role.Text, "#1b1b1b", "#e4e4e4"),
    (_Role.PlaceholderText, "#6a6a6a", "#999999"),
    (_Role.Button, "#e8e8e8", "#303030"),
    (_Role.ButtonText, "#1b1b1b", "#e4e4e4"),
    (_Role.BrightText, "#ffffff", "#ffffff"),
    (_Role.ToolTipBase, "#ffffff", "#303030"),
    (_Role.ToolTipText, "#1b1b1b", "#e4e4e4"),
    (_Role.Highlight, "#0b63a5", "#2873b0"),
    (_Role.HighlightedText, "#ffffff", "#ffffff"),
    (_Role.Accent, "#0b63a5", "#4c9bd8"),
    (_Role.Link, "#0b63a5", "#6cb4ea"),
    (_Role.LinkVisited, "#6b4a94", "#b79be0"),
    (_Role.Light, "#ffffff", "#454545"),
    (_Role.Midlight, "#f8f8f8", "#3a3a3a"),
    (_Role.Mid, "#b8b8b8", "#4a4a4a"),
    (_Role.Dark, "#9a9a9a", "#151515"),
    (_Role.Shadow, "#707070", "#0a0a0a"),
)
_DISABLED_TEXT: Final = ("#8a8a8a", "#7c7c7c")


@dataclass(frozen=True)
class RunStyle:
    """How one method is drawn everywhere: told apart by colour and by dashes.

    ``dash`` is in units of the pen's width, as QPen wants it; empty means a solid line.
    """

    colour: str
    dash: tuple[float, ...] = ()


REFERENCE: Final = RunStyle(GREEN)
# Every method brings its own when the engine is loaded (app.forms.choices).
RUN_STYLES: Final[dict[str, RunStyle]] = {
    "reference": REFERENCE,
    "ideal": REFERENCE,
    NAIVE: RunStyle(*NAIVE_STYLE),
}
_OTHERS: Final = (
    RunStyle("#CC79A7", (12, 4)),
    RunStyle("#56B4E9", (12, 4, 2, 4)),
    RunStyle("#F0E442", (4, 4)),
    RunStyle("#999999", (12, 3)),
)


# of a check before a run: light, dark; never told by colour alone
VERDICTS: Final[dict[str, tuple[str, str]]] = {
    "good": ("#0a7a55", "#3fc796"),
    "corrected": ("#8a6100", "#e6b800"),
    "doubtful": ("#8a6100", "#e6b800"),
    "blocking": ("#b3261e", "#ff8a80"),
}


def run_style(method: str) -> RunStyle:
    """The style of a method by its command-line name; an unknown one keeps its own too."""
    name = method.strip().lower()
    known = RUN_STYLES.get(name)
    # not hash(): it differs between two starts of the program
    return known if known is not None else _OTHERS[sum(name.encode()) % len(_OTHERS)]


def make_palette(dark: bool) -> QPalette:
    palette = QPalette()
    for role, light_colour, dark_colour in _ROLES:
        palette.setColor(role, QColor(dark_colour if dark else light_colour))
    disabled = QColor(_DISABLED_TEXT[dark])
    for role in (_Role.WindowText, _Role.Text, _Role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, disabled)
    return palette


def style_sheet() -> str:
    """Its pictures lie beside it; Qt would look for them where the program was started."""
    folder = STYLE_SHEET.parent.as_posix()
    return STYLE_SHEET.read_text(encoding="utf-8").replace('url("', f'url("{folder}/')


def is_dark(palette: QPalette) -> bool:
    """Whether text on this palette is light: what a plot asks before choosing its grid."""
    window = palette.color(_Role.Window).lightness()
    return window < palette.color(_Role.WindowText).lightness()


def tabular(font: QFont) -> QFont:
    """The font with digits of equal width, so that changing numbers do not dance."""
    result = QFont(font)
    result.setFeature(QFont.Tag("tnum"), 1)
    return result


class Theme(QObject):
    """Applies the palette and follows the system; one per application.

    ``mode`` is 'system', 'light' or 'dark'.
    """

    changed = Signal(bool)  # whether it is dark now

    MODES: Final = ("system", "light", "dark")

    def __init__(self, app: QApplication, mode: str = "system") -> None:
        super().__init__(app)
        self._app = app
        self._mode = mode
        self._dark: bool | None = None
        app.setStyle("Fusion")
        app.setStyleSheet(style_sheet())
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_changed)
        self.set_mode(mode)

    @property
    def mode(self) -> str:
        return self._mode

    @property
    def dark(self) -> bool:
        return bool(self._dark)

    def set_mode(self, mode: str) -> None:
        if mode not in self.MODES:
            raise ValueError(f"theme '{mode}': one of {', '.join(self.MODES)}")
        self._mode = mode
        self._apply()

    @Slot()
    def _on_system_changed(self) -> None:
        if self._mode == "system":
            self._apply()

    def _apply(self) -> None:
        system = QGuiApplication.styleHints().colorScheme()
        dark = self._mode == "dark" or (self._mode == "system" and system != Qt.ColorScheme.Light)
        if dark != self._dark:
            self._dark = dark
            self._app.setPalette(make_palette(dark))
            # under a style sheet only windows take a new palette; this hands it to their
            # children, but takes away the fonts that were given to them
            given = Qt.WidgetAttribute.WA_SetFont
            fonts = [(w, w.font()) for w in self._app.allWidgets() if w.testAttribute(given)]
            self._app.setStyleSheet(self._app.styleSheet())
            for widget, font in fonts:
                widget.setFont(font)
            self.changed.emit(dark)
