"""One sentence, said in everybody's words."""

import copy
import pickle

import pytest

from app.forms.labels import on_screen
from engine.spec.acquisition import CTAcquisition
from engine.spec.errors import (
    PYTHON,
    DescriptionNeeded,
    RequestError,
    Sentence,
    marked,
    named_in,
    words,
)
from engine.spec.input_options import give


def refused(**values):
    with pytest.raises(RequestError) as caught:
        CTAcquisition(**values)
    return caught.value


def test_an_error_names_a_setting_as_the_reader_knows_it():
    error = refused(angular_range=0)
    assert str(error) == words(error) == "--angular-range must be greater than 0, not 0."
    assert words(error, PYTHON) == "angular_range must be greater than 0, not 0."
    assert on_screen(error) == "“Angular range” must be greater than 0, not 0."
    assert on_screen(error, {"angular_range": "Arc"}).startswith("“Arc” must")
    assert named_in(error) == ["angular_range"]


def test_a_setting_without_a_field_keeps_the_command_lines_word_on_the_screen():
    assert on_screen(RequestError("Leave ⟦resume⟧ out.")) == "Leave --resume out."


def test_all_settings_of_a_sentence_are_named():
    assert named_in(refused(photons=10, gaussian_noise=1)) == ["photons", "gaussian_noise"]


def test_a_longer_sentence_keeps_what_a_shorter_one_named():
    error = RequestError(f"scan.json: {marked(refused(views=0))}")
    assert str(error) == "scan.json: --views must be at least 1, not 0."
    assert on_screen(error) == "scan.json: “Views” must be at least 1, not 0."


def test_what_to_change_is_said_in_everybodys_words():
    fix = Sentence(give({"axes": "view,detector", "scan_flip": True}))
    assert fix == "give --axes view,detector --scan-flip on"
    assert words(fix, PYTHON) == "give axes view,detector scan_flip on"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_and_other_processes_know_the_settings_too(again):
    assert named_in(again(Sentence("⟦nfe⟧ is too small."))) == ["nfe"]
    assert named_in(again(RequestError("⟦nfe⟧ is too small."))) == ["nfe"]


@pytest.mark.parametrize("text", ["scan[views].npy", "--views", "⟦", "⟦⟧", "⟦a b⟧", "{views}", ""])
def test_names_of_files_are_no_settings(text):
    error = RequestError(f"{text} does not exist.")
    assert str(error) == on_screen(error) == f"{text} does not exist."
    assert named_in(error) == []


def test_an_error_with_more_than_a_sentence_speaks_like_the_others():
    error = DescriptionNeeded("say ⟦unit⟧ hu.", ("unit",))
    assert str(error) == "say --unit hu."
    assert error.missing == ("unit",)
