"""From one format through another and back: the numbers and their places stay."""

import numpy as np
import pytest
import torch
from dicom_files import write_series

from engine.data.source import open_input
from engine.export import Result, write_outputs
from engine.physics.units import IntensityMap
from engine.spec.input_options import InputOptions

OBLIQUE = (0.36, -0.48, 0.8)  # the normal of the rows and columns below
TURNED = [0.8, 0.6, 0.0, -0.48, 0.64, 0.6]


def as_result(dataset):
    """The images themselves as the result of a reconstruction."""
    intensity = IntensityMap("hu", 1000.0)
    problem = dataset.problem(range(len(dataset)), {}, intensity, 0)
    return Result(problem, problem.reference, dataset=dataset)


def assert_same(first, second):
    assert len(first) == len(second)
    pairs = list(range(len(first)))
    height = np.array([np.dot(p.position, first.placements[0].normal) for p in second.placements])
    order = np.argsort(height) if height[0] != height[-1] else pairs
    for number, other in zip(pairs, order, strict=True):
        a, b = first.placements[number], second.placements[other]
        for name in ("position", "along_row", "along_column", "spacing_mm"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-4)
        np.testing.assert_allclose(first.read(number), second.read(other), atol=0.5)


@pytest.mark.parametrize(
    ("orientation", "normal"),
    [([1.0, 0, 0, 0, 1, 0], (0.0, 0.0, 1.0)), (TURNED, np.cross(TURNED[:3], TURNED[3:]))],
)
def test_dicom_to_nifti_to_dicom(orientation, normal, tmp_path):
    source = tmp_path / "source"
    write_series(source, [0.0, 2.5, 5.0], direction=normal, ImageOrientationPatient=orientation)
    original = open_input(str(source))
    volume = tmp_path / "volume.nii.gz"
    write_outputs([volume], as_result(original))
    between = open_input(str(volume), InputOptions(unit="hu"))
    write_outputs([tmp_path / "back"], as_result(between))
    back = open_input(str(tmp_path / "back"))
    assert_same(original, between)
    assert_same(original, back)


def test_a_shrunk_image_keeps_its_place_and_its_mean(tmp_path):
    write_series(tmp_path / "s", [0.0], pixels={}, PixelSpacing=[0.5, 0.5])
    whole = open_input(str(tmp_path / "s"))
    rows, columns = whole.image_size
    np.save(tmp_path / "even.npy", whole.read(0)[: rows // 2 * 2, : columns // 2 * 2][:32, :32])
    options = InputOptions(unit="hu", pixel_mm=0.5)
    fine = open_input(str(tmp_path / "even.npy"), options)
    coarse = open_input(str(tmp_path / "even.npy"), InputOptions(unit="hu", pixel_mm=0.5, size=16))
    assert coarse.image_size == (16, 16)
    assert coarse.pixel_mm == (1.0, 1.0)
    expected = torch.nn.functional.avg_pool2d(torch.from_numpy(fine.read(0))[None], 2)[0]
    np.testing.assert_allclose(coarse.read(0), expected, atol=1e-3)
