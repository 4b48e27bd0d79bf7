"""Sets of series, of which all pairs are asked for: tensors, NumPy arrays, lists and nested tensors, checked and padded."""

from typing import NamedTuple

import torch

from . import arguments, kinds, per_pair, ragged


class Pair(NamedTuple):
    """Two sets in the dtype of the computation, x (P, N, D) and y (Q, M, D), and their series' lengths (P,) and (Q,), or None."""

    x: torch.Tensor
    y: torch.Tensor
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    is_array: bool  # whether x came as NumPy arrays

    def answer(self, value):
        return value.numpy() if self.is_array else value


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
    return Pair(x.to(dtype), y.to(dtype), x_lengths, y_lengths, is_array)


def options(pair, gamma, warp_penalty, bandwidth):
    """arguments.Options of the pairs of both sets, whose numbers hold for all of them."""
    for name, number in (("gamma", gamma), ("warp_penalty", warp_penalty)):
        if not per_pair.is_number(number):
            raise TypeError(f"{name}: expected one number for all pairs, got {kinds.describe(number)}")
    if bandwidth is not None:
        bandwidth = per_pair.band_radius(bandwidth)
    checked = arguments.options(pair.x, *_lengths_of(pair), True, gamma, warp_penalty, bandwidth, pair.x_lengths, None)
    y_lengths = per_pair.integers_per_pair("y_lengths", pair.y_lengths, pair.y, True, 1, pair.y.shape[1])
    return checked._replace(y_lengths=y_lengths)


def _lengths_of(pair):
    return pair.x.shape[1], pair.y.shape[1]


def holds_arrays(series):
    if isinstance(series, (list, tuple)):
        return len(series) > 0 and kinds.is_array(series[0])
    return kinds.is_array(series)


def of_set(name, series, lengths):
    """(series (P, N, D), lengths (P,) or None) of a set in any form."""
    if isinstance(series, (list, tuple)):
        if lengths is not None:
            raise ValueError(f"{name}_lengths: expected None where {name} is a list, whose series have their own lengths")
        return _of_list(name, series)
    if kinds.is_array(series):
        series = torch.from_numpy(series)
    series, lengths = ragged.padded_set(name, series, lengths)
    arguments.check_float_tensor(name, series)
    if series.dim() == 2:
        raise ValueError(
            f"{name}: expected (series, length, dim), got {tuple(series.shape)}; write {name}.unsqueeze(2) for series of one "
            f"channel, or {name}.unsqueeze(0) for a single series of vectors (NumPy: {name}[:, :, None] or {name}[None])"
        )
    if series.dim() != 3:
        raise ValueError(f"{name}: expected (series, length, dim), got shape {tuple(series.shape)}")
    if series.shape[1] < 1 or series.shape[2] < 1:
        raise ValueError(f"{name}: expected series of at least one vector and dimension, got shape {tuple(series.shape)}")
    return series, lengths


def _of_list(name, series):
    if not series:
        raise ValueError(f"{name}: expected at least one series, got an empty list")
    parts = [torch.from_numpy(part) if kinds.is_array(part) else part for part in series]
    for i, part in enumerate(parts):
        arguments.check_float_tensor(f"{name}[{i}]", part)
        if part.dim() != 2 or 0 in part.shape:
            raise ValueError(
                f"{name}[{i}]: expected a series (length, dim), got shape {tuple(part.shape)}; write .unsqueeze(1) for a series "
                "of one channel"
            )
        if part.shape[1] != parts[0].shape[1] or part.device != parts[0].device:
            raise ValueError(
                f"{name}[{i}]: expected the dimension and the device of {name}[0], ({parts[0].shape[1]}, {parts[0].device}), "
                f"got ({part.shape[1]}, {part.device})"
            )
    lengths = torch.tensor([len(part) for part in parts], device="cpu")
    padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    return padded, None if bool((lengths == lengths[0]).all()) else lengths
