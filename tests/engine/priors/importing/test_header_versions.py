"""Our own format across its versions, and headers that contradict their network."""

import json

import pytest
from import_cases import tiny_snapshot
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.physics.units import IntensityMap
from engine.priors.importing import import_checkpoint
from engine.priors.safetensors_file import load_prior_file
from engine.spec.errors import RequestError


@pytest.fixture
def path(tmp_path):
    source, _ = tiny_snapshot(tmp_path / "x.pkl")
    import_checkpoint(source, tmp_path / "x.safetensors", intensity=IntensityMap("hu", 800.0))
    return tmp_path / "x.safetensors"


def rewrite(path, **changes):
    with safe_open(path, framework="pt") as file:
        metadata = {**file.metadata(), **changes}
    metadata = {name: text for name, text in metadata.items() if text is not None}
    save_file(load_file(path), path, metadata=metadata)


def test_a_file_of_the_first_version_still_loads(path):
    rewrite(path, version="1", preconditioning_kwargs=None)
    assert load_prior_file(path).info.details["preconditioning_kwargs"] == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"preconditioning_kwargs": None},
        {"preconditioning_kwargs": "[]"},
        {"preconditioning_kwargs": '{"prediction": "epsilon"}'},
        {"preconditioning": "discrete"},
        {"preconditioning": "discrete", "preconditioning_kwargs": '{"prediction": "epsilon"}'},
        {"channels": "2"},
        {"version": "1.2"},
    ],
)
def test_headers_that_do_not_fit_are_refused(path, changes):
    rewrite(path, **changes)
    with pytest.raises(RequestError, match="cannot be used as a prior"):
        load_prior_file(path)


def test_a_network_of_other_channels_than_declared_is_refused(path):
    with safe_open(path, framework="pt") as file:
        kwargs = json.loads(file.metadata()["architecture_kwargs"])
    for name in ("in_channels", "out_channels"):
        rewrite(path, architecture_kwargs=json.dumps({**kwargs, name: 2}))
        with pytest.raises(RequestError, match="do not fit its network"):
            load_prior_file(path)
