"""The two U-Nets of Karras et al. 2022 a second time: plain function calls on a state dict.

Nothing here comes from the engine. The layers are found by name alone, in the order in which the
state dict lists them, and every operation is spelled out.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def layers(state, prefix):
    """Names of the children of ``prefix``, in order."""
    names = [name[len(prefix) :].split(".")[0] for name in state if name.startswith(prefix)]
    return list(dict.fromkeys(names))


def norm(state, name, x, eps):
    groups = min(32, x.shape[1] // 4)
    parts = x.reshape(x.shape[0], groups, -1)
    mean = parts.mean(dim=2, keepdim=True)
    variance = (parts - mean).square().mean(dim=2, keepdim=True)
    x = ((parts - mean) / (variance + eps).sqrt()).reshape(x.shape)
    weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
    return x * weight[:, None, None] + bias[:, None, None]


def resample(x, taps, direction):
    """Depthwise filtering as a plain convolution with one kernel per channel."""
    line = torch.tensor(taps, dtype=x.dtype)
    kernel = torch.outer(line, line) / line.sum() ** 2
    batch, channels, height, width = x.shape
    alone = x.reshape(batch * channels, 1, height, width)
    margin = (len(taps) - 1) // 2
    if direction == "up":
        alone = F.conv_transpose2d(alone, 4 * kernel[None, None], stride=2, padding=margin)
    else:
        alone = F.conv2d(alone, kernel[None, None], stride=2, padding=margin)
    return alone.reshape(batch, channels, *alone.shape[-2:])


def convolve(state, name, x):
    weight = state[f"{name}.weight"]
    return F.conv2d(x, weight, state[f"{name}.bias"], padding=weight.shape[-1] // 2)


def linear(state, name, x):
    out = x @ state[f"{name}.weight"].T
    return out + state[f"{name}.bias"] if f"{name}.bias" in state else out


def attention(state, name, x, heads, eps):
    batch, channels, height, width = x.shape
    qkv = convolve(state, f"{name}.qkv", norm(state, f"{name}.norm2", x, eps))
    out = torch.zeros_like(x)
    size = channels // heads
    for head in range(heads):
        block = qkv[:, 3 * size * head : 3 * size * (head + 1)].flatten(2)
        q, k, v = block[:, 0::3], block[:, 1::3], block[:, 2::3]
        weights = (q.transpose(1, 2) @ k / math.sqrt(size)).softmax(dim=2)
        mixed = v @ weights.transpose(1, 2)
        out[:, size * head : size * (head + 1)] = mixed.reshape(batch, size, height, width)
    return convolve(state, f"{name}.proj", out)


def block(state, name, x, embedding, *, eps, adaptive, scale, taps=(1, 1), heads_of=lambda c: 1):
    direction = name.rsplit("_", 1)[1]
    moves = direction in ("up", "down")
    h = F.silu(norm(state, f"{name}.norm0", x, eps))
    if moves:
        h = resample(h, taps, direction)
    h = convolve(state, f"{name}.conv0", h)
    affine = linear(state, f"{name}.affine", embedding)[:, :, None, None]
    if adaptive:
        factor, shift = affine[:, : h.shape[1]], affine[:, h.shape[1] :]
        h = shift + norm(state, f"{name}.norm1", h, eps) * (factor + 1)
    else:
        h = norm(state, f"{name}.norm1", h + affine, eps)
    h = convolve(state, f"{name}.conv1", F.silu(h))
    skip = resample(x, taps, direction) if moves else x
    if f"{name}.skip.weight" in state:
        skip = convolve(state, f"{name}.skip", skip)
    h = (h + skip) * scale
    if f"{name}.qkv.weight" in state:
        h = (attention(state, name, h, heads_of(h.shape[1]), eps) + h) * scale
    return h


def phases(c_noise, width, endpoint):
    half = width // 2
    steps = [10000 ** -(i / (half - endpoint)) for i in range(half)]
    return c_noise[:, None] * torch.tensor(steps, dtype=c_noise.dtype)


def adm(state, x, c_noise):
    phase = phases(c_noise, state["map_layer0.weight"].shape[1], 0)
    embedding = torch.cat([phase.cos(), phase.sin()], dim=1)
    embedding = F.silu(linear(state, "map_layer0", embedding))
    embedding = F.silu(linear(state, "map_layer1", embedding))
    options = {"eps": 1e-5, "adaptive": True, "scale": 1.0, "heads_of": lambda c: c // 64}
    skips = []
    for name in layers(state, "enc."):
        if name.endswith("_conv"):
            x = convolve(state, f"enc.{name}", x)
        else:
            x = block(state, f"enc.{name}", x, embedding, **options)
        skips.append(x)
    for name in layers(state, "dec."):
        if "_block" in name:
            x = torch.cat([x, skips.pop()], dim=1)
        x = block(state, f"dec.{name}", x, embedding, **options)
    return convolve(state, "out_conv", F.silu(norm(state, "out_norm", x, 1e-5)))


def song(state, x, c_noise, taps=(1, 1)):
    if "map_noise.freqs" in state:
        phase = c_noise[:, None] * state["map_noise.freqs"] * 2 * math.pi
    else:
        phase = phases(c_noise, state["map_layer0.weight"].shape[1], 1)
    embedding = torch.cat([phase.sin(), phase.cos()], dim=1)
    if "map_label.bias" in state:
        embedding = embedding + state["map_label.bias"]
    embedding = F.silu(linear(state, "map_layer0", embedding))
    embedding = F.silu(linear(state, "map_layer1", embedding))
    options = {"eps": 1e-6, "adaptive": False, "scale": math.sqrt(0.5), "taps": taps}
    carried, skips = x, []
    for name in layers(state, "enc."):
        if name.endswith("_conv"):
            x = convolve(state, f"enc.{name}", x)
            skips.append(x)
        elif name.endswith("aux_down"):
            carried = resample(carried, taps, "down")
        elif name.endswith("aux_skip"):
            x = skips[-1] = x + convolve(state, f"enc.{name}", carried)
        elif name.endswith("aux_residual"):
            # convolve at full resolution with enough zeros around, then filter and halve
            weight, bias = (state[f"enc.{name}.{kind}"] for kind in ("weight", "bias"))
            fine = F.conv2d(carried, weight, padding=1 + (len(taps) - 1) // 2)
            line = torch.tensor(taps, dtype=x.dtype)
            kernel = (torch.outer(line, line) / line.sum() ** 2).repeat(len(weight), 1, 1, 1)
            fine = F.conv2d(fine, kernel, stride=2, groups=len(weight)) + bias[:, None, None]
            x = skips[-1] = carried = (x + fine) / math.sqrt(2)
        else:
            x = block(state, f"enc.{name}", x, embedding, **options)
            skips.append(x)
    out = 0.0
    for name in layers(state, "dec."):
        if name.endswith("aux_up"):
            out = resample(out, taps, "up")
        elif name.endswith("aux_norm"):
            normed = norm(state, f"dec.{name}", x, 1e-6)
        elif name.endswith("aux_conv"):
            out = out + convolve(state, f"dec.{name}", F.silu(normed))
        else:
            if "_block" in name:
                x = torch.cat([x, skips.pop()], dim=1)
            x = block(state, f"dec.{name}", x, embedding, **options)
    return out


def randomise(network, seed=0):
    """Weights that leave no part of the network without effect."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        spread = 0.3 if parameter.ndim == 1 else 1 / math.sqrt(parameter[0].numel())
        parameter.data = torch.randn(parameter.shape, generator=generator) * spread
    return network.eval().requires_grad_(False)
