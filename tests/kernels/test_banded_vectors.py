"""Rings of lanes that have the band of a pair of several dimensions (kernels/banded/log2), as in test_banded of one."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, normal, numpy64, run
from test_banded import DEEP, GIVEN_UP, KERNEL, assert_close, statuses
from test_engines import Case

from torchsoftdtw import select_kernel, soft_dtw

pytestmark = OF_GPU
TIMES = 300 if GPU == "cuda" else 1  # on a GPU so many pairs that they have the ring that suits the width


def series(kind, batch, length, dim, seed):
    """(batch, length, dim), all numbers of which are float32."""
    steps = normal(batch, length, dim, seed=seed)
    if kind == "walks":
        steps = steps.cumsum(1)
        steps = (steps - steps.mean(1, keepdim=True)) / (steps.std(1, keepdim=True, unbiased=False) + 1e-9)
    elif kind == "steps":
        steps = steps[:, torch.arange(length) // 17] + 0.05 * steps
    return steps.float().double()


def check(x, y, gamma, **options):
    """Of the first pairs of many that are the same: each, and that all are alike, and as they are where nothing is kept."""
    many = [z.float().repeat(TIMES, 1, 1) for z in (x, y)]
    results = run(KERNEL, *many, gamma, **options)
    first = [result[: len(x)] for result in results]
    for result, own in zip(results, first, strict=True):
        again = result.reshape(TIMES, *own.shape)
        assert np.array_equal(again, np.broadcast_to(own, again.shape)), "a pair's numbers depend on its place"
    assert_close(first, Case(x, y, (), options), [gamma] * len(x))
    alone = numpy64(soft_dtw(*(z.to(GPU) for z in many), gamma, kernel=KERNEL.name, **options))
    np.testing.assert_array_equal(alone, results[0])


@pytest.mark.parametrize("gamma", [1.0, 0.05])
@pytest.mark.parametrize("kind", ["noise", "walks", "steps"])
@pytest.mark.parametrize(
    ("width", "dim"),
    [(15, 3), (21, 4), (27, 2), (35, 2), (49, 3), (63, 4), (105, 4), (135, 3), (155, 4), (217, 2), (279, 3)],
)
def test_rings_up_to_their_width(width, dim, kind, gamma):
    radius, batch = (width - 1) // 2, 2 if width > 63 else 5
    for n, m, own in (
        (radius + 21, radius + 21, radius),
        (41, 41 + radius, radius // 2),
        (40 + radius // 3, 40, radius // 3),
    ):
        x, y = series(kind, batch, n, dim, 1), series(kind, batch, m, dim, 2)
        assert GIVEN_UP not in statuses(x, y, [gamma] * batch, own)
        check(x, y, gamma, bandwidth=own)


@pytest.mark.parametrize("options", [{"warp_penalty": 0.7}, {}], ids=str)
@pytest.mark.parametrize("cost", ["euclidean", "cityblock", "huber", "cosine"])  # whose unit vectors have two numbers more
@pytest.mark.parametrize("dim", [2, 3, 4])
def test_other_costs_and_penalties(dim, cost, options):
    dim = min(dim, 2) if cost == "cosine" else dim
    x, y = series("noise", 4, 70, dim, 3), series("walks", 4, 64, dim, 4)
    x[1, 1::2], y[1, 1::2] = x[1, 0], y[1, 0]  # ties, where the slope of a distance is 0
    y[1, 0] = x[1, 0]
    check(x, y, 0.3, bandwidth=9, cost=cost, **options)


@pytest.mark.parametrize("dim", [3, 4])
def test_a_penalty_and_a_gamma_of_every_pair(dim):
    penalties, gammas = [0.0, 0.1, 1.0, 3.7, 100.0, 1e5, 1e8], [0.1, 1.0, 5.0, 0.3, 1.0, 2.0, 0.1]
    x, y = series("walks", 7, 50, dim, 13), series("walks", 7, 53, dim, 14)
    options = {"bandwidth": 6, "warp_penalty": torch.tensor(penalties).to(GPU)}
    results = run(KERNEL, x.float(), y.float(), torch.tensor(gammas, dtype=torch.float64).to(GPU), **options)
    assert_close(results, Case(x, y, (), {"bandwidth": 6, "warp_penalty": penalties}), gammas)


@pytest.mark.parametrize("dim", [2, 3])
def test_lengths_and_bands_of_every_pair(dim):
    """Some of them wider than the ring, which have strips."""
    x_lengths, y_lengths = [70, 1, 64, 33, 70, 12, 50], [66, 5, 66, 35, 20, 9, 66]
    radii = [6, 0, 40, 1, 3, 60, 2]
    x, y = series("noise", 7, 70, dim, 5), series("noise", 7, 66, dim, 6)
    lengths = {"x_lengths": x_lengths, "y_lengths": y_lengths}
    for options in ({"bandwidth": radii, **lengths}, {"bandwidth": 5, **lengths}, {"bandwidth": radii}):
        tensors = {
            key: torch.tensor(option).to(GPU) if isinstance(option, list) else option for key, option in options.items()
        }
        padded = [z.float().clone() for z in (x, y)]
        if "x_lengths" in options:
            for b in range(7):
                padded[0][b, x_lengths[b] :] = padded[1][b, y_lengths[b] :] = float("nan")
        assert_close(run(KERNEL, *padded, 1.0, **tensors), Case(x, y, (), options), [1.0] * 7)


@pytest.mark.parametrize("radius", [0, 1, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 33])
def test_short_series(n, radius):
    for m in {n, n + 3, max(1, n - 2)}:
        if radius < max(n, m):
            check(series("noise", 5, n, 3, 3), series("noise", 5, m, 3, 4), 0.5, bandwidth=radius)


@pytest.mark.parametrize("dim", [3, 4])
def test_series_of_any_length(dim):
    x, y = series("walks", 2, 700, dim, 15), series("walks", 2, 690, dim, 16)
    assert statuses(x, y, [1.0] * 2, 13) == [DEEP] * 2
    check(x, y, 1.0, bandwidth=13)


@pytest.mark.parametrize("dim", [2, 4])
def test_pairs_out_of_range_are_given_up(dim):
    """Costs of more exponents than the format has; others of the same warp stay."""
    x, y = series("noise", 6, 60, dim, 7), series("noise", 6, 63, dim, 8)
    x[1], x[4, 31] = x[1] * 1000, 500.0
    y[2, :60] = x[2]
    y[2, 60:] = x[2, -1]
    found = statuses(x, y, [0.05] * 6, 5)
    assert found[1] == found[4] == GIVEN_UP and found[0] == found[3] == found[5] == DEEP, found
    check(x, y, 0.05, bandwidth=5)


def test_a_path_along_the_edge_of_the_band():
    steps = torch.rand(270, 3, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
    wave = (2 * steps.cumsum(0).sin()[None]).double()
    for radius in (1, 20, 33):
        x, y = wave[:, :200].float().double(), wave[:, radius : 200 + radius].float().double()
        check(x, y, 1.0, bandwidth=radius)
        check(y, x, 0.1, bandwidth=radius - 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_spoils_its_pair_alone(bad):
    x, y = series("noise", 6, 60, 3, 9).float(), series("noise", 6, 63, 3, 10).float()
    good = run(KERNEL, x, y, 1.0, bandwidth=5)
    x[2, 31, 1] = bad
    spoiled = run(KERNEL, x, y, 1.0, bandwidth=5)
    for before, after in zip(good, spoiled, strict=True):
        others = [0, 1, 3, 4, 5]
        assert np.array_equal(before[others], after[others])
        assert not np.isfinite(after[2]).any()


def test_one_gradient_a_factor_and_views():
    x, y = (series("noise", 4, n, 3, n).float().to(GPU) for n in (60, 70))
    _, both_x, both_y = run(KERNEL, x, y, 1.0, bandwidth=5)
    factors = torch.tensor([2.0, -4.0, 0.0, 1.0], device=GPU)
    for wanted, both in ((0, both_x), (1, both_y)):
        pair = [z.clone().requires_grad_(which == wanted) for which, z in enumerate((x, y))]
        value = soft_dtw(*pair, gamma=1.0, kernel=KERNEL.name, bandwidth=5)
        (gradient,) = torch.autograd.grad(value, pair[wanted], factors)
        np.testing.assert_allclose(numpy64(gradient), both * numpy64(factors)[:, None, None], rtol=1e-6)
    for view in (lambda z: z[:, ::2], lambda z: z.repeat(1, 1, 2)[..., 1:4], lambda z: z.transpose(1, 2).clone().mT):
        for got, own in zip(
            run(KERNEL, view(x), view(y), bandwidth=8),
            run(KERNEL, view(x).contiguous(), view(y).contiguous(), bandwidth=8),
            strict=True,
        ):
            assert np.array_equal(got, own)


def test_which_calls_have_them():
    def name(dim, n, radius, **options):
        return select_kernel(n, dim=dim, bandwidth=radius, specialization=True, **{"batch": 4000, **options})

    for dim in (2, 3, 4):
        for options in ({}, {"cost": "huber"}, {"gradient": True}, {"warp_penalty": 0.1, "gradient": True}):
            assert name(dim, 200, 20, **options) == name(dim, 512, 51, **options) == "stencil/banded"
            assert name(dim, 96, 4, **options) == name(dim, 1024, 102, **options) == "stencil/banded"
    # With gradients what is left out of strips is more than a wide ring saves.
    assert name(3, 512, 102) == "stencil/banded" and name(3, 512, 102, gradient=True) == "stencil/vector_log2"
    for others in ({"batch": 250}, {"gradient": True, "batch": 900}, {"dim": 5}, {"radius": 150}):
        assert name(**{"dim": 3, "n": 512, "radius": 51, **others}) != "stencil/banded"
    for n, gradient, fewest in (
        (200, False, 1000),
        (512, False, 265),
        (1024, False, 133),
        (512, True, 1025),  # that have rows enough for fewer lanes
        (1024, True, 170),
    ):
        names = [name(4, n, n // 10, gradient=gradient, batch=batch) for batch in (fewest - 1, fewest)]
        assert names[0] != "stencil/banded" == names[1], (n, gradient)
