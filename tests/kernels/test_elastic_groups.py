"""Many pairs of hard elastic measures on the CPU are swept in groups, a lane each: with the values of single pairs."""

import math

import pytest
import torch
from cases import normal

from torchsoftdtw import cdist, measures, twed

SHAPES = [(1, 1, 1), (1, 7, 2), (7, 1, 1), (2, 2, 3), (12, 17, 1), (17, 12, 2), (40, 33, 1)]  # n, m, dim
MEASURES = {
    **{f"twed-{degree}": measures.TWED(nu=0.3, lmbda=0.7, degree=degree) for degree in (1, 2, -2)},
    "erp": measures.ERP(g=0.2),
    "msm": measures.MSM(c=0.4),
    "edr": measures.EDR(epsilon=0.5),
    "lcss": measures.LCSS(epsilon=0.5),
    "wdtw": measures.WDTW(g=0.05),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize(("n", "m", "dim"), SHAPES)
def test_groups_have_the_values_of_single_pairs(n, m, dim, name, dtype):
    measure, dim = MEASURES[name], 1 if name == "msm" else dim
    x, y = normal(8, n, dim, seed=1, dtype=dtype), normal(9, m, dim, seed=2, dtype=dtype)
    for bandwidth in (None, 0, 1, 3, 50):
        found = cdist(x, y, distance=measure, bandwidth=bandwidth)
        for i, j in ((0, 0), (3, 5), (7, 8)):
            alone = measure(x[i : i + 1], y[j : j + 1], bandwidth=bandwidth)[0]
            if name == "wdtw" and dtype == torch.float64:  # a weight times a cost, and a sum: may be rounded once
                torch.testing.assert_close(found[i, j], alone, rtol=1e-14, atol=0)
            else:
                assert torch.equal(found[i, j], alone)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("number", [math.nan, math.inf, 1e30])
def test_what_is_not_finite_or_large_is_swept_alone(name, number):
    x, y = normal(8, 13, 1, seed=1, dtype=torch.float32), normal(9, 13, 1, seed=2, dtype=torch.float32)
    x[2, 3], x[4, 0], y[1, 12] = number, number, number
    found = cdist(x, y, distance=MEASURES[name])
    for i, j in ((0, 0), (2, 2), (4, 1), (3, 1), (7, 8)):
        assert found[i, j].item() == pytest.approx(MEASURES[name](x[i : i + 1], y[j : j + 1]).item(), nan_ok=True, rel=1e-6)


def test_times_of_every_series_and_one_series_of_all_pairs():
    x, y = normal(1, 21, 2, seed=1).expand(40, -1, -1), normal(40, 18, 2, seed=2)
    times = normal(40, 21, seed=3).abs().cumsum(1), normal(40, 18, seed=4).abs().cumsum(1)
    found = twed(x, y, nu=0.2, x_times=times[0], y_times=times[1])
    for i in (0, 17, 39):
        own = {"x_times": times[0][i : i + 1], "y_times": times[1][i : i + 1]}
        assert torch.equal(found[i], twed(x[i : i + 1], y[i : i + 1], nu=0.2, **own)[0])
