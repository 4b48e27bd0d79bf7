"""The classic soft-DTW kernel study, for docs/kernel-study.md: each kernel over sets of growing counts, over bands, over
the length of one pair, and with costs inside the kernel against a ready-made matrix.

Univariate noise in float32. A row is forward under no_grad and forward + backward, each in a captured CUDA graph where
there is CUDA, and the peak of memory. Every row is compared with float64 before it is timed.
"""

import argparse
import time
from typing import NamedTuple

import bench_shapes
import common
import data_kinds
import reference
import torch
from tqdm import tqdm

import torchsoftdtw
from torchsoftdtw._kernels import selection

GAMMA = 1.0
BANDS = (20, 40, 60, 80, 100)  # percent of the length; 100: no band
COUNTS = {100: [4**k for k in range(8)], 1024: [4**k for k in range(6)]}  # length: pairs
BANDED = ((4096, 100), (256, 1024))  # pairs, length
LONG = (1024, 4096, 16384, 65536)
MOST_LONG = {"diagonal": 16384, "stencil": 16384}  # beyond which a kernel holds too much, or is too slow to wait for
COSTS = ((4096, 100), (256, 1024), (1, 16384))
SOURCES = ("series", "matrix", "matrix made in the call")
QUICK = {"counts": {10: [1, 3], 24: [2]}, "banded": ((2, 20),), "long": (32, 48), "costs": ((2, 16),)}
EXACT_LENGTH = 4096  # up to which the plain kernel in float64 is what others are compared with


class Case(NamedTuple):
    part: str
    kernel: str
    batch: int
    length: int
    band_percent: int = 100
    source: str = "series"

    @property
    def bandwidth(self):
        return None if self.band_percent >= 100 else self.length * self.band_percent // 100


def cases(device, quick):
    """What is measured, by part."""
    kernels = common.KERNELS[device.type]
    sizes = QUICK if quick else {"counts": COUNTS, "banded": BANDED, "long": LONG, "costs": COSTS}
    found = [Case("counts", k, count, n) for n, counts in sizes["counts"].items() for count in counts for k in kernels]
    found += [Case("bands", k, *shape, percent) for shape in sizes["banded"] for percent in BANDS for k in kernels]
    found += [Case("long", k, 1, n) for n in sizes["long"] for k in kernels if n <= MOST_LONG.get(k, n)]
    for batch, length in sizes["costs"]:
        for kernel in kernels_of_costs(device, batch):
            found += [Case("costs", kernel, batch, length, source=source) for source in SOURCES]
    return found


def kernels_of_costs(device, batch):
    """The plain kernel, the one way through the table that takes both series and matrices, and what is chosen for each."""
    if device.type == "cpu":
        return ("cpu",)
    return ("diagonal", "stencil/extended_range" if batch > 1 else "tiled/extended_range", "auto")


def specialization(case, device, gradient):
    """What the kernel of a case is down to the specialisation."""
    if device.type == "cpu":
        return "cpu"
    cost = "sqeuclidean" if case.source == "series" else selection.MATRIX
    shape = {"batch": case.batch, "cost": cost, "bandwidth": case.bandwidth, "gradient": gradient}
    return selection.select_kernel(case.length, device=device, kernel=case.kernel, specialization=True, **shape)


def calls(case, x, y):
    """Two functions: of x and y, and of the leaves that the timed calls are given."""
    options = {"bandwidth": case.bandwidth, "kernel": case.kernel}

    def of_series(x, y):
        return torchsoftdtw.soft_dtw(x, y, GAMMA, **options)

    def of_matrix(costs):
        return torchsoftdtw.soft_dtw_from_cost(costs, GAMMA, **options)

    def making_it(x, y):
        return of_matrix((x - y.mT).square())

    if case.source == "series":
        return of_series, of_series, (x, y)
    return making_it, *((of_matrix, ((x - y.mT).square(),)) if case.source == "matrix" else (making_it, (x, y)))


def measure(case, device, timing):
    """Check a case, then time it: its row."""
    x, y = data_kinds.pairs("noise", case.batch, case.length, 1, torch.float32, device)
    checked, function, leaves = calls(case, x, y)
    plain = "cpu" if device.type == "cpu" else "diagonal" if case.length <= EXACT_LENGTH else "tiled"

    def exact(x, y):
        return torchsoftdtw.soft_dtw(x, y, GAMMA, bandwidth=case.bandwidth, kernel=plain)

    found = reference.largest_errors(checked, exact, (x, y), GAMMA, gradients=True)
    bench_shapes.assert_small(str(case), found, case.length)

    leaves = [leaf.requires_grad_() for leaf in leaves]

    def forward():
        with torch.no_grad():
            return function(*leaves)

    def both():
        return torch.autograd.grad(function(*leaves).sum(), leaves)

    row = {**case._asdict(), "bandwidth": case.bandwidth}
    row["cells"] = case.batch * common.cells_in_band(case.length, case.length, case.bandwidth)
    for name, run, gradient in (("forward", forward, False), ("forward_backward", both, True)):
        row[f"{name}_specialization"] = specialization(case, device, gradient)
        row[f"{name}_peak_bytes"] = common.peak_bytes(run, device)
        run = common.captured(run) if device.type == "cuda" else run
        row[name] = common.time_calls(run, device, **timing)._asdict()
    return row | found


def check_the_plain_kernel(device, lengths):
    """What the others are compared with, against a reference that shares no code with any kernel."""
    for length in lengths:
        x, y = data_kinds.pairs("noise", 4, length, 1, torch.float64, device)
        for percent in (BANDS[0], 100):
            case = Case("reference", "cpu" if device.type == "cpu" else "diagonal", 4, length, percent)
            reference.assert_agreement(case.kernel, calls(case, x, y)[0], x, y, GAMMA, case.bandwidth)


def show(rows):
    header = ("part", "kernel", "source", "pairs", "length", "band %", "forward", "forward + backward", "cells/s")
    return common.markdown_table(
        header,
        [
            (
                row["part"],
                row["kernel"],
                row["source"],
                row["batch"],
                row["length"],
                row["band_percent"],
                *(common.format_seconds(row[what]["median"]) for what in ("forward", "forward_backward")),
                f"{row['cells'] / row['forward']['median']:.3g}",
            )
            for row in rows
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=("counts", "bands", "long", "costs"), help="all of them by default")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of timed calls a figure; at least three calls")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further row is begun")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    begin = time.perf_counter()
    device = common.resolve_device(options.device)
    chosen = [case for case in cases(device, options.quick) if not options.parts or case.part in options.parts]
    check_the_plain_kernel(device, sorted({case.length for case in chosen if case.part == "counts"}))
    rows = []
    for case in tqdm(chosen, disable=None):
        if time.perf_counter() - begin > options.seconds:
            print(f"stopped before {case}, with {len(chosen) - len(rows)} rows to go")
            break
        rows.append(measure(case, device, {"warmup": 1, "repeats": options.repeats, "budget": options.budget}))
        if device.type == "cuda":
            torch.cuda.empty_cache()
    print(show(rows))
    settings = {"data": "noise", "dtype": "float32", "gamma": GAMMA, "dim": 1, "in_a_cuda_graph": device.type == "cuda"}
    print(f"\nrecord: {common.write_record('study', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
