"""What only a GPU can show: streams, devices, graphs, synchronisation, memory."""

import functools

import numpy as np
import pytest
import torch
from cases import COSTS, normal

from torchsoftdtw import SoftDTW, SoftDTWDivergence, soft_dtw, soft_dtw_from_cost

pytestmark = pytest.mark.cuda

NAMES = pytest.mark.parametrize("name", ["diagonal", "stencil", "tiled"])


def data(batch=4, n=100, m=90, dim=2, device="cuda"):
    x, y = normal(batch, n, dim, seed=1, dtype=torch.float32), normal(batch, m, dim, seed=2, dtype=torch.float32)
    return x.to(device).requires_grad_(), y.to(device).requires_grad_()


def value_and_gradients(x, y, gamma=1.0, **options):
    value = soft_dtw(x, y, gamma, **options)
    return value.detach(), *torch.autograd.grad(value.sum(), (x, y))


def needs_free_memory(gibibytes):
    if torch.cuda.mem_get_info()[0] < gibibytes * 2**30:
        pytest.skip(f"needs {gibibytes} GiB of free GPU memory")


@NAMES
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_variants_agree_with_the_cpu(name, dtype):
    x, y = normal(5, 333, 3, seed=1, dtype=dtype), normal(5, 250, 3, seed=2, dtype=dtype)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    options = dict(x_lengths=[333, 1, 200, 64, 65], bandwidth=[20, 300, 0, 7, 33], warp_penalty=0.2)
    for extra in ({}, options):
        expected = value_and_gradients(x.clone().requires_grad_(), y.clone().requires_grad_(), **extra)
        actual = value_and_gradients(x.cuda().requires_grad_(), y.cuda().requires_grad_(), kernel=name, **extra)
        for a, b in zip(actual, expected, strict=True):
            torch.testing.assert_close(a.cpu(), b, rtol=tolerance, atol=tolerance)


@NAMES
def test_runs_on_the_callers_stream(name):
    x, y = data()
    expected = value_and_gradients(x, y, kernel=name)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        # The inputs are ready only when the stream gets there: a kernel on another stream would read zeros.
        late_x, late_y = torch.zeros_like(x), torch.zeros_like(y)
        torch.cuda._sleep(50_000_000)
        late_x.copy_(x.detach())
        late_y.copy_(y.detach())
        actual = value_and_gradients(late_x.requires_grad_(), late_y.requires_grad_(), kernel=name)
    stream.synchronize()
    for a, b in zip(actual, expected, strict=True):
        assert torch.equal(a, b)


@NAMES
def test_runs_on_the_tensors_device_while_another_is_current(name):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    expected = value_and_gradients(*data(), kernel=name)
    with torch.cuda.device(0):
        actual = value_and_gradients(*data(device="cuda:1"), kernel=name, x_lengths=[100] * 4)
        assert torch.cuda.current_device() == 0
    assert all(a.device == torch.device("cuda:1") for a in actual)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a.to("cuda:0"), b)


@NAMES
@pytest.mark.parametrize("options", [{}, {"bandwidth": 10}, {"cost": "cosine"}, {"lengths": True}], ids=str)
def test_forward_and_backward_run_in_a_captured_graph(name, options):
    options = dict(options)
    if options.pop("lengths", False):
        options["x_lengths"] = torch.tensor([100, 1, 33, 64], device="cuda")
    x, y = data()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            value_and_gradients(x, y, kernel=name, **options)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = value_and_gradients(x, y, kernel=name, **options)
    for seed in (3, 4):
        with torch.no_grad():
            x.copy_(normal(*x.shape, seed=seed))
        graph.replay()
        for a, b in zip(captured, value_and_gradients(x, y, kernel=name, **options), strict=True):
            assert torch.equal(a, b)


def training_step(loss, x, y, **lengths):
    """(network, a step that trains it and returns the loss), the same at every call."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).cuda()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss(network(x), y, **lengths)
        value.backward()
        optimizer.step()
        return value.detach()

    return network, step


@pytest.mark.parametrize("n", [100, 1500])
@pytest.mark.parametrize("kind", ["soft", "sharp", "mean"])
def test_a_whole_training_step_on_a_divergence_runs_in_a_captured_graph(kind, n):
    x, y = (series.detach() for series in data(n=n, m=n - 20))
    lengths = {"x_lengths": torch.tensor([n, 1, n // 3, 64], device="cuda")}
    loss = SoftDTWDivergence(gamma=0.5, kind=kind, warp_penalty=0.1)
    network, step = training_step(loss, x, y, **lengths)
    twin, eager_step = training_step(loss, x, y, **lengths)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    for _ in range(3):
        eager_step()
    network.zero_grad()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    # A captured matrix product may be computed another way than an eager one; a step of Adam is 1e-2 long.
    close = functools.partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)
    for seed in (3, 4):
        before = [parameter.detach().clone() for parameter in network.parameters()]
        x.copy_(normal(*x.shape, seed=seed))
        graph.replay()
        close(captured, eager_step())
        for parameter, own, old in zip(network.parameters(), twin.parameters(), before, strict=True):
            close(parameter, own)
            assert not torch.equal(parameter, old)


@NAMES
def test_nothing_waits_for_the_device(name):
    x, y = data()
    on_device = torch.tensor([100, 1, 33, 64], device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for cost in (*COSTS, torch.cdist):
            for lengths in (None, on_device, [100, 1, 33, 64], torch.tensor([100, 1, 33, 64])):
                value_and_gradients(x, y, kernel=name, cost=cost, x_lengths=lengths, bandwidth=lengths)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@NAMES
def test_offsets_beyond_two_to_the_31_elements(name):
    needs_free_memory(20)
    batch_stride = 2**31 // 2 + 12_345
    base = torch.zeros(3 * batch_stride, device="cuda")
    x = base.as_strided((3, 50, 2), (batch_stride, 2, 1))
    x.copy_(normal(3, 50, 2, seed=1))
    y = normal(3, 40, 2, seed=2, dtype=torch.float32).cuda()
    actual, expected = soft_dtw(x, y, gamma=1.0, kernel=name), soft_dtw(x.contiguous(), y, gamma=1.0, kernel=name)
    assert torch.equal(actual, expected)
    rows = base.as_strided((2, 3, 1), (1, batch_stride, 1))
    assert torch.equal(
        soft_dtw(rows, y[:2, :, :1], gamma=1.0, kernel=name),
        soft_dtw(rows.contiguous(), y[:2, :, :1], gamma=1.0, kernel=name),
    )


def test_a_table_of_more_than_two_to_the_31_cells():
    needs_free_memory(60)
    x, y = data(1, 50_000, 45_000, 1)
    diagonal = value_and_gradients(x, y, kernel="diagonal")
    tiled = value_and_gradients(x, y, kernel="tiled")
    for a, b in zip(diagonal, tiled, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-3)


def test_65536_by_65536_forward_in_linear_memory():
    x, y = data(1, 65_536, 65_536, 1)
    with torch.no_grad():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        value = soft_dtw(x, y, gamma=1.0)
        torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before < 64 * 2**20
    assert value.isfinite().all()
    assert value.item() == pytest.approx(soft_dtw(y, x, gamma=1.0).item(), rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"bandwidth": 30}, {"warp_penalty": 0.3}, {"x_lengths": [300, 1, 150] * 50}, {"gamma": 1e-3}],
    ids=lambda options: next(iter(options), "plain"),
)
@pytest.mark.parametrize("dim", [1, 3, 4, 5, 8])
def test_values_alone_of_more_strips_than_run_at_once(dim, options):
    """tiled then takes four rows a lane, and two where it keeps something for backward."""
    x, y = data(150, 300, 280, dim)
    options = {"gamma": 1.0} | options
    exact = soft_dtw(x.double(), y.double(), kernel="diagonal", **options)
    kept = soft_dtw(x, y, kernel="tiled", **options)
    with torch.no_grad():
        alone = soft_dtw(x, y, kernel="tiled", **options)
    for value in (kept, alone):
        torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("gamma", [1.0, 0.1, 0.03, 0.01, 0.003, 0.001])
@pytest.mark.parametrize("dim", [1, 5])
def test_few_long_pairs_whose_references_are_renewed_in_time(dim, gamma):
    """From never but at the beginning to in every stage; outliers make chunks that the plain sweep gives up in between."""
    x, y = (z.detach() for z in data(2, 700, 3000, dim))
    for outlier in (0, 300.0):
        y[:, 1000::701] += outlier
        pair = [z.clone().requires_grad_() for z in (x, y)]
        exact = value_and_gradients(*(z.double().requires_grad_() for z in (x, y)), gamma=gamma, kernel="diagonal")
        value, *gradients = value_and_gradients(*pair, gamma=gamma, kernel="tiled")
        torch.testing.assert_close(value.double(), exact[0], rtol=1e-5, atol=1e-5 * gamma)
        for actual, expected in zip(gradients, exact[1:], strict=True):
            assert (actual - expected).abs().max() <= 1e-3 * expected.abs().max()


@NAMES
@pytest.mark.parametrize("dim", [1, 3, 17])
def test_rows_far_from_the_first_one_of_a_long_pair(name, dim):
    """2500 rows of thousands of powers of two, more than float32 counts: references follow down the rows."""
    levels = torch.tensor([1.75, 2.0, 1.8125, 1.625, 1.9375]).repeat_interleave(500)
    x, y = torch.zeros(1, 2500, dim), torch.zeros(1, 250, dim)
    x[0, :, 0], y[0, :, 0] = levels, -2.0
    x, y = x.cuda().requires_grad_(), y.cuda().requires_grad_()
    exact = value_and_gradients(*(z.detach().double().requires_grad_() for z in (x, y)), gamma=1 / 128, kernel="diagonal")
    value, *gradients = value_and_gradients(x, y, gamma=1 / 128, kernel=name)
    torch.testing.assert_close(value.double(), exact[0], rtol=1e-6, atol=0)
    for actual, expected in zip(gradients, exact[1:], strict=True):
        assert (actual - expected).abs().max() <= 1e-4 * expected.abs().max()


@NAMES
@pytest.mark.parametrize("dim", [1, 2, 8, 9, 40])
@pytest.mark.parametrize(
    "options",
    [{}, {"bandwidth": 20}, {"x_lengths": [150, 1, 70, 149], "y_lengths": [140, 90, 1, 139]}],
    ids=lambda options: next(iter(options), "plain"),
)
def test_what_others_have_left_in_memory_does_no_harm(name, dim, options):
    """Results and scratch memory come uninitialised: whatever a kernel does not write shows as NaN."""
    x, y = data(4, 150, 140, dim)
    first = value_and_gradients(x, y, kernel=name, **options)
    # Ever smaller ones, to get into every gap of what the first call has left.
    torch.cuda.empty_cache()
    sizes = (24, *(size for size in range(17, 6, -1) for _ in range(64)))
    rubbish = [torch.full((2**size,), float("nan"), device="cuda") for size in sizes]
    torch.cuda.synchronize()
    del rubbish
    torch.testing.assert_close(value_and_gradients(x, y, kernel=name, **options), first, rtol=0, atol=0)


@NAMES
def test_launches_of_more_pairs_than_a_grid_dimension_holds(name):
    x, y = data(140_000, 2, 3, 1)
    value, grad_x, grad_y = value_and_gradients(x, y, kernel=name)
    last = value_and_gradients(x[-7:].detach().requires_grad_(), y[-7:].detach().requires_grad_(), kernel=name)
    torch.testing.assert_close((value[-7:], grad_x[-7:], grad_y[-7:]), last)


@NAMES
def test_a_chosen_kernel_runs_cost_matrices_too(name):
    costs = normal(3, 150, 170, seed=1, dtype=torch.float32).square()
    on_device, on_host = costs.cuda().requires_grad_(), costs.clone().requires_grad_()
    soft_dtw_from_cost(on_device, 0.3, kernel=name).sum().backward()
    soft_dtw_from_cost(on_host, 0.3).sum().backward()
    torch.testing.assert_close(on_device.grad.cpu(), on_host.grad, rtol=1e-4, atol=1e-5)


def test_a_network_trains_and_its_loss_falls():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 30)).cuda()
    optimizer, criterion = torch.optim.Adam(network.parameters(), 1e-2), SoftDTW(gamma=0.1)
    x = normal(32, 20, seed=1, dtype=torch.float32).cuda()
    y = x.cumsum(1)[:, :10].repeat(1, 3).unsqueeze(2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = criterion(network(x).unsqueeze(2), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.isfinite(losses).all() and losses[-1] < 0.5 * losses[0]


@NAMES
def test_repeated_launches_in_two_streams_do_not_disturb_each_other(name):
    x, y = data(8, 300, 200, 1)
    expected = value_and_gradients(x, y, kernel=name)
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    results = []
    for repeat in range(20):
        with torch.cuda.stream(streams[repeat % 2]):
            results.append(value_and_gradients(x, y, kernel=name))
    torch.cuda.synchronize()
    for result in results:
        for a, b in zip(result, expected, strict=True):
            assert torch.equal(a, b)
