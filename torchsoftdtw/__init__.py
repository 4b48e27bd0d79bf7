"""Soft-DTW as a PyTorch operator and training loss (Cuturi & Blondel, ICML 2017)."""

from ._kernels.selection import select_kernel
from .alignment import soft_dtw_alignment
from .barycenter import Barycenter, barycenter
from .divergence import soft_dtw_divergence
from .functional import soft_dtw, soft_dtw_from_cost
from .hard import dtw, dtw_path
from .modules import SoftDTW, SoftDTWDivergence
from .pairwise import cdist

__version__ = "0.1.0"
__all__ = [
    "Barycenter",
    "SoftDTW",
    "SoftDTWDivergence",
    "barycenter",
    "cdist",
    "dtw",
    "dtw_path",
    "select_kernel",
    "soft_dtw",
    "soft_dtw_alignment",
    "soft_dtw_divergence",
    "soft_dtw_from_cost",
]
