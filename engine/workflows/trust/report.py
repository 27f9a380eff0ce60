"""The files of an assessment: numbers, maps, pictures."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from engine.export.outputs import check_finite, default_window
from engine.files.atomic import write_bytes_atomic
from engine.files.record import plain
from engine.runs.prepare import versions
from engine.spec.errors import RequestError
from engine.workflows.trust import words
from engine.workflows.trust.assess import Assessment
from engine.workflows.trust.pictures import Picture, bars, draw, png, sheet

FORMAT, FORMAT_VERSION = "dualscope-trust", 1
NUMBERS, SUMMARY = "trust.json", "trust.png"


def claim_folder(folder: Path, overwrite: bool, numbers: str = NUMBERS) -> None:
    """Make the folder; older ``numbers`` in it are replaced only on request."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    if (folder / numbers).exists() and not overwrite:
        raise RequestError(f"{folder / numbers} exists: add ⟦overwrite⟧ to replace it.")


def write_assessment(folder: Path, found: Assessment, same_bits: bool | None) -> list[Path]:
    """Maps first and the numbers last: a folder with trust.json in it is whole."""
    written = []
    for name, values in maps(found).items():
        check_finite(values)
        written.append(folder / f"{name}.npy")
        stream = io.BytesIO()
        np.save(stream, values[0] if len(values) == 1 else values, allow_pickle=False)
        write_bytes_atomic(written[-1], stream.getvalue())
    for picture in pictures(found):
        name = picture.caption.split("\n")[0].split(",")[0].lower().replace(" ", "-")
        if picture.values is not None:
            written.append(folder / f"{name}.png")
            write_bytes_atomic(written[-1], png(draw(picture, zoom_for(found))))
    written.append(folder / SUMMARY)
    write_bytes_atomic(written[-1], summary(found))
    written.append(folder / NUMBERS)
    body = json.dumps(plain(numbers(found, same_bits)), indent=1, allow_nan=False)
    write_bytes_atomic(written[-1], body.encode())
    return written


def maps(found: Assessment) -> dict[str, np.ndarray]:
    """By file name; the spread only when there is one."""
    arrays = {"measured": found.measured(), "guessed": found.guessed(), "pull": found.pull}
    sd = found.spread.sd
    if sd is not None:
        arrays["spread"] = sd.astype(np.float32)
    return arrays


def numbers(found: Assessment, same_bits: bool | None) -> dict[str, Any]:
    """``same_bits``: whether the image is the recorded one; None when the record cannot tell."""
    content = found.run.record.content()  # without names when the job is de-identified
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": versions(),
        "unit": unit(found),
        "same_bits_as_recorded": same_bits,
        "complete": found.complete,
        **{name: content[name] for name in ("job", "device", "prior", "metrics")},
        "input_sha256": content["input"].get("sha256"),
        **found.to_dict(),
    }


def unit(found: Assessment) -> str:
    return "HU" if found.run.problem.modality == "CT" else "input's scale"


def zoom_for(found: Assessment) -> int:
    return max(1, round(256 / found.image.shape[-1]))


def pictures(found: Assessment) -> list[Picture]:
    """Of the first slice; the first line of a caption names the file."""
    image, short = found.image[0], "HU" if unit(found) == "HU" else ""
    window = default_window(found.run.problem, image)
    measured, guessed = found.measured()[0], found.guessed()[0]
    shown = measured.real if short else np.abs(measured)
    share = f"{100 * found.split.share[0]:.1f} % of the energy"
    panes = [
        Picture("Result", image, window),
        Picture("Measured part", shown, window),
        Picture(
            f"Guessed, {share}", image, window, guessed.real if short else np.abs(guessed), short
        ),
    ]
    sd = found.spread.sd
    if sd is not None:
        panes.append(Picture(f"Spread, {found.spread.count} seeds", image, window, sd[0], short))
    panes.append(Picture("Pull, |x - z|", image, window, found.pull[0], short))
    return panes


def summary(found: Assessment) -> bytes:
    """One figure of the first slice with every sentence."""
    certificate, zoom = found.certificates[0], zoom_for(found)
    panes, caption = pictures(found), f"Residual by {certificate.part}"
    width = zoom * found.image.shape[-1] * len(panes)
    level = None
    if certificate.reduced is not None:
        caption, level = f"Reduced chi-square by {certificate.part}, line at 1", 1.0
    strip = bars(caption, certificate.parts, certificate.suspicious, level, width)
    lines = [words.verdict_sentence(certificate), words.parts_sentence(certificate)]
    lines.append(f"Spread: {found.spread_sentence()}")
    for said in words.ALL.values():
        lines += ["", f"{said.title}. {said.how_to_read} {said.cannot_tell}"]
    return sheet([panes], lines, [strip], zoom)
