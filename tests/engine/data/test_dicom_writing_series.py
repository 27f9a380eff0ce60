"""A series of slices: a folder that appears complete or not at all."""

import errno

import numpy as np
import pydicom
import pytest
from dicom_results import make_result, oblique_placements, picture, source_header

from engine.export import dicom
from engine.export import dicom_copy as dicom_file
from engine.export.dicom import write_dicom, write_dicom_series
from engine.spec.errors import DualscopeError, RequestError


def stored_hu(file):
    return file.pixel_array * float(file.RescaleSlope) + float(file.RescaleIntercept)


def series_result(count=3, **changes):
    headers = [source_header("CT", i) for i in range(count)]
    return make_result(picture(count), "CT", headers, oblique_placements(count), **changes)


def test_a_series_is_one_file_per_slice_in_order(tmp_path):
    folder, values = tmp_path / "series", picture(3)
    write_dicom_series(folder, series_result())
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == ["IM0001.dcm", "IM0002.dcm", "IM0003.dcm"]
    files = [pydicom.dcmread(path) for path in paths]
    assert len({file.SOPInstanceUID for file in files}) == 3
    for keyword in ("SeriesInstanceUID", "StudyInstanceUID", "FrameOfReferenceUID"):
        assert len({file[keyword].value for file in files}) == 1
    for i, (file, placement) in enumerate(zip(files, oblique_placements(3), strict=True)):
        assert int(file.InstanceNumber) == i + 1
        assert np.abs(stored_hu(file) - values[i]).max() <= 0.5
        assert file.ImagePositionPatient == pytest.approx(placement.position, abs=1e-5)
        source = file.SourceImageSequence[0].ReferencedSOPInstanceUID
        assert source == source_header("CT", i).SOPInstanceUID
    assert list(tmp_path.iterdir()) == [folder]


def test_slices_are_those_of_the_problem_not_the_first_ones(tmp_path):
    result = make_result(
        picture(1), "CT", [source_header("CT", i) for i in range(5)], oblique_placements(5)
    )
    result.problem.slices = (3,)
    write_dicom(tmp_path / "out.dcm", result)
    file = pydicom.dcmread(tmp_path / "out.dcm")
    assert file.SourceImageSequence[0].ReferencedSOPInstanceUID.endswith(".4")
    expected = oblique_placements(5)[3].position
    assert file.ImagePositionPatient == pytest.approx(expected, abs=1e-5)


def test_several_slices_do_not_fit_in_one_file(tmp_path):
    with pytest.raises(RequestError, match="folder"):
        write_dicom(tmp_path / "out.dcm", series_result())
    assert not list(tmp_path.iterdir())


def test_mr_slices_share_one_scale(tmp_path):
    values = picture(2, "MR")
    values[1] /= 100
    write_dicom_series(tmp_path / "series", make_result(values, "MR"))
    files = [pydicom.dcmread(path) for path in sorted((tmp_path / "series").iterdir())]
    ratio = files[0].pixel_array.max() / files[1].pixel_array.max()
    assert ratio == pytest.approx(values[0].max() / values[1].max(), rel=0.01)


def test_an_empty_folder_is_filled_and_a_full_one_only_if_asked_and_ours(tmp_path):
    folder = tmp_path / "series"
    folder.mkdir()
    write_dicom_series(folder, series_result(3))
    with pytest.raises(RequestError, match="not empty"):
        write_dicom_series(folder, series_result(1))
    write_dicom_series(folder, series_result(1), overwrite=True)
    assert [path.name for path in folder.iterdir()] == ["IM0001.dcm"]
    (folder / "thesis.doc").write_text("mine")
    with pytest.raises(RequestError, match=r"thesis\.doc"):
        write_dicom_series(folder, series_result(1), overwrite=True)
    assert (folder / "thesis.doc").read_text() == "mine"
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RequestError, match="is a file"):
        write_dicom_series(file, series_result(1), overwrite=True)


def full_after(monkeypatch, count):
    """A disk with room for ``count`` more files."""
    calls, write = [], dicom_file.dcmwrite

    def fill(stream, *rest, **options):
        calls.append(1)
        if len(calls) > count:
            stream.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(stream, *rest, **options)

    monkeypatch.setattr(dicom_file, "dcmwrite", fill)


def test_a_full_disk_leaves_nothing_behind_and_the_error_names_the_path(tmp_path, monkeypatch):
    full_after(monkeypatch, 1)
    with pytest.raises(DualscopeError, match=r"series: No space left"):
        write_dicom_series(tmp_path / "series", series_result())
    with pytest.raises(DualscopeError, match=r"out\.dcm: No space left"):
        write_dicom(tmp_path / "out.dcm", series_result(1))
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_series_alone(tmp_path, monkeypatch):
    folder = tmp_path / "series"
    write_dicom_series(folder, series_result())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    full_after(monkeypatch, 2)
    with pytest.raises(DualscopeError, match="No space left"):
        write_dicom_series(folder, series_result(), overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_cannot_be_renamed_into_place_brings_the_old_one_back(tmp_path, monkeypatch):
    folder = tmp_path / "series"
    write_dicom_series(folder, series_result())
    rename, seen = dicom.os.replace, []

    def stubborn(source, target):
        if target == folder and not seen:
            seen.append(source)
            raise OSError(errno.EACCES, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(dicom.os, "replace", stubborn)
    with pytest.raises(DualscopeError, match="Permission denied"):
        write_dicom_series(folder, series_result(1), overwrite=True)
    assert len(list(folder.iterdir())) == 3
    assert list(tmp_path.iterdir()) == [folder]


def test_a_missing_parent_folder_is_a_sentence(tmp_path):
    with pytest.raises(DualscopeError, match="Cannot write"):
        write_dicom_series(tmp_path / "nowhere" / "series", series_result())
