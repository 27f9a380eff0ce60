"""Everything that Dualscope writes, as stages that a fault can strike.

`act` writes a state of the stage ('old' or 'new') below ``out`` by the real command or the real
class, and tells its exit code and message; `read` gives back what a reader finds, and fails
when that is neither one state nor the other as a whole.
"""

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 32
SEED = {"old": "1", "new": "0"}
SCAN = ["--views", "12", "--unit", "hu", "--pixel-mm", "12", "--device", "cpu"]
QUICK = ["--nfe", "3", "--cg-iterations", "2", "--prior", "gaussian", "--quiet"]
TINY = {
    "widths": "32,32",
    "blocks": "1,1",
    "attention": "1",
    "unshuffle": "2",
    "embedding": "16",
    "size": "64",
    "crop": "32",
    "batch": "2",
    "warmup-steps": "1",
    "phantom-share": "0",
}


@dataclass(frozen=True)
class Stage:
    """``most_kills`` bounds the sweep of a stage whose every attempt takes long."""

    name: str
    act: Callable[[Path, Path, str], tuple[int, str]]
    read: Callable[[Path], Any]
    most_kills: int = 12


def command(*arguments):
    """A command in this process: its exit code and what it complained of."""
    from engine.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in arguments])
    return code, complaints(errors.getvalue())


def complaints(text):
    """Without the lines of progress, notes and warnings; a traceback is not hidden."""
    if "Traceback" in text:
        return text
    lines = [line for line in text.splitlines() if line.startswith("dualscope: ")]
    mild = ("dualscope: note:", "dualscope: warning:")
    return "\n".join(line for line in lines if not line.startswith(mild))


def saying(work):
    """The same for a class of the app: its errors are told by the window."""
    from engine.spec.errors import DualscopeError

    try:
        work()
    except DualscopeError as error:
        return 1, str(error)
    return 0, ""


def make_inputs(folder):
    """Small data for all stages."""
    from import_cases import tiny_snapshot

    rows, columns = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    disc = np.where(rows**2 + columns**2 < 0.6, 40.0, -1000.0).astype(np.float32)
    disc[10:14, 12:20] = 400
    np.save(folder / "ct.npy", disc)
    np.save(folder / "stack.npy", np.stack([disc, disc[::-1]]))
    noise = np.random.default_rng(0).integers(-500, 500, (4, 64, 64), dtype=np.int16)
    np.save(folder / "noise.npy", noise)
    tiny_snapshot(folder / "edm.pkl")
    assert command(*reconstruction(folder), "--record", folder / "run.json")[0] == 0


def reconstruction(inputs, version="new", name="ct.npy"):
    return ["reconstruct", inputs / name, *SCAN, *QUICK, "--seed", SEED[version]]


# -- the stages -----------------------------------------------------------------------------


def record(inputs, out, version):
    options = ["--record", out / "r.json", "--overwrite", "--checkpoint-seconds", "0"]
    return command(*reconstruction(inputs, version), *options)


def read_record(out):
    """The image to which the record leads, whether it was finished or not."""
    code, errors = command(
        "reconstruct", "--resume", out / "r.json", "-o", out / "resumed.npy", "--quiet"
    )
    assert code == 0, errors
    image = np.load(out / "resumed.npy")
    (out / "resumed.npy").unlink()
    return image


def exporting(name):
    def act(inputs, out, version):
        return command(*reconstruction(inputs, version), "-o", out / name, "--overwrite")

    return act


def read_npy(out):
    return np.load(out / "x.npy", allow_pickle=False)


def read_png(out):
    from PIL import Image

    return np.asarray(Image.open(out / "x.png"))


def series(inputs, out, version):
    words = reconstruction(inputs, version, "stack.npy")
    return command(*words, "-o", out / "series", "--overwrite")


def read_series(out):
    import pydicom

    # between the two renames of a replacement the old series waits in the interim folder
    folder = out / "series"
    if not folder.exists():
        (folder,) = out.glob(".series.*.partial/old")
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == ["IM0001.dcm", "IM0002.dcm"]
    return np.stack([pydicom.dcmread(path).pixel_array for path in files])


def read_nifti(out):
    import nibabel

    return np.asarray(nibabel.load(out / "x.nii.gz").dataobj)


def read_h5(out):
    import h5py

    with h5py.File(out / "x.h5") as file:
        return file["image"][()]


def workspace(inputs, out, version):
    from app.workspace.file import SavedRun, Workspace, write_workspace

    notes = []

    def work():
        run = SavedRun(inputs / "run.json", note=version)
        notes.extend(write_workspace(out / "w.dualscope", Workspace(runs=(run,))))

    code, words = saying(work)
    return (1, notes[0]) if notes else (code, words)


def read_workspace(out):
    from app.workspace.reading import read_workspace
    from app.workspace.restore import restore_runs

    path = out / "w.dualscope"
    (run,) = read_workspace(path).runs
    (entry,) = restore_runs(path)
    assert entry.images is not None, entry.message
    return np.array([run.note == "new", *entry.images.ravel()])


def settings(inputs, out, version):
    from app.shell.settings import AppSettings

    told = []
    kept = AppSettings(path=out / "settings.json")
    kept.failed.connect(lambda sentence, details: told.append(sentence))
    kept.set("folders", {"open": version})
    kept.save_now()
    return (1, told[0]) if told else (0, "")


def read_settings(out):
    return np.array(json.loads((out / "settings.json").read_text())["folders"]["open"] == "new")


def preset(inputs, out, version):
    from engine.files.presets import Preset, PresetStore

    values = {"nfe": 7 if version == "old" else 9}
    return saying(lambda: PresetStore(out / "presets").save(Preset("mine", settings=values)))


def read_preset(out):
    from engine.files.presets import PresetStore

    store = PresetStore(out / "presets")
    (found,) = [one for one in store.presets("CT") if one.name == "mine"]
    assert not store.problems
    return np.array(found.settings["nfe"])


def experiment(inputs, out, version):
    words = ["experiment", "sh-in-ddnm", inputs / "ct.npy", "--unit", "hu", "--pixel-mm", "12"]
    words += ["--prior", "tv", "--quick", "--quiet", "--nfe", "1", "--cg-iterations", "2"]
    return command(*words, "--seed", SEED[version], "-o", out / "e", "--overwrite")


def read_experiment(out):
    body = json.loads((out / "e" / "sh-in-ddnm.json").read_text())
    return np.array(body["settings"]["seed"])


def training(inputs, out, version):
    from engine.priors.training.checkpoint import read_checkpoint

    words = ["prior", "train", inputs / "noise.npy", "-o", out / "p.safetensors"]
    words += [part for name, value in TINY.items() for part in (f"--{name}", value)]
    state = read_checkpoint(out / "p.training")
    if state is not None and state["step"] == 2:
        words.append("--extend")  # the old schedule; the new one is resumed as it is
    return command(*words, "--steps", "2" if version == "old" else "3")


def read_training(out):
    from engine.priors.safetensors_file import load_prior_file
    from engine.priors.training.checkpoint import read_checkpoint

    load_prior_file(out / "p.safetensors")
    state = read_checkpoint(out / "p.training")
    assert state is not None
    return np.array(state["step"])


def importing(inputs, out, version):
    words = ["prior", "import", inputs / "edm.pkl", out / "p.safetensors", "--mr", "--overwrite"]
    return command(*words, "--name", version)


def read_importing(out):
    from engine.priors.safetensors_file import load_prior_file

    return np.array(load_prior_file(out / "p.safetensors").info.name == "new")


STAGES = {
    stage.name: stage
    for stage in (
        Stage("record and checkpoint", record, read_record, 8),
        Stage("export .npy", exporting("x.npy"), read_npy, 5),
        Stage("export .png", exporting("x.png"), read_png, 5),
        Stage("export DICOM folder", series, read_series, 8),
        Stage("export .nii.gz", exporting("x.nii.gz"), read_nifti, 5),
        Stage("export .h5", exporting("x.h5"), read_h5, 5),
        Stage("saving a workspace", workspace, read_workspace),
        Stage("saving settings", settings, read_settings),
        Stage("saving a preset", preset, read_preset),
        Stage("experiment store", experiment, read_experiment, 5),
        Stage("training checkpoint", training, read_training, 6),
        Stage("prior import", importing, read_importing),
    )
}


def copied(source, target):
    shutil.copytree(source, target)
    return target
