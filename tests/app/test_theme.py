"""Text can be read in either theme, and every method is told apart by colour and by dashes."""

import pytest
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication

from app.forms.choices import load_methods
from app.theme import REFERENCE, RUN_STYLES, Theme, is_dark, make_palette, run_style, tabular

Role = QPalette.ColorRole
PAIRS = [
    (Role.WindowText, Role.Window),
    (Role.Text, Role.Base),
    (Role.Text, Role.AlternateBase),
    (Role.ButtonText, Role.Button),
    (Role.ToolTipText, Role.ToolTipBase),
    (Role.HighlightedText, Role.Highlight),
    (Role.PlaceholderText, Role.Base),
    (Role.Link, Role.Window),
]


def luminance(color):
    parts = [color.redF(), color.greenF(), color.blueF()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_has_the_contrast_of_wcag_aa(qapp, dark, text, ground):
    palette = make_palette(dark)
    assert contrast(palette.color(text), palette.color(ground)) >= 4.5


@pytest.fixture
def restored(qapp):
    palette, style, sheet = qapp.palette(), qapp.style().objectName(), qapp.styleSheet()
    yield qapp
    qapp.setStyleSheet(sheet)
    qapp.setStyle(style)
    qapp.setPalette(palette)


def test_the_theme_changes_the_palette_and_says_so(restored, qtbot):
    theme = Theme(restored, "dark")
    assert theme.dark
    assert is_dark(QApplication.palette())
    with qtbot.waitSignal(theme.changed, check_params_cb=lambda dark: dark is False):
        theme.set_mode("light")
    assert not is_dark(QApplication.palette())
    with pytest.raises(ValueError, match="one of system, light, dark"):
        theme.set_mode("pink")
    theme.deleteLater()


def test_a_system_without_an_opinion_gets_dark(restored):
    theme = Theme(restored)
    assert theme.mode == "system"
    assert theme.dark or restored.styleHints().colorScheme().name == "Light"
    theme.deleteLater()


def test_no_two_methods_share_colour_and_dashes():
    load_methods()
    styles = {name: s for name, s in RUN_STYLES.items() if name not in ("ideal", "zero-filled")}
    assert len({(s.colour, s.dash) for s in styles.values()}) == len(styles)
    assert run_style("Reference") is REFERENCE
    assert run_style("DC-PnPDP").colour == "#E69F00"
    assert run_style("diffpir").colour == "#0072B2"
    assert run_style("naive").colour == "#D55E00"


def test_an_unknown_method_has_a_style_that_does_not_change():
    assert run_style("my-method") == run_style("my-method")
    assert run_style("my-method") not in RUN_STYLES.values()


def test_digits_are_of_equal_width(qapp):
    font = tabular(QApplication.font())
    assert any(tag.toString() == "tnum" for tag in font.featureTags())
