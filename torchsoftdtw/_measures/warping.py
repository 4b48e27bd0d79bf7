"""Measures that are dynamic time warping of something made of the series, or with its penalty."""

import torch

from .._inputs import arguments, per_pair, ragged
from .._inputs.kinds import describe
from ..functional import soft_dtw


def soft_or_hard(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel, warp_penalty=0.0):
    options = {"x_lengths": x_lengths, "y_lengths": y_lengths, "bandwidth": bandwidth, "warp_penalty": warp_penalty}
    return soft_dtw(x, y, gamma, kernel=kernel, **options)


def slopes(x, y, x_lengths, y_lengths, gamma):
    """(x, y, gamma, x_lengths, y_lengths) of the slopes of the series, which are two shorter."""
    x, y, batched, lengths = _checked(x, y, x_lengths, y_lengths)
    for name, series, own in zip("xy", (x, y), lengths, strict=True):
        if series.shape[1] < 3:
            raise ValueError(f"{name}: expected series of at least 3 vectors for their slopes, got {tuple(series.shape)}")
        if own is not None and own.device.type == "cpu" and _has(own < 3):
            raise ValueError(f"{name}_lengths: expected lengths of at least 3, for slopes, got {int(own.min())}")
    answer = [((own[:, 1:-1] - own[:, :-2]) + (own[:, 2:] - own[:, :-2]) / 2) / 2 for own in (x, y)]
    x, y = answer if batched else (own.squeeze(0) for own in answer)
    return x, y, gamma, *(None if own is None else own - 2 for own in lengths)


def windows(x, y, x_lengths, y_lengths, gamma, reach):
    """(x, y, gamma, x_lengths, y_lengths) of the windows around the rows of each series, whose ends are repeated."""
    check_reach(reach)
    x, y, batched, lengths = _checked(x, y, x_lengths, y_lengths)
    answer = []
    for series, own in zip((x, y), lengths, strict=True):
        length = series.shape[1]
        row = torch.arange(length, device=series.device).unsqueeze(1) + torch.arange(
            -reach, reach + 1, device=series.device
        )
        last = torch.full((1,), length, device=series.device) if own is None else own
        row = torch.minimum(row.clamp(min=0), last.view(-1, 1, 1) - 1).clamp(min=0).expand(len(series), -1, -1)
        pair = torch.arange(len(series), device=series.device).view(-1, 1, 1)
        answer.append(series[pair, row].flatten(2))
    x, y = answer if batched else (own.squeeze(0) for own in answer)
    return x, y, gamma, *lengths


def check_reach(reach):
    if not per_pair.is_integer(reach):
        raise TypeError(f"reach: expected an integer, got {describe(reach)}")
    if reach < 0:
        raise ValueError(f"reach: expected an integer of at least 0, got {reach}")


def _checked(x, y, x_lengths, y_lengths):
    x, y, x_lengths, y_lengths = ragged.padded(x, y, x_lengths, y_lengths)
    x, y, batched = arguments.series(x, y)
    sides = ("x_lengths", x_lengths, x), ("y_lengths", y_lengths, y)
    lengths = [per_pair.integers_per_pair(name, own, s, batched, 1, s.shape[1]) for name, own, s in sides]
    return x, y, batched, lengths


def _has(condition):
    return not per_pair.is_hidden(condition) and bool(condition.any())
