"""DICOM-CT-PD scans of solids with exact line integrals come back as those solids."""

import math
from dataclasses import replace

import numpy as np
import pydicom
import pytest
import torch
from ct_ellipses import Ellipse, line_integrals, raster
from ct_pd_files import Scan, Solid, turns, write_scan, write_view

from engine.data.readers.ct_pd.reader import is_ct_pd, open_ct_pd
from engine.data.source import open_input
from engine.physics.fbp import fbp
from engine.physics.units import IntensityMap
from engine.spec.input_options import InputOptions

VIEWS = 120
STEP = 2 * math.pi / VIEWS
# lopsided in every direction, so that no turn or mirror leaves it as it is
BODY = [
    Ellipse(8.0, -6.0, 85.0, 62.0, 0.3, 0.02),
    Ellipse(50.0, -20.0, 20.0, 12.0, 0.5, 0.015),
    Ellipse(-20.0, 25.0, 24.0, 16.0, -0.4, -0.01),
]
SOLIDS = [Solid(e) for e in BODY]
FULL = turns(1, VIEWS)


def scan_of(views=FULL, **changes):
    return Scan(SOLIDS, views, turn_views=VIEWS, **changes)


def opened(tmp_path, scan, **options):
    return open_ct_pd(write_scan(tmp_path / "scan", scan), InputOptions(**options))


def off(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def image(dataset, sinogram):
    y = torch.from_numpy(np.asarray(sinogram, dtype=np.float32))[None, None]
    return fbp(y, dataset.geometry, "hann")[0, 0].numpy()


# not symmetric, so that a wrong sign does not average out
SPOT_XY = ((STEP / 2, 0.0, 1.4), (-STEP / 8, 0.0, -0.4))
SPOT_Z = ((0.0, 0.6, 0.9), (0.0, -0.6, 0.9))
HELIX = {"kind": "HELICAL", "rows": 8, "central": (98.75, 4.25)}
CASES = {
    "axial": scan_of(),
    "clockwise": scan_of(turns(1, VIEWS, sign=-1)),
    "feet first": scan_of(position="FFS"),
    "no position": scan_of(position=""),
    "flat": scan_of(shape="FLAT"),
    "stored by columns, typed": scan_of(transposed=True, raw_bytes=False),
    "implicit": scan_of(implicit=True),
    "part of a turn": scan_of(turns(0.7, VIEWS)),
    "spot in the plane": scan_of(shifts=SPOT_XY, spot_mode="FFSXY"),
    "spot along z": scan_of(shifts=SPOT_Z, spot_mode="FFSZ"),
    "helical": scan_of(turns(1.7, VIEWS, feed=9.0), **HELIX),
    "helical, backwards": scan_of(turns(1.7, VIEWS, feed=-9.0, sign=-1), **HELIX),
    "helical, feet first": scan_of(turns(1.7, VIEWS, feed=-9.0), position="FFS", **HELIX),
    "helical, by columns": scan_of(turns(1.7, VIEWS, feed=9.0), transposed=True, **HELIX),
    "helical, spot everywhere": scan_of(
        turns(1.7, VIEWS, feed=9.0),
        shifts=tuple((a, dz, r) for (a, _, r) in SPOT_XY for dz in (0.5, -0.5)),
        **{**HELIX, "spot_mode": "FFSXYZ"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_scan_gives_the_exact_fan_and_its_image(tmp_path, name):
    """Endless cylinders: any slice is the same, and rays need no approximation.

    What remains is the linear interpolation between detector columns, and between views where
    the source is deflected in the plane.
    """
    dataset = opened(tmp_path, CASES[name], size=96)
    geometry = dataset.geometry
    exact = line_integrals(BODY, geometry)
    limits = {"flat": 2e-4, "spot in the plane": 1e-2, "helical, spot everywhere": 1.2e-2}
    limit = limits.get(name, 6e-3)
    for number in (0, dataset.count - 1):
        measured = dataset.read(number)
        assert measured.shape == exact.shape
        assert measured.dtype == np.float32
        assert off(measured, exact) < limit
    # the image is the patient seen from the feet, front up
    picture = image(dataset, measured)
    assert off(picture, image(dataset, exact)) < 5 * limit
    truth = raster(BODY, geometry.image_size, geometry.pixel_mm, sub=4)
    assert off(picture, truth) < (0.2 if name == "part of a turn" else 0.15)
    assert off(picture, truth[:, ::-1]) > 0.3


def test_the_geometry_is_that_of_the_file(tmp_path):
    geometry = opened(tmp_path, CASES["axial"]).geometry
    assert geometry.kind == "fan"
    assert (geometry.source_origin_mm, geometry.source_detector_mm) == (300.0, 550.0)
    assert geometry.views == VIEWS
    assert geometry.pitch_mm == pytest.approx(2.2)
    # phi = 0.3 puts the source left of the top, seen from the feet
    source = np.array([math.sin(geometry.angles_rad[0]), -math.cos(geometry.angles_rad[0])])
    np.testing.assert_allclose(source, [-math.sin(0.3), math.cos(0.3)], atol=1e-6)
    # the bins lie as the columns do: 1/4 and 3/4 of a column beside the central ray
    shares = np.mod(geometry.detector_mm() / 2.2, 1.0)
    np.testing.assert_allclose(shares, 0.75, atol=1e-5)


def test_feet_first_is_mirrored_and_counted_from_the_feet(tmp_path):
    """The same files but for the way the patient lay: z and left and right change sides."""
    ball = [Solid(Ellipse(30.0, 40.0, 30.0, 30.0, 0.0, 0.02), z=3.0, c=4.0)]
    for position, expected in (("HFS", 3.0), ("FFS", 3.0)):
        scan = Scan(ball, FULL, rows=16, central=(98.75, 8.5), position=position, turn_views=VIEWS)
        dataset = open_ct_pd(write_scan(tmp_path / position, scan), InputOptions(size=40))
        heights = [place.position[2] for place in dataset.placements]
        assert heights == sorted(heights)
        sums = np.array([dataset.read(n).sum() for n in range(dataset.count)])
        centre = float((sums * heights).sum() / sums.sum())
        assert centre == pytest.approx(expected, abs=0.15)
        picture = image(dataset, dataset.read(int(sums.argmax())))
        row, column = np.unravel_index(picture.argmax(), picture.shape)
        place = dataset.placements[0]
        found = np.array(place.position) + column * place.spacing_mm[1] * np.array(place.along_row)
        found += row * place.spacing_mm[0] * np.array(place.along_column)
        # in DICOM's coordinates: 30 mm to the left, 40 mm to the front
        np.testing.assert_allclose(found[:2], [30.0, -40.0], atol=15.0)


@pytest.mark.parametrize("lying", ["S", "P", "DL", "DR"])
def test_the_image_is_the_room_and_the_placement_says_how_the_patient_lay(tmp_path, lying):
    dataset = opened(tmp_path, scan_of(turns(1, 40), position=f"HF{lying}"), size=16)
    place = dataset.placements[0]
    assert place.normal == (0.0, 0.0, 1.0)  # always seen from the feet
    up = {"S": (0, -1, 0), "P": (0, 1, 0), "DL": (-1, 0, 0), "DR": (1, 0, 0)}[lying]
    assert place.along_column == tuple(-v for v in up)
    centre = np.array(place.position) + 7.5 * place.spacing_mm[0] * (
        np.array(place.along_row) + np.array(place.along_column)
    )
    np.testing.assert_allclose(centre[:2], 0.0, atol=1e-9)


STILL, SWITCHED = ((0.0, 0.0, 0.0),), ((0.0, 2.6, 0.0), (0.0, 0.6, 0.0))


@pytest.mark.parametrize(
    ("feed", "sign", "shifts"),
    [(10.0, 1, STILL), (-10.0, 1, SWITCHED), (10.0, -1, SWITCHED), (-10.0, -1, STILL)],
)
def test_helical_slices_lie_where_they_are_said_to(tmp_path, feed, sign, shifts):
    """Small balls in the axis and beside it appear at their own height."""
    rows, balls = 10, [(0.0, 9.0), (60.0, 13.0)]
    solids = [
        Solid(Ellipse(x, 0.0, 12.0, 12.0, 0.0, 0.02), z=math.copysign(z, feed), c=2.5)
        for x, z in balls
    ]
    scan = Scan(
        solids,
        turns(2.3, 90, feed=feed, sign=sign),
        rows=rows,
        central=(98.75, 5.5),
        turn_views=90,
        kind="HELICAL",
        shifts=shifts,
    )
    dataset = opened(tmp_path, scan, pixel_mm=6.0)
    heights = np.array([place.position[2] for place in dataset.placements])
    np.testing.assert_allclose(np.diff(heights), 3.0 * 300 / 550)
    pictures = [image(dataset, dataset.read(n)) for n in range(dataset.count)]
    x, y = dataset.geometry.pixel_axes_mm()
    for place, z in balls:
        near = (np.abs(x - place) < 15)[None, :] & (np.abs(y) < 15)[:, None]
        mass = np.array([picture[near].sum() for picture in pictures])
        mass = np.maximum(mass, 0.1 * mass.max()) - 0.1 * mass.max()
        assert (mass * heights).sum() / mass.sum() == pytest.approx(math.copysign(z, feed), abs=0.4)


def test_axial_steps_give_their_rows_in_order(tmp_path):
    """Two positions of the table; rows count downwards, slices upwards."""
    ball = [Solid(Ellipse(20.0, 10.0, 40.0, 40.0, 0.0, 0.02), z=7.0, c=5.0)]
    pitch = 4 * 3.0 * 300 / 550
    views = turns(1, 60) + turns(1, 60, start=2.0, z=pitch)
    scan = Scan(ball, views, turn_views=60, central=(98.75, 2.0))
    dataset = opened(tmp_path, scan, size=24)
    heights = np.array([place.position[2] for place in dataset.placements])
    np.testing.assert_allclose(heights, (np.arange(8) - 2) * 3.0 * 300 / 550, atol=1e-5)
    sums = np.array([dataset.read(n).sum() for n in range(8)])
    # the sum of a parallel view is the area of the section, and of a fan nearly so
    inside = np.maximum(1 - ((heights - 7.0) / 5.0) ** 2, 0.0)
    np.testing.assert_allclose(sums / sums.max(), inside / inside.max(), atol=0.01)


def test_hu_come_from_the_files_water(tmp_path):
    water = [Solid(Ellipse(0.0, 0.0, 90.0, 90.0, 0.0, 0.021))]
    scan = Scan(water, FULL, turn_views=VIEWS, extra={"mu_water": "0.021"})
    dataset = opened(tmp_path, scan, size=32)
    assert dataset.mu_water == pytest.approx(0.021)
    assert dataset.preview(1)[12:20, 12:20].mean() == pytest.approx(0.0, abs=8.0)
    problem = dataset.problem([1], {"views": 40}, IntensityMap("hu", 1000.0), 0)
    assert problem.measurement.shape[2] == 40
    per_cm = opened(tmp_path / "cm", replace(scan, extra={"mu_water": "0.21"}))
    assert per_cm.mu_water == pytest.approx(0.021)
    assert any("per cm" in text for text in per_cm.warnings)
    missing = opened(tmp_path / "none", replace(scan, extra={"mu_water": None}))
    assert any("--mu-water" in text for text in missing.warnings)


def test_options_turn_and_mirror_what_was_read(tmp_path):
    dataset = opened(tmp_path, CASES["no position"])
    assert dataset.placements is None
    assert any("feet first" in text for text in dataset.warnings)
    picture = image(dataset, dataset.read(1))
    mirrored = dataset.with_changes(scan_direction="cw", scan_flip=True)
    np.testing.assert_allclose(
        image(mirrored, mirrored.read(1)), picture[:, ::-1], atol=2e-4 * picture.max()
    )
    turned = dataset.with_changes(scan_start=math.degrees(dataset.geometry.angles_rad[0]) + 90)
    np.testing.assert_allclose(
        image(turned, turned.read(1)), np.rot90(picture), atol=2e-3 * picture.max()
    )


def test_the_geometry_check_finds_files_that_count_columns_the_other_way(tmp_path):
    class Backwards(Scan):
        def projection(self, n):
            return super().projection(n)[:, ::-1]

    dataset = opened(tmp_path, Backwards(SOLIDS, FULL, turn_views=VIEWS, central=(100.5, 2.5)))
    best = dataset.check_geometry(1)[0]
    assert best.flip != best.reverse
    as_documented = opened(tmp_path / "right", scan_of()).check_geometry(1)[0]
    assert as_documented.unchanged


def test_a_scan_is_told_by_its_own_tags(tmp_path):
    folder = write_scan(tmp_path / "scan", scan_of(turns(1, 20)))
    assert open_input(str(folder)).kind == "sinogram"
    file = next(folder.iterdir())
    assert is_ct_pd(folder)
    assert is_ct_pd(file)
    header = pydicom.dcmread(file)
    assert is_ct_pd(header)
    for element in list(header):
        if element.tag.group in (0x7029, 0x7031):
            del header[element.tag]
    assert not is_ct_pd(header)
    header.save_as(tmp_path / "plain.dcm")
    assert not is_ct_pd(tmp_path / "plain.dcm")
    assert not is_ct_pd(tmp_path / "nothing here")


def test_only_the_projections_of_a_slice_are_read(tmp_path, monkeypatch):
    from engine.data.readers.ct_pd import fan as ct_pd_fan

    dataset = opened(tmp_path, CASES["helical"])
    seen = []
    plain = ct_pd_fan.read_rows
    monkeypatch.setattr(ct_pd_fan, "read_rows", lambda *args: (seen.append(args), plain(*args))[1])
    dataset.read(0)
    assert VIEWS <= len(seen) <= VIEWS + 8
    assert max(last - first + 1 for _, _, first, last in seen) <= 4


def test_nothing_said_names_the_patient_and_headers_carry_no_false_frame(tmp_path):
    dataset = opened(tmp_path, CASES["axial"])
    said = " ".join([*dataset.warnings, *(str(fact) for fact in dataset.facts)])
    assert "ecret" not in said
    assert "SECRET" not in said
    header = dataset.headers(0)
    assert header.PatientID == "SECRET-ID"
    assert "FrameOfReferenceUID" not in header
    assert "PixelData" not in header


def test_one_of_two_series_is_chosen_and_copies_count_once(tmp_path):
    folder = write_scan(tmp_path / "scan", scan_of(turns(1, 40)))
    write_scan(folder, scan_of(turns(1, 30), position="FFS"), series="1.2.3.2", first=1000)
    write_view(folder / "again.dcm", scan_of(turns(1, 40)), 7)
    (folder / "readme.dcm").write_text("not DICOM at all")
    dataset = open_ct_pd(folder, InputOptions())
    assert dataset.geometry.views == 40
    assert any("2 sets of projections" in text for text in dataset.warnings)
    assert any("1 projections are there twice" in text for text in dataset.warnings)
    assert any("1 files are not CT projections" in text for text in dataset.warnings)
    assert open_ct_pd(folder, InputOptions(dataset="1.2.3.2")).geometry.views == 30


def test_missing_projections_are_said_and_bridged(tmp_path):
    folder = write_scan(tmp_path / "scan", scan_of())
    for file in list(folder.iterdir()):
        if int(pydicom.dcmread(file, stop_before_pixels=True).InstanceNumber) in (40, 41, 42):
            file.unlink()
    dataset = open_ct_pd(folder, InputOptions())
    assert any("3 projections are missing" in text for text in dataset.warnings)
    assert off(dataset.read(1), line_integrals(BODY, dataset.geometry)) < 0.03
