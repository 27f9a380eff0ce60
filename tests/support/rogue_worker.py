"""A Dask worker that may be told to misbehave: ``python rogue_worker.py SCHEDULER NAME FOLDER``.

What it does with a parcel stands in FOLDER/mode. Where one of its pickles is opened, the process's
number is added to FOLDER/canary.
"""

import asyncio
import dataclasses
import os
import pickle
import signal
import sys
import time
from pathlib import Path

RED = "\x1b[31mred\u202e"


class Canary(Exception):
    """Writes down who opens it."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        code = f"import os; open({self.path!r}, 'a').write(str(os.getpid()) + '\\n')"
        return exec, (code,)


def sung(path):
    """Processes that have opened a canary."""
    return {int(line) for line in Path(path).read_text().split()} if Path(path).exists() else set()


async def serve(address, name, folder):
    from distributed import Status, Worker
    from distributed.protocol.serialize import Serialized

    from engine.runs.run import image_sha256
    from engine.workflows.cluster import work
    from engine.workflows.cluster.answers import ERROR, SLICES, pack_answer, unpack_answer
    from engine.workflows.cluster.payload import Parcel
    from engine.workflows.volume.slice_file import pack_slice, unpack_slice

    honest = work.compute
    canary = folder / "canary"

    def mode():
        return (folder / "mode").read_text()

    def compute(content):
        parcel = Parcel.unpack(content)
        if mode() == "exception":
            raise Canary(canary)
        if mode() == "escapes":
            return pack_answer(ERROR, [RED.encode()], parcel.key, content)
        while mode() == "sleep":
            time.sleep(0.05)
        if mode() == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        answer = honest(content)
        return lesion(parcel, content, answer) if mode() == "lesion" else answer

    def lesion(parcel, content, answer):
        import hashlib

        _, parts = unpack_answer(answer, parcel.key, hashlib.sha256(content).digest())
        shape, found = parcel.plan.image_shape, []
        for number, part in zip(parcel.batch.kept, parts, strict=True):
            true = unpack_slice(part, number, shape)
            image = true.image.clone()
            image[..., 20:24, 20:24] += 200 / true.intensity.scale
            false = dataclasses.replace(true, image=image, sha256=image_sha256(image))
            found.append(pack_slice(false))
        return pack_answer(SLICES, found, parcel.key, content)

    class Rogue(Worker):
        async def get_data(self, comm, keys, who=None, serializers=None):
            if mode() != "pickle" or not all(key.startswith("compute") for key in keys):
                return await super().get_data(comm, keys, who, serializers)
            header = {"serializer": "pickle", "writeable": ()}
            data = Serialized(header, [pickle.dumps(Canary(canary))])
            await comm.write({"status": "OK", "data": dict.fromkeys(keys, data)})
            await comm.read()
            return Status.dont_reply

    work.compute = compute
    worker = await Rogue(address, name=name, nthreads=1, memory_limit=0, host="127.0.0.1")
    (folder / "ready").write_text(str(os.getpid()))
    await worker.finished()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
