"""Delays and phases of single readouts, found from radial data themselves.

A gradient that comes late moves all samples of a spoke along it, by an amount that depends on its
direction; eddy currents turn its phase. All spokes share one image, so each is compared with what
the image of all says of it: shift and turn are those of the largest correlation over the coils
(compare Block and Uecker 2011). What is common to all spokes shows little in their image: a delay
is best found where neighbours are read in opposite directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.cg import ConjugateGradients
from engine.physics.fourier import to_channels, to_complex
from engine.physics.operator import Operator

Samples = NDArray[np.complex64]  # [coils, spokes, samples]

LARGEST = 2.0  # samples; more is another trajectory
STEP = 0.05
ROUNDS = 2  # the first image still holds some of the errors
IMAGE_STEPS = 30  # of conjugate gradients, for the image of all spokes


@dataclass(frozen=True)
class ReadoutErrors:
    """By spoke: how many samples late it is, and the phase it has too much."""

    delay: NDArray[np.float64]
    phase_rad: NDArray[np.float64]

    @property
    def words(self) -> str:
        early, late = self.delay.min(), self.delay.max()
        turn = np.degrees(np.abs(self.phase_rad).max())
        return f"delays of {early:.2f} to {late:.2f} samples, phases of up to {turn:.0f} degrees"

    def corrected(self, samples: Samples) -> Samples:
        frequency = np.fft.fftfreq(samples.shape[-1])
        turn = np.exp(2j * np.pi * frequency * self.delay[:, None])
        moved = np.fft.ifft(np.fft.fft(samples, axis=-1) * turn, axis=-1)
        return np.asarray(moved * np.exp(-1j * self.phase_rad)[:, None], np.complex64)


@torch.no_grad()
def readout_errors(operator: Operator, samples: Samples) -> ReadoutErrors:
    """``operator`` measures the image of all coils along the spokes of ``samples``."""
    found = ReadoutErrors(np.zeros(samples.shape[1]), np.zeros(samples.shape[1]))
    start = torch.zeros(1, *operator.image_shape)
    for _ in range(ROUNDS):
        y = to_channels(torch.from_numpy(found.corrected(samples))[None])
        image = ConjugateGradients(operator.normal, operator.adjoint(y), start).run(IMAGE_STEPS)
        found = _compared(samples, operator.forward(image))
    return found


def _compared(samples: Samples, expected: Tensor) -> ReadoutErrors:
    said = np.fft.fft(to_complex(expected)[0].numpy(), axis=-1)
    product = (said.conj() * np.fft.fft(samples, axis=-1)).sum(axis=0)
    delays = STEP * np.arange(-round(LARGEST / STEP), round(LARGEST / STEP) + 1)
    frequency = np.fft.fftfreq(samples.shape[-1])
    alike = product @ np.exp(2j * np.pi * np.outer(frequency, delays))
    best = np.abs(alike).argmax(axis=1)
    phase = np.angle(np.take_along_axis(alike, best[:, None], axis=1)[:, 0])
    return ReadoutErrors(delays[best], phase)
