"""L-BFGS of many problems in one batch: each has steps, a line search and a memory of its own, and all share evaluations.

Nocedal & Wright, Numerical Optimization, 2006, algorithm 7.4, in the compact form of Byrd, Nocedal & Schnabel,
"Representations of quasi-Newton matrices", Math. Programming, 1994. The line search is for the weak Wolfe conditions, by
bisection: Lewis & Overton, "Nonsmooth optimization via quasi-Newton methods", Math. Programming, 2013. Where gamma is
small, soft-DTW almost has kinks.
"""

from typing import NamedTuple

import torch

from .replay import Replay
from .steps import History, Watch

MEMORY = 10  # pairs of a step and the change of the gradient along it
DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
TRIALS = 20  # of a line search
RECORDED = 1 << 20  # numbers of all places, at most, where trials are recorded: with more the device has enough to do


class Search(NamedTuple):
    """A line search: step sizes between `low`, which is too short, and `high`, which is too long, or inf; all (G, 1)."""

    value: torch.Tensor  # where it starts, and the slope there
    slope: torch.Tensor
    size: torch.Tensor
    low: torch.Tensor
    low_value: torch.Tensor
    low_slope: torch.Tensor
    high: torch.Tensor
    trials: torch.Tensor

    @classmethod
    def begin(cls, value, slope):
        one, zero = torch.ones_like(value), torch.zeros_like(value)
        return cls(value, slope, one, zero, value, slope, one / zero, zero)

    def begin_again(self, value, slope):
        """A new one, of one that has just begun."""
        return self._replace(value=value, slope=slope, low_value=value, low_slope=slope)

    def after(self, value, slope, too_long):
        """The next size to try, after one that was too long, or else too short; stacked."""
        width = self.size - self.low
        # Where the parabola through what is known has its minimum.
        fall = self.low_slope * width
        share = (-0.5 * fall / (value - self.low_value - fall)).nan_to_num(0.5, 0.5, 0.5).clamp(0.1, 0.5)
        middle = 0.5 * (self.size + self.high)
        tried = self._replace(trials=self.trials + 1)
        shorter = tried._replace(size=torch.addcmul(self.low, width, share), high=self.size)
        longer = tried._replace(
            size=torch.where(middle.isinf(), 2 * self.size, middle), low=self.size, low_value=value, low_slope=slope
        )
        return torch.where(too_long, torch.stack(shorter), torch.stack(longer))


class Descent:
    """G problems, each at the place that its steps have led to. Its tensors stay the same ones, so that trials can be
    recorded."""

    def __init__(self, evaluate, start, max_iter, tol, noise, first_size):
        self._evaluate, self._shape, self._max_iter, self._tol, self._noise = evaluate, start.shape, max_iter, tol, noise
        value, self._point = self._at(start.double().flatten(1))
        gradient = self._point[:, 1]
        if first_size is None:
            first_size = 0.5 * value.abs() / _dot(gradient, gradient)
        self._direction = -first_size * gradient
        slope = _dot(self._direction, gradient)
        self._begun = Search.begin(value, slope)
        self._search = torch.stack(self._begun)
        self._memory = gradient.new_zeros((len(gradient), 2 * MEMORY, gradient.shape[1]))
        self._is_diagonal = torch.eye(MEMORY, dtype=torch.bool, device=gradient.device)
        self._count = torch.zeros_like(value)
        self._history = History(value.squeeze(1), max_iter)
        self.done = ~(value.isfinite() & (slope < 0)) | (self._count >= max_iter)

    @property
    def found(self):
        """(places, history), when the device has come to them."""
        return self._point[:, 0].clone().view(self._shape), self._history.until(self._count)

    def trial(self):
        """Evaluate at the size that each line search has come to: it ends there with a step, or goes on."""
        search = Search(*self._search.unbind())
        value, point = self._at(torch.addcmul(self._point[:, 0], search.size, self._direction))
        slope = _dot(point[:, 1], self._direction)
        size_of_value = search.value.abs()
        most = torch.addcmul(search.value, search.size, search.slope, value=DECREASE) + self._noise * size_of_value
        too_long = ~(value <= most)  # so is a NaN
        tired = search.trials >= TRIALS
        is_step = ~(self.done | too_long) & (tired | (slope >= CURVATURE * search.slope))
        little = search.value - value <= self._tol * torch.maximum(size_of_value, value.abs())
        ended = self.done | (tired & too_long) | (is_step & little)

        grows = slope > search.slope  # the gradient, along the step
        _replace(self._memory, is_step & grows, _with_newest(self._memory, point - self._point))
        _replace(self._point, is_step, point)
        self._count += is_step
        now = torch.where(is_step, value, search.value)
        self._history.put(self._count.squeeze(1), now.squeeze(1))

        gradient = self._point[:, 1]
        _replace(self._direction, is_step, _direction(self._memory, gradient, self._is_diagonal))
        next_slope = _dot(self._direction, gradient)
        begun = self._begun.begin_again(now, next_slope)
        torch.where(is_step, torch.stack(begun), search.after(value, slope, too_long), out=self._search)
        torch.logical_or(ended | (self._count >= self._max_iter), ~(next_slope < 0), out=self.done)

    def _at(self, place):
        """(value (G, 1), point (G, 2, n): a place (G, n) and the gradient there)."""
        value, gradient = self._evaluate(place.view(self._shape))
        return value.unsqueeze(1), torch.stack([place, gradient.double().flatten(1)], 1)


def minimise(evaluate, start, max_iter, tol, noise, first_size=None):
    """(places, history (steps + 1, G)): what lowers `evaluate`, of (G, L, D) places to (G,) values and (G, L, D) gradients,
    from `start` (G, L, D).

    A problem is done after max_iter steps, or where one lowers its value by no more than tol times its size. noise: how
    exact a value is, relative to its size. first_size: of the first step, relative to the gradient; None: what would halve
    the value, if that were linear.
    """
    descent, watch = Descent(evaluate, start, max_iter, tol, noise, first_size), Watch()
    is_recordable = evaluate.is_recordable and start.numel() <= RECORDED
    with Replay(descent.trial, start.device, max_iter, is_recordable) as trial:
        while not watch.all_done(descent.done):
            trial()
        return descent.found


def _replace(tensor, is_step, new):
    """Write what is new of the problems that make a step."""
    torch.where(is_step.view(-1, *(1,) * (tensor.dim() - 1)), new, tensor, out=tensor)


def _with_newest(memory, change):
    """The memory (G, 2 m, n), m steps and the m changes of the gradient, oldest first, with the change (G, 2, n) of a place
    and its gradient instead of the oldest."""
    steps, changes = memory.chunk(2, 1)
    return torch.cat([steps[:, 1:], change[:, :1], changes[:, 1:], change[:, 1:]], 1)


def _direction(memory, gradient, is_diagonal):
    """Minus the approximate inverse Hessian times the gradient. Empty places of the memory are zero, without effect."""
    m = len(is_diagonal)
    products = memory @ memory.mT  # (G, 2 m, 2 m)
    of_both, of_changes = products[:, :m, m:], products[:, m:, m:]
    along_steps, along_changes = (memory @ gradient.unsqueeze(2)).chunk(2, 1)
    diagonal = of_both.diagonal(dim1=1, dim2=2).unsqueeze(2)
    scale = diagonal[:, -1:] / of_changes[:, -1:, -1:]
    triangle = of_both + (is_diagonal & (of_both == 0))  # what is below the diagonal has no effect
    u = torch.linalg.solve_triangular(triangle, along_steps, upper=True)
    right = scale * (along_changes - of_changes @ u) - diagonal * u
    factors = torch.cat([torch.linalg.solve_triangular(triangle.mT, right, upper=False), scale * u], 1)
    return (memory.mT @ factors).squeeze(2) - scale.squeeze(2) * gradient


def _dot(a, b):
    return (a * b).sum(1, keepdim=True)
