"""Sets of series, of which all pairs are asked for: tensors, NumPy arrays, lists and nested tensors, checked and padded."""

import warnings
from typing import NamedTuple

import torch

from . import arguments, kinds, per_pair, ragged


class Pair(NamedTuple):
    """Two sets, x (P, N, D) and y (Q, M, D), and the lengths of their series, or None."""

    x: torch.Tensor
    y: torch.Tensor
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    dtype: torch.dtype  # of the computation: a set may be larger than memory, so none is converted here
    is_array: bool  # whether x came as NumPy arrays


def pair(x, y, x_lengths, y_lengths):
    """The Pair, or an error that names the argument. y None: x itself."""
    is_array = holds_arrays(x)
    x, x_lengths = of_set("x", x, x_lengths)
    y, y_lengths = (x, x_lengths) if y is None else of_set("y", y, y_lengths)
    if x.device != y.device:
        raise ValueError(f"x and y: expected one device, got {x.device} and {y.device}")
    if x.shape[2] != y.shape[2]:
        raise ValueError(
            f"x and y: expected vectors of the same dimension, got shapes {tuple(x.shape)} and {tuple(y.shape)}"
        )
    dtype = kinds.compute_dtype(torch.promote_types(x.dtype, y.dtype))
    return Pair(x, y, x_lengths, y_lengths, dtype, is_array)


def options(pair, gamma, warp_penalty, bandwidth):
    """arguments.Options of the pairs of both sets, whose numbers hold for all of them."""
    for name, number in (("gamma", gamma), ("warp_penalty", warp_penalty)):
        if not per_pair.is_number(number):
            raise TypeError(f"{name}: expected one number for all pairs, got {kinds.describe(number)}")
    if bandwidth is not None:
        bandwidth = per_pair.band_radius(bandwidth)
    (p, n, _), (q, m, _) = pair.x.shape, pair.y.shape
    like = pair.x.new_empty((1,), dtype=pair.dtype)
    checked = arguments.options(like.expand(p), n, m, True, gamma, warp_penalty, bandwidth, pair.x_lengths, None)
    y_lengths = per_pair.integers_per_pair("y_lengths", pair.y_lengths, like.expand(q), True, 1, m)
    return checked._replace(y_lengths=y_lengths)


def device_to_compute_on(device, x):
    """`device` as torch has it, or that of x where it is None."""
    if device is None:
        return x.device
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device: expected the CPU or CUDA, got {device!r}") from error
    if found.type == "cpu":
        return torch.device("cpu")
    if found.type != "cuda":
        raise ValueError(f"device: expected the CPU or CUDA, got {found}")
    if not torch.cuda.is_available():
        raise RuntimeError(f"device: got {found}, but torch.cuda.is_available() is False")
    return torch.device("cuda", torch.cuda.current_device()) if found.index is None else found


def holds_arrays(series):
    if isinstance(series, (list, tuple)):
        return len(series) > 0 and kinds.is_array(series[0])
    return kinds.is_array(series)


def of_set(name, series, lengths):
    """(series (P, N, D), lengths (P,) or None) of a set in any form."""
    if isinstance(series, (list, tuple)):
        if lengths is not None:
            raise ValueError(f"{name}_lengths: expected None if {name} is a list, whose series have their own lengths")
        return _of_list(name, series)
    if kinds.is_array(series):
        series = from_numpy(series)
    series, lengths = ragged.padded_set(name, series, lengths)
    arguments.check_float_tensor(name, series)
    if series.dim() == 2:
        raise ValueError(
            f"{name}: expected (series, length, dim), got {tuple(series.shape)}; write {name}.unsqueeze(2) for series of "
            f"one channel, or {name}.unsqueeze(0) for a single series of vectors (NumPy: {name}[:, :, None], {name}[None])"
        )
    if series.dim() != 3:
        raise ValueError(f"{name}: expected (series, length, dim), got shape {tuple(series.shape)}")
    if series.shape[1] < 1 or series.shape[2] < 1:
        raise ValueError(f"{name}: expected series of at least one vector and dimension, got shape {tuple(series.shape)}")
    return series, lengths


def _of_list(name, series):
    if not series:
        raise ValueError(f"{name}: expected at least one series, got an empty list")
    parts = [from_numpy(part) if kinds.is_array(part) else part for part in series]
    for i, part in enumerate(parts):
        arguments.check_float_tensor(f"{name}[{i}]", part)
        if part.dim() != 2 or 0 in part.shape:
            raise ValueError(
                f"{name}[{i}]: expected a series (length, dim), got shape {tuple(part.shape)}; write .unsqueeze(1) for one "
                "of one channel"
            )
        if part.shape[1] != parts[0].shape[1] or part.device != parts[0].device:
            raise ValueError(
                f"{name}[{i}]: expected the dimension and the device of {name}[0], ({parts[0].shape[1]}, "
                f"{parts[0].device}), got ({part.shape[1]}, {part.device})"
            )
    lengths = torch.tensor([len(part) for part in parts], device="cpu")
    padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    return padded, None if bool((lengths == lengths[0]).all()) else lengths


def from_numpy(array):
    if any(stride < 0 for stride in array.strides):  # which no tensor has
        array = array.copy()
    with warnings.catch_warnings():  # of an array that is not to be written to, and nothing here does
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
