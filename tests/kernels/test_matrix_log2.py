"""Many pairs of ready-made costs in integer log2 (csrc/cuda/kernels/vector_log2/costs/matrix_group.cuh)."""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, assert_values_close, normal, run_from_cost
from test_ready_made_costs import LAYOUTS, SIZES
from test_vector_log2 import GIVEN_UP, TAKEN, of_batch, series

from torchsoftdtw import soft_dtw_from_cost
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = OF_GPU
KERNEL = KernelCase(GPU, "stencil")
# Of a pair so many lanes of a warp, or more, in batches of so many pairs.
BATCHES = {32: 1510, 16: 3100, 8: 6200} if GPU == "cuda" else {32: 5, 16: 7, 8: 13}


def costs_of(kind, some, n, m, seed=1):
    """(some, n, m): of pairs of series, or "signed": of either sign."""
    if kind == "signed":
        return normal(some, n, m, seed=seed).float()
    x, y = (series(kind, some, length, 1, seed + own) for own, length in ((0, n), (1, m)))
    return (x - y.transpose(1, 2)).square()


def statuses(costs, gamma=1.0, penalty=0.0, bandwidth=-1):
    """The number format that has taken each pair."""
    options = (*[None] * 5, bandwidth, gamma, penalty, KERNEL.name, 0, True)
    return of_saved(ops.forward_from_cost(costs.to(GPU), *options)[1], len(costs))


def check(costs, batch, gamma, lengths=None, layout="dense", **options):
    """Against the oracle, where the pairs come first and where they come last in the batch. What is outside a pair's
    lengths and band gets a gradient of 0."""
    some = len(costs)
    at = torch.arange(max(batch, some)) % some
    given = LAYOUTS[layout](costs[at])
    of_pairs = {name: torch.tensor(of)[at].to(GPU) for name, of in (lengths or {}).items()}
    of_pairs |= {name: torch.tensor(of)[at].to(GPU) if isinstance(of, list) else of for name, of in options.items()}
    of_each = torch.tensor(gamma, dtype=torch.float64)[at].to(GPU) if isinstance(gamma, list) else gamma
    values, gradients = run_from_cost(KERNEL, given, of_each, **of_pairs)
    for place in {*range(some), *range(len(at) - some, len(at))}:
        b = place % some
        own = {name: of[b] if isinstance(of, list) else of for name, of in options.items()}
        own_gamma = gamma[b] if isinstance(gamma, list) else gamma
        n, m = (lengths[f"{z}_lengths"][b] if lengths else size for z, size in zip("xy", costs.shape[1:], strict=True))
        table = costs[b, :n, :m].double().numpy()
        expected, alignment = oracle.value_and_alignment(
            table, own_gamma, own.get("bandwidth"), own.get("warp_penalty", 0.0)
        )
        assert_values_close(values[place], expected, torch.float32, own_gamma)
        assert np.abs(gradients[place, :n, :m] - alignment).max() <= 1e-4
        outside = gradients[place].copy()
        outside[:n, :m] = 0
        assert (outside == 0).all()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("lanes", BATCHES)
def test_sizes(lanes, sizes):
    check(costs_of("noise", 3, *sizes), BATCHES[lanes], 1.0)


@pytest.mark.parametrize("kind", ["noise", "walks", "sines", "steps", "signed"])
@pytest.mark.parametrize("gamma", [1.0, 0.1, 0.01])
def test_kinds(kind, gamma):
    for lanes, sizes in zip(BATCHES, ((130, 300), (140, 72), (132, 100)), strict=True):
        check(costs_of(kind, 3, *sizes), BATCHES[lanes], gamma)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lanes", BATCHES)
def test_layouts(lanes, layout):
    for sizes in ((70, 64), (66, 45)):
        check(costs_of("walks", 3, *sizes), BATCHES[lanes], 0.5, layout=layout)


@pytest.mark.parametrize("kind", ["noise", "signed"])
@pytest.mark.parametrize("penalty", [0.05, 2.0, 90.0])
def test_penalties(penalty, kind):
    for lanes, batch in BATCHES.items():
        check(costs_of(kind, 3, 2 * lanes + 3, 90), batch, 1.0, warp_penalty=penalty)


@pytest.mark.parametrize("sizes", [(1, 30), (33, 20), (90, 90), (100, 172), (170, 96)], ids=str)
@pytest.mark.parametrize("lanes", BATCHES)
def test_bands(lanes, sizes):
    costs = costs_of("walks", 3, *sizes)
    for radius, penalty in ((0, 0.0), (1, 0.2), (7, 0.0), (20, 0.1), (64, 0.0), (1000, 0.0), ([0, 3, 40], 0.0)):
        check(costs, BATCHES[lanes], 1.0, bandwidth=radius, warp_penalty=penalty)


@pytest.mark.parametrize("kind", ["noise", "walks", "signed"])
@pytest.mark.parametrize("lanes", BATCHES)
def test_gammas_lengths_and_bands_of_every_pair(lanes, kind):
    """Numbers beyond a pair's lengths are none."""
    generator = np.random.default_rng(lanes)
    some, sizes = 9, (90, 80)
    costs = costs_of(kind, some, *sizes)
    lengths = {
        f"{z}_lengths": [size, *generator.integers(1, size + 1, some - 1).tolist()]
        for z, size in zip("xy", sizes, strict=True)
    }
    for b, (n, m) in enumerate(zip(*lengths.values(), strict=True)):
        costs[b, n:], costs[b, :, m:] = np.nan, np.nan
    gammas = [1.0, 30.0, 0.1, 0.01, 1e-4, 1.0, 0.3, 1000.0, 1e-6]
    check(costs, BATCHES[lanes], gammas, lengths)
    check(costs, BATCHES[lanes], gammas, lengths, bandwidth=[0, 3, 17, 40, 100, 1, 8, 500, 25])


@pytest.mark.parametrize("kind", ["noise", "walks", "steps"])
def test_cells_that_e_does_not_come_to_are_0(kind):
    """Gradients are not cleared beforehand, and most chunks of such tables are left out."""
    ahead = np.abs(np.arange(340) / 340 - np.arange(300)[:, None] / 300)
    costs = costs_of(kind, 2, 300, 340) + torch.from_numpy(300 * ahead).float()
    for batch in BATCHES.values():
        if GPU == "cuda":
            torch.full((64 << 20,), torch.nan, device=GPU)  # what new memory holds then
        check(costs, min(batch, 400), 1.0)
        check(costs[:, :, :339], min(batch, 400), 0.1)


def test_what_is_taken():
    """All kinds; not costs of 2^15 gamma, nor values so small that rounding counts."""
    batch = BATCHES[32] + 1
    for kind in ("noise", "walks", "sines", "steps"):
        for gamma in (1.0, 0.1, 0.01):
            some = costs_of(kind, 5, 150, 140)
            value = soft_dtw_from_cost(some.double(), gamma, kernel="cpu")
            names = statuses(of_batch(some, batch), gamma)
            is_small = value.abs() < gamma * np.log(2) * 290 / 32
            for b in range(batch):
                assert names[b] == (GIVEN_UP if is_small[b % 5] else TAKEN), (kind, gamma, b, value[b % 5])
    assert set(statuses(of_batch(costs_of("walks", 5, 150, 140), batch) - 1e-4, 0.01, bandwidth=20)) == {TAKEN}
    costs = of_batch(costs_of("noise", 5, 150, 140), batch)
    assert set(statuses(-costs)) == set(statuses(costs, penalty=300.0)) == {TAKEN}
    assert set(statuses(costs, 1e-4)) == set(statuses(-costs, 1e-4)) == {GIVEN_UP}
    zeros = 0 * costs[:, :140]
    assert set(statuses(costs, penalty=1e5)) == set(statuses(zeros, bandwidth=0)) == {GIVEN_UP}


@pytest.mark.parametrize("deep", [-30000.0, 30000.0, -22000.0])
def test_costs_at_the_edge_of_the_range(deep):
    """In exponents of 2, of many cells in a row: m falls and rises by as much as it may in a chunk."""
    deep *= np.log(2)
    costs = costs_of("noise", 4, 120, 100)
    costs[0] = deep
    costs[1, :60] += deep
    costs[2, :, 40:44] += deep
    costs[3, 50:58, 40:48] += deep
    check(costs, BATCHES[16], 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e5, 4e4, -4e4])
@pytest.mark.parametrize("place", [(0, 0), (69, 49), (40, 21), (69, 0)])
def test_a_bad_number_spoils_its_pair_alone(place, bad):
    batch = max(BATCHES[8], 13)
    costs = of_batch(costs_of("noise", 5, 70, 50), batch)
    clean = run_from_cost(KERNEL, costs)
    costs[6, place[0], place[1]] = bad
    spoiled = run_from_cost(KERNEL, costs)
    others = np.arange(batch) != 6
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_allclose(after[others], before[others], rtol=2e-5, atol=1e-5)
    if abs(bad) < 1e10:  # in whose place float64 has the other costs, too
        check(costs[6:7], batch, 1.0)
    elif np.isfinite(bad):
        assert np.isfinite(spoiled[0][6]) and np.isfinite(spoiled[1][6]).all()
    elif np.isnan(bad):
        assert np.isnan(spoiled[0][6]) and np.isnan(spoiled[1][6]).all()


def test_values_alone_and_results_every_time():
    costs = of_batch(costs_of("walks", 9, 120, 100), BATCHES[8])
    (value, gradient), again = run_from_cost(KERNEL, costs, 0.5), run_from_cost(KERNEL, costs, 0.5)
    alone = soft_dtw_from_cost(costs.to(GPU), 0.5, kernel=KERNEL.name).cpu()
    np.testing.assert_array_equal(alone, value.astype(np.float32))
    assert np.array_equal(value, again[0]) and np.array_equal(gradient, again[1])
