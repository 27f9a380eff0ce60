"""Runs stages in children that may be killed at any write.

Importing the engine takes seconds, so it is done once: this process has a single thread and
makes every child by fork. It reads one request a line and answers with one line:
``{"stage", "inputs", "out", "at"}`` -> ``{"killed", "code", "said", "events"}``; ``at`` is the
number of the event at which to die, -1 for never.
"""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path


def child(request, answer):
    from fault_injection import dying
    from fault_stages import STAGES

    events = []
    inputs, out = Path(request["inputs"]), Path(request["out"])
    with dying(out, request["at"], events):
        code, said = STAGES[request["stage"]].act(inputs, out, "new")
    Path(answer).write_text(json.dumps({"code": code, "said": said, "events": events}))


def serve(request):
    handle, answer = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    pid = os.fork()
    if pid == 0:
        try:
            child(request, answer)
        finally:
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    text = Path(answer).read_text()
    Path(answer).unlink()
    if os.WIFSIGNALED(status):
        return {"killed": True}
    return {"killed": False, **json.loads(text)}


NEEDED = (
    "engine.files.presets",
    "app.shell.settings",
    "app.workspace.file",
    "engine.cli",
    "engine.cli.experiment",
    "engine.cli.prior",
    "engine.cli.prior_train",
    "engine.cli.reconstruct",
    "engine.data.readers.arrays",
    "engine.export.dicom",
    "engine.export.hdf5",
    "engine.export.nifti",
    "engine.export.picture",
    "engine.priors.importing",
    "torch._dynamo",
)


def main():
    """Import what the children need, then serve until there is nobody to ask."""
    import torch

    for name in NEEDED:
        importlib.import_module(name)
    torch.set_num_threads(1)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
