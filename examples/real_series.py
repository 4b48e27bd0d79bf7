"""What the examples share: series that ship inside aeon and tslearn, so that nothing is downloaded, and their options."""

import argparse
import pathlib
import warnings

import numpy as np
import torch

DATASETS = {
    "arrow_head": "ArrowHead: outlines of projectile points, as the distance from the centre along the contour",
    "gun_point": "GunPoint: the height of a hand that draws a gun, or points, and comes back",
    "trace": "Trace: transients of a power plant's instruments (simulated, unlike the other two)",
}


def parser_of(documentation, dataset, output):
    """A parser of the options that every example has, with the defaults of one."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--dataset", choices=tuple(DATASETS), default=dataset)
    parser.add_argument("--device", type=_device, default="auto", help="auto, cpu, cuda, cuda:1, ...")
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
