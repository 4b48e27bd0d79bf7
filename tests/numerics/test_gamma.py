"""gamma and the warp penalty as tensors: values, and the gradients of (6)."""

import functools
import math

import numpy as np
import oracle
import pytest
import torch
from cases import COSTS, assert_gradients_close, assert_values_close, normal, numpy64

from torchsoftdtw import SoftDTW, dtw, soft_dtw, soft_dtw_from_cost

GAMMAS, PENALTIES = [0.05, 1.0, 30.0], [0.0, 0.4, 2.5]
LENGTHS = {"full": {}, "lengths": {"x_lengths": [17, 5, 9], "y_lengths": [11, 21, 1]}}
BANDS = {"no_band": None, "band": 3}


def tensor(values, kernel, **options):
    return torch.tensor(values, dtype=torch.float64, device=kernel.device, **options)


def series(kernel, dtype=torch.float64, n=17, m=21, dim=2):
    x, y = normal(3, n, dim, seed=1, dtype=dtype), normal(3, m, dim, seed=2, dtype=dtype)
    return x.to(kernel.device), y.to(kernel.device)


@pytest.mark.parametrize("penalty", [0.0, 0.3, PENALTIES], ids=["", "penalty", "penalties"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_every_pair_has_its_own_gamma_and_penalty(kernel, dtype, cost, band, lengths, penalty):
    x, y = series(kernel, dtype)
    x.requires_grad_(), y.requires_grad_()
    options = dict(cost=cost, bandwidth=BANDS[band], kernel=kernel.name)
    per_pair = penalty if isinstance(penalty, list) else [penalty] * 3
    own_penalty = tensor(penalty, kernel) if isinstance(penalty, list) else penalty
    value = soft_dtw(x, y, tensor(GAMMAS, kernel), warp_penalty=own_penalty, **LENGTHS[lengths], **options)
    gradients = torch.autograd.grad(value.sum(), (x, y))
    for b in range(3):
        own = {name: ends[b : b + 1] for name, ends in LENGTHS[lengths].items()}
        pair = [numpy64(series)[b : b + 1] for series in (x, y)]
        expected = oracle.soft_dtw(*pair, GAMMAS[b], cost, **own, bandwidth=BANDS[band], warp_penalty=per_pair[b])
        assert_values_close(numpy64(value)[b : b + 1], expected[0], dtype, GAMMAS[b])
        for actual, wanted in zip(gradients, expected[1:], strict=True):
            assert_gradients_close(numpy64(actual)[b : b + 1], wanted, dtype)


@pytest.mark.parametrize("penalty", [0.0, 0.3, PENALTIES], ids=["", "penalty", "penalties"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("cost", [*COSTS, lambda x, y: torch.cos(x @ y.transpose(1, 2)) + 2])
def test_gradients_are_those_of_finite_differences(kernel, cost, band, lengths, penalty):
    x, y = series(kernel, n=5, m=6)
    lengths = {name: [min(end, 5) for end in ends] for name, ends in LENGTHS[lengths].items()}
    options = dict(cost=cost, bandwidth=BANDS[band], kernel=kernel.name, **lengths)
    inputs = [x.requires_grad_(), y.requires_grad_(), tensor([0.3, 1.0, 5.0], kernel, requires_grad=True)]
    if isinstance(penalty, list):
        inputs.append(tensor([0.2, 0.5, 2.0], kernel, requires_grad=True))

    def value(x, y, gamma, warp_penalty=penalty):
        return soft_dtw(x, y, gamma, warp_penalty=warp_penalty, **options)

    assert torch.autograd.gradcheck(value, inputs, eps=1e-6, atol=1e-6, rtol=1e-5, fast_mode=True)
    numbers = functools.partial(value, x.detach(), y.detach())  # one by one, not along a random direction
    assert torch.autograd.gradcheck(numbers, inputs[2:], eps=1e-6, atol=1e-6, rtol=1e-5)
    # One for all, beside series that need no gradient.
    one = tensor(0.7, kernel, requires_grad=True)
    assert torch.autograd.gradcheck(lambda gamma: value(x.detach(), y.detach(), gamma), one, eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("band", BANDS)
def test_gradients_of_cost_matrices_are_those_of_finite_differences(kernel, band, lengths):
    x, y = series(kernel, n=5, m=6)
    costs = torch.cdist(x, y).requires_grad_()
    lengths = {name: [min(end, 5) for end in ends] for name, ends in LENGTHS[lengths].items()}
    inputs = (costs, tensor(GAMMAS, kernel, requires_grad=True), tensor([0.1, 0.5, 2.0], kernel, requires_grad=True))
    options = dict(bandwidth=BANDS[band], kernel=kernel.name, **lengths)
    assert torch.autograd.gradcheck(
        lambda costs, gamma, penalty: soft_dtw_from_cost(costs, gamma, warp_penalty=penalty, **options), inputs, atol=1e-6
    )


def difference_quotient(value, at, step):
    return (value(at + step) - value(at - step)) / (2 * step)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_the_gradient_to_gamma_is_right_in_float32(kernel, gamma, offset):
    """Even far from the origin: Euler's theorem is applied around the mean."""
    x, y = (torch.round(series * 64) / 64 + offset for series in (normal(3, 60, 2, seed=1), normal(3, 70, 2, seed=2)))
    own = torch.full((3,), gamma, dtype=torch.float64, device=kernel.device, requires_grad=True)
    value = soft_dtw(x.float().to(kernel.device), y.float().to(kernel.device), own, kernel=kernel.name)
    (actual,) = torch.autograd.grad(value.sum(), own)
    for b in range(3):
        costs = oracle.cost_and_slopes(numpy64(x)[b], numpy64(y)[b], "sqeuclidean")[0]
        step = 1e-4 * gamma
        wanted = difference_quotient(lambda g, costs=costs: oracle.value_and_alignment(costs, g)[0], gamma, step)
        # The entropy of the paths, which float32 values know to a rounding of value / gamma; gradients are off by 1e-6.
        bound = 1e-4 * abs(wanted) + 2e-6 * abs(value[b].item()) / gamma
        assert abs(actual[b].item() - wanted) <= bound, (actual[b].item(), wanted)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 100.0])
def test_the_gradient_to_gamma_of_padded_pairs_far_from_the_origin(kernel, gamma):
    """The mean is that of the series alone, however much padding there is."""
    sizes = {"x_lengths": [60, 25, 41], "y_lengths": [70, 33, 20]}
    x, y = (torch.round(normal(3, n, 2, seed=s) * 64) / 64 + 1000 for s, n in ((1, 300), (2, 280)))
    own = torch.full((3,), gamma, dtype=torch.float64, device=kernel.device, requires_grad=True)
    value = soft_dtw(x.float().to(kernel.device), y.float().to(kernel.device), own, kernel=kernel.name, **sizes)
    (actual,) = torch.autograd.grad(value.sum(), own)
    for b, (n, m) in enumerate(zip(*sizes.values(), strict=True)):
        costs = oracle.cost_and_slopes(numpy64(x)[b, :n], numpy64(y)[b, :m], "sqeuclidean")[0]
        wanted = difference_quotient(lambda g, costs=costs: oracle.value_and_alignment(costs, g)[0], gamma, 1e-4 * gamma)
        bound = 1e-4 * abs(wanted) + 2e-6 * abs(value[b].item()) / gamma  # as above
        assert abs(actual[b].item() - wanted) <= bound, (actual[b].item(), wanted)


@pytest.mark.parametrize("forbidden", [1e4, 1e9, math.inf])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_forbidden_cells_have_no_part_in_the_gradient_to_gamma(kernel, dtype, forbidden):
    costs = normal(2, 30, 34, seed=1, dtype=dtype).square()
    costs[:, 3:27:2, 5::3] = forbidden
    gamma = torch.full((2,), 0.5, dtype=torch.float64, device=kernel.device, requires_grad=True)
    value = soft_dtw_from_cost(costs.to(kernel.device), gamma, kernel=kernel.name)
    (actual,) = torch.autograd.grad(value.sum(), gamma)
    finite = np.minimum(numpy64(costs), 1e9)
    for b in range(2):
        wanted = difference_quotient(lambda g, b=b: oracle.value_and_alignment(finite[b], g)[0], 0.5, 1e-5)
        assert actual[b].item() == pytest.approx(wanted, rel=1e-4)


def test_padding_may_be_nan(kernel):
    x, y = series(kernel)
    lengths = LENGTHS["lengths"]
    gamma = tensor(GAMMAS, kernel, requires_grad=True)
    clean = soft_dtw(x, y, gamma, kernel=kernel.name, **lengths)
    x, y = x.clone(), y.clone()
    for batch, ends in ((x, lengths["x_lengths"]), (y, lengths["y_lengths"])):
        for row, end in zip(batch, ends, strict=True):
            row[end:] = torch.nan
    value = soft_dtw(x, y, gamma, kernel=kernel.name, **lengths)
    assert torch.equal(value, clean)
    penalty = tensor(PENALTIES, kernel, requires_grad=True)
    (expected,) = torch.autograd.grad(clean.sum(), gamma)
    assert torch.equal(torch.autograd.grad(value.sum(), gamma)[0], expected) and expected.isfinite().all()
    both = soft_dtw(x, y, gamma, warp_penalty=penalty, kernel=kernel.name, **lengths)
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(both.sum(), (gamma, penalty)))


@pytest.mark.parametrize("form", [lambda g: g, list, np.array, lambda g: torch.tensor(g, dtype=torch.float32)])
def test_one_per_pair_in_any_form(kernel, form):
    x, y = series(kernel)
    expected = soft_dtw(x, y, tensor([0.25, 1.0, 32.0], kernel), warp_penalty=tensor([0.0, 0.5, 2.0], kernel))
    assert torch.equal(soft_dtw(x, y, form([0.25, 1.0, 32.0]), warp_penalty=form([0.0, 0.5, 2.0])), expected)


def test_a_tensor_of_one_number_is_that_number(kernel):
    x, y = series(kernel)
    for dtype in (torch.float64, torch.float32, torch.int64):
        gamma = torch.tensor(2, dtype=dtype)
        torch.testing.assert_close(soft_dtw(x, y, gamma, kernel=kernel.name), soft_dtw(x, y, 2.0, kernel=kernel.name))
    alone = soft_dtw(x[0], y[0], torch.tensor([2.0]), kernel=kernel.name)
    torch.testing.assert_close(alone, soft_dtw(x[0], y[0], 2.0, kernel=kernel.name))
    gamma = torch.tensor(2.0, requires_grad=True)
    soft_dtw(x, y, gamma, kernel=kernel.name).sum().backward()
    assert gamma.grad.shape == () and gamma.grad.dtype == torch.float32 and gamma.grad.device.type == "cpu"


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["diagonal", "stencil", "tiled"])
@pytest.mark.parametrize("batch", [3, 2100])
@pytest.mark.parametrize("argument", ["gamma", "warp_penalty"])
def test_a_wrong_number_on_the_device_gives_nan_for_its_pair_alone(name, batch, argument):
    x, y = (normal(batch, length, 1, seed=length).float().cuda().requires_grad_() for length in (40, 50))
    for wrong in (-1.0, math.nan, math.inf) + ((0.0, 1e-44, 1e44) if argument == "gamma" else ()):
        numbers = torch.full((batch,), 0.5, device="cuda", dtype=torch.float64)
        expected = soft_dtw(x, y, kernel=name, **{argument: numbers})
        numbers[1] = wrong
        value = soft_dtw(x, y, kernel=name, **{argument: numbers})
        kept = [0, 2]
        assert value[1].isnan()
        assert torch.equal(value[kept], expected[kept])
        with torch.no_grad():
            alone = soft_dtw(x, y, kernel=name, **{argument: numbers})
        assert alone[1].isnan() and alone[kept].isfinite().all()
        (gradient,) = torch.autograd.grad(value.sum(), x)
        assert gradient[1].isnan().all() and gradient[kept].isfinite().all()


@pytest.mark.cuda
def test_numbers_on_the_device_are_not_waited_for():
    x, y = (normal(3, length, 1, seed=length).float().cuda() for length in (40, 50))
    gamma = torch.full((3,), 0.5, device="cuda", requires_grad=True)
    soft_dtw(x, y, gamma).sum().backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        soft_dtw(x, y, gamma, warp_penalty=gamma.detach()).sum().backward()
        soft_dtw(x, y, gamma, open_ends=True).sum().backward()
        soft_dtw(x, y, 0.5, open_ends=True, length_norm=True, warp_penalty=gamma.detach())
        dtw(x, y, warp_penalty=gamma, open_ends=True).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_learned_gamma_of_a_module():
    x, y = normal(3, 17, 2, seed=1), normal(3, 21, 2, seed=2)
    loss = SoftDTW(torch.nn.Parameter(torch.tensor(0.5)))
    assert [name for name, _ in loss.named_parameters()] == ["gamma"]
    loss(x, y).backward()
    assert loss.gamma.grad.item() < 0  # the softer, the smaller
    fixed = SoftDTW(torch.tensor([0.5, 1.0, 2.0]), warp_penalty=torch.tensor(0.25), reduction="none")
    assert fixed.double().gamma.dtype == torch.float64 and not list(fixed.parameters())
    torch.testing.assert_close(
        fixed(x, y), soft_dtw(x, y, torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), warp_penalty=0.25)
    )
    assert repr(fixed).startswith("SoftDTW(gamma=tensor of shape (3,), cost=sqeuclidean")


@pytest.mark.parametrize("cost", ["sqeuclidean", "huber", "cosine"])
def test_compiles_without_a_graph_break(kernel, cost):
    torch._dynamo.reset()
    x, y = series(kernel, torch.float32)
    gamma, penalty = tensor(GAMMAS, kernel, requires_grad=True), tensor(PENALTIES, kernel, requires_grad=True)

    def loss(x, y, gamma, penalty):
        value = soft_dtw(x, y, gamma, cost=cost, kernel=kernel.name)
        return (value + soft_dtw(x, y, gamma, cost=cost, warp_penalty=penalty, kernel=kernel.name)).sum()

    expected = torch.autograd.grad(loss(x, y, gamma, penalty), (gamma, penalty))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(x, y, gamma, penalty), (gamma, penalty)), expected)


@pytest.mark.parametrize(("cost", "penalty"), [("sqeuclidean", 0.5), ("huber", 0.0)])
def test_a_gradient_that_needs_a_matrix_is_an_error_of_the_op(cost, penalty):
    from torchsoftdtw._kernels import ops

    x, y = normal(3, 5, 2, seed=1), normal(3, 6, 2, seed=2)
    gammas = torch.ones(3, dtype=torch.float64, requires_grad=True)
    value, _ = ops.forward(x, y, None, None, None, gammas, None, -1, 1.0, penalty, cost, "cpu", 0, True)
    with pytest.raises(RuntimeError, match="forward_from_cost has both"):
        value.sum().backward()
