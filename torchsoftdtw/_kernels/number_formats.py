"""Which number format takes each pair of a call on CUDA: to look into, for benchmarks and tests."""

import torch

from . import ops

# In the order of PairStatus in csrc/cuda/numbers/pair_status.cuh; the last two are those that backward takes by windows.
NAMES = ("linear_domain", "extended_range", "integer_log2", "linear_domain", "integer_log2")


def of_saved(saved: torch.Tensor, batch: int) -> list[str]:
    """By what `forward` saved: a name of NAMES for each of `batch` pairs. RuntimeError of a kernel that takes all alike."""
    return [NAMES[status] for status in ops.pair_statuses(saved, batch).view(torch.int32).tolist()]


def number_formats(x: torch.Tensor, y: torch.Tensor, gamma: float, kernel: str = "auto") -> dict[str, int]:
    """How many of the pairs of x (B, N, D) and y (B, M, D), on CUDA, each number format takes, if any: by name."""
    saved = ops.forward(x, y, *[None] * 5, -1, gamma, 0.0, "sqeuclidean", kernel, 0, True)[1]
    names = of_saved(saved, len(x))
    return {name: names.count(name) for name in dict.fromkeys(NAMES) if name in names}
