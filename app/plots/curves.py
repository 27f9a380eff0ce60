"""One small plot for several runs, fast enough to be redrawn thirty times a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPalette, QPen
from PySide6.QtWidgets import QGraphicsPathItem, QLabel, QWidget

from app.plots.axes import PowerAxis, RoomyAxis, SteadyRange, shade_path, value_text
from app.runs.colours import Dash, run_pen
from app.theme import SMALLEST_TEXT_PX, tabular
from app.widgets import tip_beside

LEFT_AXIS_PX, BOTTOM_AXIS_PX, THIN_AXIS_PX, TITLE_PX = 40, 36, 20, 20


def adopt_menu(plot: pg.PlotItem, owner: QWidget) -> None:
    """Every PlotItem makes a menu that nobody owns, and that would outlive the widget."""
    plot.ctrlMenu.setParent(owner, plot.ctrlMenu.windowFlags())


def log_or_nan(values: np.ndarray) -> np.ndarray:
    """log10 for drawing; zero, negative and missing values become gaps."""
    values = np.asarray(values, dtype=float)
    good = np.isfinite(values) & (values > 0)
    return np.log10(values, where=good, out=np.full(values.shape, np.nan))


class CurvePlot(pg.PlotWidget):
    """One PlotCurveItem per curve, never replaced; ranges that only grow until ``reset``.

    Parameters
    ----------
    title, x_label
        With their units.
    y_step
        The range grows by this: one decade on a log axis.
    """

    def __init__(
        self,
        title: str,
        x_label: str,
        *,
        log_x: bool = False,
        log_y: bool = True,
        x_step: float = 10.0,
        y_step: float = 1.0,
        legend: bool = False,
        empty: str = "",
        parent: QWidget | None = None,
    ) -> None:
        axes = {"left": PowerAxis("left") if log_y else RoomyAxis("left")}
        axes["bottom"] = PowerAxis("bottom") if log_x else pg.AxisItem("bottom")
        super().__init__(parent=parent, background=None, axisItems=axes, enableMenu=False)
        self.title, self.x_label = title, x_label
        self.log_x, self.log_y = log_x, log_y
        self.x_range, self.y_range = SteadyRange(x_step), SteadyRange(y_step)
        self.curves: dict[str, pg.PlotCurveItem] = {}
        self.names: dict[str, tuple[str, str]] = {}  # key -> name, colour
        self._shades: dict[str, QGraphicsPathItem] = {}
        self._blank: bool | None = None
        self._thin = False
        plot = self.getPlotItem()
        adopt_menu(plot, self)
        plot.hideButtons()
        plot.getViewBox().setMouseEnabled(False, False)
        plot.getViewBox().disableAutoRange()
        # fixed: numbers that appear must not move the curves
        plot.getAxis("left").setWidth(LEFT_AXIS_PX)
        plot.getAxis("bottom").setHeight(BOTTOM_AXIS_PX)
        # pyqtgraph's own title would widen a narrow plot past its edge
        plot.layout.setContentsMargins(0, TITLE_PX, 8, 0)
        self.heading = QLabel(title, self)
        self.heading.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.heading.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        if not log_y:
            plot.getAxis("left").enableAutoSIPrefix(False)
        self.legend = plot.addLegend(offset=(-8, 8)) if legend else None
        self.empty = QLabel(empty, self)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.cursor_line = Cursor(self)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(title)
        self.setToolTip(f"{title}. Move the mouse, or press Left and Right, to read values.")
        self._style()
        self.reset()

    def sizeHint(self) -> QSize:
        return QSize(240, 176)

    def minimumSizeHint(self) -> QSize:
        return QSize(144, 80 if self._thin else 112)

    def set_thin(self, thin: bool) -> None:
        """Without a line for the name of the horizontal axis, which goes into the heading."""
        self._thin = thin
        axis = self.getPlotItem().getAxis("bottom")
        axis.showLabel(not thin)
        axis.setHeight(THIN_AXIS_PX if thin else BOTTOM_AXIS_PX)
        self.heading.setText(f"{self.title}  ({self.x_label})" if thin else self.title)
        self.updateGeometry()

    def set_curve(
        self, key: str, name: str, colour: str, dash: Dash, x: np.ndarray, y: np.ndarray
    ) -> None:
        """Draw or redraw one curve from values (not logarithms)."""
        drawn_x = log_or_nan(x) if self.log_x else np.asarray(x, dtype=float)
        drawn_y = log_or_nan(y) if self.log_y else np.asarray(y, dtype=float)
        item = self.curves.get(key)
        if item is None:
            item = pg.PlotCurveItem(
                pen=self._pen(colour, dash),
                antialias=False,
                connect="finite",
                name=name,
            )
            self.curves[key] = item
            self.addItem(item)
        elif self.names[key] != (name, colour):
            item.setPen(self._pen(colour, dash))
        self.names[key] = (name, colour)
        item.setData(drawn_x, drawn_y, connect="finite")
        usable = np.isfinite(drawn_x) & np.isfinite(drawn_y)
        grown = self.x_range.include(drawn_x[usable])
        if self.y_range.include(drawn_y[usable]) or grown:
            self._apply_ranges()
        self._show_empty()

    def _pen(self, colour: str, dash: Dash) -> QPen:
        return run_pen(colour, dash, pixel_ratio=self.devicePixelRatioF())

    def set_shade(
        self, key: str, colour: str, x: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        """Fill between two curves where both exist."""
        item = self._shades.get(key)
        if item is None:
            item = self._shades[key] = QGraphicsPathItem()
            item.setPen(Qt.PenStyle.NoPen)
            item.setZValue(-10)
            self.getPlotItem().getViewBox().addItem(item, ignoreBounds=True)
        fill = QColor(colour)
        fill.setAlpha(56)
        item.setBrush(fill)
        item.setPath(
            shade_path(
                log_or_nan(x) if self.log_x else x,
                log_or_nan(low) if self.log_y else low,
                log_or_nan(high) if self.log_y else high,
            )
        )

    def remove(self, key: str) -> None:
        """Take a curve and its shade away."""
        if (item := self.curves.pop(key, None)) is not None:
            self.removeItem(item)
            del self.names[key]
        if (shade := self._shades.pop(key, None)) is not None:
            self.getPlotItem().getViewBox().removeItem(shade)
        self._show_empty()

    def set_empty_text(self, text: str) -> None:
        self.empty.setText(text)
        self._show_empty()

    def clear_curves(self) -> None:
        for key in {*self.curves, *self._shades}:
            self.remove(key)

    def reset(self) -> None:
        """Forget the ranges and fit what is drawn: when another run begins."""
        self.x_range.reset()
        self.y_range.reset()
        for item in self.curves.values():
            x, y = item.getData()
            if x is not None and y is not None:
                usable = np.isfinite(x) & np.isfinite(y)
                self.x_range.include(x[usable])
                self.y_range.include(y[usable])
        self._apply_ranges()
        self._show_empty()

    @property
    def right(self) -> float:
        """The right end of the range, in values."""
        limits = self.x_range.limits or (0.0, 1.0)
        return 10 ** limits[1] if self.log_x else limits[1]

    def include_x(self, *values: float) -> None:
        """Make room from the start for what will come, such as the last iteration."""
        shown = np.array(values, dtype=float)
        if self.x_range.include(log_or_nan(shown) if self.log_x else shown):
            self._apply_ranges()

    def _apply_ranges(self) -> None:
        x = self.x_range.limits or ((-2.0, 0.0) if self.log_x else (0.0, 10.0))
        y = self.y_range.limits or (0.0, 1.0)
        # a little room, or the ticks at both ends lose their labels
        self.getPlotItem().getViewBox().setRange(xRange=x, yRange=y, padding=0.04)

    def _show_empty(self) -> None:
        """Without points there are no numbers at the axes, and a word instead."""
        blank = self.y_range.limits is None
        self.empty.setVisible(bool(self.empty.text()) and blank)
        if blank is not self._blank:
            self._blank = blank
            plot = self.getPlotItem()
            plot.showGrid(x=False, y=not blank, alpha=0.15)
            for side in ("left", "bottom"):
                plot.getAxis(side).setStyle(showValues=not blank, tickLength=0 if blank else -4)

    def _style(self) -> None:
        text = self.palette().color(QPalette.ColorRole.WindowText)
        faint = QColor(text)
        faint.setAlphaF(0.6)
        font = QFont(self.font())
        font.setPixelSize(SMALLEST_TEXT_PX)
        size = f"{SMALLEST_TEXT_PX}px"
        plot = self.getPlotItem()
        self.heading.setFont(font)
        self.empty.setFont(font)
        for side in ("left", "bottom"):
            axis = plot.getAxis(side)
            axis.setTickFont(font)
            axis.setPen(faint)
            axis.setTextPen(text)
            axis.setStyle(hideOverlappingLabels=False)
        plot.getAxis("bottom").setLabel(self.x_label, **{"color": text.name(), "font-size": size})
        if self.legend is not None:
            self.legend.setLabelTextColor(text)
            self.legend.setLabelTextSize(size)
        self.cursor_line.style(text, font)
        self.resetCachedContent()  # the ground was painted once and kept

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "cursor_line"):
            self._style()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            tip_beside(self)
            return True
        return bool(super().viewportEvent(event))

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        if hasattr(self, "empty"):
            across = self.width() - LEFT_AXIS_PX - 8
            self.heading.setGeometry(LEFT_AXIS_PX, 0, across, TITLE_PX)
            self.empty.setGeometry(LEFT_AXIS_PX, TITLE_PX, across, max(self.height() - 60, 32))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        box = self.getPlotItem().getViewBox()
        scene = self.mapToScene(event.position().toPoint())
        if box.sceneBoundingRect().contains(scene):
            self.cursor_line.move_to(float(box.mapSceneToView(scene).x()))
        else:
            self.cursor_line.hide()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.cursor_line.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if event.key() in steps:
            self.cursor_line.step(steps[Qt.Key(event.key())])
        elif event.key() == Qt.Key.Key_Escape:
            self.cursor_line.hide()
        else:
            super().keyPressEvent(event)


class Cursor:
    """Reads the nearest point of each curve; the label keeps to the side away from the line."""

    def __init__(self, plot: CurvePlot) -> None:
        self.plot = plot
        self.line = pg.InfiniteLine(angle=90, movable=False)
        self.line.setVisible(False)
        plot.addItem(self.line, ignoreBounds=True)
        self.label = QLabel(plot)
        self.label.setTextFormat(Qt.TextFormat.RichText)
        self.label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.label.setAutoFillBackground(True)
        self.label.setMargin(4)
        self.label.hide()
        self._x: float | None = None

    def style(self, text: QColor, font: QFont) -> None:
        faint = QColor(text)
        faint.setAlphaF(0.5)
        self.line.setPen(faint)
        self.label.setFont(tabular(font))

    def hide(self) -> None:
        self._x = None
        self.line.setVisible(False)
        self.label.hide()

    def step(self, points: int) -> None:
        """To the next point of the longest curve."""
        xs = max((self._points(key)[0] for key in self.plot.curves), key=len, default=None)
        if xs is None or not len(xs):
            return
        now = len(xs) - 1 if self._x is None else int(np.argmin(np.abs(xs - self._x))) + points
        self.move_to(float(xs[min(max(now, 0), len(xs) - 1)]))

    def move_to(self, x: float) -> None:
        rows: list[str] = []
        nearest = None
        for key, (name, colour) in self.plot.names.items():
            xs, ys = self._points(key)
            if not len(xs):
                continue
            i = int(np.argmin(np.abs(xs - x)))
            nearest = float(xs[i]) if nearest is None else nearest
            value = value_text(10 ** float(ys[i]) if self.plot.log_y else float(ys[i]))
            rows.append(f'<span style="color:{colour}">■</span> {name} {value}')
        if nearest is None:
            self.hide()
            return
        self._x = nearest
        self.line.setPos(nearest)
        self.line.setVisible(True)
        at = value_text(10**nearest) if self.plot.log_x else f"{nearest:g}"
        self.label.setText("<br>".join([f"{self.plot.x_label} {at}", *rows]))
        self._place(nearest)

    def _points(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        xs, ys = self.plot.curves[key].getData()
        if xs is None or ys is None:
            return np.empty(0), np.empty(0)
        good = np.isfinite(xs) & np.isfinite(ys)
        return xs[good], ys[good]

    def _place(self, x: float) -> None:
        self.label.adjustSize()
        box = self.plot.getPlotItem().getViewBox()
        area = self.plot.mapFromScene(box.sceneBoundingRect()).boundingRect()
        low, high = box.viewRange()[0]
        on_the_left = x > (low + high) / 2
        left = area.left() + 4 if on_the_left else area.right() - self.label.width() - 4
        left = min(max(left, 0), max(self.plot.width() - self.label.width(), 0))
        self.label.move(left, area.top() + 4)
        self.label.show()
