"""gamma and the warp penalty as tensors in divergences, alignments and derivatives of higher order."""

import pytest
import torch
from cases import normal

from torchsoftdtw import SoftDTWDivergence, ops, soft_dtw, soft_dtw_alignment, soft_dtw_divergence

GAMMAS, PENALTIES = [0.05, 1.0, 30.0], [0.0, 0.4, 2.5]
KINDS = ["soft", "sharp", "mean"]
pytestmark = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])


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


def test_second_derivatives_with_gammas_that_need_none(device):
    x, y = (z.requires_grad_() for z in series(device, 4, 5))

    def value(x, y):
        return soft_dtw(x, y, tensor([0.3, 1.0, 5.0], device), warp_penalty=tensor([0.0, 0.2, 1.0], device))

    torch.autograd.gradgradcheck(value, (x, y))


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
    with pytest.raises(RuntimeError, match="gamma and warp_penalty have derivatives of the value alone"):
        first.sum().backward()


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacfwd], ids=["grad", "jacfwd"])
def test_torch_func_has_no_derivative_to_gamma_and_says_so(device, transform):
    x, y = series(device)
    with pytest.raises(RuntimeError, match="gamma and warp_penalty have derivatives of the value alone"):
        transform(lambda gamma: soft_dtw(x, y, gamma).sum())(tensor(GAMMAS, device))


def test_vmap_over_gammas(device):
    x, y = series(device)
    many = tensor([GAMMAS, [2.0, 3.0, 4.0]], device)
    together = torch.func.vmap(lambda gamma: soft_dtw(x, y, gamma))(many)
    torch.testing.assert_close(together, torch.stack([soft_dtw(x, y, gamma) for gamma in many]))
