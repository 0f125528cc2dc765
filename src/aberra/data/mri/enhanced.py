"""Enhanced DICOM: one file holds all slices, and says of each frame where it lies."""

from __future__ import annotations

from typing import Any

from aberra.extras import need

SHARED, EACH = "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"
GROUPS = {  # where a frame keeps what a plain file says at its top level
    "PlaneOrientationSequence": ("ImageOrientationPatient",),
    "PlanePositionSequence": ("ImagePositionPatient",),
    "PixelMeasuresSequence": ("PixelSpacing",),
    "PixelValueTransformationSequence": ("RescaleSlope", "RescaleIntercept"),
}


def is_enhanced(head: Any) -> bool:
    """Say whether the file of a header describes its frames one by one."""
    return EACH in head


def frame_headers(head: Any) -> list[Any]:
    """Return a header for each frame, with the tags that the file of a single slice would have.

    What all frames have in common stands in the shared groups; a frame's own groups go first.
    """
    pydicom = need("pydicom", "mri", "Reading scans")
    shared = head.get(SHARED) or [pydicom.Dataset()]
    headers = []
    for own in head[EACH].value:
        one = pydicom.Dataset()
        one.update({tag.tag: tag for tag in head if tag.keyword not in (SHARED, EACH)})
        one.NumberOfFrames = 1
        for group, names in GROUPS.items():
            _copy(one, own.get(group) or shared[0].get(group), names)
        headers.append(one)
    return headers


def _copy(header: Any, group: Any, names: tuple[str, ...]) -> None:
    """Copy the tags of a functional group, a sequence of one item, to the top level."""
    if group:
        for name in names:
            if name in group[0]:
                setattr(header, name, group[0].get(name))
