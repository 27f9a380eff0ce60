"""Your own prior: any torch denoiser ``(x, sigma) -> x``, here Wiener's filter."""

import sys

import torch

import dualscope as ds

size, nfe = (64, 4) if "--quick" in sys.argv else (256, 50)


class Wiener(torch.nn.Module):
    """The best linear denoiser of images whose power falls with the cube of the frequency.

    ``x`` is HU / 1000, ``[B, C, H, W]``, with white noise of SD ``sigma``.
    """

    def forward(self, x: torch.Tensor, sigma: float) -> torch.Tensor:
        rows, columns = (torch.fft.fftfreq(n, device=x.device) for n in x.shape[-2:])
        power = 1e-5 * (1e-4 + rows[:, None] ** 2 + columns**2) ** -1.5
        kept = power / (power + sigma**2)
        return torch.fft.ifft2(kept * torch.fft.fft2(x + 1)).real - 1  # air is -1


problem = ds.simulate("demo:ct", views=60, photons=1e5, size=size)
comparison = {
    "FBP": ds.reconstruct(problem, "fbp"),
    "DC-PnPDP, own prior": ds.reconstruct(problem, prior=Wiener(), nfe=nfe),
    "DC-PnPDP, ct-small": ds.reconstruct(problem, nfe=nfe),
}
for label, result in comparison.items():
    print(f"{label}: {result.metrics['psnr']:.2f} dB")
