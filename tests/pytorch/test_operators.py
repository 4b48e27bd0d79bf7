"""The registered ops: opcheck and fakes."""

import pytest
import torch
from cases import DEVICES, KernelCase, normal

from torchsoftdtw import soft_dtw
from torchsoftdtw._kernels import ops, selection

OPTIONS = {
    "plain": {},
    "lengths": {"x_lengths": [20, 1, 33], "y_lengths": [41, 7, 3]},
    "band": {"bandwidth": 4},
    "bands": {"bandwidths": [0, 50, 3]},
    "penalty": {"warp_penalty": 0.5},
    "numbers": {"gammas": [0.1, 1.0, 20.0], "warp_penalties": [0.0, 0.3, 4.0]},
}
SAMPLES = [
    *(
        pytest.param(name, 3, 33, 41, dtype, id=f"{name}-{dtype}")
        for name in OPTIONS
        for dtype in (torch.float32, torch.float64)
    ),
    pytest.param("plain", 3, 1, 5, torch.float32, id="length_1"),
    pytest.param("lengths", 0, 4, 5, torch.float32, id="empty"),
]


def arguments(
    kernel,
    batch,
    n,
    m,
    dtype,
    x_lengths=None,
    y_lengths=None,
    bandwidths=None,
    bandwidth=-1,
    warp_penalty=0.0,
    gammas=None,
    warp_penalties=None,
):
    def double(values):
        return None if values is None else torch.tensor(values, device=kernel.device, dtype=torch.float64)[:batch]

    def per_pair(values, limit):
        if values is None:
            return None
        return torch.tensor(values, device=kernel.device)[:batch].clamp(max=limit)

    options = (per_pair(x_lengths, n), per_pair(y_lengths, m), per_pair(bandwidths, 100))
    options += (double(gammas), double(warp_penalties), bandwidth, 0.7, warp_penalty)
    x, y = (normal(batch, length, 2, seed=length, dtype=dtype).to(kernel.device) for length in (n, m))
    return x, y, options, selection.plan(kernel.name, x)


WITHOUT_TRACING = ("test_schema", "test_autograd_registration", "test_faketensor")


def opcheck(op, inputs, trace=True):
    """Without `trace`, all but a compilation by AOTAutograd, which takes seconds where derivatives are asked for. What it
    traces depends on which inputs there are and want a gradient, not on their dtype or numbers."""
    torch.library.opcheck(op, inputs, **({} if trace else {"test_utils": WITHOUT_TRACING}))


@pytest.mark.always
@pytest.mark.usefixtures("filled_memory")
@pytest.mark.parametrize(("options", "batch", "n", "m", "dtype"), SAMPLES)
def test_opcheck_of_series_ops(kernel, options, batch, n, m, dtype):
    x, y, shared, plan = arguments(kernel, batch, n, m, dtype, **OPTIONS[options])
    cost = "euclidean" if options == "penalty" else "sqeuclidean"
    opcheck(ops.forward, (x, y, *shared, cost, *plan, False))
    opcheck(ops.forward, (x.clone().requires_grad_(), y.clone().requires_grad_(), *shared, cost, *plan, True))
    value, saved = ops.forward(x, y, *shared, cost, *plan, True)
    for needed in ((True, True), (False, True)):
        trace = dtype == torch.float32 and (all(needed) or options == "lengths")
        opcheck(ops.backward, (torch.ones_like(value), x, y, value, saved, *shared, cost, *plan, *needed))
        leaves = [tensor.clone().requires_grad_() for tensor in (torch.ones_like(value), x, y)]
        opcheck(ops.backward, (*leaves, value, saved, *shared, cost, *plan, *needed), trace)


@pytest.mark.always
@pytest.mark.usefixtures("filled_memory")
@pytest.mark.parametrize(("options", "batch", "n", "m", "dtype"), SAMPLES)
def test_opcheck_of_cost_matrix_ops(kernel, options, batch, n, m, dtype):
    x, y, shared, plan = arguments(kernel, batch, n, m, dtype, **OPTIONS[options])
    costs = torch.cdist(x, y)
    opcheck(ops.forward_from_cost, (costs, *shared, *plan, False))
    opcheck(ops.forward_from_cost, (costs.clone().requires_grad_(), *shared, *plan, True))
    value, saved = ops.forward_from_cost(costs, *shared, *plan, True)
    opcheck(ops.backward_from_cost, (torch.ones_like(value), costs, value, saved, *shared, *plan))
    leaves = torch.ones_like(value).requires_grad_(), costs.clone().requires_grad_()
    opcheck(ops.backward_from_cost, (*leaves, value, saved, *shared, *plan))


@pytest.mark.always
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("options", "batch", "n", "m", "dtype"), SAMPLES)
def test_opcheck_of_second_order_ops(device, options, batch, n, m, dtype):
    kernel = KernelCase(device, "auto")
    _, _, shared, _ = arguments(kernel, batch, n, m, dtype, **OPTIONS[options])
    matrices = [normal(batch, n, m, seed=s, dtype=dtype).abs().to(device) for s in (1, 2, 3)]
    for needed in (True, False):
        opcheck(ops.hessian_product, (*matrices[:2], *shared, needed))
    opcheck(ops.third_order_product, (*matrices, *shared))
    leaves = [matrix.clone().requires_grad_() for matrix in matrices]
    opcheck(ops.hessian_product, (*leaves[:2], *shared, True))
    with pytest.raises(RuntimeError, match="up to the third order"):
        ops.third_order_product(*leaves, *shared)[1].sum().backward()


@pytest.mark.always
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_opcheck_of_best_ranges(device, dtype):
    for batch, n, m in ((3, 33, 41), (1, 1, 5), (0, 4, 5)):
        x, y = (normal(batch, length, 2, seed=length, dtype=dtype).to(device) for length in (n, m))
        opcheck(ops.best_ranges, (x, y, 0.5, "euclidean"))
        opcheck(ops.best_ranges, (x[:1].expand(batch, -1, -1), y, 0.0, "sqeuclidean"))


def test_second_order_ops_refuse_directions_that_do_not_fit():
    costs, options = torch.zeros(2, 4, 5), (None,) * 5 + (-1, 1.0, 0.0)
    for wrong in (torch.zeros(2, 5, 4), torch.zeros(1, 4, 5), torch.zeros(2, 4, 5, dtype=torch.float64), torch.zeros(4, 5)):
        with pytest.raises(RuntimeError, match="tangent: expected the shape"):
            ops.hessian_product(costs, wrong, *options, True)
        with pytest.raises(RuntimeError, match="second: expected the shape"):
            ops.third_order_product(costs, costs, wrong, *options)


def test_backward_refuses_numbers_of_other_pairs(kernel):
    x, y, shared, plan = arguments(kernel, 3, 20, 30, torch.float32)
    value, saved = ops.forward(x, y, *shared, "sqeuclidean", *plan, True)
    ones = torch.ones_like(value)
    wrong = [ones[:2], ones.double(), ones[:, None]] + ([ones.cpu()] if kernel.device == "cuda" else [])
    for other in wrong:
        for given, kept in ((other, value), (ones, other)):
            with pytest.raises(RuntimeError, match=r"expected shape \(3,\), and the dtype and the device"):
                ops.backward(given, x, y, kept, saved, *shared, "sqeuclidean", *plan, True, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("options", OPTIONS)
def test_fakes_know_what_is_saved(template, options, dtype):
    for batch, n, m in ((1, 1, 1), (2, 64, 64), (2, 65, 300), (3, 500, 7), (1, 129, 128)):
        x, y, extra, plan = arguments(template, batch, n, m, dtype, **OPTIONS[options])
        for save in (True, False):
            real = ops.forward(x, y, *extra, "sqeuclidean", *plan, save)
            with torch._subclasses.FakeTensorMode() as mode:
                fakes = [mode.from_tensor(t) if isinstance(t, torch.Tensor) else t for t in (x, y, *extra)]
                fake = ops.forward(*fakes, "sqeuclidean", *plan, save)
            assert [t.shape for t in fake] == [t.shape for t in real]
            assert [t.dtype for t in fake] == [t.dtype for t in real]
            assert save or real[1].numel() == 0


def test_ops_refuse_series_that_do_not_fit(template):
    """Before kernels get them arranged, for which vectors of three numbers may become some of four."""
    x, _, extra, plan = arguments(template, 2, 5, 6, torch.float32)
    three, four = (torch.zeros(2, 5, dim, device=x.device) for dim in (3, 4))
    for pair in ((three, four), (four, three), (three, three[:1]), (three, three.double())):
        with pytest.raises(RuntimeError, match="x and y: expected"):
            ops.forward(*pair, *extra, "sqeuclidean", *plan, False)


def test_nothing_is_saved_where_no_gradient_is_wanted(kernel, monkeypatch):
    wanted = []
    forward = ops.forward
    monkeypatch.setattr(ops, "forward", lambda *inputs: wanted.append(inputs[-1]) or forward(*inputs))
    x, y = normal(2, 5, 1).to(kernel.device), normal(2, 5, 1).to(kernel.device)
    leaf = x.clone().requires_grad_()
    soft_dtw(x, y, kernel=kernel.name)
    soft_dtw(leaf, y, kernel=kernel.name)
    soft_dtw(x, leaf, kernel=kernel.name)
    with torch.no_grad():
        soft_dtw(leaf, y, kernel=kernel.name)
    with torch.inference_mode():
        soft_dtw(leaf, y, kernel=kernel.name)
    assert wanted == [False, True, True, False, False]


def test_a_backward_pass_without_saved_state_is_an_error(kernel):
    x, y, options, plan = arguments(kernel, 2, 5, 6, torch.float32)
    value, saved = ops.forward(x, y, *options, "sqeuclidean", *plan, False)
    with pytest.raises(RuntimeError, match="saved nothing"):
        ops.backward(torch.ones_like(value), x, y, value, saved, *options, "sqeuclidean", *plan, True, True)


def strided(tensor):
    return torch.stack([tensor, tensor], -1)[..., 0]


@pytest.mark.parametrize("change", [lambda z: z.view(torch.int8), strided], ids=["dtype", "strides"])
def test_saved_state_of_another_kind_is_an_error(kernel, change):
    """Not only of another size: it is read as bytes without gaps."""
    x, y, options, plan = arguments(kernel, 2, 5, 6, torch.float32)
    value, saved = ops.forward(x, y, *options, "sqeuclidean", *plan, True)
    cost = torch.rand(2, 5, 6).to(kernel.device)
    of_cost, saved_of_cost = ops.forward_from_cost(cost, *options, *plan, True)
    message = "saved: expected a contiguous uint8 tensor on the device of the input"
    with pytest.raises(RuntimeError, match=message):
        ops.backward(value, x, y, value, change(saved), *options, "sqeuclidean", *plan, True, True)
    with pytest.raises(RuntimeError, match=message):
        ops.backward_from_cost(of_cost, cost, of_cost, change(saved_of_cost), *options, *plan)


@pytest.mark.parametrize("change", [lambda z: z.long(), strided, lambda z: z[:, :4]], ids=["dtype", "strides", "shape"])
@pytest.mark.parametrize("device", DEVICES)
def test_spans_of_another_kind_are_an_error(device, change):
    x, y = normal(2, 5, 1).to(device), normal(2, 6, 1).to(device)
    value, spans = ops.dtw(x, y, *[None] * 4, -1, 0.0, False, "sqeuclidean", True)
    with pytest.raises(RuntimeError, match=r"spans: expected a contiguous int32 tensor of shape .2, 5, 2. on the device"):
        ops.dtw_backward(value, x, y, value, change(spans), None, None, "sqeuclidean", True, True)


@pytest.mark.cuda
def test_what_a_forward_pass_keeps_has_to_be_on_the_device_of_the_input():
    x, y, options, plan = arguments(KernelCase("cuda", "stencil"), 2, 5, 6, torch.float32)
    value, saved = ops.forward(x, y, *options, "sqeuclidean", *plan, True)
    with pytest.raises(RuntimeError, match="saved: expected a contiguous uint8 tensor on the device of the input"):
        ops.backward(value, x, y, value, saved.cpu(), *options, "sqeuclidean", *plan, True, True)
    value, spans = ops.dtw(x, y, *[None] * 4, -1, 0.0, False, "sqeuclidean", True)
    with pytest.raises(RuntimeError, match=r"spans: expected a contiguous int32 tensor of shape .* on the device"):
        ops.dtw_backward(value, x, y, value, spans.cpu(), None, None, "sqeuclidean", True, True)


def test_a_graph_can_be_run_backwards_twice(kernel):
    x, y = (normal(2, 5, 1, seed=s).to(kernel.device).requires_grad_() for s in (1, 2))
    value = soft_dtw(x, y, kernel=kernel.name).sum()
    first = torch.autograd.grad(value, (x, y), retain_graph=True)
    second = torch.autograd.grad(value, (x, y))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
