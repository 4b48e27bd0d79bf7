"""Thousands of pairs with a few columns, several to a warp: stencil keeps two or three chunks of their tables."""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_engines import Case as Batch
from test_engines import assert_value, bound_of, expected

from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = [OF_GPU, pytest.mark.always]
KERNEL = KernelCase(GPU, "stencil")
# In turn: the linear domain takes the first, in float32 integer log2 the second, and in float64 neither.
GAMMAS = (1.0, 0.003)
PAIRS = 6  # that differ


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("batch", "n", "m"),
    [*((4100, 20, m) for m in (1, 2, 5, 9, 10)), *((2052, 130, m) for m in (1, 2))],
    ids=lambda size: str(size),
)
def test_values_and_gradients(batch, n, m, dtype):
    x, y = normal(PAIRS, n, 1, seed=1).float(), normal(PAIRS, m, 1, seed=2).float()
    # A whole warp has one gamma, so that a chunk that is its last is not one of the other's.
    gammas = torch.tensor(GAMMAS, dtype=torch.float64).repeat_interleave(batch // 2)
    at = torch.arange(batch) % PAIRS
    results = run(KERNEL, x[at].to(dtype), y[at].to(dtype), gammas.to(GPU))
    assert set(statuses(x[at].to(dtype), y[at].to(dtype), gammas)) == {
        "linear_domain",
        "integer_log2" if dtype == torch.float32 else "extended_range",
    }
    for half, gamma in enumerate(GAMMAS):
        own = slice(half * (batch // 2), (half + 1) * (batch // 2))
        for b, pair in enumerate(expected(Batch(x, y, GAMMAS), gamma)):
            same = [result[own][at[own].numpy() == b] for result in results]
            assert all(np.array_equal(each, np.broadcast_to(each[0], each.shape)) for each in same)
            value, dx, dy = (each[0] for each in same)
            what = f"gamma {gamma:g}, pair {b}"
            assert_value(value, pair, gamma, dtype, what)
            slopes = oracle.cost_and_slopes(numpy64(x[b]), numpy64(y[b]), "sqeuclidean")[1:]
            for gradient, slope, axis in zip((dx, dy), slopes, (1, 0), strict=True):
                error = np.abs(gradient - (pair.alignment[:, :, None] * slope).sum(axis)).max()
                allowed = 4 * bound_of(pair, dtype) * np.abs(slope).max()
                assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"


def statuses(x, y, gammas):
    """The number format that has taken each pair."""
    options = (None, None, None, gammas.to(GPU), None, -1, 1.0, 0.0, "sqeuclidean", "stencil", 2, True)
    return of_saved(ops.forward(x.to(GPU), y.to(GPU), *options)[1], len(x))
