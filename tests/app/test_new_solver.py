"""A method is one file: nothing else has to be touched for the program to know it."""

import argparse
import sys

import pytest
from helpers import dense_problem
from PySide6.QtCore import Qt

import engine.solvers
from app.forms import labels
from app.forms.choices import load_choices
from app.forms.solver_panel import SolverPanel
from app.theme import RUN_STYLES, run_style
from engine.cli import build_parser
from engine.cli.options import job_from
from engine.solvers import catalogue
from engine.solvers.presets import apply_preset

TOY = """
from dataclasses import dataclass

from engine.solvers.solver import ScheduleSettings, Solver
from engine.spec.settings import only_with, setting


@dataclass(frozen=True)
class ToySettings(ScheduleSettings):
    shown_first = ("wobble", "nfe")
    wobble: float = setting(0.5, "How far it wobbles.", low=0, label="Wobble, of the image")
    wobble_twice: bool = setting(
        False, "And back.", rule=only_with("wobble", 1.0, "Only with a wobble of 1.")
    )


class Toy(Solver):
    name, label, help = "toy", "Toy", "Wobbles."
    colour, dash = "#123456", (1, 7)
    budgets = {"matched-50": {"nfe": 50, "wobble": 1.0}}
    settings_class = ToySettings

    def iterate(self, problem, prior, settings, generator, resume=None):
        yield from ()
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A file beside the others', and the catalogue as a new process would make it."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(engine.solvers, "__path__", [*engine.solvers.__path__, str(tmp_path)])
    (found,) = catalogue.solvers_in([str(tmp_path)], "engine.solvers")
    monkeypatch.setitem(catalogue.SOLVERS, found.name, found)
    monkeypatch.setattr(labels, "_LABELS", dict(labels._LABELS))
    styles = dict(RUN_STYLES)
    yield found
    RUN_STYLES.clear()
    RUN_STYLES.update(styles)
    sys.modules.pop("engine.solvers.toy")


def test_every_solver_of_the_package_is_found_and_the_papers_comes_first():
    assert list(catalogue.SOLVERS)[:2] == ["dc-pnpdp", "diffpir"]
    assert {"fbp", "zero-filled", "tv", "wavelet", "supervised", "sitcom"} <= set(catalogue.SOLVERS)


def test_the_command_line_takes_its_settings_and_says_what_they_do(toy):
    parser = build_parser(["reconstruct"])
    options = parser.parse_args(["reconstruct", "demo:ct", "--solver", "toy", "--wobble", "0.25"])
    assert job_from(options, "toy").settings == {"wobble": 0.25}
    (commands,) = parser._subparsers._group_actions
    text = argparse.ArgumentParser.format_help(commands.choices["reconstruct"])
    assert "--wobble X" in text
    assert "How far it wobbles. Default: 0.5." in " ".join(text.split())
    assert "toy: Wobbles." in " ".join(text.split())


def test_the_form_shows_its_settings_with_their_labels_and_rules(toy, qtbot):
    panel = SolverPanel()
    qtbot.addWidget(panel)
    panel.set_choices(load_choices())
    box = panel.method_box
    at = box.findText("Toy")
    assert box.itemData(at, Qt.ItemDataRole.ToolTipRole) == "Wobbles."
    box.setCurrentIndex(at)
    box.activated.emit(at)
    rows = panel.form.rows
    assert rows["wobble"].label.text() == "Wobble, of the image"
    assert not panel.form.fold.isAncestorOf(rows["wobble"])
    assert panel.form.fold.isAncestorOf(rows["sigma_max"])
    assert rows["wobble_twice"].reason == "Only with a wobble of 1."
    panel.history.set("wobble", 1.0)
    assert rows["wobble_twice"].reason == ""
    panel.history.set("wobble", -1.0)
    assert rows["wobble"].sentence.text() == (
        "⚠ “Wobble, of the image” must be at least 0, not -1."
    )


def test_its_colour_is_that_of_its_file(toy):
    assert run_style("toy").colour != "#123456"
    load_choices()
    assert (run_style("toy").colour, run_style("toy").dash) == ("#123456", (1, 7))


def test_a_budget_is_what_its_file_says_and_no_other(toy):
    assert apply_preset("matched-50", dense_problem(), "toy") == {"nfe": 50, "wobble": 1.0}
    assert apply_preset("recommended", dense_problem(), "toy") == {}
