"""The types of arguments and results."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import torch
from torch.nn.utils.rnn import PackedSequence

if TYPE_CHECKING:
    from .measures import Measure

if TYPE_CHECKING or find_spec("numpy"):
    from numpy import ndarray as Array  # torch has imported it already
else:
    Array = Any

Series: TypeAlias = torch.Tensor | PackedSequence
SeriesSet: TypeAlias = torch.Tensor | Array | Sequence[torch.Tensor] | Sequence[Array]  # of a length of their own in a list
TensorOrArray: TypeAlias = Any  # a tensor or an array, as the series are
Out: TypeAlias = torch.Tensor | Array | str | PathLike[str] | None
Distance: TypeAlias = 'Literal["dtw", "soft_dtw", "divergence"] | Measure'
Method: TypeAlias = Literal["soft", "dba", "divergence"]
Cost: TypeAlias = (
    Literal["sqeuclidean", "euclidean", "cityblock", "huber", "cosine"]
    | Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
)
Lengths: TypeAlias = Sequence[int] | torch.Tensor | None
Bandwidth: TypeAlias = int | Sequence[int] | torch.Tensor | None
Numbers: TypeAlias = float | Sequence[float] | torch.Tensor  # one for all pairs, or one per pair
Reduction: TypeAlias = Literal["mean", "sum", "none"]
Kind: TypeAlias = Literal["soft", "sharp", "mean"]
Optimizer: TypeAlias = Callable[[list[torch.Tensor]], torch.optim.Optimizer]  # or what makes one


class DTWPath(NamedTuple):
    """The result of `dtw_path` and `dtw_path_from_cost`.

    Attributes:
        value: (B,) hard DTW, or 0-d for a pair without a batch.
        paths: a (K, 2) int64 tensor for every pair, or the tensor alone for a pair without a batch: pairs (i, j) counted
            from 0, first to last.
    """

    value: torch.Tensor
    paths: list[torch.Tensor] | torch.Tensor


class ElasticPath(NamedTuple):
    """The result of `elastic_path`.

    Attributes:
        value: (B,) values of the measure, or 0-d for a pair without a batch.
        paths: a (K, 2) int64 tensor for every pair, or the tensor alone for a pair without a batch: cells (i, j) counted
            from 0, first to last; -1 where a path leaves out rows or columns before any of the other series.
        steps: a (K,) uint8 tensor for every pair: how the path comes into each cell, 0 by a match, 1 by leaving out row i
            (up), 2 by leaving out column j (left).
    """

    value: torch.Tensor
    paths: list[torch.Tensor] | torch.Tensor
    steps: list[torch.Tensor] | torch.Tensor


class SoftAlignment(NamedTuple):
    """The result of `soft_dtw_alignment`.

    Attributes:
        value: (B,) soft-DTW, or 0-d for a pair without a batch.
        alignment: (B, N, M), or (N, M): how likely it is that row i and column j are matched.
    """

    value: torch.Tensor
    alignment: torch.Tensor


class Matches(NamedTuple):
    """The result of `subsequence_matches`: the ranges y[start:end], sorted by value.

    Attributes:
        start: (k,) int64, the position in y of a range's first vector.
        end: (k,) int64, the position after its last vector.
        value: (k,) hard DTW between the query and the range.
    """

    start: TensorOrArray
    end: TensorOrArray
    value: TensorOrArray


class ProfiledMatches(NamedTuple):
    """The result of `subsequence_matches` with `profile`.

    Attributes:
        start, end, value: as in `Matches`.
        profile: (M,) the value of the best range whose last vector is y[j], inf if there is none.
    """

    start: TensorOrArray
    end: TensorOrArray
    value: TensorOrArray
    profile: TensorOrArray
