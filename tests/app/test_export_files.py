"""What is exported is the run's image, in every format, whole or not at all."""

import json
import shutil

import h5py
import nibabel
import numpy as np
import pydicom
import pytest
from dicom_files import SECRETS, write_series
from PIL import Image
from recorded_runs import PNP, record_run

from app.export.exporting import Cancelled, RunExport, export_report, export_run, export_runs
from engine.files.record import RunRecord
from engine.spec.errors import DualscopeError, RequestError

WINDOW = (40.0, 400.0)
SUFFIXES = (".dcm", ".nii.gz", ".npy", ".h5", ".png", ".16.png", ".tif")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short DC-PnPDP run on the demo: its record and its image in HU."""
    path = tmp_path_factory.mktemp("runs") / "20250101-120000-abcdef.json"
    return path, record_run(path, "dc-pnpdp", PNP)


@pytest.fixture(scope="module")
def fbp(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "20250101-120001-abcdef.json"
    return path, record_run(path, "fbp")


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Three slices of somebody whose name nobody may learn, reconstructed."""
    folder = tmp_path_factory.mktemp("data") / SECRETS[0]
    write_series(folder, (0.0, 2.0, 4.0))
    path = tmp_path_factory.mktemp("runs") / "20250101-120002-abcdef.json"
    return path, record_run(path, input=str(folder))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_every_format_gives_the_run_back(run, tmp_path):
    record, image = run
    outputs = [tmp_path / f"out{suffix}" for suffix in SUFFIXES]
    said = []
    notes = export_run(
        record, outputs, WINDOW, progress=lambda share, words: said.append((share, words))
    )
    assert names(tmp_path) == sorted(path.name for path in outputs)
    assert any("orientation" in note for note in notes)
    shares = [share for share, _ in said]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0

    dicom = pydicom.dcmread(tmp_path / "out.dcm")
    assert np.abs(dicom.pixel_array - image[0]).max() <= 0.5
    assert (dicom.WindowCenter, dicom.WindowWidth) == WINDOW
    np.testing.assert_array_equal(
        np.asarray(nibabel.load(tmp_path / "out.nii.gz").dataobj).T, image
    )
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), image[0])
    with h5py.File(tmp_path / "out.h5") as file:
        np.testing.assert_array_equal(file["image"][:], image)
        assert json.loads(file["record"][()])["job"]["solver"] == "dc-pnpdp"
        assert file["history/k"][:].tolist() == [1, 2, 3]
    sixteen = np.asarray(Image.open(tmp_path / "out.16.png")).astype(float) - 32768
    assert np.abs(sixteen - image[0]).max() <= 0.5
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out.tif")), image[0])
    seen = np.asarray(Image.open(tmp_path / "out.png")).astype(float)
    wanted = np.clip((image[0] - 39.5) / 399 + 0.5, 0, 1) * 255
    zoom = len(seen) // len(wanted)
    wanted = wanted.repeat(zoom, 0).repeat(zoom, 1)
    assert np.mean(np.abs(seen - wanted) <= 0.51) > 0.8  # the rest is what is marked in it


def test_mr_comes_back_in_the_scale_of_its_input(tmp_path):
    job = {"input": "demo:mri", "acquisition": {"acceleration": 4.0}}
    image = record_run(tmp_path / "r.json", "zero-filled", **job)
    export_run(tmp_path / "r.json", [tmp_path / "m.npy", tmp_path / "m.dcm"])
    np.testing.assert_allclose(np.load(tmp_path / "m.npy"), image[0], rtol=1e-6)
    stored = pydicom.dcmread(tmp_path / "m.dcm").pixel_array
    scale = stored.max() / image.max()
    assert np.abs(stored / scale - image[0]).max() <= 0.002 * image.max()


def test_slices_become_a_series_a_volume_and_a_picture_each(series, tmp_path):
    record, image = series
    export_run(record, [tmp_path / n for n in ("v-dicom", "v.npy", "v.png", "v.16.png")], WINDOW)
    assert names(tmp_path) == sorted(
        ["v-dicom", "v.npy", *(f"v-s00{n}{s}" for n in (1, 2, 3) for s in (".png", ".16.png"))]
    )
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), image)
    for number, name in enumerate(names(tmp_path / "v-dicom")):
        data = pydicom.dcmread(tmp_path / "v-dicom" / name)
        assert np.abs(data.pixel_array - image[number]).max() <= 0.5
        assert data.ImagePositionPatient[2] == 2.0 * number
        sixteen = (
            np.asarray(Image.open(tmp_path / f"v-s00{number + 1}.16.png")).astype(float) - 32768
        )
        assert np.abs(sixteen - image[number]).max() <= 0.5


def test_one_slice_of_many_is_just_that_slice_at_its_place(series, tmp_path):
    record, image = series
    export_run(record, [tmp_path / n for n in ("one.dcm", "one.npy", "one.h5")], slice=1)
    data = pydicom.dcmread(tmp_path / "one.dcm")
    assert np.abs(data.pixel_array - image[1]).max() <= 0.5
    assert data.ImagePositionPatient[2] == 2.0
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), image[1])
    with pytest.raises(RequestError, match="does not have slice 9"):
        export_run(record, [tmp_path / "two.npy"], slice=8)


def test_deidentified_files_hold_no_name_number_or_date(series, tmp_path):
    record, _ = series
    outputs = [tmp_path / n for n in ("a-dicom", "a.nii", "a.npy", "a.h5", "a.png", "a.tif")]
    export_run(record, outputs, deidentify=True)
    export_report([RunExport(record, label="#1 FBP")], tmp_path / "a.html", deidentify=True)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 11
    for path in files:
        content = path.read_bytes()
        for secret in SECRETS:
            assert secret.encode() not in content, path.name
    with h5py.File(tmp_path / "a.h5") as file:  # strings in it may be packed
        assert not any(secret in str(file["record"][()]) for secret in SECRETS)
    kept = tmp_path / "kept.dcm"
    export_run(record, [kept], slice=0)
    assert SECRETS[0] in str(pydicom.dcmread(kept).PatientName)


@pytest.mark.parametrize("after", range(11))
def test_cancelling_at_any_moment_leaves_no_file(series, tmp_path, after):
    record, _ = series
    asked = iter(range(1000))
    outputs = [tmp_path / name for name in ("c.npy", "c-dicom", "c.png")]

    def cancelled():
        return next(asked) >= after

    if after < 10:  # reading, array, series and its three slices, three pictures, the end
        with pytest.raises(Cancelled):
            export_run(record, outputs, cancelled=cancelled)
        assert names(tmp_path) == []
    else:
        export_run(record, outputs, cancelled=cancelled)
        assert len(names(tmp_path)) == 5


def test_cancelling_keeps_the_files_that_would_have_been_replaced(run, tmp_path):
    (tmp_path / "x.npy").write_bytes(b"precious")
    asked = iter([False, False, True])
    with pytest.raises(Cancelled):
        export_run(
            run[0],
            [tmp_path / "x.npy", tmp_path / "x.tif"],
            overwrite=True,
            cancelled=lambda: next(asked),
        )
    assert names(tmp_path) == ["x.npy"]
    assert (tmp_path / "x.npy").read_bytes() == b"precious"


def test_nothing_is_overwritten_unless_asked(run, series, tmp_path):
    (tmp_path / "x.npy").write_bytes(b"precious")
    outputs = [tmp_path / "x.tif", tmp_path / "x.npy"]
    with pytest.raises(RequestError, match=r"x\.npy exists already"):
        export_run(run[0], outputs)
    assert names(tmp_path) == ["x.npy"]
    export_run(run[0], outputs, overwrite=True)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), run[1][0])

    folder = tmp_path / "s-dicom"
    folder.mkdir()
    (folder / "thesis.txt").write_text("not ours")
    with pytest.raises(RequestError, match="holds other files"):
        export_run(series[0], [folder], overwrite=True)
    (folder / "thesis.txt").rename(folder / "IM0009.dcm")
    export_run(series[0], [folder], overwrite=True)
    assert names(folder) == ["IM0001.dcm", "IM0002.dcm", "IM0003.dcm"]


def test_one_format_that_cannot_be_written_leaves_none(series, tmp_path):
    with pytest.raises(DualscopeError) as caught:
        export_run(series[0], [tmp_path / "b.npy", tmp_path / "b.dcm"])  # three slices, one file
    assert str(tmp_path / "b.dcm") in str(caught.value)
    assert ".partial" not in str(caught.value)
    assert names(tmp_path) == []


def test_changed_data_are_refused_with_a_sentence(tmp_path):
    data, record = tmp_path / "scan.npy", tmp_path / "r.json"
    image = np.full((32, 32), -1000, np.float32)
    image[8:24, 8:24] = 50
    np.save(data, image)
    wanted = record_run(record, input=str(data), options={"unit": "hu"})
    elsewhere = tmp_path / "moved.npy"
    shutil.copy(data, elsewhere)
    np.save(data, image + 1)
    with pytest.raises(RequestError, match="data have changed"):
        export_run(record, [tmp_path / "out.npy"])
    job = {"input": str(elsewhere), "options": {"unit": "hu"}}
    export_run(record, [tmp_path / "out.npy"], job=job)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), wanted[0])


def test_when_the_data_are_gone_the_image_can_still_be_saved(tmp_path):
    data, record = tmp_path / "scan.npy", tmp_path / "r.json"
    images = np.full((2, 32, 32), -1000, np.float32)
    images[:, 8:24, 8:24] = [[[50]], [[70]]]
    np.save(data, images)
    wanted = record_run(record, input=str(data), options={"unit": "hu"})
    data.unlink()
    export_run(record, [tmp_path / "out.npy", tmp_path / "out.png", tmp_path / "out.tif"])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), wanted)
    export_run(record, [tmp_path / "one.npy"], slice=1)
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy").squeeze(), wanted[1])
    with pytest.raises(RequestError, match=r"data of this run are gone, and image\.dcm"):
        export_run(record, [tmp_path / "image.npy", tmp_path / "image.dcm"])
    assert not (tmp_path / "image.npy").exists()


def test_other_units_of_a_prior_are_refused_rather_than_written_wrong(fbp, tmp_path):
    copy = tmp_path / fbp[0].name
    for path in fbp[0].parent.glob(f"{fbp[0].stem}*"):
        shutil.copy(path, tmp_path)
    record = RunRecord.read(copy)
    record.input["intensity"]["scale"] = 500.0
    record.write(copy)
    with pytest.raises(RequestError, match="prior is not the one"):
        export_run(copy, [tmp_path / "x.npy"])
    next(tmp_path.glob("*.safetensors")).unlink()
    with pytest.raises(RequestError, match="left no image"):
        export_run(copy, [tmp_path / "x.npy"])


def test_several_runs_are_one_export(run, fbp, tmp_path):
    export_runs(
        [
            RunExport(run[0], (tmp_path / "a.npy",), "#1 DC-PnPDP"),
            RunExport(fbp[0], (tmp_path / "b.npy",), "#2 FBP"),
        ]
    )
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), run[1][0])
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), fbp[1][0])


def test_the_report_compares_runs_of_one_measurement_only(run, fbp, series, tmp_path):
    both = [RunExport(run[0], label="#1 DC-PnPDP"), RunExport(fbp[0], label="#2 FBP")]
    export_report(both, tmp_path / "r.html", WINDOW)
    page = (tmp_path / "r.html").read_text()
    assert "#1 DC-PnPDP" in page
    assert "#2 FBP" in page
    psnr = RunRecord.read(run[0]).metrics
    assert f"{next(iter(psnr.values()))['psnr']:.4g}" in page
    with pytest.raises(RequestError, match=r"#3 FBP differs in its data\."):
        export_report([*both, RunExport(series[0], label="#3 FBP")], tmp_path / "s.html")
    with pytest.raises(Cancelled):
        export_report(both, tmp_path / "s.html", cancelled=lambda: True)
    assert names(tmp_path) == ["r.html"]


def test_marks_stand_in_the_chosen_corner_of_png_and_report(run, tmp_path):
    """The picture itself is the same in both: only the corners with the marks differ."""
    path, _ = run
    pictures, pages = {}, {}
    for corner in ("bottom left", "top right"):
        name = corner.replace(" ", "-")
        out = RunExport(path, (tmp_path / f"{name}.png",), corner=corner)
        export_runs([out], WINDOW)
        pictures[corner] = np.asarray(Image.open(tmp_path / f"{name}.png"), float)
        report = tmp_path / f"{name}.html"
        export_report([RunExport(path, (), "ours", corner=corner)], report, WINDOW)
        pages[corner] = report.read_text(encoding="utf-8")
    low, high = pictures.values()
    half = len(low) // 2
    differ = low != high
    assert differ[half:, : len(low[0]) // 2].any()
    assert differ[:half, len(low[0]) // 2 :].any()
    assert low.shape == high.shape
    assert differ.mean() < 0.5
    assert len(set(pages.values())) == 2
