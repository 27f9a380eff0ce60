"""The compact U-Net: any size, the whole image in view, sane arguments only."""

import pytest
import torch

from engine.priors.networks import build_network, norm_silu
from engine.priors.networks.compact import (
    CompactUNet,
    check_kwargs,
    local_phase,
    pad_to_multiple,
    turned,
)
from engine.spec.errors import RequestError

TINY = {
    "channels": 1,
    "widths": [32, 64],
    "blocks": [1, 1],
    "attention": [1],
    "unshuffle": 2,
    "embedding": 16,
}
LEVEL = torch.zeros(1)


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small lose more time to threads waiting for each other than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def awake(network, seed=0):
    """Random numbers in place of the zeros that a new network starts with."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        if not parameter.any():
            parameter.data.normal_(0, 0.1, generator=generator)
    return network


def tiny(**changes):
    torch.manual_seed(0)
    return awake(build_network("compact-unet", {**TINY, **changes}))


def test_a_new_network_gives_zero():
    network = build_network("compact-unet", TINY)
    assert not network(torch.randn(1, 1, 32, 32), LEVEL).any()


@pytest.mark.parametrize("size", [(32, 32), (31, 33), (7, 50), (3, 1), (1, 1)])
def test_any_size_works_and_is_kept(size):
    out = tiny()(torch.randn(2, 1, *size), torch.zeros(2))
    assert out.shape == (2, 1, *size)
    assert out.isfinite().all()


def test_padding_adds_below_and_to_the_right_and_keeps_the_image():
    x = torch.randn(1, 1, 9, 12)
    padded = pad_to_multiple(x, 8)
    assert padded.shape == (1, 1, 16, 16)
    assert torch.equal(padded[..., :9, :12], x)
    assert pad_to_multiple(padded, 8) is padded


def test_the_noise_level_changes_the_output():
    network, x = tiny(), torch.randn(1, 1, 16, 16)
    assert not torch.allclose(network(x, LEVEL), network(x, LEVEL - 1))


@pytest.mark.parametrize("attention", [[], [1]])
def test_attention_sees_the_whole_image(attention):
    """Group norms are taken out: their statistics would couple all pixels, but only weakly."""
    network = tiny(attention=attention).eval()
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.GroupNorm):
                setattr(module, name, torch.nn.Identity())
    x = torch.randn(1, 1, 64, 64, requires_grad=True)
    network(x, LEVEL)[0, 0, 0, 0].backward()
    assert bool(x.grad[..., -4:, -4:].any()) == bool(attention)


def test_samples_of_a_batch_do_not_mix():
    network, x = tiny(), torch.randn(3, 1, 16, 16)
    levels = torch.tensor([-1.0, 0.0, 0.5])
    together = network(x, levels)
    alone = torch.cat([network(x[i : i + 1], levels[i : i + 1]) for i in range(3)])
    assert torch.allclose(together, alone, atol=1e-5)


def test_the_default_sizes_stay_within_the_budget():
    """A file of 12 MB holds 6 M half-precision numbers."""
    with torch.device("meta"):
        network = CompactUNet(2, (96, 160, 224), (2, 2, 2), (2,))
    assert sum(p.numel() for p in network.parameters()) < 6e6


@pytest.mark.parametrize(
    "change",
    [
        {"widths": [32, 10**9]},
        {"widths": [32, 33]},
        {"widths": []},
        {"widths": "32"},
        {"widths": [32, 64.0]},
        {"widths": [32, True]},
        {"widths": [32] * 50, "blocks": [1] * 50},
        {"widths": [32, 40]},
        {"blocks": [1]},
        {"blocks": [1, 10**6]},
        {"attention": [2]},
        {"attention": [-1]},
        {"attention": None},
        {"unshuffle": 0},
        {"unshuffle": 1000},
        {"channels": -1},
        {"embedding": 10**9},
        {"embedding": "16"},
        {"surprise": 1},
    ],
)
def test_absurd_arguments_are_refused(change):
    with pytest.raises(RequestError):
        build_network("compact-unet", {**TINY, **change})


def test_an_unknown_network_is_refused():
    with pytest.raises(RequestError, match="not known"):
        build_network("os.system", {})


def aligned_network():
    torch.manual_seed(0)
    network = CompactUNet(2, widths=(16, 32), blocks=(1, 1), unshuffle=2, align_phase=True)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return network.eval()


def test_with_aligned_phase_a_turned_image_gives_the_turned_answer():
    """Exactly, for any phase of the whole image: the network sees the same image."""
    network, level = aligned_network(), torch.tensor([0.3])
    generator = torch.Generator().manual_seed(1)
    image = torch.randn(1, 2, 24, 40, generator=generator)
    angle = torch.tensor(1.1)
    with torch.no_grad():
        plain = network(image, level)
        rotated = network(turned(image, angle.cos(), angle.sin()), level)
    assert plain.std() > 0.01
    torch.testing.assert_close(rotated, turned(plain, angle.cos(), angle.sin()))


def test_local_phase_finds_a_smooth_phase_under_noise():
    rows = torch.linspace(-1, 1, 96)
    phase = (1.5 * rows[:, None] - 0.8 * rows[None, :] * rows[:, None] + 0.4)[None, None]
    clean = torch.cat([phase.cos(), phase.sin()], dim=1)
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(2))
    cos, sin = local_phase(clean + noise)
    error = (phase - torch.atan2(sin, cos))[..., 8:-8, 8:-8]
    assert error.abs().mean() < 0.1


def test_alignment_is_for_complex_images_only():
    with pytest.raises(RequestError, match="align_phase"):
        check_kwargs({**TINY, "align_phase": True})
    check_kwargs({**TINY, "channels": 2, "align_phase": True})


@pytest.mark.parametrize("channels_last", [True, False])
def test_training_has_the_gradients_of_the_plain_operations(channels_last):
    """In evaluation mode the network is made of separate operations: the reference."""
    network, x = tiny(), torch.randn(3, 1, 32, 48)
    for parameter in network.parameters():  # far from the symmetric numbers of a new norm
        parameter.data += 0.1 * torch.randn_like(parameter)
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
    levels, results = torch.tensor([-1.0, 0.0, 0.5]), []
    for mode in (True, False):
        network.train(mode).zero_grad()
        image = x.clone().requires_grad_()
        out = network(image, levels)
        (out * torch.linspace(-1, 1, out.numel()).reshape(out.shape)).sum().backward()
        results.append([out.detach(), image.grad, *(p.grad for p in network.parameters())])
    for fast, plain in zip(*results, strict=True):
        assert (fast - plain).norm() <= 1e-4 * plain.norm() + 1e-6


def test_the_gradient_of_a_normalised_map_is_right_when_it_is_worked_on_in_parts(monkeypatch):
    monkeypatch.setattr(norm_silu, "NUMBERS_AT_ONCE", 1)
    torch.manual_seed(0)
    shapes = [(3, 16, 4, 5), (16,), (16,), (3, 16), (3, 16)]
    inputs = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    single = [t.detach().float().requires_grad_() for t in inputs]
    out = norm_silu.NormSilu.apply(*single, 2, 1e-5)
    x, weight, bias, gain, shift = inputs
    h = torch.nn.functional.group_norm(x, 2, weight, bias, 1e-5)
    plain = torch.nn.functional.silu(h * gain[..., None, None] + shift[..., None, None])
    direction = torch.randn_like(plain)
    out.backward(direction.float())
    plain.backward(direction)
    torch.testing.assert_close(out.double(), plain, rtol=1e-4, atol=1e-5)
    for fast, exact in zip(single, inputs, strict=True):
        torch.testing.assert_close(fast.grad.double(), exact.grad, rtol=1e-3, atol=1e-5)
