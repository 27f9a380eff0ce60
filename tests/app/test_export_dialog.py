"""The export dialog, driven as a person does: what it promises is what is on the disk after."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from dicom_files import SECRETS, write_series
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from recorded_runs import PNP, record_run, save_disc

from app.export import presenter as presenter_module
from app.export.dialog import ExportDialog
from app.export.formats import FORMATS
from app.export.plan import Shown
from app.workspace.restore import restore_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """FBP and DC-PnPDP of a disc, and FBP of a series with a patient, as in the table."""
    folder = tmp_path_factory.mktemp("runs")
    data = tmp_path_factory.mktemp("data")
    write_series(data / "series", (0.0, 2.0, 4.0))
    disc = {"input": str(save_disc(data / "disc.npy")), "options": {"unit": "hu"}}
    wanted = [("fbp", {}, disc), ("dc-pnpdp", PNP, disc)]
    wanted.append(("fbp", {}, {"input": str(data / "series")}))
    made = []
    for number, (solver, settings, job) in enumerate(wanted, start=1):
        path = folder / f"20250101-12000{number}-abcdef.json"
        record_run(path, solver, settings, **job)
        (entry,) = restore_runs(path)
        made.append(replace(entry, number=number))
    return made


@pytest.fixture
def dialog(qtbot, tasks, tmp_path):
    made = ExportDialog(tasks)
    qtbot.addWidget(made)
    made.restore({"folder": str(tmp_path), "formats": ["numpy"]})
    yield made
    made.cancel()
    made.close()


def type_into(qtbot, line, text):
    line.selectAll()
    qtbot.keyClicks(line, text)


def click(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def press(qtbot, box):
    """Check boxes and radio buttons take the space key wherever their label ends."""
    box.setFocus()
    qtbot.keyClick(box, Qt.Key.Key_Space)


def ready(qtbot, dialog):
    qtbot.waitUntil(lambda: dialog.export.isEnabled())


def export(qtbot, dialog):
    ready(qtbot, dialog)
    with qtbot.waitSignal(dialog.finished_export) as heard:
        click(qtbot, dialog.export)
    return heard.args[0]


def listed(dialog):
    return [dialog.files.item(row).text() for row in range(dialog.files.count())]


def test_the_files_listed_are_the_files_written(qtbot, dialog, runs, tmp_path):
    dialog.show_for(Shown(runs[0], tuple(runs[:2]), 0, (40.0, 400.0), patient=False))
    type_into(qtbot, dialog.base, "mine")
    for box in dialog.formats.boxes.values():
        if not box.isChecked():
            press(qtbot, box)
    ready(qtbot, dialog)
    promised = listed(dialog)
    assert promised == [f"mine{format.suffix}" for format in FORMATS]
    outcome = export(qtbot, dialog)
    assert sorted(promised) == sorted(path.name for path in tmp_path.iterdir())
    assert not outcome.failed
    assert "7 files are written." in dialog.notes.text()
    assert "orientation" in dialog.notes.text()
    assert listed(dialog) == promised
    np.testing.assert_array_equal(np.load(tmp_path / "mine.npy"), runs[0].images[0])


def test_all_visible_runs_are_told_apart_by_number_and_method(qtbot, dialog, runs, tmp_path):
    dialog.show_for(Shown(runs[0], tuple(runs[:2]), 0, None, patient=False))
    press(qtbot, dialog.what.buttons["visible"])
    export(qtbot, dialog)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dualscope-ct-1-fbp.npy",
        "dualscope-ct-2-dc-pnpdp.npy",
    ]
    np.testing.assert_array_equal(
        np.load(tmp_path / "dualscope-ct-2-dc-pnpdp.npy"), runs[1].images[0]
    )


def test_the_report_is_one_page_and_says_when_runs_do_not_belong_together(
    qtbot, dialog, runs, tmp_path
):
    dialog.show_for(Shown(runs[0], tuple(runs), 0, None, patient=False))
    press(qtbot, dialog.what.buttons["report"])
    assert not dialog.formats.isEnabled()
    assert dialog.formats.toolTip() == "A report is always one HTML page."
    assert not dialog.export.isEnabled()
    assert dialog.export.toolTip().endswith("#3 FBP differs in its data.")
    dialog.update_shown(Shown(runs[0], tuple(runs[:2]), 0, None, patient=False))
    export(qtbot, dialog)
    assert [path.name for path in tmp_path.iterdir()] == ["dualscope-ct.html"]


def test_this_slice_or_all_of_them(qtbot, dialog, runs, tmp_path):
    shown = Shown(runs[2], (runs[2],), 1, None, patient=True)
    dialog.show_for(shown)
    for key in ("dicom", "png"):
        press(qtbot, dialog.formats.boxes[key])
    ready(qtbot, dialog)
    assert listed(dialog) == [
        "dualscope-ct-dicom/",
        "dualscope-ct.npy",
        *(f"dualscope-ct-s00{n}.png" for n in (1, 2, 3)),
    ]
    press(qtbot, dialog.slices.buttons["one"])
    ready(qtbot, dialog)
    assert listed(dialog) == [f"dualscope-ct{s}" for s in (".dcm", ".npy", ".png")]
    export(qtbot, dialog)
    np.testing.assert_array_equal(np.load(tmp_path / "dualscope-ct.npy"), runs[2].images[1])
    dialog.update_shown(replace(shown, slice=7))
    assert "does not have the slice" in dialog.export.toolTip()
    dialog.show_for(Shown(runs[0], (), 0))
    assert not dialog.slices.buttons["one"].isEnabled()
    assert dialog.slices.buttons["one"].toolTip() == "The run has one slice only."


def test_a_patient_is_hidden_unless_one_says_otherwise_each_time(qtbot, dialog, runs, tmp_path):
    shown = Shown(runs[2], (runs[2],), 1, None, patient=True)
    dialog.restore({"formats": ["dicom"]})
    dialog.show_for(shown)
    assert dialog.hide_names.isChecked()
    export(qtbot, dialog)
    for path in (tmp_path / "dualscope-ct-dicom").iterdir():
        assert SECRETS[0].encode() not in path.read_bytes()
    press(qtbot, dialog.hide_names)
    type_into(qtbot, dialog.base, "named")
    export(qtbot, dialog)
    named = list((tmp_path / "named-dicom").iterdir())
    assert all(SECRETS[0].encode() in path.read_bytes() for path in named)
    dialog.reject()
    dialog.show_for(shown)
    assert dialog.hide_names.isChecked()
    dialog.show_for(replace(shown, patient=False))
    assert not dialog.hide_names.isChecked()


def test_existing_files_are_named_in_red_and_replaced_only_when_ticked(
    qtbot, dialog, runs, tmp_path
):
    (tmp_path / "dualscope-ct.npy").write_bytes(b"precious")
    dialog.show_for(Shown(runs[0], (), 0, None, patient=False))
    qtbot.waitUntil(lambda: "exists already" in "".join(listed(dialog)))
    colour = dialog.files.item(0).foreground().color()
    assert colour.red() > 1.2 * max(colour.green(), colour.blue())
    assert not dialog.export.isEnabled()
    assert "One file exists already" in dialog.sentence.text()
    press(qtbot, dialog.replace)
    assert dialog.export.isEnabled()

    type_into(qtbot, dialog.base, "other")  # other files: it has to be said again
    (tmp_path / "other.npy").write_bytes(b"precious too")
    qtbot.waitUntil(lambda: "exists already" in "".join(listed(dialog)))
    assert not dialog.replace.isChecked()
    assert not dialog.export.isEnabled()
    press(qtbot, dialog.replace)
    export(qtbot, dialog)
    np.testing.assert_array_equal(np.load(tmp_path / "other.npy"), runs[0].images[0])
    assert (tmp_path / "dualscope-ct.npy").read_bytes() == b"precious"
    assert not dialog.replace.isChecked()


def test_a_disabled_export_says_why(qtbot, dialog, runs, tmp_path):
    def why():
        assert not dialog.export.isEnabled()
        assert dialog.sentence.text() == dialog.export.toolTip()
        return dialog.export.toolTip()

    dialog.show_for(Shown())
    assert why() == "There is no finished run yet: press Run first."
    running = replace(runs[0], status="running")
    dialog.show_for(Shown(running, (running,), 0, None))
    assert why() == "#1 FBP is still running."
    dialog.update_shown(Shown(runs[0], (), 0, None))
    press(qtbot, dialog.formats.boxes["numpy"])
    assert why() == "Tick at least one format."
    press(qtbot, dialog.formats.boxes["numpy"])
    type_into(qtbot, dialog.base, "a/b")
    assert why() == "A file name cannot hold “/”."
    type_into(qtbot, dialog.base, "ab")
    type_into(qtbot, dialog.folder, str(tmp_path / "nowhere"))
    qtbot.waitUntil(lambda: dialog.export.toolTip() == "The folder does not exist.")
    type_into(qtbot, dialog.folder, "here")
    assert "whole path" in why()
    type_into(qtbot, dialog.folder, str(tmp_path))
    ready(qtbot, dialog)
    assert dialog.sentence.isHidden()


def test_cancel_stops_the_export_and_nothing_is_left(qtbot, dialog, runs, tmp_path, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    real = presenter_module.export_runs

    def slow(wanted, window, deidentify, overwrite, progress, cancelled):
        def tell(share, words):
            progress(share, words)
            if "Writing" in words:
                begun.set()
                go_on.wait(5)

        return real(wanted, window, deidentify, overwrite, tell, cancelled)

    monkeypatch.setattr(presenter_module, "export_runs", slow)
    dialog.restore({"formats": ["numpy", "tiff"]})
    dialog.show_for(Shown(runs[0], (), 0, None, patient=False))
    ready(qtbot, dialog)
    click(qtbot, dialog.export)
    qtbot.waitUntil(begun.is_set)
    qtbot.waitUntil(lambda: dialog.bar.format() == "Writing dualscope-ct.npy")
    assert dialog.export.toolTip() == "Files are being written."
    with qtbot.waitSignal(dialog.finished_export) as heard:
        click(qtbot, dialog.stop)
        go_on.set()
    assert heard.args[0].cancelled
    assert list(tmp_path.iterdir()) == []
    assert dialog.notes.text() == "Cancelled: nothing was written."
    assert not dialog.bar.isVisible()


def test_escape_during_an_export_cancels_it(qtbot, dialog, runs, tmp_path):
    dialog.show_for(Shown(runs[0], (), 0, None, patient=False))
    ready(qtbot, dialog)
    with qtbot.waitSignal(dialog.finished_export) as heard:
        click(qtbot, dialog.export)
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert heard.args[0].cancelled
    assert not dialog.isVisible()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_is_a_sentence_with_details(qtbot, dialog, runs, tmp_path):
    gone = replace(runs[0], record_path=tmp_path / "gone.json")
    dialog.show_for(Shown(gone, (), 0, None, patient=False))
    outcome = export(qtbot, dialog)
    assert outcome.failed
    assert "Cannot read" in outcome.words
    assert "Traceback" in outcome.details
    assert dialog.notes.text().startswith("⚠ Nothing was written. Cannot read")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_opens_only_on_a_click(qtbot, dialog, runs, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    dialog.show_for(Shown(runs[0], (), 0, None, patient=False))
    assert dialog.open_folder.isHidden()
    export(qtbot, dialog)
    assert opened == []
    click(qtbot, dialog.open_folder)
    assert opened == [QUrl.fromLocalFile(str(tmp_path))]


def test_the_arrow_keys_choose_as_well(qtbot, dialog, runs):
    dialog.show_for(Shown(runs[0], tuple(runs[:2]), 0, None, patient=False))
    first = dialog.what.buttons["current"]
    first.setFocus()
    qtbot.waitUntil(first.hasFocus)
    qtbot.keyClick(first, Qt.Key.Key_Right)
    assert dialog.what.key == "visible"
    assert len(dialog.presenter.plan.runs) == 2
    ready(qtbot, dialog)


def test_everything_can_be_reached_and_says_what_it_does(dialog, runs):
    dialog.show_for(Shown(runs[2], (runs[2],), 1, None))
    boxes = [*dialog.what.buttons.values(), *dialog.slices.buttons.values()]
    boxes += dialog.formats.boxes.values()
    lines = [dialog.folder, dialog.base, dialog.browse, dialog.hide_names, dialog.replace]
    for widget in [*boxes, *lines, dialog.export, dialog.close_button]:
        assert widget.accessibleName()
        assert widget.toolTip().endswith("."), widget.accessibleName()
        assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus
