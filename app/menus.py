"""The menu bar: every action of the window by name, with its shortcut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QMenu, QMenuBar

from app.context import AppContext
from app.images.display import Tool
from app.images.grid import CompareMode
from app.images.window_level import PRESETS
from app.layouts.layouts import COUNTS, LAYOUTS
from app.session.panes import PLANES
from app.theme import Theme

Act = Callable[..., Any]


class Menus:
    """Builds the menus once; ``actions`` are by name, for tests and for enabling them.

    ``acts`` are what the actions of a name do, as far as the context does not.
    """

    def __init__(
        self,
        bar: QMenuBar,
        context: AppContext,
        run_buttons: Mapping[str, QAbstractButton],
        acts: Mapping[str, Act],
    ) -> None:
        self.context, self.run_buttons, self.acts = context, run_buttons, acts
        self.actions: dict[str, QAction] = {}
        self.menus: list[QMenu] = []
        bar.setAccessibleName("Menus")
        for title, fill in (
            ("&File", self._file),
            ("&Edit", self._edit),
            ("&View", self._view),
            ("&Run", self._run),
            ("&Compare", self._compare),
            ("&Tools", self._tools),
            ("&Help", self._help),
        ):
            menu = bar.addMenu(title)
            menu.setToolTipsVisible(True)
            self.menus.append(menu)
            fill(menu)
        context.changed.connect(self.refresh)
        self.refresh()

    def listing(self) -> list[tuple[str, str, str]]:
        """(menu, action, shortcut) of everything that has a shortcut, for the help page."""
        rows = []
        for menu in self.menus:  # not QAction.menu(): what that gives is deleted after use
            for action in menu.actions():
                name, _, hint = action.text().partition("\t")
                keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText) or hint
                if keys:
                    rows.append((menu.title().replace("&", ""), name.replace("&", ""), keys))
        return rows

    def _add(
        self,
        menu: QMenu,
        name: str,
        text: str,
        keys: str | QKeySequence.StandardKey = "",
        act: Act | None = None,
    ) -> QAction:
        """``text`` may end in a tab and a key that another widget listens to."""
        act = act or self.acts[name]
        action = menu.addAction(text)
        action.triggered.connect(lambda: act())
        if keys:
            action.setShortcut(QKeySequence(keys))
        self.actions[name] = action
        return action

    def _check(self, menu: QMenu, name: str, text: str, act: Callable[[bool], Any]) -> QAction:
        action = menu.addAction(text)
        action.setCheckable(True)
        action.toggled.connect(act)
        self.actions[name] = action
        return action

    def _file(self, menu: QMenu) -> None:
        context, Key = self.context, QKeySequence.StandardKey
        self._add(menu, "open", "&Open file…", Key.Open)
        self._add(menu, "open folder", "Open &folder…", "Ctrl+Shift+O")
        self.recent = menu.addMenu("Open &recent")
        self.recent.aboutToShow.connect(self._fill_recent)
        self._add(menu, "demo ct", "&CT demo", "Ctrl+1", partial(context.data.open_demo, "ct"))
        self._add(menu, "demo mri", "&MRI demo", "Ctrl+2", partial(context.data.open_demo, "mri"))
        menu.addSeparator()
        self._add(menu, "open volume", "Open a &volume…")
        self._add(menu, "library", "&Library of runs…", "Ctrl+L")
        self._add(menu, "open workspace", "Open &workspace…")
        self._add(menu, "save workspace", "&Save workspace…", Key.Save)
        menu.addSeparator()
        self._add(menu, "export", "&Export…", "Ctrl+E")
        self._add(menu, "save picture", "Save &picture…", "Ctrl+Shift+E")
        menu.addSeparator()
        self._add(menu, "quit", "&Quit", Key.Quit)

    def _fill_recent(self) -> None:
        self.recent.clear()
        for entry in self.context.recent.menu_entries():
            action = self.recent.addAction(entry.label.replace("&", "&&"))
            action.setEnabled(entry.enabled)
            action.setToolTip(entry.tip)
            action.triggered.connect(partial(self._open_recent, entry.text, entry.options))
        if self.recent.isEmpty():
            self.recent.addAction("Nothing yet").setEnabled(False)
        else:
            self.recent.addSeparator()
            self.recent.addAction("Clear this list").triggered.connect(self.context.recent.clear)

    def _open_recent(self, text: str, options: dict[str, Any]) -> None:
        self.context.data.open(text, options)

    def _edit(self, menu: QMenu) -> None:
        context, Key = self.context, QKeySequence.StandardKey
        self._add(menu, "undo", "&Undo", Key.Undo, context.undo.undo)
        redo = self._add(menu, "redo", "&Redo", act=context.undo.redo)
        # Ctrl+Y is the system's own here and there: named twice, it would do nothing at all
        native, common = QKeySequence.keyBindings(Key.Redo), QKeySequence("Ctrl+Y")
        redo.setShortcuts(native if common in native else [*native, common])
        menu.addSeparator()
        self._add(menu, "copy image", "&Copy image", "Ctrl+Shift+C")
        self._add(menu, "copy curves", "Copy c&urves")
        self._add(menu, "copy table", "Copy &table of runs")
        context.undo.changed.connect(self.refresh)

    def _view(self, menu: QMenu) -> None:
        context = self.context
        link = context.grid.link
        self._layouts(menu)
        presets = menu.addMenu("&Window preset")
        for number, preset in enumerate(PRESETS, 1):
            hint = f"\t{number}" if number < 10 else ""
            text = f"{preset.name}  {preset.centre:g}/{preset.width:g} HU{hint}".replace("&", "&&")
            presets.addAction(text).triggered.connect(
                lambda _=False, chosen=preset: link.window_model.apply_preset(chosen)
            )
        for name, text, act in (
            ("invert", "&Invert\tI", link.window_model.toggle_invert),
            ("fit", "Fit\t=", link.fit),
            ("reset", "Reset the view\tSpace", link.reset),
            ("rotate", "Turn clockwise\tR", partial(link.rotate, True)),
            ("flip", "Mirror left and right\tH", link.flip_horizontally),
        ):
            self._add(menu, name, text, act=act)
        menu.addSeparator()
        expert = self._check(menu, "expert", "All settings (&expert)", context.left.set_expert)
        expert.setChecked(bool(context.settings.get("expert")))
        context.left.mode.expert_changed.connect(expert.setChecked)
        masked = self._check(menu, "mask", "&Hide the patient's name", self._mask_patient)
        masked.setChecked(bool(context.settings.get("patient_masked")))
        self._mask_patient(masked.isChecked())
        self._check(menu, "bars", "Colour &bars", context.grid.set_colour_bars)
        menu.addSeparator()
        themes = menu.addMenu("&Theme")
        group = QActionGroup(menu)
        for mode in Theme.MODES:
            action = self._check(themes, f"theme {mode}", mode.capitalize(), lambda on: None)
            action.setChecked(context.settings.get("theme") == mode)
            group.addAction(action)
            action.triggered.connect(partial(self.acts["theme"], mode))

    def _layouts(self, menu: QMenu) -> None:
        group = QActionGroup(menu)
        for name, layout in LAYOUTS.items():
            choose = partial(self.acts["layout"], name)
            action = self._add(menu, f"layout {name}", layout.label, layout.keys, choose)
            action.setToolTip(layout.tip)
            action.setCheckable(True)
            group.addAction(action)
        menu.addSeparator()
        for name, text, keys in (
            ("left", "&Data and settings", "F2"),
            ("plots", "&Curves", "F3"),
            ("right", "&Runs and measurements", "F4"),
        ):
            action = self._check(menu, name, text, partial(self._show_part, name))
            action.setChecked(True)
            action.setShortcut(QKeySequence(keys))
        counts = menu.addMenu("&Images in Reading")
        chosen, group = self.context.settings.get("images"), QActionGroup(menu)
        for count, text in COUNTS.items():
            action = self._check(counts, f"images {count}", text, lambda on: None)
            action.setChecked(count == chosen)
            action.triggered.connect(partial(self.acts["images"], count))
            group.addAction(action)
        grid = self.context.grid
        for name, text, step in (
            ("next images", "&Next images\tPage Down", 1),
            ("previous images", "Pre&vious images\tPage Up", -1),
        ):
            self._add(menu, name, text, act=partial(grid.turn_page, step))
        for name, text, keys in (
            ("second window", "Images in a &second window", "F9"),
            ("full screen", "F&ull screen", "F11"),
        ):
            self._check(menu, name, text, self.acts[name]).setShortcut(QKeySequence(keys))
        menu.addSeparator()

    def _show_part(self, name: str, shown: bool) -> None:
        self.acts["fold"](name, not shown)

    def show_layout(self, name: str) -> None:
        self.actions[f"layout {name}"].setChecked(True)

    def show_folded(self, part: str, folded: bool) -> None:
        self.actions[part].setChecked(not folded)

    def _mask_patient(self, masked: bool) -> None:
        self.context.grid.set_patient_masked(masked)
        self.context.settings.set("patient_masked", masked)

    def _run(self, menu: QMenu) -> None:
        context = self.context
        bar = self.run_buttons
        solver = context.left.solver
        self._add(menu, "run", "&Run", "Ctrl+R", solver.run.click)
        self._add(menu, "both", "Run DC-PnPDP and DiffPIR", "Ctrl+Shift+R", solver.both.click)
        menu.addSeparator()
        for name, text in (
            ("pause", "&Pause or resume"),
            ("step", "&Step"),
            ("finish", "&Finish and keep"),
            ("cancel", "&Cancel"),
        ):
            keys = bar[name].shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            self._add(menu, name, f"{text}\t{keys}", act=bar[name].click)
        menu.aboutToShow.connect(self.refresh)

    def _compare(self, menu: QMenu) -> None:
        grid = self.context.grid
        for mode, text in (
            (CompareMode.DIFFERENCE, "&Difference\tD"),
            (CompareMode.FLICKER, "&Flicker\tF"),
            (CompareMode.SWIPE, "&Swipe\tS"),
            (CompareMode.NONE, "&No comparison\tEsc"),
        ):
            self._add(menu, mode.value, text, act=partial(grid.set_compare, mode))
        menu.addSeparator()
        table = self.context.right.table
        self._add(menu, "diff", "Settings of two &runs", act=table.compareButton.click)

    def _tools(self, menu: QMenu) -> None:
        context = self.context
        link = context.grid.link
        for tool in Tool:
            self._add(
                menu, tool.value, f"&{tool.value.capitalize()}", act=partial(link.set_tool, tool)
            )
        self._add(menu, "clear", "Remove all measurements", act=link.measurements.clear)
        menu.addSeparator()
        planes = menu.addMenu("&Intermediate images of the current run")
        for name in PLANES:
            planes.addAction(context.center.bar.plane_actions[name])
        spectra = context.center.plots.spectraButton
        self._add(menu, "spectra", "Two-dimensional s&pectra", act=spectra.click)
        menu.addSeparator()
        self._add(menu, "tags", "DICOM &tags…", "Ctrl+T")
        self._add(menu, "trust", "&Where is it guessing?…", "Ctrl+G")
        self._add(menu, "mpr", "&Axial, coronal, sagittal…", "Ctrl+M")
        self._add(menu, "volume", "Whole &volume…", "Ctrl+Shift+V")
        self._add(menu, "dose", "&Dose explorer…", "Ctrl+Shift+D")
        self._add(menu, "geometry", "How the scan was &measured…")
        self._add(menu, "experiments", "&Experiments…")
        self._add(menu, "folder", "&Folder of inputs…")

    def _help(self, menu: QMenu) -> None:
        Key = QKeySequence.StandardKey
        self._add(menu, "help", "&Help", Key.HelpContents)
        self._add(menu, "shortcuts", "&Shortcuts", "Ctrl+/")
        self._add(menu, "reading", "How to read these &plots")
        self._add(menu, "formulas", "The &formulas")
        menu.addSeparator()
        self._add(menu, "tour", "The &tour")
        self._add(menu, "log", "&Log")
        self._add(menu, "about", "&About Dualscope")

    def refresh(self) -> None:
        """Which actions can be taken now, and why the others cannot."""
        context = self.context
        self.actions["undo"].setEnabled(context.undo.can_undo)
        self.actions["redo"].setEnabled(context.undo.can_redo)
        for name, button in (
            ("run", context.left.solver.run),
            ("both", context.left.solver.both),
            *self.run_buttons.items(),
        ):
            # Run and Both keep their shortcuts alive: a disabled button does nothing anyway.
            self.actions[name].setToolTip(button.toolTip())
            if name not in ("run", "both"):
                self.actions[name].setEnabled(button.isEnabled())
