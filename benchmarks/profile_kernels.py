"""What Nsight Compute says of every kernel, one launch each: registers, occupancy, issue, hit rates, traffic.

    python benchmarks/profile_kernels.py --output h200_profile.json

starts `ncu` on itself and writes a record of a row a launch. Caches are empty when a launch begins; clocks are the
device's own.
"""

import argparse
import csv
import math
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

import common
import data_kinds
import torch

import torchsoftdtw

METRICS = {  # the name in a record: Nsight Compute's
    "nanoseconds": "gpu__time_duration.sum",
    "registers": "launch__registers_per_thread",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "most_occupancy_percent": "sm__maximum_warps_per_active_cycle_pct",
    "issue_percent": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "busy_percent": "sm__instruction_throughput.avg.pct_of_peak_sustained_active",
    "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "dram_percent": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_bytes": "dram__bytes.sum",
    "instructions": "smsp__inst_executed.sum",
}
MARK = "spin_kernel"  # of torch.cuda._sleep, which begins a job
OWN = r"softdtw::(?:<unnamed>::|\(anonymous namespace\)::|_GLOBAL__N__\w+::)*(\w+)"


class Job(NamedTuple):
    kernel: str
    batch: int
    length: int
    dim: int = 1
    gamma: float = 1.0
    cost: str = "sqeuclidean"  # or "matrix"; gamma 0 is hard DTW


JOBS = (
    Job("diagonal", 4096, 100),
    Job("diagonal", 256, 1024),
    Job("diagonal", 256, 1024, cost="matrix"),
    Job("stencil/linear_domain", 4096, 100),
    Job("stencil/linear_domain", 4096, 512),
    Job("stencil/integer_log2", 4096, 512, gamma=0.1),
    Job("stencil/extended_range", 4096, 100),
    Job("stencil/extended_range", 256, 1024),
    Job("stencil/extended_range", 256, 1024, cost="matrix"),
    Job("stencil/multivariate", 256, 512, 32),
    Job("tiled/bidirectional", 16, 2048),
    Job("tiled/few_dims", 64, 1024, 4),
    Job("tiled/multivariate", 32, 512, 64),
    Job("tiled/warp_specialised", 16, 2048),
    Job("tiled/extended_range", 16, 2048),
    Job("hard", 4096, 512, gamma=0.0),
    Job("hard", 16, 2048, gamma=0.0),
)


def call(job, device):
    """A function that runs a job forward and backward."""
    x, y = data_kinds.pairs("noise", job.batch, job.length, job.dim, torch.float32, device)
    leaves = [leaf.requires_grad_() for leaf in ([(x - y.mT).square()] if job.cost == "matrix" else [x, y])]
    if job.gamma == 0:
        return lambda: torch.autograd.grad(torchsoftdtw.dtw(*leaves).sum(), leaves)
    function = torchsoftdtw.soft_dtw_from_cost if job.cost == "matrix" else torchsoftdtw.soft_dtw
    return lambda: torch.autograd.grad(function(*leaves, job.gamma, kernel=job.kernel).sum(), leaves)


def run_jobs(jobs):
    """Each job once without, and once with the profiler's eyes on it."""
    device = common.resolve_device("cuda")
    for job in jobs:
        run = call(job, device)
        run()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        torch.cuda._sleep(1)
        run()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def profile(places, path):
    """Run the jobs of these places in JOBS under ncu, which writes its table to `path`."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(path)]
    command += ["--clock-control", "none", "--profile-from-start", "off", "--metrics", ",".join(METRICS.values())]
    command += ["--kernel-name-base", "demangled", "--kernel-name", f"regex:softdtw|{MARK}"]
    command += [sys.executable, __file__, "--inside", *map(str, places)]
    subprocess.run(command, check=True)


def rows_of(lines, jobs):
    """A row for each launch in a table of ncu: its job, and the metrics under a record's names."""
    table = list(csv.DictReader(line for line in lines if line.startswith('"')))
    rows, remaining, job = [], iter(jobs), None
    for launch in table:
        if not launch["ID"]:  # units
            continue
        if MARK in launch["Kernel Name"]:
            job = next(remaining)
            continue
        found = re.search(OWN, launch["Kernel Name"])
        row = {**job._asdict(), "launch": found[1] if found else launch["Kernel Name"]}
        row |= {"grid": launch["Grid Size"], "block": launch["Block Size"]}
        rows.append(row | {name: number(launch[metric]) for name, metric in METRICS.items()})
    if next(remaining, None) is not None:
        raise ValueError("ncu saw fewer jobs than there were")
    return rows


def number(text):
    """Of a cell of ncu; None where it has no figure."""
    try:
        figure = float(text.replace(",", ""))
    except ValueError:
        return None
    return figure if math.isfinite(figure) else None


def show(rows):
    header = ("kernel", "job", "launch", "registers", "occupancy", "issue", "L1 hits", "L2 hits", "DRAM", "us")
    keys = ("registers", "occupancy_percent", "issue_percent", "l1_hit_percent", "l2_hit_percent", "dram_percent")
    lines = []
    for row in rows:
        job = f"{row['batch']} x {row['length']} x {row['dim']}, gamma {row['gamma']:g}, {row['cost']}"
        figures = ["-" if row[key] is None else f"{row[key]:.0f}" for key in keys]
        lines.append((row["kernel"], job, row["launch"], *figures, f"{row['nanoseconds'] / 1e3:.1f}"))
    return common.markdown_table(header, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", help="places in the list; all of them by default")
    parser.add_argument("--inside", type=int, nargs="+", help=argparse.SUPPRESS)  # of ncu
    parser.add_argument("--table", default="ncu.csv", help="what ncu writes, or has written with --parse-only")
    parser.add_argument("--parse-only", action="store_true")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    if options.inside:
        run_jobs([JOBS[place] for place in options.inside])
        return
    places = options.jobs or range(len(JOBS))
    table = pathlib.Path(options.table)
    if not options.parse_only:
        profile(places, table)
    rows = rows_of(table.read_text().splitlines(), [JOBS[place] for place in places])
    print(show(rows))
    settings = {"data": "noise", "dtype": "float32", "metrics": METRICS, "ncu": "--clock-control none --cache-control all"}
    device = common.resolve_device("auto")
    print(f"\nrecord: {common.write_record('profile', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
