"""Every iterative solver with settings that make eight short iterations of it."""

from engine.solvers.classical import SIRT, CGTikhonov
from engine.solvers.daps import Daps
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.solvers.ddnm import Ddnm
from engine.solvers.dds import Dds
from engine.solvers.diffpir import Diffpir
from engine.solvers.sparse import TV
from engine.solvers.wavelets import Wavelet

SOLVERS = [
    (DcPnpdp(), {"nfe": 8}),
    (Diffpir(), {"nfe": 8, "zeta": 0.5}),
    (Ddnm(), {"nfe": 8}),
    (Ddnm(), {"nfe": 8, "renoising": "sh"}),
    (Dds(), {"nfe": 8}),
    (Daps(), {"nfe": 8, "langevin_steps": 3}),
    (Daps(), {"nfe": 17, "ode_steps": 2, "langevin_steps": 3}),
    (SIRT(), {"iterations": 8}),
    (CGTikhonov(), {"iterations": 8}),
    (TV(), {"iterations": 8, "tv_inner": 5, "tv_method": "fista"}),
    (TV(), {"iterations": 8}),
    (Wavelet(), {"iterations": 8}),
]
IDS = [solver.name for solver, _ in SOLVERS]
