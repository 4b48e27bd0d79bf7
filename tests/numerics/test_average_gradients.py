"""The derivatives of averages with respect to weights and series: against finite differences of averages found anew."""

import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import barycenter
from torchsoftdtw._averages import implicit, minres

pytestmark = pytest.mark.usefixtures("one_thread")
on_devices = pytest.mark.parametrize("device", DEVICES)
METHODS = ["soft", "divergence"]
K, L, D = 5, 8, 2
STEP = 1e-2
# The differences are off by STEP^4 times a fifth derivative, and by the averages' own error, about 1e-8, over STEP.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def noisy(*shape, dim=D, seed=0):
    """Series (*shape, dim) that have an average: one shape, each with noise of its own."""
    time = torch.linspace(0, 5, shape[-1], dtype=torch.float64)
    return torch.stack([(time + phase).sin() for phase in range(dim)], 1) + 0.3 * normal(*shape, dim, seed=seed)


def weights_of(*shape, seed=1):
    """Of any sum."""
    return 0.2 + 3 * torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fitted(series, weights, init="mean", **options):
    return barycenter(series, weights=weights, init=init, tol=0.0, max_iter=3000, **options).series


def gradients(series, weights, **options):
    """(a function of an average, with respect to which of its inputs, its gradients): a sum with fixed coefficients."""
    series, weights = series.clone().requires_grad_(), weights.clone().requires_grad_()
    average = fitted(series, weights, **options)
    coefficients = normal(*average.shape, seed=7).to(average)
    (average * coefficients).sum().backward()
    start = average.detach()

    def loss(series, weights):
        return (fitted(series, weights, start, **options) * coefficients).sum().item()

    return loss, weights.grad, series.grad


def difference(loss, along):
    """The derivative of loss(step * along) at 0, by five points."""
    first, second = (loss(k * STEP * along) - loss(-k * STEP * along) for k in (1, 2))
    return (8 * first - second) / (12 * STEP)


def assert_gradients(series, weights, **options):
    loss, of_weights, of_series = gradients(series, weights, **options)
    units = torch.eye(weights.numel(), dtype=torch.float64).view(-1, *weights.shape).to(weights)
    expected = [difference(lambda move: loss(series, weights + move), unit) for unit in units]
    torch.testing.assert_close(of_weights, torch.tensor(expected).view_as(weights).to(weights), **TOLERANCE)
    # Only the weights' ratios count.
    along = (of_weights * weights).view(weights.shape if weights.dim() > 1 else (1, -1)).sum(1)
    if "labels" not in options:
        torch.testing.assert_close(along, torch.zeros_like(along), rtol=0, atol=1e-12)
    for seed in range(3):
        direction = torch.nn.functional.normalize(normal(series.numel(), seed=seed), dim=0).view_as(series).to(series)
        direction = torch.where(series.isnan(), 0, direction)
        expected = difference(lambda move: loss(series + move, weights), direction)
        actual = (of_series * direction).sum().cpu()
        torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), **TOLERANCE)


@on_devices
@pytest.mark.parametrize("gamma", [1.0, 0.1])
@pytest.mark.parametrize("method", METHODS)
def test_one_average(device, method, gamma):
    assert_gradients(noisy(K, L).to(device), weights_of(K).to(device), method=method, gamma=gamma)


OPTIONS = {
    "band": {"bandwidth": 2},
    "penalty": {"warp_penalty": 0.2},
    "length": {"length": 6},
    "cosine": {"cost": "cosine"},
    "huber": {"cost": "huber"},
    "callable": {"cost": lambda x, y: (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3).exp() - 1},
    "lengths": {"lengths": [8, 5, 7, 8, 6]},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options(options, method):
    series = noisy(K, L)
    for own, length in zip(series, options.get("lengths", []), strict=False):
        own[length:] = torch.nan
    assert_gradients(series, weights_of(K), method=method, gamma=0.5, **options)


@pytest.mark.parametrize("method", METHODS)
def test_groups_and_labels(method):
    series, weights = noisy(2, 3, L), weights_of(2, 3)
    assert_gradients(series, weights, method=method, gamma=0.5)
    order = torch.tensor([3, 0, 4, 1, 5, 2])
    labels = torch.tensor([0, 0, 0, 1, 1, 1])[order]
    assert_gradients(series.flatten(0, 1)[order], weights.flatten()[order], labels=labels, method=method, gamma=0.5)
    # What one group's average gets says nothing to the others' series.
    series.requires_grad_()
    average = fitted(series, weights.requires_grad_(), method=method)
    for grad in torch.autograd.grad(average[0].sum(), (series, weights)):
        assert grad[0].any() and not grad[1].any()


@pytest.mark.parametrize("method", METHODS)
def test_blocks_of_pairs_give_what_one_call_gives(method, monkeypatch):
    def found():
        return gradients(noisy(2, 7, L), weights_of(2, 7), method=method)[1:]

    expected = found()
    monkeypatch.setattr(implicit, "MOST_BYTES", 1 << 14)
    for a, b in zip(found(), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_other_dtypes(dtype):
    series, weights = noisy(K, L), weights_of(K)
    expected = gradients(series, weights, gamma=0.5)[1:]
    found = gradients(series.to(dtype), weights.to(dtype), gamma=0.5)[1:]
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.double(), b, rtol=1e-2, atol=1e-2 if dtype == torch.float16 else 1e-3)


def test_where_the_average_comes_from_does_not_matter():
    """An average that is its own start, or that an optimizer of PyTorch has found, has the same derivatives."""
    series, weights = noisy(K, L), weights_of(K).requires_grad_()
    average = fitted(series, weights)
    (expected,) = torch.autograd.grad(average.sum(), weights)
    options = {"weights": weights, "init": average.detach()}
    for own in ({"max_iter": 0}, {"max_iter": 1, "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)}):
        (found,) = torch.autograd.grad(barycenter(series, **options, **own).series.sum(), weights)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_a_list_of_series():
    series, lengths = noisy(3, L), (8, 5, 7)
    parts = [own[:length].clone().requires_grad_() for own, length in zip(series, lengths, strict=True)]
    barycenter(parts).series.square().sum().backward()
    padded = series.clone().requires_grad_()
    barycenter(padded, lengths=lengths).series.square().sum().backward()
    for part, length, whole in zip(parts, lengths, padded.grad, strict=True):
        torch.testing.assert_close(part.grad, whole[:length])
        assert not whole[length:].any()


def test_one_series_is_its_own_average_whatever_its_weight():
    series = torch.zeros(1, 1, 1, dtype=torch.float64, requires_grad=True)
    weights = torch.ones(1, dtype=torch.float64, requires_grad=True)
    barycenter(series, weights=weights, init=torch.ones(1, 1, dtype=torch.float64)).series.backward()
    torch.testing.assert_close(series.grad, torch.ones_like(series))
    assert not weights.grad.any()


def test_history_has_no_gradient_and_the_average_none_of_second_order():
    weights = weights_of(K).requires_grad_()
    average, history = barycenter(noisy(K, L), weights=weights)
    assert average.requires_grad and not history.requires_grad
    (gradient,) = torch.autograd.grad(average.square().sum(), weights, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
    with torch.no_grad():
        assert not barycenter(noisy(K, L), weights=weights).series.requires_grad


SERIES, WEIGHTS = noisy(K, L), weights_of(K).requires_grad_()
NONE = {
    "dba": ((SERIES, {"weights": WEIGHTS, "method": "dba"}), "weights: .* best paths change in jumps"),
    "series_of_dba": ((SERIES.clone().requires_grad_(), {"method": "dba"}), "series: .* best paths change in jumps"),
    "kinks": (
        (SERIES, {"weights": WEIGHTS, "cost": "cityblock"}),
        "weights: .* the cost 'cityblock' the minimum lies at kinks",
    ),
    "series_at_kinks": ((SERIES.clone().requires_grad_(), {"cost": "euclidean"}), "series: .* lies at kinks"),
    "arrays": ((SERIES.numpy(), {"weights": WEIGHTS}), "weights: .* averages are NumPy arrays, as the series are"),
    "start": ((SERIES, {"init": SERIES[0].clone().requires_grad_()}), "init: .* is the same wherever it starts near by"),
}


@pytest.mark.parametrize(("given", "message"), NONE.values(), ids=NONE)
def test_where_there_is_none_an_error_says_so(given, message):
    series, options = given
    with pytest.raises(ValueError, match=message):
        barycenter(series, **options)
    with torch.no_grad():
        barycenter(series, **options)


def spectrum(*values, seed=0):
    """A symmetric matrix with these eigenvalues, and its eigenvectors."""
    vectors = torch.linalg.qr(normal(len(values), len(values), seed=seed))[0]
    return vectors * torch.tensor(values, dtype=torch.float64) @ vectors.T, vectors


def test_equations_of_definite_indefinite_and_singular_matrices():
    spectra = [
        (1, 2, 3, 4, 5, 6),
        (1, 1, 1, 1, 1, 1),
        (1e-4, 1e-2, 1, 10, 100, 1e3),
        (-3, -1, 2, 4, 4, 9),
        (0, 0, 1, 2, 3, -4),
    ]
    matrices, vectors = (torch.stack(each) for each in zip(*(spectrum(*own) for own in spectra), strict=True))
    right = normal(len(spectra), 6, seed=3)
    right[1] = 0
    found = minres.solve(lambda own: (matrices @ own.unsqueeze(2)).squeeze(2), right)
    for own, matrix, side in zip(found[:4], matrices, right, strict=False):
        torch.testing.assert_close(matrix @ own, side, rtol=0, atol=1e-6)
    # Where nothing solves them: what is left is flat, and the solution itself has nothing to do with flat directions alone.
    flat = vectors[4, :, :2]
    left = right[4] - matrices[4] @ found[4]
    torch.testing.assert_close(left, flat @ (flat.T @ right[4]), rtol=0, atol=1e-6)
    assert found[4].norm() < 10 * right[4].norm()


def test_equations_without_finite_numbers_spoil_no_others():
    factors = torch.tensor([[2.0], [torch.nan], [torch.inf]], dtype=torch.float64)
    found = minres.solve(lambda own: own * factors, torch.ones(3, 4, dtype=torch.float64))
    assert (found[0] == 0.5).all() and found[1:].isnan().all()
