"""Time hard DTW beside soft-DTW: the value alone, with both gradients, and with the paths.

Before a shape is timed, its values are compared with float64 and its paths with its values.
"""

import argparse
import functools

import common
import data_kinds
import torch
from tqdm import tqdm

import torchsoftdtw

SHAPES = {
    "cuda": ("4096x512x1", "4096x100x1", "512x128x1", "64x1024x8", "16x2048x1", "1x16384x1"),
    "cpu": ("64x512x1", "16x2048x1", "32x128x1", "1x8192x1"),
}
ERROR = 1e-5  # relative, of float32 values
CHECKED_PATHS = 8
GAMMA = 1.0  # of soft-DTW


def check(x, y):
    """The largest relative error of the values; raises where it is too large or a path does not cost its value."""
    value, paths = torchsoftdtw.dtw_path(x, y)
    expected = torchsoftdtw.dtw(x.double(), y.double())
    error = ((value - expected) / expected).abs().max().item()
    for b, path in enumerate(paths[:CHECKED_PATHS]):
        cost = (x[b, path[:, 0]].double() - y[b, path[:, 1]].double()).square().sum().item()
        error = max(error, abs(cost - expected[b].item()) / expected[b].item())
    if not error < ERROR:
        raise AssertionError(f"values or paths are off by {error:.2g}, more than {ERROR}")
    return error


def measure(shape, kind, device, repeats):
    x, y = data_kinds.pairs(kind, *shape, torch.float32, device)
    row = {"batch": shape[0], "length": shape[1], "dim": shape[2], "error": check(x, y)}
    cells = shape[0] * shape[1] ** 2
    a, b = (series.clone().requires_grad_() for series in (x, y))
    soft_dtw = functools.partial(torchsoftdtw.soft_dtw, gamma=GAMMA)
    runs = {
        "value": lambda: torchsoftdtw.dtw(x, y),
        "value_and_gradients": lambda: common.with_gradients(torchsoftdtw.dtw, a, b)(),
        "path": lambda: torchsoftdtw.dtw_path(x, y),
        "soft_value": lambda: soft_dtw(x, y),
        "soft_value_and_gradients": lambda: common.with_gradients(soft_dtw, a, b)(),
    }
    for name, run in runs.items():
        timing = common.time_calls(run, device, repeats=repeats, budget=2.0)
        row[name] = {"seconds": timing._asdict(), "cells_per_second": cells / timing.median}
        row[name]["peak_bytes"] = common.peak_bytes(run, device)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--shapes", nargs="+", help="such as 64x300x2: batch, length, dimension")
    parser.add_argument("--kind", choices=data_kinds.KINDS, default="noise", help="of data")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    device = common.resolve_device(options.device)
    shapes = options.shapes or SHAPES[device.type]
    rows = [
        measure(tuple(map(int, s.split("x"))), options.kind, device, options.repeats) for s in tqdm(shapes, disable=None)
    ]
    for shape, row in zip(shapes, rows, strict=True):
        figures = ", ".join(
            f"{name.replace('_', ' ')}: {1e3 * row[name]['seconds']['median']:.3f} ms"
            for name in row
            if isinstance(row[name], dict)
        )
        print(f"{shape}: {figures}, error {row['error']:.1g}")
    settings = {"data": options.kind, "dtype": "float32", "cost": "sqeuclidean", "gamma": GAMMA, "repeats": options.repeats}
    path = common.write_record("hard", device, settings, rows, options.output, options.commit)
    print(f"record: {path}")


if __name__ == "__main__":
    main()
