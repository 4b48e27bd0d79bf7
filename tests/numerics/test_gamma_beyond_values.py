"""gamma and the warp penalty as tensors in divergences, alignments and derivatives of higher order."""

import oracle
import pytest
import torch
from cases import DEVICES, normal, numpy64

from torchsoftdtw import SoftDTWDivergence, soft_dtw, soft_dtw_alignment, soft_dtw_divergence
from torchsoftdtw._kernels import ops

GAMMAS, PENALTIES = [0.05, 1.0, 30.0], [0.0, 0.4, 2.5]
KINDS = ["soft", "sharp", "mean"]
pytestmark = pytest.mark.parametrize("device", DEVICES)


def series(device, n=7, m=9):
    return normal(3, n, 2, seed=1).to(device), normal(3, m, 2, seed=2).to(device)


def tensor(values, device, **options):
    return torch.tensor(values, dtype=torch.float64, device=device, **options)


def pair_of(b, x, y):
    return x[b : b + 1], y[b : b + 1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_of_a_divergence_has_its_own_gamma_and_penalty(device, kind):
    x, y = series(device)
    together = soft_dtw_divergence(
        x, y, tensor(GAMMAS, device), kind=kind, warp_penalty=tensor(PENALTIES, device), x_lengths=[7, 5, 6], bandwidth=3
    )
    for b, (gamma, penalty, length) in enumerate(zip(GAMMAS, PENALTIES, [7, 5, 6], strict=True)):
        own = {"kind": kind, "warp_penalty": penalty, "x_lengths": [length], "bandwidth": 3}
        alone = soft_dtw_divergence(*pair_of(b, x, y), gamma, **own)
        torch.testing.assert_close(together[b], alone[0], rtol=1e-10, atol=1e-10)


def test_every_pair_of_an_alignment_has_its_own_gamma_and_penalty(device):
    x, y = series(device)
    values, alignments = soft_dtw_alignment(x, y, tensor(GAMMAS, device), warp_penalty=tensor(PENALTIES, device))
    for b, (gamma, penalty) in enumerate(zip(GAMMAS, PENALTIES, strict=True)):
        value, alignment = soft_dtw_alignment(*pair_of(b, x, y), gamma, warp_penalty=penalty)
        torch.testing.assert_close(values[b], value[0], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(alignments[b], alignment[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("bandwidth", [-1, 2])
def test_every_pair_of_a_hessian_product_has_its_own_gamma_and_penalty(device, bandwidth):
    matrices = [normal(3, 6, 5, seed=seed).square().to(device) for seed in (1, 2, 3)]
    numbers = (tensor(GAMMAS, device), tensor(PENALTIES, device))
    together = ops.hessian_product(*matrices[:2], None, None, None, *numbers, bandwidth, 1.0, 0.0, True)
    third = ops.third_order_product(*matrices, None, None, None, *numbers, bandwidth, 1.0, 0.0)
    for b, (gamma, penalty) in enumerate(zip(GAMMAS, PENALTIES, strict=True)):
        own = [matrix[b : b + 1] for matrix in matrices]
        options = (*(None,) * 5, bandwidth, gamma, penalty)
        alone = (*ops.hessian_product(*own[:2], *options, True), *ops.third_order_product(*own, *options))
        for one, many in zip(alone, (*together, *third), strict=True):
            torch.testing.assert_close(many[b], one[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bandwidth", [-1, 1])
@pytest.mark.parametrize("lengths", [None, ([6, 2, 5], [5, 4, 1])], ids=["full", "lengths"])
def test_products_of_pairs_with_their_own_gammas_agree_with_the_oracle(device, lengths, bandwidth):
    costs, first, second = (normal(3, 6, 5, seed=seed) for seed in (1, 2, 3))
    costs = costs.square()
    on_device = [matrix.to(device) for matrix in (costs, first, second)]
    of_pairs = (None, None) if lengths is None else tuple(torch.tensor(own, device=device) for own in lengths)
    options = (*of_pairs, None, tensor(GAMMAS, device), tensor(PENALTIES, device), bandwidth, 1.0, 0.0)
    together = (*ops.hessian_product(*on_device[:2], *options, True), ops.third_order_product(*on_device, *options)[1])
    for b, (gamma, penalty) in enumerate(zip(GAMMAS, PENALTIES, strict=True)):
        n, m = (6, 5) if lengths is None else (own[b] for own in lengths)
        radius = None if bandwidth < 0 else bandwidth
        expected = oracle.products(costs[b], first[b], second[b], n, m, gamma, radius, penalty)
        for order, (actual, wanted) in zip((0, 0, 1, 2), zip(together, expected, strict=True), strict=True):
            # Each order divides by gamma once more.
            torch.testing.assert_close(actual[b].cpu(), wanted, rtol=1e-9, atol=1e-10 * max(1.0, (2 / gamma) ** order))


def central(function, at, along, gamma):
    """The derivative of a function of numpy arrays along a direction: the oracle bends on a scale of gamma."""
    step = 1e-4 * min(gamma, 1.0)
    ahead, behind = (function(*(z + sign * step * d for z, d in zip(at, along, strict=True))) for sign in (1, -1))
    return tuple((a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True))


@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean"])
def test_second_derivatives_of_series_with_their_own_gammas_are_differences_of_the_oracle(device, cost):
    x, y = (z.requires_grad_() for z in series(device, 6, 5))
    u, w = x.detach().cos(), y.detach().sin()
    options = dict(cost=cost, bandwidth=3)
    value = soft_dtw(x, y, tensor(GAMMAS, device), warp_penalty=tensor(PENALTIES, device), **options)
    slopes = torch.autograd.grad(value.sum(), (x, y), create_graph=True)
    actual = torch.autograd.grad((slopes[0] * u).sum() + (slopes[1] * w).sum(), (x, y))
    for b, (gamma, penalty) in enumerate(zip(GAMMAS, PENALTIES, strict=True)):

        def gradients(x, y, gamma=gamma, penalty=penalty):
            return oracle.soft_dtw(x, y, gamma, warp_penalty=penalty, **options)[1:]

        pair, direction = ([numpy64(z) for z in pair_of(b, *both)] for both in ((x, y), (u, w)))
        for product, wanted in zip(actual, central(gradients, pair, direction, gamma), strict=True):
            wanted = torch.from_numpy(wanted)[0]
            torch.testing.assert_close(product[b].cpu(), wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())


def test_derivatives_of_alignments_with_their_own_gammas_are_differences_of_the_oracle(device):
    """With them the gradient of the sharp divergence, which is made of alignments."""
    x, y = series(device, 6, 5)
    u, w = x.cos(), y.sin()
    numbers = dict(gamma=tensor(GAMMAS, device), warp_penalty=tensor(PENALTIES, device))
    of_alignments = torch.func.jvp(lambda x, y: soft_dtw_alignment(x, y, **numbers)[1], (x, y), (u, w))[1]
    of_divergences = torch.func.jvp(lambda x, y: soft_dtw_divergence(x, y, kind="sharp", **numbers), (x, y), (u, w))[1]
    for b, (gamma, penalty) in enumerate(zip(GAMMAS, PENALTIES, strict=True)):

        def alignment(x, y, gamma=gamma, penalty=penalty):
            costs = oracle.cost_and_slopes(x, y, "sqeuclidean")[0]
            return costs, oracle.value_and_alignment(costs, gamma, None, penalty)[1]

        def sharp(x, y, alignment=alignment, penalty=penalty):
            total = 0.0
            for weight, left, right in ((1, x, y), (-0.5, x, x), (-0.5, y, y)):
                costs, shares = alignment(left, right)
                total += weight * ((costs * shares).sum() + penalty * (2 * shares.sum() - sum(costs.shape)))
            return (total,)

        pair, direction = ([numpy64(z)[0] for z in pair_of(b, *both)] for both in ((x, y), (u, w)))
        wanted = torch.from_numpy(central(alignment, pair, direction, gamma)[1])
        scale = wanted.abs().max().item()
        torch.testing.assert_close(of_alignments[b].cpu(), wanted, rtol=0, atol=1e-5 * scale)
        (wanted,) = central(sharp, pair, direction, gamma)
        torch.testing.assert_close(of_divergences[b].item(), wanted.item(), rtol=1e-5, atol=1e-5 * scale)


def test_second_derivatives_with_gammas_that_need_none(device):
    x, y = (z.requires_grad_() for z in series(device, 4, 5))

    def value(x, y):
        return soft_dtw(x, y, tensor([0.3, 1.0, 5.0], device), warp_penalty=tensor([0.0, 0.2, 1.0], device))

    torch.autograd.gradgradcheck(value, (x, y), fast_mode=True)


def test_the_soft_divergence_has_a_gradient_to_gamma(device):
    x, y = series(device, 4, 5)
    gamma = tensor([0.3, 1.0, 5.0], device, requires_grad=True)
    torch.autograd.gradcheck(lambda gamma: soft_dtw_divergence(x, y, gamma), gamma)
    loss = SoftDTWDivergence(torch.nn.Parameter(torch.tensor(1.0, device=device)))
    loss(x, y).backward()
    assert loss.gamma.grad.isfinite()


@pytest.mark.parametrize("name", ["gamma", "warp_penalty"])
def test_what_has_no_derivative_to_gamma_or_a_penalty_says_so(device, name):
    x, y = series(device)
    options = {name: tensor(GAMMAS, device, requires_grad=True)}
    with pytest.raises(ValueError, match=f"{name}: expected a tensor that requires no gradient"):
        soft_dtw_alignment(x, y, **options)
    for kind in ("sharp", "mean"):
        with pytest.raises(ValueError, match=f"{name}: expected a tensor that requires no gradient"):
            soft_dtw_divergence(x, y, kind=kind, **options)
    first = torch.autograd.grad(soft_dtw(x.requires_grad_(), y, **options).sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="gamma and warp_penalty have derivatives of the value only"):
        first.sum().backward()


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacfwd], ids=["grad", "jacfwd"])
def test_torch_func_has_no_derivative_to_gamma_and_says_so(device, transform):
    x, y = series(device)
    with pytest.raises(RuntimeError, match="gamma and warp_penalty have derivatives of the value only"):
        transform(lambda gamma: soft_dtw(x, y, gamma).sum())(tensor(GAMMAS, device))


def test_vmap_over_gammas(device):
    x, y = series(device)
    many = tensor([GAMMAS, [2.0, 3.0, 4.0]], device)
    together = torch.func.vmap(lambda gamma: soft_dtw(x, y, gamma))(many)
    torch.testing.assert_close(together, torch.stack([soft_dtw(x, y, gamma) for gamma in many]))
