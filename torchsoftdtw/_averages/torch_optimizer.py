"""Averages by an optimizer of torch, to which all of them are one tensor, and the sum of their objectives is the loss."""

import torch

from .steps import where


def minimise(evaluate, start, max_iter, make):
    """(averages, history (max_iter + 1, G)), from `start` (G, L, D): of each average its place of the lowest value."""
    average = start.clone().requires_grad_()
    optimizer = make([average])
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer: expected a callable that returns a torch.optim.Optimizer, got {type(optimizer).__name__}"
        )
    found = []

    def closure():
        value, average.grad = evaluate(average.detach())
        found.append(value)
        return value.sum()

    best, lowest, history = start, torch.inf, []
    for number in range(max_iter + 1):
        place = average.detach().clone()
        found.clear()
        optimizer.step(closure) if number < max_iter else closure()
        value = found[0]  # before the step
        best, lowest = where(value < lowest, place, best), value.clamp(max=lowest)
        history.append(value)
    return best, torch.stack(history)
