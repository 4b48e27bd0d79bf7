"""Averages of series under an elastic measure: the soft one, whose gradient L-BFGS of PyTorch follows."""

import torch

GAMMA = 0.1  # of averages, where a measure is hard


def averages(measure, series, labels, start, gamma, bandwidth, steps):
    """(G, t, d): of the series (n, t, d) of each label the local minimum of their mean soft measure, from `start`, or
    their mean."""
    count = int(labels.max()) + 1 if isinstance(start, str) else len(start)
    groups = [series[labels == group] for group in range(count)]
    first = [own.mean(0) for own in groups] if isinstance(start, str) else list(start)
    pairs = zip(groups, first, strict=True)
    return torch.stack(
        [
            own if len(group) == 0 else _average(measure, group, own, gamma or GAMMA, bandwidth, steps)
            for group, own in pairs
        ]
    )


def _average(measure, series, first, gamma, bandwidth, steps):
    average = first.detach().clone().requires_grad_()
    optimizer = torch.optim.LBFGS([average], max_iter=steps, line_search_fn="strong_wolfe")
    best = [torch.inf, first]

    def objective():
        optimizer.zero_grad()
        all_alike = average.expand(len(series), -1, -1)
        value = measure(all_alike, series, gamma=gamma, bandwidth=bandwidth).mean()
        value.backward()
        if value.item() < best[0]:
            best[:] = value.item(), average.detach().clone()
        return value

    with torch.enable_grad():
        optimizer.step(objective)
    return best[1]
