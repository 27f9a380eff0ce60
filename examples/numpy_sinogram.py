"""A sinogram in a NumPy array, with its angles: reconstructed in four lines."""

import sys

import numpy as np

import dualscope as ds

size, nfe = (64, 12) if "--quick" in sys.argv else (256, 50)

# somebody's measurement: a disc of water with a denser core, 60 views, 1 % noise
angles = np.linspace(0, 180, 60, endpoint=False)
s = np.arange(size) - (size - 1) / 2  # mm from the middle of the detector
chords = [2 * np.sqrt(np.clip((share * size) ** 2 - s**2, 0, None)) for share in (0.4, 0.15)]
sinogram = np.tile(0.0192 * chords[0] + 0.004 * chords[1], (60, 1))
sinogram += np.random.default_rng(0).normal(0, 0.01 * sinogram.max(), sinogram.shape)

# the four lines
scanner = ds.ct(angles, detectors=size, pitch_mm=1.0)
problem = scanner.problem(sinogram, mu_water=0.0192)
result = ds.reconstruct(problem, "dc-pnpdp", nfe=nfe)
result.save("numpy_sinogram.png", "numpy_sinogram.npy", overwrite=True)

print(result)
middle = size // 2
print(f"FBP: {1000 * (scanner.pseudo_inverse(sinogram)[middle, middle] / 0.0192 - 1):.0f} HU")
print(f"core {result.image[middle, middle]:.0f} HU, corner {result.image[0, 0]:.0f} HU")
