"""Claims about the stack of slices behind demo:ct-volume."""

import numpy as np

from engine.data.source import open_input
from engine.physics.phantoms.stack import TorsoStack
from engine.spec.input_options import InputOptions


def test_a_stack_changes_smoothly_and_is_drawn_slice_by_slice():
    stack = TorsoStack(3, size=64, count=12)
    slices = np.stack([stack.image(n) for n in range(12)])
    assert (slices.dtype, slices.min()) == (np.float32, -1000)
    near, far = (np.abs(slices[k:] - slices[:-k]).mean() for k in (1, 6))
    assert 0 < near < far / 3
    again, other = TorsoStack(3, size=64, count=12), TorsoStack(4, size=64, count=12)
    assert np.array_equal(again.image(7), slices[7])
    assert not np.array_equal(other.image(7), slices[7])


def test_the_demo_volume_says_where_its_slices_are():
    dataset = open_input("demo:ct-volume", InputOptions(size=64))
    assert (len(dataset), dataset.image_size) == (60, (64, 64))
    steps = np.diff([placement.position[2] for placement in dataset.placements])
    assert np.allclose(steps, 3.0)
    assert dataset.sha256() != open_input("demo:ct-volume:8").sha256()
