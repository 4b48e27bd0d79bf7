"""Calls like an earlier one, whose checks need not be made again: they take as long as a small problem."""

from typing import Any

import torch

from .arguments import wants_gradient

MOST = 1024
PLAIN = (torch.Tensor, torch.nn.Parameter)
known: dict[tuple, Any] = {}  # signature -> what the call's function makes of it


def signature(function, x, y, gamma, warp_penalty, bandwidth, cost, kernel, x_lengths, y_lengths, length_norm, open_ends):
    """All that the checks of a call of a function by this name, and the choice of its kernel, look at. None: they may look
    at more."""
    if torch.compiler.is_compiling() or type(x) not in PLAIN or type(y) not in PLAIN or x.is_nested or y.is_nested:
        return None
    if type(gamma) is not float or type(warp_penalty) is not float or type(cost) is not str or type(kernel) is not str:
        return None
    if not (x_lengths is None and y_lengths is None and length_norm is False and open_ends is False):
        return None
    if not (bandwidth is None or type(bandwidth) is int):
        return None
    of_tensors = x.shape, y.shape, x.dtype, y.dtype, x.layout, y.layout, x.device, y.device
    return function, *of_tensors, gamma, warp_penalty, bandwidth, cost, kernel, wants_gradient(x, y)


def recall(call):
    """What was remembered of a signature, or None."""
    return None if call is None else known.get(call)  # torch.compile, whose calls have none, is not to look into the dict


def remember(call, made):
    if call is None:
        return
    if len(known) >= MOST:
        known.clear()
    known[call] = made
