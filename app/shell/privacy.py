"""Words that may go into a log or a crash report.

Folders and files of data are often named after patients, so of their paths only the suffix
stays. Files of the program itself keep their name: without it a traceback says nothing.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

DATA: Final = "<data>"
NAME: Final = "<name>"
# Files that people do not name: code, libraries, and what is in our resources.
OWN: Final = ("py", "pyc", "pyd", "so", "dll", "dylib", "qss", "md", "svg", "log")
# Suffixes that tell a kind of file; any other may be part of a name ('J.Doe').
KINDS: Final = (
    *("dcm", "ima", "nii", "gz", "nrrd", "nhdr", "mha", "mhd", "tif", "tiff", "png", "jpg"),
    *("h5", "hdf5", "nxs", "mat", "npy", "npz", "raw", "mrc", "st", "ali", "tlt", "rawtlt"),
    *("cfl", "hdr", "json", "xml", "csv", "txt", "zip"),
    *("safetensors", "pt", "pth", "pkl", "ckpt"),
)

_SUFFIX: Final = rf"(?i:\.(?:{'|'.join([*OWN, *KINDS])}))"
_ENDS: Final = r""""':;,<>|\n"""
_QUOTED: Final = re.compile(
    r"""(?<!\w)(?P<q>["'])(?P<path>(?:(?!(?P=q)).)*[/\\](?:(?!(?P=q)).)*)(?P=q)"""
)
# Blanks may be part of a path. It therefore goes on to a sign that ends it, or to a known suffix
# after its last separator: rather a word too few than a name too many.
_ABSOLUTE: Final = re.compile(
    r"(?<![\w/\\<>.])(?:[A-Za-z]:(?=[/\\])|~?(?=/[^\s/])|(?=\\\\\w))"
    rf"[^{_ENDS}]*[/\\](?:[^{_ENDS}/\\]*?{_SUFFIX}\b|[^{_ENDS}/\\()\[\]]*)"
)
_RELATIVE: Final = re.compile(rf"(?<![\w<>:/])[^\s{_ENDS}()]+[/\\][^\s{_ENDS}()]*\.\w{{1,12}}\b")
_DICOM_NAME: Final = re.compile(r"[^\W\d_]{2,}\^+[^\W\d_]{2,}[\w^]*")


def clean(text: str) -> str:
    """The text without folders, without names of data files, without names as DICOM spells them."""
    text = _QUOTED.sub(lambda m: f"{m['q']}{short_path(m['path'])}{m['q']}", text)
    text = _ABSOLUTE.sub(lambda m: short_path(m[0]), text)
    text = _RELATIVE.sub(lambda m: short_path(m[0]), text)
    return _DICOM_NAME.sub(NAME, text)


def short_path(path: str) -> str:
    """'/home/jane/x/cg.py' -> 'cg.py'; '/scans/Doe/Doe.dcm' -> '<data>.dcm'."""
    last = PurePosixPath(path.replace("\\", "/").rstrip(". "))
    rest = "." if path.rstrip().endswith(".") else ""
    suffix = last.suffix.lower().removeprefix(".")
    if suffix in OWN or ".so." in last.name:
        return last.name + rest
    return DATA + (f".{suffix}" if suffix in KINDS else "") + rest
