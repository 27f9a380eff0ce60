"""Which DICOM objects can be opened as images, and the sentence for each that cannot."""

from __future__ import annotations

from pydicom import uid
from pydicom.pixels import get_decoder
from pydicom.uid import UID_dictionary

from engine.data.readers.dicom.image import DECODED, PixelLayout
from engine.data.readers.dicom.scan import PROJECTION_ROWS, UNDEFINED, Header
from engine.spec.errors import Sentence

CT_CLASSES = {
    uid.CTImageStorage,
    uid.EnhancedCTImageStorage,
    uid.LegacyConvertedEnhancedCTImageStorage,
}
MR_CLASSES = {
    uid.MRImageStorage,
    uid.EnhancedMRImageStorage,
    uid.LegacyConvertedEnhancedMRImageStorage,
}
NEVER_IMAGES: dict[str, str] = {
    uid.SegmentationStorage: "a segmentation",
    uid.SurfaceSegmentationStorage: "a surface segmentation",
    uid.ParametricMapStorage: "a parametric map",
    uid.MRSpectroscopyStorage: "MR spectroscopy",
    uid.MediaStorageDirectoryStorage: "a DICOMDIR, not an image",
}
MAX_PIXELS = 1 << 26  # of a frame; in double precision, half a GB
MAX_FRAMES = 100_000


def modality_of(header: Header) -> str:
    """'CT' or 'MR' when the file is one, else what it says of itself ('PT', 'OT', '')."""
    said, kind = header.values.text("Modality").upper(), header.values.text("SOPClassUID")
    if kind in CT_CLASSES:
        return "CT"
    if kind in MR_CLASSES:
        return "MR"
    if kind == uid.SecondaryCaptureImageStorage and said in ("CT", "MR"):
        return "SC"  # a picture of a slice: its grey values are no HU
    return said


def uid_name(text: str) -> str | None:
    """The standard's name of a UID; not by pydicom's class, which checks and complains."""
    return UID_dictionary[text][0] if text in UID_dictionary else None


def object_name(header: Header) -> str:
    """What the file is, in words: the name of its class, or its modality."""
    name = uid_name(header.values.text("SOPClassUID"))
    if name is not None:
        return f"'{name.removesuffix(' Storage')}'"
    modality = header.values.text("Modality")
    known = modality.isalnum() and len(modality) <= 16
    return f"of modality {modality}" if known else "of unknown kind"


def refusal(header: Header, layout: PixelLayout | None, wanted: str | None) -> str | None:
    """Why this file is not opened, or None; ``wanted`` is 'ct' or 'mr' when the person said so."""
    values, path = header.values, header.path
    kind = values.text("SOPClassUID")
    if kind in NEVER_IMAGES:
        return f"{path} is {NEVER_IMAGES[kind]}: give CT or MR images."
    if header.pixels is None:
        return f"{path} holds no pixels: it is a DICOM object {object_name(header)}."
    if PROJECTION_ROWS in values:
        return f"{path} is a CT projection (DICOM-CT-PD), not an image."
    photometric = values.text("PhotometricInterpretation")
    if (values.integer("SamplesPerPixel") or 1) != 1 or not photometric.startswith("MONOCHROME"):
        name = photometric if photometric.replace("_", "").replace(" ", "").isalnum() else "unknown"
        return f"{path} is a colour image ({name}): give grey CT or MR images."
    modality = modality_of(header)
    if modality not in ("CT", "MR") and wanted is None:
        return Sentence(
            f"{path} is not a CT or MR image but a DICOM object {object_name(header)}: "
            "say ⟦modality⟧ ct or mr if its numbers are HU or MR signal."
        )
    if layout is None:
        return f"{path} does not say how its pixels are stored (rows, columns, bits)."
    return _decoder_problem(layout) or _layout_problem(layout) or _unit_problem(header, modality)


def _layout_problem(layout: PixelLayout) -> str | None:
    path, element = layout.path, layout.element
    if element.keyword != "PixelData":
        return f"{path} holds floating-point pixels, which CT and MR images do not have."
    bits, stored = layout.bits_allocated, layout.bits_stored
    if bits not in (8, 16, 32) or not 1 <= stored <= layout.high_bit + 1 <= bits:
        return f"{path}: {stored} of {bits} bits per pixel is not supported."
    if layout.rows * layout.columns > MAX_PIXELS or layout.frames > MAX_FRAMES:
        return f"{path}: {layout.frames} frames of {layout.rows} x {layout.columns} is too large."
    if element.length == UNDEFINED:
        smallest = 8 * layout.frames  # each has at least the head of one fragment
    elif layout.is_encapsulated:
        return f"{path} is damaged: its pixels are not stored as its transfer syntax says."
    else:
        smallest = layout.frame_bytes * layout.frames
        element_bytes = min(element.length, element.available)
        if element_bytes < smallest:
            return f"{path} is cut off: {element_bytes} of {smallest} bytes of pixels are there."
    if element.available < smallest:
        return f"{path} is cut off: not all of its {layout.frames} frames are there."
    return None


def _decoder_problem(layout: PixelLayout) -> str | None:
    name = uid_name(layout.syntax) or "an unknown transfer syntax"
    if layout.syntax not in DECODED:
        return f"{layout.path} is stored as {name}, which is not supported."
    decoder = get_decoder(layout.syntax)
    if not decoder.is_available:
        missing = "; ".join(decoder.missing_dependencies) or "a decoder"
        return f"{layout.path} is stored as {name}; what is missing to read it: {missing}."
    has_12_bits = "pylibjpeg" in decoder.available_plugins
    if layout.syntax == uid.JPEGExtended12Bit and layout.bits_stored > 8 and not has_12_bits:
        return (
            f"{layout.path} is stored as 12-bit {name}; what is missing to read it: "
            "pylibjpeg and pylibjpeg-libjpeg."
        )
    return None


def _unit_problem(header: Header, modality: str) -> str | None:
    values = header.values
    if "ModalityLUTSequence" in values:
        return f"{header.path} maps its pixels through a Modality LUT, which is not supported."
    unit = values.text("RescaleType").upper()
    if modality == "CT" and unit not in ("", "HU", "HU_MOD", "US"):
        shown = unit if unit.isalnum() and len(unit) <= 16 else "another unit"
        return f"{header.path} is a CT image in {shown}, not in HU."
    return None
