"""Tiny networks to write into checkpoints."""

from __future__ import annotations

from edm_writer import edm_snapshot, write_edm_pickle
from unet_reference import randomise

from engine.priors.networks import adm, build_network, song

TINY = {"img_resolution": 8, "in_channels": 1, "out_channels": 1, "label_dim": 0}
SONG = {**song.DEFAULTS, **TINY, "model_channels": 8, "channel_mult": [1, 2], "num_blocks": 1}
SONG |= {"channel_mult_emb": 2, "attn_resolutions": [4]}
ADM = {**adm.DEFAULTS, **TINY, "model_channels": 32, "channel_mult": [1, 2], "num_blocks": 1}
ADM |= {"channel_mult_emb": 1, "attn_resolutions": [4], "in_channels": 2, "out_channels": 2}
CASES = {"song-unet": ("SongUNet", SONG), "adm-unet": ("DhariwalUNet", ADM)}


def tiny_network(architecture="song-unet", **changes):
    kwargs = {**CASES[architecture][1], **changes}
    return randomise(build_network(architecture, kwargs)), kwargs


def tiny_snapshot(path, architecture="song-unet", wrapper="edm", protocol=4, **changes):
    """A genuine EDM snapshot of a tiny network; ``changes`` go to the wrapper's attributes."""
    network, kwargs = tiny_network(architecture)
    content = edm_snapshot(network, CASES[architecture][0], kwargs, wrapper, **changes)
    return write_edm_pickle(path, content, protocol), network
