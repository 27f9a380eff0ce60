"""Geometries for the tests of projectors: small, and unlike each other."""

from engine.physics.geometry import CTGeometry

GEOMETRIES = {
    "parallel, even": CTGeometry.sparse_view(20, 180, size=32),
    "parallel, odd": CTGeometry.sparse_view(13, 90, size=31, start_deg=10),
    "parallel, not square, other pitch": CTGeometry.sparse_view(
        17, 360, size=(24, 41), pixel_mm=0.7, pitch_mm=1.3
    ),
    "parallel, offsets": CTGeometry.sparse_view(
        17, 180, size=(41, 24), detector_offset_mm=2.3, centre_offset_mm=(3.1, -4.2)
    ),
    "parallel, unequal angles": CTGeometry("parallel", (16, 16), 1.0, (0.1, 2.0, -5.0), 24, 1.0),
    "fan, even": CTGeometry.sparse_view(20, 360, size=32, kind="fan"),
    "fan, odd and not square": CTGeometry.sparse_view(
        15, 200, size=(31, 45), kind="fan", pixel_mm=0.4
    ),
    "fan, wide, offsets": CTGeometry.sparse_view(
        16,
        360,
        size=(32, 27),
        kind="fan",
        source_origin_mm=40.0,
        detector_offset_mm=-3.0,
        centre_offset_mm=(-2.2, 1.7),
    ),
    "truncated": CTGeometry.sparse_view(9, 180, size=32, detectors=11),
}

N = 96

SCANS = {
    "parallel 180": CTGeometry.sparse_view(180, 180, size=N),
    "parallel 360": CTGeometry.sparse_view(240, 360, size=N),
    "parallel 360, odd number of views": CTGeometry.sparse_view(181, 360, size=N),
    "parallel, fine pitch": CTGeometry.sparse_view(180, 180, size=N, pitch_mm=0.6),
    "parallel, coarse pitch, small pixels": CTGeometry.sparse_view(
        180, 180, size=N, pixel_mm=0.8, pitch_mm=1.2
    ),
    "parallel, offsets": CTGeometry.sparse_view(
        180, 180, size=(N, N + 7), detector_offset_mm=3.3, centre_offset_mm=(5.2, -6.1)
    ),
    "fan 360": CTGeometry.sparse_view(240, 360, size=N, kind="fan"),
    "fan, other pitch and distances": CTGeometry.sparse_view(
        240,
        360,
        size=N,
        kind="fan",
        pixel_mm=0.7,
        pitch_mm=1.0,
        source_origin_mm=120.0,
        source_detector_mm=190.0,
    ),
    "fan, offsets": CTGeometry.sparse_view(
        240, 360, size=(N + 7, N), kind="fan", detector_offset_mm=2.3, centre_offset_mm=(-4.0, 3.0)
    ),
    "fan, short scan": CTGeometry.sparse_view(220, 220, size=N, kind="fan", start_deg=33),
    "fan, overscan": CTGeometry.sparse_view(290, 290, size=N, kind="fan"),
}
