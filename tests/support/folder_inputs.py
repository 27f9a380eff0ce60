"""Small inputs for a folder, and a request that takes a moment each."""

import json
import shutil
from pathlib import Path

import numpy as np
from dicom_files import write_series
from pydicom.data import get_testdata_file

from engine.spec.control import RunControl
from engine.spec.job import Job
from engine.workflows.folder.request import FolderRequest
from engine.workflows.folder.runner import FolderRunner

UNIT = {"unit": "hu", "pixel_mm": 12.0}
SETTLE = 0.02  # seconds; a file of a test is written at once


def save_slice(path, seed=1):
    """A disc of tissue in air, in HU; every seed makes another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows, columns = np.mgrid[-1:1:32j, -1:1:32j]
    inside = rows**2 + columns**2 < 0.7
    np.save(path, np.where(inside, 40.0 + 5 * seed, -1000.0).astype(np.float32))
    return path


def copy_dicom(folder, *names):
    for name in names:
        shutil.copy(get_testdata_file(name), folder)


def save_series(folder, count, **tags):
    folder.mkdir(parents=True, exist_ok=True)
    return write_series(folder, [2.0 * number for number in range(count)], **tags)


def request(folder, results, solver="fbp", **options):
    """FBP with eight views to .npy, unless something else is said."""
    job = {"options": dict(UNIT), "solver": solver, "acquisition": {"views": 8}, "prior": "tv"}
    job |= options.pop("job", {})
    options = {"formats": ("npy",), "settle_seconds": SETTLE, **options}
    return FolderRequest(Path(folder), Path(results), Job(input="", **job), **options)


def run_folder(asked, control=None):
    """Run to the end; the rows by name, and the names that were computed."""
    runner, computed = FolderRunner(asked, control or RunControl()), []
    runner.ended = lambda row: computed.append(row.name)
    runner.run()
    return {row.name: row for row in runner.rows}, computed


def table_rows(results):
    body = json.loads((Path(results) / "table.json").read_text())
    return {row["input"] or str(row["number"]): row for row in body["rows"]}
