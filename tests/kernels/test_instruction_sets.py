"""The CPU kernel is compiled for several instruction sets and picks one when it is loaded: each is held to the oracle."""

import os
import subprocess
import sys

import pytest

CHECK = """
import numpy as np, oracle, torch
from cases import COSTS, KernelCase, normal, numpy64, run
from test_elastic_kernels import MEASURES, assert_as_expected, made
from torchsoftdtw import cdist, dtw, dtw_path, elastic_from_costs, erp, lcss, measures, msm, subsequence_matches, twed, wdtw
options = dict(bandwidth=30, warp_penalty=0.1)
for dtype, bound in ((torch.float32, 3e-5), (torch.float64, 1e-9)):
    for n, m, dim in ((1, 1, 1), (70, 150, 2), (130, 65, 1)):
        x, y = normal(1, n, dim, seed=1, dtype=dtype), normal(1, m, dim, seed=2, dtype=dtype)
        value, grad_x, grad_y = run(KernelCase("cpu", "cpu"), x, y, 0.1, **options)
        expected = oracle.soft_dtw(numpy64(x), numpy64(y), 0.1, **options)
        for actual, wanted in zip((value, grad_x, grad_y), expected):
            assert np.abs(actual - wanted).max() <= bound * max(np.abs(wanted).max(), 0.1)
# E neither fades nor grows along thousands of steps.
x, y = ((walk / walk.std()).float() for walk in (normal(1, 4096, 1, seed=seed).cumsum(1) for seed in (1, 2)))
for gamma in (1.0, 0.01):
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma)
    for actual, wanted in zip(run(KernelCase("cpu", "cpu"), x, y, gamma), expected):
        assert np.abs(actual - wanted).max() <= 1e-5 * np.abs(wanted).max(), gamma
# Large costs keep their fraction: those of a row that is far away, which differ by some units from column to column.
x, y = normal(1, 130, 1, seed=1).float(), normal(1, 70, 1, seed=2).float() / 130
x[0, 40] = 130
expected = oracle.soft_dtw(numpy64(x), numpy64(y), 1.0)
for actual, wanted in zip(run(KernelCase("cpu", "cpu"), x, y, 1.0), expected):
    assert np.abs(actual - wanted).max() <= 2e-6 * np.abs(wanted).max()
for dtype in (torch.float32, torch.float64):
    for n, m, dim in ((1, 1, 1), (70, 150, 2), (1300, 65, 2)):
        for cost in COSTS[:-1]:  # all but cosine, which no kernel knows
            x, y = normal(1, n, dim, seed=1, dtype=dtype), normal(1, m, dim, seed=2, dtype=dtype)
            value, paths = dtw_path(x, y, cost=cost, bandwidth=30, warp_penalty=0.25)
            expected = oracle.hard_dtw(numpy64(x), numpy64(y), cost, bandwidth=30, warp_penalty=0.25)
            assert abs(value.item() - expected[0][0]) <= 1e-6 * expected[0][0]
            assert [tuple(cell) for cell in paths[0].tolist()] == expected[3][0]
            assert torch.equal(dtw(x, y, cost=cost, bandwidth=30, warp_penalty=0.25), value)
            n = min(n, 40)
            values = oracle.range_values(oracle.cost_and_slopes(numpy64(x[0, :n]), numpy64(y[0]), cost)[0], 0.25)
            found = subsequence_matches(x[0, :n], y[0], 1, cost=cost, warp_penalty=0.25, profile=True)
            np.testing.assert_allclose(found.profile, values[:, 1:].min(0), rtol=1e-5)
            assert values[found.start, found.end].item() == values.min()
for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-11)):
    for n, m in ((1, 1), (70, 150), (290, 65)):
        x, y = normal(1, n, 1, seed=1, dtype=dtype), normal(1, m, 1, seed=2, dtype=dtype)
        for function, name in ((twed, "twed"), (erp, "erp"), (msm, "msm"), (lcss, "lcss"), (wdtw, "wdtw")):
            *costs, border = oracle.measure_costs(name, numpy64(x[0]), numpy64(y[0]))
            for gamma in (0.0, 0.2):
                expected = oracle.elastic(*costs, gamma, border, 30)[0]
                expected = 1 - (n + m - expected) / 2 / min(n, m) if name == "lcss" else expected
                value = function(x, y, gamma=gamma, bandwidth=30).item()
                assert abs(value - expected) <= bound * max(abs(expected), 1.0), (name, n, m, gamma)
    costs = [normal(1, 70, 150, seed=seed).abs().to(dtype).requires_grad_() for seed in range(3)]
    for gamma in (0.0, 0.2):
        masses = torch.autograd.grad(elastic_from_costs(*costs, gamma, bandwidth=30).sum(), costs)
        _, *expected = oracle.elastic(*(numpy64(own[0]) for own in costs), gamma, "inf", 30)
        for actual, own in zip(masses, expected):
            assert np.abs(numpy64(actual[0]) - own[1:, 1:]).max() <= 1e-5
    for measure in MEASURES:
        dim = 2 if measure.cost == "euclidean" else 1
        for n, m, bandwidth in ((70, 150, 30), (290, 65, -1)):
            assert_as_expected(
                made(measure, n, m, dim, batch=1, dtype=dtype, bandwidth=bandwidth), "cpu", 0.2, dtype, at="cpu"
            )
for dtype in (torch.float32, torch.float64):  # groups of pairs
    for dim in (1, 3):
        x, y = normal(6, 21, dim, seed=1, dtype=dtype), normal(7, 18, dim, seed=2, dtype=dtype)
        for bandwidth in (None, 4):
            for cost in COSTS[:-1]:
                found = cdist(x, y, cost=cost, bandwidth=bandwidth, warp_penalty=0.1)
                alone = dtw(x[2:3], y[3:4], cost=cost, bandwidth=bandwidth, warp_penalty=0.1)
                assert torch.equal(found[2, 3], alone[0]), (cost, dim, dtype, bandwidth)
            own = measures.TWED(), measures.ERP(), measures.EDR(epsilon=0.5), measures.LCSS(), measures.MSM()
            for measure in own[: 5 if dim == 1 else 4]:
                found = cdist(x, y, distance=measure, bandwidth=bandwidth)
                assert torch.equal(found[2, 3], measure(x[2:3], y[3:4], bandwidth=bandwidth)[0]), (measure, dim, dtype)
print("checked")
"""


@pytest.mark.parametrize("name", ["plain", "avx2", "avx512"])
def test_every_instruction_set_agrees_with_the_oracle(name):
    # A name beyond the processor falls back to what it has.
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "TORCHSOFTDTW_CPU_ISA": name, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "checked", done.stderr
