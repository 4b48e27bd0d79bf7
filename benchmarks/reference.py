"""Soft-DTW in a few lines of PyTorch, in float64, and the check that an implementation agrees with it.

It shares no code with the kernels. Autograd differentiates it, which keeps the whole table many times over: give it a few
pairs only.
"""

import torch

OUTSIDE = 1e30  # stands for infinity, without its NaN gradients
CELLS = 1 << 23  # of the pairs that a check looks at


def soft_dtw(x, y, gamma, bandwidth=None):
    """Values (B,) of x (B, N, D) against y (B, M, D), squared Euclidean cost, anti-diagonal by anti-diagonal."""
    x, y = x.double(), y.double()
    batch, n, m = x.shape[0], x.shape[1], y.shape[1]
    cost = (x[:, :, None] - y[:, None]).square().sum(-1)
    if bandwidth is not None:
        offset = torch.arange(m, device=x.device) - torch.arange(n, device=x.device)[:, None]
        outside = (offset < min(0, m - n) - bandwidth) | (offset > max(0, m - n) + bandwidth)
        cost = cost.masked_fill(outside, OUTSIDE)

    def border(rows):
        return x.new_full((batch, rows), OUTSIDE)

    # A diagonal holds R[i, k - i] for every i = 0 .. n.
    before = torch.cat([x.new_zeros(batch, 1), border(n)], 1)
    last = border(n + 1)
    for k in range(2, n + m + 1):
        first, end = max(1, k - m), min(n, k - 1)
        rows = torch.arange(first, end + 1, device=x.device)
        neighbours = torch.stack(
            [before[:, first - 1 : end], last[:, first - 1 : end], last[:, first : end + 1]]  # diagonal, up, left
        )
        softmin = -gamma * torch.logsumexp(-neighbours / gamma, 0)
        inside = cost[:, rows - 1, k - rows - 1] + softmin
        before, last = last, torch.cat([border(first), inside, border(n - end)], 1)
    return last[:, n]


def assert_agreement(name, function, x, y, gamma, bandwidth=None, gradients=True):
    """Raise AssertionError where function(x, y) or its gradients leave the reference; x and y are whole batches.

    The whole batch runs and its first pairs are compared. The tolerances come from the dtype's epsilon. A float32 table
    rounds against |R|, which grows to |value| + gamma (N + M); a value may be wrong by 16 such roundings, an entry of
    the gradient by 16 of them divided by gamma, relative to the largest entry.
    """
    x, y = x.detach(), y.detach()
    n, m = x.shape[1], y.shape[1]
    pairs = min(x.shape[0], max(1, CELLS // (n * m * max(1, x.shape[2] // 4))))
    some_x, some_y = (z[:pairs].clone().requires_grad_(gradients) for z in (x, y))
    expected = soft_dtw(some_x, some_y, gamma, bandwidth)
    table = expected.detach().abs().max().item() + gamma * (n + m)
    epsilon = max(torch.finfo(x.dtype).eps, torch.finfo(torch.float32).eps if x.dtype != torch.float64 else 0)
    computed_epsilon = epsilon if x.dtype == torch.float64 else torch.finfo(torch.float32).eps
    whole_x, whole_y = (z.clone().requires_grad_(gradients) for z in (x, y))
    value = function(whole_x, whole_y)
    _compare(name, "value", value[:pairs], expected, 16 * computed_epsilon * table)
    if not gradients:
        return
    computed = torch.autograd.grad(value.sum(), (whole_x, whole_y))
    wanted = torch.autograd.grad(expected.sum(), (some_x, some_y))
    for which, got, want in zip(("x", "y"), computed, wanted, strict=True):
        largest = want.abs().max().item()
        tolerance = (16 * computed_epsilon * table / gamma + epsilon) * largest
        _compare(name, f"gradient to {which}", got[:pairs], want, tolerance)


def _compare(name, what, got, want, tolerance):
    error = (got.double() - want.double()).abs().max().item()
    if not error <= tolerance:
        raise AssertionError(f"{name}: {what} is off by {error:.3g}, more than {tolerance:.3g}")
