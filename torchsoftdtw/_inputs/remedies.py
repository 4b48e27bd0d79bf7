"""What an error says one could write instead, and warnings of shapes that may be meant for something else."""

import difflib
import sys
import warnings

import torch

from .kinds import INTEGERS, is_array

OTHER_NAMES = {
    "manhattan": "cityblock",
    "taxicab": "cityblock",
    "l1": "cityblock",
    "l2": "euclidean",
    "squared_euclidean": "sqeuclidean",
    "squared_l2": "sqeuclidean",
    "mse": "sqeuclidean",
    "cosine_distance": "cosine",
    "cosine_similarity": "cosine",
}
MANY_DIMS = 8  # that a series of one vector has where its steps may have been meant
_said = set()


def of_cost(name, names):
    """The cost that somebody may mean who calls it `name`; names: those that there are."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    close = difflib.get_close_matches(plain, [*names, *OTHER_NAMES], n=1, cutoff=0.75)
    return f"; did you mean {OTHER_NAMES.get(close[0], close[0])!r}?" if close else ""


def of_object(name, given):
    """How to make a tensor of something that is none."""
    if is_array(given):
        return f"; write torch.from_numpy({name})"
    if not isinstance(given, (list, tuple)):
        return ""
    if given and all(isinstance(part, torch.Tensor) for part in given):
        pack = f"torch.nn.utils.rnn.pack_sequence({name}, enforce_sorted=False)"
        return f"; write torch.stack({name}), or {pack} where the lengths differ"
    return f"; write torch.tensor({name})"


def of_dtype(name, dtype):
    return f"; write {name}.float()" if dtype in INTEGERS else ""


def of_dimensions(name, shape):
    if len(shape) != 1:
        return ""
    return f"; a series of one channel is {name}[None, :, None], or without a batch {name}[:, None]"


def of_vectors(x, y):
    """For x and y whose vectors differ in dimension."""
    if x.shape[:-1] != y.shape[:-1]:
        return ""
    if x.dim() == 2:
        return "; series of one channel, (batch, length), want .unsqueeze(2)"
    return "; channels come last, (batch, length, channels): write .transpose(1, 2)"


def of_batches(x, y):
    for name, one, others in (("x", len(x), len(y)), ("y", len(y), len(x))):
        if one == 1:
            return f"; write {name}.expand({others}, -1, -1), or cdist(x, y) for every pair"
    return ""


def of_radius(bandwidth):
    """For a number that is no integer."""
    if not isinstance(bandwidth, float):
        return ""
    share = f"a share of the length is round({bandwidth} * N)" if 0 < bandwidth < 1 else f"write {round(bandwidth)}"
    return f"; it counts cells: {share}" if abs(bandwidth) < 1e9 else ""  # nor inf or NaN


def of_gamma(gamma):
    if gamma != 0:
        return ""
    return "; what it tends to at 0, divergences too, is hard DTW: dtw, dtw_path, or the number 0 to soft_dtw and SoftDTW"


def warn_of_shape(x, batched):
    """Once a process: x, y (B, N, D) of one shape, perhaps N series of D steps without a batch, or with one (B, D, N)."""
    batch, length, dim = x.shape
    if "shape" in _said or (batched and (length > 1 or dim < MANY_DIMS)):
        return
    _said.add("shape")
    if batched:
        text = (
            f"x and y of shape {tuple(x.shape)} are {batch} pairs of series of a single vector, of dimension {dim}; "
            f"channels come last: .transpose(1, 2) makes series of length {dim} and one channel"
        )
    else:
        text = (
            f"x and y of shape {(length, dim)} are one pair of series of {length} vectors of dimension {dim}; "
            f"{length} series of length {dim} and one channel want .unsqueeze(2), and one pair .unsqueeze(0), which ends "
            "this warning"
        )
    warnings.warn(text, UserWarning, stacklevel=_level_of_caller())


def warn_of_pair_without_batch(module, x):
    """For x of shape (N, D), which a module takes in this version."""
    _said.add("shape")  # this says it as well
    length, dim = x.shape
    text = (
        f"{module}: x of shape {(length, dim)} is taken as a single series of {length} vectors of dimension {dim}; the "
        f"next version takes batches alone: write .unsqueeze(2) for {length} series of length {dim} and one channel, "
        ".unsqueeze(0) for one pair, or call the function, which takes pairs without a batch"
    )
    warnings.warn(text, FutureWarning, stacklevel=_level_of_caller())


def _level_of_caller():
    """The stacklevel, where warnings.warn is called by the caller of this, of the line that called the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("torchsoftdtw", "torch"):
        frame, level = frame.f_back, level + 1
    return level
