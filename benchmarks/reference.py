"""Soft-DTW in a few lines of PyTorch, in float64, and the check that an implementation agrees with it.

It shares no code with the kernels. Autograd differentiates it, which keeps the whole table many times over: give it a
few pairs only.
"""

import contextlib

import common
import torch

OUTSIDE = 1e30  # stands for infinity, without its NaN gradients
CELLS = 1 << 20  # of the pairs that a check looks at
KERNEL_CELLS = 1 << 26  # of those that are compared with a kernel in float64: `diagonal` saves 24 bytes for each


def soft_dtw(x, y, gamma, bandwidth=None):
    """Values (B,) of x (B, N, D) against y (B, M, D), squared Euclidean cost, anti-diagonal by anti-diagonal."""
    x, y = x.double(), y.double()
    batch, n, m = x.shape[0], x.shape[1], y.shape[1]
    cost = (x[:, :, None] - y[:, None]).square().sum(-1)
    if bandwidth is not None:
        offset = torch.arange(m, device=x.device) - torch.arange(n, device=x.device)[:, None]
        outside = (offset < min(0, m - n) - bandwidth) | (offset > max(0, m - n) + bandwidth)
        cost = cost.masked_fill(outside, OUTSIDE)

    # Row i moves right by i, so that column k holds anti-diagonal k; what is left free lies outside.
    padded = torch.nn.functional.pad(cost, (0, n), value=OUTSIDE)
    diagonals = padded.flatten(1)[:, :-n].view(batch, n, n + m - 1).unbind(2)

    # A diagonal of the table holds R[i, k - i] for every i = 0 .. n; its entry 0 is the border.
    border = x.new_full((batch, 1), OUTSIDE)
    before = torch.cat([x.new_zeros(batch, 1), border.expand(-1, n)], 1)
    last = border.expand(-1, n + 1)
    for costs in diagonals:
        neighbours = torch.stack([before[:, :-1], last[:, :-1], last[:, 1:]])  # diagonal, up, left
        before, last = last, torch.cat([border, costs - gamma * torch.logsumexp(-neighbours / gamma, 0)], 1)
    return last[:, n]


@contextlib.contextmanager
def _one_thread():
    """Many small operations in a row are faster without threads, and far faster where other programs run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def assert_agreement(name, function, x, y, gamma, bandwidth=None, gradients=True):
    """Raise AssertionError where function(x, y), or its gradients, are not what the reference says.

    The whole batch runs, and its first pairs are compared.
    """
    n, m = x.shape[1], y.shape[1]
    pairs = min(len(x), max(1, CELLS // (n * m * x.shape[2])))
    with _one_thread():
        some = [z.detach()[:pairs].clone().requires_grad_(gradients) for z in (x, y)]
        value = soft_dtw(*some, gamma, bandwidth)
        expected = [value, *(torch.autograd.grad(value.sum(), some) if gradients else ())]

    whole = [z.detach().clone().requires_grad_(gradients) for z in (x, y)]
    value = function(*whole)
    got = [value, *(torch.autograd.grad(value.sum(), whole) if gradients else ())]
    assert_close(name, [result[:pairs] for result in got], expected, x, y, gamma)


def assert_close(name, got, expected, x, y, gamma):
    """Raise AssertionError where a result (value, or value, dx and dy) is not the expected one.

    A table in float32 (which half types are computed in) rounds against |R|, which grows to |value| + gamma (N + M): a
    value may be off by 16 such roundings, and an entry of a gradient, relative to the largest one, by 16 of them
    divided by gamma and by one rounding of the input's dtype.
    """
    rounding = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps
    tolerance = 16 * rounding * (expected[0].abs().max().item() + gamma * (x.shape[1] + y.shape[1]))
    relative = tolerance / gamma + torch.finfo(x.dtype).eps
    names = ("value", "gradient to x", "gradient to y")
    for what, result, want in zip(names, got, expected, strict=False):
        allowed = tolerance if what == "value" else relative * want.abs().max().item()
        error = (result.double() - want.double()).abs().max().item()
        if not error <= allowed:  # NaN fails too
            raise AssertionError(f"{name}: {what} is off by {error:.3g}, more than {allowed:.3g}")


def largest_errors(function, exact, inputs, unit, gradients):
    """Against `exact` (a kernel of this package) in float64, by the names of a record: how many pairs were compared, the
    error of values relative to the larger of |value| and `unit`, and that of gradients relative to a pair's largest entry.

    `inputs`: x and y, or costs (B, N, M) alone. The whole batch runs, and pairs from all over it are compared.
    """
    count, cells = len(inputs[0]), inputs[0].shape[1] * (inputs[1].shape[1] if len(inputs) > 1 else inputs[0].shape[2])
    some = torch.linspace(0, count - 1, min(count, max(1, KERNEL_CELLS // cells)), device=inputs[0].device).long()

    def results(function, inputs):
        if not gradients:
            with torch.no_grad():
                return (function(*inputs),)
        return common.with_gradients(function, *(z.clone().requires_grad_() for z in inputs))()

    inputs = [z.contiguous() for z in inputs]
    got = [result[some].double() for result in results(function, inputs)]
    want = results(exact, [z[some].double() for z in inputs])
    values = [got[0]]
    if gradients:  # without them it may be another kernel's
        with torch.no_grad():
            values.append(function(*inputs)[some].double())
    off = (torch.stack(values) - want[0]).abs() / want[0].abs().clamp(min=unit)
    found = {"checked_pairs": len(some), "value_error": off.max().item()}
    if gradients:
        found["gradient_error"] = max(
            ((g - w).abs().amax((1, 2)) / w.abs().amax((1, 2))).max().item() for g, w in zip(got[1:], want[1:], strict=True)
        )
    return found
