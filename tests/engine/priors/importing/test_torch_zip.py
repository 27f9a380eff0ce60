"""Files of torch.save: InverseBench checkpoints and bare state dicts."""

import json

import pytest
import torch
from edm_writer import write_inversebench
from import_cases import CASES, tiny_network

from engine.physics.units import IntensityMap
from engine.priors.importing import import_checkpoint
from engine.priors.importing.torch_zip import read_torch_zip
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import load_prior_file
from engine.spec.errors import RequestError

CT = IntensityMap("hu", 800.0)


@pytest.fixture(params=CASES)
def denoiser(request):
    network, kwargs = tiny_network(request.param)
    denoiser = precondition("edm", network, 0.5)
    denoiser.channels = kwargs["in_channels"]
    return denoiser


def assert_same(path, denoiser):
    prior, x = load_prior_file(path), torch.randn(1, denoiser.channels, 8, 8)
    with torch.no_grad():
        expected = denoiser.to(memory_format=torch.channels_last)(x, 0.3)
    assert torch.equal(prior(x, 0.3), expected)


def test_an_inversebench_checkpoint_gives_its_averaged_weights(tmp_path, denoiser):
    denoiser.requires_grad_(True)
    source = write_inversebench(tmp_path / "mri-brain.pt", denoiser)
    out = tmp_path / "x.safetensors"
    header = import_checkpoint(source, out, intensity=CT, half=False)
    assert_same(out, denoiser)
    assert "ema" in header.description


def test_its_plain_weights_are_taken_where_there_are_no_others(tmp_path, denoiser):
    source = tmp_path / "x.pt"
    torch.save({"net": denoiser.state_dict()}, source)
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, half=False)
    assert_same(tmp_path / "x.safetensors", denoiser)


@pytest.mark.parametrize("prefix", ["", "model."])
def test_a_bare_state_dict_says_by_itself_what_it_is(tmp_path, denoiser, prefix):
    source = tmp_path / "x.pt"
    state = denoiser.model.state_dict(prefix=prefix)
    torch.save(state, source)
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, half=False)
    assert_same(tmp_path / "x.safetensors", denoiser)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_other_precisions_are_read(tmp_path, denoiser, dtype):
    denoiser.to(torch.float16).float()
    source = tmp_path / "x.pt"
    state = {name: value.to(dtype) for name, value in denoiser.state_dict().items()}
    torch.save(state, source)
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, half=False)
    stored = load_prior_file(tmp_path / "x.safetensors").denoiser.state_dict()
    assert all(torch.equal(stored[name], value.float()) for name, value in state.items())


def test_our_reader_agrees_with_torch(tmp_path):
    """Views, shared storages and channels-last weights included."""
    base = torch.randn(4, 3, 5, 5)
    state = {"a": base, "b": base[1], "c": base.to(memory_format=torch.channels_last)}
    state |= {"d": base.transpose(0, 1), "e": torch.tensor(3.0), "f": nn_parameter(base)}
    torch.save(state, tmp_path / "x.pt")
    place, found = read_torch_zip(tmp_path / "x.pt")
    expected = torch.load(tmp_path / "x.pt", weights_only=True)
    assert place == ""
    assert list(found) == list(expected)
    assert all(torch.equal(found[name].read(), expected[name]) for name in expected)


def nn_parameter(tensor):
    return torch.nn.Parameter(tensor.clone())


def test_a_configuration_may_say_how_it_was_trained(tmp_path, denoiser):
    source, config = tmp_path / "x.pt", tmp_path / "config.json"
    torch.save(denoiser.state_dict(), source)
    config.write_text(json.dumps({"preconditioning": "vp", "sigma_min": 0.01, "dropout": 0.1}))
    out = tmp_path / "x.safetensors"
    header = import_checkpoint(source, out, intensity=CT, config=config)
    assert (header.preconditioning, header.sigma_min) == ("vp", 0.01)
    load_prior_file(out)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"preconditioning": "magic"}, "preconditioning must be"),
        ({"sigma_data": -1}, "sigma_data"),
        ({"model_channels": 64}, "model_channels"),
        ({"surprise": 1}, "'surprise' is not known"),
        ({"architecture": "compact-unet"}, "not of 'compact-unet'"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(tmp_path, config, message):
    network, _ = tiny_network()
    torch.save(network.state_dict(), tmp_path / "x.pt")
    with pytest.raises(RequestError, match=message):
        import_checkpoint(
            tmp_path / "x.pt", tmp_path / "x.safetensors", config=config, intensity=CT
        )


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000, '{"a": NaN}', "1" * 2_000_000])
def test_a_broken_configuration_is_refused(tmp_path, content):
    network, _ = tiny_network()
    torch.save(network.state_dict(), tmp_path / "x.pt")
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(RequestError):
        import_checkpoint(
            tmp_path / "x.pt", tmp_path / "x.safetensors", config=tmp_path / "c.json", intensity=CT
        )
