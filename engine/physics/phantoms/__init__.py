"""Procedural CT and MR slices: the demo, the test data and a part of what priors learn from.

>>> ct_phantom(seed=3, size=256, region="chest").image      # float32, HU
>>> brain_mr(seed=3, size=256, contrast="T2").image         # complex64, 0.99 quantile 1

The same seed gives the same bits; another size shows the same anatomy at another resolution.
"""

from engine.physics.phantoms.brain import brain_mr
from engine.physics.phantoms.head import CONTRASTS
from engine.physics.phantoms.phantom import Lesion, Phantom
from engine.physics.phantoms.stack import REGIONS, ct_phantom

__all__ = ["CONTRASTS", "REGIONS", "Lesion", "Phantom", "brain_mr", "ct_phantom"]
