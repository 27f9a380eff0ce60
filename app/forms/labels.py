"""What a field is called on the screen, and how its value is written there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.spec.acquisition import CTAcquisition, MRIAcquisition, RestorationAcquisition
from engine.spec.errors import option_name, words
from engine.spec.input_options import InputOptions

AUTOMATIC = "automatic"

LABELS = {
    "nfe": "NFE (denoiser calls)",
    "rho": "rho, constant",
    "rho_over_sigma2": "rho × sigma² (W)",
    "cg_iterations": "CG iterations",
    "cg_tolerance": "CG tolerance",
    "sigma_max": "sigma, first",
    "sigma_min": "sigma, last",
    "schedule_rho": "Karras exponent",
    "init": "Starting image",
    "clip_init": "Clip the start",
    "symmetry": "Mirror and shift",
    "paired_below": "Noise in pairs below",
    "cg_warm_start": "CG warm start",
    "discrepancy": "Discrepancy rule",
    "model_error": "Model error, of ‖A‖²",
    "couple_z": "Coupling along z",
    "positivity": "Nothing below air",
    "field_of_view": "Air outside the field of view",
    "dual": "Dual variable",
    "injection": "Noise injection",
    "inject_last": "Inject at the last step",
    "sh_amplitude": "SH amplitude",
    "sh_kernel": "SH kernel",
    "sh_width": "SH width",
    "sh_padding": "SH borders",
    "sh_aggregate": "SH estimate",
    "zeta": "zeta",
    "eta": "eta",
    "renoising": "Noise of the next level",
    "pinv_iterations": "Pseudo-inverse iterations",
    "dds_iterations": "CG iterations (DDS)",
    "gamma": "gamma",
    "ode_steps": "ODE steps per level",
    "langevin_steps": "Langevin steps per level",
    "langevin_step": "Langevin step size",
    "langevin_decay": "Langevin decay",
    "tau": "tau",
    "inner_steps": "Adam steps per level",
    "learning_rate": "Learning rate",
    "proximity": "Proximity penalty",
    "stop_at_noise": "Stop at the noise",
    "memory_gb": "Memory",
    "tikhonov": "Tikhonov penalty",
    "tv_strength": "TV penalty",
    "tv_method": "TV algorithm",
    "tv_inner": "TV inner iterations",
    "wavelet_strength": "Wavelet penalty",
    "tolerance": "Converged within",
    "geometry": "Rays",
    "detectors": "Detector bins",
    "pitch_mm": "Detector pitch",
    "source_origin_mm": "Source to centre",
    "source_detector_mm": "Source to detector",
    "photons": "Photons per ray",
    "gaussian_noise": "Gaussian noise, SD",
    "fbp_filter": "FBP filter",
    "backend": "Projector",
    "weighted": "Weigh rays by certainty",
    "noise": "Noise of a measured scan",
    "fine_grid": "Finer grid of the scan",
    "acs_lines": "ACS lines",
    "coils": "Receive coils",
    "kspace_noise": "k-space noise, SD",
    "scan_geometry": "Rays",
    "scan_start": "First view",
    "scan_range": "Angular range",
    "scan_direction": "Direction",
    "scan_flip": "Detector reversed",
    "scan_pitch_mm": "Detector pitch",
    "scan_offset_mm": "Detector offset",
    "scan_source_origin_mm": "Source to centre",
    "scan_source_detector_mm": "Source to detector",
    "scan_angle_unit": "Unit of listed angles",
    "scan_find_centre": "Find the centre",
    "scan_air": "Counts in air",
    "scan_air_bins": "Bins of air at the ends",
    "scan_scale": "Factor on line integrals",
    "scan_bad_pixels": "Mend bad pixels",
    "scan_rings": "Remove rings, width",
    "scan_hardening": "Beam hardening",
    "energy_kev": "Energy",
    "slice_spacing_mm": "Slice spacing",
    "mu_water": "Attenuation of water",
    "extended_fov": "Extended field of view",
    "allow_links": "Folder of linked files",
    "coil_use": "Use of the coils",
    "maps": "File of coil maps",
    "trajectory": "k-space trajectory",
    "trajectory_unit": "Unit of the trajectory",
    "virtual_coils": "Virtual coils",
    "mr_scale": "MR scale",
    "size": "Image side",
    "deidentify": "Leave out all names",
    "slice": "Slices",
    "solver": "Method",
    "prior": "Prior",
    "device": "Device",
    "seed": "Seed",
    "workers": "Processes",
    "tls_ca": "TLS authority",
    "tls_cert": "TLS certificate",
    "tls_key": "TLS key",
}
_FORMS = (InputOptions, CTAcquisition, MRIAcquisition, RestorationAcquisition)
# what the window has a field for; of anything else it can only say the command line's option
ON_SCREEN: Final = {*LABELS, *(name for form in _FORMS for name in form.__dataclass_fields__)}

# Symbols people read faster than the file's spelling.
UNITS = {"deg": "°", "1/mm": "mm⁻¹"}
CHOICES = {
    "auto": AUTOMATIC,
    "ccw": "counter-clockwise",
    "cw": "clockwise",
    "sh": "homogenized (sh)",
    "admm": "ADMM",
    "fista": "FISTA",
    "sense": "a map per coil",
    "combine": "one virtual coil",
    "fov": "cycles per field of view",
    "pixel": "cycles per pixel",
    "radian": "radians per pixel",
}


BLANKS = {
    "photons": "no noise",
    **dict.fromkeys(("scan_air_bins", "scan_rings", "scan_hardening"), "off"),
    "scan_scale": "1",
}  # what an empty field means, where it is not 'automatic'


def blank_of(name: str) -> str:
    return BLANKS.get(name, AUTOMATIC)


def label_of(name: str) -> str:
    if name in LABELS:
        return LABELS[name]
    words = name.removesuffix("_mm").replace("_", " ")
    return words[:1].upper() + words[1:]


def unit_of(unit: str) -> str:
    return UNITS.get(unit, unit)


def choice_of(value: str) -> str:
    return CHOICES.get(value, value)


def text_of(value: Any) -> str:
    """A value as it would be typed; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def on_screen(said: str | BaseException, own: Mapping[str, str] | None = None) -> str:
    """A sentence of the engine in the window's words; ``own`` are the labels of a single page."""

    def label(name: str) -> str:
        if own and name in own:
            return f"“{own[name]}”"
        return f"“{label_of(name)}”" if name in ON_SCREEN else option_name(name)

    return words(said, label)


# The reason why a field is disabled, '' when it is not; from all values and the changed names.
Rule = Callable[[dict[str, Any], set[str]], str]


def only_with(name: str, wanted: Any, reason: str) -> Rule:
    """The field means something only while ``name`` has the value ``wanted``."""
    return lambda values, changed: "" if values.get(name) == wanted else reason


def only_if_given(name: str, reason: str) -> Rule:
    return lambda values, changed: "" if name in changed else reason


def excludes(name: str, own: str, reason: str) -> Rule:
    """Not while ``name`` is given; when both are, both stay open so that one can be cleared."""
    return lambda values, changed: reason if name in changed and own not in changed else ""
