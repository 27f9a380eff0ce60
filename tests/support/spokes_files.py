"""Radial scans with known images, and files of them as other programs write them."""

from __future__ import annotations

import numpy as np

from tests.support.kspace_files import header_xml

GOLDEN = np.pi * (np.sqrt(5) - 1) / 2


def radial(spokes, samples, reach, step=None):
    """[2, spokes, samples] in cycles per field of view, out to ``reach`` on both sides."""
    angle = np.arange(spokes) * (np.pi / spokes if step is None else step)
    r = (np.arange(samples) - samples // 2) * (2 * reach / samples)
    return np.stack((np.outer(np.cos(angle), r), np.outer(np.sin(angle), r)))


def spiral(arms, samples, reach, turns):
    t = np.linspace(0, 1, samples)
    angle = 2 * np.pi * (turns * t + np.arange(arms)[:, None] / arms)
    return reach * np.stack((t * np.cos(angle), t * np.sin(angle)))


def direct(image, positions):
    """The textbook sum over all pixels, for complex images [..., H, W]."""
    waves = []
    for k, n in zip(positions.reshape(2, -1), image.shape[-2:], strict=True):
        index = np.arange(n) - n // 2
        waves.append(np.exp(-2j * np.pi * np.outer(k, index) / n))
    summed = np.einsum("mi,...ij,mj->...m", waves[0], image, waves[1], optimize=True)
    return (summed / np.sqrt(n * image.shape[-2])).reshape(*image.shape[:-2], *positions.shape[1:])


def blobs(n):
    """Smooth ellipses, [n, n] real: nothing of it lies beyond a quarter of the sampling rate."""
    y, x = (np.mgrid[:n, :n] - n // 2) / n
    image = np.zeros((n, n))
    for value, cy, cx, ry, rx in (
        (1.0, 0, 0, 0.34, 0.27),
        (-0.6, -0.06, 0.09, 0.13, 0.06),
        (0.5, 0.12, -0.05, 0.06, 0.08),
    ):
        inside = 1 - np.hypot((y - cy) / ry, (x - cx) / rx)
        image += value / (1 + np.exp(-inside * 18))
    return image


def write_mrd_paths(path, samples, positions, fov=200.0, matrix=None, kind="radial", noise=None):
    """[coils, spokes, samples] and their positions, by the ismrmrd package."""
    import ismrmrd

    size = (matrix, matrix, 1)
    xml = header_xml(size, size, (fov, fov, 5.0), (fov, fov, 5.0), trajectory=kind)
    file = ismrmrd.Dataset(str(path), "dataset", True)
    file.write_xml_header(xml.encode())
    if noise is not None:
        scan = ismrmrd.Acquisition.from_array(noise.astype(np.complex64))
        scan.setFlag(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
        scan.sample_time_us = 5.0
        file.append_acquisition(scan)
    for spoke in range(samples.shape[1]):
        line = ismrmrd.Acquisition.from_array(
            np.ascontiguousarray(samples[:, spoke], np.complex64),
            np.ascontiguousarray(positions[:, spoke].T, np.float32),
        )
        line.idx.kspace_encode_step_1 = spoke
        line.sample_time_us = 5.0
        file.append_acquisition(line)
    file.close()
    return path
