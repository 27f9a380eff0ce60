"""Metric profiles for CT."""

from __future__ import annotations

from torch import Tensor

from engine.metrics.lpips import lpips
from engine.metrics.profile import Description, Pair, Profile, require_some
from engine.metrics.ssim import mean_where, psnr_per_image, ssim_per_image
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
    ) -> Pair:
        if intensity is None or intensity.kind != "hu":
            raise RequestError(f"The metric profile {self.about.name} needs an image in HU.")
        if prediction.shape[1] != 1 or reference.shape[1] != 1:
            raise RequestError(f"The metric profile {self.about.name} needs one channel.")
        hu, hu_reference = intensity.to_physical(prediction), intensity.to_physical(reference)
        x, y = (image.clamp(-WINDOW_HU, WINDOW_HU) / WINDOW_HU for image in (hu, hu_reference))
        if data_range is not None:
            span = data_range
        elif len(y) == 1:
            span = 2.0
        else:
            span = float(y.max() - y.min())
        keep = y.flatten(1).amax(dim=1) > y.flatten(1).amin(dim=1)
        require_some(keep, self.about.name)
        return Pair(
            prediction=x[keep],
            reference=y[keep],
            data_range=y.new_full((int(keep.sum()),), span),
            prediction_physical=hu[keep] + 1000,
            reference_physical=hu_reference[keep] + 1000,
            kept=keep,
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
