"""CUDA kernels of elastic measures, op by op, against the oracle's three-cost recursion: values, paths and gradients."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, GRADIENT_TOLERANCE, VALUE_TOLERANCE, normal

from torchsoftdtw._kernels import ops

pytestmark = pytest.mark.cuda if GPU == "cuda" else pytest.mark.emulated(every_op=True)
KERNELS = ("diagonal", "auto")
F32, F64 = torch.float32, torch.float64
SMALL_GAMMA = 1e-3


class Measure(NamedTuple):
    """An op's `measure`, cost and border, with the parameters of its pairs."""

    name: str
    cost: str
    sum_border: bool = False
    parameter: float = 0.0
    has_times: bool = False

    def __str__(self):
        return f"{self.name}-{self.cost}" + "-times" * self.has_times + "-sum" * self.sum_border


EDIT = Measure("edit", "euclidean", True)
TWED = Measure("twed", "cityblock", parameter=0.1)
MSM = Measure("msm", "cityblock", parameter=0.4)
WEIGHTED = Measure("weighted", "sqeuclidean", parameter=0.07)
MEASURES = [
    EDIT,
    EDIT._replace(cost="cityblock"),
    EDIT._replace(sum_border=False),
    Measure("edr", "euclidean", True, 0.6),
    Measure("lcss", "euclidean", True, 0.6),
    TWED,
    TWED._replace(has_times=True),
    TWED._replace(cost="sqeuclidean"),
    TWED._replace(cost="euclidean", has_times=True),
    MSM,
    WEIGHTED,
]


class Problem(NamedTuple):
    """Series of a batch with all that belongs to them, on the CPU in float64, and options of the op."""

    measure: Measure
    x: torch.Tensor
    y: torch.Tensor
    x_times: torch.Tensor | None
    y_times: torch.Tensor | None
    x_gaps: torch.Tensor | None
    y_gaps: torch.Tensor | None
    lengths: tuple | None = None
    bandwidth: int = -1
    index: tuple | None = None

    def pairs(self):
        return range(len(self.x)) if self.index is None else range(len(self.index[0]))

    def of_pair(self, b):
        """x, y, times and gaps of a pair, without padding, as leaves that take gradients."""
        i, j = (b, b) if self.index is None else (self.index[0][b], self.index[1][b])
        n, m = (self.x.shape[1], self.y.shape[1]) if self.lengths is None else (self.lengths[0][i], self.lengths[1][j])

        def own(numbers, at, length):
            return None if numbers is None else numbers[at, :length].clone().requires_grad_()

        x, y = own(self.x, i, n), own(self.y, j, m)
        return x, y, own(self.x_times, i, n), own(self.y_times, j, m), own(self.x_gaps, i, n), own(self.y_gaps, j, m)


def made(measure, n, m, dim=1, batch=3, dtype=F64, **options):
    x, y = (normal(batch, length, dim, seed=seed, dtype=dtype).double() for length, seed in ((n, 1), (m, 2)))
    numbers = [None] * 4
    if measure.has_times:
        numbers[:2] = ((normal(batch, length, seed=3).abs() / 4).cumsum(1).to(dtype).double() for length in (n, m))
    if measure.name in ("edit", "twed"):
        numbers[2:] = ((normal(batch, length, seed=4).abs() / 2).to(dtype).double() for length in (n, m))
    return Problem(measure, x, y, *numbers, **options)


def distances(cost, x, y):
    difference = x[:, None] - y[None]
    if cost == "cityblock":
        return difference.abs().sum(-1)
    squares = (difference**2).sum(-1)
    return squares if cost == "sqeuclidean" else squares.sqrt()


def costs_of(problem, own, parameter):
    """(n, m) costs of a pair's steps, differentiable."""
    x, y, x_times, y_times, x_gaps, y_gaps = own
    n, m = len(x), len(y)
    distance, ones, name = distances(problem.measure.cost, x, y), torch.ones(n, m, dtype=F64), problem.measure.name
    if name == "edit":
        return distance, x_gaps[:, None] * ones, y_gaps * ones
    if name == "edr":
        return (distance >= parameter).double(), ones, ones
    if name == "lcss":
        return 2 * (distance > parameter).double(), ones, ones
    if name == "twed":
        places = torch.arange(n, dtype=F64)[:, None] - torch.arange(m)[None]
        between = problem.measure.parameter * places if x_times is None else x_times[:, None] - y_times[None]
        match = distance + between.abs()
        before = torch.nn.functional.pad(match[:-1, :-1], (1, 0, 1, 0))
        return match + before, x_gaps[:, None] * ones, y_gaps * ones
    if name == "msm":
        x, y = x[:, 0], y[:, 0]

        def gap(value, before, other):
            low, high = torch.minimum(before, other), torch.maximum(before, other)
            return parameter + torch.relu(torch.maximum(low - value, value - high))

        up = gap(x[1:, None], x[:-1, None], y[None])
        left = gap(y[None, 1:], y[None, :-1], x[:, None])
        pad = torch.nn.functional.pad
        return distance, pad(up, (0, 0, 1, 0), value=math.inf), pad(left, (1, 0), value=math.inf)
    k = (torch.arange(n, dtype=F64)[:, None] - torch.arange(m)[None]).abs()
    weighted = distance / (1 + torch.exp(-parameter * (k - max(n, m) / 2)))
    return weighted, weighted, weighted


def expected_of(problem, b, gamma, arriving, spans=None):
    """Value, costs of steps and gradients of a pair; gradients of what it lacks are None.

    `spans`: of the path along which they are, as rounding may choose between paths that cost the same.
    """
    own, parameter = problem.of_pair(b), torch.tensor(problem.measure.parameter, dtype=F64, requires_grad=True)
    costs = costs_of(problem, own, parameter)
    border, bandwidth = "sum" if problem.measure.sum_border else "inf", None if problem.bandwidth < 0 else problem.bandwidth
    tables = [cost.detach().numpy() for cost in costs]
    value, *masses = oracle.elastic(*tables, gamma, border, bandwidth)
    if spans is not None:
        masses = masses_of_path(spans, tables)
    total = sum(
        (torch.tensor(mass[1:, 1:]) * torch.where(torch.tensor(mass[1:, 1:]) > 0, cost, 0.0)).sum()
        for mass, cost in zip(masses, costs, strict=True)
    )
    if problem.measure.sum_border:  # U of column 0, L of row 0
        gaps = own[4:] if own[4] is not None else (torch.ones(len(own[0])), torch.ones(len(own[1])))
        total = total + (torch.tensor(masses[1][1:, 0]) * gaps[0]).sum() + (torch.tensor(masses[2][0, 1:]) * gaps[1]).sum()
    leaves = [*own, parameter]
    known = [leaf for leaf in leaves if leaf is not None]
    found = iter(torch.autograd.grad(total, known, allow_unused=True) if total.requires_grad else [None] * len(known))
    gradients = [None if leaf is None else next(found) for leaf in leaves]
    gradients = [
        None if leaf is None else arriving * (torch.zeros_like(leaf) if gradient is None else gradient)
        for leaf, gradient in zip(leaves, gradients, strict=True)
    ]
    of_gamma = 0.0 if gamma == 0 else arriving * (value - total.item()) / gamma
    return value, tables, gradients, of_gamma


def run(problem, kernel, gamma, dtype, save=True, at=GPU, **changed):
    """The op's inputs on a device, and what it returns."""
    padded = {}
    for name in ("x", "y", "x_times", "y_times", "x_gaps", "y_gaps"):
        numbers = getattr(problem, name)
        if numbers is not None and problem.lengths is not None:
            numbers = numbers.clone()
            for own, length in zip(numbers, problem.lengths[name[0] == "y"], strict=True):
                own[length:] = math.nan
        padded[name] = numbers if numbers is None else numbers.to(at, dtype)
    index = (
        (None, None) if problem.index is None else [torch.tensor(i, dtype=torch.int32, device=at) for i in problem.index]
    )
    lengths = (None, None) if problem.lengths is None else [torch.tensor(own, device=at) for own in problem.lengths]
    options = {"gammas": None, "parameters": None, "bandwidths": None, **changed}
    series = [*index, *padded.values()]
    rest = [
        *lengths, options["bandwidths"], options["gammas"], options["parameters"], problem.bandwidth, gamma,
        problem.measure.parameter, problem.measure.name, problem.measure.cost, problem.measure.sum_border, kernel,
    ]  # fmt: skip
    return series, rest, ops.elastic(*series, *rest, save)


def gradients_of(series, rest, value, saved, arriving, need_numbers=True):
    """All of them; without those of numbers strips go back where anti-diagonals would."""
    needs = (True,) * 4
    return ops.elastic_backward(*series[:2], arriving, *series[2:], value, saved, *rest, *needs, need_numbers)


def path_of(spans, n):
    """Cells and steps of a path from its spans, as the oracle gives them: cells from 0, the border -1."""
    cells, steps = [], []
    for i, (first, last) in enumerate(spans[: n + 1].tolist()):
        if i > 0:
            above = spans[i - 1][1].item()
            assert first in (above, above + 1)
            cells.append([i - 1, first - 1])
            steps.append(1 if first == above else 0)
        else:
            assert first == 0
        for j in range(first + 1, last + 1):
            cells.append([i - 1, j - 1])
            steps.append(2)
    return cells, steps


def masses_of_path(spans, tables):
    """D, U and L as the oracle has them, 1 on the path."""
    masses = np.zeros((3, len(tables[0]) + 1, len(tables[0][0]) + 1))
    for (i, j), step in zip(*path_of(spans, len(tables[0])), strict=True):
        masses[step, i + 1, j + 1] = 1
    return masses


def cost_of_path(spans, tables, has_sums):
    """What a path costs. Steps that may change places without another cost are in the order that rounding has found."""
    diagonal, up, left = tables
    cells, steps = path_of(spans, len(diagonal))
    assert cells[-1] == [len(diagonal) - 1, len(diagonal[0]) - 1]
    assert has_sums or all(i >= 0 and j >= 0 for i, j in cells)
    return sum((diagonal, up, left)[step][max(i, 0), max(j, 0)] for (i, j), step in zip(cells, steps, strict=True))


def assert_as_expected(problem, kernel, gamma=0.0, dtype=F64, at=GPU):
    series, rest, (value, saved) = run(problem, kernel, gamma, dtype, at=at)
    assert value.dtype == dtype
    batch = len(problem.pairs())
    arriving = normal(batch, seed=9).to(at, dtype)
    *gradients, of_parameter, of_gamma = (
        part.cpu().double() for part in gradients_of(series, rest, value, saved, arriving)
    )
    others = [part.cpu().double() for part in gradients_of(series, rest, value, saved, arriving, need_numbers=False)[:6]]
    for b in problem.pairs():
        own = problem.of_pair(b)
        expected, tables, parts, expected_gamma = expected_of(
            problem, b, gamma, arriving[b].item(), saved[b].cpu() if gamma == 0 else None
        )
        n, m = len(own[0]), len(own[1])
        scale = max(abs(expected), gamma)
        assert value[b].item() == pytest.approx(expected, abs=VALUE_TOLERANCE[dtype] * scale), (b, str(problem.measure))
        if gamma == 0:
            assert cost_of_path(saved[b].cpu(), tables, problem.measure.sum_border) == pytest.approx(
                expected, rel=VALUE_TOLERANCE[dtype]
            )
            empty = saved[b, n + 1 :].cpu()
            assert (empty == torch.tensor([series[3].shape[1] + 1, series[3].shape[1]])).all()
        for place, (part, found) in itertools.chain(
            *(enumerate(zip(parts[:6], all_found, strict=True)) for all_found in (gradients, others))
        ):
            length = (n, m)[place % 2]
            if place in (0, 1) or (part is not None and problem.measure.name not in ("edr", "lcss")):
                largest = max(part.abs().max().item(), 1e-3)
                error = (found[b, :length] - part).abs().max().item()
                assert error <= 2 * GRADIENT_TOLERANCE[dtype] * largest, (b, place, error)
            assert (found[b, length:] == 0).all(), (b, place)
        if problem.measure.name in ("msm", "weighted"):
            assert of_parameter[b].item() == pytest.approx(parts[6].item(), rel=1e-9 if dtype == F64 else 1e-4, abs=1e-6)
        # The value less the expected cost, over gamma: small gammas show how both are rounded, a mass once a step.
        rounding = torch.finfo(dtype).eps * scale * math.sqrt(n + m) / gamma if 0 < gamma <= SMALL_GAMMA else 0.0
        within = {"rel": 1e-8 if dtype == F64 else 1e-3, "abs": max(1e-6, 4 * abs(arriving[b].item()) * rounding)}
        assert of_gamma[b].item() == pytest.approx(expected_gamma, **within), (b, str(problem.measure))
    without = run(problem, kernel, gamma, dtype, save=False, at=at)[2]
    assert torch.equal(without[0], value)
    assert without[1].numel() == 0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_values_paths_and_gradients(measure, gamma, kernel):
    dim = 3 if measure.cost == "euclidean" else 1
    for n, m in ((13, 9), (8, 17), (1, 5), (6, 1), (1, 1)):
        assert_as_expected(made(measure, n, m, dim), kernel, gamma)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_float32(measure, gamma, kernel):
    assert_as_expected(made(measure, 14, 11, dtype=F32), kernel, gamma, F32)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_lengths_and_indices(measure, gamma, kernel):
    lengths = [9, 4, 12], [10, 1, 6]
    assert_as_expected(made(measure, 12, 10, lengths=lengths), kernel, gamma)
    assert_as_expected(made(measure, 12, 10, lengths=lengths, index=([2, 0, 0, 1], [0, 1, 2, 2])), kernel, gamma)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_bands(measure, gamma, kernel):
    for bandwidth in (0, 1, 3, 40):
        for n, m in ((12, 12), (9, 13), (13, 9)):
            assert_as_expected(made(measure, n, m, batch=1, bandwidth=bandwidth), kernel, gamma)
        assert_as_expected(made(measure, 12, 10, lengths=([9, 4, 12], [10, 1, 6]), bandwidth=bandwidth), kernel, gamma)


# More than a strip, and more strips than a block has; tall and wide tables. 64 rows are a strip of float64, 128 of float32.
LONG = {F64: ((70, 90), (130, 41), (530, 37)), F32: ((130, 150), (260, 33), (1030, 35))}


@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_many_strips(measure, dtype):
    dim = 2 if measure.cost == "euclidean" else 1
    for n, m in LONG[dtype]:
        assert_as_expected(made(measure, n, m, dim, batch=1, dtype=dtype), "auto", dtype=dtype)
    n, m = LONG[dtype][0]
    assert_as_expected(made(measure, n, m, dim, batch=1, dtype=dtype, bandwidth=20), "auto", dtype=dtype)
    assert_as_expected(
        made(measure, n, m, dim, batch=2, dtype=dtype, lengths=([n, 66], [50, m]), bandwidth=9), "auto", dtype=dtype
    )


SOFT = [own for own in MEASURES if own.cost != "sqeuclidean" or own == WEIGHTED]  # by strips, in one dimension


@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
@pytest.mark.parametrize("measure", SOFT, ids=str)
def test_many_soft_strips(measure, dtype):
    for n, m in LONG[dtype]:
        assert_as_expected(made(measure, n, m, batch=1, dtype=dtype), "auto", 0.3, dtype)
    n, m = LONG[dtype][0]
    assert_as_expected(made(measure, n, m, batch=1, dtype=dtype, bandwidth=20), "auto", 0.3, dtype)
    assert_as_expected(
        made(measure, n, m, batch=2, dtype=dtype, lengths=([n, 66], [50, m]), bandwidth=9), "auto", 0.3, dtype
    )


# The exponents of costs: beyond what float32 holds exactly, and below its rounding.
@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
@pytest.mark.parametrize("gamma", [1e-6, SMALL_GAMMA, 100.0])
@pytest.mark.parametrize("measure", SOFT, ids=str)
def test_small_and_large_gammas(measure, gamma, dtype):
    assert_as_expected(made(measure, 140, 45, batch=1, dtype=dtype), "auto", gamma, dtype)
    assert_as_expected(made(measure, 30, 300, batch=1, dtype=dtype), "auto", gamma, dtype)


@pytest.mark.long
@pytest.mark.parametrize("measure", [own for own in MEASURES if own.cost != "sqeuclidean" or own == WEIGHTED], ids=str)
def test_many_pairs_have_taller_strips(measure):
    batch = 8 * 132  # warps that an H200 is given at least
    for n, m, saves in ((150, 4, (False, True)), (270, 3, (False,))):
        problem = made(measure, n, m, batch=batch, dtype=F32)
        expected = run(problem, "cpu", 0.0, F32, False, at="cpu")[2][0]
        for save in saves:
            value, spans = run(problem, "auto", 0.0, F32, save)[2]
            assert torch.allclose(value.cpu(), expected, rtol=VALUE_TOLERANCE[F32])
            for b in (0, 7, batch - 1) if save else ():
                costs = [cost.detach().numpy() for cost in costs_of(problem, problem.of_pair(b), measure.parameter)]
                cost = cost_of_path(spans[b].cpu(), costs, measure.sum_border)
                assert cost == pytest.approx(expected[b].item(), rel=VALUE_TOLERANCE[F32])


@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
@pytest.mark.parametrize("border", ["inf", "sum"])
def test_many_strips_of_ready_made_costs(border, dtype):
    for (n, m), bandwidth in ((LONG[F64][0], -1), (LONG[F64][0], 15), (LONG[F64][2], -1)):
        costs = ready(n, m, 1, dtype)
        value, saved, *_ = run_ready(costs, "auto", 0.0, border, bandwidth=bandwidth)
        own = [cost[0].cpu().double().numpy() for cost in costs]
        expected = oracle.elastic(*own, 0.0, border, None if bandwidth < 0 else bandwidth)[0]
        assert value.item() == pytest.approx(expected, rel=VALUE_TOLERANCE[dtype])
        assert cost_of_path(saved[0].cpu(), own, border == "sum") == pytest.approx(expected, rel=VALUE_TOLERANCE[dtype])


def ready(n, m, batch=3, dtype=F64):
    return [(normal(batch, n, m, seed=seed).abs() + 0.1).to(GPU, dtype) for seed in (1, 2, 3)]


def run_ready(costs, kernel, gamma, border, lengths=None, bandwidth=-1, gammas=None):
    """Value, what is saved, D, U, L and the gradient of gamma."""
    lengths = (None, None) if lengths is None else [torch.tensor(own, device=GPU) for own in lengths]
    rest = [*lengths, None, gammas, bandwidth, gamma, border == "sum", kernel]
    value, saved = ops.elastic_from_costs(*costs, *rest, True)
    return value, saved, *ops.elastic_from_costs_backward(torch.ones_like(value), *costs, value, saved, *rest, True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("border", ["inf", "sum"])
def test_ready_made_costs(border, gamma, dtype, kernel):
    for n, m, lengths, bandwidth in ((11, 14, None, -1), (1, 6, None, -1), (12, 10, ([9, 4, 12], [10, 1, 6]), 2)):
        costs = ready(n, m, dtype=dtype)
        value, saved, *masses, of_gamma = run_ready(costs, kernel, gamma, border, lengths, bandwidth)
        for b in range(3):
            rows, columns = (n, m) if lengths is None else (lengths[0][b], lengths[1][b])
            own = [cost[b, :rows, :columns].cpu().double().numpy() for cost in costs]
            expected, *tables = oracle.elastic(*own, gamma, border, None if bandwidth < 0 else bandwidth)
            assert value[b].item() == pytest.approx(expected, rel=VALUE_TOLERANCE[dtype])
            if gamma == 0:
                path = oracle.elastic_path(*own, border, None if bandwidth < 0 else bandwidth)
                assert path_of(saved[b].cpu(), rows) == path
                assert cost_of_path(saved[b].cpu(), own, border == "sum") == pytest.approx(
                    expected, rel=VALUE_TOLERANCE[dtype]
                )
            total = 0.0
            for step, (mass, table) in enumerate(zip(masses, tables, strict=True)):
                inner = table[1:, 1:].copy()
                if step == 1:
                    inner[:, 0] += table[1:, 0]
                if step == 2:
                    inner[0] += table[0, 1:]
                total += (inner * own[step]).sum()
                padded = np.zeros((n, m))
                padded[:rows, :columns] = inner
                assert np.abs(mass[b].cpu().double().numpy() - padded).max() <= GRADIENT_TOLERANCE[dtype]
            slope = 0 if gamma == 0 else (expected - total) / gamma
            assert of_gamma[b].item() == pytest.approx(slope, abs=1e-8 if dtype == F64 else 1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_steps_that_are_forbidden_or_no_numbers(gamma, kernel):
    costs = ready(6, 7, batch=5)
    costs[0][0, 2] = math.inf  # the way goes on by other steps
    for cost in costs:
        cost[1, 3] = math.inf  # no way
    costs[1][2, 4, 2] = math.nan
    costs[2][3, 5, 6] = -math.inf
    costs[0][4] *= -1
    value, saved, *masses, _ = run_ready(costs, kernel, gamma, "sum")
    own = [cost[0].cpu().numpy() for cost in costs]
    assert value[0].item() == pytest.approx(oracle.elastic(*own, gamma, "sum")[0])
    own = [cost[4].cpu().numpy() for cost in costs]
    assert value[4].item() == pytest.approx(oracle.elastic(*own, gamma, "sum")[0])
    assert value[1] == math.inf
    assert value[2:4].isnan().all()
    for mass in masses:
        assert mass[1:4].isnan().all()
        assert mass[[0, 4]].isfinite().all()
    if gamma == 0:
        assert (saved[1:4].cpu() == torch.tensor([8, 7])).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_is_no_number_spoils_its_own_pair(measure, gamma, kernel):
    problem = made(measure, 9, 8)
    _, _, (expected, _) = run(problem, kernel, gamma, F64)
    problem.x[1, 4] = math.nan
    series, rest, (value, saved) = run(problem, kernel, gamma, F64)
    assert value[1].isnan()
    assert torch.equal(value[[0, 2]], expected[[0, 2]])
    arriving = torch.tensor([1.0, 1.0, 0.0], dtype=F64, device=GPU)
    for b, with_value in ((1, 1.0), (1, 0.0)):
        arriving[b] = with_value
        for gradient in gradients_of(series, rest, value, saved, arriving)[:2]:
            assert (gradient[1].isnan() if with_value else gradient[1] == 0).all()
            assert gradient[[0, 2]].isfinite().all()
    problem = made(measure, 9, 8, lengths=([9, 9, 9], [8, 8, 8]))
    series, rest, _ = run(problem, kernel, gamma, F64)
    rest[0] = torch.tensor([9, 0, 10], device=GPU)
    value, saved = ops.elastic(*series, *rest, True)
    assert value[0] == expected[0]
    assert value[1:].isnan().all()
    for gradient in gradients_of(series, rest, value, saved, torch.ones(3, dtype=F64, device=GPU))[:2]:
        assert gradient[1:].isnan().all()
        assert gradient[0].isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_gammas_and_parameters_of_each_pair(kernel):
    gammas = torch.tensor([0.2, 1.0, 3.0], dtype=F64, device=GPU)
    for measure in (MSM, WEIGHTED):
        problem, parameters = made(measure, 9, 11), [0.05, 0.3, 0.9]
        changed = {"gammas": gammas, "parameters": torch.tensor(parameters, dtype=F64, device=GPU)}
        _, _, (value, _) = run(problem, kernel, 1.0, F64, **changed)
        for b, parameter in enumerate(parameters):
            own = problem._replace(measure=measure._replace(parameter=parameter))
            assert value[b].item() == pytest.approx(expected_of(own, b, gammas[b].item(), 1.0)[0], rel=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_pairs(kernel):
    for gamma in (0.0, 0.5):
        value = run(made(TWED, 4, 5)._replace(index=([], [])), kernel, gamma, F64)[2][0]
        assert value.shape == (0,)


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_pairs_than_a_grid_has_rows(kernel):
    batch = 70_000
    x, y = (normal(batch, 2, 1, seed=seed).to(GPU) for seed in (1, 2))
    gaps = torch.full((batch, 2), 0.25, dtype=F64, device=GPU)
    rest = [*[None] * 5, -1, 0.0, 0.0, "edit", "cityblock", True, kernel]
    value, _ = ops.elastic(None, None, x, y, None, None, gaps, gaps, *rest, False)
    match = (x - y.transpose(1, 2)).abs()
    steps = torch.stack([match[:, 0, 0] + match[:, 1, 1], *(match[:, i, j] + 0.5 for i in (0, 1) for j in (0, 1))])
    assert torch.allclose(value, steps.amin(0).clamp(max=1.0))


def test_unknown_kernels_are_named():
    with pytest.raises(RuntimeError, match="kernel: expected 'auto' or 'diagonal'"):
        run(made(TWED, 4, 5), "stencil", 0.0, F64)


@pytest.mark.skipif(GPU != "cuda", reason="needs a GPU's streams and graphs")
@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_the_current_stream_and_graphs(gamma):
    problem = made(TWED, 70, 90, dtype=F32)
    series, rest, (expected, saved) = run(problem, "auto", gamma, F32)
    arriving = torch.ones_like(expected)
    of_x = gradients_of(series, rest, expected, saved, arriving)[0]
    held = [None if part is None else part.clone() for part in series]
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        value, kept = ops.elastic(*held, *rest, True)
        gradient = gradients_of(held, rest, value, kept, arriving)[0]
    with torch.cuda.stream(stream):
        held[2].copy_(series[2] + 1)
        graph.replay()
        held[2].copy_(series[2])
        graph.replay()
    stream.synchronize()
    assert torch.equal(value, expected)
    assert torch.equal(gradient, of_x)
