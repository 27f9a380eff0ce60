"""Small volumes that take milliseconds a slice."""

from pathlib import Path

import numpy as np

from engine.physics.phantoms import ct_phantom
from engine.spec.job import Job
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.plan import make_plan
from engine.workflows.volume.reconstruct import Stored, VolumeRun


def small_stack(path, count=5, size=64):
    """Slices that change slowly, as an array of HU."""
    first, last = (ct_phantom(seed=s, size=size, region="abdomen").image for s in (1, 2))
    shares = np.linspace(0, 0.2, count, dtype=np.float32)[:, None, None]
    np.save(path, (1 - shares) * first + shares * last)
    return path


def small_job(path, **changes):
    settings = {"nfe": 3, "cg_iterations": 3, **changes.pop("settings", {})}
    values = {
        "options": {"unit": "hu", "pixel_mm": 6.0},
        "acquisition": {"views": 8},
        "prior": "tv",
        "device": "cpu",
        "settings": settings,
    }
    return Job(str(Path(path).absolute()), **{**values, **changes})


def plan_of(job, **layout):
    return make_plan(job, **{"batch": 1, "threads": 1, **layout})


def run_volume(path, plan, control=None):
    """Compute what is missing; the events."""
    with VolumeFolder.create(path, plan) as folder:
        return list(VolumeRun(folder, control=control))


def stored_numbers(events):
    return [event.result.number for event in events if isinstance(event, Stored)]


def images(path):
    folder = VolumeFolder.open(path)
    return np.stack([folder.read(number).image.numpy() for number in folder.plan.numbers])
