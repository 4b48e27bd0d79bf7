"""DTW barycenter averaging: a row of the average becomes the mean of all that the best paths match it with (Petitjean,
Ketterlin & Gancarski, 2011)."""

import torch

from .steps import History, Watch, where


class Update:
    """What one round does with averages, without a loop over series or rows: sums along time come from cumulative sums."""

    def __init__(self, objective):
        self._objective = objective
        groups = objective.groups
        series = groups.series.double()
        if groups.lengths is not None:
            inside = torch.arange(series.shape[1], device=series.device) < groups.lengths.unsqueeze(1)
            series = torch.where(inside.unsqueeze(2), series, 0)
        self._row_of = series.shape[1] + 1  # of a series' first sum, per series
        self._sums = torch.nn.functional.pad(series.cumsum(1), (0, 0, 1, 0)).flatten(0, 1)

    def __call__(self, average):
        """(value (G,) float64, next averages (G, L, D)), for hard DTW."""
        value, total, count = 0, 0, 0
        measure, series = self._objective.measure, self._objective.series
        average = average.to(series.dtype)
        for block in self._objective.blocks:
            of_pairs, spans = measure.forward(average, series, block.pairs, save=True)
            first, last = spans.long().unbind(2)  # (count, L)
            start = (block.pairs.y_index * self._row_of).long().unsqueeze(1)
            matched = self._sums[start + last + 1] - self._sums[start + first]
            weight = block.weight.unsqueeze(1)
            value = value + block.sums(block.weight * of_pairs)
            total = total + block.sums(weight.unsqueeze(2) * matched)
            count = count + block.sums(weight * (last - first + 1))
        return value, total / count.unsqueeze(2)


def minimise(update, start, max_iter, tol):
    """(averages, history (rounds + 1, G)), from `start` (G, L, D): an average is done where a round lowers its value by no
    more than tol times the value."""
    now = start
    value, trial = update(now)
    count = torch.zeros_like(value)
    history, watch = History(value, max_iter), Watch()
    done = ~value.isfinite() | (count >= max_iter)
    while not watch.all_done(done):
        its_value, after = update(trial)
        is_step = ~done & (its_value < value)
        done = done | ~is_step | (value - its_value <= tol * value)
        now = where(is_step, trial, now)
        value = torch.where(is_step, its_value, value)
        count = count + is_step
        history.put(count, value)
        done = done | (count >= max_iter)
        trial = where(done, trial, after)
    return now, history.until(count)
