"""At 320 px, the narrowest column, nothing is cut off; and all text is large enough."""

import numpy as np
import pytest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QStyle,
    QWidget,
)

from app.forms.choices import load_choices
from app.forms.ct_panel import CTPanel
from app.forms.mri_panel import MRIPanel
from app.forms.solver_panel import SolverPanel
from engine.files.presets import PresetStore

WIDTH = 320


def ct_simulated(tmp_path):
    panel = CTPanel()
    panel.form.more.setChecked(True)
    panel.form.set_values({"geometry": "fan", "photons": -1.0, "angular_range": 361.0})
    return panel


def ct_measured(tmp_path):
    panel = CTPanel()
    panel.set_measured(1200, 359.7, -179.85)
    panel.set_sinogram(np.zeros((1200, 64), np.float32))
    panel.form.more.setChecked(True)
    return panel


def mri(tmp_path):
    panel = MRIPanel()
    panel.set_simulated(320)
    panel.form.more.setChecked(True)
    panel.form.set_values({"mask": "fastmri-fraction"})
    return panel


def mri_wrong(tmp_path):
    panel = mri(tmp_path)
    panel.form.set_values({"mask": "random", "acs_lines": 300, "kspace_noise": -1.0})
    return panel


def solver(tmp_path):
    panel = SolverPanel(store=PresetStore(tmp_path))
    panel.set_choices(load_choices())
    panel.form.more.setChecked(True)
    panel.form.set_values({"sigma_min": 3.0, "sh_width": 8})
    return panel


def solver_saving(tmp_path):
    panel = SolverPanel(store=PresetStore(tmp_path))
    panel.set_choices(load_choices())
    panel.presets.save.click()
    panel.presets.name.setText("SVCT-20 (paper)")
    panel.presets.name.textEdited.emit("SVCT-20 (paper)")
    return panel


def wanted(widget, words):
    """The width that the widget's words need, with what its style puts around them."""
    text = widget.fontMetrics().horizontalAdvance(words)
    if isinstance(widget, QComboBox):
        return text + 28
    if isinstance(widget, QLineEdit):
        return text + 2 * widget.style().pixelMetric(QStyle.PixelMetric.PM_DefaultFrameWidth) + 4
    return text


@pytest.mark.parametrize("make", [ct_simulated, ct_measured, mri, mri_wrong, solver, solver_saving])
def test_nothing_is_cut_off(qtbot, tmp_path, make):
    panel = make(tmp_path)
    qtbot.addWidget(panel)
    assert panel.minimumSizeHint().width() <= WIDTH
    panel.resize(WIDTH, panel.sizeHint().height())
    panel.show()
    qtbot.waitExposed(panel)
    height = panel.layout().heightForWidth(WIDTH) if panel.hasHeightForWidth() else 0
    panel.resize(WIDTH, max(height, panel.sizeHint().height()))
    QApplication.processEvents()
    assert panel.width() == WIDTH
    for widget in panel.findChildren(QWidget):
        if not widget.isVisible() or widget.size().isEmpty():
            continue
        right = widget.mapTo(panel, widget.rect().bottomRight())
        assert right.x() < WIDTH, widget
        assert right.y() < panel.height(), widget
        assert widget.fontInfo().pixelSize() >= 11, widget
        if isinstance(widget, QLabel) and widget.wordWrap():
            assert widget.height() >= widget.heightForWidth(widget.width()), widget.text()
            longest = max(widget.text().split(), key=len, default="")
            assert widget.width() >= wanted(widget, longest), widget.text()
        elif isinstance(widget, QLabel | QAbstractButton):
            assert widget.width() >= min(widget.sizeHint().width(), wanted(widget, widget.text()))
        elif isinstance(widget, QComboBox):
            for index in range(widget.count()):
                assert widget.width() >= wanted(widget, widget.itemText(index)), widget.itemText(
                    index
                )
        elif isinstance(widget, QLineEdit) and not isinstance(widget.parent(), QComboBox):
            words = widget.text() or widget.placeholderText()
            assert widget.width() >= wanted(widget, words), words
