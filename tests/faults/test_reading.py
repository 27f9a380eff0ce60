"""Data, priors and records that vanish, change or hold nonsense while they are read."""

import json
import os

import numpy as np
import pytest
from data_files import CT_SMALL, disc_sinogram, kspace_file
from fault_injection import BROKEN, unreadable
from fault_stages import QUICK, SCAN, command

from engine.data.source import open_input
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

RAYS = ["--scan-geometry", "parallel", "--scan-pitch-mm", "1", "--scan-range", "180"]
RAYS += ["--unit", "line-integral", "--kind", "sinogram", "--device", "cpu"]
COILS = ["--kind", "kspace", "--axes", "coil,read,phase", "--device", "cpu"]


def image(folder):
    path = folder / "image.npy"
    np.save(path, np.linspace(-1000, 400, 32 * 32, dtype=np.float32).reshape(32, 32))
    return path, SCAN


def dicom(folder):
    target = folder / "series"
    target.mkdir()
    (target / "a.dcm").write_bytes(CT_SMALL.read_bytes())
    return target, ["--views", "12", "--device", "cpu"]


def sinogram(folder):
    path = folder / "sinogram.npy"
    np.save(path, disc_sinogram())
    return path, RAYS


def kspace(folder):
    return kspace_file(folder), COILS


OPENING = {"npy image": image, "DICOM folder": dicom, "sinogram": sinogram, "k-space": kspace}


def used(dataset):
    """What a run does with its data: read them, then vouch for them."""
    dataset.preview(0)
    dataset.sha256()


def works(path, options, out):
    code, words = command("reconstruct", path, *options, *QUICK, "-o", out)
    assert code == 0, words
    return np.load(out)


@pytest.mark.parametrize("kind", OPENING)
def test_a_drive_that_vanishes_is_named(kind, cell, tmp_path):
    cell("vanished network drive", f"opening {kind}")
    data = tmp_path / "data"
    data.mkdir()
    path, options = OPENING[kind](data)
    expected = works(path, options, tmp_path / "before.npy")
    old = (tmp_path / "before.npy").read_bytes()
    with unreadable(data, BROKEN):
        request = ["reconstruct", path, *options, *QUICK, "-o", tmp_path / "before.npy"]
        code, words = command(*request, "--overwrite")
    assert code in (1, 2)
    cell.said(words, path.name)
    assert (tmp_path / "before.npy").read_bytes() == old
    cell.kept("the earlier result")
    assert np.array_equal(works(path, options, tmp_path / "after.npy"), expected)
    cell.usable("the same request works when the drive is back")


@pytest.mark.parametrize("kind", ["npy image", "sinogram", "k-space"])
def test_nan_in_the_data_is_refused_and_named(kind, cell, tmp_path):
    cell("NaN in the measurement", f"opening {kind}")
    path, options = OPENING[kind](tmp_path)
    whole = np.load(path)
    broken = whole.copy()
    broken[..., 5:9, 5:9] = np.nan
    if kind == "sinogram":  # single rays may be missing; a scan of nothing may not
        broken[:] = np.nan
    np.save(path, broken)
    code, words = command("reconstruct", path, *options, *QUICK, "-o", tmp_path / "x.npy")
    assert code == 2
    cell.said(words, path.name)
    assert not (tmp_path / "x.npy").exists()
    cell.kept("nothing is written that could be believed")
    np.save(path, whole)
    assert np.isfinite(works(path, options, tmp_path / "x.npy")).all()
    cell.usable("with good data the same request works")


@pytest.mark.parametrize("change", ["cut short", "replaced"])
@pytest.mark.parametrize("kind", ["npy image", "sinogram", "k-space"])
def test_a_file_that_changes_while_it_is_open_is_noticed(change, kind, cell, tmp_path):
    cell("file changed under us", f"preparing from {kind}, {change}")
    path, options = OPENING[kind](tmp_path)
    names = [word.removeprefix("--").replace("-", "_") for word in options[::2]]
    given = dict(zip(names, options[1::2], strict=True))
    given = {n: float(v) if v.isdecimal() else v for n, v in given.items()}
    known = InputOptions().to_dict()
    dataset = open_input(str(path), InputOptions(**{n: v for n, v in given.items() if n in known}))
    content = path.read_bytes()
    if change == "cut short":
        path.write_bytes(content[:300])
    else:
        np.save(path, 2 * np.load(path))
        os.utime(path, ns=(1, 1))
    with pytest.raises(RequestError) as refused:
        used(dataset)
    cell.said(str(refused.value), path.name)
    cell.kept("no record claims data that were not used")
    path.write_bytes(content)
    works(path, options, tmp_path / "x.npy")
    cell.usable("opened again, it works")


@pytest.mark.parametrize("fault", ["vanished network drive", "file changed under us"])
def test_a_prior_that_cannot_be_read_is_named(fault, cell, inputs, tmp_path):
    cell(fault, "loading a prior")
    prior = tmp_path / "p" / "p.safetensors"
    prior.parent.mkdir()
    make = ["prior", "import", inputs / "edm.pkl", prior, "--hu-scale", "800"]
    assert command(*make)[0] == 0
    request = ["reconstruct", inputs / "ct.npy", *SCAN, "--nfe", "2", "--cg-iterations", "2"]
    request += ["--quiet", "--prior", prior, "-o", tmp_path / "x.npy"]
    content = prior.read_bytes()
    if fault == "file changed under us":
        prior.write_bytes(content[: len(content) // 2])
        code, words = command(*request)
    else:
        with unreadable(prior.parent):
            code, words = command(*request)
    assert code in (1, 2)
    cell.said(words, "p.safetensors")
    assert not (tmp_path / "x.npy").exists()
    cell.kept("nothing was there to lose")
    prior.write_bytes(content)
    assert command(*request)[0] == 0
    cell.usable("the same request works with the whole file")


@pytest.mark.parametrize("what", ["r.json", "r.checkpoint.safetensors", "ct.npy"])
def test_a_run_is_not_resumed_from_changed_files(what, cell, inputs, tmp_path):
    cell("file changed under us", f"resuming with another {what.removeprefix('r.')}")
    data = tmp_path / "ct.npy"
    data.write_bytes((inputs / "ct.npy").read_bytes())
    record = tmp_path / "r.json"
    assert command("reconstruct", data, *SCAN, *QUICK, "--record", record)[0] == 0
    content = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    changed = tmp_path / what
    if what == "ct.npy":
        np.save(changed, np.load(changed) + 1)
    else:
        changed.write_bytes(content[changed][:100])
    code, words = command("reconstruct", "--resume", record, "-o", tmp_path / "x.npy", "--quiet")
    assert code == 2
    cell.said(words, what)
    for path, old in content.items():
        assert path == changed or path.read_bytes() == old
    cell.kept("record and checkpoint as they were")
    changed.write_bytes(content[changed])
    assert command("reconstruct", "--resume", record, "-o", tmp_path / "x.npy", "--quiet")[0] == 0
    assert json.loads(record.read_text())["status"] == "done"
    cell.usable("with the right files it is resumed")
