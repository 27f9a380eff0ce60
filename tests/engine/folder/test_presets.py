"""The presets of the window serve for a folder, and a hostile one is a sentence."""

import json

import pytest
from folder_inputs import copy_dicom, request, run_folder

from engine.files.presets import FORMAT, Preset, PresetStore
from engine.spec.errors import RequestError
from engine.workflows.folder.request import find_presets


def test_a_saved_preset_says_method_settings_and_scan_and_the_request_counts_more(place, tmp_path):
    folder, results = place
    store = PresetStore(tmp_path / "presets")
    store.save(Preset("Mine", "CT", "cg", {"iterations": 3}, {"views": 12}))
    (path,) = store.folder.glob("*.json")
    presets = find_presets(str(path))
    job = {"acquisition": {}, "solver": "cg"}
    run_folder(request(folder, results, presets=presets, job=job))
    record = json.loads((results / "a" / "RUN.json").read_text())
    assert record["job"]["settings"]["iterations"] == 3
    assert record["job"]["acquisition"] == {"views": 12}
    job["acquisition"] = {"views": 5}
    run_folder(request(folder, results, presets=presets, job=job))
    record = json.loads((results / "a" / "RUN.json").read_text())
    assert record["job"]["acquisition"] == {"views": 5}


def test_a_name_saved_for_ct_and_for_mri_gives_each_input_its_own(place):
    folder, results = place
    copy_dicom(folder, "MR_small.dcm")
    PresetStore().save(Preset("Both", "CT", "fbp", {}, {"views": 9}))
    PresetStore().save(Preset("Both", "MR", "zero-filled", {}, {"acceleration": 2.0}))
    job = {"solver": "", "acquisition": {}, "options": {"pixel_mm": 12.0}}
    (folder / "a.json").write_text('{"unit": "hu"}')
    (folder / "b.npy").unlink()
    rows, _ = run_folder(request(folder, results, presets=find_presets("Both"), job=job))
    assert {row.status for row in rows.values()} == {"done"}
    for name, solver in (("a", "fbp"), ("MR_small", "zero-filled")):
        assert json.loads((results / name / "RUN.json").read_text())["job"]["solver"] == solver


def test_a_preset_for_mri_is_not_used_on_ct(place):
    folder, results = place
    presets = find_presets("MRI 6x (paper)")
    rows, _ = run_folder(request(folder, results, "dc-pnpdp", presets=presets))
    assert {row.error for row in rows.values()} == {"“MRI 6x (paper)” is for MRI, and this is CT."}


GOOD = {"format": FORMAT, "name": "x", "modality": "CT", "settings": {}, "acquisition": {}}


@pytest.mark.parametrize(
    "body",
    [
        GOOD | {"solver": "rm -rf"},
        GOOD | {"solver": "cg", "settings": {"iterations": 1e999}},
        GOOD | {"solver": "cg", "settings": {"__class__": 1}},
        GOOD | {"acquisition": {"views": "many"}},
        GOOD | {"acquisition": {"views": 10**400}},
        GOOD | {"settings": []},
        [],
    ],
)
def test_a_hostile_preset_is_one_sentence(place, tmp_path, body):
    folder, results = place
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(body))
    with pytest.raises(RequestError) as caught:
        run_folder(request(folder, results, presets=find_presets(str(path))))
    assert len(str(caught.value).splitlines()) == 1
    assert not results.exists()
