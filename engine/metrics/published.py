"""Metric profiles of published evaluations: CT in HU, MR on the magnitude."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.metrics.profile import Description, Pair, Profile, lpips, nrmse_per_image, rows_of
from engine.metrics.ssim import (
    mean_where,
    pool_to_256,
    psnr_of_volume,
    psnr_per_image,
    ssim_per_image,
)
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError

WINDOW_HU = 800.0


class CtDcpnpdp(Profile):
    """CT as the DC-PnPDP evaluation computes it."""

    about = Description(
        name="ct-dcpnpdp",
        modality="CT",
        domain="HU / 800",
        data_range="the reference's max - min over the stack, 2 when it fills the window; a "
        "single slice is scored with 2, since its own range would depend on the anatomy it "
        "happens to show",
        clip="both to [-800, 800] HU",
        crop="none",
        reduction="per slice, then the mean; slices with a constant reference are left out",
        psnr="10 log10(range^2 / mse), as torchmetrics",
        ssim="Gaussian 11 x 11, SD 1.5, K 0.01 / 0.03, reflected border, mean over the whole "
        "image, as torchmetrics 1.9",
        nrmse="||x - ref|| / ||ref|| of HU + 1000 (proportional to attenuation), unclipped",
    )

    def prepare(
        self,
        prediction: Tensor,
        reference: Tensor,
        intensity: IntensityMap | None,
        data_range: float | None,
        rows: Tensor | None = None,
    ) -> Pair:
        if intensity is None or intensity.kind != "hu":
            raise RequestError(f"The metric profile {self.about.name} needs an image in HU.")
        if prediction.shape[1] != 1 or reference.shape[1] != 1:
            raise RequestError(f"The metric profile {self.about.name} needs one channel.")
        hu, hu_reference = intensity.to_physical(prediction), intensity.to_physical(reference)
        x, y = (image.clamp(-WINDOW_HU, WINDOW_HU) / WINDOW_HU for image in (hu, hu_reference))
        if data_range is None and len(y) > 1:
            span = y.max() - y.min()
        else:
            span = y.new_full((), 2.0 if data_range is None else data_range)
        if rows is None:
            keep = y.flatten(1).amax(dim=1) > y.flatten(1).amin(dim=1)
            rows = rows_of(keep, self.about.name)
        return Pair(
            prediction=x[rows],
            reference=y[rows],
            data_range=span.expand(len(rows)),
            prediction_physical=hu[rows] + 1000,
            reference_physical=hu_reference[rows] + 1000,
            rows=rows,
        )

    def psnr(self, pair: Pair) -> Tensor:
        return psnr_per_image(
            pair.prediction, pair.reference, pair.data_range, where=pair.where
        ).mean()

    def ssim(self, pair: Pair) -> Tensor:
        return ssim_per_image(
            pair.prediction, pair.reference, pair.data_range, reflect=True, where=pair.where
        ).mean()

    def extras(self, pair: Pair) -> dict[str, float | None]:
        difference = pair.prediction_physical - pair.reference_physical
        return {"hu_mae": float(mean_where(difference.abs(), pair.where).mean())}

    def perceptual(self, pair: Pair) -> dict[str, float | None]:
        """'lpips' on [-1, 1]; 'lpips_dcpnpdp' with the published evaluation's scaling.

        That one rescales as if the data began at 0, so the network sees [-2, 0]. It is kept only
        to compare with the published figures.
        """
        images = (pair.prediction, pair.reference)
        peak = pair.data_range.reshape(-1, 1, 1, 1)
        return {
            "lpips": lpips(*images),
            "lpips_dcpnpdp": lpips(*(image / peak * 2 - 1 for image in images)),
        }


PIQ_EPSILON = 1e-8


class MriInverseBench(Profile):
    """Complex MRI as InverseBench computes it."""

    about = Description(
        name="mri-inversebench",
        modality="MR",
        domain="magnitude of the complex image",
        data_range="the reference's maximum, per slice",
        clip="prediction to [0, reference maximum]",
        crop="none",
        reduction="per slice, then the mean; slices with an empty reference are left out",
        psnr="-10 log10(mse / range^2 + 1e-8), at most 80 dB, as piq",
        ssim="Gaussian 11 x 11, SD 1.5, K 0.01 / 0.03, only where the window fits, after "
        "averaging blocks of round(min(H, W) / 256), as piq",
        nrmse="||x - ref|| / ||ref|| of the magnitude, unclipped",
    )

    def prepare(
        self,
        prediction: Tensor,
        reference: Tensor,
        intensity: IntensityMap | None,
        data_range: float | None,
        rows: Tensor | None = None,
    ) -> Pair:
        if data_range is not None:
            raise RequestError(f"The metric profile {self.about.name} takes its range per slice.")
        x, y = _magnitudes(prediction, reference, intensity, self.about.name)
        peak = y.flatten(1).amax(dim=1)
        if rows is None:
            rows = rows_of(peak > 0, self.about.name)
        x, y, peak = x[rows], y[rows], peak[rows]
        return Pair(x.minimum(peak.reshape(-1, 1, 1, 1)), y, peak, x, y, rows)

    def psnr(self, pair: Pair) -> Tensor:
        return psnr_per_image(
            pair.prediction,
            pair.reference,
            pair.data_range,
            epsilon=PIQ_EPSILON,
            where=pair.where,
        ).mean()

    def ssim(self, pair: Pair) -> Tensor:
        where = None if pair.where is None else pool_to_256(pair.where.float()) > 0.5
        return ssim_per_image(
            pool_to_256(pair.prediction),
            pool_to_256(pair.reference),
            pair.data_range,
            where=where,
        ).mean()


class FastMri(Profile):
    """Magnitude MRI as the fastMRI evaluation computes it."""

    about = Description(
        name="fastmri",
        modality="MR",
        domain="magnitude of the complex image",
        data_range="the reference's maximum over the volume",
        clip="none",
        crop="none (the images already have the target's size)",
        reduction="PSNR and NRMSE over the volume, SSIM per slice and then the mean",
        psnr="10 log10(range^2 / mse), as scikit-image",
        ssim="uniform 7 x 7, sample covariance, K 0.01 / 0.03, only where the window fits, as "
        "scikit-image",
        nrmse="||x - ref|| / ||ref|| of the magnitude over the volume",
    )

    def prepare(
        self,
        prediction: Tensor,
        reference: Tensor,
        intensity: IntensityMap | None,
        data_range: float | None,
        rows: Tensor | None = None,
    ) -> Pair:
        x, y = _magnitudes(prediction, reference, intensity, self.about.name)
        peak = y.amax() if data_range is None else y.new_tensor(data_range)
        if rows is None:
            rows = rows_of((peak > 0).expand(len(y)), self.about.name)
        return Pair(x, y, peak.expand(len(y)), x, y, rows)

    def psnr(self, pair: Pair) -> Tensor:
        return psnr_of_volume(pair.prediction, pair.reference, pair.data_range[0], where=pair.where)

    def ssim(self, pair: Pair) -> Tensor:
        return ssim_per_image(
            pair.prediction,
            pair.reference,
            pair.data_range,
            window="uniform",
            sample_covariance=True,
            where=pair.where,
        ).mean()

    def nrmse(self, pair: Pair) -> Tensor:
        whole = (image.reshape(1, -1) for image in (pair.prediction, pair.reference))
        return nrmse_per_image(*whole).mean()


def _magnitudes(
    prediction: Tensor, reference: Tensor, intensity: IntensityMap | None, name: str
) -> tuple[Tensor, Tensor]:
    """|x| of complex images; both metrics are scale-free, so the MR scale is not needed."""
    if intensity is not None and intensity.kind != "mr":
        raise RequestError(f"The metric profile {name} is for MR images, not for HU.")
    if not {prediction.shape[1], reference.shape[1]} <= {1, 2}:
        raise RequestError(f"The metric profile {name} needs one channel, or two for complex.")
    return _magnitude(prediction), _magnitude(reference)


def _magnitude(image: Tensor) -> Tensor:
    # torch reduces over two channels an order of magnitude more slowly than hypot.
    return torch.hypot(image[:, :1], image[:, 1:]) if image.shape[1] == 2 else image.abs()
