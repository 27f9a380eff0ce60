"""Writes checkpoints in the formats that other people publish, as their programs write them.

The EDM snapshot is made by Python's own pickle from objects whose ``__reduce__`` is that of the
original persistence layer, with the modules it names present only while it is being written.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import types
from collections import OrderedDict

import numpy as np
import torch
from torch import nn

SOURCE = "# stands for the source of the module that defines the classes\n"


@contextlib.contextmanager
def fake_modules(**functions):
    """``module__name=function``: importable under that name for the time being."""
    added = []
    for path, function in functions.items():
        *parents, name = path.split("__")
        for depth in range(1, len(parents) + 1):
            full = ".".join(parents[:depth])
            if full not in sys.modules:
                sys.modules[full] = types.ModuleType(full)
                added.append(full)
        function.__module__, function.__qualname__ = ".".join(parents), name
        function.__name__ = name
        setattr(sys.modules[".".join(parents)], name, function)
    try:
        yield
    finally:
        for full in added:
            del sys.modules[full]


def reconstruct(meta):
    raise AssertionError("a snapshot must never be loaded by running it")


class Persistent:
    """An object as ``torch_utils.persistence`` pickles it."""

    def __init__(self, class_name, state, module_src=SOURCE):
        self.meta = {
            "type": "class",
            "version": 6,
            "module_src": module_src,
            "class_name": class_name,
            "state": state,
        }

    def __reduce__(self):
        return reconstruct, (self.meta,)


def persistent_module(module, kwargs, class_name, extra=None, module_src=SOURCE):
    """A network as a tree of persistent objects with the attributes of ``nn.Module``."""
    state = {
        "training": False,
        "_parameters": dict(module._parameters),
        "_buffers": dict(module._buffers),
        "_non_persistent_buffers_set": set(module._non_persistent_buffers_set),
        "_backward_hooks": OrderedDict(),
        "_forward_hooks": OrderedDict(),
        "_modules": {},
        "_init_args": (),
        "_init_kwargs": kwargs,
        # numpy numbers occur in the blocks' own attributes
        "skip_scale": np.sqrt(0.5),
        "init_weight": np.float32(0.2),
        **(extra or {}),
    }
    for name, child in module._modules.items():
        if child is None:
            state["_modules"][name] = None
        elif isinstance(child, nn.ModuleDict):
            plain = nn.ModuleDict()
            for key, item in child.items():
                plain._modules[key] = persistent_module(item, {}, type(item).__name__)
            state["_modules"][name] = plain
        else:
            state["_modules"][name] = persistent_module(child, {}, type(child).__name__)
    return Persistent(class_name, state, module_src)


WRAPPERS = {"edm": "EDMPrecond", "vp": "VPPrecond", "ve": "VEPrecond", "iddpm": "iDDPMPrecond"}
ATTRIBUTES = {
    "edm": {"sigma_min": 0, "sigma_max": float("inf"), "sigma_data": 0.5},
    "vp": {"beta_d": 19.9, "beta_min": 0.1, "M": 1000, "epsilon_t": 1e-5},
    "ve": {"sigma_min": 0.02, "sigma_max": 100},
    "iddpm": {"C_1": 0.001, "C_2": 0.008, "M": 1000},
}


def edm_snapshot(network, model_class, kwargs, wrapper="edm", module_src=SOURCE, **changes):
    """The dictionary that a snapshot pickles; ``changes`` replace attributes of the wrapper."""
    model = persistent_module(network, {**kwargs, "dropout": 0.1}, model_class)
    root = nn.Module()
    if wrapper == "iddpm":
        root.register_buffer("u", iddpm_u())
    tree = persistent_module(
        root,
        {"img_resolution": kwargs["img_resolution"], "model_type": model_class},
        WRAPPERS[wrapper],
        {**ATTRIBUTES[wrapper], "use_fp16": False, **changes},
        module_src,
    )
    tree.meta["state"]["_modules"]["model"] = model
    return {
        "ema": tree,
        "loss_fn": Persistent("EDMLoss", {"P_mean": -1.2, "P_std": 1.2, "sigma_data": 0.5}),
        "augment_pipe": None,
        "dataset_kwargs": {"class_name": "training.dataset.ImageFolderDataset", "xflip": False},
    }


def iddpm_u(steps=1000):
    u = torch.zeros(steps + 1, dtype=torch.float64)

    def alpha_bar(j):
        return np.sin(0.5 * np.pi * j / steps / 1.008) ** 2

    for j in range(steps, 0, -1):
        ratio = max(alpha_bar(j - 1) / alpha_bar(j), 0.001)
        u[j - 1] = ((u[j] ** 2 + 1) / ratio - 1).sqrt()
    return u.float()


def write_edm_pickle(path, content, protocol=4):
    with fake_modules(torch_utils__persistence___reconstruct_persistent_obj=reconstruct):
        path.write_bytes(pickle.dumps(content, protocol))
    return path


def write_inversebench(path, denoiser, **more):
    """{net, ema, optimizer, scheduler}, as the training program saves it."""
    optimizer = torch.optim.Adam(denoiser.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for parameter in denoiser.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    net = {name: torch.zeros_like(value) for name, value in denoiser.state_dict().items()}
    content = {
        "net": net,
        "ema": denoiser.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        **more,
    }
    torch.save(content, path)
    return path
