"""A connection between processes of one person on one computer.

Dask runs what it is sent, so a scheduler that merely listens on 127.0.0.1 would run the code of
any user of this computer. Here both ends first prove that they know a secret of the session;
whoever does not is cut off before a byte of a message is read. Nothing is encrypted: what passes
through 127.0.0.1 is seen by nobody but the system's administrator.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
import signal
import threading
from typing import Any

from distributed import Worker
from distributed.comm import CommClosedError
from distributed.comm.registry import backends
from distributed.comm.tcp import BaseTCPBackend, TCPConnector, TCPListener
from tornado.iostream import IOStream, StreamClosedError

SCHEME = "private"
SECRET = "DUALSCOPE_SESSION_SECRET"  # the variable through which our own workers learn it
BYTES = 32
PATIENCE_S = 60.0  # a process that is loading a large library answers late

_own = secrets.token_hex(BYTES)


def session_secret() -> str:
    """That of the parent process in a worker, our own in the first one."""
    return os.environ.get(SECRET, _own)


def _proof(role: bytes, nonce: bytes) -> bytes:
    return hmac.digest(session_secret().encode(), role + nonce, hashlib.sha256)


async def _within(work: Any) -> Any:
    return await asyncio.wait_for(work, PATIENCE_S)


class PrivateConnector(TCPConnector):
    prefix = f"{SCHEME}://"

    async def connect(self, *args: Any, **options: Any) -> Any:
        comm = await super().connect(*args, **options)
        stream, mine = comm.stream, secrets.token_bytes(BYTES)
        try:
            theirs = await _within(stream.read_bytes(BYTES))
            await stream.write(_proof(b"connects", theirs) + mine)
            answer = await _within(stream.read_bytes(BYTES))
        except (StreamClosedError, TimeoutError) as error:
            stream.close()
            raise CommClosedError("the other end does not know the session's secret") from error
        if not hmac.compare_digest(answer, _proof(b"listens", mine)):
            stream.close()
            raise CommClosedError("the other end does not know the session's secret")
        return comm


class PrivateListener(TCPListener):
    prefix = f"{SCHEME}://"

    async def _prepare_stream(self, stream: IOStream, address: str) -> IOStream | None:
        mine = secrets.token_bytes(BYTES)
        try:
            await stream.write(mine)
            answer = await _within(stream.read_bytes(2 * BYTES))
            if hmac.compare_digest(answer[:BYTES], _proof(b"connects", mine)):
                await stream.write(_proof(b"listens", answer[BYTES:]))
                return stream
        except (StreamClosedError, TimeoutError):
            pass
        stream.close()
        return None


class PrivateBackend(BaseTCPBackend):
    _connector_class = PrivateConnector
    _listener_class = PrivateListener


class PrivateWorker(Worker):
    """Where it is unpickled this module is imported. Ctrl-C is for the client, not for it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().__init__(*args, **options)


backends[SCHEME] = PrivateBackend()
