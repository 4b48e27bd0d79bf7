"""What the benchmarks share: inputs, timing, peak memory, tables and records."""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import time
from typing import NamedTuple

import numpy as np
import torch

import torchsoftdtw
from torchsoftdtw._kernels import selection

RESULTS = pathlib.Path(__file__).parent / "results"
DTYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16}
KERNELS = {"cpu": ("cpu",), "cuda": ("diagonal", "stencil", "tiled")}
OPERATIONS_PER_CELL = 18  # the count that the classic soft-DTW kernel study uses


class Timing(NamedTuple):
    """Seconds per call: the median and the spread of `calls` timed calls."""

    median: float
    fastest: float
    slowest: float
    calls: int


def resolve_device(name):
    """The device of a --device argument, "auto" being CUDA where there is any; a CUDA device becomes current."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
        device = torch.device("cuda", torch.cuda.current_device())
    return device


def set_threads(count):
    """The same number for PyTorch and numba, whose threads other packages use on the CPU."""
    torch.set_num_threads(count)
    try:
        import numba
    except ImportError:
        return
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def parse_shape(text):
    """(batch, length, dim) of an argument such as 32x512x64."""
    try:
        batch, length, dim = map(int, text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected BATCHxLENGTHxDIM, got {text!r}") from None
    return batch, length, dim


def chosen_plan(sizes, dtype, device, gradient, *, bandwidth=None, warp_penalty=0.0, cost="sqeuclidean"):
    """The Plan of a call with kernel="auto"; sizes: batch, n, m and dim."""
    if device.type == "cpu":
        return selection.Plan("cpu", 0)
    options = (bandwidth is not None, warp_penalty != 0, False)
    radius = -1 if bandwidth is None else bandwidth
    return selection.choose("auto", sizes, dtype, device, gradient, cost, options, radius)


def read_ucr(path):
    """Labels and series (P, N) of a UCR text file: one series a line, label first, split by commas, tabs or spaces."""
    rows = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), start=1):
        fields = line.replace(",", " ").split()
        if not fields:
            continue
        try:
            rows.append([float(field) for field in fields])
        except ValueError:
            raise ValueError(f"{path}: line {number} holds something that is not a number") from None
    if not rows:
        raise ValueError(f"{path}: no series")
    widths = {len(row) for row in rows}
    if len(widths) > 1 or min(widths) < 2:
        raise ValueError(f"{path}: expected a label and series of one length, got lines of {sorted(widths)} fields")
    table = np.array(rows)
    if not np.isfinite(table).all():
        raise ValueError(f"{path}: a value is missing or not finite")
    return table[:, 0], table[:, 1:]


def file_name(path):
    """What a record says of a file: not where it lies."""
    return pathlib.Path(path).name


def cells_in_band(n, m, bandwidth=None):
    """How many cells of an n x m table lie in a Sakoe-Chiba band of that radius (None: all of them)."""
    if bandwidth is None:
        return n * m
    rows = np.arange(n)
    first = np.maximum(rows + min(0, m - n) - bandwidth, 0)
    last = np.minimum(rows + max(0, m - n) + bandwidth, m - 1)
    return int(np.maximum(last - first + 1, 0).sum())


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_calls(function, device, warmup=3, repeats=20, budget=None):
    """Time `function`, which must not synchronise, call by call: CUDA events on a GPU, the wall clock on the CPU.

    With a budget in seconds, as many of the `repeats` calls are made as fit in it, but at least three. Each call of the
    warm-up is waited for; it ends early once it has used up the budget.
    """
    begin = time.perf_counter()
    for _ in range(max(1, warmup)):
        start = time.perf_counter()
        function()
        synchronize(device)
        now = time.perf_counter()
        if budget is not None and now - begin > budget:
            break
    if budget is not None:
        repeats = min(repeats, max(3, int(budget / max(now - start, 1e-7))))
    if device.type == "cuda":
        with torch.cuda.device(device):
            seconds = _event_seconds(function, repeats)
    else:
        seconds = _clock_seconds(function, repeats)
    return Timing(statistics.median(seconds), min(seconds), max(seconds), repeats)


def _event_seconds(function, repeats):
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for start, end in events:
        start.record()
        function()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e-3 for start, end in events]


def _clock_seconds(function, repeats):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return seconds


def pooled(timings):
    """One Timing of several of the same thing, taken at different times: the median of their medians, the whole spread."""
    medians, fastest, slowest, calls = zip(*timings, strict=True)
    return Timing(statistics.median(medians), min(fastest), max(slowest), sum(calls))


def captured(run):
    """`run` as a replay of a captured CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def peak_bytes(function, device):
    """Device memory that one call of `function` takes above what was held before it; None on the CPU.

    PyTorch's allocator counts its own blocks. Memory that another allocator (numba's) still holds after the call is the
    fall of the device's free memory that PyTorch's reserved blocks do not explain. Call `function` once beforehand, so
    that contexts and compiled modules are loaded.
    """
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    held, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    free = torch.cuda.mem_get_info(device)[0]
    torch.cuda.reset_peak_memory_stats(device)
    result = function()
    torch.cuda.synchronize(device)
    foreign = (free - torch.cuda.mem_get_info(device)[0]) - (torch.cuda.memory_reserved(device) - reserved)
    del result
    return torch.cuda.max_memory_allocated(device) - held + max(foreign, 0)


def with_gradients(function, *inputs):
    """A call that runs function(*inputs) and the gradients of its sum to each of them: it returns values and these."""

    def run():
        value = function(*inputs)
        return value, *torch.autograd.grad(value.sum(), inputs)

    return run


def describe_device(device):
    """What a record says of the device."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return {
            "type": "cuda",
            "name": properties.name,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
        }
    return {
        "type": "cpu",
        "name": _cpu_name(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def describe_versions(commit=None):
    """What a record says of the software; the commit is None outside a git checkout, unless it is given."""
    return {
        "torchsoftdtw": torchsoftdtw.__version__,
        "commit": commit or _commit(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
    }


def installed_version(distribution):
    """The version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit():
    folder = pathlib.Path(__file__).parent
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], cwd=folder, capture_output=True, text=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit} with changes" if changes else commit


def write_record(benchmark, device, settings, rows, output=None, commit=None, **extra):
    """Write a JSON record to `output`, by default into benchmarks/results, and return its path.

    `commit` is what the record names where there is no git to ask, as on a machine that got the files alone.
    """
    description = describe_device(device)
    if output is None:
        slug = re.sub("[^a-z0-9]+", "-", description["name"].lower()).strip("-")
        output = RESULTS / f"{benchmark}_{slug}.json"
    record = {
        "benchmark": benchmark,
        "recorded": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "device": description,
        "versions": describe_versions(commit),
        "settings": settings,
        **extra,
        "rows": rows,
    }
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(record, indent=1) + "\n")
    return output


def markdown_table(header, rows):
    """A markdown table whose columns line up; cells that are not strings are shown by str()."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]

    def line(row):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

    lines = [line(row) for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def format_seconds(seconds):
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def format_bytes(count):
    return "-" if count is None else f"{count / 2**20:.1f} MiB"
