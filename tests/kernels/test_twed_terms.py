"""What twed charges rows and columns, by one op: against PyTorch's expressions in float64, with its gradients."""

import math

import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import twed
from torchsoftdtw._kernels import ops
from torchsoftdtw._measures import pairs as of
from torchsoftdtw._measures import twed_terms

F32, F64 = torch.float32, torch.float64
COSTS = ("cityblock", "euclidean", "sqeuclidean")
TOLERANCE = {F32: 2e-6, F64: 1e-14}
LENGTHS = {"x_lengths": [9, 4, 1], "y_lengths": [2, 7, 5]}


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def series(device, dtype=F64, dim=2, batch=3, n=9, m=7, padding=None):
    """x and y; beyond the LENGTHS `padding`."""
    x, y = (normal(batch, length, dim, seed=length, dtype=dtype) for length in (n, m))
    if padding is not None:
        for side, lengths in zip((x, y), LENGTHS.values(), strict=True):
            for own, length in zip(side, lengths, strict=True):
                own[length:] = padding
    return x.to(device), y.to(device)


def times_of(x, y, dtype=F64, shared=False):
    shapes = [own.shape[1:2] if shared else own.shape[:2] for own in (x, y)]
    steps = (normal(*shape, seed=5 + k).abs() + 0.1 for k, shape in enumerate(shapes))
    return [(own * 8).cumsum(-1).add(3).to(dtype).to(x.device) for own in steps]


def terms(x, y, cost="euclidean", times=(None, None), nu=0.3, lmbda=0.7, by_steps=False, **lengths):
    """The four results, with None for times that are not needed."""
    own = of.of_series(x, y, 0.0, lengths.get("x_lengths"), lengths.get("y_lengths"), None, "auto")
    nu, lmbda = of.numbers("nu", nu, own), of.numbers("lmbda", lmbda, own)
    times = of.times(*times, own)
    if by_steps:
        return twed_terms._by_steps(own, cost, nu[1], lmbda[1], own.x, own.y, *times, nu[0], lmbda[0])
    times, gaps = twed_terms.twed_terms(own, times, nu, lmbda, cost)
    return *times, *gaps


def inside(number, length, lengths):
    """Where results count, (B, L)."""
    if lengths is None:
        return torch.ones_like(number, dtype=torch.bool)
    return torch.arange(length, device=number.device) < torch.tensor(lengths, device=number.device).unsqueeze(1)


def assert_as_expressions(x, y, tolerance, times=(None, None), nu=0.3, lmbda=0.7, **options):
    """Values, and the gradients of a random sum of them, of all that is a float."""

    def leaf(own, dtype):
        if not isinstance(own, torch.Tensor) or not own.is_floating_point():
            return own
        return own.detach().to(dtype).requires_grad_()

    def run(by_steps, *dtypes):
        leaves = [leaf(own, dtype) for own, dtype in zip((x, y, *times, nu, lmbda), dtypes, strict=True)]
        found = terms(*leaves[:2], times=leaves[2:4], nu=leaves[4], lmbda=leaves[5], by_steps=by_steps, **options)
        total, kept = 0, []
        for k, own in enumerate(found):
            if own is None:
                kept.append(None)
                continue
            counts = inside(own, own.shape[1], options.get("xy"[k % 2] + "_lengths"))
            weight = torch.where(counts, normal(*own.shape, seed=20 + k).to(own.device), 0)
            total = total + (torch.where(counts, own.double(), 0) * weight).sum()
            kept.append(torch.where(counts, own.detach().double(), 0))
        learn = [own for own in leaves if isinstance(own, torch.Tensor) and own.requires_grad]
        gradients = torch.autograd.grad(total, learn, allow_unused=True)
        assert [gradient.dtype for gradient in gradients] == [own.dtype for own in learn]
        return (*kept, *gradients)

    as_given = [own.dtype if isinstance(own, torch.Tensor) else None for own in (x, y, *times, nu, lmbda)]
    for ours, theirs in zip(run(False, *as_given), run(True, *[F64] * 6), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            scale = max(1.0, theirs.abs().max().item()) if theirs.numel() else 1.0
            atol = scale * max(10 * tolerance, torch.finfo(ours.dtype).eps)
            torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("dim", [1, 3, 40])
@pytest.mark.parametrize("cost", COSTS)
def test_as_expressions(device, cost, dim, dtype):
    x, y = series(device, dtype, dim)
    numbers = {
        "nu": torch.tensor([0.3, 0.0, 2.0], dtype=F64, device=device),
        "lmbda": torch.tensor(0.6, dtype=F64, device=device),
    }
    for options in ({}, LENGTHS):
        for given in ({}, {"nu": 0.0}, numbers, {"lmbda": numbers["lmbda"]}):
            for times in ((None, None), times_of(x, y, dtype)):
                assert_as_expressions(x, y, TOLERANCE[dtype], times=times, cost=cost, **given, **options)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float16, F32, F64], ids=str)
def test_times_of_any_kind(device, dtype):
    x, y = series(device)
    for shared in (False, True):
        assert_as_expressions(x, y, 1e-14, times=times_of(x, y, dtype, shared))
        assert_as_expressions(x, y, 1e-14, times=times_of(x, y, dtype, shared), **LENGTHS)
    far = [own + 2**54 for own in times_of(x, y, torch.int64)]
    near = [own - min(far[0][:, 0].min(), far[1][:, 0].min()) for own in far]
    for ours, theirs in zip(terms(x, y, times=far), terms(x, y, times=near), strict=True):
        assert torch.equal(ours, theirs)
    mixed = times_of(x, y, torch.int64)[0], times_of(x, y, F32)[1]
    assert_as_expressions(x, y, 1e-14, times=mixed)


def test_strides(device):
    x, y = series(device, dim=5)
    x = x.transpose(1, 2).contiguous().transpose(1, 2)
    y = torch.stack([y, y], 3)[..., 1]
    times = [torch.stack([own, own], 2)[..., 0] for own in times_of(x, y)]
    assert_as_expressions(x, y, 1e-14, times=times, **LENGTHS)


@pytest.mark.parametrize("n", [1, 2, 31, 2100, 5000])
def test_lengths(device, n):
    """Of one row; of more than a block takes at once."""
    x, y = series(device, batch=2, n=n, m=3, dim=1)
    nu = torch.full((2,), 0.5, dtype=F64, device=device)
    for options in ({}, {"nu": nu}, {"times": times_of(x, y)}):
        assert_as_expressions(x, y, 1e-12, **options)


def test_no_pairs(device):
    x, y = series(device, batch=0)
    for options in ({}, {"times": times_of(x, y), "nu": torch.zeros(0, dtype=F64, device=device)}):
        assert_as_expressions(x, y, 0, **options)
    assert twed(x, y).shape == (0,)


def test_sets_of_other_sizes(device):
    x, y = series(device, F32)
    found = ops.twed_terms(x, y[:1], *[None] * 6, 0.3, 0.7, "euclidean", False, False)
    expected = ops.twed_terms(x, y, *[None] * 6, 0.3, 0.7, "euclidean", False, False)
    assert [own.shape for own in found] == [(0,), (0,), (3, 9), (1, 7)]
    assert torch.equal(found[2], expected[2])
    assert torch.equal(found[3], expected[3][:1])


@pytest.mark.parametrize("padding", [math.nan, math.inf])
@pytest.mark.parametrize("cost", COSTS)
def test_padding_may_hold_anything(device, cost, padding):
    x, y = (own.requires_grad_() for own in series(device, padding=padding))
    times = times_of(x, y)
    for side, lengths in zip(times, LENGTHS.values(), strict=True):
        for own, length in zip(side, lengths, strict=True):
            own[length:] = -1.0  # as if they decreased
    found = terms(x, y, cost, times, **LENGTHS)
    assert all(own.isfinite().all() for own in found)
    for gradient in torch.autograd.grad(sum(own.sum() for own in found), (x, y)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("cost", COSTS)
def test_what_is_not_finite_is_as_in_the_expressions(device, cost):
    for bad in (math.nan, math.inf, -math.inf):
        for learns in (False, True):
            x, y = series(device)
            x[1, 4, 0] = bad
            x.requires_grad_(learns)
            for ours, theirs in zip(terms(x, y, cost), terms(x, y, cost, by_steps=True), strict=True):
                torch.testing.assert_close(ours, theirs, equal_nan=True, rtol=1e-13, atol=0)


def test_wrong_times_spoil_their_own_series(device):
    x, y = series(device)
    x_times, y_times = (own.clone() for own in times_of(x, y))
    x_times[1, 3] = 0.0  # before the time above
    y_times[2, 5] = math.nan
    rest = None, None, None, None, 0.3, 0.7, "euclidean", False, False
    x_own, y_own, x_gaps, y_gaps = ops.twed_terms(x, y, x_times, y_times, *rest)
    assert x_own.isfinite().all(1).tolist() == [True, False, True]
    assert x_own[1].isnan().all()
    assert x_gaps[1, 1:].isnan().all()
    assert y_own.isnan().nonzero().tolist() == [[2, 5]]
    assert y_gaps.isnan().nonzero().tolist() == [[2, 5], [2, 6]]
    assert x_gaps[[0, 2]].isfinite().all()


def test_equal_vectors_and_times_have_a_slope_of_0(device):
    x, y = (torch.ones_like(own).requires_grad_() for own in series(device))
    times = [torch.ones(own.shape[:2], dtype=F64, device=device, requires_grad=True) for own in (x, y)]
    for cost in COSTS:
        found = terms(x, y, cost, times)
        for gradient in torch.autograd.grad(found[2].sum() + found[3].sum(), (x, y, *times)):
            assert (gradient == 0).all()


@pytest.mark.parametrize("cost", COSTS)
def test_gradients_by_finite_differences(device, cost):
    x, y = (own.requires_grad_() for own in series(device, batch=2, n=4, m=3))
    times = [own.requires_grad_() for own in times_of(x, y)]
    nu, lmbda = (torch.tensor(own, dtype=F64, device=device, requires_grad=True) for own in ([0.4, 0.9], [0.2, 0.7]))

    def of_times(*own):
        x_times, y_times, *gaps = terms(*own[:2], cost, own[2:4], *own[4:])
        return x_times.unsqueeze(2) - y_times.unsqueeze(1), *gaps  # wherever they begin

    torch.autograd.gradcheck(of_times, (x, y, *times, nu, lmbda))
    torch.autograd.gradcheck(lambda *own: terms(*own[:2], cost, nu=own[2]), (x, y, nu))


def test_only_what_is_asked_for_has_a_gradient(device):
    x, y = series(device)
    found = terms(x.requires_grad_(), y, times=times_of(x, y))
    assert [own.requires_grad for own in found] == [False, False, True, False]
    nu = torch.tensor(0.3, dtype=F64, device=device, requires_grad=True)
    assert all(own.requires_grad for own in terms(x.detach(), y, nu=nu))


def test_gradients_with_a_graph_are_the_same(device):
    x, y = (own.requires_grad_() for own in series(device))
    times = [times_of(x, y)[0].requires_grad_(), times_of(x, y)[1]]
    for leaves in ((x, y, times[0]), (times[0],), (y,)):
        value = twed(x, y, x_times=times[0], y_times=times[1]).sum()
        plain = torch.autograd.grad(value, leaves, retain_graph=True)
        for ours, theirs in zip(torch.autograd.grad(value, leaves, create_graph=True), plain, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.always
@pytest.mark.usefixtures("filled_memory")
def test_opcheck(device):
    x, y = series(device, F32)
    lengths = [torch.tensor(own, device=device) for own in LENGTHS.values()]
    numbers = [torch.tensor(own, dtype=F64, device=device) for own in ([0.4, 0.9, 0.1], [0.2, 0.7, 0.0])]
    own_times, nothing = times_of(x, y), (None, None)
    shared = [times[0].expand(3, -1) for times in own_times]
    for times, per_pair in ((nothing, nothing), (own_times, numbers), (shared, nothing), (nothing, numbers)):
        for ragged in (nothing, lengths):
            given = x, y, *times, *ragged, *per_pair, 0.3, 0.7, "euclidean"
            torch.library.opcheck(ops.twed_terms, (*given, False, True))
            x_own, y_own, x_gaps, y_gaps = ops.twed_terms(*given, False, True)
            arriving = [own.expand(3, -1) if own.numel() else None for own in (x_own, y_own)]
            for needs in ((True, True, True, True), (False, True, False, False)):
                torch.library.opcheck(ops.twed_terms_backward, (*arriving, x_gaps, y_gaps, *given, *needs))
