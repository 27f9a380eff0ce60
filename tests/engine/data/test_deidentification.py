"""With --deidentify, no byte that leaves the program names the patient or the file."""

import subprocess
import sys
from pathlib import Path

import pytest
from dicom_files import write_slice

from engine.cli import main

ROOT = Path(__file__).resolve().parents[3]
NAME, NUMBER = "Quillfeather^Zsigmond", "PID-739184026-QX"
SECRETS = ("quillfeather", "zsigmond", "739184026")


def names_the_patient(content: bytes) -> bool:
    folded = content.lower()
    encodings = ("utf-8", "utf-16-le", "utf-16-be")
    return any(secret.encode(e) in folded for secret in SECRETS for e in encodings)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Everything one run writes, and what it prints, from a file named after the patient."""
    home = tmp_path_factory.mktemp("home")
    source = write_slice(
        home / "in" / "Quillfeather_Zsigmond_739184026.dcm",
        PatientName=NAME,
        PatientID=NUMBER,
        PatientBirthDate="19340102",
        StudyDescription=f"Chest of {NAME}",
        ImageComments="Mr Quillfeather moved",
        OperatorsName="Zsigmond^A",
    )
    out = home / "out"
    out.mkdir()
    names = ("a.dcm", "a.h5", "a.nii.gz", "a.png", "a.tif", "a.16.png", "a.npy", "series")
    command = [sys.executable, "-m", "engine.cli", "reconstruct", str(source), "--deidentify"]
    command += ["--solver", "cg", "--cg-iterations", "3", "--views", "12"]
    command += ["--record", str(out / "run.json"), "-o", *(str(out / name) for name in names)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return out, done


def test_no_written_file_names_the_patient(exported):
    out, _ = exported
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) >= 9
    for path in files:
        assert not names_the_patient(path.read_bytes()), path.name
        assert not names_the_patient(path.name.encode())


def test_nothing_printed_names_the_patient(exported):
    _, done = exported
    assert not names_the_patient(done.stdout + done.stderr)


def test_without_the_option_the_name_stays_in_the_dicom(exported, tmp_path):
    """The search above would find it."""
    out, _ = exported
    source = next((out.parent / "in").iterdir())
    command = ["reconstruct", str(source), "--solver", "fbp", "--quiet"]
    assert main([*command, "-o", str(tmp_path / "a.dcm")]) == 0
    assert names_the_patient((tmp_path / "a.dcm").read_bytes())
