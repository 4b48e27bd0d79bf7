"""The CPU kernel gives the same bits with any number of threads, across pairs and across the strips of one pair."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from cases import normal

from torchsoftdtw import soft_dtw, soft_dtw_from_cost


@pytest.fixture(autouse=True)
def restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def results(x, y, gamma=1.0, **options):
    """The value with and without a table kept, and the gradients."""
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    value = soft_dtw(x, y, gamma, **options)
    return soft_dtw(x.detach(), y.detach(), gamma, **options), value.detach(), *torch.autograd.grad(value.sum(), (x, y))


def with_spike(series):
    series = series.clone()
    series[0, series.shape[1] // 2] = 1e4
    return series


def pairs(batch, n, m, dim=1, dtype=torch.float32):
    return normal(batch, n, dim, seed=1, dtype=dtype), normal(batch, m, dim, seed=2, dtype=dtype)


CASES = {
    "one_long_pair": lambda: results(*pairs(1, 1500, 1300)),
    "float64": lambda: results(*pairs(1, 700, 900, dtype=torch.float64)),
    "dimensions": lambda: results(*pairs(1, 500, 700, 3)),
    "euclidean": lambda: results(*pairs(1, 500, 700, 2), cost="euclidean"),
    "cityblock": lambda: results(*pairs(1, 500, 700), cost="cityblock"),
    "huber": lambda: results(*pairs(1, 500, 700, 2), cost="huber"),
    "band": lambda: results(*pairs(1, 2000, 2100), bandwidth=30),
    "wide_band_and_penalty": lambda: results(*pairs(1, 900, 700), bandwidth=300, warp_penalty=0.2),
    "small_gamma": lambda: results(*pairs(2, 600, 500), 1e-3),
    "lengths": lambda: results(*pairs(2, 900, 800), x_lengths=[900, 70], y_lengths=[500, 800]),
    "two_columns": lambda: results(*pairs(1, 3000, 2)),
    "short_and_long": lambda: results(*pairs(1, 65, 3000)),
    "beyond_float32": lambda: results(*map(with_spike, pairs(2, 600, 700)), 1e-2),
    "one_of_two_beyond_float32": lambda: results(with_spike(pairs(2, 600, 700)[0]), pairs(2, 600, 700)[1], 1e-2),
    "more_pairs_than_threads": lambda: results(*pairs(9, 300, 200)),
    "too_small_to_share": lambda: results(*pairs(5, 20, 30)),
    "only_one_of_many_beyond_float32": lambda: results(with_spike(pairs(9, 300, 200)[0]), pairs(9, 300, 200)[1], 1e-2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_with_any_number_of_threads(name):
    torch.set_num_threads(1)
    expected = CASES[name]()
    assert torch.equal(expected[0], expected[1])
    for threads in (2, 3, 7):
        torch.set_num_threads(threads)
        for _ in range(3):
            for wanted, actual in zip(expected, CASES[name](), strict=True):
                assert torch.equal(wanted, actual)


@pytest.mark.parametrize("height", [0.0, 1e9])
def test_the_same_bits_of_a_cost_matrix(height):
    costs = normal(1, 700, 900, seed=1, dtype=torch.float32).square()
    costs[0, 300] += height

    def gradient():
        leaf = costs.clone().requires_grad_()
        value = soft_dtw_from_cost(leaf, gamma=1.0, bandwidth=400)
        return value.detach(), *torch.autograd.grad(value.sum(), leaf)

    torch.set_num_threads(1)
    expected = gradient()
    for threads in (2, 5):
        torch.set_num_threads(threads)
        for wanted, actual in zip(expected, gradient(), strict=True):
            assert torch.equal(wanted, actual)


def test_many_callers_at_once():
    torch.set_num_threads(1)
    expected = results(*pairs(1, 800, 900))

    def call(_):
        torch.set_num_threads(3)
        return results(*pairs(1, 800, 900))

    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(call, range(12)):
            assert all(torch.equal(a, b) for a, b in zip(expected, actual, strict=True))


def test_memory_that_a_thread_keeps_fits_the_next_call():
    """Calls that need more than the one before, and less, give what a thread's first call gives."""
    for n, m in ((3, 5), (130, 300), (9, 4), (40, 700), (1100, 60), (64, 64)):
        here = results(*pairs(3, n, m))
        with ThreadPoolExecutor(1) as fresh:
            expected = fresh.submit(results, *pairs(3, n, m)).result()
        assert all(torch.equal(a, b) for a, b in zip(expected, here, strict=True))
