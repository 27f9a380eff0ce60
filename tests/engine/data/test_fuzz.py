"""Thousands of damaged files: each opens or is refused in a sentence, in time and in bounds."""

import os
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")

if sys.platform == "linux":
    from fuzz_seeds import FAMILIES, write_family
    from fuzzing import run_fuzz
else:
    FAMILIES = {}

COUNT = int(os.environ.get("DUALSCOPE_FUZZ", "600"))  # per family


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_files_neither_crash_nor_hang_nor_eat_memory(family, tmp_path):
    write_family(family, tmp_path)
    counts = run_fuzz(tmp_path, COUNT)
    assert counts["wrong"] == []
    assert counts["opened"] + counts["refused"] == COUNT
    assert counts["refused"] > COUNT // 10
    assert counts["opened"] > 0
