"""Time this package over a fixed table of shapes: the figures that docs/performance.md and the README give for a GPU.

A row: forward under no_grad, forward + backward for both gradients, each eagerly and in a captured CUDA graph, the peak
of memory above inputs and outputs, and the error against float64, which is checked before anything is timed.
"""

import argparse
from typing import NamedTuple

import bench_kernels
import common
import data_kinds
import reference
import torch
from tqdm import tqdm

import torchsoftdtw
from torchsoftdtw._kernels import selection

# batch x length x dim, or series x length x dim for all pairs of a set; then what differs from unit noise, float32,
# gamma 1, forward and backward.
JOBS = (
    "4096x512x1",
    "4096x100x1",
    "512x128x1",
    "32x512x64",
    "64x1024x8",
    "16x2048x1",
    "256x2048x1",
    "4096x512x4",
    "1024x512x8",
    "1x65536x1/forward",
    "200x96x1/pairs",
    "4096x512x1/float64",
    "4096x512x1/gamma=0.1",
    "4096x512x1/gamma=0.01",
    "4096x512x1/gamma=0.3",
    "4096x512x1/walks",
    "4096x512x1/sines",
    "4096x512x1/steps",
    "4096x512x1/smoothed",
    "4096x512x1/smoothed/gamma=0.3",
    "1024x1024x4/float64",
    "512x1024x4/float64",
)
LONG_JOBS = ("1x1048576x1/forward",)
OPTIONS = ("", "/band=5", "/band=10", "/penalty=0.5", "/euclidean", "/cityblock", "/huber", "/hard", "/hard/band=10")
UNIVARIATE_SHAPES = ("40000x96x1", "4096x512x1", "512x128x1", "128x1024x1", "16x2048x1")
VECTOR_SHAPES = ("40000x96x3", "4096x512x4", "256x200x3", "64x1024x8", "32x512x64", "32x512x256")
COST_SHAPES = ("2048x512x1", "128x1024x1", "16x2048x1", "4096x128x1", "128x128x1", "32x512x1")  # of ready-made costs
BANDS = ("/band=10", "/band=10/penalty=0.5", "/band=10/cityblock", "/band=10/huber")
OPTION_JOBS = (
    *(f"{shape}{option}" for shape in UNIVARIATE_SHAPES for option in OPTIONS),
    *(
        f"{shape}{kind}/gamma={gamma}/band=10"
        for shape in UNIVARIATE_SHAPES[:2]
        for kind in ("", "/walks", "/sines", "/steps")
        for gamma in data_kinds.GAMMAS
        if kind or gamma != 1
    ),
    *(f"{shape}{band}" for shape in UNIVARIATE_SHAPES[:3] for band in BANDS[1:]),
    *(f"2048x1024x1{band}" for band in ("", *BANDS, "/band=5", "/walks/band=10")),
    *(f"4096x512x1/float64{option}" for option in ("/band=10", "/penalty=0.5")),
    *("4096x512x1/band=40", "512x512x4/float64", "512x512x4/float64/band=10"),
    *(f"{shape}{option}" for shape in VECTOR_SHAPES for option in (*OPTIONS, "/cosine", "/walks", "/gamma=0.1")),
    *(
        f"{shape}/matrix{data}"
        for shape in COST_SHAPES
        for data in ("", "/walks", "/gamma=0.1", "/band=10", "/penalty=0.5")
    ),
    *("4096x512x8", "4096x200x2", "2048x256x4", "4096x128x8", "512x256x4"),
)
COSTS = ("sqeuclidean", "euclidean", "cityblock", "cosine", "huber", selection.MATRIX)
LONG_CELLS = 1 << 36  # from which three calls are enough
CHECKED_LENGTH = 1 << 16  # of a pair whose value is compared: of a longer one its beginning
VALUE_ERROR, GRADIENT_ERROR = 1e-5, 1e-3  # that a row may have,
STEP_ERROR = 1.5e-7  # and of a value for every step of n + m, in gammas: what docs/gamma.md promises


class Job(NamedTuple):
    text: str
    batch: int
    length: int
    dim: int
    dtype: str = "float32"
    gamma: float = 1.0
    backward: bool = True
    kind: str = "noise"
    pairs: bool = False  # all pairs of `batch` series
    band: int = 100  # its radius in percent of the length; 100: no band
    penalty: float = 0.0  # the warp penalty
    cost: str = "sqeuclidean"

    @property
    def count(self):
        return self.batch**2 if self.pairs else self.batch

    @property
    def bandwidth(self):
        return None if self.band >= 100 else self.length * self.band // 100

    @property
    def cells(self):
        return self.count * common.cells_in_band(self.length, self.length, self.bandwidth)

    @property
    def is_hard(self):
        return self.gamma == 0

    @property
    def options(self):
        return {"bandwidth": self.bandwidth, "warp_penalty": self.penalty, "cost": self.cost}


def parse_job(text):
    shape, *extras = text.split("/")
    try:
        job = Job(text, *map(int, shape.split("x")))
        for extra in extras:
            if extra.startswith("gamma="):
                job = job._replace(gamma=float(extra.removeprefix("gamma=")))
            elif extra in ("float32", "float64"):
                job = job._replace(dtype=extra)
            elif extra in data_kinds.KINDS:
                job = job._replace(kind=extra)
            elif extra.startswith("band="):
                job = job._replace(band=int(extra.removeprefix("band=")))
            elif extra.startswith("penalty="):
                job = job._replace(penalty=float(extra.removeprefix("penalty=")))
            elif extra in COSTS:
                job = job._replace(cost=extra)
            elif extra == "hard":
                job = job._replace(gamma=0.0)
            elif extra == "forward":
                job = job._replace(backward=False)
            elif extra == "pairs":
                job = job._replace(pairs=True, backward=False)
            else:
                raise ValueError
    except (TypeError, ValueError):
        parts = "[/forward][/pairs][/float64][/gamma=G][/hard][/band=PERCENT][/penalty=P][/COST][/KIND]"
        message = f"expected BATCHxLENGTHxDIM{parts}, got {text!r}"
        raise argparse.ArgumentTypeError(message) from None
    return job


def series_of(job, device):
    """x and y (count, length, dim), and the set that their pairs come from, if they are all pairs of a set."""
    dtype = common.DTYPES[job.dtype]
    x, y = data_kinds.pairs(job.kind, job.batch, job.length, job.dim, dtype, device)
    if not job.pairs:
        return x, y, None
    return x.repeat_interleave(job.batch, 0), x.repeat(job.batch, 1, 1), x


def call_of(job, x, y):
    """What the job calls, function(*inputs, kernel="auto"), and its inputs: x and y, or ready-made costs."""
    if job.cost != selection.MATRIX:
        return lambda x, y, **options: torchsoftdtw.soft_dtw(x, y, job.gamma, **job.options, **options), (x, y)
    options = {"bandwidth": job.bandwidth, "warp_penalty": job.penalty}
    costs = data_kinds.squared_distances(x, y)
    return lambda costs, **kernel: torchsoftdtw.soft_dtw_from_cost(costs, job.gamma, **options, **kernel), (costs,)


def errors(job, function, inputs):
    """What a row says of its error, against the plainest kernel in float64. AssertionError where one is too large."""
    plain = "diagonal" if inputs[0].is_cuda else "cpu"
    length = min(job.length, CHECKED_LENGTH)

    def exact(*inputs):
        return function(*inputs, kernel="auto" if job.is_hard else plain)

    found = {"checked_length": length}
    # Of paths that cost the same, hard DTW's gradient follows one, and rounding says which.
    gradients = job.backward and not job.is_hard
    unit = job.gamma or min(data_kinds.GAMMAS)
    cut = (slice(None), slice(length)) if len(inputs) == 2 else (slice(None), slice(length), slice(length))
    found |= reference.largest_errors(function, exact, [z[cut] for z in inputs], unit, gradients)
    assert_small(job.text, found, length)
    return found


def assert_small(name, found, length):
    """AssertionError where an error that reference.largest_errors found is too large."""
    value_error = VALUE_ERROR + STEP_ERROR * 2 * length
    for what, most in (("value_error", value_error), ("gradient_error", GRADIENT_ERROR)):
        if not found.get(what, 0) <= most:  # NaN fails too
            raise AssertionError(f"{name}: {what} is {found[what]:.3g}, more than {most:g}")


def memory(run, outputs, cells, device):
    """Peak bytes of a call above inputs and outputs, and the same per cell."""
    peak = common.peak_bytes(run, device)
    if peak is None:
        return None, None
    peak = max(0, peak - sum(size * count for size, count in outputs))
    return peak, peak / cells


def measure(job, options, device):
    x, y, series = series_of(job, device)
    timing = {"device": device, "repeats": options.repeats}
    if job.cells >= LONG_CELLS:
        timing = {"device": device, "warmup": 1, "repeats": 3}

    soft_dtw, inputs = call_of(job, x, y)

    def forward():
        with torch.no_grad():
            return soft_dtw(*inputs)

    def timed(run):
        return common.time_calls(run, **timing)._asdict()

    def timed_in_graph(run):
        return timed(common.captured(run)) if device.type == "cuda" and job.cells < LONG_CELLS else None

    sizes = (job.count, job.length, job.length, job.dim)
    if job.is_hard:
        plan = of_values = selection.Plan("dtw", 0)
    else:
        plan, of_values = (
            common.chosen_plan(sizes, x.dtype, x.device, gradient, **job.options) for gradient in (job.backward, False)
        )
    row = {"job": job.text, **job._asdict(), "cells": job.cells, **plan._asdict()}
    row |= {f"forward_{name}": choice for name, choice in of_values._asdict().items()}
    del row["text"]
    row |= errors(job, soft_dtw, inputs)
    values, gradients = (x.element_size(), job.count), (x.element_size(), sum(z.numel() for z in inputs))
    row["forward"] = timed(forward)
    row["forward_peak_bytes"], row["forward_bytes_per_cell"] = memory(forward, [values], job.cells, device)
    row["forward_graph"] = timed_in_graph(forward)
    if job.backward:
        both = common.with_gradients(soft_dtw, *(z.requires_grad_() for z in inputs))
        row["forward_backward"] = timed(both)
        row["peak_bytes"], row["bytes_per_cell"] = memory(both, [values, gradients], job.cells, device)
        row["forward_backward_graph"] = timed_in_graph(both)
    if job.pairs:
        with torch.no_grad():
            row["forward_with_gather"] = timed(lambda: bench_kernels.all_pairs(series, soft_dtw))
    return row


def show(rows):
    header = (
        "shape",
        "kernel",
        "forward",
        "in a graph",
        "cells/s",
        "forward + backward",
        "in a graph",
        "cells/s",
        "peak memory",
        "bytes/cell",
        "value error",
        "gradient error",
    )
    return common.markdown_table(header, [cells_of(row) for row in rows])


def cells_of(row):
    def seconds(key):
        return common.format_seconds(row[key]["median"]) if row.get(key) else "-"

    def speed(*keys):
        medians = [row[key]["median"] for key in keys if row.get(key)]
        return f"{row['cells'] / min(medians):.3g}" if medians else "-"

    def number(key):
        return f"{row[key]:.2g}" if row.get(key) is not None else "-"

    gather = f" ({seconds('forward_with_gather')} with gather)" if row["pairs"] else ""
    what = "" if row["backward"] else "forward_"
    return (
        row["job"],
        " and ".join(dict.fromkeys(f"{row[f'{p}kernel']}/{row[f'{p}rows_per_thread']}" for p in ("forward_", ""))),
        seconds("forward") + gather,
        seconds("forward_graph"),
        speed("forward", "forward_graph"),
        seconds("forward_backward"),
        seconds("forward_backward_graph"),
        speed("forward_backward", "forward_backward_graph"),
        common.format_bytes(row[f"{what}peak_bytes"]),
        number(f"{what}bytes_per_cell"),
        number("value_error"),
        number("gradient_error"),
    )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=parse_job, nargs="+", help="such as 64x300x2 or 64x300x2/float64/gamma=0.1")
    parser.add_argument("--long", action="store_true", help=f"also {', '.join(LONG_JOBS)}")
    parser.add_argument("--options", action="store_true", help="bands, penalties, costs, hard DTW and vectors as well")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    return parser.parse_args()


def main():
    options = parse_arguments()
    device = common.resolve_device(options.device)
    jobs = options.jobs or [parse_job(text) for text in (OPTION_JOBS if options.options else JOBS)]
    if options.long:
        jobs += [parse_job(text) for text in LONG_JOBS]
    rows = []
    with tqdm(jobs) as progress:
        for job in progress:
            progress.set_description(job.text)
            rows.append(measure(job, options, device))
    print(f"{common.describe_device(device)['name']}; unit noise, float32, gamma 1 unless the shape says otherwise\n")
    print(show(rows))
    settings = {"repeats": options.repeats}
    print(f"\nrecord: {common.write_record('shapes', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
