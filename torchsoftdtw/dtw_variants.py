"""Variants of dynamic time warping: with other costs of cells, or of other series. Hard, or soft with a gamma."""

import torch

from ._measures import calls, pairs, warping
from .signatures import Bandwidth, Lengths, Numbers, Series


def adtw(
    x: Series,
    y: Series,
    *,
    warp_penalty: Numbers = 1.0,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Amerced DTW: `dtw` whose steps in one series only cost a penalty more.

    Herrmann & Webb, "Amercing: an intuitive and effective constraint for dynamic time warping", Pattern Recognition, 2023;
    squared Euclidean costs.

    Args:
        x, y: as in `twed`.
        warp_penalty: at least 0, as in `dtw`.
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `dtw`, or with a gamma `soft_dtw`, with their derivatives.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> adtw(x, y, warp_penalty=0.5).item()
        1.5
    """
    return warping.soft_or_hard(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel, warp_penalty)


def wdtw(
    x: Series,
    y: Series,
    *,
    g: Numbers = 0.05,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Weighted DTW: what is matched costs less near the diagonal, by 1 / (1 + exp(-g (abs(i - j) - max(N, M) / 2))).

    Jeong, Jeong & Omitaomu, "Weighted dynamic time warping for time series classification", Pattern Recognition, 2011;
    squared Euclidean costs.

    Args:
        x, y: as in `twed`.
        g: steepness of the weights, at least 0: a number, or a tensor or sequence of one for all or one per pair.
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `twed`. Gradients to x, y, and to g and gamma that are tensors.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> round(wdtw(x, y).item(), 3)
        0.481
    """
    own = pairs.of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
    return own.answer(calls.wdtw(own, g).value())


def ddtw(
    x: Series,
    y: Series,
    *,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Derivative DTW: `dtw` of the series' slopes, ((x_i - x_i-1) + (x_i+1 - x_i-1) / 2) / 2.

    Keogh & Pazzani, "Derivative dynamic time warping", SDM 2001. A slope needs both neighbours, so two rows fewer are
    warped: series have at least 3.

    Args:
        x, y, gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `dtw`, or with a gamma `soft_dtw`, with their derivatives.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[5.0], [6.0], [7.0], [8.0]])
        >>> ddtw(x, y).item()
        0.0
    """
    x, y, gamma, x_lengths, y_lengths = warping.slopes(x, y, x_lengths, y_lengths, gamma)
    return warping.soft_or_hard(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)


def wddtw(
    x: Series,
    y: Series,
    *,
    g: Numbers = 0.05,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Weighted derivative DTW: `wdtw` of the slopes that `ddtw` takes.

    Jeong, Jeong & Omitaomu, Pattern Recognition, 2011.

    Args:
        x, y, g, gamma, x_lengths, y_lengths, bandwidth, kernel: as in `wdtw`.

    Returns:
        (B,) values as those of `wdtw`.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[5.0], [6.0], [7.0], [8.0]])
        >>> wddtw(x, y).item()
        0.0
    """
    x, y, gamma, x_lengths, y_lengths = warping.slopes(x, y, x_lengths, y_lengths, gamma)
    return wdtw(x, y, g=g, gamma=gamma, x_lengths=x_lengths, y_lengths=y_lengths, bandwidth=bandwidth, kernel=kernel)


def shape_dtw(
    x: Series,
    y: Series,
    *,
    reach: int = 15,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Shape DTW: `dtw` of the windows around each row, of `reach` rows to both sides; ends are repeated.

    Zhao & Itti, "shapeDTW: shape dynamic time warping", Pattern Recognition, 2018, with raw windows.

    Args:
        x, y: as in `twed`.
        reach: rows to each side, at least 0: vectors have D (2 reach + 1) numbers.
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `dtw`, or with a gamma `soft_dtw`, with their derivatives.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> shape_dtw(x, y, reach=0).item()
        1.0
    """
    x, y, gamma, x_lengths, y_lengths = warping.windows(x, y, x_lengths, y_lengths, gamma, reach)
    return warping.soft_or_hard(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
