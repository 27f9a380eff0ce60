"""Measured k-space as a problem: the same image as the direct path, masks kept, scale estimated."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import relative
from kspace_files import fft2, ifft2

from engine.data.kspace.grid import is_complete, line_gaps, measured_samples
from engine.data.readers.kspace.arrays import open_kspace_array
from engine.physics.fourier import to_channels
from engine.physics.masks import build_mask
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps
from engine.physics.simulate import Slices, simulate_mri
from engine.physics.units import IntensityMap
from engine.spec.acquisition import MRIAcquisition
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

MR = IntensityMap("mr")


@pytest.fixture(scope="module")
def image():
    """Neither square nor symmetric, so that no flip or transposition goes unseen."""
    return 40 * brain_mr(seed=3, size=96).image[:, 8:88]


@pytest.fixture(scope="module")
def coils():
    return birdcage_maps(6, 96, 80).numpy()


def dataset_of(kspace, axes="read,phase", maps=None, **options):
    return open_kspace_array(kspace, Path("scan.npy"), InputOptions(axes=axes, **options), maps)


def channels(image):
    return to_channels(torch.from_numpy(np.ascontiguousarray(image))[None, None])


def direct(image, seed=0, **acquisition):
    slices = Slices(channels(image), "MR", 1.0)
    return simulate_mri(slices, MRIAcquisition(**acquisition), seed)


def test_full_kspace_is_the_problem_of_the_image_itself(image):
    dataset = dataset_of(fft2(image))
    for asked in ({}, {"acceleration": 4.0, "mask": "random"}):
        problem = dataset.problem([0], asked, MR, seed=5)
        expected = direct(image, seed=5, **asked)
        assert problem.intensity.scale == pytest.approx(expected.intensity.scale, rel=1e-5)
        assert relative(problem.measurement, expected.measurement) < 1e-5
        assert relative(problem.reference, expected.reference) < 1e-5
        assert problem.operator.mask == expected.operator.mask
        assert problem.provenance["retrospective"]
    defaults = {fact.name: fact for fact in dataset_of(fft2(image)).facts}
    assert "mask" not in defaults  # not yet said
    assert next(f for f in dataset.facts if f.name == "mask").origin == "option"
    assert [f.name for f in dataset.facts].count("MR scale") == 1


def test_the_default_undersampling_is_said(image):
    dataset = dataset_of(fft2(image))
    dataset.problem([0], {}, MR, seed=0)
    fact = next(f for f in dataset.facts if f.name == "mask")
    assert "inversebench" in fact.value
    assert fact.origin.startswith("default")


def test_an_undersampled_file_keeps_its_own_mask(image):
    sampled = build_mask("fastmri", 80, 4).sampled
    dataset = dataset_of(fft2(image) * sampled)
    problem = dataset.problem([0], {}, MR, seed=0)
    assert problem.reference is None
    assert np.array_equal(problem.operator.mask.sampled, sampled)
    assert np.array_equal(dataset.mask(0).sampled, sampled)
    assert not problem.provenance["retrospective"]
    physical = problem.physical(problem.operator.pseudo_inverse(problem.measurement))
    assert relative(physical, channels(ifft2(fft2(image) * sampled).astype(np.complex64))) < 1e-5


def test_more_acceleration_keeps_only_lines_that_were_measured(image):
    sampled = build_mask("fastmri", 80, 3).sampled
    dataset = dataset_of(fft2(image) * sampled)
    problem = dataset.problem([0], {"acceleration": 4.0, "mask": "fastmri"}, MR, seed=0)
    wanted = build_mask("fastmri", 80, 4).sampled
    assert np.array_equal(problem.operator.mask.sampled, sampled & wanted)
    assert any("measured lines are used" in warning for warning in dataset.warnings)
    kept = dataset.problem([0], {"acceleration": 1.5}, MR, seed=0)
    assert np.array_equal(kept.operator.mask.sampled, sampled)
    assert any("takes nothing away" in warning for warning in dataset.warnings)


def test_a_mask_that_meets_none_of_the_measured_lines_is_refused(image):
    sampled = np.zeros(80, bool)
    sampled[1::2] = True
    sampled[38:42] = True
    dataset = dataset_of(fft2(image) * sampled)
    asked = {"acceleration": 8.0, "mask": "equispaced"}
    with pytest.raises(RequestError, match="measured lines belong"):
        dataset.problem([0], asked, MR, seed=0)


def test_slices_with_different_masks_are_refused(image):
    masks = [build_mask("random", 80, 3, seed=seed).sampled for seed in (0, 1)]
    kspace = np.stack([fft2(image) * mask for mask in masks])
    dataset = dataset_of(kspace, "slice,read,phase")
    with pytest.raises(RequestError, match="slices 0 and 1 were sampled on different lines"):
        dataset.problem([0, 1], {}, MR, seed=0)
    assert dataset.problem([1], {}, MR, seed=0).slices == (1,)


def test_partial_fourier_is_a_mask_not_a_full_scan(image):
    sampled = np.arange(80) >= 20
    problem = dataset_of(fft2(image) * sampled).problem([0], {}, MR, seed=0)
    assert problem.reference is None
    assert np.array_equal(problem.operator.mask.sampled, sampled)


def test_zero_filled_margins_on_both_sides_still_are_a_full_scan(image):
    sampled = (np.arange(80) >= 5) & (np.arange(80) < 75)
    problem = dataset_of(fft2(image) * sampled).problem([0], {"acceleration": 3.0}, MR, seed=0)
    wanted = build_mask("inversebench", 80, 3).sampled
    assert np.array_equal(problem.operator.mask.sampled, sampled & wanted)
    blurred = ifft2(fft2(image) * sampled).astype(np.complex64)
    assert relative(problem.physical(problem.reference), channels(blurred)) < 1e-5


@pytest.mark.parametrize(("name", "acceleration"), [("inversebench", 6), ("fastmri", 6)])
def test_the_scale_of_undersampled_data_is_close_to_the_true_one(name, acceleration):
    """A mean bias of a few per cent, and never more than a tenth, for several heads."""
    ratios = []
    for seed in range(3):
        image = brain_mr(seed=seed, size=256).image
        kspace = fft2(image) * build_mask(name, 256, acceleration).sampled
        problem = dataset_of(kspace).problem([0], {}, MR, seed=0)
        ratios.append(problem.intensity.scale / direct(image).intensity.scale)
        assert problem.provenance["scale"] == problem.intensity.scale
    assert np.mean(ratios) == pytest.approx(0.97, abs=0.03)
    assert 0.9 < min(ratios) < max(ratios) < 1.1


def test_sense_with_the_files_own_maps_has_the_image_as_its_reference(image, coils):
    kspace, axes = fft2(coils * image), "coil,read,phase"
    dataset = dataset_of(kspace, axes, maps=coils)
    problem = dataset.problem([0], {"acceleration": 3.0}, MR, seed=0)
    assert problem.operator.kind == "mri-multi-coil"
    assert relative(problem.physical(problem.reference), channels(image)) < 1e-4
    again = problem.operator.forward(problem.reference)
    assert relative(again, problem.measurement) < 1e-4
    assert problem.provenance["maps"] == "from the file"


def test_sense_with_estimated_maps_explains_the_measurement(image, coils):
    sampled = build_mask("equispaced", 80, 3, acs_lines=18).sampled
    dataset = dataset_of(fft2(coils * image) * sampled, "coil,read,phase")
    problem = dataset.problem([0], {}, MR, seed=0)
    assert (
        problem.provenance["maps"] == "ESPIRiT-style, from 19 central lines"
    )  # 18 and a neighbour
    # the image up to the maps' own phase: S^H (S_true x), with the sum of |S|^2 being 1
    maps = problem.operator.maps[0].numpy()
    seen = (maps.conj() * coils * image).sum(axis=0)
    again = problem.operator.forward(channels(seen.astype(np.complex64)))
    assert relative(again, problem.measurement * problem.intensity.scale) < 0.03


def test_combining_a_full_scan_is_an_emulation_and_says_so(image, coils):
    dataset = dataset_of(fft2(coils * image), "coil,read,phase", maps=coils, coil_use="combine")
    problem = dataset.problem([0], {"acceleration": 3.0}, MR, seed=0)
    expected = direct(image, acceleration=3.0)
    assert problem.operator.kind == "mri-single-coil"
    assert relative(problem.reference, expected.reference) < 1e-4
    assert relative(problem.measurement, expected.measurement) < 1e-4
    assert problem.provenance["emulated_single_coil"]
    assert any("emulation" in warning for warning in dataset.warnings)


def test_combining_an_undersampled_scan_keeps_one_virtual_coil_and_says_what_is_lost(image, coils):
    sampled = build_mask("fastmri", 80, 3).sampled
    kspace = fft2(coils * image) * sampled
    dataset = dataset_of(kspace, "coil,read,phase", coil_use="combine")
    problem = dataset.problem([0], {}, MR, seed=0)
    flat = kspace.reshape(6, -1)
    values = np.linalg.eigvalsh(flat @ flat.conj().T)
    energy = float(problem.measurement.square().sum()) * problem.intensity.scale**2
    assert energy == pytest.approx(values[-1], rel=1e-3)
    assert any("of the energy of 6 coils" in warning for warning in dataset.warnings)
    assert problem.reference is None


def test_a_mask_without_a_centre_takes_maps_from_the_full_data_and_says_so(image, coils):
    dataset = dataset_of(fft2(coils * image), "coil,read,phase")
    dataset.problem([0], {"acceleration": 3.0, "mask": "equispaced"}, MR, seed=0)
    assert any("too few central lines" in warning for warning in dataset.warnings)


def test_few_coils_hold_most_of_many(image, coils):
    """Six coils on a ring are nearly four: the image stays, whatever the maps come from."""
    for maps in (None, coils):
        dataset = dataset_of(fft2(coils * image), "coil,read,phase", maps=maps)
        dataset.take(InputOptions(virtual_coils=4))
        problem = dataset.problem([0], {"acceleration": 2.0, "acs_lines": 24}, MR, seed=0)
        assert problem.measurement.shape[1] == 8
        seen = problem.physical(problem.reference)[0]
        inside = np.abs(image) > 4
        magnitude, truth = np.hypot(*seen.numpy())[inside], np.abs(image)[inside]
        assert np.linalg.norm(magnitude - truth) < 0.02 * np.linalg.norm(truth)
        fact = next(fact for fact in dataset.facts if fact.value.startswith("6, compressed to 4"))
        assert "99." in fact.value or "100" in fact.value


def test_the_scale_can_be_given(image):
    dataset = dataset_of(fft2(image))
    dataset.take(InputOptions(mr_scale=12.5))
    problem = dataset.problem([0], {"acceleration": 2.0}, MR, seed=0)
    assert problem.intensity.scale == 12.5
    assert relative(problem.physical(problem.reference), channels(image)) < 1e-5
    assert next(fact for fact in dataset.facts if fact.name == "MR scale").origin == "option"


def test_partial_fourier_and_asymmetric_echoes_are_stated(image):
    def names(sampled):
        dataset = dataset_of(fft2(image) * sampled)
        dataset.problem([0], {}, MR, seed=0)
        return {fact.name: fact.value for fact in dataset.facts}

    half = names(np.arange(80) >= 20)
    assert half["partial Fourier"].startswith("measured from -20 to 39 of 80")
    assert "asymmetric echo" in names(np.arange(96)[:, None] >= np.full((1, 80), 24))
    regular = names(build_mask("equispaced", 80, 4, acs_lines=12).sampled)
    assert not {"partial Fourier", "asymmetric echo"} & set(regular)


def test_the_preview_is_the_root_of_summed_squares(image, coils):
    dataset = dataset_of(fft2(coils * image), "coil,read,phase")
    np.testing.assert_allclose(dataset.preview(0), np.abs(image), atol=1e-3 * np.abs(image).max())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused_naming_the_slice(image, bad):
    kspace = np.stack([fft2(image)] * 3)
    kspace[1, 4, 5] = bad
    dataset = dataset_of(kspace, "slice,read,phase")
    dataset.read(0)
    with pytest.raises(RequestError, match=r"slice 1 \(counted from 0\) holds NaN"):
        dataset.problem([1], {}, MR, seed=0)
    kspace[2] = 0
    with pytest.raises(RequestError, match="slice 2 is empty"):
        dataset.problem([2], {}, MR, seed=0)


def test_simulated_coils_and_ct_settings_do_not_apply(image):
    dataset = dataset_of(fft2(image))
    with pytest.raises(RequestError, match="measured with 1 coils"):
        dataset.problem([0], {"coils": 8}, MR, seed=0)
    with pytest.raises(RequestError, match="views"):
        dataset.problem([0], {"views": 8}, MR, seed=0)


def test_kspace_with_its_zero_frequency_in_the_corner_is_noticed(image):
    dataset = dataset_of(np.fft.ifftshift(fft2(image)))
    dataset.problem([0], {}, MR, seed=0)
    assert any("far from the centre" in warning for warning in dataset.warnings)
    centred = dataset_of(fft2(image))
    centred.problem([0], {}, MR, seed=0)
    assert not centred.warnings


def test_the_measured_part_is_found_from_zeros():
    kspace = np.ones((2, 8, 10), np.complex64)
    assert measured_samples(kspace).shape == (10,)
    kspace[:, :, 3] = 0
    kspace[:, 2, 5] = 0  # one zero sample does not make a plane of points
    assert measured_samples(kspace).tolist() == [i != 3 for i in range(10)]
    kspace[:, 6:] = 0
    assert measured_samples(kspace).shape == (8, 10)


def test_completeness_allows_margins_but_no_gap_and_no_half_scan():
    lines = np.ones(100, bool)
    assert is_complete(lines)
    lines[:10] = lines[-9:] = False
    assert is_complete(lines)
    gap = lines.copy()
    gap[30] = False
    half = np.arange(100) >= 20
    echo = np.ones((100, 100), bool)
    echo[:30] = False
    assert not any(is_complete(case) for case in (gap, half, echo))


def test_gaps_are_the_stretch_that_belongs_to_a_line():
    lines = np.zeros(12, bool)
    lines[[0, 4, 5, 6, 10]] = True
    assert line_gaps(lines)[[0, 4, 5, 6, 10]].tolist() == [4, 2.5, 1, 2.5, 4]
