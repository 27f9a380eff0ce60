"""What the macOS bundle says of itself; see resources/help/packaging.md for signing."""

from __future__ import annotations

from typing import Any, Final

IDENTIFIER: Final = "org.dualscope.workstation"
WORKSPACE: Final = f"{IDENTIFIER}.workspace"
DICOM: Final = "org.nema.dicom"

INFO: Final[dict[str, Any]] = {
    "CFBundleDisplayName": "Dualscope",
    "LSMinimumSystemVersion": "14.0",  # as the wheels of torch ask for
    "LSApplicationCategoryType": "public.app-category.medical",
    "NSHighResolutionCapable": True,
    "NSRequiresAquaSystemAppearance": False,
    "NSHumanReadableCopyright": "Apache-2.0. For research only, not for diagnostic use.",
    "CFBundleDocumentTypes": [
        {
            "CFBundleTypeName": "Dualscope workspace",
            "CFBundleTypeRole": "Editor",
            "LSHandlerRank": "Owner",
            "LSItemContentTypes": [WORKSPACE],
        },
        {
            "CFBundleTypeName": "DICOM image",
            "CFBundleTypeRole": "Viewer",
            "LSHandlerRank": "Alternate",
            "LSItemContentTypes": [DICOM],
        },
    ],
    "UTExportedTypeDeclarations": [
        {
            "UTTypeIdentifier": WORKSPACE,
            "UTTypeDescription": "Dualscope workspace",
            "UTTypeConformsTo": ["public.json"],
            "UTTypeTagSpecification": {"public.filename-extension": ["dualscope"]},
        }
    ],
    "UTImportedTypeDeclarations": [
        {
            "UTTypeIdentifier": DICOM,
            "UTTypeDescription": "DICOM image",
            "UTTypeConformsTo": ["public.image"],
            "UTTypeTagSpecification": {
                "public.filename-extension": ["dcm"],
                "public.mime-type": ["application/dicom"],
            },
        }
    ],
}
