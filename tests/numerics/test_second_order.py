"""Derivatives beyond the gradient: Hessian products and third-order products against recursions that autograd
differentiates, finite differences, and ranges of gamma where a careless exponential would overflow."""

import oracle
import pytest
import torch
from cases import COSTS, DEVICES, normal
from torch.autograd import gradcheck, gradgradcheck

from torchsoftdtw import soft_dtw, soft_dtw_alignment, soft_dtw_from_cost
from torchsoftdtw._kernels import ops

LENGTHS = {"full": {}, "lengths": {"x_lengths": [5, 1, 3], "y_lengths": [2, 6, 4]}}
BANDS = {"no_band": None, "band": 1, "bands": [0, 1, 9]}


def product_cost(x, y):
    return torch.cos(x @ y.transpose(1, 2)) + 2


def options_of(device, batch, x_lengths=None, y_lengths=None, bandwidth=None, gamma=0.5, warp_penalty=0.0):
    """The arguments that the ops share."""

    def per_pair(values):
        return None if values is None else torch.tensor(values, device=device)[:batch]

    one = bandwidth if isinstance(bandwidth, int) else -1
    many = bandwidth if isinstance(bandwidth, list) else None
    return per_pair(x_lengths), per_pair(y_lengths), per_pair(many), None, None, one, gamma, warp_penalty


@pytest.mark.parametrize("penalty", [0.0, 0.4], ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("gamma", [5.0, 0.5, 0.05])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_products_agree_with_the_oracle(device, dtype, gamma, lengths, band, penalty):
    costs, first, second = (normal(3, 5, 6, seed=s, dtype=dtype) for s in (1, 2, 3))
    costs = costs.square()
    options = options_of(device, 3, bandwidth=BANDS[band], gamma=gamma, warp_penalty=penalty, **LENGTHS[lengths])
    on_device = [tensor.to(device) for tensor in (costs, first, second)]
    along, alignment, product = ops.hessian_product(*on_device[:2], *options, True)
    again, third = ops.third_order_product(*on_device, *options)
    rounding = 1e-10 if dtype == torch.float64 else 1e-5
    for b in range(3):
        n, m = (
            LENGTHS[lengths][key][b] if LENGTHS[lengths] else size for key, size in (("x_lengths", 5), ("y_lengths", 6))
        )
        radius = BANDS[band][b] if band == "bands" else BANDS[band]
        pair = [tensor[b].double() for tensor in (costs, first, second)]
        expected = oracle.products(*pair, n, m, gamma, radius, penalty)
        for k, (actual, wanted) in enumerate(zip((along, alignment, product, third), expected, strict=True)):
            order = max(k - 1, 0)  # each order divides by gamma once more
            torch.testing.assert_close(
                actual[b].cpu().double(), wanted, rtol=rounding, atol=rounding * max(1.0, (2 / gamma) ** order)
            )
        torch.testing.assert_close(again[b], product[b], rtol=0, atol=0)


@pytest.mark.parametrize("penalty", [0.0, 0.4], ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", [*COSTS, product_cost])
def test_second_derivatives_are_those_of_finite_differences(kernel, cost, lengths, band, penalty):
    x = normal(3, 5, 2, seed=1).to(kernel.device).requires_grad_()
    y = normal(3, 6, 2, seed=2).to(kernel.device).requires_grad_()
    options = dict(cost=cost, bandwidth=BANDS[band], warp_penalty=penalty, kernel=kernel.name, **LENGTHS[lengths])
    assert gradgradcheck(lambda x, y: soft_dtw(x, y, 0.5, **options), (x, y), fast_mode=True, atol=1e-6)


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_second_derivatives_of_cost_matrices_are_those_of_finite_differences(kernel, lengths, band):
    costs = normal(3, 5, 6, seed=1).to(kernel.device).requires_grad_()
    options = dict(bandwidth=BANDS[band], warp_penalty=0.3, kernel=kernel.name, **LENGTHS[lengths])
    assert gradgradcheck(lambda costs: soft_dtw_from_cost(costs, 0.5, **options), (costs,), fast_mode=True, atol=1e-6)


@pytest.mark.parametrize("only", ["x", "y"])
def test_second_derivatives_of_one_side_alone(kernel, only):
    x, y = normal(2, 5, 2, seed=1).to(kernel.device), normal(2, 6, 2, seed=2).to(kernel.device)
    if only == "x":
        assert gradgradcheck(lambda x: soft_dtw(x, y, 0.5, kernel=kernel.name), (x.requires_grad_(),), atol=1e-6)
    else:
        assert gradgradcheck(lambda y: soft_dtw(x, y, 0.5, kernel=kernel.name), (y.requires_grad_(),), atol=1e-6)


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", [*COSTS, product_cost])
@pytest.mark.parametrize("device", DEVICES)
def test_alignments_have_first_and_second_derivatives(device, cost, lengths, band):
    x = normal(3, 5, 2, seed=1).to(device).requires_grad_()
    y = normal(3, 6, 2, seed=2).to(device).requires_grad_()
    options = dict(cost=cost, bandwidth=BANDS[band], warp_penalty=0.2, **LENGTHS[lengths])

    def both(x, y):
        return soft_dtw_alignment(x, y, 0.5, **options)

    assert gradcheck(both, (x, y), atol=1e-6, fast_mode=True)
    assert gradgradcheck(both, (x, y), atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("device", DEVICES)
def test_third_derivatives_work_and_fourth_ones_are_an_error(device):
    x, y = (normal(2, n, 1, seed=n).to(device).requires_grad_() for n in (4, 3))
    slope = soft_dtw(x, y, 0.5).sum()
    for _ in range(3):
        (slope,) = torch.autograd.grad(slope, x, create_graph=True)
        slope = slope.square().sum()
    with pytest.raises(RuntimeError, match="up to the third order"):
        torch.autograd.grad(slope, x)


@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_products_are_derivatives_at_any_gamma(device, dtype, gamma):
    """The derivative of E is what a small step of the costs changes, on tables where exp(-C / gamma) underflows."""
    n = 60
    costs = normal(2, n, n + 10, seed=1).square().to(dtype).double().to(device)
    direction = normal(2, n, n + 10, seed=2).to(dtype).double().to(device)
    options = options_of(device, 2, gamma=gamma)
    along, alignment, product = ops.hessian_product(costs.to(dtype), direction.to(dtype), *options, True)
    assert all(tensor.isfinite().all() for tensor in (along, alignment, product))
    assert alignment.min() >= 0 and alignment.max() <= 1 + 1e-6
    # E bends on a scale of gamma over a path's length.
    step = 1e-6 * gamma
    moved = [ops.hessian_product(costs + sign * step * direction, direction, *options, True)[1] for sign in (1, -1)]
    expected = (moved[0] - moved[1]) / (2 * step)
    # The step changes E by 1e-6 and E has 16 digits less what R / gamma takes: 1e-9 of 1e-6, relative to 1 / gamma.
    rounding = 1e-5 if dtype == torch.float64 else 1e-4
    assert (product - expected).abs().max() * gamma <= rounding
    torch.testing.assert_close(along.double(), (alignment * direction).sum((1, 2)).double(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_long_and_narrow_tables(device):
    for n, m, bandwidth in ((700, 1, None), (1, 700, None), (600, 900, 3), (1100, 1050, 0)):
        costs, first, second = (normal(1, n, m, seed=s) for s in (1, 2, 3))
        costs = costs.square()
        options = options_of(device, 1, bandwidth=bandwidth, gamma=0.7)
        along, alignment, product = ops.hessian_product(costs.to(device), first.to(device), *options, True)
        _, wanted = oracle.value_and_alignment(costs[0].numpy(), 0.7, bandwidth)
        torch.testing.assert_close(alignment[0].cpu(), torch.from_numpy(wanted), rtol=1e-9, atol=1e-9)
        # The Hessian is symmetric: <second, H first> = <first, H second>.
        _, _, other = ops.hessian_product(costs.to(device), second.to(device), *options, False)
        one, two = (product.cpu() * second).sum(), (other.cpu() * first).sum()
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(along[0].cpu(), (torch.from_numpy(wanted) * first[0]).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_a_bad_cost_spoils_its_pair_alone(device):
    costs, first, second = (normal(4, 20, 15, seed=s).to(device) for s in (1, 2, 3))
    costs = costs.square()
    lengths = dict(x_lengths=[20, 12, 20, 7], y_lengths=[15, 9, 3, 15])
    options = options_of(device, 4, **lengths)
    clean = (*ops.hessian_product(costs, first, *options, True), *ops.third_order_product(costs, first, second, *options))
    for bad in (float("nan"), float("inf")):
        spoiled = costs.clone()
        spoiled[1, :, 3] = bad
        for tensor in (spoiled, first, second):
            tensor[3, 7:] = float("nan")  # padding
        after = (
            *ops.hessian_product(spoiled, first, *options, True),
            *ops.third_order_product(spoiled, first, second, *options),
        )
        for before, now in zip(clean, after, strict=True):
            assert torch.equal(before[[0, 2, 3]], now[[0, 2, 3]])
            inside = now[1] if now.dim() == 1 else now[1, :12, :9]
            assert inside.isnan().all()
        for matrix in after[1:]:
            assert not matrix[1, 12:].any() and not matrix[1, :, 9:].any()


@pytest.mark.cuda
@pytest.mark.parametrize("wrong", [0, -3, 8])
def test_a_wrong_length_on_the_device_gives_nan_for_its_pair_alone(wrong):
    costs, first = (normal(3, 7, 6, seed=s).cuda() for s in (1, 2))
    options = options_of("cuda", 3, x_lengths=[7, wrong, 7])
    along, alignment, product = ops.hessian_product(costs, first, *options, True)
    assert along[1].isnan() and alignment[1].isnan().all() and product[1].isnan().all()
    assert all(tensor[[0, 2]].isfinite().all() for tensor in (along, alignment, product))


@pytest.mark.parametrize("device", DEVICES)
def test_runs_are_bitwise_equal(device):
    costs, first, second = (normal(5, 70, 40, seed=s).float().to(device) for s in (1, 2, 3))
    options = options_of(device, 5)
    once = (*ops.hessian_product(costs, first, *options, True), *ops.third_order_product(costs, first, second, *options))
    for _ in range(3):
        again = (
            *ops.hessian_product(costs, first, *options, True),
            *ops.third_order_product(costs, first, second, *options),
        )
        assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


def test_second_derivatives_of_padded_pairs_equal_the_unpadded_ones(kernel):
    x, y = normal(3, 9, 2, seed=1).to(kernel.device), normal(3, 8, 2, seed=2).to(kernel.device)
    lengths = dict(x_lengths=[9, 4, 6], y_lengths=[3, 8, 5])

    def curvature(x, y, **options):
        x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
        slopes = torch.autograd.grad(soft_dtw(x, y, 0.5, kernel=kernel.name, **options).sum(), (x, y), create_graph=True)
        return torch.autograd.grad(sum(slope.square().sum() for slope in slopes), (x, y))

    for b, (n, m) in enumerate(zip(*lengths.values(), strict=True)):
        x[b, n:], y[b, m:] = float("nan"), float("nan")
    padded = curvature(x, y, **lengths)
    for b, (n, m) in enumerate(zip(*lengths.values(), strict=True)):
        alone = curvature(x[b : b + 1, :n], y[b : b + 1, :m])
        torch.testing.assert_close(padded[0][b : b + 1, :n], alone[0])
        torch.testing.assert_close(padded[1][b : b + 1, :m], alone[1])
        assert not padded[0][b, n:].any() and not padded[1][b, m:].any()


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("device", DEVICES)
def test_float32_second_derivatives_are_close_to_float64(device, cost):
    x, y = normal(2, 30, 20, seed=1), normal(2, 25, 20, seed=2)

    def curvature(dtype):
        a = (x + 50).to(device, dtype).requires_grad_()  # far from 0, where matrix products lose digits
        b = (y + 50).to(device, dtype).requires_grad_()
        slopes = torch.autograd.grad(soft_dtw(a, b, 2.0, cost=cost).sum(), (a, b), create_graph=True)
        return torch.autograd.grad(sum((slope * slope.detach().cos()).sum() for slope in slopes), (a, b))

    for narrow, wide in zip(curvature(torch.float32), curvature(torch.float64), strict=True):
        # Adding 50 rounds the series by 2e-6, which the costs' slopes magnify.
        assert (narrow - wide).abs().max() <= 1e-3 * wide.abs().max()
