"""Snapshots of NVlabs/edm (``network-snapshot-*.pkl``), a pickle with program code inside.

Every object in it is written as a call of ``torch_utils.persistence._reconstruct_persistent_obj``
with the source code of its class, which the original loader executes. Here that call makes an
inert record; the source is hashed for the prior's history and otherwise ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import torch

from engine.priors.importing.bounds import Budget
from engine.priors.importing.checkpoint import Checkpoint, chosen, plain
from engine.priors.importing.safe_pickle import Record, read_pickle
from engine.priors.importing.stored import (
    NUMPY_NAMES,
    StoredTensor,
    ordered_dict,
    rebuild_parameter,
    rebuild_tensor,
)
from engine.priors.importing.torch_zip import load_from_bytes
from engine.priors.networks import adm, song
from engine.priors.precondition import VPPreconditioned, iddpm_levels
from engine.spec.errors import RequestError

FORMAT = "NVlabs EDM snapshot"
LICENCE = "CC BY-NC-SA 4.0 (NVlabs EDM: not for commercial use), unless its author says otherwise"
LARGEST_BYTES = 2 << 30
MOST_MODULES, DEEPEST_MODULE = 20_000, 12
MODULE, PERSISTENT = "module", "persistent"
# class of the wrapper -> our preconditioning
WRAPPERS = {"EDMPrecond": "edm", "VPPrecond": "vp", "VEPrecond": "ve", "iDDPMPrecond": "iddpm"}
TRAINING_ONLY = ("dropout", "label_dropout")
NETWORKS: dict[str, tuple[str, Any]] = {
    "SongUNet": ("song-unet", song),
    "DhariwalUNet": ("adm-unet", adm),
}


def read_edm_pickle(path: Path) -> Checkpoint:
    """The averaged network ('ema') of a snapshot."""
    size = path.stat().st_size
    if size > LARGEST_BYTES:
        raise RequestError(f"it is larger than {LARGEST_BYTES >> 30} GiB")
    budget = Budget()
    names = {**NAMES, ("torch.storage", "_load_from_bytes"): _loader(budget)}
    with path.open("rb") as stream:
        content = read_pickle(stream, size, names, None, budget)
        if stream.read(1):
            raise RequestError("something follows after the end of its pickle")
    if type(content) is not dict or not _is_persistent(content.get("ema")):
        raise RequestError("it is not a snapshot with a network under 'ema'")
    return _checkpoint(content["ema"], path)


def _checkpoint(root: Record, path: Path) -> Checkpoint:
    wrapper, state = _class_name(root), _state(root)
    if wrapper not in WRAPPERS:
        raise RequestError(f"its network is a {wrapper[:60]}, not one of {', '.join(WRAPPERS)}")
    model = dict(_names(state, "_modules")).get("model")
    if not _is_persistent(model) or _class_name(model) not in NETWORKS:
        raise RequestError(f"its network is not one of {', '.join(NETWORKS)}")
    architecture, module = NETWORKS[_class_name(model)]
    given = plain(_state(model).get("_init_kwargs"))
    if type(given) is not dict:
        raise RequestError("its network does not say how it was built")
    unknown = sorted(set(given) - {*module.REQUIRED, *module.DEFAULTS, *TRAINING_ONLY})
    if unknown:
        raise RequestError(f"its network has the unknown argument '{unknown[0]}'")
    kwargs = chosen(given, {**dict.fromkeys(module.REQUIRED), **module.DEFAULTS})
    module.check_kwargs(kwargs)
    preconditioning = WRAPPERS[wrapper]
    weights = dict(_tensors(root))
    if preconditioning == "iddpm":
        _check_levels(weights.pop("u", None))
    return Checkpoint(
        source=path,
        format=FORMAT,
        architecture=architecture,
        architecture_kwargs=kwargs,
        preconditioning=preconditioning,
        weights=weights,
        native_size=kwargs["img_resolution"],
        channels=kwargs["in_channels"],
        licence=LICENCE,
        facts={
            "Class": f"{wrapper}({_class_name(model)})",
            "Arguments": repr(plain(state.get("_init_kwargs"))),
            "module_src sha256": _source_hash(root),
        },
        **_levels(preconditioning, state),
    )


def _levels(preconditioning: str, state: dict[str, Any]) -> dict[str, Any]:
    """The noise levels to use, from the wrapper's own attributes where they are finite."""
    if preconditioning == "edm":
        # the wrapper says 0 to infinity; the range is the one of the paper's sampler
        return {"sigma_data": _number(state, "sigma_data", 0.5, 1e-3, 1e3)}
    if preconditioning == "ve":
        low = _number(state, "sigma_min", 0.02, 1e-4, 1.0)
        return {"sigma_min": low, "sigma_max": _number(state, "sigma_max", 100.0, 2.0, 1e5)}
    if preconditioning == "vp":
        constants = {"beta_d": VPPreconditioned.beta_d, "beta_min": VPPreconditioned.beta_min}
        for name, value in {**constants, "M": VPPreconditioned.steps}.items():
            if abs(_number(state, name, value, 0, 1e6) - value) > 1e-6 * value:
                raise RequestError(f"its {name} is not {value}, as in every published network")
        return {"sigma_min": 0.0011, "sigma_max": 152.0}
    return {"sigma_min": float(iddpm_levels()[-2]), "sigma_max": float(iddpm_levels()[0])}


def _check_levels(levels: Any) -> None:
    """'u' of an iDDPM wrapper is a formula, and too fine for half precision: we compute it."""
    expected = iddpm_levels().float()
    if type(levels) is not StoredTensor or levels.shape != tuple(expected.shape):
        raise RequestError("its noise levels 'u' are missing")
    if not torch.allclose(levels.read(), expected, rtol=1e-3, atol=1e-6):
        raise RequestError("its noise levels 'u' are not those of the published networks")


def _number(state: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = state.get(name, default)
    if type(value) not in (int, float) or not low <= value <= high:
        raise RequestError(f"its '{name}' is not a number from {low:g} to {high:g}")
    return float(value)


def _tensors(root: Record) -> Iterator[tuple[str, StoredTensor]]:
    """Parameters and lasting buffers by their full names, in the order of a state dict."""
    left = MOST_MODULES

    def walk(record: Record, prefix: str, depth: int) -> Iterator[tuple[str, StoredTensor]]:
        nonlocal left
        left -= 1
        # these also end the walk through modules that contain themselves
        if left < 0 or depth > DEEPEST_MODULE:
            raise RequestError("its modules are nested too deeply or are too many")
        state = _state(record)
        passing = state.get("_non_persistent_buffers_set")
        passing = passing if type(passing) is set else set()
        for group in ("_parameters", "_buffers"):
            for name, value in _names(state, group):
                if type(value) is StoredTensor and name not in passing:
                    yield prefix + name, value
                elif value is not None and type(value) is not StoredTensor:
                    raise RequestError(f"its '{prefix}{name}' is not a tensor")
        for name, child in _names(state, "_modules"):
            if type(child) is Record:
                yield from walk(child, f"{prefix}{name}.", depth + 1)
            elif child is not None:
                raise RequestError(f"its '{prefix}{name}' is not a module")

    return walk(root, "", 0)


def _names(state: dict[str, Any], group: str) -> list[tuple[str, Any]]:
    values = state.get(group, {})
    if type(values) is not dict or not all(type(n) is str and "." not in n for n in values):
        raise RequestError(f"one of its modules has no proper '{group}'")
    return list(values.items())


def _is_persistent(value: Any) -> TypeGuard[Record]:
    return type(value) is Record and value.kind == PERSISTENT


def _state(record: Record) -> dict[str, Any]:
    state = record.state
    if record.kind == PERSISTENT:
        # the state is part of what the object is made from, and nothing sets another one
        state = record.made.get("state") if record.state is None else None
    if type(state) is not dict or record.kind not in (PERSISTENT, MODULE):
        raise RequestError("one of its objects has no state")
    return state


def _class_name(record: Record) -> str:
    name = record.made.get("class_name")
    return name if type(name) is str else "?"


def _source_hash(record: Record) -> str:
    source = record.made.get("module_src")
    if type(source) is not str:
        return "none"
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


def _persistent_object(meta: Any) -> Record:
    if type(meta) is not dict or meta.get("type") != "class":
        raise RequestError("one of its objects is not in the format of torch_utils.persistence")
    return Record(PERSISTENT, meta)


def _module_dict() -> Record:
    return Record(MODULE)


def _loader(budget: Budget) -> Any:
    return lambda content: load_from_bytes(content, budget)


def _set(items: Any = ()) -> set[str]:
    if type(items) not in (list, tuple) or not all(type(item) is str for item in items):
        raise RequestError("it holds a set of something else than names")
    return set(items)


def _encode(text: Any, encoding: Any) -> bytes:
    """How pickles of the oldest protocols write bytes."""
    if type(text) is not str or encoding != "latin1":
        raise RequestError("it holds bytes in an unusual form")
    return text.encode("latin1")


NAMES: dict[tuple[str, str], Any] = {
    ("torch_utils.persistence", "_reconstruct_persistent_obj"): _persistent_object,
    ("torch.nn.modules.container", "ModuleDict"): _module_dict,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("collections", "OrderedDict"): ordered_dict,
    **NUMPY_NAMES,
    ("builtins", "set"): _set,
    ("__builtin__", "set"): _set,
    ("_codecs", "encode"): _encode,
}
