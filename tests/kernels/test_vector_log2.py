"""Many pairs of two to eight dimensions, and long ones of one, in integer log2 (csrc/cuda/kernels/vector_log2)."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, run
from test_short_pair_options import assert_pair

from torchsoftdtw import soft_dtw
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = OF_GPU
KERNEL = KernelCase(GPU, "stencil/vector_log2")
COSTS = ["sqeuclidean", "euclidean", "cityblock", "huber"]
TAKEN, GIVEN_UP = "integer_log2", "extended_range"
# Of a pair so many lanes of a warp, or more, in batches of so many pairs.
BATCHES = {32: 2050, 16: 4096, 8: 8192, 4: 16384} if GPU == "cuda" else {32: 5, 16: 7, 8: 13, 4: 27}


def series(kind, batch, length, dim, seed):
    """(batch, length, dim), each of deviation 1."""
    steps = normal(batch, length, dim, seed=seed)
    if kind == "noise":
        return steps.float()
    if kind == "walks":
        wave = steps.cumsum(1)
    elif kind == "sines":
        at = torch.linspace(0, 9, length, dtype=torch.float64).view(1, -1, 1)
        wave = torch.sin(at * (1 + steps[:, :1].abs()) + steps[:, :1]) + 0.05 * steps
    else:
        wave = steps[:, torch.arange(length) // 17] + 0.05 * steps
    return ((wave - wave.mean(1, keepdim=True)) / (wave.std(1, keepdim=True, unbiased=False) + 1e-9)).float()


def of_batch(z, batch):
    """Pairs again and again, until there are so many."""
    return z[torch.arange(batch) % len(z)]


def statuses(x, y, cost="sqeuclidean", gamma=1.0, penalty=0.0, bandwidth=-1):
    """The number format that has taken each pair."""
    options = (*[None] * 5, bandwidth, gamma, penalty, cost, KERNEL.name, 0, True)
    return of_saved(ops.forward(x.to(GPU), y.to(GPU), *options)[1], len(x))


def assert_pairs(results, x, y, cost, gamma, penalty=0.0, lengths=None, radius=None):
    """Where they come first and where they come last, against the oracle: beside others in its warp a pair may be swept
    with more care, and rounded otherwise."""
    some, batch = len(x), len(results[0])
    for place in {*range(some), *range(max(batch - some, some), batch)}:
        b = place % some
        n, m = (x.shape[1], y.shape[1]) if lengths is None else (length[b] for length in lengths)
        value, dx, dy = (result[place] for result in results)
        own = gamma[b] if isinstance(gamma, list) else gamma
        what = f"pair {b}, {n} x {m}, {cost}, gamma {own:g}, penalty {penalty:g}"
        of_pair = radius[b] if isinstance(radius, list) else radius
        what += "" if of_pair is None else f", radius {of_pair}"
        assert_pair((value, dx[:n], dy[:m]), x[b, :n], y[b, :m], cost, own, penalty, what, of_pair)
        assert np.all(dx[n:] == 0) and np.all(dy[m:] == 0), what


# Lengths of less than a lane, of a part of a strip, of several strips.
@pytest.mark.parametrize("sizes", [(1, 1), (1, 30), (30, 1), (33, 20), (70, 90), (150, 40)], ids=str)
@pytest.mark.parametrize("lanes", BATCHES)
@pytest.mark.parametrize("dim", [2, 3, 4, 5, 8])
def test_values_and_gradients_of_noise(dim, lanes, sizes):
    x, y = (series("noise", 3, length, dim, seed) for length, seed in zip(sizes, (1, 2), strict=True))
    batch = BATCHES[lanes]
    assert set(statuses(x.repeat(2, 1, 1), y.repeat(2, 1, 1))) == {TAKEN} if GPU != "cuda" else True
    assert_pairs(run(KERNEL, of_batch(x, batch), of_batch(y, batch), 1.0), x, y, "sqeuclidean", 1.0)


@pytest.mark.parametrize("kind", ["noise", "walks", "sines", "steps"])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("dim", "lanes"), [(2, 8), (3, 4), (4, 16), (7, 8)])
def test_costs_and_kinds(cost, kind, dim, lanes):
    x, y = series(kind, 3, 130, dim, 3), series(kind, 3, 141, dim, 4)
    batch = BATCHES[lanes]
    for gamma, penalty in ((1.0, 0.0), (0.1, 0.3)):
        results = run(KERNEL, of_batch(x, batch), of_batch(y, batch), gamma, cost=cost, warp_penalty=penalty)
        assert_pairs(results, x, y, cost, gamma, penalty)


@pytest.mark.parametrize("lanes", [32, 16, 8])
def test_tables_of_which_backward_leaves_most_out(lanes):
    x, y = series("noise", 2, 251, 4, 5), series("noise", 2, 256, 4, 6)
    batch = BATCHES[lanes]
    results = run(KERNEL, of_batch(x, batch), of_batch(y, batch), 1.0)
    assert_pairs(results, x, y, "sqeuclidean", 1.0)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("lanes", BATCHES)
def test_gammas_and_lengths_of_every_pair(lanes, cost):
    """What is given up among others, and pairs of other lengths in a warp."""
    generator = np.random.default_rng(lanes)
    some, n, m, dim = 9, 90, 80, 3
    x, y = series("noise", some, n, dim, 7), series("walks", some, m, dim, 8)
    lengths = [generator.integers(1, size + 1, some).tolist() for size in (n, m)]
    lengths[0][0], lengths[1][0] = n, m
    gammas = [1.0, 30.0, 0.1, 0.01, 1e-4, 1.0, 0.3, 1000.0, 1e-6]
    spoiled = x.clone(), y.clone()
    for z, of_pairs in zip(spoiled, lengths, strict=True):
        for b, length in enumerate(of_pairs):
            z[b, length:] = np.nan
    batch = max(BATCHES[lanes], some)
    at = torch.arange(batch) % some
    options = {f"{z}_lengths": torch.tensor(of_pairs)[at] for z, of_pairs in zip("xy", lengths, strict=True)}
    of_pairs = torch.tensor(gammas, dtype=torch.float64)[at].to(GPU)
    results = run(KERNEL, spoiled[0][at], spoiled[1][at], of_pairs, cost=cost, **options)
    assert_pairs(results, x, y, cost, gammas, lengths=lengths)


def test_ranges():
    """Given up are pairs of costs or penalties beyond 2^16 gamma, and of values so small that rounding counts."""
    x, y = series("noise", 6, 200, 4, 1), series("noise", 6, 200, 4, 2)
    many = [of_batch(z, BATCHES[32] + 1) for z in (x, y)]
    for gamma, taken in ((1.0, TAKEN), (0.1, TAKEN), (0.01, TAKEN), (0.002, TAKEN), (1e-4, GIVEN_UP)):
        assert set(statuses(*many, gamma=gamma)) == {taken}, gamma
    assert set(statuses(*many, penalty=300.0)) == {TAKEN} and set(statuses(*many, penalty=1e5)) == {GIVEN_UP}
    for gamma in np.geomspace(1, 10, 40):  # values of both signs, and some near 0
        names = statuses(*many, gamma=gamma)
        value = soft_dtw(x.double(), y.double(), gamma, kernel="cpu")
        is_small = value.abs() < gamma * np.log(2) * 400 / 32
        for b in range(6):
            assert names[b] == (GIVEN_UP if is_small[b] else TAKEN), (gamma, b, value[b])


@pytest.mark.parametrize("penalty", [0.05, 2.0, 90.0])
@pytest.mark.parametrize("cost", COSTS)
def test_penalties(cost, penalty):
    x, y = series("walks", 5, 60, 3, 1), series("walks", 5, 50, 3, 2)
    batch = BATCHES[16]
    results = run(KERNEL, of_batch(x, batch), of_batch(y, batch), 1.0, cost=cost, warp_penalty=penalty)
    assert_pairs(results, x, y, cost, 1.0, penalty)


@pytest.mark.parametrize("sizes", [(1, 30), (33, 20), (90, 90), (200, 170), (260, 300)], ids=str)
@pytest.mark.parametrize("lanes", BATCHES)
@pytest.mark.parametrize(("dim", "cost"), [(2, "sqeuclidean"), (3, "euclidean"), (4, "cityblock"), (8, "huber")])
def test_bands(dim, cost, lanes, sizes):
    """Of every width: on and beyond the edges of strips, chunks and lanes."""
    x, y = (series("walks", 3, length, dim, seed) for length, seed in zip(sizes, (1, 2), strict=True))
    batch = BATCHES[lanes]
    given = [of_batch(z, batch) for z in (x, y)]
    for radius, penalty in ((0, 0.0), (1, 0.2), (7, 0.0), (20, 0.1), (64, 0.0), (1000, 0.0)):
        results = run(KERNEL, *given, 1.0, cost=cost, bandwidth=radius, warp_penalty=penalty)
        assert_pairs(results, x, y, cost, 1.0, penalty, radius=radius)
        alone = soft_dtw(
            *(z.to(GPU) for z in given), 1.0, cost=cost, bandwidth=radius, warp_penalty=penalty, kernel=KERNEL.name
        )
        np.testing.assert_array_equal(alone.cpu().double(), results[0])


@pytest.mark.parametrize("lanes", BATCHES)
def test_bands_and_lengths_of_every_pair(lanes):
    generator = np.random.default_rng(lanes)
    some, n, m, dim = 9, 190, 180, 3
    x, y = series("noise", some, n, dim, 7), series("sines", some, m, dim, 8)
    lengths = [generator.integers(1, size + 1, some).tolist() for size in (n, m)]
    lengths[0][0], lengths[1][0] = n, m
    radii, gammas = [0, 3, 17, 40, 100, 1, 8, 500, 25], [1.0, 30.0, 0.1, 0.01, 1e-5, 1.0, 0.3, 1000.0, 0.03]
    batch = max(BATCHES[lanes], some)
    at = torch.arange(batch) % some
    options = {f"{z}_lengths": torch.tensor(of_pairs)[at] for z, of_pairs in zip("xy", lengths, strict=True)}
    of_pairs = torch.tensor(gammas, dtype=torch.float64)[at].to(GPU)
    results = run(KERNEL, x[at], y[at], of_pairs, bandwidth=torch.tensor(radii)[at].to(GPU), **options)
    assert_pairs(results, x, y, "sqeuclidean", gammas, lengths=lengths, radius=radii)


def test_bands_are_taken():
    x, y = (of_batch(series("walks", 5, 150, 3, seed), BATCHES[32]) for seed in (1, 2))
    for radius in (0, 5, 30):
        for gamma in (1.0, 0.01):
            assert set(statuses(x, y, gamma=gamma, bandwidth=radius)) == {TAKEN}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e5, 300.0])
@pytest.mark.parametrize("cost", COSTS)
def test_a_bad_number_spoils_its_pair_alone(cost, bad):
    batch = max(BATCHES[8], 13)
    x, y = (of_batch(series("noise", 5, 70, 3, seed), batch) for seed in (1, 2))
    clean = run(KERNEL, x, y, 1.0, cost=cost)
    for side in (x, y):
        spoilt = side.clone()
        spoilt[6, 40, 1] = bad
        given = (spoilt, y) if side is x else (x, spoilt)
        spoiled = run(KERNEL, *given, 1.0, cost=cost)
        others = np.arange(batch) != 6
        for before, after in zip(clean, spoiled, strict=True):
            np.testing.assert_allclose(after[others], before[others], rtol=2e-5, atol=1e-5)
        if np.isfinite(bad):
            assert_pair([result[6] for result in spoiled], given[0][6], given[1][6], cost, 1.0, 0.0, f"{bad}")
        else:
            assert not np.isfinite(spoiled[0][6])


def test_far_from_the_origin():
    """Differences are what counts, wherever they are."""
    x, y = (1000 + series("noise", 3, 70, 4, seed) for seed in (1, 2))
    batch = BATCHES[16]
    assert_pairs(run(KERNEL, of_batch(x, batch), of_batch(y, batch), 1.0), x, y, "sqeuclidean", 1.0)


def test_equal_series():
    x = series("noise", 2, 80, 3, 1)
    batch = BATCHES[8]
    for cost in COSTS:
        assert_pairs(run(KERNEL, of_batch(x, batch), of_batch(x, batch), 1.0, cost=cost), x, x, cost, 1.0)


def test_values_alone_and_one_gradient_alone():
    batch = BATCHES[8]
    x, y = (of_batch(series("noise", 4, 90, 3, seed), batch) for seed in (1, 2))
    value, dx, dy = run(KERNEL, x, y, 1.0)
    np.testing.assert_array_equal(soft_dtw(x.to(GPU), y.to(GPU), 1.0, kernel=KERNEL.name).cpu(), value.astype(np.float32))
    for needs in ((True, False), (False, True)):
        own = [z.to(GPU).requires_grad_(need) for z, need in zip((x, y), needs, strict=True)]
        wanted = [z for z in own if z.requires_grad]
        found = torch.autograd.grad(soft_dtw(*own, 1.0, kernel=KERNEL.name).sum(), wanted)[0]
        np.testing.assert_array_equal(found.cpu().double(), dx if needs[0] else dy)


def test_results_are_the_same_every_time():
    batch = BATCHES[8]
    x, y = (of_batch(series("walks", 9, 120, 3, seed), batch) for seed in (1, 2))
    for first, second in zip(run(KERNEL, x, y, 0.5), run(KERNEL, x, y, 0.5), strict=True):
        assert np.array_equal(first, second)


@pytest.mark.parametrize("kind", ["noise", "walks", "steps"])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("sizes", [(520, 30), (100, 1420), (700, 90), (513, 520)], ids=str)
def test_long_pairs_of_one_dimension(sizes, cost, kind):
    """Which are too long for the kernels of short pairs: by the bounds of docs/gamma.md, against the CPU in float64."""
    x, y = (series(kind, 3, length, 1, seed) for length, seed in zip(sizes, (5, 6), strict=True))
    batch = 1025 if GPU == "cuda" else 9
    half = {f"{z}_lengths": torch.tensor([size - 7, size, size // 2 + 1]) for z, size in zip("xy", sizes, strict=True)}
    for gamma, penalty, lengths in ((1.0, 0.0, {}), (0.1, 0.3, {}), (0.01, 0.0, {}), (0.3, 0.0, half)):
        options = {"warp_penalty": penalty, "cost": cost}
        assert TAKEN in statuses(of_batch(x, batch), of_batch(y, batch), cost, gamma, penalty)
        of_all = {key: of_batch(own, batch).to(GPU) for key, own in lengths.items()}
        results = run(KERNEL, of_batch(x, batch), of_batch(y, batch), gamma, **options, **of_all)
        value, *gradients = run(KernelCase("cpu", "cpu"), x.double(), y.double(), gamma, **options, **lengths)
        allowed = 1e-5 * np.maximum(np.abs(value), gamma) + 1.5e-7 * gamma * sum(sizes)
        for place in {0, 1, 2, batch - 1}:
            b = place % 3
            assert np.abs(results[0][place] - value[b]) <= allowed[b], (gamma, b, results[0][place], value[b])
            for actual, expected in zip(results[1:], gradients, strict=True):
                error = np.abs(actual[place] - expected[b]).max() / np.abs(expected[b]).max()
                assert error <= 1e-4, (gamma, b, error)
