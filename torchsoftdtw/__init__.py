"""Soft-DTW as a PyTorch operator and training loss (Cuturi & Blondel, ICML 2017)."""

from .functional import soft_dtw, soft_dtw_from_cost
from .hard import dtw, dtw_path
from .modules import SoftDTW
from .selection import select_kernel

__version__ = "0.1.0"
__all__ = ["SoftDTW", "dtw", "dtw_path", "select_kernel", "soft_dtw", "soft_dtw_from_cost"]
