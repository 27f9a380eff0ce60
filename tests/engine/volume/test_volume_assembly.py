"""Stored slices become one volume, in physical units, and its quality is told along every axis."""

import numpy as np
import pytest
from volume_runs import plan_of, run_volume, small_job, small_stack

from engine.data.source import open_input
from engine.physics.phantoms import brain_mr
from engine.spec.errors import RequestError
from engine.workflows.volume.assemble import Volume, export
from engine.workflows.volume.axes import flicker, metrics_by_axis
from engine.workflows.volume.batches import SliceContext
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.slice_file import slice_name


@pytest.fixture
def made(tmp_path):
    plan = plan_of(small_job(small_stack(tmp_path / "in.npy", count=12)))
    run_volume(tmp_path / "v", plan)
    return VolumeFolder.open(tmp_path / "v")


def test_the_volume_is_mapped_once_in_hounsfield_units(tmp_path, made):
    values = Volume(made).values
    assert values.shape == (12, 64, 64)
    assert isinstance(values, np.memmap)
    third = made.read(3)
    assert np.array_equal(values[3], third.intensity.to_physical(third.image)[0].numpy())
    assert np.allclose(Volume(made).reference, np.load(tmp_path / "in.npy"), atol=0.01)
    (path,) = made.path.glob("volume-*.npy")
    stamp = path.stat().st_mtime_ns
    assert np.array_equal(Volume(VolumeFolder.open(made.path)).values, values)
    assert path.stat().st_mtime_ns == stamp


def test_an_incomplete_volume_is_not_assembled(made):
    (made.path / slice_name(5)).unlink()
    with pytest.raises(RequestError, match="1 slices are missing"):
        Volume(VolumeFolder.open(made.path))


def test_every_export_holds_the_same_volume(tmp_path, made):
    volume, bench = Volume(made), SliceContext(made.plan.job)
    facts = volume.facts()
    names = ["o.npy", "o.nii.gz", "o.h5", "series"]
    export(volume, bench, [tmp_path / name for name in names], facts)
    assert np.array_equal(np.load(tmp_path / "o.npy"), volume.values)
    assert sorted(p.name for p in (tmp_path / "series").iterdir())[-1] == "IM0012.dcm"
    for name, tolerance in (("o.nii.gz", 0), ("o.h5", 1e-3), ("series", 0.51)):
        opened = open_input(str(tmp_path / name))
        assert len(opened) == 12
        wanted = volume.values
        if name == "series":  # what DICOM images have below air is air when they are opened
            wanted = np.where(np.round(wanted) < -1024, -1000, wanted)
        order = range(12) if np.abs(opened.preview(0) - wanted[0]).max() < 1 else range(11, -1, -1)
        for n, m in enumerate(order):
            assert np.abs(opened.preview(n) - wanted[m]).max() <= tolerance


def test_mr_slices_keep_their_own_scale(tmp_path):
    stack = np.stack([k * brain_mr(seed=1, size=64).image for k in (1, 2, 40)])
    np.save(tmp_path / "mr.npy", stack)
    job = small_job(tmp_path / "mr.npy", options={}, acquisition={"acceleration": 2.0})
    run_volume(tmp_path / "v", plan_of(job))
    folder = VolumeFolder.open(tmp_path / "v")
    volume = Volume(folder)
    means = volume.values.mean(axis=(1, 2))
    assert means[2] / means[0] == pytest.approx(40, rel=0.1)  # each with noise of its own
    assert np.allclose(volume.reference, np.abs(stack), rtol=1e-4, atol=1e-3)
    export(volume, SliceContext(job), [tmp_path / "o.h5", tmp_path / "o.npy"], volume.facts())
    again = open_input(str(tmp_path / "o.h5"))
    assert np.allclose(again.preview(2), np.load(tmp_path / "o.npy")[2], rtol=1e-4, atol=1e-3)


def test_metrics_are_told_along_all_three_axes(made):
    facts = Volume(made).facts()
    assert facts["axes"]["profile"] == "ct-dcpnpdp"
    axial = np.mean([one["psnr"] for one in facts["slices"]])
    assert facts["axes"]["axial"]["psnr"] == pytest.approx(axial, abs=1e-3)
    assert facts["axes"]["axial"]["planes"] == 12
    assert 0 < facts["axes"]["coronal"]["planes"] <= 64
    assert facts["axes"]["sagittal"]["ssim"] < 1
    assert [one["number"] for one in facts["slices"]] == list(range(12))


def test_thin_volumes_have_axial_metrics_only():
    flat = np.random.default_rng(0).normal(size=(4, 64, 64)).astype(np.float32)
    assert [one.axis for one in metrics_by_axis("CT", flat, flat * 0.9)] == ["axial"]


def test_flicker_is_the_error_that_changes_from_slice_to_slice():
    rng = np.random.default_rng(0)
    truth = np.cumsum(rng.normal(size=(200, 16, 16)), axis=0)
    same, noise = rng.normal(size=(16, 16)), 5 * rng.normal(size=truth.shape)
    assert flicker(truth + 30 * same, truth) == pytest.approx(0, abs=1e-9)
    assert flicker(truth + noise, truth) == pytest.approx(5, rel=0.02)
    assert flicker(noise) == pytest.approx(5, rel=0.02)
    assert flicker(np.arange(6)[:, None, None] * np.ones((6, 4, 4))) == 0  # a slope is no flicker
    assert flicker(noise[:1], noise[:1]) is None
    assert flicker(noise[:2]) is None
