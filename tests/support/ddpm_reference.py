"""The U-Nets of guided-diffusion and diffusers a second time, as function calls on a state dict."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def norm(state, name, x, groups, eps):
    return F.group_norm(x, groups, state[f"{name}.weight"], state[f"{name}.bias"], eps)


def conv(state, name, x, **options):
    weight = state[f"{name}.weight"]
    options.setdefault("padding", weight.shape[-1] // 2)
    return F.conv2d(x, weight, state[f"{name}.bias"], **options)


def linear(state, name, x):
    return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def attend(q, k, v):
    """Plain softmax attention for matrices [positions, channels]."""
    return (q @ k.T / math.sqrt(q.shape[1])).softmax(dim=1) @ v


def embedding(t, width, order, shift=0):
    half = width // 2
    phase = t[:, None] * torch.exp(-math.log(10000) * torch.arange(half) / (half - shift))
    parts = {"cos": phase.cos(), "sin": phase.sin()}
    return torch.cat([parts[kind] for kind in order], dim=1)


def children(state, prefix):
    found = {name[len(prefix) :].split(".")[0] for name in state if name.startswith(prefix)}
    return sorted((name for name in found if name.isdigit()), key=int)


# guided-diffusion


def guided_attention(state, name, x, heads, new_order):
    flat = x.flatten(2)
    normed = norm(state, f"{name}.norm", flat, 32, 1e-5)
    qkv = F.conv1d(normed, state[f"{name}.qkv.weight"], state[f"{name}.qkv.bias"])
    size, out = flat.shape[1] // heads, torch.zeros_like(flat)
    for sample in range(len(x)):
        for head in range(heads):
            if new_order:
                starts = [part * flat.shape[1] + head * size for part in range(3)]
            else:
                starts = [(3 * head + part) * size for part in range(3)]
            q, k, v = (qkv[sample, start : start + size].T for start in starts)
            out[sample, head * size : (head + 1) * size] = attend(q, k, v).T
    out = F.conv1d(out, state[f"{name}.proj_out.weight"], state[f"{name}.proj_out.bias"])
    return (flat + out).reshape(x.shape)


def guided_block(state, name, x, emb, move):
    h = F.silu(norm(state, f"{name}.in_layers.0", x, 32, 1e-5))
    h, x = move(h), move(x)
    h = conv(state, f"{name}.in_layers.2", h)
    condition = linear(state, f"{name}.emb_layers.1", F.silu(emb))[:, :, None, None]
    if condition.shape[1] == 2 * h.shape[1]:
        scale, shift = condition[:, : h.shape[1]], condition[:, h.shape[1] :]
        h = norm(state, f"{name}.out_layers.0", h, 32, 1e-5) * (1 + scale) + shift
    else:
        h = norm(state, f"{name}.out_layers.0", h + condition, 32, 1e-5)
    h = conv(state, f"{name}.out_layers.3", F.silu(h))
    if f"{name}.skip_connection.weight" in state:
        x = conv(state, f"{name}.skip_connection", x)
    return x + h


def double(x):
    return x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)


def halve(x):
    return (x[..., ::2, ::2] + x[..., 1::2, ::2] + x[..., ::2, 1::2] + x[..., 1::2, 1::2]) / 4


def guided(state, x, t, heads_of, new_order=False, per_level=1):
    width = state["time_embed.0.weight"].shape[1]
    emb = linear(state, "time_embed.0", embedding(t, width, ("cos", "sin")))
    emb = linear(state, "time_embed.2", F.silu(emb))

    def through(place, x, move):
        for index in children(state, f"{place}."):
            name = f"{place}.{index}"
            if f"{name}.qkv.weight" in state:
                x = guided_attention(state, name, x, heads_of(x.shape[1]), new_order)
            elif f"{name}.in_layers.0.weight" in state:
                moving = move and index == children(state, f"{place}.")[-1]
                x = guided_block(state, name, x, emb, move if moving else lambda h: h)
            elif f"{name}.op.weight" in state:
                x = conv(state, f"{name}.op", x, stride=2, padding=1)
            elif f"{name}.conv.weight" in state:
                x = conv(state, f"{name}.conv", double(x))
            else:
                x = conv(state, name, x)
        return x

    skips = []
    for i in children(state, "input_blocks."):
        # after every level's blocks comes one that goes down
        down = int(i) and int(i) % (per_level + 1) == 0
        x = through(f"input_blocks.{i}", x, halve if down else None)
        skips.append(x)
    x = through("middle_block", x, None)
    last = len(children(state, "output_blocks.")) - 1
    for i in children(state, "output_blocks."):
        up = (int(i) + 1) % (per_level + 1) == 0 and int(i) != last
        x = torch.cat([x, skips.pop()], dim=1)
        x = through(f"output_blocks.{i}", x, double if up else None)
    return conv(state, "out.2", F.silu(norm(state, "out.0", x, 32, 1e-5)))


# diffusers


def diffusers(state, x, t, groups, eps, head=0, padding=1, flip=True, shift=0):
    order = ("cos", "sin") if flip else ("sin", "cos")
    emb = embedding(t, state["conv_in.weight"].shape[0], order, shift)
    emb = linear(
        state, "time_embedding.linear_2", F.silu(linear(state, "time_embedding.linear_1", emb))
    )

    def resnet(name, x):
        h = conv(state, f"{name}.conv1", F.silu(norm(state, f"{name}.norm1", x, groups, eps)))
        h = h + linear(state, f"{name}.time_emb_proj", F.silu(emb))[:, :, None, None]
        h = conv(state, f"{name}.conv2", F.silu(norm(state, f"{name}.norm2", h, groups, eps)))
        return h + (
            conv(state, f"{name}.conv_shortcut", x)
            if f"{name}.conv_shortcut.weight" in state
            else x
        )

    def attention(name, x):
        rows = norm(state, f"{name}.group_norm", x, groups, eps).flatten(2).transpose(1, 2)
        q, k, v = (linear(state, f"{name}.to_{kind}", rows) for kind in "qkv")
        size, out = head or x.shape[1], torch.zeros_like(rows)
        for sample in range(len(x)):
            for start in range(0, x.shape[1], size):
                part = (sample, slice(None), slice(start, start + size))
                out[part] = attend(q[part], k[part], v[part])
        return x + linear(state, f"{name}.to_out.0", out).transpose(1, 2).reshape(x.shape)

    def blocks(place, x, before, after):
        for j in children(state, f"{place}.resnets."):
            x = resnet(f"{place}.resnets.{j}", before(x))
            if f"{place}.attentions.{j}.to_q.weight" in state:
                x = attention(f"{place}.attentions.{j}", x)
            after(x)
        return x

    x = conv(state, "conv_in", x)
    skips = [x]
    for i in children(state, "down_blocks."):
        x = blocks(f"down_blocks.{i}", x, lambda h: h, skips.append)
        if f"down_blocks.{i}.downsamplers.0.conv.weight" in state:
            wide = x if padding else F.pad(x, (0, 1, 0, 1))
            x = conv(state, f"down_blocks.{i}.downsamplers.0.conv", wide, stride=2, padding=padding)
            skips.append(x)
    x = resnet("mid_block.resnets.0", x)
    if "mid_block.attentions.0.to_q.weight" in state:
        x = attention("mid_block.attentions.0", x)
    x = resnet("mid_block.resnets.1", x)
    for i in children(state, "up_blocks."):
        x = blocks(f"up_blocks.{i}", x, lambda h: torch.cat([h, skips.pop()], 1), lambda h: None)
        if f"up_blocks.{i}.upsamplers.0.conv.weight" in state:
            x = conv(state, f"up_blocks.{i}.upsamplers.0.conv", double(x))
    return conv(state, "conv_out", F.silu(norm(state, "conv_norm_out", x, groups, eps)))
