"""The menu bar: every action of the window by name, with its shortcut."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from app.images.display import Tool
from app.images.grid import CompareMode
from app.images.window_level import PRESETS
from app.section import plain_tip
from app.session.panes import PLANES
from app.theme import Theme

if TYPE_CHECKING:
    from app.window import MainWindow

Act = Callable[[], Any]


class Menus:
    """Builds the menus once; ``actions`` are by name, for tests and for enabling them."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self.actions: dict[str, QAction] = {}
        self.menus: list[QMenu] = []
        bar = window.menuBar()
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
        act: Act,
        keys: str | QKeySequence.StandardKey = "",
        tip: str = "",
    ) -> QAction:
        """``text`` may end in a tab and a key that another widget listens to."""
        action = menu.addAction(text)
        action.triggered.connect(lambda: act())
        if keys:
            action.setShortcut(QKeySequence(keys))
        if tip:
            action.setToolTip(plain_tip(tip))
        self.actions[name] = action
        return action

    def _check(self, menu: QMenu, name: str, text: str, act: Callable[[bool], Any]) -> QAction:
        action = menu.addAction(text)
        action.setCheckable(True)
        action.toggled.connect(act)
        self.actions[name] = action
        return action

    def _file(self, menu: QMenu) -> None:
        window, Key = self.window, QKeySequence.StandardKey
        self._add(menu, "open", "&Open file…", window.ask_file, Key.Open)
        self._add(menu, "open folder", "Open &folder…", window.ask_folder, "Ctrl+Shift+O")
        self.recent = menu.addMenu("Open &recent")
        self.recent.aboutToShow.connect(self._fill_recent)
        self._add(menu, "demo ct", "&CT demo", partial(window.data.open_demo, "ct"), "Ctrl+1")
        self._add(menu, "demo mri", "&MRI demo", partial(window.data.open_demo, "mri"), "Ctrl+2")
        menu.addSeparator()
        self._add(menu, "open volume", "Open a &volume…", window.volumes.looking.ask)
        self._add(menu, "open workspace", "Open &workspace…", window.files.ask_open)
        self._add(menu, "save workspace", "&Save workspace…", window.files.ask_save, Key.Save)
        menu.addSeparator()
        self._add(menu, "export", "&Export…", window.files.export, "Ctrl+E")
        self._add(menu, "save picture", "Save &picture…", window.files.save_picture, "Ctrl+Shift+E")
        menu.addSeparator()
        self._add(menu, "quit", "&Quit", window.close, Key.Quit)

    def _fill_recent(self) -> None:
        self.recent.clear()
        for entry in self.window.recent.menu_entries():
            action = self.recent.addAction(entry.label.replace("&", "&&"))
            action.setEnabled(entry.enabled)
            action.setToolTip(entry.tip)
            action.triggered.connect(partial(self._open_recent, entry.text, entry.options))
        if self.recent.isEmpty():
            self.recent.addAction("Nothing yet").setEnabled(False)
        else:
            self.recent.addSeparator()
            self.recent.addAction("Clear this list").triggered.connect(self.window.recent.clear)

    def _open_recent(self, text: str, options: dict[str, Any]) -> None:
        self.window.data.open(text, options)

    def _edit(self, menu: QMenu) -> None:
        window, Key = self.window, QKeySequence.StandardKey
        self._add(menu, "undo", "&Undo", window.undo.undo, Key.Undo)
        redo = self._add(menu, "redo", "&Redo", window.undo.redo)
        # Ctrl+Y is the system's own here and there: named twice, it would do nothing at all
        native, common = QKeySequence.keyBindings(Key.Redo), QKeySequence("Ctrl+Y")
        redo.setShortcuts(native if common in native else [*native, common])
        menu.addSeparator()
        self._add(menu, "copy image", "&Copy image", window.files.copy_image, "Ctrl+Shift+C")
        self._add(menu, "copy curves", "Copy c&urves", window.files.copy_curves)
        self._add(menu, "copy table", "Copy &table of runs", window.files.copy_table)
        window.undo.changed.connect(self.refresh)

    def _view(self, menu: QMenu) -> None:
        window = self.window
        link = window.grid.link
        for name, text, keys in (
            ("left", "&Data and settings", "F2"),
            ("plots", "&Curves", "F3"),
            ("right", "&Runs and measurements", "F4"),
        ):
            action = self._check(menu, name, text, partial(window.set_part_shown, name))
            action.setChecked(True)
            action.setShortcut(QKeySequence(keys))
        curves = self.actions["plots"]  # they fold by their own button, too
        window.center.plots.folded_changed.connect(lambda folded: curves.setChecked(not folded))
        menu.addSeparator()
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
            self._add(menu, name, text, act)
        menu.addSeparator()
        masked = self._check(menu, "mask", "&Hide the patient's name", window.set_patient_masked)
        masked.setChecked(bool(window.settings.get("patient_masked")))
        self._check(menu, "bars", "Colour &bars", window.grid.set_colour_bars)
        menu.addSeparator()
        themes = menu.addMenu("&Theme")
        group = QActionGroup(menu)
        for mode in Theme.MODES:
            action = self._check(themes, f"theme {mode}", mode.capitalize(), lambda on: None)
            action.setChecked(window.settings.get("theme") == mode)
            group.addAction(action)
            action.triggered.connect(partial(window.set_theme, mode))

    def _run(self, menu: QMenu) -> None:
        window = self.window
        bar = window.run_bar.buttons
        solver = window.left.solver
        self._add(menu, "run", "&Run", solver.run.click, "Ctrl+R")
        self._add(menu, "both", "Run DC-PnPDP and DiffPIR", solver.both.click, "Ctrl+Shift+R")
        menu.addSeparator()
        for name, text in (
            ("pause", "&Pause or resume"),
            ("step", "&Step"),
            ("finish", "&Finish and keep"),
            ("cancel", "&Cancel"),
        ):
            keys = bar[name].shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            self._add(menu, name, f"{text}\t{keys}", bar[name].click)
        menu.aboutToShow.connect(self.refresh)

    def _compare(self, menu: QMenu) -> None:
        grid = self.window.grid
        for mode, text in (
            (CompareMode.DIFFERENCE, "&Difference\tD"),
            (CompareMode.FLICKER, "&Flicker\tF"),
            (CompareMode.SWIPE, "&Swipe\tS"),
            (CompareMode.NONE, "&No comparison\tEsc"),
        ):
            self._add(menu, mode.value, text, partial(grid.set_compare, mode))
        menu.addSeparator()
        table = self.window.right.table
        self._add(menu, "diff", "Settings of two &runs", table.compareButton.click)

    def _tools(self, menu: QMenu) -> None:
        window = self.window
        link = window.grid.link
        for tool in Tool:
            self._add(menu, tool.value, f"&{tool.value.capitalize()}", partial(link.set_tool, tool))
        self._add(menu, "clear", "Remove region and line\tDelete", link.measurements.clear)
        menu.addSeparator()
        planes = menu.addMenu("&Planes of the current run")
        for name in PLANES:
            planes.addAction(window.center.bar.plane_actions[name])
        spectra = window.center.plots.spectraButton
        self._add(menu, "spectra", "Two-dimensional s&pectra", spectra.click)
        menu.addSeparator()
        self._add(menu, "trust", "&Where is it guessing?…", window.trust.show, "Ctrl+G")
        self._add(menu, "volume", "Whole &volume…", window.volumes.show, "Ctrl+Shift+V")
        self._add(menu, "geometry", "How the scan was &measured…", window.check_geometry)
        self._add(menu, "experiments", "&Experiments…", window.experiments.show)
        self._add(menu, "folder", "&Folder of inputs…", window.folders.show)

    def _help(self, menu: QMenu) -> None:
        window, Key = self.window, QKeySequence.StandardKey
        self._add(menu, "help", "&Help", partial(window.show_help, "workstation"), Key.HelpContents)
        self._add(menu, "shortcuts", "&Shortcuts", partial(window.show_help, "shortcuts"), "Ctrl+/")
        plots = partial(window.show_help, "reading-the-plots")
        self._add(menu, "reading", "How to read these &plots", plots)
        self._add(menu, "formulas", "The &formulas", partial(window.show_help, "formulas"))
        menu.addSeparator()
        self._add(menu, "tour", "The &tour", window.start_tour)
        self._add(menu, "log", "&Log", window.show_log)
        self._add(menu, "about", "&About Dualscope", window.show_about)

    def refresh(self) -> None:
        """Which actions can be taken now, and why the others cannot."""
        window = self.window
        self.actions["undo"].setEnabled(window.undo.can_undo)
        self.actions["redo"].setEnabled(window.undo.can_redo)
        for name, button in (
            ("run", window.left.solver.run),
            ("both", window.left.solver.both),
            *window.run_bar.buttons.items(),
        ):
            # Run and Both keep their shortcuts alive: a disabled button does nothing anyway.
            self.actions[name].setToolTip(button.toolTip())
            if name not in ("run", "both"):
                self.actions[name].setEnabled(button.isEnabled())
