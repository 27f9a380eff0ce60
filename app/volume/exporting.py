"""A complete volume written to files by the engine's own writers.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from app.batch.model import STEP, Ended, Step
from app.batch.stop import Stop
from app.export.exporting import Cancelled, write_staged
from app.export.staging import staging
from app.runs.mailbox import Mailbox
from app.volume.model import ExportAsk
from app.volume.source import figures_of, own_job
from engine.export.dicom_deidentify import UidMap
from engine.runs.run import RunControl
from engine.spec.errors import RequestError
from engine.workflows.volume.assemble import Volume, mapped_result, run_record
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.workbench import Workbench

SHARE = 0.1  # of the bar, for reading


def export_volume(asked: ExportAsk, stop: Stop, mailbox: Mailbox) -> Ended:
    """All or nothing: the file, or the series, appears when it is complete."""
    control = RunControl()
    stop.attach(control)
    final = Path(asked.folder).absolute() / asked.name

    def pause(share: float, words: str) -> None:
        if control.cancelled:
            raise Cancelled
        mailbox.put_frame(STEP, Step(words, share))

    try:
        with staging(asked.overwrite) as stage:
            staged = stage.place(final)
            pause(0.0, "Reading the volume …")
            volume = Volume(VolumeFolder.open(asked.volume))
            bench = _bench(volume, asked)
            pause(SHARE, f"Writing {final.name} …")
            record = run_record(volume, bench, _facts(volume))
            record.outputs = [str(final)]
            result = mapped_result(volume, bench, record, asked.window)
            hidden = asked.deidentify or result.deidentify
            result = dataclasses.replace(result, deidentify=hidden)
            notes = write_staged(staged, final, result, UidMap(), pause, SHARE, 1 - SHARE)
            pause(1.0, "Putting the files in place")
            stage.commit()
    except Cancelled:
        return Ended("cancelled", final.parent, sentence="Cancelled: nothing was written.")
    return Ended("done", final, sentence=" ".join([f"{final.name} was written.", *notes]))


def _bench(volume: Volume, asked: ExportAsk) -> Workbench:
    """The data of the volume: those that are open, or where the plan says that they are."""
    plan, opened = volume.plan, asked.dataset
    if opened is not None and opened.sha256() == plan.input_sha256:
        return Workbench(plan.job, opened)
    bench = Workbench(own_job(plan))
    if bench.dataset.sha256() != plan.input_sha256:
        raise RequestError("The data have changed since this volume was made.")
    return bench


def _facts(volume: Volume) -> dict[str, Any]:
    """As much of the volume's facts as a record takes; nothing is measured again."""
    axes: dict[str, Any] = {}
    figures = figures_of(volume.folder.path)
    if figures is not None and (axial := figures.axes[0]) is not None:
        axes = {"profile": figures.profile, "axial": {"psnr": axial[0], "ssim": axial[1]}}
    return {"seconds": sum(one.seconds for one in volume.slices), "axes": axes}
