"""Measured radial and spiral k-space: units, readers, coil maps, noise, thinning, faults."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import scipy.io
import torch

from engine.data.kspace.spokes import SpokesDataset, covered_block
from engine.data.kspace.trajectory import Trajectory
from engine.data.source import open_input
from engine.physics.fourier import to_complex
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.solvers.least_squares import damped_least_squares
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from tests.support.kspace_files import write_cfl
from tests.support.spokes_files import GOLDEN, blobs, direct, radial, spiral, write_mrd_paths

MR = IntensityMap("mr", 1.0)
N, COILS = 48, 8
KSPACE = InputOptions(kind="kspace")


@pytest.fixture(scope="module")
def image():
    return blobs(N)


@pytest.fixture(scope="module")
def maps():
    return birdcage_maps(COILS, N, N).numpy()


@pytest.fixture(scope="module")
def paths():
    return radial(32, 2 * N, N / 2)


@pytest.fixture(scope="module")
def samples(image, maps, paths):
    return direct(image * maps, paths).astype(np.complex64)


def solved(problem, steps=30):
    """SENSE with a small ridge, in the file's units."""
    operator, y = problem.operator, problem.measurement
    start = torch.zeros(len(y), *operator.image_shape)
    x = damped_least_squares(
        operator.forward,
        operator.adjoint,
        lambda r: r,
        y,
        start,
        1e-4,
        steps,
        precondition=operator.preconditioner(1e-4),
    )
    return to_complex(problem.physical(x))[:, 0].abs().numpy()


def error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def noisy(samples, sd, seed=0):
    rng = np.random.default_rng(seed)
    both = rng.standard_normal((2, *samples.shape))
    return (samples + sd * (both[0] + 1j * both[1])).astype(np.complex64)


def saved(path, samples, paths, **more):
    np.savez(path, kspace=samples, trajectory=paths, **more)
    return open_input(str(path), KSPACE)


# the image


def test_an_eight_coil_radial_phantom_comes_out_as_it_was(tmp_path, image, samples, paths):
    dataset = saved(tmp_path / "scan.npz", 40 * samples, paths)
    problem = dataset.problem([0], {}, MR, 0)
    assert problem.intensity.scale == pytest.approx(40 * np.quantile(image, 0.99), rel=0.05)
    assert error(solved(problem)[0], 40 * image) < 0.05
    assert [c.verdict for c in dataset.checks if c.name == "trajectory"] == ["good"]


def test_spirals_come_out_too(tmp_path, image, maps):
    arms = spiral(12, 400, N / 2, 4)
    dataset = saved(tmp_path / "scan.npz", direct(image * maps, arms).astype(np.complex64), arms)
    assert "curved" in next(f.value for f in dataset.facts if f.name == "trajectory")
    assert error(solved(dataset.problem([0], {}, MR, 0), 40)[0], image) < 0.06


def test_maps_from_a_file_are_used(tmp_path, image, maps, samples, paths):
    np.save(tmp_path / "maps.npy", maps)
    np.savez(tmp_path / "scan.npz", kspace=samples, trajectory=paths)
    options = InputOptions(kind="kspace", maps=str(tmp_path / "maps.npy"))
    dataset = open_input(str(tmp_path / "scan.npz"), options)
    problem = dataset.problem([0], {}, MR, 0)
    np.testing.assert_array_equal(problem.operator.maps[0].numpy(), maps)
    assert tmp_path / "maps.npy" in dataset.files
    assert error(solved(problem)[0], image) < 0.03


def test_the_noise_of_the_outer_samples_is_found(tmp_path, samples, paths):
    sd = 0.02
    dataset = saved(tmp_path / "scan.npz", noisy(samples, sd), paths)
    problem = dataset.problem([0], {}, MR, 0)
    assert float(problem.noise_sigma) * problem.intensity.scale == pytest.approx(sd, rel=0.1)
    assert problem.noise_origin == "estimated from k-space far from the centre"
    given = dataset.problem([0], {"kspace_noise": 0.03}, MR, 0)
    assert (given.noise_sigma, given.noise_origin) == (0.03, "given")
    assert torch.equal(given.measurement, problem.measurement)


def test_one_virtual_coil_needs_no_maps(tmp_path, samples, paths):
    np.savez(tmp_path / "scan.npz", kspace=samples, trajectory=paths)
    options = InputOptions(kind="kspace", coil_use="combine")
    problem = open_input(str(tmp_path / "scan.npz"), options).problem([0], {}, MR, 0)
    assert problem.measurement.shape[1] == 2
    assert problem.operator.maps is None


# thinning


def test_a_full_scan_that_is_thinned_has_a_reference(tmp_path, image, maps):
    paths = radial(76, 2 * N, N / 2)
    dataset = saved(tmp_path / "scan.npz", direct(image * maps, paths).astype(np.complex64), paths)
    problem = dataset.problem([0], {"acceleration": 4.0}, MR, 0)
    assert problem.measurement.shape[2] == 19
    assert problem.provenance["spokes"] == list(range(0, 76, 4))
    reference = to_complex(problem.physical(problem.reference))[0, 0].abs().numpy()
    assert error(reference, image) < 0.05
    assert problem.intensity.scale == pytest.approx(np.quantile(image, 0.99), rel=0.03)


def test_a_thin_scan_that_is_thinned_further_has_none(tmp_path, samples, paths):
    dataset = saved(tmp_path / "scan.npz", samples, paths)
    assert dataset.problem([0], {"acceleration": 2.0}, MR, 0).reference is None
    assert dataset.problem([0], {}, MR, 0).measurement.shape[2] == 32


def test_thinning_leaves_the_smallest_gap():
    even = Trajectory(radial(32, 20, 16), 32)
    assert even.kept(4.0).tolist() == list(range(0, 32, 4))
    golden = Trajectory(radial(34, 20, 16, GOLDEN), 32)
    assert golden.kept(34 / 13).tolist() == list(range(13))
    arms = Trajectory(spiral(12, 50, 16, 4), 32)
    assert arms.kept(3.0).tolist() == [0, 3, 6, 9]
    with pytest.raises(RequestError, match="--acceleration leaves 3"):
        even.kept(11.0)


@pytest.mark.parametrize(
    ("acquisition", "reason"),
    [({"mask": "random"}, "--mask"), ({"acs_lines": 4}, "--acs-lines"), ({"coils": 3}, "8 coils")],
)
def test_what_belongs_to_lines_is_refused(tmp_path, samples, paths, acquisition, reason):
    with pytest.raises(RequestError, match=reason):
        saved(tmp_path / "scan.npz", samples, paths).problem([0], acquisition, MR, 0)


# units


@pytest.mark.parametrize(
    ("factor", "unit"),
    [(1.0, "field of view"), (1 / N, "cycles per pixel"), (2 * np.pi / N, "radians per pixel")],
)
def test_the_unit_of_a_trajectory_is_detected_and_said(tmp_path, samples, paths, factor, unit):
    # the readout is oversampled twice: in pixels only --size says so
    options = InputOptions(kind="kspace", size=N)
    np.savez(tmp_path / "scan.npz", kspace=samples, trajectory=factor * paths)
    dataset = open_input(str(tmp_path / "scan.npz"), options)
    fact = next(f for f in dataset.facts if f.name == "trajectory unit")
    assert unit in fact.value
    assert "detected" in fact.origin
    np.testing.assert_allclose(dataset.read_slice(0).trajectory.positions, paths, atol=1e-9)
    assert dataset.image_size == (N, N)


def test_without_a_size_the_samples_tell_how_far_the_scan_sees(tmp_path, samples, paths):
    dataset = saved(tmp_path / "scan.npz", samples, paths / N)
    assert dataset.image_size == (2 * N, 2 * N)


def test_a_trajectory_that_does_not_belong_to_the_data_is_doubted(tmp_path, samples, paths):
    dataset = saved(tmp_path / "scan.npz", samples, np.roll(paths, 9, axis=2))
    dataset.problem([0], {}, MR, 0)
    check = next(c for c in dataset.checks if c.name == "trajectory")
    assert check.verdict == "doubtful"
    assert any("gradient delays" in warning for warning in dataset.warnings)


def test_a_phase_across_the_image_is_no_delay():
    # golden angles, and every other spoke measured the other way round
    there = radial(40, 96, 24, GOLDEN)
    there[:, ::2] = there[:, ::2, ::-1]
    shifted = Trajectory(there, 48).distance_of_echo(
        np.exp(-np.square(np.hypot(there[0] - 3, there[1] + 2)))
    )
    late = np.exp(-np.square(np.hypot(*np.roll(there, 5, axis=2))))
    assert shifted < 0.3
    assert Trajectory(there, 48).distance_of_echo(late) == pytest.approx(2.5, abs=0.3)


def test_the_block_for_coil_maps_grows_with_the_spokes():
    sides = [
        int(covered_block(Trajectory(radial(spokes, 96, 24), 48)).any(axis=0).sum())
        for spokes in (6, 12, 48)
    ]
    assert sides == sorted(sides)
    assert sides[0] < 10
    assert sides[2] == 24


# files


@pytest.mark.parametrize("layout", ["coil first", "coil last", "readouts first", "flat"])
def test_the_order_of_the_axes_is_found(tmp_path, samples, paths, layout):
    data, positions = {
        "coil first": (samples, np.moveaxis(paths, 0, -1)),
        "coil last": (np.moveaxis(samples, 0, -1), paths[0] + 1j * paths[1]),
        "readouts first": (samples.T, np.swapaxes(paths, 1, 2)),
        "flat": (samples.reshape(COILS, -1), paths.reshape(2, -1)),
    }[layout]
    part = saved(tmp_path / "scan.npz", data, positions).read_slice(0)
    shape = (1, -1) if layout == "flat" else samples.shape[1:]
    np.testing.assert_array_equal(part.kspace, samples.reshape(COILS, *shape))
    np.testing.assert_allclose(part.trajectory.positions, paths.reshape(2, *shape), atol=1e-5)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mat", ".h5", ".cfl"])
def test_a_trajectory_is_read_from_a_file_of_its_own(tmp_path, samples, paths, suffix):
    np.save(tmp_path / "scan.npy", samples)
    file = tmp_path / f"where{suffix}"
    if suffix == ".npy":
        np.save(file, paths)
    elif suffix == ".npz":
        np.savez(file, traj=paths, other=np.zeros((4, 4)))
    elif suffix == ".mat":
        scipy.io.savemat(file, {"k": paths[0] + 1j * paths[1]})
    elif suffix == ".h5":
        with h5py.File(file, "w") as h5:
            h5["trajectory"] = np.concatenate((paths, 0 * paths[:1]))
    else:
        write_cfl(tmp_path / "where", np.concatenate((paths, 0 * paths[:1])))
    for name in (file.name, str(file)):
        dataset = open_input(str(tmp_path / "scan.npy"), InputOptions(trajectory=name))
        part = dataset.read_slice(0)
        np.testing.assert_array_equal(part.kspace, samples)
        np.testing.assert_allclose(part.trajectory.positions, paths, atol=1e-5)
        assert file in dataset.files


@pytest.mark.parametrize("suffix", [".mat", ".h5"])
def test_samples_and_trajectory_lie_in_one_file(tmp_path, samples, paths, suffix):
    file = tmp_path / f"scan{suffix}"
    if suffix == ".mat":
        scipy.io.savemat(file, {"rawdata": samples, "k": paths[0] + 1j * paths[1]})
        options = InputOptions(dataset="rawdata", trajectory="k")
    else:  # as the reproducibility study of the ISMRM stores its scans
        with h5py.File(file, "w") as h5:
            h5["rawdata"] = samples.transpose(2, 1, 0)[None]
            h5["trajectory"] = np.concatenate((paths, 0 * paths[:1])).transpose(0, 2, 1)
        options = InputOptions(kind="kspace", dataset="rawdata")
    part = open_input(str(file), options).read_slice(0)
    np.testing.assert_array_equal(part.kspace, samples)
    np.testing.assert_allclose(part.trajectory.positions, paths, atol=1e-5)


def test_axes_and_slices_of_an_array_can_be_named(tmp_path, samples, paths):
    pairs = np.stack((samples, 2 * samples))
    pairs = np.stack((pairs.real, pairs.imag), axis=-1)
    np.save(tmp_path / "scan.npy", pairs)
    np.save(tmp_path / "where.npy", paths)
    axes = "slice,coil,spoke,sample,complex"
    options = InputOptions(trajectory="where.npy", axes=axes)
    dataset = open_input(str(tmp_path / "scan.npy"), options)
    assert len(dataset) == 2
    np.testing.assert_array_equal(dataset.read_slice(1).kspace, 2 * samples)
    problem = dataset.problem([0, 1], {}, MR, 0)
    assert problem.measurement.shape == (2, 2 * COILS, *paths.shape[1:])


@pytest.mark.parametrize("named", [None, "where.cfl"])
def test_bart_samples_and_positions_are_read(tmp_path, samples, paths, named):
    path = write_cfl(
        tmp_path / "scan",
        np.stack((samples, 3 * samples)).T.reshape(1, *samples.T.shape, *9 * (1,), 2),
    )
    positions = np.concatenate((paths, 0 * paths[:1])).swapaxes(1, 2)
    write_cfl(tmp_path / ("traj" if named is None else "where"), positions)
    dataset = open_input(str(path), InputOptions(trajectory=named))
    assert isinstance(dataset, SpokesDataset)
    assert len(dataset) == 2
    assert len(dataset.files) == 4
    np.testing.assert_array_equal(dataset.read_slice(1).kspace, 3 * samples)
    np.testing.assert_allclose(dataset.read_slice(0).trajectory.positions, paths, atol=1e-5)


def test_bart_maps_of_a_radial_scan_are_used(tmp_path, maps, samples, paths):
    path = write_cfl(tmp_path / "scan", samples.T[None])
    write_cfl(tmp_path / "traj", np.concatenate((paths, 0 * paths[:1])).swapaxes(1, 2))
    write_cfl(tmp_path / "sens", maps.transpose(1, 2, 0)[:, :, None])
    dataset = open_input(str(path), InputOptions(dataset="sens"))
    np.testing.assert_allclose(dataset.read_slice(0).maps, maps, atol=1e-6)


@pytest.mark.parametrize("unit", ["pixel", "fov"])
def test_ismrmrd_acquisitions_bring_their_trajectory(tmp_path, image, samples, paths, unit):
    positions = paths / N if unit == "pixel" else paths
    path = write_mrd_paths(tmp_path / "scan.h5", samples, positions, fov=192.0, matrix=N)
    dataset = open_input(str(path))
    assert isinstance(dataset, SpokesDataset)
    assert dataset.pixel_mm == pytest.approx((4.0, 4.0))
    part = dataset.read_slice(0)
    np.testing.assert_array_equal(part.kspace, samples)
    np.testing.assert_allclose(part.trajectory.positions, paths, atol=1e-4)
    assert error(solved(dataset.problem([0], {}, MR, 0))[0], image) < 0.05


def test_noise_scans_of_a_radial_file_give_the_noise(tmp_path, samples, paths):
    noise = noisy(np.zeros((COILS, 4096), np.complex64), 0.02, seed=5)
    path = write_mrd_paths(
        tmp_path / "scan.h5", noisy(samples, 0.02), paths / N, matrix=N, noise=noise
    )
    problem = open_input(str(path)).problem([0], {}, MR, 0)
    assert problem.noise_origin == "noise scans of the file"
    assert float(problem.noise_sigma) * problem.intensity.scale == pytest.approx(0.02, rel=0.03)


# faults


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: np.where(p > 20, np.nan, p), "NaN"),
        (lambda p: 1e30 * p, "no usual unit"),
        (lambda p: 0 * p, "no usual unit"),
        (lambda p: p / N * 3, "no usual unit"),
        (lambda p: p[:, :-1], "do not fit"),
        (lambda p: p[:1], "2 or 3 components"),
        (lambda p: np.concatenate((p, p[:1])), "3-D trajectory"),
        (lambda p: p.astype("S4"), "no trajectory"),
        (lambda p: p[:, :1, :1], "components, spokes and samples"),
    ],
)
def test_an_impossible_trajectory_is_one_sentence(tmp_path, samples, paths, spoil, reason):
    np.save(tmp_path / "scan.npy", samples)
    np.save(tmp_path / "where.npy", spoil(paths))
    options = InputOptions(kind="kspace", trajectory="where.npy")
    with pytest.raises(RequestError, match=reason) as caught:
        open_input(str(tmp_path / "scan.npy"), options).problem([0], {}, MR, 0)
    assert "\n" not in str(caught.value)


def test_a_trajectory_that_is_not_there_is_said(tmp_path, samples):
    np.save(tmp_path / "scan.npy", samples)
    with pytest.raises(RequestError, match="neither an array"):
        open_input(str(tmp_path / "scan.npy"), InputOptions(trajectory="nowhere.npy"))


def test_empty_and_broken_samples_are_refused(tmp_path, samples, paths):
    with pytest.raises(RequestError, match="is empty"):
        saved(tmp_path / "a.npz", 0 * samples, paths).problem([0], {}, MR, 0)
    with pytest.raises(RequestError, match="NaN"):
        saved(tmp_path / "b.npz", samples * np.nan, paths).problem([0], {}, MR, 0)


def test_ismrmrd_paths_without_positions_are_refused(tmp_path, samples, paths):
    path = write_mrd_paths(tmp_path / "scan.h5", samples, paths[:1], matrix=N)
    with pytest.raises(RequestError, match="a radial trajectory, but not every acquisition"):
        open_input(str(path))


def test_curved_paths_in_pixels_need_a_size(tmp_path, samples):
    arms = spiral(32, 2 * N, 0.5, 5)
    with pytest.raises(RequestError, match="--size N"):
        saved(tmp_path / "scan.npz", samples, arms)
