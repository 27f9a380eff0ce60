"""Metric profiles: each is one published way to turn two images into numbers.

The same pair of images has a different PSNR under each, so a value is only ever reported with
the name of its profile, and `describe` says what the name stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.metrics.profile import Pair, Profile
from engine.metrics.published import CtDcpnpdp, FastMri, MriInverseBench
from engine.physics.units import IntensityMap
from engine.spec.errors import DualscopeError, RequestError

_ALL: tuple[Profile, ...] = (CtDcpnpdp(), MriInverseBench(), FastMri())
PROFILES: dict[str, Profile] = {profile.about.name: profile for profile in _ALL}


def default_profile(modality: str) -> str:
    """The profile of a problem's modality: 'CT' or 'MR'."""
    for profile in _ALL:
        if profile.about.modality == modality:
            return profile.about.name
    raise RequestError(f"No metric profile for the modality '{modality}'.")


def describe(profile: str) -> dict[str, str]:
    """Domain, range, clip, crop, reduction and formulas of a profile, for the run record."""
    return _profile(profile).describe()


@torch.no_grad()
def evaluate(
    profile: str,
    prediction: Tensor,
    reference: Tensor,
    intensity: IntensityMap | None = None,
    *,
    data_range: float | None = None,
    support: Tensor | None = None,
) -> dict[str, float]:
    """All metrics of a profile, over the whole image and inside the body.

    Parameters
    ----------
    profile : str
        A key of `PROFILES`.
    prediction, reference : Tensor
        Normalised images ``[B, C, H, W]``; for MR either may be complex (two channels) or a
        magnitude (one).
    intensity : IntensityMap, optional
        How normalised values become HU; CT profiles need it.
    data_range : float, optional
        Range of the whole volume in the profile's domain, when the tensors are only a part of it.
    support : Tensor, optional
        Where the scan sees the image, see ``Operator.support``; the body counts only there.

    Returns
    -------
    dict
        'psnr' (infinite for identical CT or fastMRI images), 'ssim', 'nrmse', 'data_range';
        'hu_mae' for CT; 'lpips' (and 'lpips_dcpnpdp' for CT) when that package is installed.
        'psnr_body', 'ssim_body', 'hu_mae_body' are those inside the body of the reference, with
        the same range, when there is one; '..._fov' those inside the ``support``.
    """
    # float64 on the CPU: the final figures should not depend on the device.
    chosen, pair = _prepared(
        profile,
        prediction.detach().to("cpu", torch.float64),
        reference.detach().to("cpu", torch.float64),
        intensity,
        data_range,
    )
    values: dict[str, float | None] = {
        "psnr": float(chosen.psnr(pair)),
        "ssim": float(chosen.ssim(pair)),
        "nrmse": float(chosen.nrmse(pair)),
        **chosen.extras(pair),
        "data_range": float(pair.data_range.mean()),
        **chosen.perceptual(pair),
    }
    body = body_mask(reference.detach().cpu(), intensity)
    if support is not None:
        support = support.cpu() > 0
        body = body & support
        values |= _inside(chosen, pair, support, "fov")
    values |= _inside(chosen, pair, body, "body")
    return {name: value for name, value in values.items() if value is not None}


def _inside(profile: Profile, pair: Pair, where: Tensor, name: str) -> dict[str, float]:
    """The metrics that have a meaning in a region, by names that end in its own."""
    part = pair.inside(where)
    if part is None:
        return {}
    values = {"psnr": float(profile.psnr(part)), "ssim": float(profile.ssim(part))}
    values |= {key: value for key, value in profile.extras(part).items() if value is not None}
    # no window of the SSIM may fit where the region touches the edge of the image
    return {f"{key}_{name}": v for key, v in values.items() if not math.isnan(v)}


class Quick:
    """'psnr' and 'ssim' alone, in float32 where the prediction lives, for every iteration.

    What is known of the reference is found once; each call waits for the device once.
    """

    def __init__(
        self, profile: str, reference: Tensor, intensity: IntensityMap | None = None
    ) -> None:
        self.intensity, self.reference = intensity, reference.detach().float()
        self.profile, pair = _prepared(profile, self.reference, self.reference, intensity, None)
        self.rows = pair.rows

    @torch.no_grad()
    def __call__(self, prediction: Tensor) -> dict[str, float]:
        x, y = prediction.detach().float(), self.reference
        _check_shapes(x, y)
        if y.device != x.device:
            y, self.rows = y.to(x.device), self.rows.to(x.device)
            self.reference = y
        pair = self.profile.prepare(x, y, self.intensity, None, self.rows)
        found = (self.profile.psnr(pair), self.profile.ssim(pair), torch.isfinite(x).all())
        psnr, ssim, finite = torch.stack([value.float() for value in found]).tolist()
        if not finite:
            raise _broken()
        return {"psnr": psnr, "ssim": ssim}


def quick(
    profile: str, prediction: Tensor, reference: Tensor, intensity: IntensityMap | None = None
) -> dict[str, float]:
    return Quick(profile, reference.to(prediction.device), intensity)(prediction)


def _profile(name: str) -> Profile:
    if name not in PROFILES:
        raise RequestError(f"Unknown metric profile '{name}': expected {', '.join(PROFILES)}.")
    return PROFILES[name]


def _prepared(
    name: str,
    prediction: Tensor,
    reference: Tensor,
    intensity: IntensityMap | None,
    data_range: float | None,
) -> tuple[Profile, Pair]:
    profile = _profile(name)
    _check_shapes(prediction, reference)
    if not bool(torch.isfinite(reference).all()):
        raise RequestError("The reference holds NaN or infinite values; metrics are undefined.")
    if not bool(torch.isfinite(prediction).all()):
        raise _broken()
    if data_range is not None and not data_range > 0:
        raise RequestError(f"The data range of a metric must be positive, not {data_range:g}.")
    return profile, profile.prepare(prediction, reference, intensity, data_range)


def _check_shapes(prediction: Tensor, reference: Tensor) -> None:
    shapes = [(*image.shape[:1], *image.shape[2:]) for image in (prediction, reference)]
    if prediction.ndim != 4 or reference.ndim != 4 or shapes[0] != shapes[1]:
        raise RequestError(
            f"The image {list(prediction.shape)} and its reference {list(reference.shape)} "
            "cannot be compared: their sizes differ."
        )


def _broken() -> DualscopeError:
    """Not the request's fault: something computed this."""
    return DualscopeError("The image holds NaN or infinite values; metrics are undefined.")


# Where to compare: inside the body, and inside the scan's field of view.
#
# Air is easy to get right and fills half of a slice, so a figure over the whole image flatters
# every method. The body is found in the reference, never in the image that is judged.

TISSUE_HU = -500.0
# MR: the foreground begins at this share of the magnitude's 0.99 quantile, above noise and ghosts.
FOREGROUND = 0.1
# Shares of the image's side. A thin table that touches the body is cut off first, since it may
# enclose air with it; then, when the lungs are filled, what is thicker: a mattress, a cushion.
THIN, THICK = 0.008, 0.02
LEAST_SHARE = 1e-3  # of the image; what is smaller is no body


def body_mask(reference: Tensor, intensity: IntensityMap | None) -> Tensor:
    """Boolean ``[B, 1, H, W]`` of a normalised reference: the largest part, its holes filled.

    CT (``kind='hu'``): above -500 HU without table and blankets. MR: the foreground. A slice
    without a body is all False.
    """
    find: Callable[[np.ndarray], np.ndarray] = _torso
    if intensity is not None and intensity.kind == "hu":
        dense = (intensity.to_physical(reference) > TISSUE_HU)[:, :1]
    else:
        find = _foreground
        magnitude = reference.square().sum(dim=1, keepdim=True).sqrt()
        # quantile() takes 16 million values at most; of a slice these are all
        peak = torch.stack([torch.quantile(m.flatten()[: 1 << 24], 0.99) for m in magnitude])
        dense = magnitude > FOREGROUND * peak.reshape(-1, 1, 1, 1)
    masks = [find(one) for one in dense[:, 0].cpu().numpy()]
    return torch.from_numpy(np.stack(masks))[:, None].to(reference.device)


def _torso(dense: np.ndarray) -> np.ndarray:
    from scipy.ndimage import binary_fill_holes

    side = min(dense.shape)
    body = binary_fill_holes(_largest_opened(dense, max(1, round(THIN * side))))
    return _enough(binary_fill_holes(_largest_opened(body, max(1, round(THICK * side)))))


def _foreground(bright: np.ndarray) -> np.ndarray:
    """Skull and cerebrospinal fluid are dark, so scalp and brain are joined first."""
    from scipy.ndimage import binary_fill_holes, distance_transform_edt

    side = min(bright.shape)
    if not bright.any():
        return bright
    radius = max(1, round(THICK * side))
    near = distance_transform_edt(~bright) <= radius
    # beyond the edge of the image nothing is eroded: a head may be cut off there
    closed = distance_transform_edt(np.pad(near, 1, mode="edge"))[1:-1, 1:-1] > radius
    joined = binary_fill_holes(closed | bright)
    return _enough(binary_fill_holes(_largest_opened(joined, max(1, round(THIN * side)))))


def _enough(body: np.ndarray) -> np.ndarray:
    return body if body.mean() >= LEAST_SHARE else np.zeros_like(body)


def _largest_opened(mask: np.ndarray, radius: int) -> np.ndarray:
    """The largest part of ``mask`` that hangs together by more than twice ``radius`` pixels."""
    from scipy.ndimage import distance_transform_edt, label

    # beyond the edge of the image the body goes on
    depth = distance_transform_edt(np.pad(mask, 1, mode="edge"))[1:-1, 1:-1]
    labels, count = label(depth > radius)
    if count == 0:
        return np.zeros_like(mask)
    core = labels == 1 + int(np.bincount(labels.ravel())[1:].argmax())
    near: np.ndarray = (distance_transform_edt(~core) <= radius + 0.5) & mask
    return near
