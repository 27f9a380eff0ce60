"""The HDF5 record of a run: complete, reopenable, and safe to reopen when it is a stranger's."""

import h5py
import numpy as np
import pytest
import torch
from helpers import FunctionPrior
from results import make_result

from engine.data.readers.hdf5.run_file import is_run_h5, open_run_h5, read_run_h5
from engine.export import Result, write_outputs
from engine.export.outputs import physical_array
from engine.files.record import RunRecord, shared_record
from engine.runs.run import Run
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions


@pytest.fixture(params=["CT", "MR"])
def finished(request):
    start = make_result(request.param, slices=3, placed=True)
    solver, channels = DcPnpdp(), start.image.shape[1]
    prior = FunctionPrior(lambda x, sigma: x / (1 + sigma**2), channels)
    run = Run(start.problem, solver, solver.settings_class(nfe=4), prior)
    for _ in run:
        pass
    return run, Result(start.problem, run.image, run.record, start.dataset, last=run.last)


def test_everything_comes_back(finished, tmp_path):
    run, result = finished
    assert write_outputs([tmp_path / "run.h5"], result) == []
    saved = read_run_h5(tmp_path / "run.h5")
    problem, arrays = result.problem, saved.arrays
    np.testing.assert_array_equal(arrays["image"], result.values())
    np.testing.assert_array_equal(arrays["measurement"], problem.measurement.numpy())
    for name, tensor in {"x": run.last.x, "z": run.last.z, "u": run.last.state["u"]}.items():
        np.testing.assert_array_equal(arrays[f"solver/{name}"], tensor.numpy())
    for name, curve in run.last.psd.items():
        np.testing.assert_array_equal(arrays[f"psd/{name}"], curve.numpy())
    history = run.record.history
    for name in ("residual_x", "residual_z", "gap", "dual", "sigma", "psnr", "ssim", "nfe"):
        np.testing.assert_allclose(arrays[f"history/{name}"], [entry[name] for entry in history])
    np.testing.assert_allclose(
        arrays["history/seconds_denoiser"], [entry["seconds"]["denoiser"] for entry in history]
    )
    assert saved.record.history == history
    assert saved.record.status == "done"
    assert (saved.modality, saved.slices, saved.pixel_mm) == (
        problem.modality,
        problem.slices,
        (0.7, 0.9),
    )
    assert saved.intensity == problem.intensity
    assert saved.placements == result.dataset.placements
    if problem.modality == "MR":
        np.testing.assert_allclose(np.abs(arrays["image_complex"]), arrays["image"], rtol=1e-6)
        phase = torch.view_as_complex(problem.physical(run.image).movedim(1, -1).contiguous())
        np.testing.assert_array_equal(arrays["image_complex"], phase.numpy())
        np.testing.assert_array_equal(arrays["operator/mask"], problem.operator.mask.sampled)


def test_it_opens_as_an_input_with_its_places(finished, tmp_path):
    _, result = finished
    write_outputs([tmp_path / "run.h5"], result)
    dataset = open_run_h5(tmp_path / "run.h5", InputOptions())
    assert (dataset.kind, dataset.modality, len(dataset)) == ("image", result.problem.modality, 3)
    assert dataset.placements == result.dataset.placements
    np.testing.assert_allclose(dataset.preview(2), result.values()[2], rtol=1e-6)
    truth = open_run_h5(tmp_path / "run.h5", InputOptions(dataset="reference"))
    expected = physical_array(result.problem, result.problem.reference)[1]
    np.testing.assert_allclose(truth.preview(1), expected, rtol=1e-6)
    with pytest.raises(RequestError, match="--dataset"):
        open_run_h5(tmp_path / "run.h5", InputOptions(dataset="measurement"))
    with h5py.File(tmp_path / "run.h5") as file:
        assert is_run_h5(file)
        assert file["image"].attrs["unit"].startswith("HU" if dataset.modality == "CT" else "input")


def named_record():
    record = RunRecord(job={"input": "/data/Doe_Jane_1970/scan.nii", "seed": 3, "prior": "auto"})
    record.input = {"name": "/data/Doe_Jane_1970/scan.nii", "sha256": "0" * 64}
    record.input["warnings"] = ["scan.nii in Doe_Jane_1970 has no unit."]
    record.outputs = ["/data/Doe_Jane_1970/out.h5"]
    return record


def test_a_deidentified_file_names_no_input(tmp_path):
    for deidentify in (False, True):
        result = make_result("CT", record=named_record(), deidentify=deidentify)
        path = tmp_path / f"{deidentify}.h5"
        write_outputs([path], result)
        assert (b"Doe" in path.read_bytes()) != deidentify
        assert read_run_h5(path).record.job["seed"] == 3


def test_a_shared_record_names_files_without_their_folders():
    body = shared_record(named_record().content(), deidentify=False)
    assert body["job"]["input"] == body["input"]["name"] == "scan.nii"
    assert body["outputs"] == ["out.h5"]
    hidden = str(shared_record(named_record().content(), deidentify=True))
    assert "Doe" not in hidden
    assert "scan" not in hidden
    windows = RunRecord(job={"input": "C:\\Doe\\scan.nii"})
    assert shared_record(windows.content(), False)["job"]["input"] == "scan.nii"
    demo = RunRecord(job={"input": "demo:ct", "prior": "ct-small"})
    assert shared_record(demo.content(), True)["job"] == demo.job


def spoil(path, change):
    with h5py.File(path, "r+") as file:
        change(file)


def replace(name, value):
    def change(file):
        del file[name]
        if value is not None:
            file[name] = value

    return change


def set_attribute(name, value):
    return lambda file: file.attrs.__setitem__(name, value)


@pytest.mark.parametrize(
    "change",
    [
        set_attribute("format", "other"),
        set_attribute("format_version", 99),
        set_attribute("modality", "PET"),
        set_attribute("slices", np.arange(99)),
        set_attribute("intensity_scale", -1.0),
        set_attribute("intensity_kind", "x"),
        replace("image", None),
        replace("image", np.zeros(3)),
        replace("image", h5py.ExternalLink("other.h5", "/image")),
        replace("image", h5py.SoftLink("/reference")),
        replace("record", "{"),
        replace("record", "[" * 50_000),
        replace("record", '{"job": {}, "history": 3}'),
        replace("placements/position", np.zeros((1, 2))),
        replace("placements/along_row", np.full((1, 3), np.nan)),
        replace("solver", h5py.ExternalLink("other.h5", "/")),
    ],
    ids=range(16),
)
def test_damaged_and_hostile_files_are_one_sentence(change, tmp_path):
    path = tmp_path / "run.h5"
    result = make_result("CT", placed=True)
    write_outputs([path], result)
    spoil(path, lambda file: file.require_group("solver"))
    spoil(path, change)
    with pytest.raises(RequestError):
        read_run_h5(path)
