"""Batches that a generator draws: thousands of pairs whose kinds, gammas, lengths and options differ, so that all the
kernels that share a call have some of them. float32 on the GPU against the CPU's float64, which shares no kernel with it.
"""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import GPU, KernelCase, commit, normal, numpy64, run

from torchsoftdtw import soft_dtw

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import data_kinds

pytestmark = pytest.mark.cuda
COUNT = 24  # of batches that are the same for every commit, and of those that are drawn for this one
MOST_CELLS = 8e8
# As docs/gamma.md has it: of max(|value|, gamma), and of gamma for every step of n + m.
OF_VALUE, OF_STEP = 1e-5, 1.5e-7
OF_GRADIENT = 5e-3  # of a pair's largest entry: rounding costs of thousands of gammas to float32 moves alignments


def draw(seed):
    """x, y, gamma, options."""
    choose = random.Random(seed)
    n, m = (choose.choice([choose.randint(1, 40), choose.randint(40, 320), choose.randint(300, 700)]) for _ in range(2))
    if choose.random() < 0.5:
        m = max(1, n + choose.randint(-9, 9))
    dim = choose.choice([1] * 8 + [2, 3, 4, 5, 8, 12, 40])
    batch = int(min(choose.choice([1, 37, 600, 2100, 2100, 5000, 5000]), max(1, MOST_CELLS / (n * m * (1 + dim / 8)))))
    kinds = choose.sample(data_kinds.KINDS, choose.randint(1, 3))
    parts = [data_kinds.pairs(kind, batch, max(n, m), dim, torch.float64, seed=seed) for kind in kinds]
    picked = torch.arange(batch) % len(parts)
    x, y = (torch.stack([part[side] for part in parts])[picked, torch.arange(batch)] for side in range(2))
    generator = torch.Generator().manual_seed(seed)

    def lengths(most):
        return torch.randint(1, most + 1, (batch,), generator=generator)

    gamma = choose.choice([1.0, 1.0, 0.1, 0.01, 10.0])
    if choose.random() < 0.3:
        gamma = gamma * 10 ** torch.rand(batch, generator=generator, dtype=torch.float64)
    options = {"cost": choose.choice(["sqeuclidean"] * 3 + ["euclidean", "cityblock", "huber", "cosine"])}
    if choose.random() < 0.3:
        options |= {"x_lengths": lengths(n), "y_lengths": lengths(m)}
    if choose.random() < 0.3:
        options["warp_penalty"] = choose.choice([0.05, 1.0])
    if choose.random() < 0.3:
        options["bandwidth"] = choose.choice([3, 20, max(n, m) // 10, max(n, m) // 2])
    return x[:, :n].float(), y[:, :m].float(), gamma, options


def to_gpu(option):
    return option.to(GPU) if isinstance(option, torch.Tensor) else option


@pytest.mark.parametrize("seed", [*range(COUNT), *(COUNT + commit() % 10**6 * COUNT + i for i in range(COUNT))])
def test_every_pair_of_a_random_batch_is_right(seed):
    x, y, gamma, options = draw(seed)
    weights = normal(len(x), seed=seed)
    expected = run(KernelCase("cpu", "cpu"), x.double(), y.double(), gamma, weights, **options)
    x, y = (series.to(GPU).requires_grad_() for series in (x, y))
    value = soft_dtw(x, y, to_gpu(gamma), **{key: to_gpu(option) for key, option in options.items()})
    actual = [value, *torch.autograd.grad(value, (x, y), weights.to(value))]

    gammas, steps = numpy64(torch.as_tensor(gamma)), x.shape[1] + y.shape[1]
    bound = OF_VALUE * np.maximum(np.abs(expected[0]), gammas) + OF_STEP * gammas * steps
    is_same = numpy64(value) == expected[0]  # infinite ones too: no path leads through their band
    with np.errstate(invalid="ignore"):
        error = np.abs(numpy64(value) - expected[0]) / bound
    assert np.all(is_same | (error <= 1)), f"values are off by {np.nanmax(error)} times the bound"
    for given, wanted in zip(actual[1:], expected[1:], strict=True):
        largest = np.maximum(np.abs(wanted).max(axis=(1, 2)), 1e-3)
        error = (np.abs(numpy64(given) - wanted).max(axis=(1, 2)) / largest).max()
        assert error <= OF_GRADIENT, f"gradients are off by {error}"
