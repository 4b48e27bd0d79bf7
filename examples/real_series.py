"""What the examples share: real series, all of which are on the disk already, and their options."""

import argparse
import itertools
import pathlib
import warnings

import numpy as np
import torch

DATASETS = {
    "arrow_head": "ArrowHead: outlines of projectile points, as the distance from the centre along the contour",
    "gun_point": "GunPoint: the height of a hand that draws a gun, or points, and comes back",
    "trace": "Trace: transients of a power plant's instruments (simulated, unlike the other two)",
}


RECORDINGS = pathlib.Path(__file__).parents[1] / "benchmarks" / "real_series.npz"


def parser_of(documentation, output, dataset=None, device="auto"):
    """A parser of the options that every example has, with the defaults of one; --dataset only where it has a choice."""
    parser = argparse.ArgumentParser(description=documentation.partition("\n")[0])
    if dataset:
        parser.add_argument("--dataset", choices=tuple(DATASETS), default=dataset)
    parser.add_argument("--device", type=_device, default=device, help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--output", default=output, help="where the picture goes")
    return parser


def _device(name):
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def load(name):
    """The training and the held-out part of a data set, in its own split.

    Returns:
        (train, train_labels, test, test_labels): float32 tensors (P, N, 1) and integer arrays (P,).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = _trace() if name == "trace" else _from_aeon(name)
    train, train_labels, test, test_labels = parts

    def tensor(series):
        return torch.from_numpy(np.ascontiguousarray(series, dtype=np.float32))

    return tensor(train), train_labels.astype(int), tensor(test), test_labels.astype(int)


def _trace():
    from tslearn.datasets import CachedDatasets

    train, train_labels, test, test_labels = CachedDatasets().load_dataset("Trace")
    return train, train_labels, test, test_labels


def _from_aeon(name):
    import aeon.datasets

    folder = {"arrow_head": "ArrowHead", "gun_point": "GunPoint"}[name]
    loader = {"arrow_head": aeon.datasets.load_arrow_head, "gun_point": aeon.datasets.load_gunpoint}[name]
    bundled = pathlib.Path(aeon.datasets.__file__).parent / "data" / folder
    if not bundled.is_dir():  # the loader would go to the network
        raise FileNotFoundError(f"this version of aeon does not ship {folder}; aeon 1.6 does")
    train, train_labels = loader("train")
    test, test_labels = loader("test")
    return train.transpose(0, 2, 1), train_labels, test.transpose(0, 2, 1), test_labels


def electrocardiogram():
    """Five minutes of record 208 of the MIT-BIH Arrhythmia Database, at 360 samples a second.

    The file holds a window around every beat. Windows that overlap are joined here; where two beats are too far apart for
    that, a new part begins.

    Returns:
        A list of (part (M,), beats): a float32 tensor, in millivolts, and where its beats are.
    """
    before, shortest = 90, 80  # samples: of a window before its beat; between two beats
    with np.load(RECORDINGS) as arrays:
        windows = torch.from_numpy(arrays["Heartbeats"][..., 0])
    length = windows.shape[1]
    parts = [(windows[0], [before])]
    for last, window in itertools.pairwise(windows):
        fits = (lag for lag in range(shortest, length) if torch.equal(last[lag:], window[: length - lag]))
        lag = next(fits, length)
        part, beats = parts[-1]
        if lag < length - 8:  # fewer samples may agree by chance
            parts[-1] = torch.cat([part, window[length - lag :]]), [*beats, beats[-1] + lag]
        else:
            parts.append((window, [before]))
    return parts
