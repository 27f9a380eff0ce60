"""What goes into the packaged folder and what stays out; the spec and the tests read it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
OWN: Final = ("engine", "app")

# Modules that are imported by name, so that nobody sees it in the code.
HIDDEN: Final = (
    "gdcm",
    "jpeg_ls",
    "openjpeg",
    "pylibjpeg",
    "PIL.TiffImagePlugin",
    "PIL.PngImagePlugin",
)

# Modules that nothing of ours needs. A name covers everything below it.
EXCLUDED: Final = (
    # other window systems and what only developers use
    *("tkinter", "_tkinter", "matplotlib", "IPython", "pytest", "_pytest", "hypothesis", "mypy"),
    *("pip", "setuptools", "pkg_resources", "wheel", "ensurepip", "idlelib", "lib2to3", "test"),
    # modules of Python whose libraries are GPL (readline, gdbm) or of no use without a terminal
    *("readline", "_gdbm", "_dbm", "curses", "_curses", "_curses_panel"),
    # parts of Qt that the workstation does not show
    *(f"PySide6.Qt{part}" for part in ("Network", "Qml", "Quick", "QuickControls2", "QuickTest")),
    *(f"PySide6.Qt{part}" for part in ("QuickWidgets", "Sql", "DBus", "Designer", "Help")),
    *(f"PySide6.Qt{part}" for part in ("UiTools", "Xml", "Concurrent")),
    # parts of torch that compile, export or test; a network is only run and trained here
    *("torch.utils.tensorboard", "torch.utils.benchmark", "torch.utils.bottleneck"),
    *("torch.testing._internal.distributed", "torch.testing._internal.common_methods_invocations"),
    *("torch._inductor.kernel", "torch._inductor.autoheuristic", "torch.distributed.benchmarks"),
    *("torch.distributed.pipelining", "torch.ao.pruning", "torch._export.db", "torch.test"),
    # tests and examples that come with packages
    *("nibabel.tests", "pydicom.examples.tests", "jpeg_ls.tests", "pyqtgraph.examples"),
    *("networkx.drawing.tests", "scipy._lib.array_api_extra.tests", "h5py.tests", "sympy.testing"),
)

# Files by their place in the folder: never opened by what is left.
_PLUG_INS: Final = r"PySide6/(?:Qt/)?plugins/"
DROPPED: Final = re.compile(
    "|".join(
        (
            r"torch/(?:include|share|test|_C)/",
            r"torch/bin/(?!torch_shm_manager)",  # which torch looks for when it is loaded
            r"torch/lib/lib(?:torchbind_test|jitbackend_test|backend_with_compiler|aoti_custom_ops)",
            r"(?:.*/)?tests?/",
            r"pyqtgraph/examples/",
            r"jpeg_ls/.*\.(?:pyx|h)$",
            # Qt: what belongs to the parts that are left out, and its texts in other languages
            r"PySide6/(?:Qt/)?(?:qml|translations|metatypes|libexec|resources)/",
            r"(?:.*/)?(?:lib)?Qt6?(?:Qml|Quick|Network|Sql|VirtualKeyboard|Pdf|EglF|Designer|Help)",
            _PLUG_INS + r"(?:tls|networkinformation|sqldrivers|qmltooling|designer)/",
            _PLUG_INS + r"(?:virtualkeyboard|egldeviceintegrations|generic)/",
            _PLUG_INS + r"(?:platforminputcontexts/.*virtualkeyboard|imageformats/.*tiff)",
            _PLUG_INS + r"platforms/.*(?:eglfs|linuxfb|vnc|vkkhr|minimal)",
        )
    )
)

# System libraries that are taken along, because Python is linked to them and the version matters,
# with their licences. Every other one is the system's own, kept up to date by it: the .deb depends
# on them. A name is the beginning of a library's file name.
SYSTEM_LIBRARIES: Final = {
    "libpython": "PSF-2.0",
    "libssl.": "Apache-2.0",
    "libcrypto.": "Apache-2.0",
    "libffi.": "MIT",
    "libbz2.": "bzip2-1.0.6",
    "liblzma.": "0BSD",
    "libsqlite3.": "blessing",
    "libuuid.": "BSD-3-Clause",
    "libexpat.": "MIT",
    "libz.": "Zlib",
}
SYSTEM_FOLDERS: Final = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")

# Data of our own, and where it goes.
DATA: Final = (
    ("resources", "resources"),
    ("LICENSE", "."),
    ("CHANGELOG.md", "."),
)

Entry = tuple[str, str, str]  # place in the folder, source, kind: as PyInstaller lists them


def own_modules(root: Path = ROOT) -> list[str]:
    """Every module of ours: most are imported by name, when a command needs them."""
    files = (file for folder in OWN for file in (root / folder).rglob("*.py"))
    names = (".".join(file.relative_to(root).with_suffix("").parts) for file in files)
    return sorted(name.removesuffix(".__init__") for name in names)


def excluded(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in EXCLUDED)


def left_to_the_system(source: str) -> bool:
    """Whether a library belongs to Linux itself and stays with it."""
    taken = Path(source).name.startswith(tuple(SYSTEM_LIBRARIES))
    return source.startswith(SYSTEM_FOLDERS) and not taken


def kept(entries: Iterable[Entry]) -> list[Entry]:
    """What of PyInstaller's list goes into the folder."""
    return [
        (place, source, kind)
        for place, source, kind in entries
        if not DROPPED.match(place.replace("\\", "/")) and not left_to_the_system(source)
    ]
