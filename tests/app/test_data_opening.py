"""Opened data say everything a window needs, and nothing that must not be written down."""

import h5py
import numpy as np
import pytest
from data_files import CT_SMALL, MIXED, RAYS, STUDY, VOLUME, kspace_file, sinogram_file, volume_file

from app.data.opened import Question
from app.data.opening import open_data, preview_of, simulated_sinogram, try_open
from app.data.patient import patient_lines, window_of
from app.data.thumbnails import thumbnail, thumbnail_of_series
from engine.spec.errors import RequestError


def test_the_ct_demo_opens_with_its_facts_and_a_picture():
    opened = open_data("demo:ct")
    assert (opened.kind, opened.modality, opened.count) == ("image", "CT", 1)
    assert opened.name == "CT demo"
    assert preview_of(opened, 0).shape == opened.image_size == (256, 256)
    facts = {fact.name: fact.value for fact in opened.facts}
    assert facts["data"] == "CT image"
    assert "Synthetic CT" in facts["content"]
    assert opened.patient == ()
    assert [item.chosen for item in opened.series] == [True]


def test_a_folder_lists_its_series_and_opens_the_longest():
    opened = open_data(str(STUDY))
    assert [item.number for item in opened.series] == list(range(1, 8))
    chosen = [item for item in opened.series if item.chosen]
    assert [item.label for item in chosen] == ["MR series 700, 7 slices"]
    assert opened.name == "MR series 700"
    assert chosen[0].screen_text.startswith("ANGIO")
    assert "Choose another in the list." in opened.warnings[0]
    assert not any("--dataset" in words for words in opened.warnings)


def test_another_series_opens_by_its_key_without_reading_the_folder_again(monkeypatch):
    opened = open_data(str(STUDY))
    key = opened.series[3].key
    import engine.data.readers.dicom.reader as dicom

    def read_again(*args):
        raise AssertionError("the headers were read again")

    monkeypatch.setattr(dicom, "find_series", read_again)
    other = open_data(str(STUDY), {"dataset": key}, opened.found)
    assert [item.number for item in other.series if item.chosen] == [4]
    assert other.options == {"dataset": key}
    assert other.found is opened.found


def test_what_is_no_image_is_listed_with_its_refusal():
    opened = open_data(str(MIXED))
    refused = [item for item in opened.series if item.refusal]
    assert len(refused) == 3
    assert "Computed Radiography" in refused[0].refusal
    assert opened.name == "CT series 2"
    with pytest.raises(RequestError, match="Computed Radiography"):
        open_data(str(MIXED), {"dataset": refused[0].key}, opened.found)


def test_the_patient_is_for_the_screen_only():
    opened = open_data(str(STUDY))
    assert opened.patient[0] == "Doe Peter"
    assert any(line.startswith("ID ") for line in opened.patient)
    assert any(line.startswith("study 20") and line.count("-") == 2 for line in opened.patient)
    for shown in (repr(opened), opened.name):
        assert "Doe" not in shown
        assert "98892003" not in shown


def test_the_window_of_the_header_is_kept():
    opened = open_data(str(STUDY))
    assert opened.window is not None
    assert opened.window[0] == 149
    assert opened.window[1] >= 1
    assert open_data("demo:mri").window is None


def test_a_broken_header_costs_its_lines_only():
    class Header(dict):
        def get(self, keyword):
            if keyword == "PatientName":
                raise ValueError("bad bytes")
            return super().get(keyword)

    header = Header(PatientID="7\n", WindowCenter="x", WindowWidth=5, StudyDate="2004")
    assert patient_lines(header) == ("ID 7", "study 2004")
    assert window_of(header) is None
    assert window_of(Header(WindowCenter=[40, 50], WindowWidth=[400, 2])) == (40, 400)
    assert window_of(Header(WindowCenter=40, WindowWidth=0)) is None


def test_a_sinogram_says_which_views_it_has(tmp_path):
    path = sinogram_file(tmp_path, sidecar={**RAYS, "scan_start": 30.0})
    opened = open_data(str(path))
    scan = opened.views
    assert (scan.views, scan.geometry) == (36, "parallel")
    assert scan.angular_range == pytest.approx(180)
    assert scan.start_angle == pytest.approx(30)
    assert scan.angles_deg[1] == pytest.approx(35)
    assert scan.sinogram.shape == (36, 48)
    assert opened.measured
    assert opened.lines is None
    assert preview_of(opened, 0).max() > -300, "the disc of water is seen"


def test_a_sinogram_without_geometry_is_a_question(tmp_path):
    path = str(sinogram_file(tmp_path))
    asked = try_open(path, {"kind": "sinogram"})
    assert isinstance(asked, Question)
    assert set(asked.missing) == set(RAYS)
    assert asked.options == {"kind": "sinogram"}
    assert try_open(path, {"kind": "sinogram", **RAYS}).kind == "sinogram"


def test_bare_numbers_are_a_question_with_answers_to_choose_from(tmp_path):
    asked = try_open(str(volume_file(tmp_path)), {})
    assert isinstance(asked, Question)
    words = [choice.words for choice in asked.choices]
    assert words[0] == "CT image in HU"
    assert any("Sinogram" in one for one in words)
    for choice in asked.choices:
        answer = try_open(asked.text, choice.options)
        assert isinstance(answer, Question) == ("Sinogram" in choice.words)
    assert not answer.choices, "then the geometry is asked for"


def test_a_complex_array_may_be_kspace_and_its_axes_are_asked_for(tmp_path):
    path = str(kspace_file(tmp_path))
    asked = try_open(path, {})
    assert [choice.words for choice in asked.choices] == ["k-space", "Complex MR image"]
    axes = try_open(path, asked.choices[0].options)
    assert axes.missing == ("axes",)
    chosen = next(choice for choice in axes.choices if choice.words == "coil, read, phase")
    assert try_open(path, {**axes.options, **chosen.options}).lines.coils == 4


def test_several_arrays_in_a_file_are_listed(tmp_path):
    np.savez(tmp_path / "two.npz", first=np.zeros((8, 8)), second=np.ones((8, 8)))
    asked = try_open(str(tmp_path / "two.npz"), {"unit": "hu"})
    assert [choice.options for choice in asked.choices] == [
        {"dataset": "first"},
        {"dataset": "second"},
    ]


def test_kspace_says_which_lines_it_has(tmp_path):
    path = kspace_file(tmp_path)
    opened = open_data(str(path), {"kind": "kspace", "axes": "coil,read,phase"})
    assert (opened.kind, opened.modality) == ("kspace", "MR")
    assert opened.lines.coils == 4
    assert opened.lines.lines == 40
    assert opened.lines.sampled.sum() == 32
    assert not opened.lines.sampled[1]


def test_a_radial_scan_opens_with_its_paths(tmp_path):
    angle, r = np.arange(12) * np.pi / 12, np.arange(-16, 16)
    paths = np.stack((np.outer(np.cos(angle), r), np.outer(np.sin(angle), r)))
    np.savez(tmp_path / "scan.npz", kspace=np.ones((2, 12, 32), np.complex64), traj=paths)
    opened = open_data(str(tmp_path / "scan.npz"), {"kind": "kspace"})
    assert (opened.kind, opened.image_size) == ("kspace", (32, 32))
    assert (opened.lines.lines, opened.lines.coils) == (12, 2)
    assert opened.lines.trajectory.spokes == 12
    assert any("12 radial spokes" in fact.value for fact in opened.facts)


def test_thumbnails_are_small_and_windowed(tmp_path):
    opened = open_data(str(volume_file(tmp_path, 3)), VOLUME)
    small = thumbnail(opened, 1, side=12)
    assert small.dtype == np.uint8
    assert small.shape == (12, 12)
    assert np.all(small == 128), "1 HU is the middle of -800 to 800"
    study = open_data(str(STUDY))
    picture = thumbnail_of_series(study, study.series[3])
    assert picture.shape == (16, 16)
    assert picture.min() == 0
    assert picture.max() == 255
    mixed = open_data(str(MIXED))
    assert thumbnail_of_series(mixed, mixed.series[0]) is None


def test_the_simulated_sinogram_is_that_of_the_run(tmp_path):
    from engine.physics.units import IntensityMap

    y, x = np.mgrid[-90:90, -90:90]
    disc = np.where((x - 20) ** 2 + y**2 < 50**2, 40, -1000).astype(np.float32)
    np.save(tmp_path / "disc.npy", disc)
    opened = open_data(str(tmp_path / "disc.npy"), VOLUME)
    mu_per_hu = 0.0192 / 1000
    for asked in ({}, {"geometry": "fan", "views": 7}, {"detectors": 100, "pitch_mm": 2.0}):
        shown = simulated_sinogram(opened, 0, asked)
        problem = opened.dataset.problem([0], asked, IntensityMap("hu", 1.0, -1000.0), 0)
        true = mu_per_hu * problem.measurement[0, 0].numpy()
        assert shown.shape == true.shape
        assert np.linalg.norm(shown - true) < 0.02 * np.linalg.norm(true)
    clean, noisy = (simulated_sinogram(opened, 0, asked) for asked in ({}, {"photons": 1e4}))
    assert 0.01 < np.std(noisy - clean) < 0.5
    assert len(simulated_sinogram(opened, 0, {"views": 500})) == 500


def test_there_is_no_simulated_sinogram_of_mr_images():
    assert simulated_sinogram(open_data("demo:mri"), 0, {}) is None


def test_a_single_dicom_file_is_one_series():
    opened = open_data(str(CT_SMALL))
    assert [item.chosen for item in opened.series] == [True]
    assert opened.screen_name == "CT_small.dcm"
    assert opened.name == "CT series 1"


def test_links_into_other_files_are_asked_about_and_followed_only_after_that(tmp_path):
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["image"] = np.zeros((16, 16), np.float32)
    with h5py.File(tmp_path / "frame.h5", "w") as file:
        file["image"] = h5py.ExternalLink("part.h5", "/image")
    told = {"modality": "mr", "dataset": "image"}
    asked = try_open(str(tmp_path / "frame.h5"), told)
    assert isinstance(asked, Question)
    assert asked.missing == ("allow_links",)
    (answer,) = asked.choices
    assert answer.options == {"allow_links": str(tmp_path)}
    opened = try_open(str(tmp_path / "frame.h5"), {**told, **answer.options})
    assert opened.image_size == (16, 16)
