"""What counts as an input, and what a file may be named."""

import os

import numpy as np
import pydicom
import pytest
from dicom_files import SECRETS
from folder_inputs import copy_dicom, request, run_folder, save_series, save_slice, table_rows
from PIL import Image

from engine.spec.errors import RequestError
from engine.workflows.folder.finding import Finder
from engine.workflows.folder.request import SAFE, free_name, safe_name, shown_name
from engine.workflows.folder.table import LEFT_OUT


def look(folder, results="out"):
    return {found.name: found for found in Finder(folder, folder / results).look()}


def test_files_at_any_depth_are_found_and_what_is_no_input_is_not(tmp_path):
    for name in ("a.npy", "deep/er/b.nii.gz", "c.mhd", "c.raw", "k.cfl", "k.hdr", "alone.raw"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    for name in (".hidden.npy", "d.npy.crdownload", "e.npy.part", ".f.npy.1.partial", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    save_slice(tmp_path / ".secret" / "x.npy")
    save_slice(tmp_path / "out" / "earlier.npy")
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere.npy").symlink_to(tmp_path / "gone.npy")
    found = look(tmp_path)
    assert list(found) == ["a.npy", "alone.raw", "c.mhd", "deep/er/b.nii.gz", "k.cfl"]
    assert found["c.mhd"].files == (tmp_path / "c.mhd", tmp_path / "c.raw")


def test_results_of_an_earlier_batch_are_not_inputs(tmp_path):
    save_slice(tmp_path / "a.npy")
    run_folder(request(tmp_path, tmp_path / "earlier"))
    assert list(look(tmp_path)) == ["a.npy"]


def test_every_series_is_one_input_wherever_its_files_lie(tmp_path):
    save_series(tmp_path / "alone", 3)
    save_series(tmp_path / "mixed", 2, SeriesInstanceUID="1.2.3.5")
    for part in ("p", "q"):
        save_series(tmp_path / "mixed" / part, 2, SeriesInstanceUID="1.2.3.6", SeriesNumber=8)
    (tmp_path / "mixed" / "DICOMDIR").write_bytes(b"x")
    copy_dicom(tmp_path, "CT_small.dcm")
    found = look(tmp_path)
    assert len(found) == 4
    assert found["alone"].options == {}
    assert found["CT_small.dcm"].path == tmp_path / "CT_small.dcm"
    first, second = (one for name, one in found.items() if name.startswith("mixed/series"))
    assert {len(first.files), len(second.files)} == {2, 4}
    assert {first.options["dataset"], second.options["dataset"]} == {"1.2.3.5", "1.2.3.6"}
    assert first.folder_name != second.folder_name


def test_what_comes_along_with_a_scan_is_left_out_and_is_no_failure(tmp_path):
    copy_dicom(tmp_path, "CT_small.dcm", "reportsi.dcm", "rtplan.dcm")
    localizer = ["ORIGINAL", "PRIMARY", "LOCALIZER"]
    save_series(tmp_path / "scout", 2, SeriesInstanceUID="1.2.3.9", ImageType=localizer)
    rows, _ = run_folder(request(tmp_path, tmp_path / "out"))
    left_out = {name: row.error for name, row in rows.items() if row.status == LEFT_OUT}
    assert set(left_out) == {"reportsi.dcm", "rtplan.dcm", "scout"}
    assert "localizer" in left_out["scout"]
    one = save_series(tmp_path / "one", 4, SeriesInstanceUID="1.2.3.7")
    for path in one[:2]:  # both kinds under one number
        data = pydicom.dcmread(path)
        data.ImageType = localizer
        data.save_as(path)
    names = [(found.name, bool(found.left_out)) for found in look(tmp_path).values()]
    assert sorted(left for name, left in names if name.startswith("one/")) == [False, True]
    assert rows["CT_small.dcm"].status == "done"


def test_a_folder_of_tiff_files_is_a_stack_of_projections(tmp_path):
    for folder in (tmp_path, tmp_path / "stack"):
        folder.mkdir(exist_ok=True)
        for number in range(3):
            Image.fromarray(np.zeros((8, 8), np.float32)).save(folder / f"{number}.tif")
    assert list(look(tmp_path)) == ["0.tif", "1.tif", "2.tif", "stack"]


HOSTILE = (
    "..",
    "../../etc",
    "con",
    "CON ",
    "a\nb",
    "-rf",
    "x" * 300,
    "",
    "\udcff",
    "a\u202eb",
    "._-",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_results_folder_has_a_harmless_name_whatever_the_input_is_called(text):
    name = safe_name(text)
    assert SAFE.fullmatch(name)
    assert name.lower() != "con"
    assert len(shown_name(text).splitlines()) <= 1
    shown_name(text).encode()


def test_names_that_a_system_would_confuse_get_a_number():
    assert free_name("Scan", ["scan", "SCAN-2"]) == "Scan-3"
    assert shown_name("a\\nb") != shown_name("a\nb")


def test_equal_and_odd_names_get_folders_of_their_own_inside_the_results(tmp_path):
    folder, results = tmp_path / "in", tmp_path / "out"
    for name in ("a.npy", "sub/a.npy", "A.npy", "..npy", "=1+1.npy", "<b>.npy", "two\nlines.npy"):
        save_slice(folder / name)
    (results / "a").mkdir(parents=True)
    (results / "a" / "mine.txt").write_text("not yours")
    rows, _ = run_folder(request(folder, results))
    assert len(rows) == len({row.folder.lower() for row in rows.values()}) == 6  # '..npy' is hidden
    assert "a" not in {row.folder.lower() for row in rows.values()}, "somebody else's folder"
    for row in table_rows(results).values():
        assert (results / row["folder"] / "result.npy").is_file()
    text = (results / "table.csv").read_text()
    assert "\n'=1+1.npy," in text, "a spreadsheet would compute it"
    assert len(text.splitlines()) == 7
    assert "<b>.npy" not in (results / "table.html").read_text()


def test_nothing_of_a_patient_is_named_in_a_nameless_table(tmp_path):
    folder, results = tmp_path / "in", tmp_path / "out"
    save_slice(folder / "Rumpelstilz" / "PID-0815.npy")
    (folder / "Rumpelstilz-broken.npy").write_bytes(b"x")
    save_series(folder / "Rumpelstilz" / "series", 2)
    asked = request(folder, results, job={"deidentify": True}, formats=("dcm", "png"))
    rows, computed = run_folder(asked)
    assert sorted(row.status for row in rows.values()) == ["done", "done", "failed"]
    assert sorted(row.folder for row in rows.values()) == ["0001", "0002", "0003"]
    for path in results.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for secret in SECRETS:
            assert secret not in str(path.relative_to(results))
            assert secret.encode() not in content, path
    again, more = run_folder(asked)
    assert (again, more) == (rows, [])
    assert len(computed) == 3
    with pytest.raises(RequestError, match="begun with --deidentify"):
        run_folder(request(folder, results))
