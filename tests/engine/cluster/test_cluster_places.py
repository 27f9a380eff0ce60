"""Where slices may go, and what is left when they are back: nothing."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from engine.cli import main
from engine.spec.errors import RequestError
from engine.workflows.cluster import local
from engine.workflows.cluster.compute_targets import ClusterAddress, LocalWorkers

ROOT = Path(__file__).resolve().parents[3]
ASKED = ["reconstruct", "demo:ct", "-o", "out.npy"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *arguments):
    """The one sentence with which a command line is refused before anything happens."""
    assert main([*ASKED, *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert list(Path().iterdir()) == []
    return err


@pytest.mark.parametrize(
    "address",
    [
        *("host", "host:8786", "tcp://host", "http://host:8786", "tcp://host:0", "tcp://:8786"),
        *("tcp://host:99999", "tcp://user:pw@host:8786", "tls://host:8786/x", "tcp://[::1:8786"),
        *("tcp://ho st:8786", "tcp://host:87x6", ""),
    ],
)
def test_an_address_that_is_none_is_refused(capsys, address):
    assert "is not the address of a Dask scheduler" in refused(capsys, "--cluster", address)


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://gpu.example:8786", False),
        ("tcp://gpu.example:8786", True),
        ("tcp://192.168.1.2:8786", True),
        ("tcp://localhost.example:8786", True),
        ("tcp://0.0.0.0:8786", True),
    ],
)
def test_what_leaves_this_computer_unencrypted_is_known(address, exposed):
    assert ClusterAddress(address).exposed == exposed


def test_unencrypted_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(socket, "create_connection", None)  # nobody is called before
    said = refused(capsys, "--cluster", "tcp://192.0.2.1:8786")
    assert "patient data would cross the network unencrypted" in said


def test_unencrypted_can_be_allowed(capsys, monkeypatch):
    def unreachable(address, timeout):
        raise OSError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    said = refused(capsys, "--cluster", "tcp://192.0.2.1:8786", "--allow-unencrypted")
    assert "Nobody can be reached at tcp://192.0.2.1:8786 (connection refused)" in said


def test_an_unreachable_address_is_one_sentence(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        assert "Nobody can be reached" in refused(capsys, "--cluster", f"tcp://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--workers", "0"), "--workers must be from 1"),
        (("--workers", "many"), "--workers"),
        (("--workers", "2", "--cluster", "tcp://127.0.0.1:1"), "not both"),
        (("--tls-ca", "x.pem"), "--tls-ca is for --cluster"),
        (("--allow-unencrypted",), "--allow-unencrypted is for --cluster"),
        (("--dashboard",), "--dashboard is for --workers"),
        (("--cluster", "tcp://127.0.0.1:1", "--tls-key", "x.pem"), "begins with tls://"),
        (("--cluster", "tls://127.0.0.1:1", "--tls-key", "x.pem"), "there is no file x.pem"),
        (("--check-every", "9"), "--check-every is for"),
        (("--workers", "2", "--check-every", "-1"), "--check-every must be 0"),
        (("--workers", "2", "--record", "r.json"), "leave --record"),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, arguments, said):
    assert said in refused(capsys, *arguments)


def test_tls_files_add_to_what_dask_is_told(tmp_path):
    import dask

    from engine.workflows.cluster.local import security_of

    ca = tmp_path / "ca.pem"
    ca.touch()
    with dask.config.set({"distributed.comm.tls.client.key": "configured.pem"}):
        security = security_of(ClusterAddress("tls://host:8786", tls_ca=ca))
    assert security.require_encryption
    assert (security.tls_ca_file, security.tls_client_key) == (str(ca), "configured.pem")


def test_workers_share_the_processor():
    assert LocalWorkers(1).threads >= LocalWorkers(2).threads >= 1
    with pytest.raises(RequestError):
        LocalWorkers(10_000)


def test_something_else_that_listens_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        place = ClusterAddress(f"tcp://127.0.0.1:{server.getsockname()[1]}")

        def speak_nonsense():
            for _ in range(2):  # who asks whether we are there, and who talks Dask
                with server.accept()[0] as talk:
                    talk.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3)

        thread = threading.Thread(target=speak_nonsense)
        thread.start()
        try:
            with pytest.raises(RequestError, match="No Dask scheduler answers"), place.open():
                pass
        finally:
            thread.join()
    assert not [t for t in threading.enumerate() if t.name in ("cluster", "IO loop")]


def test_a_stranger_on_this_computer_is_cut_off(shared):
    host, port = shared.site.client.scheduler.address.removeprefix("tls://").split(":")
    assert host == "127.0.0.1"
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, ConnectionError)):  # no certificate of the session
        _say(host, int(port), stranger)
    with contextlib.suppress(ConnectionError):
        assert _say(host, int(port)) in (b"", b"\x15"), "no more than an alert of TLS"


def _say(host, port, context=None):
    with socket.create_connection((host, port), timeout=120) as plain:
        talk = context.wrap_socket(plain) if context else plain
        talk.sendall(bytes(64))
        return talk.recv(1)


LIFE = """
import json, os, sys, tempfile, threading
import psutil
if __name__ == "__main__":
    import engine.cli.reconstruct
    assert not {"dask", "distributed"} & set(sys.modules), "they take seconds to import"
    from engine.workflows.cluster.compute_targets import LocalWorkers
    folder = sys.argv[1]
    tempfile.tempdir = folder
    me = psutil.Process()
    before = dict(os.environ)
    with LocalWorkers(1).open() as site:
        (pid,) = site.client.run(os.getpid).values()
        mine = [me, psutil.Process(pid)]
        listening = [c.laddr.ip for p in mine for c in p.net_connections() if c.status == "LISTEN"]
    print(json.dumps({
        "listening": listening,
        "threads": [t.name for t in threading.enumerate() if t is not threading.main_thread()],
        "alive": psutil.pid_exists(pid),
        "children": [p.cmdline()[-1] for p in me.children(recursive=True)],
        "sockets": len(me.net_connections()),
        "folder": os.listdir(folder),
        "environment": dict(os.environ) == before,
    }), flush=True)
    with LocalWorkers(1).open() as site:
        print(json.dumps(list(site.client.run(os.getpid).values())), flush=True)
        sys.stdin.read()
"""


def test_nothing_is_left_behind_and_workers_die_with_a_killed_client(tmp_path, monkeypatch):
    (tmp_path / "life.py").write_text(LIFE)
    (tmp_path / "tmp").mkdir()
    child = subprocess.Popen(
        [sys.executable, "life.py", str(tmp_path / "tmp")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    left = json.loads(child.stdout.readline())
    (worker,) = json.loads(child.stdout.readline())
    if sys.platform == "linux":
        os.kill(worker, signal.SIGSTOP)  # a frozen one, too
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert set(left.pop("listening")) == {"127.0.0.1"}
    # Python's own helper, which ends with its process
    left["children"] = [what for what in left["children"] if "resource_tracker" not in what]
    assert left == {
        "threads": [],
        "alive": False,
        "children": [],
        "sockets": 0,
        "folder": [],
        "environment": True,
    }
    begun = time.monotonic()
    while Path(f"/proc/{worker}").exists():
        assert time.monotonic() - begun < 120, "a worker outlives its client"
        time.sleep(0.05)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (left,) = (tmp_path / "tmp").iterdir()
    with local.scratch_folder() as own, local.scratch_folder() as other:
        assert not left.exists(), "what a killed client has left goes at the next start"
        assert Path(own).exists(), "what is in use stays"
        assert Path(other).exists()
