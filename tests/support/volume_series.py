"""A tiny series whose voxels can all be told apart, placed in the patient."""

import numpy as np
from volume_files import write_nifti

COUNT, SIDE = 8, 32


def voxel_hu(s, r, c):
    return 20.0 * s + 7.0 * r - 11.0 * c


def save_series(path, count=COUNT):
    """3 mm slices from the feet upwards, pixels of 1.5 mm."""
    volume = voxel_hu(*np.meshgrid(*map(np.arange, (count, SIDE, SIDE)), indexing="ij"))
    affine = np.diag([1.5, 1.5, 3.0, 1.0])  # of (column, row, slice) to LPS
    return write_nifti(path, volume.astype(np.float32).transpose(2, 1, 0).copy(), affine)
