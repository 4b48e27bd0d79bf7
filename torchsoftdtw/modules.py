"""DTW, soft-DTW and its divergence as training losses."""

from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from ._inputs import arguments, per_pair, remedies
from ._inputs import cost as costs
from ._kernels import selection
from .divergence import KINDS, refuse_open_ends, soft_dtw_divergence
from .functional import soft_dtw
from .hard import dtw
from .signatures import Cost, Kind, Lengths, Numbers, Reduction, Series

REDUCTIONS = ("mean", "sum", "none")
Radius: TypeAlias = int | torch.Tensor | None  # of a module: one for all pairs


class _Loss(torch.nn.Module):
    """What the losses share: the options, checked when they are made, and the reduction."""

    warp_penalty: float | torch.Tensor

    if TYPE_CHECKING:

        def __call__(self, x: Series, y: Series, x_lengths: Lengths = None, y_lengths: Lengths = None) -> torch.Tensor: ...

    def __init__(
        self,
        *,
        cost: Cost,
        bandwidth: Radius,
        warp_penalty: Numbers,
        reduction: Reduction,
        length_norm: bool,
        open_ends: bool,
    ) -> None:
        super().__init__()
        costs.check(cost)
        self.cost = cost
        self.bandwidth = None if bandwidth is None else per_pair.band_radius(bandwidth)
        self._set_number("warp_penalty", warp_penalty, per_pair.non_negative_penalty)
        self.length_norm = arguments.flag("length_norm", length_norm)
        arguments.check_ends(open_ends, bandwidth)
        self.open_ends = open_ends
        self.reduction = arguments.one_of("reduction", reduction, REDUCTIONS)

    def _set_number(self, name, value, check):
        """A Parameter becomes the module's own, another tensor a buffer that is not saved with it."""
        if per_pair.is_number(value):
            setattr(self, name, check(value))
            return
        tensor = per_pair.numbers_as_tensor(name, value)
        # Where gamma is a tensor, 0 is not one of its numbers.
        per_pair.check_numbers(name, tensor, per_pair.positive_gamma if name == "gamma" else check)
        if isinstance(value, torch.nn.Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, x: Series, y: Series, x_lengths: Lengths = None, y_lengths: Lengths = None) -> torch.Tensor:
        """The loss of x (B, N, D) and y (B, M, D), with lengths (B,) if they are padded: 0-d, or (B,) for "none".

        Either may be a nested tensor or a PackedSequence, which has its own lengths. A pair without a batch, (N, D) and
        (M, D), is taken with a FutureWarning, since a batch of series of one channel, (B, N), looks the same.
        """
        if isinstance(x, torch.Tensor) and x.dim() == 2 and not (x.is_nested or torch.compiler.is_compiling()):
            remedies.warn_of_pair_without_batch(type(self).__name__, x)
        value = self._compare(
            x,
            y,
            cost=self.cost,
            x_lengths=x_lengths,
            y_lengths=y_lengths,
            bandwidth=self.bandwidth,
            warp_penalty=self.warp_penalty,
            length_norm=self.length_norm,
            open_ends=self.open_ends,
        )
        if self.reduction == "mean":
            return value.mean()
        return value.sum() if self.reduction == "sum" else value

    def _compare(self, x: Series, y: Series, **options: Any) -> torch.Tensor:
        raise NotImplementedError

    def extra_repr(self) -> str:
        cost = self.cost if isinstance(self.cost, str) else getattr(self.cost, "__name__", repr(self.cost))
        flags = "".join(f", {name}=True" for name in ("length_norm", "open_ends") if getattr(self, name))
        penalty = _shown(self.warp_penalty)
        return f"cost={cost}, bandwidth={self.bandwidth}, warp_penalty={penalty}, reduction={self.reduction}{flags}"


class DTW(_Loss):
    """Hard DTW between predicted and true series as a loss. Its gradient is along the best path, as in `dtw`.

    Args:
        cost: a name or a callable, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0; None: no band.
        warp_penalty: cost of a step that advances in one series only; a number of at least 0, or a tensor, () or (B,).
        reduction: "mean" or "sum" over the pairs, or "none".
        length_norm: divide the value of a pair by N + M, its own lengths.
        open_ends: match x with any contiguous part of y. Not together with a bandwidth.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.

    Example:
        >>> loss = DTW(cost="euclidean", reduction="none")
        >>> loss(torch.zeros(4, 10, 1), torch.ones(4, 12, 1)).tolist()
        [12.0, 12.0, 12.0, 12.0]
    """

    def __init__(
        self,
        *,
        cost: Cost = "sqeuclidean",
        bandwidth: Radius = None,
        warp_penalty: Numbers = 0.0,
        reduction: Reduction = "mean",
        length_norm: bool = False,
        open_ends: bool = False,
    ) -> None:
        super().__init__(
            cost=cost,
            bandwidth=bandwidth,
            warp_penalty=warp_penalty,
            reduction=reduction,
            length_norm=length_norm,
            open_ends=open_ends,
        )

    def _compare(self, x: Series, y: Series, **options: Any) -> torch.Tensor:
        return dtw(x, y, **options)


class SoftDTW(_Loss):
    """Soft-DTW between predicted and true series as a loss (Cuturi & Blondel, ICML 2017).

    Args:
        gamma: smoothing, in the unit of the cost: a positive number, 0 for hard DTW, or a tensor (), (1,) or (B,). A
            torch.nn.Parameter is learnable.
        cost: a name or a callable, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0; None: no band.
        warp_penalty: cost of a step that advances in one series only; a number of at least 0, or a tensor as for gamma.
        reduction: "mean" or "sum" over the pairs, or "none".
        length_norm: divide the value of a pair by N + M, its own lengths.
        open_ends: match x with any contiguous part of y. Not together with a bandwidth.
        kernel: "auto", or a name that `select_kernel` can return.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.

    Example:
        >>> loss = SoftDTW(gamma=0.1, bandwidth=5)
        >>> loss(torch.zeros(4, 10, 1), torch.zeros(4, 12, 1)).shape
        torch.Size([])
    """

    gamma: float | torch.Tensor

    def __init__(
        self,
        gamma: Numbers = 0.1,
        *,
        cost: Cost = "sqeuclidean",
        bandwidth: Radius = None,
        warp_penalty: Numbers = 0.0,
        reduction: Reduction = "mean",
        length_norm: bool = False,
        open_ends: bool = False,
        kernel: str = "auto",
    ) -> None:
        super().__init__(
            cost=cost,
            bandwidth=bandwidth,
            warp_penalty=warp_penalty,
            reduction=reduction,
            length_norm=length_norm,
            open_ends=open_ends,
        )
        self._set_number(
            "gamma", gamma, lambda number: 0.0 if per_pair.is_zero(number) else per_pair.positive_gamma(number)
        )
        selection.check_name(kernel)
        self.kernel = kernel

    def _compare(self, x: Series, y: Series, **options: Any) -> torch.Tensor:
        return soft_dtw(x, y, self.gamma, kernel=self.kernel, **options)

    def extra_repr(self) -> str:
        kernel = "" if self.kernel == "auto" else f", kernel={self.kernel}"
        return f"gamma={_shown(self.gamma)}, {super().extra_repr()}{kernel}"


class SoftDTWDivergence(SoftDTW):
    """The soft-DTW divergence (`soft_dtw_divergence`) of predicted and true series as a loss, 0 if they are equal.

    Blondel, Mensch & Vert, "Differentiable divergences between time series", AISTATS 2021. If y needs no gradient, the
    term of y and y stores nothing for a backward pass.

    Args:
        gamma: smoothing, in the unit of the cost; a positive number or a tensor, as in `SoftDTW`.
        kind: "soft", "sharp" or "mean", as in `soft_dtw_divergence`.
        cost: a name or a callable, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0; None: no band.
        warp_penalty: cost of a step that advances in one series only; a number of at least 0, or a tensor.
        reduction: "mean" or "sum" over the pairs, or "none".
        length_norm: divide the divergence of a pair by N + M, its own lengths.
        open_ends: False; `soft_dtw_divergence` says why.
        kernel: "auto", or a name that `select_kernel` can return.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.

    Example:
        >>> x = torch.randn(4, 10, 1)
        >>> SoftDTWDivergence(gamma=0.1)(x, x).item()
        0.0
    """

    def __init__(
        self,
        gamma: Numbers = 0.1,
        *,
        kind: Kind = "soft",
        cost: Cost = "sqeuclidean",
        bandwidth: Radius = None,
        warp_penalty: Numbers = 0.0,
        reduction: Reduction = "mean",
        length_norm: bool = False,
        open_ends: bool = False,
        kernel: str = "auto",
    ) -> None:
        if per_pair.is_number(gamma):
            per_pair.positive_gamma(gamma)
        super().__init__(
            gamma,
            cost=cost,
            bandwidth=bandwidth,
            warp_penalty=warp_penalty,
            reduction=reduction,
            length_norm=length_norm,
            open_ends=open_ends,
            kernel=kernel,
        )
        refuse_open_ends(open_ends)
        self.kind = arguments.one_of("kind", kind, KINDS)

    def _compare(self, x: Series, y: Series, **options: Any) -> torch.Tensor:
        return soft_dtw_divergence(x, y, self.gamma, kind=self.kind, kernel=self.kernel, **options)

    def extra_repr(self) -> str:
        return f"kind={self.kind}, {super().extra_repr()}"


def _shown(number):
    return f"tensor of shape {tuple(number.shape)}" if isinstance(number, torch.Tensor) else f"{number:g}"
