"""Curves as inline SVG, with axes a person can read; no script and no style from outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# Okabe and Ito's colours, told apart by colour-blind readers too; dashes tell them apart in grey
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 2", "12 4")
WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 18, 26, 36
# attributes, not a style sheet: some converters apply none to drawings
GRID, AXIS = 'fill="none" stroke="#e3e3e3"', 'fill="none" stroke="#555"'
FONT = 'font-family="system-ui, sans-serif" font-size="11" fill="#333"'
MAX_POINTS = 600
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Curve:
    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dash: str = ""


def style(number: int) -> tuple[str, str]:
    """Colour and dash of the n-th run, the same in every chart."""
    return COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]


def chart(title: str, x_label: str, curves: Sequence[Curve], log: bool = False) -> str:
    """One chart, or nothing when there is nothing to draw."""
    content = plot(title, x_label, curves, log)
    return content and (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        f"{FONT}>{content}</svg>"
    )


def plot(title: str, x_label: str, curves: Sequence[Curve], log: bool = False) -> str:
    """What is inside a chart, for a drawing of several."""
    drawn = [(curve, points) for curve in curves if (points := _points(curve, log))]
    if not drawn:
        return ""
    xs = [x for _, points in drawn for x, _ in points]
    ys = [y for _, points in drawn for _, y in points]
    x_axis, y_axis = _Axis(xs, False), _Axis(ys, log)
    plot_w, plot_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + plot_w * x_axis.place(x), TOP + plot_h * (1 - y_axis.place(y))

    parts = [
        f'<text x="{LEFT}" y="15" font-size="12.5" font-weight="600">{escape(title)}</text>',
    ]
    for value, text in y_axis.ticks():
        _, y = at(x_axis.low, value)
        parts.append(f'<path {GRID} d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for value, text in x_axis.ticks():
        x, _ = at(value, y_axis.low)
        base = HEIGHT - BOTTOM
        parts.append(f'<path {AXIS} d="M{x:.1f} {base}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{text}</text>')
    parts.append(f'<path {AXIS} d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    middle = LEFT + plot_w / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>'
    )
    for curve, points in drawn:
        parts.append(_line(curve, [at(x, y) for x, y in points]))
    return "".join(parts)


def chart_page(
    title: str, plots: Sequence[str], entries: Sequence[tuple[str, str, str]], across: int = 2
) -> str:
    """Drawings of `plot` and their legend as one SVG file; ``entries`` as in `legend`.

    Groups, not nested drawings: not every viewer shows those.
    """
    across = min(across, len(plots))
    top, line = 34, 18
    key_height = line * math.ceil(len(entries) / across) + 10
    width = WIDTH * across
    height = top + key_height + HEIGHT * math.ceil(len(plots) / across)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" {FONT}>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="12" y="22" font-size="15" font-weight="600">{escape(title)}</text>',
    ]
    for number, (label, colour, dash) in enumerate(entries):
        x, y = 12 + WIDTH * (number % across), top + 8 + line * (number // across)
        parts.append(
            f'<path d="M{x} {y}h36" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
            f'<text x="{x + 44}" y="{y + 4}" font-size="12">{escape(label)}</text>'
        )
    for number, drawn in enumerate(plots):
        x, y = WIDTH * (number % across), top + key_height + HEIGHT * (number // across)
        parts.append(f'<g transform="translate({x} {y})">{drawn}</g>')
    return "".join([*parts, "</svg>"])


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """(label, colour, dash) of every curve, once for all charts."""
    items = "".join(
        f'<li><svg viewBox="0 0 36 10" width="36" height="10"><path d="M1 5H35" fill="none" '
        f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/></svg> {escape(label)}</li>'
        for label, colour, dash in entries
    )
    return f'<ul class="legend">{items}</ul>'


def _line(curve: Curve, places: list[tuple[float, float]]) -> str:
    title = f"<title>{escape(curve.label)}</title>"
    if len(places) == 1:
        x, y = places[0]
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{curve.colour}">{title}</circle>'
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return (
        f'<path d="{d}" fill="none" stroke="{curve.colour}" stroke-width="1.6" '
        f'stroke-dasharray="{curve.dash}" stroke-linejoin="round">{title}</path>'
    )


def _points(curve: Curve, log: bool) -> list[tuple[float, float]]:
    step = max(1, math.ceil(len(curve.x) / MAX_POINTS))
    pairs = list(zip(curve.x, curve.y, strict=True))
    kept = pairs[::step] + ([pairs[-1]] if (len(pairs) - 1) % step else [])
    return [(x, y) for x, y in kept if math.isfinite(y) and (y > 0 or not log)]


class _Axis:
    """A range with room around it, and round numbers along it."""

    def __init__(self, values: Sequence[float], log: bool) -> None:
        self.log = log
        low, high = min(values), max(values)
        if log:
            low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            self.step = float(max(1, math.ceil((high - low) / 6)))
            self.low, self.high = float(low), float(max(high, low + 1))
        else:
            if high <= low:
                low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
            self.step = _round_step((high - low) / 5)
            self.low = math.floor(low / self.step + 1e-9) * self.step
            self.high = math.ceil(high / self.step - 1e-9) * self.step
        if log:
            self.low, self.high = 10**self.low, 10**self.high

    def place(self, value: float) -> float:
        """0 at the lower end, 1 at the upper."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return (value - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            powers = range(first, last + 1, int(self.step))
            return [(10.0**power, f"10{str(power).translate(SUPERSCRIPTS)}") for power in powers]
        count = round((self.high - self.low) / self.step)
        values = [self.low + n * self.step for n in range(count + 1)]
        return [(v, f"{0.0 if abs(v) < 1e-9 * self.step else v:.6g}") for v in values]


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))
