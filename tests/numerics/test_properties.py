"""Random problems of every kind, shrunk by hypothesis to the smallest that fails."""

import numpy as np
import oracle
import torch
from cases import COSTS, GRADIENT_TOLERANCE, normal, numpy64, run, run_from_cost
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchsoftdtw import soft_dtw, soft_dtw_alignment, soft_dtw_divergence

# The fixture only names the kernel, so that sharing it among examples is right.
shared_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def problems(draw):
    batch, n, m = draw(st.integers(1, 4)), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    dim = draw(st.sampled_from([1, 2, 3, 8, 11]))

    def per_pair(low, high):
        return st.none() | st.lists(st.integers(low, high), min_size=batch, max_size=batch)

    options = dict(
        cost=draw(st.sampled_from(COSTS).filter(lambda cost: cost != "cosine" or dim > 1)),
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


@st.composite
def divergence_problems(draw, equal_lengths=False):
    """(x, y, gammas, lengths of x, of y), gammas as a tensor of one per pair. y is another series, or x moved a little."""
    batch, n, m = draw(st.integers(1, 4)), draw(st.integers(1, 30)), draw(st.integers(1, 30))
    dim, seed = draw(st.sampled_from([1, 2, 3, 8])), draw(st.integers(0, 1000))
    gammas = draw(st.lists(st.floats(1e-3, 30.0), min_size=batch, max_size=batch))
    own_lengths = [
        draw(st.none() | st.lists(st.integers(1, longest), min_size=batch, max_size=batch)) for longest in (n, m)
    ]
    if equal_lengths:
        m, own_lengths = n, own_lengths[:1] * 2
    x, y = normal(batch, n, dim, seed=seed), normal(batch, m, dim, seed=seed + 1)
    if n == m:
        y = x + draw(st.sampled_from([1e-4, 1e-2, 1.0])) * y
    return x, y, torch.tensor(gammas, dtype=torch.float64), *own_lengths


def size_of_terms(kind, x, y, gammas, x_lengths, y_lengths):
    """|V(x, y)| + |V(x, x)| / 2 + |V(y, y)| / 2 of each pair, which a divergence's rounding is measured by."""

    def term(a, b, lengths, others):
        if kind == "soft":
            return soft_dtw(a, b, gammas, x_lengths=lengths, y_lengths=others).abs()
        smoothing = gammas if kind == "sharp" else 1e8
        _, alignment = soft_dtw_alignment(a, b, smoothing, x_lengths=lengths, y_lengths=others)
        return (alignment * (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(3)).sum((1, 2))

    first, second = term(x, x, x_lengths, x_lengths), term(y, y, y_lengths, y_lengths)
    return term(x, y, x_lengths, y_lengths) + (first + second) / 2


@given(problem=divergence_problems(), kind=st.sampled_from(["soft", "sharp", "mean"]))
def test_a_divergence_with_gammas_per_pair_is_symmetric(problem, kind):
    x, y, gammas, x_lengths, y_lengths = problem
    there = soft_dtw_divergence(x, y, gammas, kind=kind, x_lengths=x_lengths, y_lengths=y_lengths)
    back = soft_dtw_divergence(y, x, gammas, kind=kind, x_lengths=y_lengths, y_lengths=x_lengths)
    assert ((there - back).abs() <= 1e-12 * size_of_terms(kind, *problem)).all()


@given(problem=divergence_problems(), kind=st.sampled_from(["soft", "sharp", "mean"]), trains=st.booleans())
def test_a_divergence_with_gammas_per_pair_is_zero_at_itself(problem, kind, trains):
    x, _, gammas, lengths, _ = problem
    leaf = x.clone().requires_grad_(trains)
    value = soft_dtw_divergence(leaf, x, gammas, kind=kind, x_lengths=lengths, y_lengths=lengths)
    assert (value.abs() <= 1e-12 * size_of_terms(kind, x, x, gammas, lengths, lengths)).all()


def assert_not_below_zero(kind, x, y, gammas, x_lengths, y_lengths):
    value = soft_dtw_divergence(x, y, gammas, kind=kind, x_lengths=x_lengths, y_lengths=y_lengths)
    assert (value >= -1e-12 * size_of_terms(kind, x, y, gammas, x_lengths, y_lengths)).all()


@given(problem=divergence_problems())
def test_the_soft_divergence_with_gammas_per_pair_is_never_below_zero_for_squared_distances(problem):
    assert_not_below_zero("soft", *problem)


@given(problem=divergence_problems(equal_lengths=True))
def test_the_mean_divergence_of_equal_lengths_is_never_below_zero_for_squared_distances(problem):
    assert_not_below_zero("mean", *problem)
