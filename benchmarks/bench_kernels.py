"""Time every kernel of this package: one kind of data or a UCR file, a batch of pairs or all pairs of a set.

One row a kernel, length and band: microseconds (median and spread), cells per second and GFLOP/s at 18 operations a
cell, where only the cells inside the band count. All kernels are checked before any is timed.
"""

import argparse

import common
import data_kinds
import reference
import torch
from tqdm import tqdm

import torchsoftdtw

BANDS = (20, 40, 60, 80, 100)  # percent of the length
CHUNK_BYTES = 1 << 30  # of x and of y that all pairs gather at a time


def all_pairs(series, soft_dtw):
    """soft_dtw over every ordered pair of `series` (P, N, D), in chunks of bounded memory: (P, P)."""
    count = len(series)
    rows = max(1, CHUNK_BYTES // (count * series[0].numel() * series.element_size()))
    values = []
    for some in series.split(rows):
        x = some[:, None].expand(-1, count, -1, -1).flatten(0, 1)
        y = series[None].expand(len(some), -1, -1, -1).flatten(0, 1)
        values.append(soft_dtw(x, y).view(len(some), count))
    return torch.cat(values)


def series_of(options, length, device):
    """The set whose pairs are timed: (P, N, D)."""
    dtype = common.DTYPES[options.dtype]
    count = options.batch if options.all_pairs else 2 * options.batch
    if options.ucr is None:
        return data_kinds.pairs(options.kind, count, length, options.dim, dtype, device)[0]
    series = torch.from_numpy(common.read_ucr(options.ucr)[1])[:, :, None].to(device, dtype)
    if options.all_pairs:
        return series
    return series[torch.randint(len(series), (count,), generator=torch.Generator().manual_seed(0)).to(device)]


def calls(series, soft_dtw, options):
    """The call to time, and the pairs (x, y) that a check looks at."""
    if options.all_pairs:
        x = series.clone().requires_grad_(options.backward)

        def run():
            values = all_pairs(x, soft_dtw)
            return torch.autograd.grad(values.sum(), x) if options.backward else values

        return run, (series, series.roll(1, 0))
    x, y = (z.clone().requires_grad_(options.backward) for z in series.chunk(2))
    if options.backward:
        return common.with_gradients(soft_dtw, x, y), (x, y)
    return lambda: soft_dtw(x, y), (x, y)


def measure(options, device, kernels, length):
    """Check all kernels, then time them: a dictionary a row."""
    series = series_of(options, length, device)
    length, dim = series.shape[1:]
    count = len(series) ** 2 if options.all_pairs else len(series) // 2
    rows = []
    for percent in options.bands:
        bandwidth = None if percent >= 100 else length * percent // 100
        problems = {}
        for kernel in kernels:

            def soft_dtw(x, y, kernel=kernel, bandwidth=bandwidth):
                return torchsoftdtw.soft_dtw(x, y, options.gamma, bandwidth=bandwidth, kernel=kernel)

            problems[kernel], pairs = calls(series, soft_dtw, options)
            reference.assert_agreement(kernel, soft_dtw, *pairs, options.gamma, bandwidth, options.backward)
        for kernel, run in problems.items():
            timing = common.time_calls(run, device, options.warmup, options.repeats, options.budget)
            cells = count * common.cells_in_band(length, length, bandwidth)
            rows.append(
                {
                    "kernel": kernel,
                    "length": length,
                    "dim": dim,
                    "count": count,
                    "band_percent": percent,
                    "bandwidth": bandwidth,
                    "microseconds": timing.median * 1e6,
                    "fastest": timing.fastest * 1e6,
                    "slowest": timing.slowest * 1e6,
                    "calls": timing.calls,
                    "cells_per_second": cells / timing.median,
                    "gflops": common.OPERATIONS_PER_CELL * cells / timing.median * 1e-9,
                }
            )
    return rows


def show(rows):
    header = ("kernel", "length", "count", "band %", "us", "spread us", "cells/s", "GFLOP/s")
    return common.markdown_table(
        header,
        [
            (
                row["kernel"],
                row["length"],
                row["count"],
                row["band_percent"],
                f"{row['microseconds']:.1f}",
                f"{row['fastest']:.1f} .. {row['slowest']:.1f}",
                f"{row['cells_per_second']:.3g}",
                f"{row['gflops']:.1f}",
            )
            for row in rows
        ],
    )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ucr", metavar="FILE", help="a UCR text file in place of --kind: label first")
    parser.add_argument("--all-pairs", action="store_true", help="all pairs of a set of --batch series, or of the file")
    parser.add_argument("--backward", action="store_true", help="forward and backward in place of forward alone")
    parser.add_argument("--kernels", nargs="+", help="of this device; all of them by default")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--batch", type=int, help="pairs, or series with --all-pairs; 512 on CUDA and 32 on the CPU")
    parser.add_argument("--dim", type=int, default=1)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--kind", choices=data_kinds.KINDS, default="noise", help="of data")
    parser.add_argument("--bands", type=int, nargs="+", default=list(BANDS), help="percent of the length; 100: no band")
    parser.add_argument("--dtype", choices=common.DTYPES, default="float32")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--threads", type=int, help="CPU threads; PyTorch's choice by default")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timed calls a row; at least three calls")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    return parser.parse_args()


def main():
    options = parse_arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = common.resolve_device(options.device)
    kernels = options.kernels or common.KERNELS[device.type]
    options.batch = options.batch or (512 if device.type == "cuda" else 32)
    lengths = [None] if options.ucr else options.lengths
    rows = []
    for length in tqdm(lengths, desc="lengths"):
        rows += measure(options, device, kernels, length)
    what = "forward + backward" if options.backward else "forward"
    print(f"{what}, gamma {options.gamma:g}, {options.dtype}, {common.describe_device(device)['name']}\n")
    print(show(rows))
    settings = {
        "data": options.kind if options.ucr is None else common.file_name(options.ucr),
        "all_pairs": options.all_pairs,
        "backward": options.backward,
        "gamma": options.gamma,
        "dtype": options.dtype,
    }
    name = "kernels" + ("_all_pairs" if options.all_pairs else "") + ("_backward" if options.backward else "")
    print(f"\nrecord: {common.write_record(name, device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
