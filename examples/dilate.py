"""Shape and timing: DILATE
========================

Forecast heartbeats with DILATE (Le Guen & Thome, NeurIPS 2019), a loss of shape and timing, with soft-DTW and with MSE.

The forecasts are those of :doc:`train_forecaster`. Soft-DTW alone keeps the beat but does not care when it comes. DILATE
adds a term on timing, and keeps both.

Shape is soft-DTW. Timing is <E, Omega>, where E is soft-DTW's alignment and Omega[i, j] = (i - j)^2 / N^2 says how far a
pair of steps is off the diagonal. The gradient of timing needs the derivative of E, a product with the Hessian of soft-DTW.
Here it is a kernel that runs for the whole batch at once, on the CPU or a GPU. The authors' code computes it on the CPU,
sample by sample, in loops that numba compiles. Such loops are timed for comparison, after a check that both agree.
"""

import time

import numba
import numpy as np
import torch
from torch import nn
from train_forecaster import COLOURS, MSE, SOFT_DTW, compare, draw, measure, parser_of, table

import torchsoftdtw

DILATE = "DILATE"
COLOURS[DILATE] = "#6a994e"

# %%
# The loss
# --------


def off_diagonal(length, like):
    """Omega (N, N)."""
    steps = torch.arange(length, dtype=like.dtype, device=like.device)
    return (steps.unsqueeze(1) - steps).square() / length**2


class Dilate(nn.Module):
    """shape * soft-DTW + (1 - shape) * <E, Omega>, a mean over the batch."""

    def __init__(self, gamma, shape):
        super().__init__()
        self.gamma, self.shape = gamma, shape

    def forward(self, forecast, truth):
        value, alignment = torchsoftdtw.soft_dtw_alignment(forecast, truth, self.gamma)
        timing = (alignment * off_diagonal(truth.shape[1], alignment)).sum((1, 2))
        return (self.shape * value + (1 - self.shape) * timing).mean()


# %%
# The same by loops
# -----------------
# This is what the kernels save: the recursions of value, alignment and Hessian, written out for one sample.


@numba.njit(cache=False)
def forward_loop(costs, gamma):
    """One sample's soft-DTW, and the shares of every cell's three predecessors: the textbook recursion."""
    n, m = costs.shape
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0.0
    shares = np.zeros((n + 2, m + 2, 3))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]
            least = min(a, b, c)
            p, q, r = np.exp((least - a) / gamma), np.exp((least - b) / gamma), np.exp((least - c) / gamma)
            total = p + q + r
            table[i, j] = costs[i - 1, j - 1] + least - gamma * np.log(total)
            shares[i, j, 0], shares[i, j, 1], shares[i, j, 2] = p / total, q / total, r / total
    return table[n, m], shares


@numba.njit(cache=False)
def alignment_loop(shares):
    n, m = shares.shape[0] - 2, shares.shape[1] - 2
    alignment = np.zeros((n + 2, m + 2))
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            if i == n and j == m:
                alignment[i, j] = 1.0
                continue
            alignment[i, j] = (
                alignment[i + 1, j + 1] * shares[i + 1, j + 1, 0]
                + alignment[i + 1, j] * shares[i + 1, j, 1]
                + alignment[i, j + 1] * shares[i, j + 1, 2]
            )
    return alignment


@numba.njit(cache=False)
def hessian_loop(shares, alignment, direction, gamma):
    """The derivative of one sample's alignment along `direction`: tangents forward, then back."""
    n, m = direction.shape
    slope, turn = np.zeros((n + 1, m + 1)), np.zeros((n + 2, m + 2, 3))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = slope[i - 1, j - 1], slope[i - 1, j], slope[i, j - 1]
            p, q, r = shares[i, j, 0], shares[i, j, 1], shares[i, j, 2]
            mean = p * a + q * b + r * c
            slope[i, j] = direction[i - 1, j - 1] + mean
            turn[i, j, 0], turn[i, j, 1], turn[i, j, 2] = (
                p * (mean - a) / gamma,
                q * (mean - b) / gamma,
                r * (mean - c) / gamma,
            )
    product = np.zeros((n + 2, m + 2))
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            product[i, j] = (
                product[i + 1, j + 1] * shares[i + 1, j + 1, 0]
                + alignment[i + 1, j + 1] * turn[i + 1, j + 1, 0]
                + product[i + 1, j] * shares[i + 1, j, 1]
                + alignment[i + 1, j] * turn[i + 1, j, 1]
                + product[i, j + 1] * shares[i, j + 1, 2]
                + alignment[i, j + 1] * turn[i, j + 1, 2]
            )
    return product[1 : n + 1, 1 : m + 1]


class SampleBySample(torch.autograd.Function):
    """(costs (B, N, M), gamma) -> value, alignment, on the CPU whatever the device."""

    @staticmethod
    def forward(ctx, costs, gamma):
        ctx.gamma, ctx.shares, ctx.alignments, values = gamma, [], [], []
        for matrix in costs.double().cpu().numpy():
            value, shares = forward_loop(matrix, gamma)
            values.append(value)
            ctx.shares.append(shares)
            ctx.alignments.append(alignment_loop(shares))
        stacked = np.stack(ctx.alignments)[:, 1:-1, 1:-1]
        return torch.tensor(values).to(costs), torch.from_numpy(stacked).to(costs)

    @staticmethod
    def backward(ctx, grad_value, grad_alignment):
        directions = grad_alignment.double().cpu().numpy()
        states = zip(ctx.shares, ctx.alignments, directions, strict=True)
        products = np.stack([hessian_loop(*state, ctx.gamma) for state in states])
        alignments = torch.from_numpy(np.stack(ctx.alignments)[:, 1:-1, 1:-1]).to(grad_alignment)
        return grad_value.view(-1, 1, 1) * alignments + torch.from_numpy(products).to(grad_alignment), None


def dilate_by_loops(loss, forecast, truth):
    costs = (forecast.unsqueeze(2) - truth.unsqueeze(1)).square().sum(3)
    value, alignment = SampleBySample.apply(costs, loss.gamma)
    timing = (alignment * off_diagonal(truth.shape[1], alignment)).sum((1, 2))
    return (loss.shape * value + (1 - loss.shape) * timing).mean()


# %%
# Speed and timing
# ----------------


def compare_speed(loss, forecast, truth, repetitions):
    """Milliseconds of one loss with its gradient, (kernels, loops), after a check that both give the same gradient."""
    forecast = forecast.detach().requires_grad_()

    def gradient(function):
        result = torch.autograd.grad(function(forecast, truth), forecast)[0]
        if forecast.is_cuda:
            torch.cuda.synchronize()
        return result

    times = []
    functions = [loss, lambda a, b: dilate_by_loops(loss, a, b)]
    fast, slow = (gradient(function) for function in functions)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-3 * slow.abs().max().item())
    for function in functions:
        samples = []
        for _ in range(repetitions):
            start = time.perf_counter()
            gradient(function)
            samples.append(time.perf_counter() - start)
        times.append(1e3 * float(np.median(samples)))
    return times


def measure_timing(forecast, truth):
    """As `measure`, and how far off the diagonal the best path runs, in steps: the root of the mean square."""
    alignment = torchsoftdtw.soft_dtw_alignment(forecast.double(), truth.double(), gamma=1e-4).alignment
    offsets = (alignment * off_diagonal(truth.shape[1], alignment)).sum((1, 2)) / alignment.sum((1, 2))
    return {**measure(forecast, truth), "steps off": truth.shape[1] * offsets.sqrt().mean().item()}


# %%
# All of it
# ---------


def main():
    parser = parser_of(__doc__, "dilate.png", epochs=100)
    parser.add_argument("--shape", type=float, default=0.2, help="the share of shape in DILATE, from 0 to 1")
    options = parser.parse_args()

    dilate = Dilate(options.gamma, options.shape)
    soft_dtw = torchsoftdtw.SoftDTW(gamma=options.gamma)
    losses = {
        MSE: nn.functional.mse_loss,
        SOFT_DTW: lambda x, y: soft_dtw(x, y) / y.shape[1],
        DILATE: lambda x, y: dilate(x, y) / y.shape[1],
    }
    history, future, forecasts = compare(losses, options)
    print("\nmeans over the held-out series")
    print(table({name: measure_timing(forecast, future) for name, forecast in forecasts.items()}))

    batch = future[: options.batch]
    kernels, loops = compare_speed(dilate, batch + 0.3 * torch.randn_like(batch), batch, repetitions=10)
    size = f"{len(batch)} series of length {batch.shape[1]}"
    print(f"\nDILATE with its gradient, {size}, on {options.device} (CPU threads: {options.threads})")
    print(f"kernels, the whole batch    {kernels:8.2f} ms")
    print(f"numba, sample by sample     {loops:8.2f} ms    {loops / kernels:.1f} times as long")
    draw(history, future, forecasts, "The next heartbeat, forecast from the last two", options.output)
    print(f"\nforecasts drawn in {options.output}")


if __name__ == "__main__":
    main()
