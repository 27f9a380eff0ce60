"""Live curves: steady, complete, and at home with zeros and gaps."""

import time

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QPainter, QPicture
from window_driver import slowness

from app.forms.choices import load_choices
from app.plots.axes import PowerAxis, SteadyRange, power_text, shade_path
from app.plots.curves import CurvePlot, log_or_nan
from app.plots.panel import PlotPanel
from app.plots.psd_image import PsdImages
from app.runs.presenter import RunPresenter
from app.runs.store import RunStore
from engine.files.run_library import RunLibrary
from engine.runs.frames import Frame


@pytest.fixture
def plot(qtbot):
    made = CurvePlot("‖Ax − y‖", "iteration k")
    qtbot.addWidget(made)
    made.resize(240, 180)
    made.show()
    return made


def drawn(plot, key):
    return plot.curves[key].getData()


def test_an_update_reuses_the_one_curve_of_a_run(plot):
    for n in range(1, 200):
        k = np.arange(1, n + 1.0)
        plot.set_curve("a", "#1", "#E69F00", (), k, 1 / k)
    assert len(plot.getPlotItem().listDataItems()) == 1
    item = plot.curves["a"]
    assert item.opts["pen"].widthF() == 1
    assert not item.opts["antialias"]
    assert len(drawn(plot, "a")[0]) == 199


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [[0, 0, 0], [np.nan] * 3, [1, 0, 10], [np.inf, 1, -1], [1, np.nan, 100], []],
)
def test_zeros_gaps_and_nothing_at_all_draw_without_complaint(qtbot, plot, values):
    y = np.array(values, dtype=float)
    plot.set_curve("a", "#1", "#E69F00", (), np.arange(1.0, len(y) + 1), y)
    assert not plot.grab().isNull()
    good = np.isfinite(y) & (y > 0)
    np.testing.assert_allclose(drawn(plot, "a")[1][good] if good.any() else [], np.log10(y[good]))
    plot.cursor_line.step(0)
    assert plot.cursor_line.label.isVisible() == bool(good.any())


def test_the_range_grows_by_decades_and_never_shrinks(plot):
    k = np.arange(1.0, 4.0)
    plot.set_curve("a", "#1", "#E69F00", (), k, np.array([20.0, 30.0, 40.0]))
    assert plot.y_range.limits == (1, 2)
    plot.set_curve("a", "#1", "#E69F00", (), k, np.array([20.0, 30.0, 0.004]))
    assert plot.y_range.limits == (-3, 2)
    plot.set_curve("a", "#1", "#E69F00", (), k, np.array([20.0, 30.0, 40.0]))
    assert plot.y_range.limits == (-3, 2)
    low, high = plot.getPlotItem().getViewBox().viewRange()[1]
    assert low == pytest.approx(-3, abs=0.3)
    assert high == pytest.approx(2, abs=0.3)
    plot.reset()
    assert plot.y_range.limits == (1, 2)


def test_a_level_curve_still_has_a_range():
    steady = SteadyRange(5.0)
    assert steady.include(np.array([30.0, 30.0]))
    assert steady.limits == (30, 35)
    assert not steady.include(np.array([32.0, np.nan]))


def test_log_axes_are_labelled_with_powers(qapp):
    axis = PowerAxis("left")
    ((spacing, majors), (_, minors)) = axis.tickValues(-2, 1, 200)
    assert axis.tickStrings(majors, 1, spacing) == ["10⁻²", "10⁻¹", "10⁰", "10¹"]
    assert len(minors) == 3 * 8
    _, many = axis.tickValues(-30, 10, 100)[0]
    assert len(many) <= 5
    assert power_text(-12) == "10⁻¹²"


def test_a_log_axis_within_a_decade_has_more_than_one_number(qapp):
    axis = PowerAxis("left")
    (_, majors), (spacing, between), _ = axis.tickValues(1.5, 2.5, 100)
    assert majors == [2.0]
    assert axis.tickStrings(between, 1, spacing) == ["5·10¹", "2·10²"]


def test_the_numbers_at_both_ends_of_an_axis_are_shown(qtbot, plot):
    plot.set_curve("a", "#1", "#E69F00", (), np.arange(1.0, 4.0), np.array([10.0, 100.0, 1000.0]))
    axis, picture = plot.getPlotItem().getAxis("left"), QPicture()
    painter = QPainter(picture)
    *_, texts = axis.generateDrawSpecs(painter)
    painter.end()
    assert [words for _, _, words in texts if words] == ["10¹", "10²", "10³"]


def test_the_cursor_reads_the_nearest_point_of_every_run(qtbot, plot):
    k = np.arange(1.0, 21.0)
    plot.set_curve("a", "#1", "#E69F00", (), k, k * 10)
    plot.set_curve("b", "#2", "#0072B2", (6, 3), k, k * 0.1)
    box = plot.getPlotItem().getViewBox()
    point = plot.mapFromScene(box.mapViewToScene(box.viewRect().center() * 1.0))
    qtbot.mouseMove(plot.viewport(), QPoint(point.x(), point.y()))
    qtbot.waitUntil(plot.cursor_line.label.isVisible)
    at = round(plot.cursor_line.line.value())
    text = plot.cursor_line.label.text()
    assert f"iteration k {at}" in text
    assert f"#1 {at * 10:g}" in text
    assert "#2" in text
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    assert round(plot.cursor_line.line.value()) == at + 1
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert not plot.cursor_line.label.isVisible()


def test_shading_covers_only_the_deficit():
    x = np.arange(6.0)
    low = np.array([0.0, 0, 2, 2, 0, np.nan])
    high = np.ones(6)
    path = shade_path(x, low, high)
    assert path.contains(QPointF(0.5, 0.5))
    assert path.boundingRect().right() == 1.0  # a single point at 4 has no area
    assert shade_path(x, np.full(6, np.nan), high).isEmpty()
    assert np.isnan(log_or_nan(np.array([0.0, -1.0]))).all()


@pytest.fixture
def parts(qtbot, tmp_path):
    load_choices()  # the methods bring their colours
    store = RunStore()
    presenter = RunPresenter(store, RunLibrary(tmp_path))
    panel = PlotPanel(store, presenter)
    qtbot.addWidget(panel)
    panel.resize(900, 220)
    panel.show()
    yield store, presenter, panel
    assert presenter.close()


def add_run(store, run_id, solver, nfe=10, psnr=True, dual=1.0):
    store.create(run_id, {"solver": solver}, solver)
    rows = []
    for k in range(1, nfe + 1):
        values = {"k": k, "K": nfe, "nfe": k, "residual_x": 10 / k, "gap": 1 / k, "dual": dual}
        rows.append((run_id, values | ({"psnr": 20.0 + k} if psnr else {})))
    store.grow(rows)
    store.change(run_id, status="done")


def frame(k=1, sigma=0.5):
    f = np.arange(33, dtype=np.float32) / 64
    target = np.full(33, sigma**2 * 4096, np.float32)
    psd = {"residual": target / (1 + 10 * f), "homogenized": target, "target": target}
    picture = {"residual": np.zeros((64, 64), np.float32)}
    return Frame(k, 10, sigma, k, frequency=f, psd=psd, psd_images=picture)


def test_two_runs_have_both_their_curves_in_their_own_colours(parts):
    store, _, panel = parts
    add_run(store, "a", "dc-pnpdp")
    add_run(store, "b", "diffpir", dual=0.0)
    panel.flush()
    assert set(panel.residual.curves) == {"a", "b"}
    assert set(panel.gap.curves) == {"a/gap", "a/dual", "b/gap"}
    assert set(panel.psnr.curves) == {"a", "b"}
    pens = [panel.residual.curves[key].opts["pen"] for key in "ab"]
    assert [pen.color().name().upper() for pen in pens] == ["#E69F00", "#0072B2"]
    assert pens[0].dashPattern() != pens[1].dashPattern()
    assert panel.legend.names() == ["#1 dc-pnpdp", "#2 diffpir"]


def test_runs_of_other_data_are_not_drawn(parts):
    store, _, panel = parts
    add_run(store, "a", "dc-pnpdp")
    add_run(store, "b", "diffpir")
    panel.belongs = lambda entry: entry.run_id == "b"
    panel.redraw()
    panel.flush()
    assert set(panel.residual.curves) == {"b"}
    assert panel.legend.names() == ["#2 diffpir"]
    store.change("a", note="still not")
    panel.flush()
    assert set(panel.residual.curves) == {"b"}


def test_a_run_that_is_hidden_or_deleted_leaves_the_plots(parts):
    store, _, panel = parts
    add_run(store, "a", "dc-pnpdp")
    add_run(store, "b", "diffpir")
    panel.flush()
    store.change("a", visible=False)
    assert set(panel.residual.curves) == {"b"}
    assert panel.legend.names() == ["#2 diffpir"]
    store.change("a", visible=True)
    panel.flush()
    assert set(panel.residual.curves) == {"a", "b"}
    store.remove("b")
    assert not any(key.startswith("b") for plot in panel.plots for key in plot.curves)


def test_a_method_of_one_step_is_a_level_to_compare_with(parts):
    store, _, panel = parts
    add_run(store, "a", "dc-pnpdp", nfe=50)
    store.create("f", {"solver": "fbp"}, "FBP")
    values = {"k": 1, "K": 1, "nfe": 0, "residual_x": 5.0, "gap": 0, "dual": 0, "psnr": 24.0}
    store.grow([("f", values)])
    panel.flush()
    for plot in (panel.residual, panel.psnr):
        x, y = drawn(plot, "f")
        assert x.tolist() == [0, 50]
        assert y[0] == y[1]
    add_run(store, "b", "diffpir", nfe=80)
    panel.flush()
    for plot in (panel.residual, panel.psnr):
        assert drawn(plot, "f")[0].tolist() == [0, 80]


def test_spectra_show_target_before_after_and_shaded_deficit(parts):
    store, presenter, panel = parts
    add_run(store, "a", "dc-pnpdp")
    presenter.frame.emit("a", frame())
    panel.flush()
    assert set(panel.psd.curves) == {"ideal", "a/before", "a/after"}
    assert panel.psd.curves["ideal"].opts["pen"].color().name().upper() == "#009E73"
    assert not panel.psd._shades["a/before"].path().isEmpty()
    assert not panel.grab().isNull()
    store.remove("a")
    assert not panel.psd.curves


def test_folding_asks_for_no_spectra_and_unfolding_draws_what_was_missed(qtbot, parts):
    store, _, panel = parts
    asked = []
    panel.wanted_changed.connect(asked.append)
    qtbot.mouseClick(panel.foldButton, Qt.MouseButton.LeftButton)
    assert asked == [set()]
    assert not panel.body.isVisible()
    add_run(store, "a", "dc-pnpdp")
    panel.flush()
    assert not panel.residual.curves
    qtbot.mouseClick(panel.foldButton, Qt.MouseButton.LeftButton)
    assert asked[-1] == {"psd"}
    qtbot.waitUntil(lambda: "a" in panel.residual.curves)
    assert len(drawn(panel.residual, "a")[0]) == 10


def test_two_dimensional_spectra_come_on_request_in_their_own_window(qtbot, parts):
    store, presenter, panel = parts
    add_run(store, "a", "dc-pnpdp")
    qtbot.mouseClick(panel.spectraButton, Qt.MouseButton.LeftButton)
    assert panel.wanted == {"psd", "psd image"}
    assert panel.spectra.isVisible()
    presenter.frame.emit("a", frame(k=4))
    panel.flush()
    assert panel.spectra.images.images["residual"].image.shape == (64, 64)
    assert "k = 4" in panel.spectra.images.caption.text
    panel.spectra.close()
    assert panel.wanted == {"psd"}


def test_pictures_of_spectra_keep_their_fixed_levels(qtbot):
    view = PsdImages()
    qtbot.addWidget(view)
    view.show()
    view.show_frame("#1", frame())
    assert view.images["residual"].levels.tolist() == [-40, 20]
    assert not view.grab().isNull()


def test_the_window_stays_awake_while_two_runs_are_drawn(qtbot, parts, tmp_path):
    _, presenter, panel = parts
    np.save(tmp_path / "image.npy", np.pad(np.full((32, 32), 1000.0), 16) - 1000)
    jobs = [
        {
            "input": str(tmp_path / "image.npy"),
            "options": {"unit": "hu"},
            "acquisition": {"views": 8},
            "solver": solver,
            "settings": {"nfe": 80, "cg_iterations": 2},
            "prior": "gaussian",
            "device": "cpu",
        }
        for solver in ("dc-pnpdp", "diffpir")
    ]
    ids = presenter.start(jobs)
    qtbot.waitUntil(lambda: presenter.state == "running")
    bursts, beat = [time.thread_time()], QTimer()

    # of computing, not of waiting: what else the machine does must not decide a test
    beat.timeout.connect(lambda: bursts.append(time.thread_time()))
    beat.start(5)
    qtbot.waitUntil(lambda: presenter.state == "idle")
    beat.stop()
    assert np.diff(bursts).max() < 0.2 * slowness()
    panel.flush()
    for run_id in ids:
        assert len(drawn(panel.residual, run_id)[0]) == 80
        assert f"{run_id}/after" in panel.psd.curves
