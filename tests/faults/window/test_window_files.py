"""Faults while the window opens, saves and exports."""

import errno
import os
from unittest import mock

import numpy as np
import pytest
from fault_injection import failing, strays, unreadable
from window_driver import HU, save_phantom, sentences, until

from app.export.exporting import export_run
from engine.spec.errors import DualscopeError

DISKS = {
    "disk full": (errno.ENOSPC, "write"),
    "read-only folder": (errno.EROFS, "create"),
    "vanished network drive": (errno.ESTALE, "rename"),
}


def saying(bench):
    until(lambda: sentences(bench.window), what="the message")
    bench.wait_quiet()
    return sentences(bench.window)[-1]


def with_run(bench):
    if not bench.runs():
        bench.open(save_phantom(bench.folder), HU)
        assert bench.run(prior="gaussian", nfe=3).status == "done"
    return bench.runs()[-1]


@pytest.mark.parametrize("fault", DISKS)
def test_an_export_that_fails_leaves_the_old_file(fault, cell, bench, tmp_path):
    cell(fault, "exporting from the window")
    entry = with_run(bench)
    number, kind = DISKS[fault]
    target = tmp_path / "x.npy"
    target.write_text("precious")
    with failing(tmp_path, number, kind), pytest.raises(DualscopeError) as failed:
        export_run(entry.record_path, [target], overwrite=True)
    cell.said(str(failed.value), os.strerror(number))
    assert target.read_text() == "precious"
    assert strays(tmp_path) == []
    cell.kept("the old file; no interim one")
    export_run(entry.record_path, [target], overwrite=True)
    assert np.array_equal(np.load(target), entry.images[0])
    cell.usable("the same export works when the disk is back")


@pytest.mark.parametrize("fault", DISKS)
def test_a_workspace_that_cannot_be_saved_stays_as_it_was(fault, cell, bench, tmp_path):
    cell(fault, "saving a workspace in the window")
    with_run(bench)
    number, kind = DISKS[fault]
    path = tmp_path / "w.dualscope"
    bench.window.workspaces.save(path)
    assert "was saved" in saying(bench)
    old = path.read_bytes()
    bench.window.messages.queue.clear()
    with failing(tmp_path, number, kind):
        bench.window.workspaces.save(path)
        cell.said(saying(bench), os.strerror(number))
    assert path.read_bytes() == old
    assert strays(tmp_path) == []
    cell.kept("the workspace as it was saved before")
    bench.window.messages.queue.clear()
    bench.window.workspaces.save(path)
    assert "was saved" in saying(bench)
    cell.usable("it is saved when the disk is back")


def test_a_workspace_is_saved_when_the_data_are_gone(cell, bench, tmp_path):
    cell("vanished network drive", "saving a workspace, with the data on it")
    data = save_phantom(tmp_path, name="other.npy")
    bench.open(data, HU)
    entry = bench.run(prior="gaussian", nfe=3)
    images = entry.images.copy()
    content = data.read_bytes()
    data.unlink()
    path = tmp_path / "w.dualscope"
    bench.window.workspaces.save(path)
    cell.said(saying(bench), "w.dualscope was saved")
    bench.window.messages.queue.clear()
    bench.window.workspaces.open(path)
    cell.said(saying(bench), "other.npy")
    until(lambda: bench.runs() and bench.runs()[-1].run_id != entry.run_id, what="the runs")
    assert np.array_equal(bench.runs()[-1].images, images)
    cell.kept("the runs with their images, although the data are gone")
    data.write_bytes(content)
    bench.window.messages.queue.clear()
    bench.open(data, HU)
    assert bench.run(prior="gaussian", nfe=3).status == "done"
    cell.usable("data and runs come back with the drive")


@pytest.mark.parametrize("fault", ["vanished network drive", "exception in a worker"])
def test_data_that_cannot_be_opened_leave_the_others(fault, cell, bench, tmp_path):
    cell(fault, "opening data in the window")
    with_run(bench)
    shown = bench.window.setup.data
    data = save_phantom(tmp_path, name="other.npy")
    bench.window.messages.queue.clear()
    broken = mock.patch("engine.data.source.find_reader", side_effect=ZeroDivisionError)
    with unreadable(tmp_path) if "drive" in fault else broken:
        bench.window.data.open(str(data), HU)
        words = saying(bench)
    cell.said(words, "other.npy" if "drive" in fault else "fault in Dualscope")
    assert bench.window.setup.data is shown
    cell.kept("the data that were open")
    bench.window.messages.queue.clear()
    bench.open(data, HU)
    cell.usable("they are opened when they can be read")


@pytest.mark.parametrize("fault", DISKS)
def test_settings_that_cannot_be_saved_do_not_hold_the_window(fault, cell, benches, folders):
    cell(fault, "saving settings at the end of the window")
    number, kind = DISKS[fault]
    bench = benches(loaded=False)
    bench.window.menus.actions["mask"].trigger()
    bench.wait_quiet()
    path = bench.window.settings.path
    old = path.read_bytes()
    told = []
    bench.window.settings.failed.connect(lambda words, details: told.append(words))
    bench.window.menus.actions["mask"].trigger()
    with failing(path.parent, number, kind):
        bench.close()
    cell.said(told[-1], os.strerror(number))
    assert path.read_bytes() == old
    assert strays(path.parent) == []
    cell.kept("the settings as they were saved before")
    again = benches(loaded=False)
    assert again.window.settings.get("patient_masked") is False
    again.close()
    cell.usable("the next start reads them")
