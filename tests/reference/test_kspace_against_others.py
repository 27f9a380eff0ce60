"""Our ISMRMRD reader on files that the format's own Python package wrote."""

import numpy as np
import pytest
from kspace_files import fft2, header_xml, lines_of, write_mrd

from engine.data.source import open_input
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.spec.input_options import InputOptions

ismrmrd = pytest.importorskip("ismrmrd")
XML = header_xml((160, 64, 1), (80, 64, 1), (400, 160, 5), (200, 160, 5))


@pytest.fixture(scope="module")
def image():
    return brain_mr(seed=5, size=80).image[:, 8:72]


@pytest.fixture(scope="module")
def coil_images(image):
    return birdcage_maps(4, 80, 64).numpy() * image


def acquisition(samples, **counters):
    line = ismrmrd.Acquisition.from_array(samples.astype(np.complex64))
    line.center_sample = samples.shape[1] // 2
    line.sample_time_us = 5.0
    line.read_dir[:], line.phase_dir[:], line.slice_dir[:] = np.eye(3)
    for name, value in counters.items():
        setattr(line.idx, name, value)
    return line


def write(path, kspace):
    """Two averages, every other line reversed, a navigator, noise and a header."""
    rng = np.random.default_rng(0)
    with ismrmrd.Dataset(str(path), "dataset", create_if_needed=True) as file:
        file.write_xml_header(XML.encode())
        noise = rng.standard_normal((2, len(kspace), 4096))
        scan = acquisition(noise[0] + 1j * noise[1])
        scan.set_flag(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
        file.append_acquisition(scan)
        navigator = acquisition(1e3 * kspace[:, :, 3], kspace_encode_step_1=3)
        navigator.set_flag(ismrmrd.ACQ_IS_NAVIGATION_DATA)
        file.append_acquisition(navigator)
        for average, factor in enumerate((0.5, 1.5)):
            for y in range(kspace.shape[-1]):
                samples = factor * kspace[:, :, y]
                samples = samples[:, ::-1] if y % 2 else samples
                line = acquisition(samples, kspace_encode_step_1=y, average=average)
                if y % 2:
                    line.set_flag(ismrmrd.ACQ_IS_REVERSE)
                file.append_acquisition(line)


def test_a_file_of_the_ismrmrd_package_gives_the_phantom(tmp_path, image, coil_images):
    path = tmp_path / "scan.h5"
    oversampled = np.pad(coil_images, ((0, 0), (40, 40), (0, 0)))
    write(path, fft2(oversampled))
    dataset = open_input(str(path))
    assert (dataset.kind, dataset.coils, dataset.image_size) == ("kspace", 4, (80, 64))
    assert dataset.pixel_mm == (2.5, 2.5)
    # the noise scans were nearly white already, so the whitened data are nearly the data
    found = dataset.preview(0)
    np.testing.assert_allclose(found, np.abs(image), atol=0.05 * np.abs(image).max())
    assert dataset.noise_sigma == pytest.approx(1 / np.sqrt(2), rel=0.05)  # of two averages
    problem = dataset.problem([0], {"acceleration": 2.0}, IntensityMap("mr"), seed=0)
    shown = np.hypot(*problem.physical(problem.reference)[0].numpy())
    np.testing.assert_allclose(shown, np.abs(image), atol=0.06 * np.abs(image).max())


def test_the_ismrmrd_package_reads_what_our_own_test_writer_writes(tmp_path, coil_images):
    """So that the other tests of the format do not rest on a mistake of ours alone."""
    kspace = fft2(coil_images)
    path = write_mrd(tmp_path / "scan.h5", lines_of(kspace), XML)
    with ismrmrd.Dataset(str(path), "dataset", create_if_needed=False) as file:
        assert file.number_of_acquisitions() == 64
        line = file.read_acquisition(7)
        np.testing.assert_allclose(line.data, kspace[:, :, 7], atol=1e-5)
        assert line.idx.kspace_encode_step_1 == 7
        assert line.center_sample == 40
        header = ismrmrd.xsd.CreateFromDocument(file.read_xml_header())
    assert header.encoding[0].encodedSpace.matrixSize.x == 160


def test_a_kspace_array_in_numpy_opens_with_named_axes(tmp_path, coil_images):
    path = tmp_path / "scan.npy"
    np.save(path, fft2(coil_images).astype(np.complex64))
    dataset = open_input(str(path), InputOptions(kind="kspace", axes="coil,read,phase"))
    assert (dataset.kind, dataset.coils) == ("kspace", 4)
