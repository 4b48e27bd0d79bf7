"""torch.func (grad, vmap, jvp, jacrev, jacfwd, hessian) and forward-mode dual numbers, alone and nested."""

import pytest
import torch
from cases import DEVICES, normal
from torch.autograd import forward_ad, gradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from torchsoftdtw import (
    SoftDTW,
    dtw,
    dtw_path,
    soft_dtw,
    soft_dtw_alignment,
    soft_dtw_divergence,
    soft_dtw_from_cost,
)
from torchsoftdtw._autograd import along_path
from torchsoftdtw._kernels import ops


def from_cost(x, y, **options):
    return soft_dtw_from_cost((x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1), **options)


def product_cost(x, y):
    return torch.cos(x @ y.transpose(1, 2)) + 2


def called(function, **fixed):
    return lambda x, y, **options: function(x, y, 0.7, **fixed, **options)


FUNCTIONS = {
    "soft_dtw": called(soft_dtw),
    "cosine": called(soft_dtw, cost="cosine"),
    "callable": called(soft_dtw, cost=product_cost, bandwidth=2),
    "from_cost": lambda x, y, **options: from_cost(x, y, gamma=0.7, warp_penalty=0.2, **options),
    "alignment": lambda x, y, **options: soft_dtw_alignment(x, y, 0.7, warp_penalty=0.2, **options)[1],
    "alignment_value": lambda x, y, **options: soft_dtw_alignment(x, y, 0.7, cost="cityblock", **options)[0],
    "divergence": called(soft_dtw_divergence, warp_penalty=0.2),
    "sharp": called(soft_dtw_divergence, kind="sharp", cost="euclidean"),
    "mean": called(soft_dtw_divergence, kind="mean", bandwidth=1),
    "dtw": lambda x, y, **options: dtw(x, y, warp_penalty=0.2, bandwidth=2, **options),
    "dtw_euclidean": lambda x, y, **options: dtw(x, y, cost="euclidean", open_ends=True, **options),
    "dtw_cosine": lambda x, y, **options: soft_dtw(x, y, 0, cost="cosine", length_norm=True, **options),
    "dtw_cityblock": lambda x, y, **options: dtw(x, y, cost="cityblock", **options),
    "huber": called(soft_dtw, cost="huber"),
    "dtw_huber": lambda x, y, **options: dtw(x, y, cost="huber", **options),
    "dtw_callable": lambda x, y, **options: dtw(x, y, cost=product_cost, **options),
    "dtw_from_cost": lambda x, y, **options: from_cost(x, y, gamma=0, warp_penalty=0.2, **options),
}


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return FUNCTIONS[request.param]


@pytest.fixture(params=DEVICES)
def data(request):
    """(4, 3, N, D) and (4, 3, M, D): a mapped dimension, and a batch of pairs."""
    return normal(4, 3, 7, 2, seed=1).to(request.param), normal(4, 3, 5, 2, seed=2).to(request.param)


def one_by_one(function, *mapped, **options):
    return torch.stack([function(*inputs, **options) for inputs in zip(*mapped, strict=True)])


def scalar(function, like):
    """`function` weighted to a number, so that every entry of its result has a say of its own."""
    weights = normal(*like.shape, seed=9).to(like.device)
    return lambda x, y: (function(x, y) * weights).sum()


def test_vmap_is_the_loop_without_the_loop(function, data):
    x, y = data
    expected = one_by_one(function, x, y)
    torch.testing.assert_close(vmap(function)(x, y), expected)
    torch.testing.assert_close(vmap(vmap(function))(x, y), expected)
    one_sided = vmap(function, in_dims=(1, None), out_dims=1)(x.transpose(0, 1), y[0])
    torch.testing.assert_close(one_sided.movedim(1, 0), torch.stack([function(a, y[0]) for a in x]))


def test_vmap_maps_lengths_and_bands(data):
    x, y = data
    lengths = torch.tensor([[7, 1, 3], [2, 5, 6], [7, 7, 7], [4, 1, 2]], device=x.device)
    bands = torch.tensor([[0, 1, 2], [9, 0, 0], [3, 3, 3], [1, 0, 5]], device=x.device)

    def both(x, y, lengths, bands):
        return soft_dtw(x, y, 0.7, x_lengths=lengths, bandwidth=bands)

    torch.testing.assert_close(vmap(both)(x, y, lengths, bands), one_by_one(both, x, y, lengths, bands))
    slopes = vmap(grad(lambda *inputs: both(*inputs).sum()))(x, y, lengths, bands)
    for b in range(4):
        leaf = x[b].clone().requires_grad_()
        expected = torch.autograd.grad(both(leaf, y[b], lengths[b], bands[b]).sum(), leaf)[0]
        torch.testing.assert_close(slopes[b], expected)


def test_vmap_is_one_launch(data, monkeypatch):
    x, y = data
    launches = []
    forward = ops.forward
    monkeypatch.setattr(ops, "forward", lambda *inputs: launches.append(len(inputs[0])) or forward(*inputs))
    vmap(soft_dtw)(x, y)
    assert launches == [12]
    launches.clear()
    jacrev(soft_dtw)(x[0], y[0])
    assert launches == [3, 3]  # the values, and one gradient, scaled to all rows of the Jacobian


def test_hard_dtw_is_one_launch_in_every_transform(data, monkeypatch):
    x, y = data
    launches = []
    forward = along_path.BestPath.forward

    def counted(op, *inputs):
        launches.append((len(inputs[0]), inputs[-1]))
        return forward(op, *inputs)

    monkeypatch.setattr(along_path.BestPath, "forward", staticmethod(counted))
    expected = torch.stack([dtw(*pair) for pair in zip(x, y, strict=True)])
    assert torch.equal(vmap(dtw)(x, y), expected)
    with torch.no_grad():
        assert torch.equal(vmap(dtw)(x, y), expected)
    vmap(hessian(lambda x, y: dtw(x, y).sum()))(x, y)
    assert launches == [(12, True), (12, False), (12, True)]  # without gradients there is no path to keep


def test_gradients_are_those_of_autograd(function, data):
    x, y = data
    value = scalar(function, function(x[0], y[0]))
    leaves = x[0].clone().requires_grad_(), y[0].clone().requires_grad_()
    expected = torch.autograd.grad(value(*leaves), leaves)
    torch.testing.assert_close(grad(value, argnums=(0, 1))(x[0], y[0]), expected)
    torch.testing.assert_close(vjp(value, x[0], y[0])[1](torch.ones((), device=x.device, dtype=x.dtype)), expected)
    mapped = vmap(grad(value, argnums=(0, 1)))(x, y)
    torch.testing.assert_close((mapped[0][0], mapped[1][0]), expected)
    torch.testing.assert_close(grad(lambda x: vmap(value)(x, y).sum())(x), mapped[0])


def test_jacobians_agree_and_jvp_is_their_product(function, data):
    x, y = data[0][0], data[1][0]
    backward, forward = jacrev(function, argnums=(0, 1))(x, y), jacfwd(function, argnums=(0, 1))(x, y)
    torch.testing.assert_close(backward, forward)
    u, w = (torch.full_like(tensor, 0.3) + tensor.cos() for tensor in (x, y))
    value, tangent = jvp(function, (x, y), (u, w))
    torch.testing.assert_close(value, function(x, y))
    expected = sum(torch.einsum("...bnd,bnd->...", jacobian, d) for jacobian, d in zip(backward, (u, w), strict=True))
    torch.testing.assert_close(tangent, expected)


def test_hessians_agree_however_they_are_nested(function, data):
    x, y = data[0][0, :2, :4], data[1][0, :2, :3]
    value = scalar(function, function(x, y))
    expected = torch.autograd.functional.hessian(lambda x: value(x, y), x)
    torch.testing.assert_close(hessian(value)(x, y), expected)
    torch.testing.assert_close(jacrev(grad(value))(x, y), expected)
    torch.testing.assert_close(jacrev(jacfwd(value))(x, y), expected)
    torch.testing.assert_close(vmap(hessian(value))(torch.stack([x, x + 1]), torch.stack([y, y]))[0], expected)


def test_dual_numbers(function, data):
    x, y = data[0][0], data[1][0]
    u = x.sin()
    with forward_ad.dual_level():
        value, tangent = forward_ad.unpack_dual(function(forward_ad.make_dual(x, u), y))
        torch.testing.assert_close(value, function(x, y))
    torch.testing.assert_close(tangent, jvp(lambda x: function(x, y), (x,), (u,))[1])


@pytest.mark.parametrize("kind", ["soft", "sharp", "mean"])
@pytest.mark.parametrize("device", DEVICES)
def test_forward_mode_is_that_of_finite_differences(device, kind):
    x, y = (normal(2, n, 2, seed=n).to(device).requires_grad_() for n in (4, 3))
    inputs = dict(check_forward_ad=True, check_backward_ad=False, check_batched_forward_grad=True, atol=1e-6)
    assert gradcheck(lambda x, y: soft_dtw_divergence(x, y, 0.5, kind=kind, x_lengths=[4, 2]), (x, y), **inputs)
    assert gradcheck(lambda x, y: soft_dtw(x, y, 0.5, x_lengths=[4, 2], cost="euclidean"), (x, y), **inputs)
    assert gradcheck(lambda x, y: soft_dtw_alignment(x, y, 0.5, y_lengths=[1, 3]), (x, y), **inputs)


@pytest.mark.parametrize("device", DEVICES)
def test_vmap_of_an_empty_batch_is_empty(function, device):
    x, y = torch.ones(2, 0, 4, 2, device=device), torch.ones(2, 0, 3, 2, device=device)
    assert vmap(function)(x, y).shape[:2] == (2, 0)
    assert vmap(grad(lambda x, y: function(x, y).sum()))(x, y).shape == x.shape


@pytest.mark.parametrize("device", DEVICES)
def test_paths_have_derivatives_but_cannot_be_mapped(device):
    x, y = normal(2, 3, 6, 2, seed=1).to(device), normal(2, 3, 5, 2, seed=2).to(device)
    value, tangent = jvp(lambda x: dtw_path(x, y[0])[0], (x[0],), (x[0],))
    expected = jvp(lambda x: dtw(x, y[0]), (x[0],), (x[0],))
    torch.testing.assert_close((value, tangent), expected)
    with pytest.raises(RuntimeError, match="dtw_path: vmap cannot map paths"):
        vmap(lambda x, y: dtw_path(x, y)[1][0])(x, y)


@pytest.mark.parametrize("cost", [None, "sqeuclidean", "euclidean"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_pair_without_a_path_has_no_derivative_of_hard_dtw(device, cost):
    x, y = normal(3, 6, 2, seed=1).to(device), normal(3, 5, 2, seed=2).to(device)

    def value(x):
        if cost is not None:
            return dtw(x, y, cost=cost)
        return soft_dtw_from_cost((x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3), 0)

    clean = grad(lambda x: value(x).sum())(x)
    for wrong in (float("nan"), float("inf")):
        spoiled = x.clone()
        spoiled[1, 2] = wrong
        values, tangents = jvp(value, (spoiled,), (torch.ones_like(x),))
        torch.testing.assert_close(values, value(spoiled), equal_nan=True)
        assert tangents[[0, 2]].isfinite().all() and tangents[1].isnan()
        slope = grad(lambda x: value(x).sum())(spoiled)
        torch.testing.assert_close(slope[[0, 2]], clean[[0, 2]])
        assert slope[1].isnan().any(1).all()


@pytest.mark.parametrize("device", DEVICES)
def test_forward_mode_leaves_padding_alone(device):
    x, y = normal(2, 6, 2, seed=1).to(device), normal(2, 5, 2, seed=2).to(device)
    u = torch.ones_like(x)
    x[1, 3:], u[1, 3:] = float("nan"), float("nan")

    def everything(x, y, **options):
        value, alignment = soft_dtw_alignment(x, y, 0.5, **options)
        others = [soft_dtw_divergence(x, y, 0.5, kind=kind, **options) for kind in ("soft", "sharp", "mean")]
        return soft_dtw(x, y, 0.5, **options), value, alignment[:, :3], *others, dtw(x, y, **options)

    _, tangents = jvp(lambda x: everything(x, y, x_lengths=[6, 3]), (x,), (u,))
    _, alone = jvp(lambda x: everything(x, y[1:]), (x[1:, :3],), (u[1:, :3],))
    for tangent, wanted in zip(tangents, alone, strict=True):
        assert tangent.isfinite().all()
        torch.testing.assert_close(tangent[1:], wanted)


TRANSFORMED = {
    "vmap": lambda f: vmap(f),
    "grad": lambda f: lambda x, y: grad(lambda x: f(x, y[0]).sum())(x[0]),
    "vmap_of_grad": lambda f: vmap(grad(lambda x, y: f(x, y).sum())),
    "jvp": lambda f: lambda x, y: jvp(lambda x: f(x, y[0]), (x[0],), (x[0],))[1],
    "jacrev": lambda f: lambda x, y: jacrev(f)(x[0], y[0]),
}


@pytest.mark.parametrize("name", ["soft_dtw", "from_cost", "alignment_value", "sharp", "dtw", "dtw_from_cost"])
@pytest.mark.parametrize("transform", TRANSFORMED)
def test_transforms_compile_as_one_graph(data, name, transform):
    """Above all jvp: PyTorch takes an op without a rule for it for one whose derivative is 0."""
    torch._dynamo.reset()
    transformed = TRANSFORMED[transform](FUNCTIONS[name])
    compiled = torch.compile(transformed, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*data), transformed(*data))
    torch._dynamo.reset()


@pytest.mark.parametrize("device", DEVICES)
def test_per_sample_gradients_of_a_network(device):
    """What torch.func is used for most: one gradient of the parameters for every sample."""
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 2).to(device)
    parameters = {name: p.detach() for name, p in network.named_parameters()}
    x, y = normal(5, 6, 2, seed=1).float().to(device), normal(5, 4, 2, seed=2).float().to(device)
    criterion = SoftDTW(gamma=0.5)

    def loss(parameters, x, y):
        return criterion(torch.func.functional_call(network, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))

    samples = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for b in range(5):
        network.zero_grad()
        criterion(network(x[b : b + 1]), y[b : b + 1]).backward()
        torch.testing.assert_close(samples["weight"][b], network.weight.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_beyond_the_third_order_is_an_error_in_forward_mode_too(device):
    x, y = normal(1, 4, 1, seed=1).to(device), normal(1, 3, 1, seed=2).to(device)
    function = lambda x: soft_dtw(x, y, 0.5).sum()  # noqa: E731
    for _ in range(3):
        function = (lambda inner: lambda x: jvp(inner, (x,), (torch.ones_like(x),))[1])(function)
    assert function(x).isfinite()
    with pytest.raises(RuntimeError, match="up to the third order"):
        jvp(function, (x,), (torch.ones_like(x),))
