"""Jobs made of command lines."""

import argparse

import pytest

from engine.cli.options import add_job_options, job_from
from engine.spec.errors import RequestError


def job(*words):
    parser = argparse.ArgumentParser()
    add_job_options(parser)
    return job_from(parser.parse_args(words), "fbp")


@pytest.mark.parametrize(
    ("words", "acquisition"),
    [
        (["demo:ct"], {"fine_grid": 2}),
        (["demo:ct:4", "--views", "9"], {"fine_grid": 2, "views": 9}),
        (["demo:ct", "--fine-grid", "1"], {"fine_grid": 1}),
        (["demo:ct", "--task", "super-resolution"], {"task": "super-resolution"}),
        (["demo:ct-volume"], {}),
        (["demo:mri"], {}),
        (["demo:mri", "--fine-grid", "2"], {"fine_grid": 2}),
        (["a.dcm", "--fine-grid", "2", "--coils", "8"], {"fine_grid": 2, "coils": 8}),
        (["a.dcm", "--fine-grid", "2", "--views", "8"], {"fine_grid": 2, "views": 8}),
    ],
)
def test_a_finer_grid_is_for_ct_and_mri_alike_and_the_demos_default(words, acquisition):
    assert job(*words).acquisition == acquisition


@pytest.mark.parametrize(
    "words",
    [
        ["--views", "9", "--coils", "8"],
        ["--fine-grid", "2", "--views", "9", "--coils", "8"],
        ["--fine-grid", "2", "--task", "super-resolution"],
    ],
)
def test_options_of_two_kinds_of_scan_contradict_each_other(words):
    with pytest.raises(RequestError, match="give one or the other"):
        job("a.dcm", *words)


def test_a_grid_that_is_not_finer_is_refused():
    with pytest.raises(RequestError, match="--fine-grid must be at least 1"):
        job("demo:ct", "--fine-grid", "0")
