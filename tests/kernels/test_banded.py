"""The ring of lanes that has a pair's band (kernels/banded): every ring, up to its width, and what it gives up."""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_engines import Case, assert_value, bound_of, expected

from torchsoftdtw import select_kernel, soft_dtw
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = OF_GPU
KERNEL = KernelCase(GPU, "stencil/banded")
TAKEN, DEEP, GIVEN_UP = "linear_domain", "integer_log2", "extended_range"


def series(kind, batch, length, seed):
    """(batch, length, 1), all numbers of which are float32."""
    steps = normal(batch, length, 1, seed=seed)
    if kind == "noise":
        return steps.float().double()
    if kind == "walks":
        wave = steps.cumsum(1)
    elif kind == "sines":
        at = torch.linspace(0, 6, length, dtype=torch.float64).view(1, -1, 1)
        wave = torch.sin(at * (1 + steps[:, :1].abs()) + steps[:, :1]) + 0.05 * steps
    else:
        wave = steps[:, torch.arange(length) // 17] + 0.05 * steps
    return ((wave - wave.mean(1, keepdim=True)) / (wave.std(1, keepdim=True, unbiased=False) + 1e-9)).float().double()


def assert_close(results, case, gammas, what=""):
    """results: value, dx, dy of all pairs, or of as many as the case has."""
    value, *gradients = results
    for b in range(len(case.x)):
        options = {key: option[b : b + 1] if isinstance(option, list) else option for key, option in case.options.items()}
        n, m = (options.pop(key, [z.shape[1]])[0] for key, z in (("x_lengths", case.x), ("y_lengths", case.y)))
        own = Case(case.x[b : b + 1, :n], case.y[b : b + 1, :m], (gammas[b],), options)
        pair = expected(own, gammas[b])[0]
        where = f"{what} pair {b}, {n} x {m}, gamma {gammas[b]:g}, {options}"
        assert_value(value[b], pair, gammas[b], torch.float32, where)
        cost = options.get("cost", "sqeuclidean")
        slopes = oracle.cost_and_slopes(numpy64(own.x[0]), numpy64(own.y[0]), cost)[1:]
        for gradient, slope, axis, length in zip(gradients, slopes, (1, 0), (n, m), strict=True):
            error = np.abs(gradient[b, :length] - (pair.alignment[:, :, None] * slope).sum(axis)).max()
            allowed = 4 * bound_of(pair, torch.float32) * max(np.abs(slope).max(), 1e-6)
            assert error <= allowed, f"{where}: a gradient is off by {error:.3g}, more than {allowed:.3g}"
            assert np.all(gradient[b, length:] == 0), where


def statuses(x, y, gammas, bandwidth, x_lengths=None, y_lengths=None, warp_penalty=0.0, cost="sqeuclidean"):
    """The number format that has taken each pair."""
    lengths = [None if z is None else torch.tensor(z).to(GPU) for z in (x_lengths, y_lengths)]
    own = torch.tensor(bandwidth).to(GPU) if isinstance(bandwidth, list) else None
    radius = -1 if own is not None else bandwidth
    gammas = torch.tensor(gammas, dtype=torch.float64).to(GPU)
    options = (*lengths, own, gammas, None, radius, 1.0, warp_penalty, cost, KERNEL.name, 0, True)
    saved = ops.forward(x.float().to(GPU), y.float().to(GPU), *options)[1]
    return of_saved(saved, len(x))


# Of 4 to 32 lanes, each with 4, 6 and 8 rows a lane: up to so many columns of a row. Few pairs have 4 rows a lane
# where those are enough.
WIDEST = (15, 21, 27, 35, 49, 63, 75, 105, 135, 155, 217, 279)


@pytest.mark.parametrize("gamma", [1.0, 0.002])  # of the smaller one all but values near 0 are integer log2's
@pytest.mark.parametrize("kind", ["noise", "walks", "sines", "steps"])
@pytest.mark.parametrize("width", WIDEST)
def test_every_ring_up_to_its_width(width, kind, gamma):
    # On a GPU so many pairs that they have the ring that suits the width (test_emulation has all rings).
    radius, batch, times = (width - 1) // 2, 3 if width > 63 else 9, 700 if GPU == "cuda" else 1
    for n, m, own in (
        (radius + 21, radius + 21, radius),
        (41, 41 + radius, radius // 2),
        (40 + radius // 3, 40, radius // 3),
    ):
        assert 2 * own + 1 + abs(n - m) <= width
        x, y = series(kind, batch, n, 1), series(kind, batch, m, 2)
        many = [z.float().repeat(times, 1, 1) for z in (x, y)]
        results = run(KERNEL, *many, gamma, bandwidth=own)
        first = [result[:batch] for result in results]
        for result, of_pairs in zip(results, first, strict=True):
            again = result.reshape(times, *of_pairs.shape)
            assert np.array_equal(again, np.broadcast_to(of_pairs, again.shape)), "a pair's numbers depend on its place"
        assert_close(first, Case(x, y, (), {"bandwidth": own}), [gamma] * batch)
        if gamma < 1:
            taken = statuses(x, y, [gamma] * batch, own)
            assert taken.count(DEEP) >= batch - 2, taken
        alone = numpy64(soft_dtw(*(z.to(GPU) for z in many), gamma, kernel=KERNEL.name, bandwidth=own))
        np.testing.assert_array_equal(alone, results[0])


@pytest.mark.parametrize("gamma", [1.0, 0.05])
@pytest.mark.parametrize(
    "options",
    [{"warp_penalty": 0.7}, {"cost": "cityblock"}, {"cost": "euclidean", "warp_penalty": 0.2}, {"cost": "huber"}],
    ids=str,
)
@pytest.mark.parametrize("width", [15, 49, 105, 279])
def test_other_costs_and_penalties(width, options, gamma):
    radius, batch = (width - 1) // 2, 5
    for kind, n, m in (
        ("noise", radius + 21, radius + 21),
        ("walks", 61, 61 + radius // 2),
        ("sines", 60 + radius, 60 + radius - radius // 3),
    ):
        own = radius - abs(n - m)
        x, y = series(kind, batch, n, 1), series(kind, batch, m, 2)
        assert DEEP in statuses(x, y, [gamma] * batch, own, **options)
        results = run(KERNEL, x.float(), y.float(), gamma, bandwidth=own, **options)
        assert_close(results, Case(x, y, (), {"bandwidth": own, **options}), [gamma] * batch)


def test_a_penalty_of_every_pair():
    batch, n, penalties = 7, 50, [0.0, 0.1, 1.0, 3.7, 100.0, 1e5, 1e8]
    x, y = series("walks", batch, n, 13), series("walks", batch, n, 14)
    results = run(KERNEL, x.float(), y.float(), 0.1, bandwidth=6, warp_penalty=torch.tensor(penalties).to(GPU))
    assert_close(results, Case(x, y, (), {"bandwidth": 6, "warp_penalty": penalties}), [0.1] * batch)


@pytest.mark.parametrize("gamma", [1.0, 0.01])
def test_series_longer_than_the_linear_domain_takes(gamma):
    batch, n, m, radius = 3, 800, 790, 13
    for kind in ("noise", "walks"):
        x, y = series(kind, batch, n, 15), series(kind, batch, m, 16)
        assert DEEP in statuses(x, y, [gamma] * batch, radius)
        results = run(KERNEL, x.float(), y.float(), gamma, bandwidth=radius)
        assert_close(results, Case(x, y, (), {"bandwidth": radius}), [gamma] * batch)


@pytest.mark.parametrize("radius", [0, 1, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 33])
def test_short_series(n, radius):
    for m in {n, n + 3, max(1, n - 2)}:
        if radius >= max(n, m):  # no band
            continue
        x, y = series("noise", 5, n, 3), series("noise", 5, m, 4)
        assert statuses(x, y, [1.0] * 5, radius) == [TAKEN] * 5
        assert_close(
            run(KERNEL, x.float(), y.float(), 1.0, bandwidth=radius), Case(x, y, (), {"bandwidth": radius}), [1.0] * 5
        )


@pytest.mark.parametrize("kind", ["noise", "walks"])
def test_gammas_lengths_and_radii_of_every_pair(kind):
    """Some pairs' costs leave the range, and some pairs' bands are wider than the ring."""
    batch, n, m = 24, 90, 80
    generator = np.random.default_rng(5)
    x, y = series(kind, batch, n, 5), series(kind, batch, m, 6)
    lengths = [generator.integers(1, size + 1, batch).tolist() for size in (n, m)]
    gammas = generator.choice([1.0, 30.0, 0.1, 0.01, 1e-4], batch).tolist()
    for radius in (generator.integers(0, 40, batch).tolist(), 6):
        options = {"bandwidth": radius, "x_lengths": lengths[0], "y_lengths": lengths[1]}
        spoiled = x.float(), y.float()
        for z, of_pairs in zip(spoiled, lengths, strict=True):
            for b, length in enumerate(of_pairs):
                z[b, length:] = np.nan
        results = run(KERNEL, *spoiled, torch.tensor(gammas, dtype=torch.float64).to(GPU), **options)
        taken = statuses(*spoiled, gammas, radius, *lengths)
        assert set(taken) == {TAKEN, DEEP, GIVEN_UP}
        assert_close(results, Case(x, y, (), options), gammas)


def test_a_short_pair_waits_for_longer_ones_of_its_warp():
    """Its band goes on behind its last column, where nothing has been kept."""
    batch, n, radius, gamma = 12, 60, 15, 0.01
    x, y = series("walks", batch, n, 17), series("walks", batch, n, 18)
    lengths = [20, 60, 25, 59, 31, 44] * 2
    options = {"bandwidth": radius, "x_lengths": lengths, "y_lengths": lengths}
    taken = statuses(x, y, [gamma] * batch, radius, lengths, lengths)
    assert taken.count(DEEP) > batch // 2
    assert_close(run(KERNEL, x.float(), y.float(), gamma, **options), Case(x, y, (), options), [gamma] * batch)


def test_costs_that_leave_the_range_are_given_up():
    x, y = series("noise", 7, 90, 7), series("noise", 7, 90, 8)
    gammas = [1.0, 1e-3, 1.0, 0.01, 1.0, 1.0, 1.0]
    x[2, 40] = 12.0  # one cost that only a wide weight holds
    x[4, 40] = 1e2
    x[5], y[5] = x[5] + 1e4, y[5] + 1e4
    x[6, 40] = 1e3
    x = x.float().double()
    assert statuses(x, y, gammas, 10) == [TAKEN, DEEP, TAKEN, DEEP, DEEP, TAKEN, GIVEN_UP]
    results = run(KERNEL, x.float(), y.float(), torch.tensor(gammas, dtype=torch.float64).to(GPU), bandwidth=10)
    assert_close(results, Case(x, y.float().double(), (), {"bandwidth": 10}), gammas)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_spoils_its_pair_alone(bad):
    x, y = series("noise", 21, 50, 9).float(), series("noise", 21, 50, 10).float()
    clean = run(KERNEL, x, y, 1.0, bandwidth=5)
    x[13, 30] = bad
    spoiled = run(KERNEL, x, y, 1.0, bandwidth=5)
    others = np.arange(len(x)) != 13
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
        assert not np.isfinite(after[13]).all()


def test_paths_that_follow_the_edge_of_a_band():
    """Costs are 0 on the band's edge and beyond it: one cell too many or too few changes the value."""
    n = 70
    for radius in (2, 7, 13, 17, 25):
        wave = np.random.default_rng(radius).uniform(0.2, 0.8, n + radius).cumsum()
        wave = torch.from_numpy(np.float32(2 * np.sin(wave)).astype(float)).view(1, -1, 1)
        x, y = wave[:, radius:].expand(3, -1, -1), wave[:, :n].expand(3, -1, -1)
        for own in (radius, radius - 1, radius + 1):
            for pair in ((x, y), (y, x)):
                results = run(KERNEL, *(z.float() for z in pair), 1.0, bandwidth=own)
                assert_close(results, Case(*pair, (), {"bandwidth": own}), [1.0] * 3)


def test_gradients_that_nobody_asked_for_and_any_strides():
    x, y = series("noise", 11, 40, 11).float().to(GPU), series("noise", 11, 40, 12).float().to(GPU)
    whole = run(KERNEL, x, y, 1.0, bandwidth=4)
    again = run(KERNEL, x, y, 1.0, bandwidth=4)
    for before, after in zip(whole, again, strict=True):
        np.testing.assert_array_equal(before, after)
    for i, wanted in enumerate((x, y)):
        wanted.requires_grad_()
        (gradient,) = torch.autograd.grad(soft_dtw(x, y, 1.0, kernel=KERNEL.name, bandwidth=4).sum(), wanted)
        np.testing.assert_array_equal(numpy64(gradient), whole[1 + i])
        wanted.requires_grad_(False)
    for strided in (x.transpose(0, 1).contiguous().transpose(0, 1), x.repeat(1, 1, 2)[:, :, 1:]):
        assert strided.stride(1) != 1
        np.testing.assert_array_equal(numpy64(soft_dtw(strided, y, 1.0, kernel=KERNEL.name, bandwidth=4)), whole[0])


def test_bands_of_many_short_series_have_rings():
    for n, radius in ((96, 4), (512, 25), (512, 51), (512, 139), (740, 100), (800, 9), (2048, 100)):
        assert select_kernel(n, batch=5000, bandwidth=radius, specialization=True) == "stencil/banded"
    for n, m, options in ((740, 740, {"bandwidth": 140}), (2049, 2048, {"bandwidth": 9}), (600, 300, {"bandwidth": 0})):
        assert select_kernel(n, m, batch=5000, specialization=True, **options) == "stencil/extended_range"
    for options in ({"warp_penalty": 0.1}, {"cost": "euclidean"}, {"cost": "huber"}):
        assert select_kernel(96, batch=5000, bandwidth=4, specialization=True, **options) == "stencil/banded"
    options = {"bandwidth": 4, "dtype": torch.float64, "specialization": True}
    assert select_kernel(96, batch=5000, **options) == "stencil/extended_range"
