"""What files from strangers may make the engine do, and what it leaves behind of a patient."""

import json
import os
import socket
import subprocess
import sys

import pytest
from dicom_files import write_slice
from recorded_runs import record_run, save_disc
from sandbox import Watch

from engine.cli import main
from engine.data.source import open_input
from engine.files.checkpoint import Checkpoint
from engine.files.path_safety import fault_of_place, is_network
from engine.files.record import RunRecord
from engine.runs.prepare import resume_run
from engine.runs.reopen import Rebuilder
from engine.spec.errors import RequestError

ELSEWHERE = ("\\\\server\\share\\x.npy", "//server/share/x.npy", "smb://server/x", "/dev/zero", "/")
MARK = "ZQX"
TEXT_TAGS = (
    *("PatientID", "AccessionNumber", "StudyDescription", "SeriesDescription", "ProtocolName"),
    *("InstitutionName", "InstitutionAddress", "StationName", "PatientComments", "ImageComments"),
    *("PatientAddress", "RequestedProcedureDescription", "AdditionalPatientHistory", "StudyID"),
    *("DeviceSerialNumber", "OtherPatientIDs", "MilitaryRank", "Occupation", "Manufacturer"),
)
NAME_TAGS = ("PatientName", "ReferringPhysicianName", "OperatorsName", "PatientMotherBirthName")
DATE = "19230405"
DATE_TAGS = ("PatientBirthDate", "StudyDate", "SeriesDate", "AcquisitionDate", "ContentDate")


@pytest.fixture
def run(tmp_path):
    """A recorded run; changes of its job make it a stranger's."""
    path = tmp_path / "run.json"
    image = save_disc(tmp_path / "disc.npy")
    record_run(path, input=str(image), options={"unit": "hu", "pixel_mm": 1.0})

    def changed(**job):
        body = json.loads(path.read_bytes())
        body["job"] |= job
        path.write_text(json.dumps(body))
        return path

    return changed


@pytest.fixture
def reached(monkeypatch):
    """Paths that the engine asks the system about."""
    asked = []
    exists = os.stat

    def stat(path, *args, **kwargs):
        asked.append(os.fspath(path) if not isinstance(path, int) else "")
        return exists(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", stat)
    return asked


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize("entry", ["input", "prior", "sidecar"])
def test_a_record_cannot_send_the_engine_elsewhere(run, reached, place, entry):
    path = run(**({"options": {"sidecar": place}} if entry == "sidecar" else {entry: place}))
    for use in (resume_run, Rebuilder().rebuild):
        with pytest.raises(
            RequestError, match=r"names (data on another computer|a device|a whole)"
        ):
            use(path)
    assert place not in reached


def test_a_person_may_name_a_network_address_that_a_record_may_not(run, tmp_path):
    path = run(input="//server/share/disc.npy")
    prepared, _ = resume_run(path, input=str(tmp_path / "disc.npy"))
    assert prepared.job.input == str(tmp_path / "disc.npy")


def test_ordinary_places_are_not_refused(tmp_path):
    for text in ("demo:ct", "disc.npy", "./a/b.npy", str(tmp_path), "C:\\scans\\x", "/dev/shm/x"):
        assert not is_network(text)
        assert fault_of_place(text) == ""
    assert fault_of_place("//server/share", network=True) == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe.npy"
    os.mkfifo(pipe)
    for use in (lambda: open_input(str(pipe)), lambda: RunRecord.read(pipe)):
        with pytest.raises(RequestError, match="neither a file nor a folder"):
            use()
    with pytest.raises(RequestError, match="neither a file nor a folder"):
        Checkpoint.read(pipe)


def test_a_record_names_no_output_that_is_written(run, tmp_path):
    victim = tmp_path / "victim.npy"
    victim.write_bytes(b"mine")
    path = run()
    body = json.loads(path.read_bytes())
    path.write_text(json.dumps({**body, "status": "running", "outputs": [str(victim)]}))
    with Watch(tmp_path) as watch:
        assert main(["reconstruct", "--resume", str(path), "--quiet"]) == 0
    assert victim.read_bytes() == b"mine"
    assert [line for line in watch.written if "matrices" not in line] == []


def test_no_value_of_a_dicom_header_gets_into_a_record(tmp_path):
    tags = {name: f"{MARK}-{number}" for number, name in enumerate(TEXT_TAGS)}
    tags |= {name: f"{MARK}^{name}" for name in NAME_TAGS}
    tags |= dict.fromkeys(DATE_TAGS, DATE)
    source = write_slice(tmp_path / "in.dcm", **tags)
    assert MARK.encode() in source.read_bytes()
    record_run(tmp_path / "run.json", input=str(source))
    content = (tmp_path / "run.json").read_text()
    content += Checkpoint.path_beside(tmp_path / "run.json").read_bytes().decode("latin-1")
    assert MARK not in content
    assert DATE not in content


COMMANDS = (
    "prior list",
    "doctor",
    "audit",
    "inspect disc.npy --unit hu",
    "reconstruct disc.npy --unit hu --pixel-mm 1 --views 8 --solver dc-pnpdp --nfe 2 --prior tv "
    "--quiet -o out.npy --record run.json",
)


def test_no_command_uses_the_network(tmp_path, monkeypatch, capsys):
    save_disc(tmp_path / "disc.npy")
    monkeypatch.chdir(tmp_path)
    with Watch(tmp_path, all_threads=True) as watch:
        for command in COMMANDS:
            assert main(command.split()) in (0, 1), command
    capsys.readouterr()
    assert (tmp_path / "run.json").exists()
    assert watch.connected == []


def test_the_watch_would_hear_a_socket():
    with Watch(all_threads=True) as watch, socket.socket(socket.AF_INET, socket.SOCK_STREAM):
        pass
    assert watch.connected


def test_starting_loads_no_networking():
    code = "import sys, engine.cli, app.main, app.window; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"PySide6.QtNetwork", "PySide6.QtWebEngineCore", "requests", "aiohttp"}
