"""Ragged batches: nested tensors and packed sequences as a padded tensor and lengths, through which gradients flow back."""

import torch
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from .._internals import ragged_dimension
from .per_pair import is_hidden


def padded(x, y, x_lengths, y_lengths):
    """(x, y, x_lengths, y_lengths) with every ragged series padded, and its lengths in the place of None."""
    x, x_lengths = padded_set("x", x, x_lengths)
    y, y_lengths = padded_set("y", y, y_lengths)
    return x, y, x_lengths, y_lengths


def padded_set(name, series, lengths):
    """(series, lengths) of one batch, padded if it is ragged."""
    if isinstance(series, torch.Tensor) and not series.is_nested:
        return series, lengths
    if isinstance(series, PackedSequence):
        _check(name, lengths, series.data, "a PackedSequence", 2)
        return pad_packed_sequence(series, batch_first=True)
    if isinstance(series, torch.Tensor):
        _check(name, lengths, series, "a nested tensor", 3)
        if series.layout == torch.jagged:
            return _pad_jagged(name, series)
        shapes = [tuple(part.shape) for part in series.unbind()]
        other = next((shape for shape in shapes if shape[1] != shapes[0][1]), None)
        if other is not None:  # padding would fill up the vectors, too
            raise ValueError(f"{name}: expected series of the same dimension, got shapes {shapes[0]} and {other}")
        own = torch.tensor([length for length, _ in shapes], dtype=torch.int64, device="cpu")
        _check_own_lengths(name, own)
        return torch.nested.to_padded_tensor(series, 0.0), own
    return series, lengths


def _check(name, lengths, tensor, kind, dims):
    if lengths is not None:
        raise ValueError(f"{name}_lengths: expected None if {name} is {kind}, which has its own lengths")
    if tensor.dim() != dims:
        raise ValueError(
            f"{name}: expected {kind} of (length, dim) series, got series of {tensor.dim() - dims + 2} dimensions"
        )


def _check_own_lengths(name, lengths):
    """Raise for a series of no vectors, under the name of the series: nobody passed its lengths."""
    if lengths.device.type == "cpu" and lengths.numel() > 0 and not is_hidden(lengths) and lengths.min() < 1:
        raise ValueError(f"{name}: expected series of at least one vector, got a nested tensor with an empty one")


def _pad_jagged(name, series):
    dim = ragged_dimension(series)
    if dim != 1:
        raise ValueError(f"{name}: expected a nested tensor that is ragged in dimension 1, got {dim}")
    lengths = series.lengths()
    _check_own_lengths(name, series.offsets().diff() if lengths is None else lengths)
    if lengths is None:
        return torch.nested.to_padded_tensor(series, 0.0), series.offsets().diff()
    # With gaps between the series, which PyTorch's own padding cannot skip.
    values, step = series.values(), torch.arange(int(lengths.max()), device=lengths.device)
    inside = step < lengths.unsqueeze(1)
    row = torch.where(inside, series.offsets()[:-1].unsqueeze(1) + step, 0)
    return torch.where(inside.unsqueeze(2), values[row], 0), lengths
