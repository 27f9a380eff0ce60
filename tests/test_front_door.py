"""``import dualscope as ds``: light to import, NumPy in and out, errors in keywords."""

import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import dualscope as ds
from engine.cli import main
from engine.physics.phantoms.brain import brain_mr
from engine.physics.phantoms.stack import ct_phantom

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "numpy", "scipy", "PySide6", "pydicom", "engine.api.data")


def fresh(code, *options, cwd):
    line = [sys.executable, *options, "-c", code]
    return subprocess.run(line, check=True, capture_output=True, text=True, cwd=cwd).stdout


@pytest.fixture(scope="module")
def problem():
    return ds.simulate("demo:ct", views=20, size=64)


@pytest.fixture(scope="module")
def hu():
    return ct_phantom(seed=1, size=64).image


# -- the module ----------------------------------------------------------------------------------


def test_importing_it_loads_neither_torch_nor_numpy_nor_qt():
    code = f"import sys, dualscope as ds; dir(ds); print([m for m in {HEAVY} if m in sys.modules])"
    assert fresh(code, cwd=ROOT).strip() == "[]"


def test_dir_lists_every_public_name_and_each_is_there():
    assert dir(ds) == sorted(ds.__all__)
    assert {"open", "simulate", "reconstruct", "run", "compare", "load_prior", "ct", "mri"} < set(
        dir(ds)
    )
    for name in ds.__all__:
        assert getattr(ds, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'reconstuct'"):
        _ = ds.reconstuct


def test_the_classes_are_the_engine_s_own():
    from engine.physics.operator import Operator
    from engine.physics.problem import Problem
    from engine.priors.prior import Prior
    from engine.solvers.solver import Solver

    assert (ds.Operator, ds.Prior, ds.Problem, ds.Solver) == (Operator, Prior, Problem, Solver)


def test_an_installed_wheel_is_imported_where_nothing_else_is(tmp_path):
    build = "from setuptools.build_meta import build_wheel; print(build_wheel(r'{}'))"
    source = tmp_path / "source"
    source.mkdir()
    packages = ("dualscope", "engine", "app", "resources")
    for name in ("pyproject.toml", "README.md", "LICENSE", *packages):
        (source / name).symlink_to(ROOT / name)
    made = fresh(build.format(tmp_path), cwd=source).split()[-1]
    with zipfile.ZipFile(tmp_path / made) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(tmp_path / "installed")
    assert {"dualscope/__init__.py", "dualscope/py.typed", "engine/cli/__init__.py"} <= names
    points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "dualscope = engine.cli:main" in (tmp_path / "installed" / points).read_text()
    code = (
        f"import sys; sys.path[:0] = [r'{tmp_path / 'installed'}']; import dualscope as ds;"
        f"print(ds.__file__, ds.__version__, [m for m in {HEAVY} if m in sys.modules])"
    )
    said = fresh(code, "-I", "-S", cwd=tmp_path)  # no site-packages at all
    assert said.startswith(str(tmp_path / "installed"))
    assert said.strip().endswith("[]")


# -- opening and simulating ----------------------------------------------------------------------


def test_an_array_in_hu_and_the_same_array_in_a_file_are_one_problem(hu, tmp_path):
    np.save(tmp_path / "ct.npy", hu)
    data = ds.open(tmp_path / "ct.npy", unit="hu", pixel_mm=6.0)
    assert (data.kind, data.modality, data.shape) == ("image", "CT", (1, 64, 64))
    here = ds.simulate(hu, views=12, pixel_mm=6.0, photons=1e5, seed=5)
    there = ds.simulate(data, views=12, photons=1e5, seed=5)
    assert torch.equal(here.measurement, there.measurement)
    other = ds.simulate(hu, views=12, pixel_mm=6.0, photons=1e5, seed=6)
    assert not torch.equal(here.measurement, other.measurement)


def test_the_slices_asked_for_are_those_of_the_problem(hu):
    stack = np.stack([hu, hu + 10, hu + 20])
    problem = ds.simulate(stack, views=6, slice=slice(1, None))
    assert problem.slices == (1, 2)
    assert ds.reconstruct(problem, "fbp").image.shape == (2, 64, 64)
    assert ds.simulate(stack, views=6, slice=-1).slices == (2,)


def test_results_are_in_physical_units(hu):
    result = ds.reconstruct(ds.simulate(hu, views=60, pixel_mm=6.0), "fbp")
    assert result.image.dtype == np.float32
    assert np.allclose(result.reference, hu, atol=0.01)
    assert np.abs(result.image - hu).mean() < 100
    brain = 500 * brain_mr(seed=1, size=64).image
    mr = ds.reconstruct(ds.simulate(brain, acceleration=2), "cg")
    assert np.allclose(mr.reference, np.abs(brain), rtol=1e-4, atol=0.1)
    assert np.allclose(np.abs(mr.complex_image), mr.image)


def test_a_problem_is_made_again_in_the_units_of_another_prior(hu):
    problem = ds.simulate(hu, views=12, pixel_mm=6.0, prior="ct-small", photons=1e5, seed=2)
    other = ds.load_prior(lambda x, sigma: x, scale=500, offset=100)
    result = ds.reconstruct(problem, prior=other, nfe=1)
    direct = ds.simulate(hu, views=12, pixel_mm=6.0, prior=other, photons=1e5, seed=2)
    assert torch.equal(result.problem.measurement, direct.measurement)
    assert np.allclose(result.reference, hu, atol=0.01)


# -- runs ----------------------------------------------------------------------------------------


def test_the_front_door_gives_the_command_line_s_bits(tmp_path):
    out, record = tmp_path / "out.npy", tmp_path / "r.json"
    line = ["demo:ct", "--size", "64", "--views", "20", "--nfe", "3", "--seed", "7", "--quiet"]
    assert main(["reconstruct", *line, "-o", str(out), "--record", str(record)]) == 0
    problem = ds.simulate("demo:ct", size=64, views=20, seed=7)
    result = ds.reconstruct(problem, nfe=3, seed=7)
    assert np.array_equal(result.image, np.load(out))
    written = json.loads(record.read_text())
    ours = json.loads(json.dumps(result.record.content()))
    for name in ("job", "input", "operator", "prior", "result_sha256", "metrics"):
        assert ours[name] == written[name], name


def test_a_saved_record_makes_the_image_again(problem, tmp_path):
    result = ds.reconstruct(problem, nfe=2, seed=1)
    result.save(tmp_path / "r.json", tmp_path / "x.png")
    assert main(["verify", str(tmp_path / "r.json")]) == 0


def test_a_run_is_looped_over_left_and_gone_on_with(problem):
    run = ds.run(problem, nfe=4)
    for step in run:
        if step.k == 2:
            break
    assert np.array_equal(run.result.image, step.image)
    assert [step.k for step in run] == [3, 4]
    assert run.status == "done"
    assert np.array_equal(run.result.image, ds.reconstruct(problem, nfe=4).image)


def test_a_run_that_is_finished_keeps_its_image_and_is_judged(problem):
    run = ds.run(problem, nfe=4)
    steps = []
    for step in run:
        steps.append(step)
        run.finish()
    assert (len(steps), run.status) == (1, "finished early")
    assert run.result.metrics["psnr"] == pytest.approx(steps[0].metrics["psnr"], abs=0.1)
    cancelled = ds.run(problem, nfe=4)
    next(cancelled)
    cancelled.cancel()
    assert cancelled.result.status == "cancelled"


def test_a_run_with_a_record_goes_on_where_it_was_left(tmp_path):
    made = ds.simulate("demo:ct", views=20, size=64)
    run = ds.run(made, nfe=3, seed=2, record=tmp_path / "r.json")
    next(run)
    del run
    assert (
        main(
            [
                "reconstruct",
                "--resume",
                str(tmp_path / "r.json"),
                "-o",
                str(tmp_path / "x.npy"),
                "--quiet",
            ]
        )
        == 0
    )
    whole = ds.reconstruct(made, nfe=3, seed=2)
    assert np.array_equal(np.load(tmp_path / "x.npy"), whole.image)


def test_a_paused_run_ends_its_own_loop_and_waits_in_another_thread(problem):
    run = ds.run(problem, nfe=3)
    for _ in run:
        run.pause()
    assert len(run.result.history["k"]) == 1
    taken = threading.Event()
    worker = threading.Thread(target=lambda: (next(run), taken.set()))
    worker.start()
    assert not taken.is_set()
    run.resume()
    worker.join()
    assert taken.is_set()
    assert [step.k for step in run] == [3]


def test_the_history_has_one_number_for_every_iteration(problem):
    history = ds.reconstruct(problem, nfe=3).history
    assert {"sigma", "residual_z", "gap", "dual", "psnr", "nfe"} <= set(history)
    assert all(len(values) == 3 for values in history.values())
    assert history["nfe"].tolist() == [1, 2, 3]


def test_comparing_gives_the_runs_one_makes_alone(problem, tmp_path):
    found = ds.compare(problem, ["fbp", "dc-pnpdp", "dc-pnpdp:dual=off"], nfe=2, seed=3)
    alone = ds.reconstruct(problem, nfe=2, seed=3, dual=False)
    assert np.array_equal(found["dc-pnpdp:dual=off"].image, alone.image)
    assert [row["solver"] for row in found.table] == list(found)
    assert "dc-pnpdp:dual=off" in repr(found)
    found.save(tmp_path / "c.png", tmp_path / "c.json", tmp_path / "c.html")
    assert len(json.loads((tmp_path / "c.json").read_text())) == 3
    assert found._repr_html_().count("<tr>") >= 4


def test_a_notebook_shows_image_and_curves(problem):
    result = ds.reconstruct(problem, nfe=2)
    assert result._repr_png_().startswith(b"\x89PNG")
    html = result._repr_html_()
    assert "data:image/png;base64," in html
    assert "<svg" in html
    assert "<script" not in html


def test_show_opens_a_window_or_says_that_there_is_no_display(problem, qapp, monkeypatch):
    result = ds.reconstruct(problem, "fbp")
    result.show()
    assert result._window.isVisible()
    assert result._window.pixmap().width() == 256  # enlarged until its marks can be read
    result._window.close()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.warns(UserWarning, match="no display"):
        result.show()


def test_saving_writes_every_format_and_keeps_what_is_there(problem, tmp_path):
    result = ds.reconstruct(problem, "fbp")
    names = ["a.dcm", "a.nii.gz", "a.png", "a.npy", "a.h5", "a.tif", "a.json"]
    result.save(*(tmp_path / name for name in names))
    assert np.array_equal(np.load(tmp_path / "a.npy"), result.image)
    with pytest.raises(ds.DualscopeError, match=r"exists: add overwrite to replace it\."):
        result.save(tmp_path / "a.npy")
    result.save(tmp_path / "a.npy", overwrite=True, unit="mu")
    expected = 0.0192 * (1 + result.image / 1000)
    assert np.allclose(np.load(tmp_path / "a.npy"), expected, rtol=1e-5, atol=1e-7)


# -- operators -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        lambda: ds.ct(20, size=32, pixel_mm=2.0),
        lambda: ds.ct(20, size=(24, 32), pixel_mm=2.0),
        lambda: ds.ct([0, 10.5, 90], 40, geometry="fan", source_origin_mm=300,
                      source_detector_mm=600, size=32),
        lambda: ds.mri("fastmri", shape=(24, 32), acceleration=3),
        lambda: ds.mri(np.eye(32), maps=np.ones((3, 32, 32)) * np.array([1, 1j, 2])[:, None, None]),
    ],
)  # fmt: skip
def test_arrays_go_in_and_out_and_the_adjoint_is_exact(made):
    operator, rng = made(), np.random.default_rng(0)

    def draw(shape):
        real = rng.standard_normal((2, *shape))
        return real + 1j * rng.standard_normal((2, *shape)) if operator._is_complex else real

    x, y = draw(operator.image_shape), draw(operator.measurement_shape)
    ax, aty = operator.forward(x), operator.adjoint(y)
    assert ax.shape == y.shape
    assert aty.shape == x.shape == operator.pseudo_inverse(y).shape
    for i in range(2):  # the batch axis
        left, right = np.vdot(ax[i], y[i]), np.vdot(x[i], aty[i])
        assert abs(left - right) < 1e-5 * np.linalg.norm(ax[i]) * np.linalg.norm(y[i])
        assert np.allclose(operator.forward(x[i]), ax[i], atol=1e-5 * np.abs(ax).max())


def test_line_integrals_are_in_mm_and_angles_in_degrees():
    """A bar of 40 x 8 mm: 40 mm long seen along it, 8 mm across."""
    image = np.zeros((50, 50))
    image[23:27, 15:35] = 0.5  # 1/mm; pixels of 2 mm
    sinogram = ds.ct([0, 90], detectors=51, pitch_mm=2.0, size=50, pixel_mm=2.0).forward(image)
    assert sinogram[0].max() == pytest.approx(0.5 * 8, rel=1e-4)
    assert sinogram[1].max() == pytest.approx(0.5 * 40, rel=1e-4)


def test_what_is_not_said_of_a_scanner_covers_the_field_of_view():
    assert ds.ct(10, detectors=100, pitch_mm=0.5).image_shape == (100, 100)
    assert ds.ct(10, detectors=100, pitch_mm=0.5, size=25).operator.geometry.pixel_mm == 2.0
    assert ds.ct(10, size=100).measurement_shape[1] >= 142
    fan = ds.ct(10, 100, geometry="fan", source_origin_mm=500, source_detector_mm=1000)
    assert fan.operator.geometry.pitch_mm == 2.0  # a pixel of 1 mm, seen twice as large
    assert fan.image_shape == (100, 100)


def test_measured_k_space_in_an_array_is_reconstructed_in_its_own_scale():
    brain = 300 * brain_mr(seed=2, size=64).image
    maps = np.stack([np.ones((64, 64)), 1j * np.linspace(0, 1, 64)[None].repeat(64, 0)])
    scanner = ds.mri("inversebench", maps, acceleration=2)
    problem = scanner.problem(scanner.forward(brain), noise="none")
    assert problem.modality == "MR"
    image = ds.reconstruct(problem, "cg", iterations=200).image
    start = np.abs(scanner.pseudo_inverse(scanner.forward(brain)))
    error = [np.linalg.norm(one - np.abs(brain)) for one in (image, start)]
    assert error[0] < 0.25 * error[1]


def test_k_space_without_gaps_is_not_thinned():
    brain = brain_mr(seed=2, size=64).image
    scanner = ds.mri(np.ones(64))
    problem = scanner.problem(scanner.forward(brain), noise="none")
    assert np.allclose(ds.reconstruct(problem, "zero-filled").image, np.abs(brain), atol=1e-4)


def test_what_is_known_of_a_measured_sinogram_is_said_by_keywords():
    scanner = ds.ct(40, detectors=96, pitch_mm=1.0)
    water = np.hypot(*np.mgrid[-47.5:48, -47.5:48]) < 35
    sinogram = scanner.forward(0.02 * water)
    problem = scanner.problem(sinogram, mu_water=0.02, photons=1e6, views=20)
    assert problem.measurement.shape == (1, 1, 20, 96)
    assert problem.noise_origin == "given"
    image = ds.reconstruct(problem, "fbp").image
    assert image[40:56, 40:56].mean() == pytest.approx(0, abs=30)
    counts = 1e6 * np.exp(-sinogram)
    same = scanner.problem(counts, unit="counts", scan_air=1e6, mu_water=0.02)
    whole = scanner.problem(sinogram, mu_water=0.02)
    assert torch.allclose(same.measurement, whole.measurement, atol=1e-3)


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda p: ds.reconstruct(p, nfee=4), "dc-pnpdp takes no keyword 'nfee': did you mean"),
        (lambda p: ds.reconstruct(p, "fbp", rho=4), "fbp takes no keyword 'rho'"),
        (lambda p: ds.reconstruct(p, nfe=0), "nfe must be at least 1, not 0."),
        (lambda p: ds.reconstruct(p, cg_iterations="many"), "cg_iterations must be a number"),
        (lambda p: ds.reconstruct(p, sigma_min=3.0), "sigma_min (3) must not exceed sigma_max"),
        (lambda p: ds.reconstruct(p, "dcpnp"), "solver 'dcpnp' is not known"),
        (lambda p: ds.reconstruct(p, 7), "solver must be a name or a Solver, not 7."),
        (lambda p: ds.reconstruct(p, prior="ct-smal"), "prior 'ct-smal' is neither a file nor"),
        (lambda p: ds.reconstruct(p, prior="mr-base"), "prior mr-base is not for CT images."),
        (lambda p: ds.reconstruct(p, seed=-1), "seed must be a whole number from 0 on, not -1."),
        (lambda p: ds.reconstruct(p, device="tpu"), "device tpu is not available here"),
        (lambda p: ds.reconstruct(p, preset="papers"), "preset 'papers' is not known"),
        (lambda p: ds.reconstruct("demo:ct"), "is an image: measure it first"),
        (lambda p: ds.reconstruct(p, prior=lambda x, s: 1, nfe=1), "must return a tensor"),
        (lambda p: ds.compare(p, "fbp"), "solvers must be a list"),
        (lambda p: ds.compare(p, ["fbp"], nfe=3), "compare() takes no keyword 'nfe'"),
        (lambda p: ds.simulate("demo:ct", vews=4), "did you mean 'views'?"),
        (lambda p: ds.simulate("demo:ct", acceleration=4), "takes no keyword 'acceleration'"),
        (lambda p: ds.simulate("demo:ct", slice=5), "slice '5' selects nothing"),
        (lambda p: ds.open("absent.npy"), "absent.npy does not exist."),
        (lambda p: ds.ct("many"), "angles must be numbers, not 'many'."),
        (lambda p: ds.ct(2.5), "angles must be a list of degrees, or a number of views."),
        (lambda p: ds.ct(3, size=8).forward(np.zeros((9, 8))), "of the shape (8, 8)"),
        (lambda p: ds.mri("random"), "A mask by name needs the shape of the image, or maps."),
        (lambda p: ds.load_prior("tv", "pet"), "modality must be 'ct' or 'mr', not 'pet'."),
        (lambda p: ds.reconstruct(p, "fbp").save(), "save() needs a path"),
        (lambda p: ds.reconstruct(p, "fbp").save("x.jpg"), "x.jpg: write one of"),
        (lambda p: ds.reconstruct(p, "fbp").complex_image, "A CT image has no phase"),
    ],
)
def test_a_wrong_request_is_one_sentence_that_names_the_keyword(problem, wrong, sentence):
    with pytest.raises(ds.DualscopeError) as caught:
        wrong(problem)
    said = str(caught.value)
    assert sentence in said
    assert "--" not in said
    assert "\n" not in said


def test_numbers_of_numpy_are_numbers():
    problem = ds.simulate("demo:ct", views=np.int64(6), size=np.int32(64), seed=np.uint8(1))
    assert problem.measurement.shape[2] == 6
    assert len(ds.reconstruct(problem, nfe=np.int16(2), rho=np.float32(0.5)).history["k"]) == 2
