"""A pair's result depends on that pair alone, and is the same in every run."""

import numpy as np
import pytest
import torch
from cases import COSTS, normal, run, run_from_cost


@pytest.mark.parametrize(
    "options", [{}, {"x_lengths": [70, 3, 40, 64, 9]}, {"bandwidth": 5}], ids=["full", "lengths", "band"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_runs_are_bitwise_equal(template, dtype, options):
    x, y = normal(5, 70, 3, seed=1, dtype=dtype), normal(5, 90, 3, seed=2, dtype=dtype)
    first = run(template, x, y, **options)
    for _ in range(4):
        torch.full((100_000,), float("nan"))  # memory that comes back used
        for a, b in zip(first, run(template, x, y, **options), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("where", ["x", "y"])
def test_a_bad_number_spoils_its_pair_alone(template, where, cost, bad):
    x, y = normal(6, 70, 3, seed=1, dtype=torch.float32), normal(6, 40, 3, seed=2, dtype=torch.float32)
    clean = run(template, x, y, cost=cost)
    (x if where == "x" else y)[2, 17, 1] = bad
    spoiled = run(template, x, y, cost=cost)
    others = [0, 1, 3, 4, 5]
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
    assert not np.isfinite(spoiled[0][2])
    assert not (np.isfinite(spoiled[1][2]).all() and np.isfinite(spoiled[2][2]).all())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_cost_spoils_its_pair_alone(template, bad):
    costs = normal(6, 70, 40, seed=1, dtype=torch.float32).square()
    clean = run_from_cost(template, costs)
    costs[2, :, 20] = bad
    value, gradient = run_from_cost(template, costs)
    others = [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(clean[0][others], value[others])
    np.testing.assert_array_equal(clean[1][others], gradient[others])
    assert not np.isfinite(value[2])


@pytest.mark.parametrize(("n", "m", "dim"), [(70, 90, 3), (420, 330, 1), (70, 90, 20)])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_padding_of_a_spoiled_pair_gets_zero_gradient(kernel, n, m, dim, cost, bad):
    x, y = normal(3, n, dim, seed=1, dtype=torch.float32), normal(3, m, dim, seed=2, dtype=torch.float32)
    x_lengths, y_lengths = [n, n - 33, n - 1], [m - 9, m - 40, m]
    x[1, 17] = bad
    value, *gradients = run(kernel, x, y, cost=cost, x_lengths=x_lengths, y_lengths=y_lengths)
    assert np.isfinite(value).tolist() == [True, False, True]
    for gradient, lengths in zip(gradients, (x_lengths, y_lengths), strict=True):
        for b, length in enumerate(lengths):
            assert not gradient[b, length:].any(), b
        assert np.isnan(gradient[1, : lengths[1]]).all()


def test_padding_of_spoiled_cost_matrices_gets_zero_gradient(kernel):
    costs = normal(3, 70, 90, seed=1, dtype=torch.float32).square()
    costs[1, 17] = float("nan")
    value, gradient = run_from_cost(kernel, costs, x_lengths=[70, 40, 70], y_lengths=[90, 60, 90])
    assert np.isfinite(value).tolist() == [True, False, True]
    assert not gradient[1, 40:].any() and not gradient[1, :, 60:].any() and np.isnan(gradient[1, :40, :60]).all()


def test_a_pair_gives_the_same_in_any_batch(template):
    x, y = normal(9, 70, 2, seed=1, dtype=torch.float32), normal(9, 50, 2, seed=2, dtype=torch.float32)
    together = run(template, x, y)
    for b in range(9):
        for whole, alone in zip(together, run(template, x[b : b + 1], y[b : b + 1]), strict=True):
            np.testing.assert_allclose(whole[b : b + 1], alone, rtol=1e-5, atol=1e-5)


def test_a_pair_gives_the_same_among_hundreds(template):
    # So many pairs fill the device, which may take another way through the table; the band meets several strips.
    x, y = normal(700, 300, 1, seed=1, dtype=torch.float32), normal(700, 280, 1, seed=2, dtype=torch.float32)
    whole = run(template, x, y, bandwidth=150)
    few = run(template, x[:3], y[:3], bandwidth=150)
    for a, b in zip(whole, few, strict=True):
        np.testing.assert_allclose(a[:3], b, rtol=1e-5, atol=1e-5)


def test_inputs_are_left_as_they_were(kernel):
    x, y = normal(3, 20, 2, seed=1).to(kernel.device), normal(3, 22, 2, seed=2).to(kernel.device)
    before = x.clone(), y.clone()
    run(kernel, x, y, cost="euclidean", x_lengths=[20, 5, 1])
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])
