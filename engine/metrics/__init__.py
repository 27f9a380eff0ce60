"""Named metric profiles: how a PSNR or an SSIM was computed is part of the number."""

from engine.metrics.profile import relative_residual
from engine.metrics.profiles import PROFILES, default_profile, describe, evaluate, quick

__all__ = [
    "PROFILES",
    "default_profile",
    "describe",
    "evaluate",
    "quick",
    "relative_residual",
]
