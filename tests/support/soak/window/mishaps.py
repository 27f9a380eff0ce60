"""What happens to a person's files while the window is open; it says so, and goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from app.tour.user_input import click, wait
from engine.files.folders import config_folder
from soak import faults
from soak.tally import Mark
from soak.window.session import HU, Session
from soak.window.work import export_dialog


def broken_data(session: Session, mark: Mark, folder: Path) -> None:
    """Something that cannot be read leaves what is open."""
    window, random = session.window, session.random
    if window.setup.data is None:
        session.open(session.inputs / "ct-64.npy", HU)
    before = window.setup.data
    path = folder / "broken.npy"
    source = session.inputs / "ct-64.npy"
    if random.random() < 0.3:
        path = folder / "broken.dcm"
        source = next((session.inputs / "series").iterdir())
    shutil.copy(source, path)
    faults.damage(path, random)
    mark.fault()
    window.data.open(str(path), HU if path.suffix == ".npy" else None)
    mark.said(session.wait_said(), path.name)
    if window.setup.data is not before:
        mark.lost("the data that were open are gone")


def data_taken(session: Session, mark: Mark, folder: Path) -> None:
    """The open file is deleted, replaced or cut short, then reconstructed."""
    window, random = session.window, session.random
    path = folder / "data.npy"
    shutil.copy(session.inputs / "slices.npy", path)
    session.open(path, HU)
    wait(lambda: not window.tasks.busy, "reading ends")
    way = random.choice(("delete", "replace", "cut"))
    if way == "delete":
        path.unlink()
    elif way == "replace":
        np.save(folder / "other.npy", np.load(path)[::-1])
        (folder / "other.npy").replace(path)
    else:
        path.write_bytes(path.read_bytes()[:5000])
    mark.fault()
    window.grid.link.step_slice(1)
    runs = session.start()
    wait(lambda: not window.runs.busy, "the runs end")
    wait(lambda: not window.tasks.busy, "reading ends")
    failed = [entry for entry in runs if entry.status == "failed"]
    if way == "replace" and not failed:
        session.finish(runs)  # the new file is as good as the old one
    else:
        mark.said(session.said(), path.name)
    session.forget(runs)  # their data go with the folder
    session.open(session.inputs / "ct-64.npy", HU)


def failing_export(session: Session, mark: Mark, folder: Path) -> None:
    """The folder goes just before the files are written."""
    entry, out = session.finished_run(), folder / "out"
    out.mkdir()
    dialog = export_dialog(session, entry, out, ["numpy", "nifti"])
    wait(dialog.export.isEnabled, "the export is offered")
    faults.take_folder(out, session.random)
    mark.fault()
    click(dialog.export)
    mark.said(session.wait_said(), "Nothing was written")
    wait(lambda: not dialog.presenter.exporting, "the export ends")
    if out.exists():
        out.chmod(0o700)
    if entry.images is None:
        mark.lost("a failed export took the result along")


def broken_record(session: Session, mark: Mark, folder: Path) -> None:
    """The autosaved run is damaged on the disk: the export says so, the screen keeps it."""
    entry = session.finished_run()
    record = entry.record_path
    assert record is not None
    checkpoint = record.with_suffix(".checkpoint.safetensors")
    path = session.random.choice((record, checkpoint))
    whole = path.read_bytes()
    faults.damage(path, session.random)
    mark.fault()
    dialog = export_dialog(session, entry, folder, ["numpy"])
    wait(dialog.export.isEnabled, "the export is offered")
    click(dialog.export)
    mark.said(session.wait_said(), "Nothing was written")
    wait(lambda: not dialog.presenter.exporting, "the export ends")
    path.write_bytes(whole)
    if entry.images is None:
        mark.lost("a damaged file took the result along")


def broken_workspace(session: Session, mark: Mark, folder: Path) -> None:
    """It is refused, and the runs on the screen stay."""
    session.finished_run()
    window, path = session.window, folder / "study.dualscope"
    window.workspaces.save(path)
    wait(lambda: "was saved" in session.said(), "the workspace is saved")
    faults.damage(path, session.random)
    mark.fault()
    before = [entry.run_id for entry in window.store]
    window.messages.queue.clear()
    window.workspaces.open(path)
    mark.said(session.wait_said(), path.name)
    if [entry.run_id for entry in window.store] != before:
        mark.lost("a broken workspace took the runs along")


def broken_preset(session: Session, mark: Mark, folder: Path) -> None:
    """It is skipped, and the others are offered."""
    bar = session.window.left.solver.presets
    path = config_folder() / "presets" / "broken.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session.random.choice((b"", b"{", b"[]", session.random.randbytes(99))))
    mark.fault()
    try:
        bar.refresh()
        mark.said(bar.sentence.text(), path.name)
    finally:
        path.unlink()
        bar.refresh()
