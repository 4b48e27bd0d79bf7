"""A row of the table as a prefix computation (prefix_scan.cu) beside the kernels of the package, for a few long pairs.

For docs/kernel-study.md. Needs a GPU, and nvcc where the library has not been built: `--build-only` builds it elsewhere.
Values are compared with float64 before anything is timed.
"""

import argparse
import ctypes
import pathlib
import subprocess

import common
import data_kinds
import torch
from tqdm import tqdm

import torchsoftdtw

SOURCE = pathlib.Path(__file__).with_name("prefix_scan.cu")
LIBRARY = SOURCE.parents[1] / "build" / "prefix_scan.so"
SHAPES = ((1, 16384), (4, 16384), (1, 65536))  # pairs, length
GAMMAS = (1.0, 0.0)  # 0: hard DTW
WIDTHS = {"pipelined": (1, 2, 4, 8), "row by row": (1, 4)}  # columns a lane
LANES = {"pipelined": 32, "row by row": 256}  # that share a part of a row
MOST_PARTS = {"pipelined": 2112, "row by row": 256}  # of a row: 16 warps for each of 132 multiprocessors


def build():
    LIBRARY.parent.mkdir(exist_ok=True)
    options = ["-O3", "-std=c++17", "-arch=native" if torch.cuda.is_available() else "-arch=sm_90"]
    subprocess.run(["nvcc", *options, "--shared", "-Xcompiler", "-fPIC", "-o", str(LIBRARY), str(SOURCE)], check=True)


def scan(library, form, width, gamma, x, y):
    """A function that computes the values (B,) of x (B, N, 1) and y (B, M, 1) into one and the same tensor."""
    batch, n, m = x.shape[0], x.shape[1], y.shape[1]
    parts = m // (LANES[form] * width)
    values = torch.full((batch,), float("nan"), device=x.device)
    entries = 4 if form == "row by row" else n  # 8 bytes each, a part of a row
    workspace = torch.empty(batch * parts * entries, dtype=torch.float64, device=x.device)
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y, values)]
    memory = ctypes.c_void_p(workspace.data_ptr()), ctypes.c_size_t(8 * workspace.numel())

    def run():
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        error = library.prefix_scan(
            *pointers, batch, n, m, ctypes.c_float(gamma), width, form == "row by row", *memory, stream
        )
        if error:
            raise RuntimeError(f"prefix_scan, {form}, {width} columns a lane: CUDA's error {error}")
        return values

    run.keeps = x, y, workspace
    return run


def algorithms(library, gamma, x, y):
    """What is compared: name, columns a lane, and a function without arguments."""
    if gamma > 0:
        for kernel in ("tiled", "tiled/warp_specialised"):
            yield kernel, None, lambda kernel=kernel: torchsoftdtw.soft_dtw(x, y, gamma, kernel=kernel)
    else:
        yield "dtw", None, lambda: torchsoftdtw.dtw(x, y)
    for form, lanes in LANES.items():
        for width in WIDTHS[form]:
            if lanes * width <= y.shape[1] <= lanes * width * MOST_PARTS[form] // len(y):
                yield form, width, scan(library, form, width, gamma, x, y)


def measure(library, batch, length, gamma, device, timing):
    x, y = data_kinds.pairs("noise", batch, length, 1, torch.float32, device)
    expected = torchsoftdtw.soft_dtw(x.double(), y.double(), gamma) if gamma else torchsoftdtw.dtw(x.double(), y.double())
    allowed = 4 * (2 * length) ** 0.5 * 2**-24  # float32 rounds at every step of hard DTW's path: four deviations
    for algorithm, width, run in algorithms(library, gamma, x, y):
        error = ((run() - expected) / expected).abs().max().item()
        if not error <= allowed:  # NaN fails too
            raise AssertionError(f"{algorithm} of {batch} x {length}, gamma {gamma}: off by {error:.3g}, not {allowed:.3g}")
        taken = common.time_calls(run, device, **timing)
        yield {
            "batch": batch,
            "length": length,
            "gamma": gamma,
            "algorithm": algorithm,
            "columns_per_lane": width,
            "value_error": error,
            "forward": taken._asdict(),
            "cells_per_second": batch * length**2 / taken.median,
        }


def show(rows):
    header = ("pairs", "length", "gamma", "algorithm", "columns a lane", "forward", "cells/s", "error")
    keys = ("batch", "length", "gamma", "algorithm", "columns_per_lane")
    return common.markdown_table(
        header,
        [
            (
                *(row[key] for key in keys),
                common.format_seconds(row["forward"]["median"]),
                f"{row['cells_per_second']:.3g}",
                f"{row['value_error']:.1g}",
            )
            for row in rows
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-only", action="store_true", help="build the library, and measure nothing")
    parser.add_argument("--shapes", nargs="+", help="such as 4x16384: pairs, length")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of timed calls a figure; at least three calls")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    if options.build_only or not LIBRARY.exists():
        build()
    if options.build_only:
        return
    device = common.resolve_device("cuda")
    library = ctypes.CDLL(str(LIBRARY))
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes or ()] or SHAPES
    timing = {"warmup": 1, "repeats": options.repeats, "budget": options.budget}
    rows = []
    for batch, length in tqdm(shapes, disable=None):
        for gamma in GAMMAS:
            rows += measure(library, batch, length, gamma, device, timing)
    print(show(rows))
    settings = {"data": "noise", "dtype": "float32", "dim": 1}
    print(f"\nrecord: {common.write_record('prefix_scan', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
