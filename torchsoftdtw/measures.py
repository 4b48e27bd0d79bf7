"""Elastic measures as objects: what `cdist`, `elastic_path` and `ElasticLoss` are told to measure with.

They are frozen and hashable, and hold numbers; the functions of the same names take tensors that learn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch

from . import dtw_variants, elastic
from ._inputs import arguments, per_pair
from ._inputs.kinds import describe
from ._inputs.problem import of_series
from ._measures import calls, pairs, paths, warping
from .functional import soft_dtw
from .hard import dtw_path
from .signatures import Bandwidth, Cost, ElasticPath, Lengths, Numbers, Reduction, Series


@dataclass(frozen=True)
class Measure:
    """What all measures share. Called with series, one gives their values."""

    _function: ClassVar[Any]  # of values

    def __call__(
        self,
        x: Series,
        y: Series,
        *,
        gamma: Numbers = 0.0,
        x_lengths: Lengths = None,
        y_lengths: Lengths = None,
        bandwidth: Bandwidth = None,
        kernel: str = "auto",
    ) -> torch.Tensor:
        """The values (B,) of the pairs of x (B, N, D) and y (B, M, D), as the function of the measure's name gives them."""
        options = {"x_lengths": x_lengths, "y_lengths": y_lengths, "bandwidth": bandwidth, "kernel": kernel}
        return self._value(x, y, gamma=gamma, **options, **self._parameters())

    def _parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _value(self, x, y, **options):
        return self._function(x, y, **options)

    def width(self, dim: int) -> int:
        """How many numbers there are, of each that a series of `dim` dimensions has."""
        return 1

    def takes_index(self, own: pairs.Pairs) -> bool:
        """Whether `_call` takes Pairs that are some of two sets."""
        return True

    def _call(self, own):
        """The Call of Pairs, of a measure whose steps have costs of their own."""
        return getattr(calls, type(self).__name__.lower())(own, *self._parameters().values())

    def _path(self, x, y, **options):
        own = pairs.of_series(x, y, 0.0, **options)
        return own, *paths.of_call(own, self._call(own))


class _Warping(Measure):
    """Measures that are dynamic time warping of something: every step is charged to its cell."""

    def takes_index(self, own: pairs.Pairs) -> bool:
        return False

    def _warped(self, x, y, x_lengths, y_lengths):
        """The arguments of `dtw_path`."""
        return x, y, x_lengths, y_lengths, {}

    def _path(self, x, y, x_lengths, y_lengths, bandwidth, kernel):
        x, y, x_lengths, y_lengths, options = self._warped(x, y, x_lengths, y_lengths)
        own = of_series(x, y, 1.0, options.get("cost", "sqeuclidean"), x_lengths, y_lengths, bandwidth, 0.0)
        pairs.kernel_of(kernel, own.x)
        lengths = {"x_lengths": x_lengths, "y_lengths": y_lengths}
        found = dtw_path(x, y, **lengths, bandwidth=bandwidth, **options)
        value, cells = (found.value, found.paths) if own.batched else (found.value.unsqueeze(0), [found.paths])
        return own, value, cells, [paths.from_warping(path) for path in cells]


def _check(measure, **checks):
    for name, check in checks.items():
        object.__setattr__(measure, name, check(getattr(measure, name)))


@dataclass(frozen=True)
class TWED(Measure):
    """Time warp edit distance, `twed`."""

    _function = staticmethod(elastic.twed)

    nu: float = 0.001
    lmbda: float = 1.0
    degree: float = 2

    def __post_init__(self) -> None:
        _check(self, nu=pairs.non_negative("nu"), lmbda=pairs.non_negative("lmbda"), degree=calls.check_degree)

    def _call(self, own):
        return calls.twed(own, self.nu, self.lmbda, self.degree, None, None)


@dataclass(frozen=True)
class ERP(Measure):
    """Edit distance with real penalty, `erp`. g: a number, or a tuple of one for each dimension."""

    _function = staticmethod(elastic.erp)

    g: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        check = pairs.finite("g")
        is_vector = isinstance(self.g, (tuple, list))
        _check(self, g=lambda g: tuple(map(check, g)) if is_vector else check(g))


@dataclass(frozen=True)
class MSM(Measure):
    """Move-split-merge, `msm`."""

    _function = staticmethod(elastic.msm)

    c: float = 1.0

    def __post_init__(self) -> None:
        _check(self, c=pairs.non_negative("c"))

    def takes_index(self, own: pairs.Pairs) -> bool:
        return own.x.shape[2] == 1


@dataclass(frozen=True)
class EDR(Measure):
    """Edit distance on real sequences, `edr`."""

    _function = staticmethod(elastic.edr)

    epsilon: float | None = None
    normalize: bool = True

    def __post_init__(self) -> None:
        arguments.flag("normalize", self.normalize)
        if self.epsilon is not None:
            _check(self, epsilon=pairs.non_negative("epsilon"))

    def takes_index(self, own: pairs.Pairs) -> bool:
        return self.epsilon is not None


@dataclass(frozen=True)
class LCSS(Measure):
    """The distance by the longest common subsequence, `lcss`."""

    _function = staticmethod(elastic.lcss)

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        _check(self, epsilon=pairs.non_negative("epsilon"))


@dataclass(frozen=True)
class WDTW(Measure):
    """Weighted DTW, `wdtw`."""

    _function = staticmethod(dtw_variants.wdtw)

    g: float = 0.05

    def __post_init__(self) -> None:
        _check(self, g=pairs.non_negative("g"))


@dataclass(frozen=True)
class WDDTW(WDTW):
    """Weighted DTW of slopes, `wddtw`."""

    _function = staticmethod(dtw_variants.wddtw)

    def takes_index(self, own: pairs.Pairs) -> bool:
        return False

    def _path(self, x, y, x_lengths, y_lengths, bandwidth, kernel):
        x, y, _, x_lengths, y_lengths = warping.slopes(x, y, x_lengths, y_lengths, 0.0)
        own = pairs.of_series(x, y, 0.0, x_lengths, y_lengths, bandwidth, kernel)
        return own, *paths.of_call(own, calls.wdtw(own, self.g))


@dataclass(frozen=True)
class DTW(_Warping):
    """Dynamic time warping, `dtw`, or with a gamma `soft_dtw`."""

    cost: Cost = "sqeuclidean"
    warp_penalty: float = 0.0

    def __post_init__(self) -> None:
        arguments.one_of("cost", self.cost, ("sqeuclidean", "euclidean", "cityblock", "cosine", "huber"))
        _check(self, warp_penalty=per_pair.non_negative_penalty)

    def _value(self, x, y, **options):
        return soft_dtw(x, y, options.pop("gamma"), **options)

    def _warped(self, x, y, x_lengths, y_lengths):
        return x, y, x_lengths, y_lengths, self._parameters()


@dataclass(frozen=True)
class ADTW(_Warping):
    """Amerced DTW, `adtw`."""

    _function = staticmethod(dtw_variants.adtw)

    warp_penalty: float = 1.0

    def __post_init__(self) -> None:
        _check(self, warp_penalty=per_pair.non_negative_penalty)

    def _warped(self, x, y, x_lengths, y_lengths):
        return x, y, x_lengths, y_lengths, self._parameters()


@dataclass(frozen=True)
class DDTW(_Warping):
    """Derivative DTW, `ddtw`. Its paths are those of the slopes, whose cell (0, 0) stands for row 1 of both series."""

    _function = staticmethod(dtw_variants.ddtw)

    def _warped(self, x, y, x_lengths, y_lengths):
        x, y, _, x_lengths, y_lengths = warping.slopes(x, y, x_lengths, y_lengths, 0.0)
        return x, y, x_lengths, y_lengths, {}


@dataclass(frozen=True)
class ShapeDTW(_Warping):
    """Shape DTW, `shape_dtw`."""

    _function = staticmethod(dtw_variants.shape_dtw)

    reach: int = 15

    def __post_init__(self) -> None:
        warping.check_reach(self.reach)

    def width(self, dim: int) -> int:
        return 2 * self.reach + 1

    def _warped(self, x, y, x_lengths, y_lengths):
        x, y, _, x_lengths, y_lengths = warping.windows(x, y, x_lengths, y_lengths, 0.0, self.reach)
        return x, y, x_lengths, y_lengths, {}


def check_measure(name: str, measure: Any) -> Measure:
    """`measure`, checked to be one."""
    if not isinstance(measure, Measure):
        raise TypeError(f"{name}: expected a measure, such as measures.TWED(nu=0.01), got {describe(measure)}")
    return measure


def elastic_path(
    x: Series,
    y: Series,
    measure: Measure,
    *,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> ElasticPath:
    """The values of a measure, and the best path of every pair with the kind of each step.

    Of equally good steps into a cell the path takes the diagonal one, else the one up, else the one to the left.

    Args:
        x: (B, N, D), or (N, D) for one pair.
        y: (B, M, D), or (M, D) for one pair.
        measure: one of `measures`, as in measures.TWED(nu=0.01).
        x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (value, paths, steps), an `ElasticPath`. The values are differentiable. A path is empty if its value is not finite.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> from torchsoftdtw.measures import ERP
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> value, path, steps = elastic_path(x, y, ERP())
        >>> value.item(), path.tolist(), steps.tolist()
        (1.0, [[0, -1], [1, 0], [2, 1]], [1, 0, 0])
    """
    options = {"x_lengths": x_lengths, "y_lengths": y_lengths, "bandwidth": bandwidth, "kernel": kernel}
    measure = check_measure("measure", measure)
    if isinstance(measure, MSM) and isinstance(x, torch.Tensor) and x.dim() > 0 and x.shape[-1] > 1:
        raise ValueError(f"x: expected one dimension, got {x.shape[-1]}: msm has a path for each; pass them one by one")
    own, value, cells, steps = measure._path(x, y, **options)
    return ElasticPath(value, cells, steps) if own.batched else ElasticPath(value.squeeze(0), cells[0], steps[0])


class ElasticLoss(torch.nn.Module):
    """A soft elastic measure as a training loss.

    Args:
        measure: one of `measures`, as in measures.MSM(c=0.5).
        gamma: smoothing, in the unit of the measure; 0 for the measure itself. A Parameter learns.
        divergence: take V(x, y) - V(x, x) / 2 - V(y, y) / 2, which is 0 for equal series.
        reduction: "mean", "sum" or "none", over the pairs.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.

    Example:
        >>> from torchsoftdtw.measures import MSM
        >>> loss = ElasticLoss(MSM(c=0.5), gamma=0.1, divergence=True)
        >>> x = torch.randn(4, 20, 1, requires_grad=True)
        >>> loss(x, torch.zeros(4, 30, 1)).backward()
    """

    def __init__(
        self, measure: Measure, gamma: Numbers = 0.1, divergence: bool = False, reduction: Reduction = "mean"
    ) -> None:
        super().__init__()
        self.measure = check_measure("measure", measure)
        if per_pair.is_number(gamma):
            self.gamma = 0.0 if per_pair.is_zero(gamma) else per_pair.positive_gamma(gamma)
        elif isinstance(gamma, torch.nn.Parameter):
            per_pair.check_numbers("gamma", gamma, per_pair.positive_gamma)
            self.gamma = gamma
        else:
            tensor = per_pair.numbers_as_tensor("gamma", gamma)
            per_pair.check_numbers("gamma", tensor, per_pair.positive_gamma)
            self.register_buffer("gamma", tensor, persistent=False)
        self.divergence = arguments.flag("divergence", divergence)
        self.reduction = arguments.one_of("reduction", reduction, ("mean", "sum", "none"))

    def forward(self, x: Series, y: Series, x_lengths: Lengths = None, y_lengths: Lengths = None) -> torch.Tensor:
        """The loss of x (B, N, D) and y (B, M, D), with lengths (B,) if they are padded: 0-d, or (B,) for "none"."""

        def value(a, b, a_lengths, b_lengths):
            return self.measure(a, b, gamma=self.gamma, x_lengths=a_lengths, y_lengths=b_lengths)

        values = value(x, y, x_lengths, y_lengths)
        if self.divergence:
            values = values - (value(x, x, x_lengths, x_lengths) + value(y, y, y_lengths, y_lengths)) / 2
        return values if self.reduction == "none" else getattr(values, self.reduction)()

    def extra_repr(self) -> str:
        gamma = self.gamma if per_pair.is_number(self.gamma) else "tensor"
        return f"{self.measure}, gamma={gamma}, divergence={self.divergence}, reduction={self.reduction!r}"
