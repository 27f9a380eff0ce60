"""Our file format: a round trip, and everything that is refused."""

import dataclasses
import hashlib
import json
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_prior import tiny_header

from engine.priors.networks import build_network
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import load_prior_file, save_prior
from engine.spec.errors import RequestError

HEADER = tiny_header(
    {
        "channels": 1,
        "widths": [32, 64],
        "blocks": [1, 1],
        "attention": [1],
        "unshuffle": 2,
        "embedding": 16,
    }
)


@pytest.fixture
def denoiser():
    torch.manual_seed(0)
    network = build_network(HEADER.architecture, HEADER.architecture_kwargs)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return precondition("edm", network, HEADER.sigma_data)


@pytest.fixture
def path(tmp_path, denoiser):
    path = tmp_path / "tiny.safetensors"
    save_prior(path, HEADER, denoiser.state_dict(), half=False)
    return path


def rewrite(path, metadata=None, tensors=None):
    """The same file with other metadata fields (None: removed) or tensors."""
    strings = HEADER.to_strings()
    for name, value in (metadata or {}).items():
        strings.pop(name)
        if value is not None:
            strings[name] = value
    save_file({**load_file(path), **(tensors or {})}, path, metadata=strings)


def test_a_round_trip_in_float32_gives_the_same_bits(path, denoiser):
    prior = load_prior_file(path)
    x = torch.randn(1, 1, 32, 32)
    with torch.no_grad():
        assert torch.equal(prior(x, 0.3), denoiser.to(memory_format=torch.channels_last)(x, 0.3))


def test_a_round_trip_in_half_precision_costs_its_rounding_only(tmp_path, denoiser):
    path = tmp_path / "half.safetensors"
    save_prior(path, HEADER, denoiser.state_dict())
    prior, x = load_prior_file(path), torch.randn(1, 1, 32, 32)
    assert next(prior.denoiser.parameters()).dtype == torch.float32
    with torch.no_grad():
        exact = denoiser(x, 0.3)
    assert (prior(x, 0.3) - exact).norm() < 5e-3 * exact.norm()


def test_the_prior_knows_its_origin(path):
    info = load_prior_file(path).info
    assert info.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (info.name, info.channels, info.native_size) == ("tiny", 1, 32)
    assert info.intensity.scale == 1000.0
    assert (info.sigma_min, info.sigma_max) == (0.01, 10.0)
    assert info.licence == "Apache-2.0"
    json.dumps(info.to_dict())


def test_a_prior_without_native_size_loads(path):
    rewrite(path, {"native_size": "null"})
    assert load_prior_file(path).info.native_size is None


def test_without_metadata_it_says_how_to_import(tmp_path):
    path = tmp_path / "bare.safetensors"
    save_file({"w": torch.zeros(2)}, path)
    with pytest.raises(RequestError, match="dualscope prior import"):
        load_prior_file(path)


OPTIONAL = ("model_card", "symmetric", "familiarity")
KWARGS = HEADER.architecture_kwargs


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field.name, None) for field in dataclasses.fields(HEADER) if field.name not in OPTIONAL),
        ("version", "2"),
        ("architecture", "os.system"),
        ("architecture_kwargs", json.dumps({**KWARGS, "widths": [32, 10**9]})),
        ("architecture_kwargs", json.dumps({**KWARGS, "blocks": [10**9, 1]})),
        ("architecture_kwargs", json.dumps({**KWARGS, "channels": 2})),
        ("architecture_kwargs", json.dumps({**KWARGS, "__class__": "x"})),
        ("architecture_kwargs", "[1]"),
        ("architecture_kwargs", "{"),
        ("architecture_kwargs", "[" * 100_000),
        ("preconditioning", "exec"),
        ("sigma_data", "NaN"),
        ("sigma_data", "0"),
        ("sigma_data", "true"),
        ("sigma_min", "-1"),
        ("sigma_max", "Infinity"),
        ("sigma_max", "1" + "0" * 400),
        ("sigma_max", "0.001"),
        ("channels", "2"),
        ("channels", "1.0"),
        ("channels", "true"),
        ("intensity", "{}"),
        ("intensity", '{"kind": "hu", "scale": 0, "offset": 0}'),
        ("intensity", '{"kind": "hu", "scale": "1", "offset": 0}'),
        ("intensity", '{"kind": ["hu"], "scale": 1, "offset": 0}'),
        ("native_size", "-5"),
        ("familiarity", "[]"),
        ("familiarity", '{"sd": [1e999]}'),
        ("native_size", "1e9"),
        ("description", "x" * 300_000),
    ],
)
def test_hostile_metadata_are_refused_in_one_sentence(path, field, value):
    rewrite(path, {field: value})
    with pytest.raises(RequestError) as refusal:
        load_prior_file(path)
    message = str(refusal.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))


def test_missing_weights_are_refused(path):
    tensors = load_file(path)
    tensors.pop("model.stem.weight")
    save_file(tensors, path, metadata=HEADER.to_strings())
    with pytest.raises(RequestError, match=r"'model\.stem\.weight' is missing"):
        load_prior_file(path)


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("extra", torch.zeros(1), "unexpected"),
        ("model.stem.bias", torch.zeros(31), "expected"),
        ("model.stem.bias", torch.zeros(32, dtype=torch.int64), "expected"),
        ("model.stem.bias", torch.full((32,), float("nan")), "NaN"),
        ("model.stem.bias", torch.full((32,), float("inf")), "NaN or infinity"),
    ],
)
def test_wrong_weights_are_refused(path, name, tensor, message):
    rewrite(path, tensors={name: tensor})
    with pytest.raises(RequestError, match=message):
        load_prior_file(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not safetensors at all",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 4) + b"{{{{",
        struct.pack("<Q", 90)
        + b'{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}'.ljust(
            90
        ),
    ],
)
def test_broken_files_are_refused(tmp_path, content):
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(RequestError, match="cannot be read as safetensors"):
        load_prior_file(path)


def test_a_missing_file_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path / "absent.safetensors", tmp_path):
        with pytest.raises(RequestError, match="cannot be"):
            load_prior_file(path)


def test_weights_that_half_precision_cannot_hold_are_not_written(tmp_path, denoiser):
    weights = denoiser.state_dict()
    weights["model.stem.bias"] = torch.full((32,), 1e6)
    path = tmp_path / "large.safetensors"
    with pytest.raises(RequestError, match="not finite"):
        save_prior(path, HEADER, weights)
    assert not path.exists()


def test_whether_it_knows_mirrored_images_is_kept_and_otherwise_denied(path, denoiser):
    assert not load_prior_file(path).info.symmetric
    save_prior(path, dataclasses.replace(HEADER, symmetric=True), denoiser.state_dict())
    assert load_prior_file(path).info.symmetric
    rewrite(path, {"symmetric": None})  # a file written before this was asked
    assert not load_prior_file(path).info.symmetric
