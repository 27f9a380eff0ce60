"""Does a prior know an image: what the numbers mean, and what the bundled priors know."""

import json
import math

import numpy as np
import pytest
import torch
from supervised_files import KWARGS, write_network
from tiny_prior import tiny_header

from engine.cli import main
from engine.physics.phantoms import brain_mr, ct_phantom
from engine.priors.catalogue import load_prior
from engine.priors.familiarity import (
    LEVELS,
    NAMES,
    SDS,
    Familiarity,
    excess,
    learn,
    measure,
    path_beside,
    read_beside,
    threshold_risk,
    write_beside,
)
from engine.priors.networks import build_network
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import load_prior_file, save_prior
from engine.spec.errors import RequestError

KNOWN = Familiarity(((0.0, 0.0, 0.0),) * 4, (1.0,) * 4, (-40.0,) * 2, (0.0,) * 2, 20, 3)
SIZE = 64


def noise(seed, size=SIZE):
    return torch.randn(1, 1, size, size, generator=torch.Generator().manual_seed(seed))


def smooth(seed, size=SIZE):
    """An image of low frequencies, of SD 0.5."""
    spectrum = torch.fft.fft2(noise(seed, size))
    frequency = torch.fft.fftfreq(size)
    low = (frequency[:, None] ** 2 + frequency**2).sqrt() < 0.06
    image = torch.fft.ifft2(spectrum * low).real
    return 0.5 * image / image.std()


def filtered(x, sigma):
    """A denoiser that knows images of low frequencies."""
    frequency = torch.fft.fftfreq(x.shape[-1])
    low = (torch.fft.fftfreq(x.shape[-2])[:, None] ** 2 + frequency**2).sqrt() < 0.06
    return torch.fft.ifft2(torch.fft.fft2(x) * low).real


def checkerboard(size=256, side=16):
    cells = torch.arange(size) // side
    return ((cells[:, None] + cells) % 2)[None, None].float() - 1.0


def test_the_threshold_risk_is_that_of_the_haar_coefficients():
    # one 2 x 2 block has the coefficients 2 (mean), 1, 1 and 0
    block = torch.tensor([[2.0, 1.0], [1.0, 0.0]])[None, None]
    small, large = threshold_risk(block, [0.5, 3.0])
    assert float(small) == pytest.approx((0.25 + 0.25 + 0.25) / 4)
    assert float(large) == pytest.approx((9 + 1 + 1) / 4)


def test_the_haar_coefficients_hold_all_of_the_energy():
    x = noise(0)
    # where no coefficient is kept but the coarsest, each costs its own square
    (risk,) = threshold_risk(x, [1e3])
    coarse = torch.nn.functional.avg_pool2d(x, 32) * 32
    energy = x.square().sum() - coarse.square().sum() + coarse.numel() * 1e6
    assert float(risk) == pytest.approx(float(energy) / x.numel(), rel=1e-5)


def test_images_like_the_learnt_ones_are_familiar_and_others_are_not():
    known = learn(filtered, [smooth(seed) for seed in range(20)], math.inf, 20)
    like = torch.cat([smooth(seed) for seed in range(100, 130)])
    assert (known.excess(measure(filtered, like)) > 0).float().mean() < 0.2
    foreign = torch.cat([noise(1), checkerboard(SIZE, 4), smooth(5) + 0.3 * noise(2)])
    assert (known.excess(measure(filtered, foreign)) > 0).all()


def test_only_the_unfamiliar_side_is_foreign_and_one_number_is_enough():
    usual = torch.tensor([[-10.0, -10.0, -10.0, -10.0, -20.0, -20.0]])
    beyond = usual.clone()
    beyond[0, 2] = 3.0
    assert float(KNOWN.excess(usual)) < 0
    assert float(KNOWN.excess(beyond)) == pytest.approx(3.0 - SDS)


def test_what_is_usual_follows_how_much_there_is_in_a_slice():
    rising = Familiarity(((5.0, 1.0, 0.0),) * 4, (1.0,) * 4, (-40.0,) * 2, (-10.0,) * 2, 20, 3)
    rows = torch.tensor([[-20.0] * 4 + [-25.0, -25.0], [-20.0] * 4 + [-35.0, -25.0]])
    assert rising.beyond(rows).amax(1).tolist() == [0.0, 10.0]
    far = torch.tensor([[-5.0] * 4 + [30.0, -25.0]])  # counts as -10: nothing is extrapolated
    assert rising.beyond(far).amax(1).tolist() == [0.0]


def test_a_denoiser_that_knows_which_way_is_up_tells_a_turned_image():
    template = torch.zeros(1, 1, SIZE, SIZE)
    template[..., :20, 10:54] = 1.0
    template[..., 40:44, :] = -0.5

    def denoise(x, sigma):
        return template + 0.1 * (x - template)

    upright = measure(denoise, template)[0]
    turned = measure(denoise, template.flip(-2))[0]
    at = NAMES.index("upside down")
    assert upright[at] < -3
    assert turned[at] == pytest.approx(-float(upright[at]), rel=0.02)
    assert upright[NAMES.index("sideways")] < -3


def test_a_slice_is_measured_as_it_is_alone():
    both = torch.cat([smooth(0), smooth(1)])
    torch.testing.assert_close(measure(filtered, both)[1:], measure(filtered, both[1:]))


def test_measuring_costs_four_calls_and_draws_from_nobodys_random_numbers():
    calls = []

    def denoise(x, sigma):
        calls.append(sigma)
        return filtered(x, sigma)

    x, before = smooth(0), torch.random.get_rng_state()
    kept = x.clone()
    first = measure(denoise, x)
    assert len(calls) == 4
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(x, kept)
    assert torch.equal(measure(denoise, x), first)


def test_noise_is_no_stronger_than_the_prior_knows():
    calls = []
    measure(lambda x, sigma: calls.append(sigma) or x, smooth(0), largest=0.5)
    assert max(calls) == 0.5


@pytest.mark.parametrize("shape", [(1, 2, 33, 57), (1, 1, 2, 300), (1, 1, 7, 5)])
def test_images_of_any_shape_are_measured(shape):
    assert measure(lambda x, sigma: x / (1 + sigma), torch.rand(shape)).isfinite().all()


def test_what_is_known_survives_a_file(tmp_path):
    prior = tmp_path / "mine.safetensors"
    write_beside(prior, "ab" * 32, KNOWN)
    assert Familiarity.from_dict(read_beside(prior, "ab" * 32)) == KNOWN
    assert read_beside(prior, "cd" * 32) is None  # of another prior


@pytest.mark.parametrize(
    "change",
    [
        {"sd": [1.0]},
        {"expected": "no"},
        {"expected": [[1e999, 0, 0]] * 4},
        {"low": None},
        {"numbers": ["a", "b", "c", "d"]},
        {"slices": "many"},
        {"levels": [5.0, 6.0]},
    ],
)
def test_a_file_that_is_damaged_is_refused_or_left_aside(change, tmp_path):
    body = KNOWN.to_dict() | change
    with pytest.raises(RequestError, match="familiarity"):
        Familiarity.from_dict(body)
    prior = tmp_path / "mine.safetensors"
    path_beside(prior).write_text(json.dumps({"prior_sha256": "x", **body}))
    assert read_beside(prior, "x") is None
    path_beside(prior).write_bytes(b"\xff{" * 10)
    assert read_beside(prior, "x") is None


def test_the_bundled_ct_prior_knows_a_chest_but_no_checkerboard():
    prior = load_prior("ct-small", "CT")
    chest = torch.from_numpy(ct_phantom(3, 256).image)[None, None] / 1000
    assert float(excess(prior, chest)) <= 0
    assert float(excess(prior, chest.flip(-2))) > 0  # upside down
    assert float(excess(prior, checkerboard())) > 0


@pytest.mark.parametrize("name", ["mr-small", "mr-base"])
def test_the_bundled_mr_prior_knows_a_brain_but_no_checkerboard(name):
    prior = load_prior(name, "MR")
    brain = torch.view_as_real(torch.from_numpy(brain_mr(3, 256).image).to(torch.complex64))
    brain = brain.permute(2, 0, 1)[None]
    assert float(excess(prior, brain)) <= 0
    board = checkerboard() + 1
    assert float(excess(prior, torch.cat([board, torch.zeros_like(board)], 1))) > 0


def test_a_prior_that_was_never_calibrated_says_nothing():
    assert excess(load_prior("tv", "CT"), smooth(0)) is None


def tiny_prior(path):
    network = precondition("edm", build_network("compact-unet", KWARGS), 0.5)
    save_prior(path, tiny_header(KWARGS), network.state_dict())
    return path


def test_priors_are_calibrated_from_the_command_line(tmp_path, capsys):
    path, data = tiny_prior(tmp_path / "tiny.safetensors"), tmp_path / "kept.npz"
    before = path.read_bytes()
    slices = np.random.default_rng(0).integers(-1000, 1000, (12, 32, 32)).astype(np.int16)
    np.savez(data, one=slices[:6], other=slices[6:])
    assert load_prior_file(path).info.details["familiarity"] is None
    assert main(["prior", "calibrate", str(path), str(data), "--slices", "12"]) == 0
    assert "12 slices of 2 sources" in capsys.readouterr().out
    assert path.read_bytes() == before  # records name its hash
    known = Familiarity.from_dict(load_prior_file(path).info.details["familiarity"])
    assert known.slices == 12
    assert main(["prior", "info", str(path)]) == 0
    assert "familiarity" in json.loads(capsys.readouterr().out)["details"]
    network = write_network(tmp_path / "corrects.safetensors")
    for wrong in (
        ["tv", str(data)],
        [str(network), str(data)],
        [str(path), str(data), "--slices=1"],
    ):
        assert main(["prior", "calibrate", *wrong]) == 2


def test_the_levels_are_those_that_the_bundled_priors_were_measured_at():
    for name, modality in (("ct-small", "CT"), ("mr-small", "MR"), ("mr-base", "MR")):
        info = load_prior(name, modality).info
        assert tuple(info.details["familiarity"]["levels"]) == LEVELS
