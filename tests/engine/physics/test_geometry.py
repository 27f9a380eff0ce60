"""A CT geometry validates itself, survives JSON, and places rays where the convention says."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from engine.physics.geometry import CTGeometry
from engine.spec.errors import RequestError


def test_sparse_view_leaves_the_end_point_out():
    geometry = CTGeometry.sparse_view(20, 180, start_deg=3)
    expected = np.radians(3 + 9 * np.arange(20))
    np.testing.assert_allclose(geometry.angles_rad, expected, atol=1e-12)


def test_default_detector_covers_the_diagonal():
    assert CTGeometry.sparse_view(20).detectors == 363
    assert CTGeometry.sparse_view(20, pixel_mm=0.7).detectors == 363
    assert CTGeometry.sparse_view(20, size=(30, 40), pitch_mm=0.5).detectors == 100


def test_default_fan_detector_sees_every_corner_in_every_view():
    geometry = CTGeometry.sparse_view(
        36, 360, size=(40, 60), kind="fan", detector_offset_mm=2.0, centre_offset_mm=(3.0, -1.0)
    )
    edge = geometry.pitch_mm / 2
    low, high = geometry.detector_mm()[0] - edge, geometry.detector_mm()[-1] + edge
    x = np.array([-30, 30, -30, 30])[None, :] - 3.0
    y = np.array([-20, -20, 20, 20])[None, :] + 1.0
    t = np.array(geometry.angles_rad)[:, None]
    depth = geometry.source_origin_mm + y * np.cos(t) - x * np.sin(t)
    s = (x * np.cos(t) + y * np.sin(t)) * geometry.source_detector_mm / depth
    assert low <= s.min()
    assert s.max() <= high


def test_json_round_trip_gives_an_equal_geometry_and_fingerprint():
    for kind in ("parallel", "fan"):
        geometry = CTGeometry.sparse_view(7, 123.4, kind=kind, size=(31, 20), pixel_mm=1 / 3)
        again = CTGeometry.from_dict(json.loads(json.dumps(geometry.to_dict())))
        assert again == geometry
        assert again.fingerprint() == geometry.fingerprint()


def test_fingerprint_does_not_depend_on_how_numbers_were_written():
    plain = CTGeometry("parallel", (8, 8), 1.0, (0.0, 1.0), 12, 1.0)
    other = CTGeometry("parallel", [8, 8], 1, np.array([-0.0, 1.0]), np.int64(12), np.float64(1))
    assert plain.fingerprint() == other.fingerprint()
    assert hash(plain) == hash(other)


def test_fingerprint_changes_with_every_field():
    geometry = CTGeometry.sparse_view(7, kind="fan", size=16)
    changes = {
        "image_size": (16, 17),
        "pixel_mm": 0.9,
        "angles_rad": (0.1,),
        "detectors": 9,
        "pitch_mm": 1.1,
        "detector_offset_mm": 0.5,
        "centre_offset_mm": (0.0, 0.5),
        "source_origin_mm": 41.0,
        "source_detector_mm": 99.0,
    }
    seen = {geometry.fingerprint()}
    for name, value in changes.items():
        seen.add(dataclasses.replace(geometry, **{name: value}).fingerprint())
    assert len(seen) == len(changes) + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "cone"}, "'parallel' or 'fan'"),
        ({"image_size": (0, 8)}, "image rows"),
        ({"image_size": 8}, "image size"),
        ({"pixel_mm": -1.0}, "pixel size must be positive"),
        ({"pixel_mm": math.nan}, "pixel size must be finite"),
        ({"angles_rad": ()}, "view angles"),
        ({"angles_rad": (0.0, math.inf)}, "not finite"),
        ({"angles_rad": "north"}, "must be numbers"),
        ({"detectors": 2.5}, "number of detectors"),
        ({"pitch_mm": "wide"}, "detector pitch must be a number"),
        ({"centre_offset_mm": (1.0,)}, "two numbers"),
        ({"kind": "fan"}, "needs the source"),
    ],
)
def test_a_bad_value_is_named_in_one_sentence(change, words):
    values = CTGeometry.sparse_view(3, size=8).to_dict() | change
    with pytest.raises(RequestError, match=words):
        CTGeometry.from_dict(values)


def test_unknown_and_missing_fields_are_refused():
    values = CTGeometry.sparse_view(3, size=8).to_dict()
    with pytest.raises(RequestError, match="'colour'"):
        CTGeometry.from_dict(values | {"colour": 1})
    del values["pitch_mm"]
    with pytest.raises(RequestError, match="pitch_mm"):
        CTGeometry.from_dict(values)


def test_a_source_inside_the_image_is_refused():
    with pytest.raises(RequestError, match="inside the image"):
        CTGeometry.sparse_view(3, kind="fan", size=100, source_origin_mm=60.0)


def test_a_detector_in_front_of_the_centre_is_refused():
    with pytest.raises(RequestError, match="in front of"):
        CTGeometry.sparse_view(
            3, kind="fan", size=10, source_origin_mm=60.0, source_detector_mm=50.0
        )


@pytest.mark.parametrize("span", [0, -10, 361, math.nan])
def test_the_angular_range_is_between_0_and_360_degrees(span):
    with pytest.raises(RequestError, match="angular range"):
        CTGeometry.sparse_view(3, span)


@pytest.mark.parametrize(
    ("views", "degrees", "wedge"),
    [
        (90, 90.0, True),
        (75, 150.0, True),
        (20, 180.0, False),
        (40, 360.0, False),
        (41, 360.0, False),
        (200, 200.0, False),
        (3, 180.0, False),
        (1, 180.0, False),
    ],
)
def test_a_scan_knows_whether_it_leaves_a_wedge_unseen(views, degrees, wedge):
    assert CTGeometry.sparse_view(views, degrees, size=32).is_limited_angle() is wedge


def test_a_wedge_is_found_whatever_the_order_of_the_views():
    angles = np.deg2rad([80, 10, 200, 40, 250, 20, 60, 0, 50, 30])
    geometry = dataclasses.replace(
        CTGeometry.sparse_view(10, 90.0, size=32), angles_rad=tuple(angles)
    )
    assert geometry.is_limited_angle()
