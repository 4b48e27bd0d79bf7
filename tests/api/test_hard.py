"""Hard DTW: values, gradients along the best path, and the path."""

import numpy as np
import oracle
import pytest
import torch
from cases import COSTS, DEVICES, GRADIENT_TOLERANCE, assert_gradients_close, assert_values_close, normal, numpy64

from torchsoftdtw import DTW, dtw, dtw_from_cost, dtw_path, dtw_path_from_cost, soft_dtw, soft_dtw_from_cost
from torchsoftdtw._kernels import ops

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LENGTHS = {"full": {}, "lengths": {"x_lengths": [37, 5, 20], "y_lengths": [11, 45, 1]}}
BANDS = {"no_band": None, "band": 3, "bands": [0, 50, 7]}
SETTINGS = {
    "plain": {},
    "lengths": LENGTHS["lengths"],
    "band": {"bandwidth": 3},
    "bands": {"bandwidth": [0, 50, 7], **LENGTHS["lengths"]},
    "penalty": {"warp_penalty": 0.4},
    "penalties": {"warp_penalty": [0.0, 0.7, 2.0], "bandwidth": 9},
    "open_ends": {"open_ends": True},
    "open_ends_lengths": {"open_ends": True, "warp_penalty": 0.3, **LENGTHS["lengths"]},
}

pytestmark = pytest.mark.parametrize("device", DEVICES)


def series(device, batch=3, n=37, m=45, dim=3, dtype=torch.float64):
    x, y = normal(batch, n, dim, seed=1, dtype=dtype), normal(batch, m, dim, seed=2, dtype=dtype)
    return x.to(device), y.to(device)


def as_lists(paths):
    return [[tuple(cell) for cell in path.tolist()] for path in paths]


def assert_valid(path, n, m, open_ends=False):
    """A path of (K, 2) cells from corner to corner in the three steps."""
    path = path.cpu().numpy()
    assert path.dtype == np.int64 and path[0, 0] == 0 and path[-1, 0] == n - 1
    assert open_ends or (path[0, 1] == 0 and path[-1, 1] == m - 1)
    assert path[:, 1].min() >= 0 and path[:, 1].max() < m
    assert {tuple(step) for step in np.diff(path, axis=0)} <= {(1, 1), (1, 0), (0, 1)}


def cost_of(path, costs, penalty=0.0):
    path = path.cpu().numpy()
    sideways = (np.diff(path, axis=0).sum(1) == 1).sum()
    return costs[path[:, 0], path[:, 1]].sum() + penalty * sideways


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_value_gradients_and_path_agree_with_the_oracle(device, dtype, cost, setting):
    assert_as_the_oracle(*series(device, dtype=dtype), cost, SETTINGS[setting])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dim", [9, 12, 40])
def test_many_dimensions_agree_with_the_oracle(device, dim, cost, setting):
    assert_as_the_oracle(*series(device, dim=dim, dtype=torch.float32), cost, SETTINGS[setting])


def assert_as_the_oracle(x, y, cost, options):
    dtype = x.dtype
    expected = oracle.hard_dtw(numpy64(x), numpy64(y), cost, **options)
    x.requires_grad_(), y.requires_grad_()
    value, paths = dtw_path(x, y, cost=cost, **options)
    assert torch.equal(dtw(x, y, cost=cost, **options), value)
    with torch.no_grad():
        torch.testing.assert_close(dtw(x, y, cost=cost, **options), value.detach(), rtol=1e-6, atol=1e-6)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert_values_close(numpy64(value), expected[0], dtype, 1.0)
    assert as_lists(paths) == expected[3]
    gradients = torch.autograd.grad(value.sum(), (x, y))
    for actual, wanted in zip(gradients, expected[1:3], strict=True):
        assert actual.dtype == dtype
        assert_gradients_close(numpy64(actual), wanted, dtype)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_cost_matrices_agree_with_the_oracle(device, dtype, setting):
    costs = normal(3, 37, 45, seed=3, dtype=dtype).square().to(device).requires_grad_()
    options = SETTINGS[setting]
    value = dtw_from_cost(costs, **options)
    assert torch.equal(soft_dtw_from_cost(costs, 0, **options), value)
    (gradient,) = torch.autograd.grad(value.sum(), costs)
    value, paths = dtw_path_from_cost(costs, **options)
    assert torch.equal(torch.autograd.grad(value.sum(), costs)[0], gradient)
    for b in range(3):
        n, m = (options.get(name, [size] * 3)[b] for name, size in (("x_lengths", 37), ("y_lengths", 45)))
        own = {
            name: options[name] if np.ndim(options[name]) == 0 else options[name][b]
            for name in ("bandwidth", "warp_penalty", "open_ends")
            if name in options
        }
        expected, path = oracle.hard_dtw_from_cost(numpy64(costs)[b, :n, :m], **own)
        assert_values_close(numpy64(value)[b], expected, dtype, 1.0)
        on_path = np.zeros((37, 45))
        on_path[tuple(np.array(path).T)] = 1
        np.testing.assert_array_equal(numpy64(gradient)[b], on_path)
        assert as_lists(paths[b : b + 1]) == [[tuple(cell) for cell in path]]


@pytest.mark.always
@pytest.mark.parametrize("open_ends", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_ties_are_broken_in_the_documented_order(device, dtype, open_ends):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 3, (40, 70, 1), generator=generator).to(device, dtype)
    y = torch.randint(0, 3, (40, 80, 1), generator=generator).to(device, dtype)
    for penalty in (0.0, 1.0):
        value, paths = dtw_path(x, y, warp_penalty=penalty, open_ends=open_ends)
        expected = oracle.hard_dtw(numpy64(x), numpy64(y), warp_penalty=penalty, open_ends=open_ends)
        np.testing.assert_array_equal(numpy64(value), expected[0])
        assert as_lists(paths) == expected[3]
    constant = torch.zeros(1, 5, 1, device=device)
    assert as_lists(dtw_path(constant, constant)[1]) == [[(i, i) for i in range(5)]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("batch", "n", "m"),
    [
        (1, 1, 1),
        (2, 1, 9),
        (2, 9, 1),
        (3, 31, 33),
        (3, 64, 65),
        (2, 129, 500),
        (2, 500, 129),
        (1, 2500, 1900),
        (700, 90, 60),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("dim", [1, 2, 6, 17])
def test_any_two_lengths(device, dtype, batch, n, m, dim):
    x, y = normal(batch, n, dim, seed=n, dtype=dtype).cumsum(1), normal(batch, m, dim, seed=m, dtype=dtype).cumsum(1)
    for bandwidth, penalty in ((None, 0.0), (7, 0.25)):
        options = dict(bandwidth=bandwidth, warp_penalty=penalty)
        value, paths = dtw_path(x.to(device), y.to(device), **options)
        alone = dtw(x.to(device), y.to(device), **options)
        torch.testing.assert_close(alone, value, rtol=1e-6, atol=1e-6)
        for b in range(0, batch, 97):
            costs = ((x[b, :, None] - y[b, None]) ** 2).sum(2).double().numpy()
            assert_valid(paths[b], n, m)
            assert_values_close(numpy64(value)[b], cost_of(paths[b], costs, penalty), dtype, 1.0)
            radius = n + m if bandwidth is None else bandwidth
            best = oracle.hard_value_by_diagonals(costs, radius, penalty)
            assert_values_close(numpy64(value)[b], best, dtype, 1.0)


@pytest.mark.parametrize("wanted", ["x", "y", "both"])
@pytest.mark.parametrize("setting", ["plain", "lengths", "open_ends", "penalty"])
@pytest.mark.parametrize(("dim", "dtype"), [(1, torch.float32), (3, torch.float32), (1, torch.float64)], ids=str)
def test_gradients_of_many_pairs(device, dim, dtype, setting, wanted):
    """On a GPU so many have a block each. Whole numbers, with many equally good steps."""
    batch, n, m = 300, 9, 14
    generator = torch.Generator().manual_seed(dim)
    x, y = (torch.randint(-2, 3, (batch, size, dim), generator=generator).to(dtype) for size in (n, m))
    options = {"open_ends": setting == "open_ends", "warp_penalty": 2.0 if setting == "penalty" else 0.0}
    if setting == "lengths":
        for name, z in (("x_lengths", x), ("y_lengths", y)):
            options[name] = torch.randint(1, z.shape[1] + 1, (batch,), generator=generator).tolist()
            for b, length in enumerate(options[name]):
                z[b, length:] = np.nan
    expected = oracle.hard_dtw(numpy64(x), numpy64(y), **options)
    x, y = (z.to(device).detach().requires_grad_(wanted in (name, "both")) for name, z in (("x", x), ("y", y)))
    arriving = torch.arange(batch, dtype=dtype).to(device)
    inputs = [z for z in (x, y) if z.requires_grad]
    gradients = dict(zip(map(id, inputs), torch.autograd.grad(dtw(x, y, **options), inputs, arriving), strict=True))
    for z, of_pairs in ((x, expected[1]), (y, expected[2])):
        if z.requires_grad:
            np.testing.assert_array_equal(numpy64(gradients[id(z)]), of_pairs * np.arange(batch)[:, None, None])


@pytest.mark.long
@pytest.mark.parametrize("rows", [30, 64, 130, 500, 1500])
@pytest.mark.parametrize("batch", [1, 1500])
@pytest.mark.parametrize("dim", [1, 2, 7, 9])
def test_a_path_that_comes_late_from_bad_neighbours(device, dim, batch, rows):
    """Up to the jump the rows behind it hold nothing but cells 100,000 times the value."""
    if batch * rows * dim > 1500 * 1500:
        pytest.skip("no other case than fewer pairs are")
    noise = [normal(batch, length, dim, seed=length, dtype=torch.float32) * 1e-3 for length in (rows + 40, rows + 70)]
    x, y = (series + 100 * (torch.arange(series.shape[1]) >= rows).float()[:, None] for series in noise)
    expected = dtw(x[:3].double(), y[:3].double())
    assert expected.max() < 0.1
    value, _ = dtw_path(x.to(device), y.to(device))
    for actual in (value, dtw(x.to(device), y.to(device))):
        assert_values_close(numpy64(actual[:3]), numpy64(expected), torch.float32, 1e-6)


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, 40, 600, 1100, 2100])
def test_any_batch(device, batch):
    x, y = (normal(batch, length, 1, seed=length).float().to(device) for length in (300, 280))
    value, paths = dtw_path(x, y)
    expected = dtw(x.double(), y.double())
    assert_values_close(numpy64(value), numpy64(expected), torch.float32, 1.0)
    for b in range(0, batch, 53):
        assert_valid(paths[b], 300, 280)
    # Every pair has the value that it has alone.
    torch.testing.assert_close(dtw(x[:3], y[:3]), value[:3], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_open_ends_find_the_best_part(device, dtype):
    x, y = series(device, 2, 9, 30, 2, dtype)
    value, paths = dtw_path(x, y, open_ends=True)
    for b in range(2):
        parts = [dtw(x[b], y[b, i:j]).item() for i in range(30) for j in range(i + 1, 31)]
        assert value[b].item() == pytest.approx(min(parts), rel=1e-6)
        first, last = paths[b][0, 1].item(), paths[b][-1, 1].item()
        assert dtw(x[b], y[b, first : last + 1]).item() == pytest.approx(min(parts), rel=1e-6)
        assert_valid(paths[b], 9, 30, open_ends=True)
    hidden = torch.cat([y[:, :11] + 50, x, y[:, :4] - 50], 1)
    assert torch.equal(dtw(x, hidden, open_ends=True), torch.zeros_like(value))
    assert as_lists(dtw_path(x, hidden, open_ends=True)[1]) == [[(i, i + 11) for i in range(9)]] * 2


def small(device, setting):
    """Series and options for finite differences."""
    x, y = (tensor.requires_grad_() for tensor in series(device, n=6, m=7, dim=2))
    options = dict(SETTINGS[setting])
    for name, longest in (("x_lengths", 6), ("y_lengths", 7)):
        if name in options:
            options[name] = [min(length, longest) for length in options[name]]
    return x, y, options


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cosine", lambda x, y: torch.cos(x @ y.transpose(1, 2)) + 2])
def test_gradients_are_those_of_finite_differences(device, cost, setting):
    x, y, options = small(device, setting)
    check = dict(eps=1e-7, atol=1e-6, nondet_tol=0.0, check_forward_ad=True, check_batched_forward_grad=True)
    assert torch.autograd.gradcheck(lambda x, y: dtw(x, y, cost=cost, **options), (x, y), **check)


def test_the_gradient_of_a_penalty_counts_sideways_steps(device):
    x, y = series(device, n=20, m=26)
    penalty = torch.tensor([0.1, 0.5, 3.0], dtype=torch.float64, device=device, requires_grad=True)
    options = dict(x_lengths=[20, 3, 9], y_lengths=[5, 26, 9])
    value, paths = dtw_path(x, y, warp_penalty=penalty, **options)
    sideways = [(path.diff(dim=0).sum(1) == 1).sum().item() for path in paths]
    (gradient,) = torch.autograd.grad(value.sum(), penalty)
    assert gradient.tolist() == sideways
    options = dict(x_lengths=[6, 3, 5], y_lengths=[5, 7, 7])
    costs = torch.cdist(x[:, :6], y[:, :7]).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda costs, penalty: soft_dtw_from_cost(costs, 0, warp_penalty=penalty, **options), (costs, penalty), eps=1e-7
    )


def test_gamma_zero_is_hard_dtw(device):
    x, y = series(device)
    options = dict(cost="cityblock", bandwidth=5, warp_penalty=0.2, x_lengths=[37, 30, 9], y_lengths=[4, 45, 9])
    expected = dtw(x, y, **options)
    assert torch.equal(soft_dtw(x, y, 0, **options), expected)
    assert torch.equal(soft_dtw(x, y, 0.0, kernel="auto", **options), expected)
    torch.testing.assert_close(soft_dtw(x, y, 1e-7, **options), expected, rtol=1e-6, atol=1e-6)


def test_length_norm_divides_by_both_lengths(device):
    x, y = series(device)
    lengths = dict(x_lengths=[37, 30, 9], y_lengths=[4, 45, 9])
    expected = dtw(x, y, **lengths) / torch.tensor([41, 75, 18], device=device)
    torch.testing.assert_close(dtw(x, y, length_norm=True, **lengths), expected)
    torch.testing.assert_close(dtw_path(x, y, length_norm=True, **lengths)[0], expected)
    torch.testing.assert_close(dtw(x, y, length_norm=True), dtw(x, y) / 82)
    costs = torch.cdist(x, y).square()
    for actual in (
        dtw_from_cost(costs, length_norm=True, **lengths),
        *dtw_path_from_cost(costs, length_norm=True, **lengths)[:1],
    ):
        torch.testing.assert_close(actual, expected)


def test_the_module_is_the_function(device):
    x, y = series(device)
    lengths = dict(x_lengths=[37, 30, 9], y_lengths=[4, 45, 9])
    penalties = torch.tensor([0.0, 0.5, 2.0], device=device)
    for options in (
        {},
        {"cost": "cosine", "bandwidth": 5, "warp_penalty": 0.2, "length_norm": True},
        {"cost": lambda x, y: torch.cdist(x, y), "open_ends": True, "warp_penalty": penalties},
    ):
        expected = dtw(x, y, **options, **lengths)
        assert torch.equal(DTW(reduction="none", **options).to(device)(x, y, **lengths), expected)
        assert torch.equal(DTW(reduction="sum", **options).to(device)(x, y, **lengths), expected.sum())
        assert torch.equal(DTW(**options).to(device)(x, y, **lengths), expected.mean())
    leaf = x.clone().requires_grad_()
    DTW(reduction="sum")(leaf, y).backward()
    assert torch.equal(leaf.grad, torch.autograd.grad(dtw(leaf, y).sum(), leaf)[0])


def test_the_module_tells_its_options(device):
    expected = "DTW(cost=euclidean, bandwidth=3, warp_penalty=0.5, reduction=sum, length_norm=True)"
    assert repr(DTW(cost="euclidean", bandwidth=3, warp_penalty=0.5, reduction="sum", length_norm=True)) == expected
    penalty = torch.nn.Parameter(torch.tensor(1.0))
    assert list(DTW(warp_penalty=penalty).parameters()) == [penalty]


def test_answers_have_names(device):
    x, y = series(device)
    costs = torch.cdist(x, y)
    for answer in (dtw_path(x, y), dtw_path_from_cost(costs), dtw_path(x[0], y[0]), dtw_path_from_cost(costs[0])):
        value, paths = answer
        assert answer.value is value and answer.paths is paths
    assert value.shape == () and torch.equal(value, dtw_from_cost(costs[0])) and paths.shape[1] == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_wrong_number_spoils_its_pair_alone(device, dtype, wrong):
    x, y = series(device, 4, 150, 140, 1, dtype)
    expected = dtw_path(x, y)
    spoiled = x.clone()
    spoiled[1, 77] = wrong
    spoiled.requires_grad_()
    value, paths = dtw_path(spoiled, y)
    kept = [0, 2, 3]
    assert torch.equal(value[kept], expected[0][kept])
    assert not value[1].isfinite() and paths[1].shape == (0, 2)
    assert value[1].isnan() or wrong == float("inf")
    assert not torch.equal(dtw(spoiled.detach(), y)[1].isfinite(), torch.tensor(True, device=device))
    (gradient,) = torch.autograd.grad(value.sum(), spoiled)
    assert gradient[kept].isfinite().all() and gradient[1].isnan().all()


def test_infinite_costs_forbid_their_cells(device):
    costs = normal(2, 40, 50, seed=1).square().float().to(device)
    forbidden = costs.clone()
    forbidden[0, 20, :30] = torch.inf
    value = soft_dtw_from_cost(forbidden, 0)
    assert value[0].item() == pytest.approx(oracle.hard_dtw_from_cost(numpy64(forbidden)[0])[0], rel=1e-5)
    assert torch.equal(value[1], soft_dtw_from_cost(costs, 0)[1])
    forbidden[0, 20] = torch.inf
    assert soft_dtw_from_cost(forbidden, 0).tolist() == [float("inf"), value[1].item()]


@pytest.mark.parametrize("wall", [1e29, 1e31, 1e38])
def test_finite_costs_of_any_size_forbid_nothing(device, wall):
    costs = normal(1, 40, 50, seed=1).square().float().to(device)
    costs[0, 20] = wall
    assert soft_dtw_from_cost(costs, 0).item() == pytest.approx(wall, rel=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_padding_gets_zero_gradient_even_when_nan(device, cost):
    x, y = series(device, dtype=torch.float32)
    lengths = LENGTHS["lengths"]
    clean = dtw(x, y, cost=cost, **lengths)
    for tensor, own in ((x, lengths["x_lengths"]), (y, lengths["y_lengths"])):
        for row, length in zip(tensor, own, strict=True):
            row[length:] = torch.nan
    x.requires_grad_(), y.requires_grad_()
    value = dtw(x, y, cost=cost, **lengths)
    assert torch.equal(value, clean)
    for gradient, own in zip(torch.autograd.grad(value.sum(), (x, y)), lengths.values(), strict=True):
        for row, length in zip(gradient, own, strict=True):
            assert not row[length:].any() and row[:length].isfinite().all() and row[:length].any()


def test_float32_does_not_lose_digits_along_a_long_pair(device):
    x, y = normal(2, 4000, 1, seed=1).float().to(device), normal(2, 4100, 1, seed=2).float().to(device)
    value, expected = dtw(x, y), dtw(x.double(), y.double())
    np.testing.assert_allclose(numpy64(value), numpy64(expected), rtol=1e-6)


def test_meta_tensors_have_shapes_but_no_paths(device):
    x, y = (tensor.to("meta") for tensor in series(device))
    assert dtw(x, y).is_meta and dtw(x, y).shape == (3,)
    with pytest.raises(RuntimeError, match="dtw_path: meta tensors have no paths"):
        dtw_path(x, y)
    with pytest.raises(RuntimeError, match="dtw_path_from_cost: meta tensors have no paths; `dtw_from_cost` gives"):
        dtw_path_from_cost(x @ y.transpose(1, 2))


def test_strided_series_and_pairs_without_a_batch(device):
    x, y = series(device)
    wide = torch.randn(3, 45, 6, device=device, dtype=torch.float64)
    wide[:, :, ::2] = y
    assert torch.equal(dtw(x.transpose(0, 1).contiguous().transpose(0, 1), wide[:, :, ::2]), dtw(x, y))
    value, path = dtw_path(x[0], y[0], x_lengths=20, y_lengths=[30])
    assert value.shape == () and torch.equal(value, dtw(x[0, :20], y[0, :30]))
    assert_valid(path, 20, 30)
    assert dtw(x[:0], y[:0]).shape == (0,) and dtw_path(x[:0], y[:0])[1] == []


@pytest.mark.always
@pytest.mark.parametrize("setting", SETTINGS)
def test_opcheck(device, setting):
    options = SETTINGS[setting]
    x, y = (tensor.requires_grad_() for tensor in series(device))

    def per_pair(name, dtype):
        value = options.get(name)
        return torch.tensor(value, dtype=dtype, device=device) if isinstance(value, list) else None

    tensors = [per_pair(name, torch.int64) for name in ("x_lengths", "y_lengths", "bandwidth")]
    tensors.append(per_pair("warp_penalty", torch.float64))
    numbers = [
        options[name] if isinstance(options.get(name), (int, float)) else default
        for name, default in (("bandwidth", -1), ("warp_penalty", 0.0))
    ]
    shared = (*tensors, *numbers, options.get("open_ends", False))
    costs = torch.cdist(x, y).detach().requires_grad_()
    for save in (True, False):
        torch.library.opcheck(ops.dtw, (x.detach(), y.detach(), *shared, "euclidean", save))
        torch.library.opcheck(ops.dtw_from_cost, (costs.detach(), *shared, save))
    torch.library.opcheck(ops.dtw, (x, y, *shared, "euclidean", True))
    torch.library.opcheck(ops.dtw_from_cost, (costs, *shared, True))


def test_compiles_without_a_graph_break(device):
    torch._dynamo.reset()

    def loss(x, y):
        return dtw(x, y, bandwidth=6, length_norm=True).sum() + soft_dtw(x, y, 0, open_ends=True).sum()

    x, y = series(device, dtype=torch.float32)
    x.requires_grad_()
    expected = torch.autograd.grad(loss(x, y), x)[0]
    actual = torch.autograd.grad(torch.compile(loss, fullgraph=True, backend="aot_eager")(x, y), x)[0]
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(("n", "m", "dim"), [(50, 50, 1), (80, 30, 3), (20, 130, 2)])
def test_values_agree_with_tslearn_and_aeon(device, n, m, dim):
    dtw_distance = pytest.importorskip("aeon.distances").dtw_distance
    tslearn = pytest.importorskip("tslearn.metrics")
    x, y = normal(1, n, dim, seed=n).to(device), normal(1, m, dim, seed=m).to(device)
    a, b = numpy64(x)[0], numpy64(y)[0]
    value, paths = dtw_path(x, y)
    assert value.item() == pytest.approx(tslearn.dtw(a, b) ** 2, rel=1e-10)
    assert value.item() == pytest.approx(dtw_distance(a.T, b.T), rel=1e-10)
    assert as_lists(paths)[0] == [tuple(map(int, cell)) for cell in tslearn.dtw_path(a, b)[0]]
    for radius in (0, 3, 11, 200):
        value = dtw(x, y, bandwidth=radius).item()
        theirs = tslearn.dtw(a, b, global_constraint="sakoe_chiba", sakoe_chiba_radius=radius)
        assert value == pytest.approx(theirs**2, rel=1e-10)
        if n == m:  # with other lengths aeon's band is another
            assert value == pytest.approx(dtw_distance(a.T, b.T, window=min(radius / n, 1.0)), rel=1e-10)


def test_a_gradient_scales_with_what_arrives(device):
    x, y = (tensor.requires_grad_() for tensor in series(device))
    weights = torch.tensor([0.0, -2.0, 1e3], dtype=torch.float64, device=device)
    plain = torch.autograd.grad(dtw(x, y).sum(), (x, y))
    scaled = torch.autograd.grad(dtw(x, y), (x, y), weights)
    for before, after in zip(plain, scaled, strict=True):
        torch.testing.assert_close(
            after, before * weights[:, None, None], rtol=GRADIENT_TOLERANCE[torch.float64], atol=1e-12
        )


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("cost", [*COSTS, lambda x, y: torch.cos(x @ y.transpose(1, 2)) + 2])
def test_second_derivatives_are_those_of_the_cost_along_the_path(device, cost, setting):
    x, y, options = small(device, setting)
    check = dict(eps=1e-6, atol=1e-5, check_fwd_over_rev=True, check_batched_grad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x, y: dtw(x, y, cost=cost, **options), (x, y), **check)
    value, paths = dtw_path(x, y, cost=cost, **options)
    matrices = [cost(x, y) if callable(cost) else None] * 3
    along = [
        (oracle.torch_costs(x[b], y[b], cost) if matrices[b] is None else matrices[b][b])[tuple(paths[b].T)].sum()
        for b in range(3)
    ]
    for wanted in ((x, y), (x,), (y,)):
        actual, expected = (second_derivatives(total, wanted) for total in (value.sum(), torch.stack(along).sum()))
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


def second_derivatives(value, wanted):
    """The gradients of the summed squares of the gradients."""
    slopes = torch.autograd.grad(value, wanted, create_graph=True)
    return torch.autograd.grad(sum(slope.square().sum() for slope in slopes) + 0 * value, wanted, retain_graph=True)


@pytest.mark.parametrize("setting", SETTINGS)
def test_second_derivatives_of_cost_matrices_and_penalties(device, setting):
    *_, options = small(device, setting)
    costs = normal(3, 6, 7, seed=3).square().to(device).requires_grad_()
    penalty = torch.tensor([0.1, 0.5, 3.0], dtype=torch.float64, device=device, requires_grad=True)
    options["warp_penalty"] = penalty
    weights = torch.tensor([0.3, 2.0, -1.0], dtype=torch.float64, device=device, requires_grad=True)
    value = soft_dtw_from_cost(costs, 0, **options)
    slopes = torch.autograd.grad(value, (costs, penalty), weights, create_graph=True)
    assert all(
        torch.equal(a, b) for a, b in zip(slopes, torch.autograd.grad(value, (costs, penalty), weights), strict=True)
    )
    # The path, and with it the gradient, does not depend on the costs: only on what arrives from above.
    assert torch.autograd.grad(slopes[0].sum(), costs, retain_graph=True, allow_unused=True)[0] is None
    (steps,) = torch.autograd.grad(slopes[1].sum(), weights)
    torch.testing.assert_close(steps * weights, slopes[1])


@pytest.mark.parametrize("wrong", [0, -3, 38, 2**40])
def test_a_wrong_length_on_the_device_gives_nan_for_its_pair_alone(device, wrong):
    if device == "cpu":
        pytest.skip("on the CPU a wrong length is an error")
    x, y = series(device)
    lengths = torch.tensor([37, wrong, 20], device=device)
    value, paths = dtw_path(x.requires_grad_(), y, x_lengths=lengths)
    expected = dtw(x, y, x_lengths=[37, 37, 20])
    assert value[1].isnan() and paths[1].shape == (0, 2)
    assert torch.equal(value[::2], expected[::2])
    (gradient,) = torch.autograd.grad(value[::2].sum(), x)
    assert torch.equal(gradient[::2], torch.autograd.grad(expected[::2].sum(), x)[0][::2])


@pytest.mark.parametrize("n", [300, 3000])
def test_a_training_step_runs_in_a_cuda_graph(device, n):
    if device == "cpu":
        pytest.skip("graphs are CUDA's")
    x, y = (tensor.float() for tensor in series(device, 4, n, n - 50, 2))
    x.requires_grad_()
    lengths = torch.tensor([n, 7, n // 2, 33], device=device)

    def step():
        value = dtw(x, y, x_lengths=lengths, warp_penalty=0.1)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), gradient  # no graph of one stream may be left when another is captured

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        actual = step()
    for seed in (3, 4):
        with torch.no_grad():
            x.copy_(normal(*x.shape, seed=seed))
        graph.replay()
        assert all(torch.equal(a, b) for a, b in zip(actual, step(), strict=True))


def test_memory_beside_the_inputs(device):
    if device == "cpu":
        pytest.skip("measured on CUDA")
    x, y = (normal(8, 2000, 1, seed=seed).float().to(device) for seed in (1, 2))

    def peak(function):
        function()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return torch.cuda.max_memory_allocated() - before

    cells = 8 * 2000 * 2000
    assert peak(lambda: dtw(x, y)) < 100 * 8 * 2000
    # Two bits a cell, while strips are skewed and padded, and lengths are rounded up.
    assert peak(lambda: dtw_path(x, y)) < 1.15 * cells / 4 + 1000 * 8 * 2000
