"""L-BFGS of many problems in one batch: each has steps, a line search and a memory of its own, and all share evaluations.

Nocedal & Wright, Numerical Optimization, 2006, algorithm 7.4, in the compact form of Byrd, Nocedal & Schnabel,
"Representations of quasi-Newton matrices", Math. Programming, 1994. The line search is for the weak Wolfe conditions, by
bisection: Lewis & Overton, "Nonsmooth optimization via quasi-Newton methods", Math. Programming, 2013. Where gamma is
small, soft-DTW almost has kinks.
"""

from typing import NamedTuple

import torch

from .steps import History, Watch

MEMORY = 10  # pairs of a step and the change of the gradient along it
DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
TRIALS = 20  # of a line search


class Point(NamedTuple):
    place: torch.Tensor  # (G, n) float64
    value: torch.Tensor  # (G, 1)
    gradient: torch.Tensor  # (G, n)


class Search(NamedTuple):
    """A line search: step sizes between `low`, which is too short, and `high`, which is too long, or inf; all (G, 1)."""

    size: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    value: torch.Tensor  # at `low`, and the slope there
    slope: torch.Tensor
    trials: torch.Tensor

    @classmethod
    def begin(cls, value, slope):
        one, zero = torch.ones_like(value), torch.zeros_like(value)
        return cls(one, zero, one / zero, value, slope, zero)

    def after(self, value, slope, too_long):
        """The next one to try, after one that was too long, or else too short."""
        width = self.size - self.low
        # Where the parabola through what is known has its minimum.
        share = -0.5 * self.slope * width / (value - self.value - self.slope * width)
        shorter = self.low + width * share.nan_to_num(0.5, 0.5, 0.5).clamp(0.1, 0.5)
        longer = torch.where(self.high.isinf(), 2 * self.size, 0.5 * (self.size + self.high))
        return Search(
            torch.where(too_long, shorter, longer),
            torch.where(too_long, self.low, self.size),
            torch.where(too_long, self.size, self.high),
            torch.where(too_long, self.value, value),
            torch.where(too_long, self.slope, slope),
            self.trials + 1,
        )


def minimise(evaluate, start, max_iter, tol, noise, first_size=None):
    """(places, history (steps + 1, G)): what lowers `evaluate`, of (G, L, D) places to (G,) values and (G, L, D) gradients,
    from `start` (G, L, D).

    A problem is done after max_iter steps, or where one lowers its value by no more than tol times its size. noise: how
    exact a value is, relative to its size. first_size: of the first step, relative to the gradient; None: what would halve
    the value, if that were linear.
    """
    shape = start.shape

    def at(place):
        value, gradient = evaluate(place.view(shape))
        return Point(place, value.unsqueeze(1), gradient.double().flatten(1))

    now = at(start.double().flatten(1))
    memory = now.place.new_zeros((shape[0], 2 * MEMORY, now.place.shape[1]))
    count = torch.zeros_like(now.value)
    history, watch = History(now.value.squeeze(1), max_iter), Watch()
    if first_size is None:
        first_size = 0.5 * now.value.abs() / _dot(now.gradient, now.gradient)
    direction = -first_size * now.gradient
    slope = _dot(direction, now.gradient)
    search = begun = Search.begin(now.value, slope)
    done = ~(now.value.isfinite() & (slope < 0)) | (count >= max_iter)
    while not watch.all_done(done):
        trial = at(now.place + search.size * direction)
        its_slope = _dot(trial.gradient, direction)
        most = now.value + DECREASE * search.size * slope + noise * now.value.abs()
        too_long = ~(trial.value <= most)  # so is a NaN
        tired = search.trials >= TRIALS
        is_step = ~(done | too_long) & (tired | (its_slope >= CURVATURE * slope))
        little = now.value - trial.value <= tol * torch.maximum(now.value.abs(), trial.value.abs())
        done = done | (tired & too_long) | (is_step & little)

        memory = _remember(memory, trial.place - now.place, trial.gradient - now.gradient, is_step)
        now = Point(*(torch.where(is_step, new, old) for new, old in zip(trial, now, strict=True)))
        count = count + is_step
        history.put(count.squeeze(1), now.value.squeeze(1))

        direction = torch.where(is_step, _direction(memory, now.gradient), direction)
        further = search.after(trial.value, its_slope, too_long)
        slope = _dot(direction, now.gradient)
        begun = begun._replace(value=now.value, slope=slope)
        search = Search(*(torch.where(is_step, new, old) for new, old in zip(begun, further, strict=True)))
        done = done | (count >= max_iter) | ~(slope < 0)
    return now.place.view(shape), history.until(count)


def _remember(memory, step, change, is_step):
    """The memory (G, 2 m, n), m steps and the m changes of the gradient, oldest first, with those of the averages that made
    a step along which the gradient has grown."""
    steps, changes = memory.chunk(2, 1)
    newer = torch.cat([steps[:, 1:], step.unsqueeze(1), changes[:, 1:], change.unsqueeze(1)], 1)
    return torch.where((is_step & (_dot(step, change) > 0)).unsqueeze(2), newer, memory)


def _direction(memory, gradient):
    """Minus the approximate inverse Hessian times the gradient. Empty places of the memory are zero, without effect."""
    m = memory.shape[1] // 2
    products = memory @ torch.cat([memory, gradient.unsqueeze(1)], 1).mT  # (G, 2 m, 2 m + 1)
    of_both, of_changes = products[:, :m, m:-1], products[:, m:, m:-1]
    diagonal = of_both.diagonal(dim1=1, dim2=2).unsqueeze(2)
    scale = diagonal[:, -1:] / of_changes[:, -1:, -1:]
    is_upper = torch.arange(m, device=memory.device) >= torch.arange(m, device=memory.device).unsqueeze(1)
    triangle = torch.where(is_upper, of_both, 0.0)  # triu wakes the CPU's threads for a few numbers
    triangle = triangle + torch.diag_embed((diagonal == 0).squeeze(2).to(of_both))
    along_steps, along_changes = products[:, :m, -1:], scale * products[:, m:, -1:]
    u = torch.linalg.solve_triangular(triangle, along_steps, upper=True)
    right = diagonal * u + scale * (of_changes @ u) - along_changes
    factors = torch.cat([torch.linalg.solve_triangular(triangle.mT, right, upper=False), -scale * u], 1)
    return -(scale.squeeze(2) * gradient + (memory.mT @ factors).squeeze(2))


def _dot(a, b):
    return (a * b).sum(1, keepdim=True)
