"""Names and tags from outside may move no cursor, colour nothing and turn no line around."""

import numpy as np
import pydicom
import pytest
from dicom_files import write_series, write_slice

from engine.cli import main
from engine.data.source import open_input
from engine.spec.errors import DescriptionNeeded, RequestError, StepFailed, shown
from engine.spec.input_options import InputOptions

EVIL = "\x1b[31m\x9b2J\x07\r\u202e\u2066\u200fgnp\u2028x\x00"
NAME = EVIL.replace("\x00", "") + "[red]"  # what a file may be called, and what rich calls markup


def harmless(text):
    assert all(sign.isprintable() or sign == "\n" for sign in text), repr(text)


def test_control_escape_and_bidirectional_characters_are_shown_as_what_they_are():
    harmless(shown(EVIL))
    assert shown("\x1b[31m\u202e") == "\\x1b[31m\\u202e"
    assert shown("µ-map 90° “Ä” 断層 C:\\x.npy") == "µ-map 90° “Ä” 断層 C:\\x.npy"
    assert shown(shown(EVIL)) == shown(EVIL)
    assert shown("\udcff") == "\\udcff"


@pytest.mark.parametrize(
    "error",
    [
        RequestError(EVIL),
        DescriptionNeeded(EVIL, ("unit",)),
        StepFailed(EVIL, 1, "x"),
    ],
)
def test_no_error_carries_them(error):
    harmless(str(error))
    assert "\n" not in str(error)


@pytest.fixture
def disc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / NAME
    folder.mkdir()
    path = folder / f"{NAME}.npy"
    rows, columns = np.mgrid[-1:1:48j, -1:1:48j]
    np.save(path, np.where(rows**2 + columns**2 < 0.6, 40.0, -1000.0))
    return path


def said(capfd, *arguments):
    code = main([str(one) for one in arguments])
    text = capfd.readouterr()
    harmless(text.out)
    harmless(text.err)
    return code, text.out + text.err


RUN = ("--unit", "hu", "--pixel-mm", "1", "--views", "6", "--solver", "fbp")


def test_commands_show_an_evil_name_as_text(disc, capfd):
    assert said(capfd, "inspect", disc, "--unit", "hu")[0] == 0
    assert said(capfd, "inspect", disc)[0] == 2
    out = disc.with_name(f"{NAME}2.npy")
    record = disc.with_name(f"{NAME}.run.json")
    code, text = said(capfd, "reconstruct", disc, *RUN, "-o", out, "--record", record)
    assert code == 0
    assert "\\x1b[31m" in text
    assert said(capfd, "reconstruct", disc, *RUN, "-o", out)[0] == 2  # it exists
    assert said(capfd, "reconstruct", disc, *RUN, "-o", f"{NAME}.xyz")[0] == 2
    assert said(capfd, "reconstruct", f"{NAME}.npy", *RUN, "-o", "o.npy")[0] == 2
    assert said(capfd, "reconstruct", "--resume", f"{NAME}.json")[0] == 2
    assert said(capfd, "reconstruct", disc, *RUN[:-2], "--solver", EVIL, "-o", "o.npy")[0] == 2


def test_commands_show_the_evil_tags_of_a_series_as_text(tmp_path, capfd):
    write_series(tmp_path, [0.0, 2.0, 4.0])
    for path in tmp_path.glob("*.dcm"):
        data = pydicom.dcmread(path)
        data.SeriesDescription = data.ConvolutionKernel = "\x9b31m\x07\x85evil\r"
        data.save_as(path)
    write_slice(tmp_path / "z.dcm", SeriesInstanceUID="1.9", SeriesDescription="a\x9b31m\x85\x07b")
    write_slice(tmp_path / "y.dcm", SeriesInstanceUID="1.8", Modality="\x9b31m\x07")
    for path in (tmp_path, tmp_path / "z.dcm", tmp_path / "y.dcm"):
        said(capfd, "inspect", path)


def test_what_a_window_reads_of_a_dataset_is_harmless(disc):
    dataset = open_input(str(disc), InputOptions(unit="hu"))
    dataset.warn(EVIL)
    dataset.warnings.append(EVIL)
    dataset.check("a", "doubtful", EVIL, EVIL)
    dataset.add_fact(EVIL, EVIL, EVIL)
    texts = [dataset.description, *dataset.notices]
    texts += [text for fact in dataset.facts for text in (fact.name, fact.value, fact.origin)]
    texts += [text for check in dataset.checks for text in (check.sentence, check.fix)]
    for text in texts:
        harmless(text)
