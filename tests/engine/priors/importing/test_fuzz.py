"""Genuine files with random damage: read or refused, never a crash, never an action."""

import random

import pytest
import torch
from edm_writer import edm_snapshot, write_edm_pickle
from import_cases import tiny_network

from engine.priors.importing import open_checkpoint
from engine.priors.importing.checkpoint import read_weights
from engine.priors.precondition import precondition
from engine.spec.errors import RequestError

MUTATIONS = 400  # tests/fuzz has thousands more, damaged in other ways
SMALLEST = {"channel_mult": [1], "model_channels": 4, "attn_resolutions": []}
# instructions and names that random bytes would hardly ever hit
TOKENS = (
    *(b"R", b"\x81", b"b", b"\x93", b"o", b"Q", b"(", b"t", b"0", b"s", b"u", b"h\x00", b"."),
    *(b"cos\nsystem\n", b"\x8c\x05posix\x8c\x06system\x93", b"iposix\nsystem\n", b"PK\x01\x02"),
    *(b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\x8e" + b"\xff" * 7 + b"\x0f"),
)


def mutated(content, rng):
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        # the interesting bytes are few among the weights, and most of them come early
        place = int(len(data) * rng.random() ** 3)
        kind = rng.randrange(6)
        if kind == 0:
            data[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            data[place : place + 1] = bytes([data[place] ^ 1 << rng.randrange(8)])
        elif kind == 2:
            token = rng.choice(TOKENS)
            data[place : place + len(token)] = token
        elif kind == 3:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 4:
            del data[place : place + rng.choice((1, 2, 8, 100))]
        else:
            other = int(len(data) * rng.random())
            data[place : place + 16] = data[other : other + 16]
    return bytes(data)


def genuine(kind, tmp_path):
    if kind == "snapshot":
        network, kwargs = tiny_network(**SMALLEST)
        content = edm_snapshot(network, "SongUNet", kwargs)
        return write_edm_pickle(tmp_path / "x.pkl", content).read_bytes()
    denoiser = precondition("edm", tiny_network(**SMALLEST)[0], 0.5)
    torch.save({"net": denoiser.state_dict(), "ema": denoiser.state_dict()}, tmp_path / "x.pt")
    return (tmp_path / "x.pt").read_bytes()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pickletools")
@pytest.mark.parametrize("kind", ["snapshot", "inversebench"])
def test_damaged_files_are_read_or_refused(tmp_path, kind, monkeypatch):
    actions = []
    for name in ("system", "popen", "execv"):
        monkeypatch.setattr(f"os.{name}", lambda *a: actions.append(a))
    content, rng = genuine(kind, tmp_path), random.Random(0)
    path, read, messages = tmp_path / "mutated", 0, []
    for i in range(MUTATIONS):
        path.write_bytes(mutated(content, rng))
        try:
            checkpoint = open_checkpoint(path, {})
            if i % 4 == 0:  # the costlier part, and the less exposed one
                read_weights(checkpoint)
            read += 1
        except RequestError as error:
            messages.append(str(error))
    assert not actions
    assert not any("\n" in message for message in messages)
    # damage to a weight's digits goes unseen; damage to the structure does not
    assert 0 < read < 0.9 * MUTATIONS
