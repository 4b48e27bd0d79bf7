"""Large batches, whose pairs go to number formats by foresight and by lists (csrc/cuda/kernels/linear_domain)."""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_engines import Expected, assert_value, bound_of

from torchsoftdtw import select_kernel
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import number_formats, of_saved

pytestmark = OF_GPU
KERNEL = KernelCase(GPU, "stencil")
# So many pairs have lists on a GPU; on the emulated one, fewer do, which has to be quick.
BATCH = 2100 if GPU == "cuda" else 12
N, M, GAMMA = 390, 380, 0.3
KINDS = ("noise", "walk", "wide_walk", "still", "spike", "far")


def series(kind, length, seed):
    noise = normal(1, length, 1, seed=seed)[0]
    walk = noise.cumsum(0) / 100
    return {
        "noise": 2 * noise,  # beyond the linear domain's range
        "walk": walk,  # within
        "wide_walk": 80 * walk,  # far beyond
        "still": 0.01 * walk + 3,  # a value near 0 beside the number of steps
        "spike": torch.where(
            torch.arange(length)[:, None] == 8, 14.0, 0.01 * walk
        ),  # that every eighth sample does not show
        "far": 1e3 + walk,
    }[kind]


def pairs():
    """x, y and the kind of each of BATCH pairs, in no order."""
    kinds = [KINDS[i * 7 % len(KINDS)] for i in range(BATCH)]
    of_kind = {kind: [series(kind, length, seed) for length, seed in ((N, 1), (M, 2))] for kind in KINDS}
    return (*(torch.stack([of_kind[kind][side] for kind in kinds]).float() for side in range(2)), kinds)


def test_values_and_gradients_of_all_kinds_together():
    x, y, kinds = pairs()
    value, dx, dy = run(KERNEL, x, y, GAMMA)
    for kind in KINDS:
        places = [b for b, each in enumerate(kinds) if each == kind]
        first = places[0]
        costs, *slopes = oracle.cost_and_slopes(numpy64(x[first]), numpy64(y[first]), "sqeuclidean")
        expected, alignment = oracle.value_and_alignment(costs, GAMMA)
        rounded = oracle.value_and_alignment(costs.astype(np.float32).astype(np.float64), GAMMA)[1]
        magnitude = (abs(expected) + costs.max()) / GAMMA
        pair = Expected(N, M, costs, expected, alignment, magnitude, np.abs(rounded - alignment).max())
        assert_value(value[first], pair, GAMMA, torch.float32, kind)
        for actual, slope, axis in zip((dx, dy), slopes, (1, 0), strict=True):
            error = np.abs(actual[first] - (alignment[:, :, None] * slope).sum(axis)).max()
            allowed = 4 * bound_of(pair, torch.float32) * max(np.abs(slope).max(), 1e-6)
            assert error <= allowed, f"{kind}: a gradient is off by {error:.3g}, more than {allowed:.3g}"
        for result in (value, dx, dy):
            assert np.array_equal(result[places], np.broadcast_to(result[first], result[places].shape)), kind


def test_who_takes_what():
    x, y, kinds = pairs()
    saved = ops.forward(x.to(GPU), y.to(GPU), *[None] * 5, -1, GAMMA, 0.0, "sqeuclidean", "stencil", 0, True)[1]
    taken = dict(zip(kinds, of_saved(saved, BATCH), strict=True))
    within, beyond = (
        {"walk": "linear_domain", "still": "linear_domain"},
        {"noise": "integer_log2", "wide_walk": "integer_log2"},
    )
    assert {kind: taken[kind] for kind in (*within, *beyond)} == within | beyond
    counts = number_formats(x.to(GPU), y.to(GPU), GAMMA, "stencil")
    assert sum(counts.values()) == BATCH and counts["linear_domain"] >= 2 * (BATCH // len(KINDS))


def test_results_are_the_same_every_time():
    x, y, _ = pairs()
    for first, second in zip(run(KERNEL, x, y, GAMMA), run(KERNEL, x, y, GAMMA), strict=True):
        assert np.array_equal(first, second)


def test_a_batch_of_one_kind_alone():
    """So that lists are empty, or have every pair."""
    for kind in KINDS[:4]:
        x, y = (series(kind, length, seed).float().expand(BATCH, -1, -1) for length, seed in ((N, 1), (M, 2)))
        value, dx, _ = run(KERNEL, x, y, GAMMA)
        costs = oracle.cost_and_slopes(numpy64(x[0]), numpy64(y[0]), "sqeuclidean")[0]
        expected = oracle.value_and_alignment(costs, GAMMA)[0]
        assert np.abs(value - expected).max() <= 1e-5 * max(abs(expected), GAMMA) + 1.5e-7 * GAMMA * (N + M), kind
        assert np.array_equal(dx, np.broadcast_to(dx[0], dx.shape)), kind


def test_invalid_lengths_and_nan_beside_others():
    x, y, _ = pairs()
    x[3] = np.nan
    lengths = torch.full((BATCH,), N)
    lengths[5] = 1
    value, dx, _ = run(KERNEL, x, y, GAMMA, x_lengths=lengths)
    plain, plain_dx, _ = run(KERNEL, *pairs()[:2], GAMMA)
    others = np.setdiff1d(np.arange(BATCH), (3, 5))
    assert np.isnan(value[3]) and np.isnan(dx[3]).any() and np.all(dx[5, 1:] == 0)
    assert np.array_equal(value[others], plain[others]) and np.array_equal(dx[others], plain_dx[others])


def test_pair_statuses_of_what_has_none():
    x, y = normal(2, 20, 1).float(), normal(2, 20, 1, seed=2).float()
    saved = ops.forward(x.to(GPU), y.to(GPU), *[None] * 5, -1, 1.0, 0.0, "sqeuclidean", "tiled", 0, True)[1]
    with pytest.raises(RuntimeError, match="saved: expected what a number format saved"):
        ops.pair_statuses(saved, 2)


def test_the_large_batch_is_of_stencil():
    assert select_kernel(N, M, batch=2100, specialization=True) == "stencil/linear_domain"


@pytest.mark.parametrize("batch", [1, BATCH])
def test_a_level_far_from_the_middle_adds_up_no_rounding(batch):
    """Two levels with a spike each: costs and entropy nearly cancel, and every step rounds alike."""
    x, y = (torch.full((512, 1), level) for level in (-0.97, -0.633))
    x[250:256] += 6.5
    y[270:276] += 6.5
    value = run(KERNEL, x.expand(batch, -1, -1), y.expand(batch, -1, -1), 0.1)[0]
    costs = oracle.cost_and_slopes(numpy64(x), numpy64(y), "sqeuclidean")[0]
    expected = oracle.value_and_alignment(costs, 0.1)[0]
    assert np.abs(value - expected).max() <= 1e-5 * max(abs(expected), 0.1) + 1.5e-7 * 0.1 * 1024
