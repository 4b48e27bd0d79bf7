"""tslearn, an independent implementation, as a second opinion."""

import numpy as np
import pytest
import torch
from cases import assert_gradients_close, assert_values_close, normal, run

tslearn = pytest.importorskip("tslearn.metrics")


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("n", "m", "dim"), [(50, 50, 1), (80, 30, 3), (20, 130, 2)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_value_and_gradients_agree_with_tslearn(kernel, dtype, n, m, dim, gamma):
    x, y = normal(1, n, dim, seed=n, dtype=dtype), normal(1, m, dim, seed=m, dtype=dtype)
    a, b = x[0].double().numpy(), y[0].double().numpy()
    alignment, similarity = tslearn.soft_dtw_alignment(a, b, gamma=gamma)
    assert similarity == pytest.approx(tslearn.soft_dtw(a, b, gamma=gamma))
    slope = 2 * (a[:, None] - b[None]) * alignment[:, :, None]
    value, grad_x, grad_y = run(kernel, x, y, gamma)
    assert_values_close(value, np.array([similarity]), dtype, gamma)
    assert_gradients_close(grad_x, slope.sum(1)[None], dtype)
    assert_gradients_close(grad_y, -slope.sum(0)[None], dtype)
