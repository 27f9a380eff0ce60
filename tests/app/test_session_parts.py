"""Jobs from what is asked for, one undo for two histories, and which panes are shown."""

from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtGui import QUndoCommand

from app.forms.history import UndoValues
from app.images.grid import PaneGrid
from app.runs.events import RunFinished, RunStarted
from app.runs.presenter import RunPresenter
from app.runs.snapshots import Snapshots
from app.runs.store import RunStore
from app.session.jobs import jobs_for, run_lines
from app.session.panes import Panes
from app.session.undo import Undo

ASKED = {
    "solver": "dc-pnpdp",
    "settings": {"nfe": 5},
    "preset": None,
    "prior": "tv",
    "seed": 3,
    "device": "cpu",
}


def jobs(asked, runs=(), **changes):
    given = {
        "data": ("demo:ct", {}),
        "modality": "CT",
        "slices": "0",
        "acquisition": {"views": 20},
        "runs": runs,
    }
    return jobs_for(asked, **{**given, **changes})


def test_the_first_run_on_a_measurement_brings_the_direct_image_along():
    made = jobs([ASKED])
    assert [job["solver"] for job in made] == ["fbp", "dc-pnpdp"]
    assert made[0]["settings"] == {}
    assert made[0]["seed"] == 3
    assert made[1]["acquisition"] == {"views": 20, "fine_grid": 2}  # the demo's own
    assert made[1]["settings"] == {"nfe": 5}
    assert next(job["solver"] for job in jobs([ASKED], modality="MR")) == "zero-filled"


def test_the_direct_image_is_made_once_per_measurement():
    store = RunStore()
    store.create("a", jobs([ASKED])[0], "FBP")
    assert [job["solver"] for job in jobs([ASKED], store)] == ["dc-pnpdp"]
    again = jobs([ASKED], store, acquisition={"views": 21})
    assert [job["solver"] for job in again] == ["fbp", "dc-pnpdp"]
    assert [job["solver"] for job in jobs([{**ASKED, "solver": "fbp"}])] == ["fbp"]


def test_jobs_are_what_the_engine_takes():
    from engine.spec.job import Job

    for job in jobs([ASKED]):
        assert Job.from_dict(job).input == "demo:ct"


def test_the_corner_of_an_image_names_method_scan_and_settings():
    store = RunStore()
    job = {**jobs([ASKED])[1], "settings": {"nfe": 50, "rho_over_sigma2": 1e-5}}
    entry = store.create("a", job, "DC-PnPDP")
    entry.modality = "CT"
    assert run_lines(entry) == ("DC-PnPDP", "20 views / 180°", "NFE 50", "ρ 1e-05/σ²")


class Put(QUndoCommand):
    def __init__(self, where, value):
        super().__init__()
        self.where, self.value = where, value

    def redo(self):
        self.where.append(self.value)

    def undo(self):
        self.where.pop()


def test_one_undo_takes_steps_of_fields_and_table_back_in_their_order(qapp):
    history, table = UndoValues({"views": 20, "nfe": 50}), []
    undo = Undo(history)
    stack = undo.stack
    history.set("views", 30)
    stack.push(Put(table, "deleted"))
    history.set("nfe", 10)
    undo.undo()
    assert history["nfe"] == 50
    assert table == ["deleted"]
    undo.undo()
    assert table == []
    assert history["views"] == 30
    undo.undo()
    assert history["views"] == 20
    assert not undo.can_undo
    for _ in range(3):
        undo.redo()
    assert (history["views"], history["nfe"], table) == (30, 10, ["deleted"])
    undo.undo()
    history.set("views", 7)
    assert not undo.can_redo


def test_new_data_end_the_undo_of_fields_only(qapp):
    history, table = UndoValues({"views": 20}), []
    undo = Undo(history)
    stack = undo.stack
    stack.push(Put(table, "deleted"))
    history.set("views", 30)
    history.rebase({"views": 12})
    undo.undo()
    assert table == []
    assert history["views"] == 12
    assert not undo.can_undo


@pytest.fixture
def panes(qtbot):
    grid = PaneGrid()
    qtbot.addWidget(grid)
    grid.resize(800, 600)
    grid.show()
    store = RunStore()
    panes = Panes(grid, store, RunPresenter(store))
    panes.set_data(
        SimpleNamespace(
            text="demo:ct",
            options={},
            kind="image",
            modality="CT",
            count=5,
            pixel_mm=(1.0, 1.0),
            placements=None,
            patient=(),
            window=None,
            lines=None,
            reading_step=1,
            size_words="8 × 8, 1 mm",
        ),
        2,
    )
    return panes


def begin(panes, run_id, solver="dc-pnpdp", slices=(2,), value=7.0):
    job = {**jobs([{**ASKED, "solver": solver}])[-1]}
    panes.store.create(run_id, job, solver.upper())
    kept = Snapshots(1 << 20)
    for k in (1, 2, 3):
        kept.add(k, 1 / k, np.full((len(slices), 8, 8), value + k / 10, np.float32))
    panes.store.start(
        RunStarted(run_id, solver.upper(), job, "CT", "HU", slices, (1.0, 1.0), None, [], kept)
    )
    images = np.stack([np.full((8, 8), value + n, np.float32) for n in slices])
    panes.store.finish(RunFinished(run_id, "done", images, {"psnr": 30.0}))
    panes.follow()


def test_panes_are_the_data_and_the_visible_runs_in_their_order(panes):
    begin(panes, "a")
    begin(panes, "b", "diffpir")
    assert panes.grid.keys() == ["reference", "a", "b"]
    panes.store.change("a", visible=False)
    panes.follow()
    assert panes.grid.keys() == ["reference", "b"]
    panes.store.change("a", visible=True)
    panes.follow()
    assert panes.grid.keys() == ["reference", "a", "b"]
    panes.store.remove("b")
    panes.follow()
    assert panes.grid.keys() == ["reference", "a"]


def test_a_change_of_one_run_before_the_pane_of_another_is_made(panes):
    begin(panes, "a")
    store = panes.store
    store.added.disconnect(panes._on_runs)
    store.added.connect(lambda _: store.change("a", note="seen before the panes are told"))
    store.added.connect(panes._on_runs)
    begin(panes, "b", "diffpir")
    assert panes.grid.keys() == ["reference", "a", "b"]


def test_a_run_of_other_data_has_no_pane(panes):
    begin(panes, "a")
    panes.store.get("a").job["input"] = "other.npy"
    panes.store.change("a", note="x")
    panes.follow()
    assert panes.grid.keys() == ["reference"]


def test_another_slice_shows_its_own_image_or_says_that_there_is_none(panes):
    begin(panes, "a", slices=(1, 2))
    pane = panes.grid.pane("a")
    assert pane.image[0, 0] == 9.0
    panes.grid.link.set_slice(1)
    assert pane.image[0, 0] == 8.0
    panes.grid.link.set_slice(4)
    assert pane.image is None
    assert "Slice 5" in pane.overlay.text.middle


def test_only_the_preview_of_the_slice_in_sight_is_shown(panes):
    panes.show_preview(1, np.zeros((8, 8)))
    assert panes.grid.pane("reference").image is None
    panes.show_preview(2, np.ones((8, 8)))
    assert panes.grid.pane("reference").image[0, 0] == 1


def test_scrubbing_takes_every_run_back_and_live_brings_them_forth(panes):
    begin(panes, "a", value=10)
    begin(panes, "b", "diffpir", value=20)
    panes.store.grow([("a", {"k": k, "psnr": 20.0 + k}) for k in (1, 2, 3)])
    panes.scrub(2, live=False)
    caption = panes.grid.pane("a").caption
    assert (caption.name, caption.numbers) == ("#1 DC-PNPDP, k = 2", "22.00 dB")
    assert panes.grid.pane("b").caption.numbers == "", "of another image than the one shown"
    shown = [float(panes.grid.pane(key).image[0, 0]) for key in ("a", "b")]
    assert shown == pytest.approx([10.2, 20.2])
    panes.scrub(0, live=True)
    shown = [float(panes.grid.pane(key).image[0, 0]) for key in ("a", "b")]
    assert shown == pytest.approx([12.0, 22.0])
    assert (caption.name, caption.numbers) == ("#1 DC-PNPDP", "30.00 dB")


def test_a_sinogram_of_few_views_is_drawn_as_high_as_wide(panes):
    begin(panes, "a")
    plane = np.zeros((2, 50), np.float32)
    panes.store.get("a").last_frame = SimpleNamespace(
        planes={"residual": plane}, units={"residual": ""}, metrics={}
    )
    panes.set_planes({"residual"})
    panes.set_current("a")
    assert panes.grid.extra("residual").view.field_mm == (50.0, 50.0)


def test_earlier_runs_of_the_same_method_step_aside(panes):
    begin(panes, "a")
    begin(panes, "b", "diffpir")
    panes.make_room(["dc-pnpdp"])
    panes.follow()
    assert panes.grid.keys() == ["reference", "b"]


def test_planes_are_of_the_current_run_and_neither_measured_nor_compared(panes):
    begin(panes, "a")
    frame = SimpleNamespace(
        planes={"u": np.linspace(-5, 5, 64, dtype=np.float32).reshape(8, 8)},
        units={"u": "HU"},
        metrics={},
    )
    panes.store.get("a").last_frame = frame
    panes.set_planes({"u", "residual"})
    assert panes.grid.extra_keys() == []  # no run is current yet
    panes.set_current("a")
    assert panes.grid.extra_keys() == ["u", "residual"]
    pane = panes.grid.extra("u")
    assert pane.window_text() == "± 5"
    assert pane.image is not None
    assert "has no residual" in panes.grid.extra("residual").overlay.text.middle
    assert pane not in panes.grid.image_panes()
    assert panes.grid.compare_keys() == ("a", "reference")
    panes.store.remove("a")
    panes.follow()
    assert panes.grid.extra_keys() == []


def test_planes_of_another_slice_are_not_left_standing(panes):
    begin(panes, "a")
    entry = panes.store.get("a")
    entry.slices, entry.images = (1, 2), np.zeros((2, 8, 8), np.float32)
    plane = np.ones((8, 8), np.float32)
    entry.last_frame = SimpleNamespace(planes={"u": plane}, units={"u": "HU"}, metrics={})
    panes.set_planes({"u"})
    panes.set_current("a")
    panes.runs.frame.emit("a", entry.last_frame)
    assert panes.grid.extra("u").image is not None
    panes.grid.link.set_slice(1)
    assert panes.grid.extra("u").image is None
    assert "of slice 3" in panes.grid.extra("u").overlay.text.middle
    panes.grid.link.set_slice(2)
    assert panes.grid.extra("u").image is not None
