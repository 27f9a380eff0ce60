"""What a record says in a few words."""

import math

import pytest

from engine.files.record_words import calls_of, people_in, prior_words, scan_words, slice_words


def test_the_true_acceleration_is_said_not_the_one_asked_for():
    mask = {"acceleration": 6.0, "true_acceleration": 256 / 60}
    assert scan_words({"mask": mask, "true_acceleration": 256 / 60}) == "R 4.27"


def test_views_are_said_with_the_arc_they_stand_for():
    angles = [n * math.pi / 20 for n in range(20)]
    assert scan_words({"geometry": {"angles_rad": angles}}) == "20 views / 180°"
    assert scan_words({"geometry": {"angles_rad": [0.5]}}) == "1 view"
    assert scan_words({"trajectory": {"spokes": 34}}) == "34 spokes"


@pytest.mark.parametrize(
    "strange", [None, [], {}, {"geometry": 3}, {"trajectory": []}, {"true_acceleration": "6"}]
)
def test_a_scan_that_is_not_described_has_no_words(strange):
    assert scan_words(strange) == ""


def test_the_people_of_a_prior_are_added_up():
    told = "1,055 slices of 8 patients: somebody; 1,044 T1 slices of 1,300 subjects; 200 phantoms"
    assert people_in(told) == 1308
    assert prior_words({"name": "mr", "training_data": told}) == "mr, 1,308 patients"
    assert prior_words({"name": "own", "training_data": "x"}) == "own, patients not stated"
    assert prior_words(None) == ""


def test_slices_are_counted_from_one():
    assert slice_words([78]) == "79"
    assert slice_words([2, 3, 4, 5]) == "3 to 6"
    assert slice_words([0, 8]) == "1, 9"
    assert slice_words([0, 2, 4, 6, 8]) == "1, 3, 5, 7, …"


def test_calls_made_and_asked_for():
    assert calls_of({"settings": {"nfe": 12}}, [{"k": 1, "nfe": 5}]) == (5, 12)
    assert calls_of({"settings": {"iterations": 50}}, [{"k": 7}]) == (None, None)
    assert calls_of({"settings": {"nfe": 12}}, []) == (0, 12)
    assert calls_of({"settings": []}, None) == (None, None)
