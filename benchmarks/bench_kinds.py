"""Time kernels on every kind of data, and compare two records: does a path that is meant for some data pay on all of them?

A row: the median of forward under no_grad and that of forward + backward for both gradients, in a captured CUDA graph
(eagerly on the CPU), after values and gradients were compared with the `diagonal` kernel in float64. A row that is off by
more than VALUE_ERROR or GRADIENT_ERROR is not timed, and the exit status is 1. Gamma 0 is hard DTW, which has one kernel.

Two versions are compared by a record of each, the second without timing anything. PYTHONPATH chooses the version:

    python benchmarks/bench_kinds.py --output with.json
    PYTHONPATH=../without python benchmarks/bench_kinds.py --output without.json
    python benchmarks/bench_kinds.py --rows with.json --against without.json

And two kernels by one record of both:

    python benchmarks/bench_kinds.py --kernels stencil/linear_domain stencil/extended_range --than stencil/extended_range
"""

import argparse
import itertools
import json
import pathlib
import statistics
import sys

import common
import data_kinds
import reference
import torch
from tqdm import tqdm

import torchsoftdtw
from torchsoftdtw._kernels.number_formats import number_formats

SHAPES = {
    "cuda": ("4096x512x1", "4096x128x1", "32x1024x1", "16x2048x1", "256x2048x1", "64x1024x8", "4096x512x4"),
    "cpu": ("32x256x1",),
}
FIGURES = ("forward", "forward_backward")
SAME = ("batch", "length", "dim", "dtype", "kind", "gamma", "band_percent", "kernel")  # of rows that are compared
VALUE_ERROR, GRADIENT_ERROR = 1e-4, 1e-3  # beyond them a row is wrong, not rounded
WORTH, WORST = 1.25, 0.9  # a path stays that is so many times as fast in geometric mean, and nowhere less than the other


def measure(shape, kind, gamma, percent, kernel, options, device):
    batch, length, dim = shape
    bandwidth = None if percent >= 100 else length * percent // 100
    inputs = data_kinds.pairs(kind, batch, length, dim, common.DTYPES[options.dtype], device)
    hard, soft = torchsoftdtw.dtw, torchsoftdtw.soft_dtw
    if options.matrix:
        inputs = (data_kinds.squared_distances(*inputs),)
        hard, soft = torchsoftdtw.dtw_from_cost, torchsoftdtw.soft_dtw_from_cost

    def function(*inputs, kernel=kernel):
        if gamma == 0:
            return hard(*inputs, bandwidth=bandwidth)
        return soft(*inputs, gamma, bandwidth=bandwidth, kernel=kernel)

    def exact(*inputs):
        return function(*inputs, kernel="diagonal" if inputs[0].is_cuda else "cpu")

    def timed(run):
        run = common.captured(run) if device.type == "cuda" else run
        return common.time_calls(run, device, repeats=options.repeats, budget=options.budget)._asdict()

    row = dict(zip(SAME, (*shape, options.dtype, kind, gamma, percent, kernel), strict=True))
    row["cells"] = batch * common.cells_in_band(length, length, bandwidth)
    # Of paths that cost the same, hard DTW's gradient follows one, and rounding says which.
    row |= reference.largest_errors(function, exact, inputs, gamma or min(data_kinds.GAMMAS), gradients=gamma > 0)
    row["agrees"] = row["value_error"] <= VALUE_ERROR and row.get("gradient_error", 0) <= GRADIENT_ERROR
    if row["agrees"]:
        with torch.no_grad():
            row["forward"] = timed(lambda: function(*inputs))
        row["forward_backward"] = timed(common.with_gradients(function, *(z.requires_grad_() for z in inputs)))
    if not options.matrix and (formats := formats_of(*inputs, gamma, bandwidth, kernel)):
        row["formats"] = formats
    return row


def formats_of(x, y, gamma, bandwidth, kernel):
    """How many pairs each number format has taken, where there is more than one to take them."""
    if not x.is_cuda or gamma == 0 or bandwidth is not None:
        return None
    shape = dict(zip(("n", "m", "batch", "dim"), (x.shape[1], y.shape[1], len(x), x.shape[2]), strict=True))
    name = torchsoftdtw.select_kernel(
        **shape, dtype=x.dtype, device=x.device, gradient=True, kernel=kernel, specialization=True
    )
    is_shared = name in ("stencil/linear_domain", "stencil/integer_log2")
    return number_formats(x.detach(), y.detach(), gamma, kernel) if is_shared else None


def shape_of(row):
    return "{batch}x{length}x{dim}".format(**row) + ("" if row["dtype"] == "float32" else f" {row['dtype']}")


def show(rows):
    header = (
        "shape",
        "kind",
        "gamma",
        "band %",
        "kernel",
        "forward",
        "forward + backward",
        "value error",
        "gradient error",
    )
    lines = []
    for row in rows:
        times = [common.format_seconds(row[figure]["median"]) if row["agrees"] else "WRONG" for figure in FIGURES]
        errors = [f"{row[name]:.2g}" if name in row else "-" for name in ("value_error", "gradient_error")]
        lines.append(
            (shape_of(row), row["kind"], row["gamma"] or "hard", row["band_percent"], row["kernel"], *times, *errors)
        )
    return common.markdown_table(header, lines)


def compare(rows, others, same=SAME):
    """Two tables: how many times as fast each row is as that of `others` which is the same, and what that comes to for a
    shape."""
    known = {tuple(other[name] for name in same): other for other in others if other["agrees"]}
    ratios, lines = {}, []
    for row in rows:
        other = known.get(tuple(row[name] for name in same))
        if other is None or not row["agrees"]:
            continue
        times = [other[figure]["median"] / row[figure]["median"] for figure in FIGURES]
        for group in ((shape_of(row), row["kernel"]), ("all", row["kernel"])):
            ratios.setdefault(group, []).append(times)
        lines.append(
            (shape_of(row), row["kind"], row["gamma"] or "hard", row["band_percent"], row["kernel"], *rounded(times))
        )
    if not lines:
        raise ValueError("the records have no row in common")
    verdicts = []
    for group, pairs in sorted(ratios.items(), key=lambda item: item[0][0] == "all"):  # as they came, and all at the end
        columns = list(zip(*pairs, strict=True))
        means, least = [statistics.geometric_mean(column) for column in columns], [min(column) for column in columns]
        pays = ["yes" if mean >= WORTH and worst >= WORST else "no" for mean, worst in zip(means, least, strict=True)]
        for figure, *cells in zip(FIGURES, rounded(means), rounded(least), pays, strict=True):
            verdicts.append((*group, figure.replace("_", " + "), len(pairs), *cells))
    header = ("shape", "kind", "gamma", "band %", "kernel", "forward", "forward + backward")
    of_all = ("shape", "kernel", "pass", "rows", "geometric mean", "least", f"at least {WORTH}, and {WORST} everywhere")
    return f"{common.markdown_table(header, lines)}\n\n{common.markdown_table(of_all, verdicts)}"


def rounded(ratios):
    return [f"{ratio:.2f}" for ratio in ratios]


def rows_of(path):
    return json.loads(pathlib.Path(path).read_text())["rows"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=common.parse_shape, nargs="+", help="such as 32x512x64")
    parser.add_argument("--kinds", nargs="+", default=data_kinds.KINDS, help="of data_kinds.py, real:NAME among them")
    parser.add_argument("--gammas", type=float, nargs="+", default=[*data_kinds.GAMMAS, 0.0], help="0: hard DTW")
    parser.add_argument("--bands", type=int, nargs="+", default=[100], help="percent of the length; 100: no band")
    parser.add_argument("--kernels", nargs="+", default=["auto"])
    parser.add_argument("--matrix", action="store_true", help="the costs are ready-made")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of calls a figure, three at least")
    parser.add_argument("--rows", metavar="RECORD", help="time nothing: the rows of this record")
    parser.add_argument("--against", metavar="RECORD", help="how many times as fast as this record's the rows are")
    parser.add_argument("--than", metavar="KERNEL", help="how many times as fast as this kernel the others are")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    return parser.parse_args()


def run(options):
    """The rows of all that was asked for, which are written down."""
    device = common.resolve_device(options.device)
    shapes = options.shapes or [common.parse_shape(text) for text in SHAPES[device.type]]
    problems = [
        (*problem, kernel)
        for problem in itertools.product(shapes, options.kinds, options.gammas, options.bands)
        for kernel in (options.kernels if problem[2] > 0 else ["hard"])
    ]
    rows = [measure(*problem, options, device) for problem in tqdm(problems, disable=None)]
    settings = {"repeats": options.repeats, "budget": options.budget, "matrix": options.matrix}
    print(f"record: {common.write_record('kinds', device, settings, rows, options.output, options.commit)}\n")
    return rows


def main():
    options = parse_arguments()
    rows = rows_of(options.rows) if options.rows else run(options)
    print(show(rows))
    if options.against:
        print(f"\nTimes as fast as {common.file_name(options.against)}:\n\n{compare(rows, rows_of(options.against))}")
    if options.than:
        of_others = [row for row in rows if row["kernel"] != options.than]
        of_kernel = [row for row in rows if row["kernel"] == options.than]
        print(f"\nTimes as fast as {options.than}:\n\n{compare(of_others, of_kernel, SAME[:-1])}")
    sys.exit(not all(row["agrees"] for row in rows))


if __name__ == "__main__":
    main()
