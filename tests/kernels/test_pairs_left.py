"""The pairs that number formats leave to the extended range: none, one, or so many that a block has several, and teams of
its warps go over them side by side (kernels/stencil/team.cuh)."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, run, run_from_cost
from test_wide_bands import statuses

pytestmark = OF_GPU
LEFT = "extended_range"
# Kernel, dimensions, dtype, whether with a band.
CALLS = {
    "short pairs": ("stencil/linear_domain", 1, torch.float32, False),
    "float64": ("stencil/linear_domain", 1, torch.float64, False),
    "rings": ("stencil/banded", 1, torch.float32, True),
    "vectors": ("stencil/vector_log2", 3, torch.float32, False),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("left", [0, 1, 3, 40, 300])
@pytest.mark.parametrize("n", [20, 150, 300])
def test_each_of_them_is_as_without_the_others(n, left, name):
    """Compared with the CPU in float64, where a pair's numbers cannot depend on its place."""
    kernel, dim, dtype, has_band = CALLS[name]
    bandwidth = n // 3 if has_band else None
    some, batch = 7, 330
    x, y = (normal(some, n, dim, seed=seed).float() for seed in (1, 2))
    pairs = torch.arange(batch) % some
    generator = torch.Generator().manual_seed(left)
    are_left = torch.zeros(batch, dtype=torch.bool)
    are_left[torch.randperm(batch, generator=generator)[:left]] = True
    gamma = torch.where(are_left, 1e-4, 0.5).double()
    x_of_all, y_of_all = x[pairs].to(dtype), y[pairs].to(dtype)
    x_of_all[5, n // 2] = np.nan
    results = run(KernelCase(GPU, kernel), x_of_all, y_of_all, gamma.to(GPU), bandwidth=bandwidth)
    by_gamma = {own: run(KernelCase("cpu", "cpu"), x.double(), y.double(), own, bandwidth=bandwidth) for own in (1e-4, 0.5)}
    for i, result in enumerate(results):
        assert np.isnan(result[5]).all()
        for own, expected in by_gamma.items():
            at = (gamma == own).numpy() & (np.arange(batch) != 5)
            if not at.any():
                continue
            expected_here = expected[i][pairs[at].numpy()]
            largest = np.abs(expected_here).reshape(len(expected_here), -1).max(1, initial=own)
            error = np.abs(result[at] - expected_here).reshape(len(expected_here), -1).max(1, initial=0)
            assert np.all(error <= (3e-5 if i == 0 else 1e-3) * largest), (own, (error / largest).max())


def test_those_of_ready_made_costs_wherever_they_are():
    """Of more pairs than could be under way at once if they were swept by teams, as these are not."""
    some, batch, n = 5, 2600, 20
    costs = (normal(some, n, n, seed=1) ** 2).float()
    pairs = torch.arange(batch) % some
    gamma = torch.full((batch,), 0.5, dtype=torch.float64)
    gamma[[3, 700, 2111, 2112, 2113, 2500, 2599]] = 1e-5
    results = run_from_cost(KernelCase(GPU, "stencil/vector_log2"), costs[pairs], gamma.to(GPU))
    for own in (1e-5, 0.5):
        at = (gamma == own).numpy()
        for actual, expected in zip(results, run_from_cost(KernelCase("cpu", "cpu"), costs.double(), own), strict=True):
            np.testing.assert_allclose(actual[at], expected[pairs[at]], rtol=3e-5, atol=1e-3 if actual.ndim > 1 else 1e-5)


def test_tiny_gammas_are_left():
    x, y = (normal(3, 150, 1, seed=seed).float() for seed in (1, 2))
    assert statuses(KernelCase(GPU, "stencil/linear_domain"), x, y, [0.5, 1e-4, 0.5], 140)[1] == LEFT
