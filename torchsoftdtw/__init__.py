"""Soft-DTW as a PyTorch operator and training loss (Cuturi & Blondel, ICML 2017)."""

from . import measures as measures
from . import plot as plot
from ._kernels.selection import select_kernel
from .alignment import soft_dtw_alignment
from .barycenter import Barycenter, barycenter
from .divergence import soft_dtw_divergence
from .dtw_variants import adtw, ddtw, shape_dtw, wddtw, wdtw
from .elastic import edr, elastic_from_costs, erp, lcss, msm, twed
from .functional import soft_dtw, soft_dtw_from_cost
from .hard import dtw, dtw_from_cost, dtw_path, dtw_path_from_cost
from .matches import subsequence_matches
from .measures import ElasticLoss, elastic_path
from .modules import DTW, SoftDTW, SoftDTWDivergence
from .neighbors import nearest
from .pairwise import cdist
from .signatures import DTWPath, ElasticPath, Matches, ProfiledMatches, SoftAlignment

__version__ = "0.1.0"
__all__ = [
    "DTW",
    "Barycenter",
    "DTWPath",
    "ElasticLoss",
    "ElasticPath",
    "Matches",
    "ProfiledMatches",
    "SoftAlignment",
    "SoftDTW",
    "SoftDTWDivergence",
    "adtw",
    "barycenter",
    "cdist",
    "ddtw",
    "dtw",
    "dtw_from_cost",
    "dtw_path",
    "dtw_path_from_cost",
    "edr",
    "elastic_from_costs",
    "elastic_path",
    "erp",
    "lcss",
    "msm",
    "nearest",
    "select_kernel",
    "shape_dtw",
    "soft_dtw",
    "soft_dtw_alignment",
    "soft_dtw_divergence",
    "soft_dtw_from_cost",
    "subsequence_matches",
    "twed",
    "wddtw",
    "wdtw",
]


def __dir__() -> list[str]:
    """What is public, for completion: not the modules that it comes from."""
    return sorted({*__all__, "__version__", "measures", "plot", *({"estimators"} & globals().keys())})
