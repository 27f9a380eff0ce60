"""One family of icons: every tool has one, and their colour is that of the present theme."""

import re

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon, QPalette
from PySide6.QtWidgets import QApplication

from app.icons import FOLDER, icon, names
from app.images.display import Tool
from app.theme import make_palette

SIZE = QSize(48, 48)


def inks(picture):
    """The colours of all pixels that are covered entirely."""
    image = picture.toImage()
    pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return {colour.name() for colour in pixels if colour.alpha() == 255}


@pytest.fixture
def palettes(qapp):
    before = QApplication.palette()
    yield QApplication.setPalette
    QApplication.setPalette(before)


def test_every_tool_has_an_icon_of_the_family():
    assert {tool.value for tool in Tool} <= set(names())
    for name in names():
        drawing = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
        assert 'viewBox="0 0 24 24"' in drawing, name
        assert 'stroke-width="1.75"' in drawing, name
        assert set(re.findall(r'(?:fill|stroke)="(\w+)"', drawing)) <= {"none", "currentColor"}


@pytest.mark.parametrize("name", names())
def test_an_icon_shows_something(qapp, name):
    assert inks(icon(name).pixmap(SIZE)), name


def test_an_icon_follows_the_theme_without_being_made_again(palettes):
    made = icon("window")
    for dark in (True, False, True):
        palettes(make_palette(dark))
        ink = make_palette(dark).color(QPalette.ColorRole.ButtonText).name()
        assert inks(made.pixmap(SIZE)) == {ink}


def test_a_pressed_and_a_disabled_icon_have_the_colours_of_their_words(palettes):
    palette = make_palette(dark=False)
    palettes(palette)
    pressed = icon("window").pixmap(SIZE, QIcon.Mode.Normal, QIcon.State.On)
    disabled = icon("window").pixmap(SIZE, QIcon.Mode.Disabled)
    assert inks(pressed) == {palette.color(QPalette.ColorRole.HighlightedText).name()}
    group, role = QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText
    assert inks(disabled) == {palette.color(group, role).name()}
