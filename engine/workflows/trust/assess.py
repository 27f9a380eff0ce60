"""All that can be said about how far to trust a recorded result, and the files that say it."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from engine.export.outputs import check_finite, default_window, physical_array
from engine.files.atomic import write_bytes_atomic
from engine.files.record import plain
from engine.physics.fourier import to_complex
from engine.runs.certificate import Certificate, certify
from engine.runs.frames import frame_of
from engine.runs.prepare import Prepared, prepare, versions
from engine.runs.rerun import run_again
from engine.runs.run import Run
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, Sentence, marked
from engine.workflows.trust import words
from engine.workflows.trust.pictures import Picture, bars, draw, png, sheet
from engine.workflows.trust.split import Split, Splitter, Spread

# (seeds done so far, share of the present one, a word about it)
Progress = Callable[[int, float, str], None]


@dataclass(frozen=True)
class Assessment:
    """Maps are ``[B, H, W]`` in HU or the input's scale."""

    run: Run  # of the record's own seed
    image: np.ndarray
    split: Split
    spread: Spread
    settled: bool
    asked: int
    certificates: list[Certificate]
    pull: np.ndarray
    failed: str = ""  # why a later seed ended the spread before its time

    @property
    def complete(self) -> bool:
        return self.settled or self.spread.count >= self.asked

    def measured(self) -> np.ndarray:
        """Complex for MR, so that measured and guessed add up to the image."""
        return physical(self.run, self.split.measured + self.split.origin)

    def guessed(self) -> np.ndarray:
        return physical(self.run, self.split.guessed, difference=True)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, each beside its sentences."""
        spread, sd, first = self.spread, self.spread.sd, int(self.run.record.job["seed"])
        numbers: dict[str, Any] = {
            "split": self.split.to_dict() | {"rule": words.SPLIT_RULE},
            "certificate": {
                "slices": [
                    c.to_dict() | {"says": [words.verdict_sentence(c), words.parts_sentence(c)]}
                    for c in self.certificates
                ]
            },
            "spread": {
                "seeds": [first + n for n in range(spread.count)],
                "asked": self.asked,
                "settled": self.settled,
                "failed": self.failed,
                "changes": spread.changes,
                "sd_rms": None if sd is None else float(np.sqrt(np.mean(sd**2))),
                "sd_largest": None if sd is None else float(sd.max()),
                "own_error": spread.own_error,
                "says": self.spread_sentence(),
            },
            "pull": {
                "rms": float(np.sqrt(np.mean(self.pull**2))),
                "largest": float(self.pull.max()),
            },
        }
        for name, said in words.ALL.items():
            numbers[name] |= {"how_to_read": said.how_to_read, "cannot_tell": said.cannot_tell}
        return numbers

    def spread_sentence(self) -> str:
        spread = self.spread
        said = words.spread_sentence(spread.count, self.asked, self.settled, spread.own_error)
        return f"{said} {self.failed}".rstrip()


def assess(
    prepared: Prepared,
    until: int,
    seeds: int,
    control: RunControl,
    below: float | None = None,
    progress: Progress | None = None,
) -> Assessment | None:
    """The record's own seed first, then the next ones on the same measurement.

    Cancelled, or when a later seed fails, it keeps the seeds that are done; None when not even
    the first is.
    """
    spread, first, failed = Spread(), None, ""
    for number in range(seeds):

        def tick(iteration: Any, number: int = number) -> None:
            if progress is not None:
                progress(number, iteration.k / until, f"sigma {iteration.sigma:.3g}")

        try:
            run = run_again(prepared, until, control, tick, prepared.job.seed + number)
        except DualscopeError as error:
            if first is None:
                raise
            run, failed = None, Sentence(f"Seed {prepared.job.seed + number}: {marked(error)}")
        if run is None:
            break
        assert run.image is not None
        first = first or run
        spread.add(physical_array(run.problem, run.image))
        if spread.settled(below):
            break
    if first is None:
        return None
    found = conclude(first, spread, seeds, below, noise_weights(prepared))
    return dataclasses.replace(found, failed=failed)


def conclude(
    run: Run, spread: Spread, asked: int, below: float | None, weights: Tensor | None
) -> Assessment:
    problem, last = run.problem, run.last
    assert run.image is not None
    assert last is not None
    pull = [frame_of(problem, last, {"x - z"}, n).planes["x - z"] for n in range(len(run.image))]
    return Assessment(
        run=run,
        image=physical_array(problem, run.image),
        split=Splitter(problem, run.image)(run.image),
        spread=spread,
        settled=spread.settled(below),
        asked=asked,
        certificates=certify(problem, run.image, weights),
        pull=np.abs(np.stack(pull)),
    )


def noise_weights(prepared: Prepared) -> Tensor | None:
    """Rays of a photon scan differ in noise even when the reconstruction did not weigh them."""
    job, problem = prepared.job, prepared.problem
    if not job.acquisition.get("photons") or problem.weights is not None:
        return problem.weights
    asked = dataclasses.replace(job, acquisition=job.acquisition | {"weighted": True})
    return prepare(asked, prepared.dataset, gate=False).problem.weights


def physical(run: Run, image: Tensor, difference: bool = False) -> np.ndarray:
    """``[B, H, W]``: HU, or complex in the input's scale; a difference has no offset."""
    scaled = image * run.problem.intensity.scale if difference else run.problem.physical(image)
    values = scaled[:, 0] if run.problem.modality == "CT" else to_complex(scaled)[:, 0]
    return values.detach().cpu().numpy()


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
    share = f"{100 * found.split.detail[0]:.0f} % of the edges inside the body"
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
