"""Costs in float32 of some 2^16 gamma and more that every path has to pay: an outlier, a small gamma. What rounding such a
cost comes to is no longer small next to gamma, and would move the alignment, so kernels compute these in float64.
"""

from functools import cache

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run

from torchsoftdtw._kernels.number_formats import number_formats

UNIVARIATE = [
    "diagonal",
    "stencil/linear_domain",
    "stencil/integer_log2",
    "stencil/extended_range",
    "tiled/warp_specialised",
    "tiled/extended_range",
]
FEW = ["diagonal", "stencil", "tiled/few_dims", "tiled/multivariate", "tiled/extended_range"]
MANY = ["diagonal", "stencil/extended_range", "tiled/multivariate", "tiled/extended_range"]
# (n, m, dim): few columns or few rows, so that many paths pay nearly the same for an outlier; and more than a strip.
SHAPES = {
    (391, 9, 1): UNIVARIATE,
    (9, 133, 1): UNIVARIATE,
    (70, 60, 1): UNIVARIATE,
    (150, 270, 1): ["tiled/bidirectional"],
    (130, 12, 3): FEW,
    (391, 9, 5): FEW,
    (9, 133, 8): FEW,
    (306, 89, 13): MANY,
    (140, 12, 20): ["stencil/multivariate", *MANY],
}
GAMMAS = [0.003, 0.004, 0.009, 0.03, 0.09, 1.0]
# So high that a cost is 2^16 gamma and more, whatever the gamma.
HEIGHTS = {"sqeuclidean": (100, 300), "euclidean": (5e3, 2e4), "cityblock": (5e3, 2e4), "huber": (5e3, 2e4)}
WHERE = ["x", "y", "both", "twice"]


@cache
def problems(shape, cost):
    """A pair for every gamma and every place of outliers, and the oracle's values and gradients."""
    n, m, dim = shape
    pairs = [(gamma, where) for gamma in GAMMAS for where in WHERE]
    generator = np.random.default_rng(n + m + dim)
    x, y = normal(len(pairs), n, dim, seed=1), normal(len(pairs), m, dim, seed=2)
    for pair, (gamma, where) in enumerate(pairs):
        low, high = HEIGHTS[cost]
        rise = np.sqrt(gamma / 0.09) if cost == "sqeuclidean" else gamma / 0.09
        for series, length in ((x, n), (y, m)):
            if where in ("x", "y") and (series is x) != (where == "x"):
                continue
            for row in generator.choice(length, 2 if where == "twice" and length > 9 else 1, replace=False):
                series[pair, row] += generator.uniform(low, high) * max(rise, 1) * generator.choice([-1, 1])
    x, y = x.float(), y.float()
    gamma = torch.tensor([gamma for gamma, _ in pairs], dtype=torch.float64)
    expected = [
        oracle.soft_dtw(numpy64(x[b : b + 1]), numpy64(y[b : b + 1]), float(gamma[b]), cost=cost) for b in range(len(pairs))
    ]
    return x, y, gamma, *(np.concatenate(numbers) for numbers in zip(*expected, strict=True))


def cases(costs, shapes):
    return [
        pytest.param(cost, shape, name, id=f"{cost}-{'x'.join(map(str, shape))}-{name}", marks=OF_GPU)
        for cost in costs
        for shape in shapes
        for name in SHAPES[shape]
    ]


def assert_right(values, gradients, expected_values, expected_gradients):
    assert np.all(np.abs(values - expected_values) <= 1e-5 * np.abs(expected_values))
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        largest = np.abs(wanted).max(axis=(1, 2), keepdims=True)
        assert np.all(np.abs(gradient - wanted) <= 1e-4 * largest), (
            np.abs(gradient - wanted).max(axis=(1, 2)) / largest.ravel()
        )


@pytest.mark.parametrize(
    ("cost", "shape", "name"),
    [
        *cases(["sqeuclidean"], SHAPES),
        *cases(["euclidean", "cityblock", "huber"], [(70, 60, 1), (150, 270, 1), (391, 9, 5), (140, 12, 20)]),
    ],
)
def test_outliers_leave_the_alignment_as_it_is(cost, shape, name):
    x, y, gamma, value, *gradients = problems(shape, cost)
    values, *actual = run(KernelCase(GPU, name), x, y, gamma, cost=cost)
    assert_right(values, actual, value, gradients)


@pytest.mark.parametrize("options", [{"bandwidth": 20}, {"warp_penalty": 0.4}], ids=["band", "penalty"])
@pytest.mark.parametrize(
    ("cost", "shape", "name"), cases(["sqeuclidean"], [(70, 60, 1), (150, 270, 1), (9, 133, 8), (140, 12, 20)])
)
def test_options_and_outliers(cost, shape, name, options):
    if name in ("stencil/linear_domain", "stencil/integer_log2") and "bandwidth" in options:
        name = "stencil/banded"
    x, y, gamma, *_ = problems(shape, cost)
    expected = [
        oracle.soft_dtw(numpy64(x[b : b + 1]), numpy64(y[b : b + 1]), float(gamma[b]), cost=cost, **options)
        for b in range(len(gamma))
    ]
    value, *gradients = (np.concatenate(numbers) for numbers in zip(*expected, strict=True))
    values, *actual = run(KernelCase(GPU, name), x, y, gamma, cost=cost, **options)
    assert_right(values, actual, value, gradients)


@OF_GPU
def test_a_small_gamma_alone_gives_no_pair_up():
    x, y = normal(3, 96, 1, seed=1).float().to(GPU), normal(3, 96, 1, seed=2).float().to(GPU)
    assert "extended_range" not in number_formats(x, y, 0.003, "stencil/integer_log2")
