"""NVlabs EDM snapshots: written faithfully, read back to the same denoiser."""

import hashlib
import pickletools

import pytest
import torch
from edm_writer import SOURCE, edm_snapshot, write_edm_pickle
from import_cases import CASES, tiny_network, tiny_snapshot

from engine.physics.units import IntensityMap
from engine.priors.importing import import_checkpoint
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import load_prior_file
from engine.spec.errors import RequestError

CT = IntensityMap("hu", 800.0)


def same_denoiser(path, expected, channels, size=8):
    prior, x = load_prior_file(path), torch.randn(1, channels, size, size)
    expected = expected.to(memory_format=torch.channels_last)
    for sigma in (0.05, 0.7, 20.0):
        with torch.no_grad():
            assert torch.equal(prior(x, sigma), expected(x, sigma))
    return prior


@pytest.mark.parametrize("wrapper", ["edm", "vp", "ve"])
@pytest.mark.parametrize("architecture", CASES)
def test_a_snapshot_becomes_the_same_denoiser(tmp_path, architecture, wrapper):
    source, network = tiny_snapshot(tmp_path / "x.pkl", architecture, wrapper)
    header = import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, half=False)
    expected = precondition(wrapper, network, 0.5)
    same_denoiser(tmp_path / "x.safetensors", expected, header.channels)
    assert header.architecture == architecture
    assert header.preconditioning == wrapper


def test_an_iddpm_snapshot_keeps_its_further_outputs_and_not_its_table(tmp_path):
    network, kwargs = tiny_network("adm-unet", out_channels=4)
    content = edm_snapshot(network, "DhariwalUNet", kwargs, "iddpm")
    source = write_edm_pickle(tmp_path / "x.pkl", content)
    header = import_checkpoint(source, tmp_path / "x.safetensors", half=False)
    same_denoiser(tmp_path / "x.safetensors", precondition("iddpm", network, 0.5), 2)
    assert header.sigma_max > 1e4


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_reads(tmp_path, protocol):
    source, network = tiny_snapshot(tmp_path / "x.pkl", protocol=protocol)
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, half=False)
    same_denoiser(tmp_path / "x.safetensors", precondition("edm", network, 0.5), 1)


def test_the_written_file_has_the_globals_of_a_genuine_one(tmp_path):
    """The list was taken from a real snapshot: the writer must not be easier than the world."""
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    strings, found = [], set()
    for opcode, argument, _ in pickletools.genops(source.read_bytes()):
        if opcode.name == "STACK_GLOBAL":
            found.add(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    names = {name.split(".")[-1] for name in found}
    assert {"_reconstruct_persistent_obj", "OrderedDict", "_rebuild_parameter"} <= names
    assert {"_rebuild_tensor_v2", "_load_from_bytes", "ModuleDict", "scalar", "dtype"} <= names


def test_the_prior_keeps_its_history(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "network-snapshot-000001.pkl")
    header = import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, name="mine")
    info = load_prior_file(tmp_path / "x.safetensors").info
    assert info.name == "mine"
    assert info.intensity == CT
    assert info.native_size == 8
    assert header.source_sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    card = info.details["model_card"]
    assert hashlib.sha256(SOURCE.encode()).hexdigest() in card
    assert "EDMPrecond(SongUNet)" in card
    assert "network-snapshot-000001.pkl" in card
    assert "CC BY-NC-SA 4.0" in info.licence
    assert "CC BY-NC-SA 4.0" in card


def test_half_precision_is_the_default(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    import_checkpoint(source, tmp_path / "half.safetensors", intensity=CT)
    import_checkpoint(source, tmp_path / "full.safetensors", intensity=CT, half=False)
    half, full = ((tmp_path / f"{n}.safetensors").stat().st_size for n in ("half", "full"))
    assert half < 0.7 * full


def test_random_frequencies_are_never_halved(tmp_path):
    changes = {"embedding_type": "fourier", "channel_mult_noise": 2, "encoder_type": "residual"}
    network, kwargs = tiny_network(**changes, resample_filter=[1, 3, 3, 1])
    content = edm_snapshot(network, "SongUNet", kwargs, "ve")
    source = write_edm_pickle(tmp_path / "x.pkl", content)
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT)
    same_denoiser(tmp_path / "x.safetensors", precondition("ve", network, 0.5), 1)


def test_the_meaning_of_the_numbers_is_asked_for_in_one_sentence(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    with pytest.raises(RequestError, match=r"--hu-scale 800 .* or --mr") as refusal:
        import_checkpoint(source, tmp_path / "x.safetensors")
    assert "\n" not in str(refusal.value)


def test_two_channels_are_a_complex_mr_image(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "x.pkl", "adm-unet")
    assert import_checkpoint(source, tmp_path / "x.safetensors").intensity["kind"] == "mr"


def test_the_card_takes_nothing_in_the_file_for_markup(tmp_path):
    network, kwargs = tiny_network()
    content = edm_snapshot(network, "SongUNet", kwargs)
    text = "` <img src=x> **bold**\n# Title " + "x" * 10_000
    content["ema"].meta["state"]["_init_kwargs"] = {"note": text, "more": [text] * 100}
    source = write_edm_pickle(tmp_path / "x.pkl", content)
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT)
    card = load_prior_file(tmp_path / "x.safetensors").info.details["model_card"]
    line = next(line for line in card.splitlines() if "img" in line)
    assert line.count("`") == 2
    assert len(card) < 10_000
    assert "\n# Title" not in card


@pytest.mark.parametrize(
    ("config", "message"),
    [({"architecture": "adm-unet"}, "not of 'adm-unet'"), ({"sigma_data": 1}, "no configuration")],
)
def test_a_snapshot_needs_no_configuration(tmp_path, config, message):
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    with pytest.raises(RequestError, match=message):
        import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT, config=config)
    import_checkpoint(
        source, tmp_path / "x.safetensors", intensity=CT, config={"architecture": "song-unet"}
    )


def test_a_missing_folder_is_named(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    with pytest.raises(RequestError, match="there is no folder"):
        import_checkpoint(source, tmp_path / "absent" / "x.safetensors", intensity=CT)


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    out = tmp_path / "x.safetensors"
    out.write_bytes(b"precious")
    with pytest.raises(RequestError, match="--overwrite"):
        import_checkpoint(source, out, intensity=CT)
    assert out.read_bytes() == b"precious"
    import_checkpoint(source, out, intensity=CT, overwrite=True)
    load_prior_file(out)


@pytest.mark.parametrize(
    ("wrapper", "changes", "message"),
    [
        ("edm", {"sigma_data": -1.0}, "sigma_data"),
        ("edm", {"sigma_data": "half"}, "sigma_data"),
        ("vp", {"beta_d": 3.0}, "beta_d"),
        ("ve", {"sigma_max": float("inf")}, "sigma_max"),
    ],
)
def test_wrappers_with_other_constants_are_refused(tmp_path, wrapper, changes, message):
    source, _ = tiny_snapshot(tmp_path / "x.pkl", wrapper=wrapper, **changes)
    with pytest.raises(RequestError, match=message):
        import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_channels": 10**9}, "model_channels"),
        ({"model_channels": 16}, "expected"),
        ({"num_blocks": 2}, "unexpected"),
        ({"attn_resolutions": []}, "unexpected"),
        ({"hidden": 1}, "unknown argument 'hidden'"),
        ({"channel_mult": {"a": 1}}, "channel_mult"),
        ({"resample_filter": [1, 3, 3, 1]}, "resample_filter"),
    ],
)
def test_arguments_that_do_not_fit_the_weights_are_refused(tmp_path, changes, message):
    network, kwargs = tiny_network()
    content = edm_snapshot(network, "SongUNet", {**kwargs, **changes})
    source = write_edm_pickle(tmp_path / "x.pkl", content)
    with pytest.raises(RequestError, match=message):
        import_checkpoint(source, tmp_path / "x.safetensors", intensity=CT)
    assert not (tmp_path / "x.safetensors").exists()
