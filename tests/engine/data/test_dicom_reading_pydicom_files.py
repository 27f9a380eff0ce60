"""Every file that comes with pydicom opens, or is refused with a sentence that names it."""

from pathlib import Path

import numpy as np
import pydicom
import pydicom.data
import pytest
from pydicom.pixels import apply_rescale, pixel_array

from engine.data.readers.dicom.reader import open_dicom
from engine.data.readers.dicom.scan import WANTED, read_header
from engine.data.readers.dicom.values import values_of
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

PLAIN = InputOptions()
ROOT = Path(pydicom.data.__file__).parent  # only what is installed; nothing is downloaded
FILES = sorted(
    path
    for folder in ("test_files", "charset_files", "palettes")
    for path in (ROOT / folder).rglob("*")
    if path.is_file()
)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def attempt(path: Path, options: InputOptions = PLAIN) -> str:
    """'opened', or the sentence; anything else escapes and fails the test."""
    try:
        dataset = open_dicom(path, options)
        for number in range(dataset.count):
            image = dataset.read(number)
            assert image.shape == dataset.image_size
            assert np.isfinite(image).all()
        dataset.headers(0)
        return "opened"
    except RequestError as error:
        return str(error)


@pytest.mark.parametrize("modality", [None, "mr"])
def test_all_open_or_are_refused_by_name(modality):
    options = InputOptions(modality=modality)
    answers = {path: attempt(path, options) for path in FILES}
    opened = [path for path, answer in answers.items() if answer == "opened"]
    refused = {path: answer for path, answer in answers.items() if answer != "opened"}
    assert len(FILES) > 150
    assert len(opened) > (40 if modality is None else 60)
    assert len(refused) > (110 if modality is None else 90)
    for path, sentence in refused.items():
        assert str(path) in sentence
        assert sentence.endswith(".")
        assert "\n" not in sentence


def grey_images():
    """CT and MR images that pydicom itself decodes, whatever we think of them."""
    for path in FILES:
        try:
            data = pydicom.dcmread(path, force=True)
            storage = data.SOPClassUID.name
            if storage not in ("CT Image Storage", "MR Image Storage"):
                continue
            yield path, data, np.asarray(pixel_array(data))
        except (AttributeError, ValueError, RuntimeError):
            continue


def test_ct_and_mr_images_have_the_values_pydicom_gives_them():
    compared = localizers = 0
    for path, data, stored in grey_images():
        if "LOCALIZER" in data.get("ImageType", []) and data.Modality == "CT":
            assert "localizer" in attempt(path)
            localizers += 1
            continue
        dataset = open_dicom(path, PLAIN)
        expected = apply_rescale(stored, data).astype(np.float32)
        measured = np.ones(stored.shape, bool)
        if "PixelPaddingValue" in data:
            measured = stored != data.PixelPaddingValue
        if dataset.modality == "CT":
            expected[expected < -1024] = -1000
        image = dataset.read(0)
        np.testing.assert_array_equal(image[measured], expected[measured], err_msg=name_of(path))
        assert (image[~measured] == (-1000 if dataset.modality == "CT" else 0)).all()
        spacing = [float(value) for value in data.PixelSpacing]
        assert dataset.pixel_mm == pytest.approx(spacing)
        if dataset.placements is not None:
            position = [float(value) for value in data.ImagePositionPatient]
            assert dataset.placements[0].position == pytest.approx(position)
        compared += 1
    assert compared > 30
    assert localizers >= 2


def test_the_quick_scan_reads_what_pydicom_reads():
    """Raw bytes of every wanted element of every file, in all its encodings."""
    compared = 0
    for path in FILES:
        try:
            header = read_header(path)
        except RequestError:
            continue
        with path.open("rb") as stream:
            tags = list(WANTED)
            data = pydicom.dcmread(stream, force=True, stop_before_pixels=True, specific_tags=tags)
        theirs = values_of(data, WANTED, header.values.little).raw
        for keyword, (_, value) in theirs.items():
            if keyword != "SpecificCharacterSet":  # pydicom has interpreted it
                assert header.values.raw[keyword][1] == value, (name_of(path), keyword)
                compared += 1
        ours = {keyword for keyword, (_, value) in header.values.raw.items() if value}
        others = {"SpecificCharacterSet", "ModalityLUTSequence"}
        assert ours - others <= set(theirs), name_of(path)
    assert compared > 2000


def test_the_same_series_in_every_encoding_of_a_dicomdir():
    folder = ROOT / "test_files" / "dicomdirtests"
    plain = open_dicom(folder / "DICOMDIR", InputOptions(dataset="6"))
    for name in ("DICOMDIR-bigEnd", "DICOMDIR-implicit", "DICOMDIR-nooffset"):
        other = open_dicom(folder / name, InputOptions(dataset="6"))
        assert other.files == plain.files
