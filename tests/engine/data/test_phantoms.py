"""Claims about the procedural phantoms."""

from __future__ import annotations

import numpy as np
import pytest

from engine.physics.phantoms import CONTRASTS, REGIONS, Lesion, Phantom, brain_mr, ct_phantom
from engine.physics.phantoms.shapes import Canvas, ellipse, tube
from engine.physics.phantoms.texture import field
from engine.spec.errors import RequestError

SEEDS = range(5)


def halved(image: np.ndarray) -> np.ndarray:
    n = image.shape[0] // 2
    return image.reshape(n, 2, n, 2).mean(axis=(1, 3))


def psnr(a: np.ndarray, b: np.ndarray, span: float) -> float:
    return float(10 * np.log10(span**2 / np.mean(np.abs(a - b) ** 2)))


def distance_mm(phantom: Phantom, lesion: Lesion) -> np.ndarray:
    rows, cols = np.indices(phantom.image.shape)
    return np.hypot(rows - lesion.row, cols - lesion.col) * phantom.pixel_mm


def near(phantom: Phantom, lesion: Lesion, share: float) -> np.ndarray:
    """Pixels within a share of the lesion's radius of its centre."""
    reach = max(share * lesion.radius_mm, 0.75 * phantom.pixel_mm)
    return distance_mm(phantom, lesion) <= reach


# --- shapes and fields


@pytest.mark.parametrize("size", [64, 250, 512])
def test_coverage_is_the_exact_area_at_every_size(size):
    canvas = Canvas(size, 300.0)
    outline = ellipse(11.3, -20.7, 71.0, 33.0, 0.4, n=600)
    area = canvas.cover(outline).sum() * canvas.pixel_mm**2
    assert area == pytest.approx(np.pi * 71 * 33, rel=1e-3)


def test_coverage_ignores_the_direction_of_an_outline_and_stays_on_the_canvas():
    canvas = Canvas(128, 100.0)
    band = tube([[-80.0, -80.0], [0.0, 3.0], [90.0, 70.0]], 5.0)
    cover = canvas.cover(band)
    np.testing.assert_allclose(cover, canvas.cover(band[::-1]), atol=1e-6)
    assert cover.min() >= 0
    assert cover.max() <= 1


def test_a_field_averaged_to_half_the_size_is_the_field_at_half_the_size():
    full = field(np.random.default_rng(5), 512, 380.0, 6.0, 60.0, power=1.0)
    half = field(np.random.default_rng(5), 256, 380.0, 6.0, 60.0, power=1.0)
    np.testing.assert_allclose(halved(full), half, atol=1e-4)
    assert full.std() == pytest.approx(1.0, rel=0.1)


# --- CT


@pytest.fixture(scope="module")
def slices() -> dict[tuple[str, int], Phantom]:
    return {(r, s): ct_phantom(s, 256, r) for r in REGIONS for s in SEEDS}


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(slices):
    again = ct_phantom(3, 256, "chest")
    assert again.image.tobytes() == slices["chest", 3].image.tobytes()
    assert again.lesions == slices["chest", 3].lesions
    assert np.abs(again.image - slices["chest", 4].image).mean() > 20
    mr = [brain_mr(s, 128, "T1").image for s in (3, 3, 4)]
    assert mr[0].tobytes() == mr[1].tobytes()
    assert np.abs(mr[0] - mr[2]).mean() > 0.02


def test_ct_is_float32_within_the_hu_range_and_outside_is_exactly_air(slices):
    for phantom in slices.values():
        image = phantom.image
        assert image.dtype == np.float32
        assert image.shape == (256, 256)
        assert image.min() == -1000
        assert 500 < image.max() <= 3000
        for edge in (image[:3], image[:, :2], image[:, -2:]):
            assert np.all((edge == -1000) | (edge > -600))
        assert np.all(image[:3] == -1000)
        outside = phantom.mask("outside")
        assert np.mean(image[outside] == -1000) > 0.97


@pytest.mark.parametrize(
    ("region", "name", "low", "high"),
    [
        ("chest", "lung", -880, -750),
        ("chest", "fat", -112, -70),
        ("chest", "muscle", 30, 65),
        ("chest", "vertebra", 130, 320),
        ("chest", "aorta", 35, 260),
        ("abdomen", "liver", 40, 130),
        ("abdomen", "fat", -112, -70),
        ("abdomen", "muscle", 30, 65),
        ("abdomen", "vertebra", 130, 320),
        ("abdomen", "spleen", 40, 160),
    ],
)
def test_labelled_tissue_has_its_hu(slices, region, name, low, high):
    for seed in SEEDS:
        phantom = slices[region, seed]
        where = phantom.mask(name)
        assert where.sum() > 50, f"seed {seed} shows no {name}"
        assert low <= np.median(phantom.image[where]) <= high


def test_cortical_bone_reaches_bone_density(slices):
    for phantom in slices.values():
        assert np.quantile(phantom.image[phantom.mask("bone")], 0.9) > 500


def test_tissue_is_not_flat(slices):
    for seed in SEEDS:
        liver = slices["abdomen", seed]
        assert 3 < liver.image[liver.mask("liver")].std() < 25


def test_the_view_is_radiological(slices):
    for seed in SEEDS:
        cols = np.nonzero(slices["abdomen", seed].mask("liver"))[1]
        assert cols.mean() < 128
        cols = np.nonzero(slices["abdomen", seed].mask("spleen"))[1]
        assert cols.mean() > 128
        rows = np.nonzero(slices["chest", seed].mask("vertebra"))[0]
        assert rows.mean() > np.nonzero(slices["chest", seed].mask("lung"))[0].mean()


@pytest.mark.parametrize("region", REGIONS)
def test_ct_lesions_are_where_and_what_the_report_says(slices, region):
    seen = 0
    for seed in SEEDS:
        phantom = slices[region, seed]
        without = ct_phantom(seed, 256, region, lesions=False)
        assert without.lesions == ()
        change = phantom.image - without.image
        far = np.ones(change.shape, bool)
        for lesion in phantom.lesions:
            far &= distance_mm(phantom, lesion) > 1.35 * lesion.radius_mm + 5
            if region == "abdomen":
                assert 10 <= abs(lesion.contrast) <= 40
            if lesion.radius_mm < 3:
                continue  # partial volume: a pixel is 1.5 mm
            seen += 1
            inside = np.median(change[near(phantom, lesion, 0.5)])
            assert inside == pytest.approx(lesion.contrast, rel=0.2, abs=4)
        assert not change[far].any(), "taking lesions out must leave the rest untouched"
    assert seen >= 4


@pytest.mark.parametrize("region", REGIONS)
def test_ct_at_512_is_the_same_anatomy_as_at_256(slices, region):
    for seed in (0, 1):
        large = ct_phantom(seed, 512, region)
        small = slices[region, seed]
        assert psnr(halved(large.image), small.image, 2000.0) > 38
        assert len(large.lesions) == len(small.lesions)
        for a, b in zip(large.lesions, small.lesions, strict=True):
            assert (a.row + 0.5) / 2 == pytest.approx(b.row + 0.5, abs=1e-6)
            assert a.contrast == b.contrast


def test_no_region_means_that_the_seed_chooses():
    seen = {ct_phantom(seed, 64).description.split(" of the ")[1].split()[0] for seed in range(6)}
    assert seen == set(REGIONS)


@pytest.mark.parametrize("seed", [0, 2**31, 2**70])
def test_any_seed_of_zero_or_more_draws(seed):
    assert np.isfinite(ct_phantom(seed, 64).image).all()
    assert np.isfinite(brain_mr(seed, 64).image).all()


# --- MR


@pytest.fixture(scope="module")
def heads() -> dict[tuple[str, int], Phantom]:
    return {(c, s): brain_mr(s, 256, c) for c in CONTRASTS for s in SEEDS}


def test_mr_is_complex_finite_and_scaled_to_its_quantile(heads):
    for phantom in heads.values():
        assert phantom.image.dtype == np.complex64
        assert np.isfinite(phantom.image).all()
        assert np.quantile(np.abs(phantom.image), 0.99) == pytest.approx(1, abs=1e-3)
        assert np.abs(phantom.image[:3]).max() == 0


def test_mr_phase_is_smooth_but_not_flat(heads):
    spans = []
    for phantom in heads.values():
        x = phantom.image
        bright = np.abs(x) > 0.1
        for axis in (0, 1):
            step = np.angle(x * np.conj(np.roll(x, 1, axis)))
            assert np.abs(step[bright & np.roll(bright, 1, axis)]).max() < 0.2
        spans.append(1 - np.abs(np.mean(x[bright] / np.abs(x[bright]))))
    assert np.median(spans) > 0.05


@pytest.mark.parametrize(
    ("contrast", "order"),
    [
        ("T1", ["skull", "csf", "grey", "white"]),
        ("T2", ["skull", "white", "grey", "csf"]),
        ("FLAIR", ["skull", "white", "grey"]),
    ],
)
def test_tissues_are_ordered_as_in_their_contrast(heads, contrast, order):
    for seed in SEEDS:
        phantom = heads[contrast, seed]
        means = [np.median(np.abs(phantom.image[phantom.mask(name)])) for name in order]
        assert means == sorted(means)


def test_one_seed_is_one_patient_in_every_contrast(heads):
    for seed in SEEDS:
        t1, t2 = heads["T1", seed], heads["T2", seed]
        np.testing.assert_array_equal(t1.labels, t2.labels)
        assert [(a.row, a.col) for a in t1.lesions] == [(b.row, b.col) for b in t2.lesions]


def test_mr_lesions_are_where_and_what_the_report_says(heads):
    seen = 0
    for phantom in heads.values():
        white = phantom.mask("white")
        for lesion in phantom.lesions:
            around = white & (distance_mm(phantom, lesion) < lesion.radius_mm + 14)
            level = np.median(np.abs(phantom.image[around]))
            if lesion.radius_mm < 2.5:
                continue
            seen += 1
            inside = np.median(np.abs(phantom.image[near(phantom, lesion, 0.35)]))
            assert inside - level == pytest.approx(lesion.contrast, rel=0.25, abs=0.06)
    assert seen >= 3


def test_mr_at_512_is_the_same_anatomy_as_at_256(heads):
    for seed in (0, 1):
        large = brain_mr(seed, 512, "T1")
        assert psnr(halved(large.image), heads["T1", seed].image, 1.0) > 36
        assert len(large.lesions) == len(heads["T1", seed].lesions)


def test_noise_is_complex_and_of_the_asked_size(heads):
    noisy = brain_mr(2, 256, "T1", noise_sd=0.05).image
    noise = noisy - heads["T1", 2].image
    assert noise.real.std() == pytest.approx(0.05, rel=0.03)
    assert noise.imag.std() == pytest.approx(0.05, rel=0.03)


# --- requests


@pytest.mark.parametrize("size", [62, 1026, 255, 128.0, True])
def test_a_size_nobody_can_draw_is_refused(size):
    with pytest.raises(RequestError, match="size"):
        ct_phantom(0, size)
    with pytest.raises(RequestError, match="size"):
        brain_mr(0, size)


def test_unknown_regions_contrasts_and_seeds_are_refused_by_name():
    with pytest.raises(RequestError, match=r"'knee'.*chest"):
        ct_phantom(0, 128, "knee")
    with pytest.raises(RequestError, match=r"'PD'.*FLAIR"):
        brain_mr(0, 128, "PD")
    with pytest.raises(RequestError, match="seed"):
        ct_phantom(-1)
    with pytest.raises(RequestError, match="noise"):
        brain_mr(0, 128, noise_sd=-0.1)
