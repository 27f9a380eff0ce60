"""Files with many frames: enhanced CT and MR say per frame what classic files say once.

A functional group is a sequence with one item. It stands in the shared list (for all frames) or
in the list per frame, which goes before. Here the groups become the classic elements.
"""

from __future__ import annotations

from collections.abc import Iterator

import pydicom
from pydicom.dataelem import DataElement, RawDataElement
from pydicom.sequence import Sequence

from engine.data.readers.dicom.image import PixelLayout, SliceImage, make_slice
from engine.data.readers.dicom.kinds import uid_name
from engine.data.readers.dicom.scan import WANTED, Header, open_file, quiet_pydicom
from engine.data.readers.dicom.values import Values, tags_of, values_of

SHARED, PER_FRAME = "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"
POSITION = "ImagePositionPatient"
GROUP_LISTS = {keyword: tag for tag, keyword in tags_of([SHARED, PER_FRAME]).items()}
# functional group -> the elements in it that have a classic counterpart, by the classic name
GROUPS = {
    "PixelMeasuresSequence": ("PixelSpacing", "SliceThickness", "SpacingBetweenSlices"),
    "PlanePositionSequence": ("ImagePositionPatient",),
    "PlaneOrientationSequence": ("ImageOrientationPatient",),
    "PixelValueTransformationSequence": ("RescaleIntercept", "RescaleSlope", "RescaleType"),
    "FrameVOILUTSequence": ("WindowCenter", "WindowWidth", "WindowCenterWidthExplanation"),
    "MRTimingAndRelatedParametersSequence": ("RepetitionTime", "FlipAngle", "EchoTrainLength"),
    "MREchoSequence": ("EffectiveEchoTime",),
    "MRImageFrameTypeSequence": ("FrameType", "ComplexImageComponent"),
    "CTImageFrameTypeSequence": ("FrameType",),
    "CTXRayDetailsSequence": ("KVP",),
    "CTGeometrySequence": ("GantryDetectorTilt",),
    "CTReconstructionSequence": ("ConvolutionKernel",),
    "MRDiffusionSequence": ("DiffusionBValue",),
    "CardiacSynchronizationSequence": ("NominalCardiacTriggerDelayTime",),
    "FrameContentSequence": ("TemporalPositionIndex", "FrameAcquisitionNumber"),
}
GROUP_TAGS = tags_of(GROUPS)
CLASSIC_NAMES = {
    "EffectiveEchoTime": "EchoTime",
    "FrameType": "ImageType",
    "NominalCardiacTriggerDelayTime": "TriggerTime",
    "TemporalPositionIndex": "TemporalPositionIdentifier",
    "FrameAcquisitionNumber": "AcquisitionNumber",
}
ELEMENT_TAGS = tags_of(keyword for keywords in GROUPS.values() for keyword in keywords)


def has_groups(header: Header) -> bool:
    """Enhanced objects; others with many frames say nothing of the single frame."""
    return "Enhanced" in (uid_name(header.values.text("SOPClassUID")) or "")


def slices_of(header: Header, layout: PixelLayout) -> list[SliceImage]:
    """All frames of one file, in its order."""
    if not has_groups(header):
        values = header.values
        if layout.frames > 1:  # one position cannot be that of all
            raw = {word: value for word, value in values.raw.items() if word != POSITION}
            values = Values(raw, values.little)
        return [make_slice(header, layout, i, values) for i in range(layout.frames)]
    tags = list(GROUP_LISTS.values())
    with quiet_pydicom(header.path), open_file(header.path) as stream:
        data = pydicom.dcmread(stream, force=True, stop_before_pixels=True, specific_tags=tags)
        shared = _merged(_items(data, SHARED)[:1], header.values.little)
        frames = _items(data, PER_FRAME)
        result = []
        for index in range(layout.frames):
            own = _merged(frames[index : index + 1], header.values.little)
            raw = {**header.values.raw, **shared, **own}
            values = Values(raw, header.values.little)
            result.append(make_slice(header, layout, index, values))
        return result


def flatten(header: pydicom.Dataset, frame: int) -> pydicom.Dataset:
    """A header with one frame's groups as classic elements, and without the lists of groups."""
    lists = [_items(header, SHARED)[:1], _items(header, PER_FRAME)[frame : frame + 1]]
    for items in lists:
        for keyword, inner in _group_items(items):
            for name in GROUPS[keyword]:
                if name in inner:
                    setattr(header, CLASSIC_NAMES.get(name, name), inner[name].value)
    for keyword in (SHARED, PER_FRAME, "NumberOfFrames", "DimensionIndexSequence"):
        if keyword in header:
            delattr(header, keyword)
    return header


def _merged(items: list[pydicom.Dataset], little: bool) -> dict[str, tuple[str, bytes]]:
    raw: dict[str, tuple[str, bytes]] = {}
    for _, inner in _group_items(items):
        raw |= values_of(inner, ELEMENT_TAGS, little).raw
    named = {CLASSIC_NAMES.get(keyword, keyword): value for keyword, value in raw.items()}
    return {keyword: value for keyword, value in named.items() if keyword in WANTED.values()}


def _group_items(items: list[pydicom.Dataset]) -> Iterator[tuple[str, pydicom.Dataset]]:
    for item in items:
        for tag, keyword in GROUP_TAGS.items():
            if tag in item and (inner := _sequence(item, tag)):
                yield keyword, inner[0]


def _items(data: pydicom.Dataset, keyword: str) -> list[pydicom.Dataset]:
    tag = GROUP_LISTS[keyword]
    return _sequence(data, tag) if tag in data else []


def _sequence(data: pydicom.Dataset, tag: int) -> list[pydicom.Dataset]:
    element: DataElement | RawDataElement = data[tag]
    return list(element.value) if isinstance(element.value, Sequence) else []
