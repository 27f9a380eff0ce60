"""Where the program's own files are, and where it keeps a person's."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

RESOURCES = Path(__file__).resolve().parents[2] / "resources"


def config_folder() -> Path:
    """Settings and presets: in DUALSCOPE_CONFIG, or where the system wants them."""
    own = os.environ.get("DUALSCOPE_CONFIG")
    return Path(own or platformdirs.user_config_dir("dualscope", False))


def state_folder() -> Path:
    """Autosaved runs, log and crash reports: in DUALSCOPE_STATE, or where the system wants them."""
    own = os.environ.get("DUALSCOPE_STATE")
    return Path(own or platformdirs.user_state_dir("dualscope", False))
