"""DTW of x with every window of y of its length, all of them z-normalised: moved and scaled to mean 0 and deviation 1."""

import torch

from .._pairs import task as tasks
from .._pairs.bar import Bar

# Of the windows that are there at a time: many keep a GPU busy, and few stay in a CPU's cache.
MOST_BYTES = {"cuda": 256 << 20, "cpu": 8 << 20}


def z_normalised(series):
    """(..., L, D) series, each coordinate by itself, in float64 and back; a constant one is 0.

    The first vector is taken away before the mean is, so that a constant is exactly 0 and a large offset costs no digit.
    What differs by no more than the rounding of the numbers is constant.
    """
    wide = series.to(torch.float64, copy=True)
    largest = series.abs().amax(-2, keepdim=True)
    wide -= wide[..., :1, :].clone()
    wide -= wide.mean(-2, keepdim=True)
    deviation = wide.square().mean(-2, keepdim=True).sqrt()
    is_constant = deviation <= torch.finfo(series.dtype).eps * largest
    wide /= deviation.masked_fill(is_constant, torch.inf)
    return wide.to(series.dtype)


def values(query, is_silent):
    """(M - N + 1,): of every window, by its start, on the device of the computation; inf for one with a NaN."""
    x, windows = z_normalised(query.x).unsqueeze(0), query.y.unfold(0, len(query.x), 1).transpose(1, 2)
    at_once = max(1, MOST_BYTES[x.device.type] // (8 * x.numel()))
    found = []
    bar = Bar("subsequence_matches", -(-len(windows) // at_once), 0, is_silent)
    try:
        for part in windows.split(at_once):
            found.append(_task(query, x, z_normalised(part)).values()[0])
            bar.update(lambda: len(found))
    finally:
        bar.close()
    return torch.cat(found).nan_to_num(nan=torch.inf, posinf=torch.inf)


def _task(query, x, windows):
    lengths, ends = (None, None), (False, False)
    task, _ = tasks.of_sets(
        x, windows, "dtw", 1.0, query.cost, *lengths, query.bandwidth, query.warp_penalty, *ends, "auto"
    )
    return task
