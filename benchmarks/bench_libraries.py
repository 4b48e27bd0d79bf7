"""Time this package beside other implementations: forward, forward + backward, and peak memory on a GPU.

Each is checked against a float64 reference, values and gradients, before it is timed; one that is wrong is still timed
and its row says so. Through public functions, squared Euclidean cost. Both gradients are asked for.
"""

import argparse
import functools

import common
import data_kinds
import reference
import rivals
import torch
from tqdm import tqdm

OURS = "torchsoftdtw"
CUDA_SHAPES = ("32x512x64", "512x128x1", "64x1024x8", "16x2048x1", "4096x100x1")
CPU_SHAPES = ("32x128x1", "16x512x1", "4x2048x1")
NUMBA_LONGEST = 1024  # threads of a block, one a row
UNAVAILABLE = (rivals.Missing, NotImplementedError)


def libraries(options, device):
    """Names and factories (device, gamma) -> callable, this package first."""
    found = {OURS: rivals.ours, "tslearn": rivals.tslearn, "pysdtw": rivals.pysdtw}
    if options.maghoumi:
        found["maghoumi"] = functools.partial(rivals.maghoumi, options.maghoumi)
    for path in options.torchsoftdtw_other:
        found[common.file_name(path)] = functools.partial(rivals.other, path)
    return {name: factory for name, factory in found.items() if options.only is None or name in {OURS, *options.only}}


def measure(name, factory, x, y, options, device):
    """One row: what was measured, or why nothing was."""
    batch, length, dim = x.shape
    row = {"library": name, "batch": batch, "length": length, "dim": dim, "note": None}
    try:
        function = factory(device, options.gamma)
        if name == "maghoumi" and device.type == "cuda" and length > NUMBA_LONGEST:
            # It falls back to the CPU with a message, which is not what is asked for.
            raise rivals.Missing("unsupported: longer than 1024")
        row["note"] = disagreement(name, function, x, y, options.gamma)
        x, y = (z.clone().requires_grad_() for z in (x, y))
        timing = functools.partial(common.time_calls, device=device, repeats=options.repeats, budget=options.budget)
        with torch.no_grad():
            forward = timing(lambda: function(x, y))
        both = common.with_gradients(function, x, y)
        training = timing(both)
        row |= {
            "forward": forward._asdict(),
            "forward_backward": training._asdict(),
            "peak_bytes": common.peak_bytes(both, device),
        }
        if name == OURS and options.graph and device.type == "cuda":
            row["forward_backward_graph"] = timing(common.captured(both))._asdict()
    except UNAVAILABLE as reason:
        row["note"] = str(reason)
    except torch.cuda.OutOfMemoryError:
        row["note"] = "unsupported: out of memory"
    except Exception as error:
        if name == OURS:
            raise
        row["note"] = f"unsupported: {rivals.one_line(error)}"
    return row


def measure_in_turn(found, shape, options, device, progress):
    """The rows of one shape: all libraries in turn, --rounds times, so that a busy machine slows them alike."""
    batch, length, dim = shape
    x, y = data_kinds.pairs(options.kind, batch, length, dim, common.DTYPES[options.dtype], device)
    rounds = []
    for _ in range(options.rounds):
        rounds.append([])
        for name, factory in found.items():
            progress.set_description(f"{name} {batch}x{length}x{dim}")
            rounds[-1].append(measure(name, factory, x, y, options, device))
            progress.update()
    return [joined(rows) for rows in zip(*rounds, strict=True)]


def joined(rows):
    """The rows that one library got in several rounds, as one."""
    row = dict(rows[0])
    for key in ("forward", "forward_backward", "forward_backward_graph"):
        timings = [common.Timing(**other[key]) for other in rows if key in other]
        if timings:
            row[key] = common.pooled(timings)._asdict()
    return row


def disagreement(name, function, x, y, gamma):
    """None where values and gradients agree with the reference. This package must; another's error is reported."""
    try:
        reference.assert_agreement(name, function, x, y, gamma)
    except AssertionError as error:
        if name == OURS:
            raise
        return f"wrong: {str(error).removeprefix(f'{name}: ')}"
    return None


def show(rows, statistic):
    """A table of all rows; ratios say how many times this package's time another takes."""
    own = {(row["batch"], row["length"], row["dim"]): row for row in rows if row["library"] == OURS}
    lines = []
    for row in rows:
        shape = (row["batch"], row["length"], row["dim"])
        cells = [" x ".join(map(str, shape)), row["library"]]
        for key in ("forward", "forward_backward"):
            if key not in row:
                cells.append("-")
                continue
            ratio = row[key][statistic] / own[shape][key][statistic]
            cells.append(common.format_seconds(row[key][statistic]) + ("" if row is own[shape] else f" ({ratio:.1f}x)"))
        graph = row.get("forward_backward_graph")
        cells += [
            common.format_seconds(graph[statistic]) if graph else "-",
            common.format_bytes(row.get("peak_bytes")),
            row["note"] or "",
        ]
        lines.append(cells)
    header = ("batch x length x dim", "library", "forward", "forward + backward", "in a graph", "peak memory", "note")
    return common.markdown_table(header, lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=common.parse_shape, nargs="+", help="such as 32x512x64")
    parser.add_argument("--kind", choices=data_kinds.KINDS, default="noise", help="of data")
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--threads", type=int, help="CPU threads of PyTorch and numba; PyTorch's choice by default")
    parser.add_argument("--graph", action="store_true", help="time this package in a captured CUDA graph, too")
    parser.add_argument("--only", nargs="+", help="the libraries to time beside this package; all by default")
    parser.add_argument("--maghoumi", metavar="PATH", help="soft_dtw_cuda.py of pytorch-softdtw-cuda")
    parser.add_argument(
        "--torchsoftdtw-other",
        metavar="PATH",
        nargs="+",
        default=[],
        help="files or package folders with soft_dtw(x, y, gamma) or SoftDTW(gamma)",
    )
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of calls a figure, three at least")
    parser.add_argument(
        "--fastest", action="store_true", help="show the fastest call, not the median: for a machine that others use"
    )
    parser.add_argument("--rounds", type=int, default=1, help="so often each shape's libraries are timed, in turn")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    return parser.parse_args()


def main():
    options = parse_arguments()
    common.set_threads(options.threads or torch.get_num_threads())
    device = common.resolve_device(options.device)
    shapes = options.shapes or [common.parse_shape(text) for text in (CUDA_SHAPES if device.type == "cuda" else CPU_SHAPES)]
    found = libraries(options, device)
    rows = []
    with tqdm(total=len(shapes) * len(found) * options.rounds) as progress:
        for shape in shapes:
            rows += measure_in_turn(found, shape, options, device, progress)
    description = common.describe_device(device)
    threads = f", {description['threads']} threads" if device.type == "cpu" else ""
    print(f"gamma {options.gamma:g}, {options.dtype}, {description['name']}{threads}\n")
    print(show(rows, "fastest" if options.fastest else "median"))
    settings = {"data": options.kind, "gamma": options.gamma, "dtype": options.dtype, "rounds": options.rounds}
    extra = {"libraries": {name: common.installed_version(name) for name in found if name != OURS}}
    print(f"\nrecord: {common.write_record('libraries', device, settings, rows, options.output, options.commit, **extra)}")


if __name__ == "__main__":
    main()
