"""Random problems of every kind, shrunk by hypothesis to the smallest that fails."""

import numpy as np
import oracle
import torch
from cases import GRADIENT_TOLERANCE, normal, numpy64, run, run_from_cost
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

COSTS = st.sampled_from(["sqeuclidean", "euclidean", "cityblock", "cosine"])
# The fixture only names the kernel, so that sharing it among examples is right.
shared_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def problems(draw):
    batch, n, m = draw(st.integers(1, 4)), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    dim = draw(st.sampled_from([1, 2, 3, 8, 11]))

    def per_pair(low, high):
        return st.none() | st.lists(st.integers(low, high), min_size=batch, max_size=batch)

    options = dict(
        cost=draw(COSTS.filter(lambda cost: cost != "cosine" or dim > 1)),
        x_lengths=draw(per_pair(1, n)),
        y_lengths=draw(per_pair(1, m)),
        bandwidth=draw(st.integers(0, 50) | per_pair(0, 50)),
        warp_penalty=draw(st.sampled_from([0.0, 0.0, 0.1, 3.0])),
    )
    seed, gamma = draw(st.integers(0, 1000)), draw(st.sampled_from([0.05, 0.3, 1.0, 7.0, 100.0]))
    return normal(batch, n, dim, seed=seed), normal(batch, m, dim, seed=seed + 1), gamma, options


@shared_fixture
@given(problem=problems(), dtype=st.sampled_from([torch.float64, torch.float32]))
def test_any_problem_agrees_with_the_oracle(template, problem, dtype):
    x, y, gamma, options = problem
    x, y = x.to(dtype), y.to(dtype)
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma, **options)
    actual = run(template, x, y, gamma, **options)
    rounding = 1e-11 if dtype == torch.float64 else 1e-5
    assert np.all(np.abs(actual[0] - expected[0]) <= rounding * np.maximum(np.abs(expected[0]), gamma))
    for gradient, wanted in zip(actual[1:], expected[1:], strict=True):
        # A small gamma magnifies the rounding of the costs, by 1 / gamma.
        allowed = GRADIENT_TOLERANCE[dtype] * max(1, 1 / gamma) * max(np.abs(wanted).max(), 1)
        assert np.abs(gradient - wanted).max() <= allowed


@shared_fixture
@given(
    n=st.integers(1, 70),
    m=st.integers(1, 70),
    gamma=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    band=st.none() | st.integers(0, 20),
    seed=st.integers(0, 1000),
)
def test_alignment_is_a_flow_of_one_unit(template, n, m, gamma, band, seed):
    costs = normal(1, n, m, seed=seed, dtype=torch.float32).square()
    _, (alignment,) = run_from_cost(template, costs, gamma, bandwidth=band)
    rounding = 1e-4
    assert alignment.min() >= 0 and alignment.max() <= 1 + rounding
    assert abs(alignment[0, 0] - 1) <= rounding and alignment[-1, -1] == 1
    # Every path visits every row and every column at least once.
    assert alignment.sum(0).min() >= 1 - rounding and alignment.sum(1).min() >= 1 - rounding
    inside = [[oracle.in_band(i, j, n, m, band) for j in range(m)] for i in range(n)]
    assert not alignment[~np.array(inside)].any()
    # One unit crosses every pair of neighbouring anti-diagonals, in one of them or by a diagonal step over it.
    along = np.array([np.trace(alignment[:, ::-1], offset=m - 1 - k) for k in range(n + m - 1)])
    assert along.max() <= 1 + rounding
    assert (along[:-1] + along[1:]).min(initial=1) >= 1 - rounding


@shared_fixture
@given(n=st.integers(1, 40), m=st.integers(1, 40), shift=st.sampled_from([-3.0, 0.5, 100.0]), seed=st.integers(0, 1000))
def test_moving_both_series_changes_nothing(kernel, n, m, shift, seed):
    x, y = normal(1, n, 2, seed=seed), normal(1, m, 2, seed=seed + 1)
    before, after = run(kernel, x, y), run(kernel, x + shift, y + shift)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(before[1].sum(1), -before[2].sum(1), rtol=1e-8, atol=1e-8)
