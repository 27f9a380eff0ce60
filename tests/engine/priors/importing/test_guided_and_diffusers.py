"""guided-diffusion state dicts and diffusers folders: read back to the same denoiser."""

import pytest
import torch
from diffusers_writer import EDM_SCHEDULER, SCHEDULER, old_names, tiny_unet, write_pipeline
from hostile_folders import hostile_folders
from safetensors.torch import save_file
from unet_reference import randomise

from engine.physics.units import IntensityMap
from engine.priors.discrete_schedule import linear_schedule
from engine.priors.importing import import_checkpoint
from engine.priors.networks import build_network, guided
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import load_prior_file
from engine.spec.errors import RequestError

CT = IntensityMap("hu", 800.0)
FLAGS = {
    "image_size": 16,
    "num_channels": 32,
    "channel_mult": "1,2",
    "num_res_blocks": 1,
    "attention_resolutions": "8",
    "num_heads": 4,
    "num_head_channels": 16,
    "learn_sigma": True,
    "resblock_updown": True,
    "use_scale_shift_norm": True,
    "class_cond": False,
    "noise_schedule": "linear",
    "diffusion_steps": 1000,
    "use_fp16": False,
}


def discrete(prediction, **noise):
    schedule = {**linear_schedule(), **noise}
    return {"prediction": prediction, "time": "interpolated", "noise": schedule}


def assert_same(out, expected, size):
    prior, x = load_prior_file(out), torch.randn(1, 1, size, size)
    expected = expected.to(memory_format=torch.channels_last)
    for sigma in (0.05, 0.7, 20.0):
        with torch.no_grad():
            assert torch.equal(prior(x, sigma), expected(x, sigma))


@pytest.fixture
def guided_network():
    kwargs = {**guided.DEFAULTS, "img_resolution": 16, "in_channels": 1, "out_channels": 2}
    kwargs |= {"model_channels": 32, "channel_mult": [1.0, 2.0], "num_res_blocks": 1}
    kwargs |= {"attention_resolutions": [8], "num_head_channels": 16, "resblock_updown": True}
    return randomise(build_network("guided-unet", kwargs))


def test_a_guided_diffusion_checkpoint_becomes_the_same_denoiser(tmp_path, guided_network):
    torch.save(guided_network.state_dict(), tmp_path / "x.pt")
    out = tmp_path / "x.safetensors"
    header = import_checkpoint(tmp_path / "x.pt", out, config=FLAGS, intensity=CT, half=False)
    assert_same(out, precondition("discrete", guided_network, 0.5, discrete("epsilon")), 16)
    assert (header.channels, header.architecture_kwargs["out_channels"]) == (1, 2)
    assert header.sigma_min == pytest.approx(0.01, rel=1e-3)
    assert header.sigma_max == pytest.approx(157, rel=0.01)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "--config"),
        ({**FLAGS, "num_channels": 64}, "expected"),
        ({**FLAGS, "class_cond": True}, "class-conditional"),
        ({**FLAGS, "num_res_blocks": 2}, "expected"),
        ({**FLAGS, "image_size": "16"}, "whole"),
        ({**FLAGS, "channel_mult": "1;2"}, "channel_mult"),
        ({**FLAGS, "channel_mult": 7}, "channel_mult"),
        ({**FLAGS, "attention_resolutions": "0"}, "whole"),
        ({**FLAGS, "noise_schedule": "magic"}, "noise_schedule"),
        ({**FLAGS, "diffusion_steps": 10**9}, "diffusion_steps"),
        ({**FLAGS, "surprise": 1}, "surprise"),
    ],
)
def test_flags_that_do_not_fit_are_refused(tmp_path, guided_network, config, message):
    torch.save(guided_network.state_dict(), tmp_path / "x.pt")
    with pytest.raises(RequestError, match=message):
        import_checkpoint(
            tmp_path / "x.pt", tmp_path / "y.safetensors", config=config, intensity=CT
        )


def test_a_number_that_is_no_map_size_may_still_mean_one(tmp_path, guided_network):
    """The original program drops the remainder of image_size / number: 16 // 7 is 2."""
    torch.save(guided_network.state_dict(), tmp_path / "x.pt")
    config = {**FLAGS, "attention_resolutions": "7"}
    out = tmp_path / "x.safetensors"
    header = import_checkpoint(tmp_path / "x.pt", out, config=config, intensity=CT)
    assert header.architecture_kwargs["attention_resolutions"] == [8]


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
@pytest.mark.parametrize("pickled", [False, True])
def test_a_pipeline_becomes_the_same_denoiser(tmp_path, prediction, pickled):
    network, out = tiny_unet(), tmp_path / "x.safetensors"
    scheduler = {**SCHEDULER, "prediction_type": prediction}
    write_pipeline(tmp_path / "p", network.state_dict(), scheduler=scheduler, pickled=pickled)
    import_checkpoint(tmp_path / "p", out, intensity=CT, half=False)
    name = {"v_prediction": "v"}.get(prediction, prediction)
    assert_same(out, precondition("discrete", network, 0.5, discrete(name)), 8)


def test_a_folder_of_the_network_alone_needs_the_scheduler(tmp_path):
    network, out = tiny_unet(), tmp_path / "x.safetensors"
    folder = write_pipeline(tmp_path / "p", network.state_dict(), scheduler=None, nested=False)
    with pytest.raises(RequestError, match=r"scheduler_config\.json"):
        import_checkpoint(folder, out, intensity=CT)
    import_checkpoint(folder, out, intensity=CT, half=False, config={"scheduler": SCHEDULER})
    assert_same(out, precondition("discrete", network, 0.5, discrete("epsilon")), 8)


def test_names_of_old_versions_are_understood(tmp_path):
    network, out = tiny_unet(), tmp_path / "x.safetensors"
    write_pipeline(tmp_path / "p", old_names(network.state_dict()))
    import_checkpoint(tmp_path / "p", out, intensity=CT, half=False)
    assert_same(out, precondition("discrete", network, 0.5, discrete("epsilon")), 8)


@pytest.mark.parametrize(("kind", "name"), [("epsilon", "edm"), ("v_prediction", "edm-v")])
def test_edm_schedulers(tmp_path, kind, name):
    network, out = tiny_unet(), tmp_path / "x.safetensors"
    scheduler = {**EDM_SCHEDULER, "prediction_type": kind}
    write_pipeline(tmp_path / "p", network.state_dict(), scheduler=scheduler)
    header = import_checkpoint(tmp_path / "p", out, intensity=CT, half=False)
    assert (header.sigma_min, header.sigma_max) == (0.002, 80.0)
    assert_same(out, precondition(name, network, 0.5), 8)


@pytest.mark.parametrize(
    ("changes", "noise"),
    [
        ({"beta_schedule": "scaled_linear"}, {"schedule": "scaled-linear"}),
        ({"beta_schedule": "squaredcos_cap_v2"}, {"schedule": "cosine"}),
        ({"beta_start": 0.001, "beta_end": 0.01}, {"beta_start": 0.001, "beta_end": 0.01}),
        (
            {"trained_betas": [0.01, 0.02, 0.03]},
            {"schedule": "given", "betas": [0.01, 0.02, 0.03], "steps": 3},
        ),
    ],
)
def test_other_schedules(tmp_path, changes, noise):
    network, out = tiny_unet(), tmp_path / "x.safetensors"
    write_pipeline(tmp_path / "p", network.state_dict(), scheduler={**SCHEDULER, **changes})
    header = import_checkpoint(tmp_path / "p", out, intensity=CT, half=False)
    assert header.preconditioning_kwargs == discrete("epsilon", **noise)
    load_prior_file(out)


def test_every_hostile_folder_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    out, count = tmp_path / "out.safetensors", 0
    for name, folder in hostile_folders(tmp_path, tiny_unet().state_dict()):
        with pytest.raises(RequestError) as refusal:
            import_checkpoint(folder, out, intensity=CT)
        assert "\n" not in str(refusal.value), name
        assert len(str(refusal.value)) < 600 + len(str(folder)), name
        assert not out.exists(), name
        count += 1
    assert count >= 60


def test_a_state_dict_in_safetensors_is_read_like_any_other(tmp_path, guided_network):
    save_file(guided_network.state_dict(), tmp_path / "x.safetensors")
    out = tmp_path / "y.safetensors"
    import_checkpoint(tmp_path / "x.safetensors", out, config=FLAGS, intensity=CT, half=False)
    assert_same(out, precondition("discrete", guided_network, 0.5, discrete("epsilon")), 16)
    with pytest.raises(RequestError, match="already"):
        import_checkpoint(out, tmp_path / "z.safetensors", config=FLAGS, intensity=CT)
