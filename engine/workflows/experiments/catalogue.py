"""The experiments by name."""

from __future__ import annotations

from engine.solvers.presets import budget
from engine.spec.errors import RequestError
from engine.workflows.experiments import paper
from engine.workflows.experiments.definition import Axis, Experiment, Method, Scan


def sparse_view(views: int) -> Scan:
    at = Axis("views over 180 deg", views)
    return Scan(f"SVCT-{views}", "CT", {"views": views}, "paper-svct", at, "SVCT")


def limited_angle(degrees: int) -> Scan:
    """One view per degree, as the paper says (its code takes two)."""
    at = Axis("angular range, deg", degrees)
    acquisition = {"views": degrees, "angular_range": float(degrees)}
    return Scan(f"LACT-{degrees}", "CT", acquisition, "paper-lact", at, "LACT")


def brain(acceleration: int) -> Scan:
    acquisition = {"acceleration": float(acceleration)}
    return Scan(f"brain x{acceleration}", "MR", acquisition, "paper-mri")


def photons(power: int) -> Scan:
    at = Axis("log10 of photons per ray", power)
    acquisition = {"views": 20, "photons": 10.0**power, "fine_grid": 2}
    return Scan(f"SVCT-20, 1e{power} photons", "CT", acquisition, "paper-svct", at, "SVCT-20")


def unknown_photons(power: int) -> Scan:
    """Nothing is told of the noise, and every setting has its default."""
    at = Axis("log10 of photons per ray", power)
    acquisition = {"views": 60, "photons": 10.0**power, "fine_grid": 2}
    return Scan(f"1e{power} photons", "CT", acquisition, None, at, "60 views", noise_unknown=True)


def unknown_snr(snr: int) -> Scan:
    """Signal is the 0.99 quantile of the image, noise the SD per component of a sample."""
    at = Axis("signal to noise", snr)
    acquisition = {"acceleration": 4.0, "coils": 8, "kspace_noise": 1 / snr, "fine_grid": 2}
    return Scan(f"SNR {snr}", "MR", acquisition, None, at, "8 coils, R = 4", noise_unknown=True)


def degraded(label: str, task: str) -> Scan:
    return Scan(label, None, {"task": task})


LACT, SVCT = limited_angle(90), sparse_view(20)
CLASSICAL = (Method("FBP", "fbp"), Method("zero-filled", "zero-filled"))
START = "starting image"  # the operator's own pseudo-inverse
LABELS = {
    "ddnm": "DDNM",
    "dds": "DDS",
    "daps": "DAPS",
    "sitcom": "SITCOM",
    "diffpir": "DiffPIR",
    "dc-pnpdp": "DC-PnPDP",
}


# What DDNM and DDS gained from being tuned, on slices that are not in the tables; the defaults of
# the others were the best that was tried. See help/experiments.md.
TUNED = {"ddnm": {"eta": 1.0}, "dds": {"eta": 1.0, "dds_iterations": 20}}


def budgeted(solver: str, name: str) -> Method:
    """A method with its denoiser calls and what divides them between its levels."""
    values = budget(name, solver) | TUNED.get(solver, {})
    nfe = int(values.pop("nfe"))
    variant = ":".join([solver, *(f"{name}={value}" for name, value in values.items())])
    return Method(LABELS[solver], variant, nfe)


MATCHED = tuple(budgeted(solver, "matched-50") for solver in LABELS)
RECOMMENDED = tuple(budgeted(solver, "recommended") for solver in LABELS)
PAIR = MATCHED[-2:]


def budgets(label: str, variant: str) -> tuple[Method, ...]:
    return tuple(
        Method(f"{label}, {nfe} NFE", variant, nfe, Axis("NFE", nfe), label)
        for nfe in (10, 20, 30, 50, 100)
    )


def couplings() -> tuple[Method, ...]:
    """Factors of the paper's W; at zero the data step is a projection."""
    return tuple(
        Method(f"W x {times:g}, {nfe} NFE", "dc-pnpdp", nfe, rho_times=times)
        for nfe in (10, 50)
        for times in (0.0, 1.0, 1e2, 1e4, 1e6)
    )


_ALL = (
    Experiment(
        "table1",
        "Which method is best when each has the budget its authors recommend?",
        (LACT, SVCT, brain(6), brain(10)),
        (*CLASSICAL, *RECOMMENDED, Method("DC-PnPDP, 50 NFE", "dc-pnpdp", 50)),
        ("gallery",),
        count=4,
        paper=paper.TABLE1,
    ),
    Experiment(
        "controlled-50",
        "Which method is best when all have the same 50 denoiser calls?",
        (LACT, SVCT, brain(6), brain(10)),
        (*CLASSICAL, *MATCHED),
        ("gallery",),
        count=4,
        paper=paper.CONTROLLED,
    ),
    Experiment(
        "ablation",
        "How much is due to the dual variable, how much to spectral homogenization?",
        (LACT,),
        (
            Method("neither (DiffPIR)", "diffpir", 50),
            Method("SH only", "dc-pnpdp:dual=off", 50),
            Method("dual only", "dc-pnpdp:injection=awgn", 50),
            Method("dual and SH (DC-PnPDP)", "dc-pnpdp", 50),
        ),
        ("gallery",),
        count=4,
        paper=paper.ABLATION,
    ),
    Experiment(
        "injection",
        "What does the denoiser see, and make of it, with no, naive or spectral injection?",
        (LACT,),
        (
            Method("none", "dc-pnpdp:injection=none", 50),
            Method("naive (white noise)", "dc-pnpdp:injection=awgn", 50),
            Method("SH", "dc-pnpdp:injection=sh", 50),
        ),
        ("spectra", "gallery"),
        measure="one iteration",
    ),
    Experiment(
        "nfe-sweep",
        "How does quality grow with the number of denoiser calls?",
        (LACT, SVCT),
        (*budgets("DiffPIR", "diffpir"), *budgets("DC-PnPDP", "dc-pnpdp")),
        ("sweep",),
        count=2,
        paper=paper.SWEEP,
        varies_nfe=True,
    ),
    Experiment(
        "residuals",
        "Does the result come to satisfy the measurement, and does the dual settle?",
        (LACT, SVCT),
        PAIR,
        ("history",),
    ),
    Experiment(
        "runtime",
        "What does an iteration cost, and which part of it is spectral homogenization?",
        (SVCT, LACT),
        (*MATCHED[:3], RECOMMENDED[3], *PAIR),
        ("rounds",),
        measure="side by side",
        settings={"cg_tolerance": 0.0},  # every CG step is taken, whatever the image
    ),
    Experiment(
        "views-sweep",
        "How does quality depend on the number of views and on the angular range?",
        (*map(sparse_view, (18, 36, 72, 144)), *map(limited_angle, (90, 120, 150))),
        (*CLASSICAL, *PAIR),
        ("sweep",),
        count=2,
    ),
    Experiment(
        "restoration",
        "Do the methods carry over to deblurring and super-resolution?",
        (
            degraded("Gaussian deblurring", "deblur-gaussian"),
            degraded("motion deblurring", "deblur-motion"),
            degraded("super-resolution x4", "super-resolution"),
        ),
        (Method(START, "fbp"), Method(START, "zero-filled"), *MATCHED),
        ("gallery",),
        count=2,
    ),
    Experiment(
        "sh-in-ddnm",
        "Does spectral homogenization help another method, in place of its renoising?",
        (LACT, SVCT),
        (Method("DDNM", "ddnm", 50), Method("DDNM with SH", "ddnm:renoising=sh", 50)),
        ("gallery",),
        count=2,
        paper=paper.DDNM,
    ),
    Experiment(
        "rho-sweep",
        "How sensitive is DC-PnPDP to the coupling rho = W / sigma^2?",
        (LACT,),
        couplings(),
        ("gallery",),
        varies_nfe=True,
    ),
    Experiment(
        "noise",
        "How do the methods bear photon noise?",
        tuple(photons(power) for power in (3, 4, 5, 6)),
        (*CLASSICAL, *PAIR),
        ("sweep",),
        count=2,
    ),
    Experiment(
        "noise-ct",
        "Is the noise of a CT scan found, and met, when nobody tells of it?",
        tuple(unknown_photons(power) for power in (4, 5, 6)),
        (CLASSICAL[0], Method("TV", "tv"), *PAIR),
        ("sweep",),
        count=10,
    ),
    Experiment(
        "noise-mri",
        "Is the noise of a scan with eight coils found, and met, when nobody tells of it?",
        tuple(unknown_snr(snr) for snr in (10, 20, 40)),
        (Method("SENSE, stopped at the noise", "cg"), Method("TV", "tv"), *PAIR),
        ("sweep",),
        count=4,
        settings={"sigma_max": 0.5},
    ),
    Experiment(
        "supervised",
        "How does a network trained for one scan compare with methods trained for none?",
        (SVCT, sparse_view(40), sparse_view(12), photons(4), LACT),
        (CLASSICAL[0], Method("Supervised U-Net", "supervised"), *PAIR),
        ("gallery",),
        count=4,
    ),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise RequestError(f"'{name}' is no experiment: choose one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
