"""torch.compile, torch.export, autocast, checkpointing."""

import pytest
import torch
from cases import COSTS, normal
from torch.utils.checkpoint import checkpoint

from torchsoftdtw import SoftDTW, SoftDTWDivergence, soft_dtw, soft_dtw_alignment, soft_dtw_from_cost


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def data(kernel):
    return (normal(3, n, 2, seed=n, dtype=torch.float32).to(kernel.device) for n in (12, 9))


def train(step, network, x, y, *lengths):
    network.zero_grad()
    losses = []
    for _ in range(2):
        loss = step(network, x, y, *lengths)
        loss.backward()
        losses.append(loss.detach())
    return losses, [p.grad.clone() for p in network.parameters()]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_training_step_compiles_without_a_graph_break(kernel, backend):
    x, y = data(kernel)
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 2).to(kernel.device)
    criterion = SoftDTW(gamma=0.5, bandwidth=4, warp_penalty=0.1)

    def step(network, x, y):
        return criterion(network(x), y)

    expected = train(step, network, x, y)
    actual = train(torch.compile(step, fullgraph=True, backend=backend), network, x, y)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("cost", [*COSTS, torch.cdist])
@pytest.mark.parametrize("dynamic", [False, True])
def test_lengths_and_costs_compile_without_a_graph_break(kernel, cost, dynamic):
    network = torch.nn.Linear(2, 2).to(kernel.device)
    lengths = [torch.tensor(n, device=kernel.device) for n in ([12, 3, 1], [9, 9, 2])]

    def step(network, x, y, x_lengths, y_lengths):
        options = dict(x_lengths=x_lengths, y_lengths=y_lengths, kernel=kernel.name)
        return soft_dtw(network(x), y, cost=cost, bandwidth=x_lengths // 2, **options).sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for n in (12, 15):
        x, y = normal(3, n, 2, seed=n).float().to(kernel.device), normal(3, 9, 2, seed=2).float().to(kernel.device)
        torch.testing.assert_close(train(compiled, network, x, y, *lengths), train(step, network, x, y, *lengths))


def alignment_loss(x, y, x_lengths=None, y_lengths=None, cost="sqeuclidean"):
    value, alignment = soft_dtw_alignment(x, y, 0.5, cost=cost, x_lengths=x_lengths, y_lengths=y_lengths)
    return value.sum() + alignment.square().sum()


LOSSES = {
    "soft_dtw": SoftDTW(0.5),
    "soft": SoftDTWDivergence(0.5, bandwidth=6),
    "sharp": SoftDTWDivergence(0.5, kind="sharp", cost="euclidean", warp_penalty=0.1),
    "mean": SoftDTWDivergence(0.5, kind="mean"),
    "alignment": lambda *inputs: alignment_loss(*inputs, cost="cosine"),
    "cityblock": lambda *inputs: alignment_loss(*inputs, cost="cityblock"),
    "huber": lambda *inputs: alignment_loss(*inputs, cost="huber"),
}


class NetworkWithLoss(torch.nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.loss = loss

    def forward(self, x, y, x_lengths=None, y_lengths=None):
        return self.loss(self.linear(x), y, x_lengths, y_lengths)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_losses_of_any_order_compile_with_any_lengths_as_one_graph(device, name):
    # In float64: a compiled graph adds in another order, and in float32 gradients that cancel would show it.
    network = NetworkWithLoss(LOSSES[name]).to(device, torch.float64)
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.backends.debugging.aot_eager(graph, inputs)

    compiled = torch.compile(network, fullgraph=True, backend=count, dynamic=True)
    compilations = []
    for n, m in ((12, 9), (5, 20), (17, 8)):
        x, y = normal(3, n, 2, seed=n).to(device), normal(3, m, 2, seed=m).to(device)
        lengths = [torch.tensor([size, 3, 1], device=device) for size in (n, m)]
        expected = train(NetworkWithLoss.forward, network, x, y, *lengths)
        torch.testing.assert_close(train(lambda _, *inputs: compiled(*inputs), network, x, y, *lengths), expected)
        compilations.append(len(graphs))
    assert compilations[0] == compilations[-1]
    for n, m in ((7, 7), (6, 10)):
        x, y = normal(3, n, 2, seed=n).to(device), normal(3, m, 2, seed=m).to(device)
        expected = train(NetworkWithLoss.forward, network, x, y)
        torch.testing.assert_close(train(lambda _, *inputs: compiled(*inputs), network, x, y), expected)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "non_strict"])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_module_that_holds_the_loss_can_be_exported(device, name, strict):
    network = NetworkWithLoss(LOSSES[name]).to(device)
    batch, n, m = map(torch.export.Dim, ("batch", "n", "m"))
    shapes = {"x": {0: batch, 1: n}, "y": {0: batch, 1: m}, "x_lengths": {0: batch}, "y_lengths": {0: batch}}

    def inputs(batch, n, m):
        generator = torch.Generator().manual_seed(n)
        lengths = (torch.randint(1, size + 1, (batch,), generator=generator) for size in (n, m))
        series = normal(batch, n, 2, seed=1).float(), normal(batch, m, 2, seed=2).float()
        return tuple(tensor.to(device) for tensor in (*series, *lengths))

    exported = torch.export.export(network, inputs(3, 12, 9), dynamic_shapes=shapes, strict=strict).module()
    for sizes in ((3, 12, 9), (5, 20, 31)):
        torch.testing.assert_close(exported(*inputs(*sizes)), network(*inputs(*sizes)))


def test_lists_of_lengths_and_pairs_without_a_batch_compile(kernel):
    x, y = data(kernel)

    def both(x, y):
        batch = soft_dtw(x, y, x_lengths=[12, 3, 1], y_lengths=(9, 1, 2), bandwidth=[3, 4, 5], kernel=kernel.name)
        return batch, soft_dtw(x[0], y[0], kernel=kernel.name), soft_dtw_from_cost(torch.cdist(x, y), 0.3)

    torch.testing.assert_close(torch.compile(both, fullgraph=True, backend="aot_eager")(x, y), both(x, y))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_runs_the_op_in_float32(kernel, dtype):
    x, y = data(kernel)
    network = torch.nn.Linear(2, 2).to(kernel.device)
    with torch.autocast(kernel.device, dtype=dtype):
        predicted = network(x)
        assert predicted.dtype == dtype
        for cost in ("sqeuclidean", "cosine"):
            value = soft_dtw(predicted, y, cost=cost, kernel=kernel.name)
            assert value.dtype == torch.float32
            torch.testing.assert_close(value, soft_dtw(predicted.float(), y, cost=cost, kernel=kernel.name))
        loss = SoftDTW()(predicted, y)
        # A callable runs under autocast as its user wrote it; what it returns is then taken in float32.
        assert soft_dtw(predicted, y, cost=lambda x, y: x @ y.transpose(1, 2), kernel=kernel.name).dtype == torch.float32
    loss.backward()
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize(
    ("x_dtype", "y_dtype", "expected"),
    [
        (torch.float16, torch.float16, torch.float32),
        (torch.bfloat16, torch.float16, torch.float32),
        (torch.bfloat16, torch.float64, torch.float64),
        (torch.float32, torch.float64, torch.float64),
    ],
    ids=str,
)
def test_dtypes_mix(kernel, x_dtype, y_dtype, expected):
    x = normal(2, 6, 2, seed=1, dtype=x_dtype).to(kernel.device).requires_grad_()
    y = normal(2, 5, 2, seed=2, dtype=y_dtype).to(kernel.device).requires_grad_()
    value = soft_dtw(x, y, kernel=kernel.name)
    value.sum().backward()
    assert (value.dtype, x.grad.dtype, y.grad.dtype) == (expected, x_dtype, y_dtype)


def test_checkpointing_gives_the_same_gradients(kernel):
    x, y = data(kernel)
    x.requires_grad_()
    (expected,) = torch.autograd.grad(soft_dtw(x, y, kernel=kernel.name).sum(), x)
    value = checkpoint(lambda x: soft_dtw(x, y, kernel=kernel.name), x, use_reentrant=False)
    (actual,) = torch.autograd.grad(value.sum(), x)
    assert torch.equal(actual, expected)
