"""Soft-DTW as a PyTorch operator and training loss (Cuturi & Blondel, ICML 2017)."""

from . import plot as plot
from ._kernels.selection import select_kernel
from .alignment import soft_dtw_alignment
from .barycenter import Barycenter, barycenter
from .divergence import soft_dtw_divergence
from .functional import soft_dtw, soft_dtw_from_cost
from .hard import dtw, dtw_from_cost, dtw_path, dtw_path_from_cost
from .matches import subsequence_matches
from .modules import DTW, SoftDTW, SoftDTWDivergence
from .neighbors import nearest
from .pairwise import cdist
from .signatures import DTWPath, Matches, ProfiledMatches, SoftAlignment

__version__ = "0.1.0"
__all__ = [
    "DTW",
    "Barycenter",
    "DTWPath",
    "Matches",
    "ProfiledMatches",
    "SoftAlignment",
    "SoftDTW",
    "SoftDTWDivergence",
    "barycenter",
    "cdist",
    "dtw",
    "dtw_from_cost",
    "dtw_path",
    "dtw_path_from_cost",
    "nearest",
    "select_kernel",
    "soft_dtw",
    "soft_dtw_alignment",
    "soft_dtw_divergence",
    "soft_dtw_from_cost",
    "subsequence_matches",
]


def __dir__() -> list[str]:
    """What is public, for completion: not the modules that it comes from."""
    return sorted({*__all__, "__version__", "plot", *({"estimators"} & globals().keys())})
