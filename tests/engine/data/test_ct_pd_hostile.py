"""Broken, contradictory and absurd projections: one sentence, no traceback, no huge arrays."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from ct_ellipses import Ellipse
from ct_pd_files import Scan, Solid, turns, write_scan, write_view

from engine.data.readers.ct_pd.reader import is_ct_pd, open_ct_pd
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

BODY = [Solid(Ellipse(10.0, 5.0, 60.0, 40.0, 0.2, 0.02))]
SMALL = Scan(BODY, turns(1, 24), rows=2, columns=24, column_mm=18.0, central=(12.25, 1.5),
             turn_views=24)  # fmt: skip


def opened(tmp_path, scan, **options):
    return open_ct_pd(write_scan(tmp_path / "scan", scan), InputOptions(**options))


def changed(**values):
    return replace(SMALL, extra=values)


def test_the_plain_scan_opens(tmp_path):
    dataset = opened(tmp_path, SMALL)
    assert np.isfinite(dataset.read(0)).all()


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("rows", "NumberofDetectorRows"),
        ("columns", "NumberofDetectorColumns"),
        ("column_mm", "DetectorElementTransverseSpacing"),
        ("row_mm", "DetectorElementAxialSpacing"),
        ("shape", "shape"),
        ("phi", "DetectorFocalCenterAngularPosition"),
        ("z", "DetectorFocalCenterAxialPosition"),
        ("rho", "DetectorFocalCenterRadialDistance"),
        ("distance", "ConstantRadialDistance"),
        ("central", "DetectorCentralElement"),
        ("RescaleSlope", "RescaleSlope"),
        ("RescaleIntercept", "RescaleIntercept"),
        ("BitsAllocated", "bits"),
        ("Rows", "Rows"),
    ],
)
def test_a_missing_tag_is_named(tmp_path, name, tag):
    with pytest.raises(RequestError, match=tag):
        opened(tmp_path, changed(**{name: None}))


@pytest.mark.parametrize("name", ["mu_water", "log", "spot_mode", "turn_views", "dphi", "kind"])
def test_what_can_be_done_without_may_be_missing(tmp_path, name):
    dataset = opened(tmp_path, changed(**{name: None}))
    assert np.isfinite(dataset.read(1)).all()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"phi": math.nan}, "AngularPosition"),
        ({"z": math.inf}, "AxialPosition"),
        ({"rho": math.nan}, "RadialDistance"),
        ({"rho": -300.0}, "makes no sense"),
        ({"distance": 200.0}, "between the source"),
        ({"distance": 0.0}, "makes no sense"),
        ({"column_mm": 1e9}, "makes no sense"),
        ({"column_mm": 1e5}, "too wide"),
        ({"row_mm": math.nan}, "AxialSpacing"),
        ({"central": (500.0, 1.5)}, "DetectorCentralElement"),
        ({"central": (math.nan, 1.5)}, "DetectorCentralElement"),
        ({"shape": "SPHERICAL"}, "SPHERICAL"),
        ({"rows": 65535, "columns": 65535}, "not on the detector|too wide|not its detector"),
        ({"rows": 65535, "columns": 65535, "Rows": 65535, "Columns": 65535,
          "column_mm": 1e-3, "central": (30000.0, 30000.0)}, "cut off"),
        ({"Rows": 3}, "not its detector"),
        ({"BitsAllocated": 8}, "bits"),
        ({"NumberOfFrames": 5}, "several projections"),
        ({"dphi": 3.0}, "AngularPositionShift"),
        ({"drho": math.nan}, "RadialDistanceShift"),
        ({"RescaleSlope": 0}, "RescaleSlope"),
        ({"RescaleSlope": "nan"}, "RescaleSlope"),
        ({"log": "NO"}, "LogFlag"),
    ],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(tmp_path, values, words):
    with pytest.raises(RequestError, match=words):
        opened(tmp_path, changed(**values))


@pytest.mark.parametrize(
    ("views", "words"),
    [
        ([(0.1, 0.0)], "do not go around"),
        ([(0.1, 0.0)] * 30, "do not go around"),
        ([(random.Random(n).uniform(0, 6), 0.0) for n in range(40)], "do not go around"),
        ([(n, 0.0) for n in range(20)], "too few or too uneven"),
        (turns(0.6, 60, feed=20.0), "a slice needs a full turn"),
        (turns(2, 60, feed=4e4), "more than"),
        (turns(1, 60, feed=9.0) + turns(1, 60, feed=-9.0, z=9.0), "to and fro"),
        (turns(0.5, 60) + turns(0.5, 60, start=3.0, z=9.0), "different parts of a turn"),
        ([(n * 1e-9, 0.0) for n in range(60)] + turns(1, 20), "too few or too uneven"),
    ],
)
def test_ways_around_the_patient_that_make_no_slice(tmp_path, views, words):
    with pytest.raises(RequestError, match=words):
        opened(tmp_path, replace(SMALL, views=views, row_mm=0.5))


@pytest.mark.parametrize("left", [700, 1000, -1, -50])
def test_a_file_that_is_cut_off_is_named(tmp_path, left):
    folder = write_scan(tmp_path / "scan", SMALL)
    file = sorted(folder.iterdir())[5]
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(RequestError, match=file.name):
        open_ct_pd(folder, InputOptions())


@pytest.mark.parametrize("left", [0, 100, 200])
def test_a_file_of_which_nothing_is_left_is_left_out(tmp_path, left):
    folder = write_scan(tmp_path / "scan", SMALL)
    file = sorted(folder.iterdir())[5]
    file.write_bytes(file.read_bytes()[:left])
    assert any("left out" in text for text in open_ct_pd(folder, InputOptions()).warnings)


def test_a_file_cut_off_after_opening_is_an_error_when_read(tmp_path):
    dataset = opened(tmp_path, SMALL)
    dataset.files[3].write_bytes(b"")
    with pytest.raises(RequestError, match="shorter"):
        dataset.read(0)
    dataset.files[3].unlink()
    with pytest.raises(RequestError, match=r"Cannot read .*: No such file"):
        dataset.read(0)


def test_files_of_one_series_must_agree(tmp_path):
    folder = write_scan(tmp_path / "scan", SMALL)
    write_view(folder / "other.dcm", changed(rho=310.0), 3)
    with pytest.raises(RequestError, match=r"other.dcm|another size"):
        open_ct_pd(folder, InputOptions())


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "image"},
        {"modality": "mr"},
        {"scan_geometry": "parallel"},
        {"scan_pitch_mm": 1.0},
        {"scan_range": 180.0},
        {"scan_source_origin_mm": 500.0},
        {"unit": "hu"},
        {"unit": "counts"},
        {"dataset": "7"},
    ],
)
def test_options_against_the_files_are_refused(tmp_path, options):
    with pytest.raises(RequestError):
        opened(tmp_path, SMALL, **options)


def test_projections_that_are_not_logarithms_are_converted_when_told(tmp_path):
    class Counts(Scan):
        def projection(self, n):
            return 5.0 * np.exp(-super().projection(n))

    plain = opened(tmp_path, SMALL).read(0)
    counts = Counts(**{**SMALL.__dict__, "extra": {"log": "NO"}})
    told = opened(tmp_path / "counts", counts, unit="counts", scan_air=5.0).read(0)
    np.testing.assert_allclose(told, plain, atol=2e-3)


def test_a_single_projection_or_an_empty_folder_is_refused(tmp_path):
    write_view(tmp_path / "one.dcm", SMALL, 0)
    with pytest.raises(RequestError, match="give the folder"):
        open_ct_pd(tmp_path / "one.dcm", InputOptions())
    (tmp_path / "empty").mkdir()
    with pytest.raises(RequestError, match="holds no CT projections"):
        open_ct_pd(tmp_path / "empty", InputOptions())
    assert not is_ct_pd(tmp_path / "empty")


def test_mutated_files_never_do_worse_than_a_sentence(tmp_path):
    folder = write_scan(tmp_path / "scan", SMALL)
    file = sorted(folder.iterdir())[7]
    whole = file.read_bytes()
    rng = random.Random(5)
    sentences = []
    for _ in range(80):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            data[rng.randrange(132, len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            data = data[: rng.randrange(len(data))]
        file.write_bytes(data)
        try:
            open_ct_pd(folder, InputOptions()).read(0)
        except RequestError as error:
            sentences.append(str(error))
    assert len(sentences) > 10
    assert not any("ecret" in sentence for sentence in sentences)
