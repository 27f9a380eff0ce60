"""A folder of inputs is done once, all of it, whatever happens to one of them."""

import json
import os

import numpy as np
import pytest
from fault_injection import FULL, failing, strays, unreadable
from folder_inputs import request, run_folder, save_slice, table_rows

from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError
from engine.workflows.folder.runner import FolderRunner, locked

SLOW = {"settings": {"nfe": 12, "cg_iterations": 2}}


def test_every_input_gets_its_results_and_a_broken_one_its_sentence(place):
    folder, results = place
    (folder / "broken.npy").write_bytes(b"no array")
    rows, _ = run_folder(request(folder, results, formats=("npy", "png")))
    assert {name: row.status for name, row in rows.items()} == {
        "a.npy": "done",
        "b.npy": "done",
        "broken.npy": "failed",
    }
    assert rows["broken.npy"].error == "broken.npy cannot be read as a NumPy array."
    assert not (results / "broken").exists()
    for name in ("a", "b"):
        assert np.load(results / name / "result.npy", allow_pickle=False).shape == (32, 32)
        assert (results / name / "result.png").read_bytes().startswith(b"\x89PNG")
        record = json.loads((results / name / "RUN.json").read_text())
        row = table_rows(results)[f"{name}.npy"]
        assert row["psnr"] == record["metrics"]["ct-dcpnpdp"]["psnr"] > 5
        assert (row["slices"], row["outputs"]) == (1, ["result.npy", "result.png"])
    header, *lines = (results / "table.csv").read_text().splitlines()
    assert header == "input,status,slices,time s,PSNR dB,SSIM,why not,folder"
    assert len(lines) == 3
    assert "2 of 3 inputs are done." in (results / "table.html").read_text()


def test_what_is_done_stays_done_and_what_has_changed_is_done_again(place):
    folder, results = place
    asked = request(folder, results)
    assert run_folder(asked)[1] == ["a.npy", "b.npy"]
    assert run_folder(asked)[1] == []
    save_slice(folder / "b.npy", seed=7)
    save_slice(folder / "c.npy")
    assert run_folder(asked)[1] == ["b.npy", "c.npy"]
    (results / "a" / "result.npy").unlink()
    assert run_folder(asked)[1] == ["a.npy"]
    (folder / "c.json").write_text('{"pixel_mm": 3}')  # what the numbers mean has changed
    assert run_folder(asked)[1] == ["c.npy"]
    more_views = request(folder, results, job={"acquisition": {"views": 9}})
    assert run_folder(more_views)[1] == ["a.npy", "b.npy", "c.npy"]
    assert not strays(results)


def test_what_failed_is_tried_again_only_when_asked(place):
    folder, results = place
    (folder / "a.npy").write_bytes(b"broken")
    assert len(run_folder(request(folder, results))[1]) == 2
    rows, computed = run_folder(request(folder, results))
    assert (computed, rows["a.npy"].status) == ([], "failed")
    assert run_folder(request(folder, results, retry_failed=True))[1] == ["a.npy"]


def test_old_results_go_when_the_new_input_fails(place):
    folder, results = place
    run_folder(request(folder, results))
    (folder / "a.npy").write_bytes(b"broken")
    rows, _ = run_folder(request(folder, results))
    assert rows["a.npy"].status == "failed"
    assert not (results / "a" / "result.npy").exists()
    assert (results / "b" / "result.npy").exists()


def test_stopped_in_the_middle_it_goes_on_there_with_the_same_bits(place, tmp_path):
    folder, results = place
    asked, control = request(folder, results, "dc-pnpdp", job=SLOW), RunControl()
    runner = FolderRunner(asked, control)
    runner.progress = lambda row, share: control.cancel() if share > 0.3 else None
    runner.run()
    assert [row.status for row in runner.rows] == ["stopped", "waiting"]
    half = json.loads((results / "a" / "RUN.json").read_text())["history"]
    shares = []
    runner = FolderRunner(asked, RunControl())
    runner.progress = lambda row, share: shares.append((row.name, share))
    runner.run()
    assert [row.status for row in runner.rows] == ["done", "done"]
    assert shares[0] == ("a.npy", (len(half) + 1) / 12), "it did not go on, it began again"
    run_folder(request(folder, tmp_path / "other", "dc-pnpdp", job=SLOW))
    for name in ("a", "b"):
        one, two = ((at / name / "result.npy").read_bytes() for at in (results, tmp_path / "other"))
        assert one == two
        assert not (results / name / "RUN.checkpoint.safetensors").exists()


def test_a_full_disk_ends_it_with_one_sentence_and_the_old_table_is_whole(place):
    folder, results = place
    run_folder(request(folder, results))
    before = table_rows(results)
    save_slice(folder / "c.npy")
    with failing(results, FULL, "write"), pytest.raises(DualscopeError, match="No space left"):
        run_folder(request(folder, results))
    assert table_rows(results) == before
    assert not strays(results)
    assert run_folder(request(folder, results))[1] == ["c.npy"]


def test_an_input_that_cannot_be_read_is_a_row(place):
    folder, results = place
    with unreadable(folder / "a.npy"):
        rows, _ = run_folder(request(folder, results))
    assert rows["a.npy"].status == "failed"
    assert rows["a.npy"].error == "Cannot read a.npy: Input/output error."
    assert rows["b.npy"].status == "done"
    rows, computed = run_folder(request(folder, results))
    assert (computed, rows["a.npy"].status) == (["a.npy"], "done"), "the drive is there again"


def test_wrong_requests_are_refused_before_anything_is_made(place, tmp_path, monkeypatch):
    folder, results = place
    (tmp_path / "empty").mkdir()
    for asked, words in (
        (request(tmp_path / "empty", results), "holds nothing that can be opened"),
        (request(folder / "a.npy", results), "is not a folder"),
        (request(tmp_path / "gone", results), "is not a folder"),
        (request(folder, folder), "which holds the inputs"),
        (request(folder, tmp_path), "which holds the inputs"),
        (request(folder, folder / "a.npy"), "Cannot write into"),
        (request(folder, results, formats=("exe",)), "--formats 'exe'"),
        (request(folder, results, formats=()), "at least one"),
        (request(folder, results, settle_seconds=float("nan")), "--settle"),
    ):
        with pytest.raises(RequestError, match=words):
            run_folder(asked)
    monkeypatch.setattr(
        os, "listdir", lambda path: (_ for _ in ()).throw(PermissionError(13, "No"))
    )
    with pytest.raises(RequestError, match="Cannot read"):
        run_folder(request(folder, results))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["rows"][0].update(folder="../../elsewhere"),
        lambda body: body["rows"][0].update(outputs=["../a.npy"]),
        lambda body: body["rows"][0].update(status="eaten"),
        lambda body: body["rows"][0].pop("error"),
        lambda body: body["rows"].append(body["rows"][0]),
        lambda body: body.update(rows={}),
        lambda body: body.update(format="something"),
    ],
)
def test_a_table_that_was_tampered_with_is_refused(place, change):
    folder, results = place
    run_folder(request(folder, results))
    body = json.loads((results / "table.json").read_text())
    change(body)
    (results / "table.json").write_text(json.dumps(body))
    with pytest.raises(RequestError, match=r"name another folder|is damaged"):
        run_folder(request(folder, results))
    assert not (results.parent.parent / "elsewhere").exists()


def test_two_batches_do_not_fill_one_folder(place):
    folder, results = place
    with locked(results), pytest.raises(RequestError, match="by another batch"):
        run_folder(request(folder, results))
