"""Paths of elastic measures: cells and the kind of each step, from the spans that the op saves."""

import torch

from .._autograd.elastic import OF_SERIES
from .pairs import gap_norm

DIAGONAL, UP, LEFT = 0, 1, 2


def of_call(pairs, call):
    """The values (B,), and of each pair the cells (K, 2) of its path and the steps (K,) into them."""
    if not pairs.is_hard:
        raise ValueError("gamma: expected 0 for a path; soft measures have no single one")
    value, spans = OF_SERIES.value_and_spans(*call.inputs)
    if spans.is_meta:
        raise RuntimeError("elastic_path: meta tensors have no paths; call the measure itself for its shape")
    return call.finish(value), *from_spans(spans)


def from_spans(spans):
    """Spans (B, N + 1, 2): rows and columns from 0, the border. Cells are counted from 0 again, -1 for the border."""
    batch, rows, _ = spans.shape
    first, last = spans.long().unbind(2)
    counts = last - first + 1
    flat = counts.flatten()
    cells = torch.arange(int(flat.sum()), device=spans.device)
    start = (flat.cumsum(0) - flat).repeat_interleave(flat)
    row = torch.arange(rows, device=spans.device).repeat(batch).repeat_interleave(flat)
    column = first.flatten().repeat_interleave(flat) + cells - start
    before = torch.nn.functional.pad(last, (1, 0))[:, :-1]
    into = torch.where(first == before, UP, DIAGONAL).flatten().repeat_interleave(flat)
    step = torch.where(cells == start, into, LEFT).to(torch.uint8)
    sizes = counts.sum(1).tolist()
    paths = torch.stack([row, column], 1).sub(1).split(sizes)
    return [path[1:] for path in paths], [own[1:] for own in step.split(sizes)]  # without the border's corner


def from_warping(path):
    """The steps of a path of cells in which every step is charged to its cell."""
    moves = path.diff(dim=0, prepend=path.new_full((1, 2), -1))
    return torch.where(moves[:, 1] == 0, UP, torch.where(moves[:, 0] == 0, LEFT, DIAGONAL)).to(torch.uint8)


def matches(call, b, cells, steps):
    """The cells of a path of lcss whose vectors are equal: the others that it pairs cost as much as to leave them out."""
    x, y, parameters, parameter = (call.inputs[place] for place in (0, 1, 10, 13))
    cells = cells[steps == DIAGONAL]
    difference = (x[b][cells[:, 0]] - y[b][cells[:, 1]]).detach()
    epsilon = parameter if parameters is None else parameters[b].to(x.dtype)
    return cells[gap_norm(difference, "euclidean") <= epsilon]
