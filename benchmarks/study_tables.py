"""The tables and the chart of docs/kernel-study.md, from the records of bench_study.py, profile_kernels.py and
bench_prefix_scan.py.

    python benchmarks/study_tables.py            prints every table
    python benchmarks/study_tables.py --write    puts them, and the chart, where the page has its marks

A mark is `<!-- NAME -->`, and a table ends at the next empty line.
"""

import argparse
import json
import pathlib
import re

import common

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "kernel-study.md"
CHART = PAGE.with_suffix(".png")
RECORDS = {name: common.RESULTS / f"h200_{name}.json" for name in ("study", "profile", "prefix_scan")}
FIGURES = ("forward", "forward_backward")
KERNELS = common.KERNELS["cuda"]
LEAST_SHARE = 0.05  # of a job's time that a launch takes to be in the table


def rows_of(name, **of):
    return [row for row in json.loads(RECORDS[name].read_text())["rows"] if all(row[key] == of[key] for key in of)]


def rate(row, figure="forward"):
    """10^9 cells a second."""
    return row["cells"] / row[figure]["median"] * 1e-9


def short(number):
    return f"{number:.1f}" if number < 100 else f"{number:.0f}"


def by_kernel(rows, figure, cell):
    """A cell for each kernel; a dash where it was not measured."""
    found = {row["kernel"]: cell(row, figure) for row in rows}
    return [found.get(kernel, "-") for kernel in KERNELS]


def over(part, key, name, cell, **of):
    """A table of all kernels, forward and with gradients, over what `key` names."""
    header = [name, *KERNELS, *(f"{kernel}, gradients" for kernel in KERNELS)]
    rows = rows_of("study", part=part, **of)
    lines = []
    for value in dict.fromkeys(row[key] for row in rows):
        some = [row for row in rows if row[key] == value]
        lines.append([f"{value:,}", *(text for figure in FIGURES for text in by_kernel(some, figure, cell))])
    return common.markdown_table(header, lines)


def rates(row, figure):
    return short(rate(row, figure))


def seconds(row, figure):
    return common.format_seconds(row[figure]["median"])


def banded(length):
    return over("bands", "band_percent", "band, % of the length", seconds, length=length)


def costs():
    """A line a kernel: what it takes from series, from a ready-made matrix, and with the making of one."""
    rows = rows_of("study", part="costs")
    sources = list(dict.fromkeys(row["source"] for row in rows))
    header = [
        "pairs x length",
        "kernel",
        *sources,
        *(f"{source}, gradients" for source in sources),
        "memory",
        "with a matrix",
    ]
    lines = []
    for batch, length, kernel in dict.fromkeys((row["batch"], row["length"], row["kernel"]) for row in rows):
        own = {
            row["source"]: row for row in rows if (row["batch"], row["length"], row["kernel"]) == (batch, length, kernel)
        }
        times = [seconds(own[source], figure) for figure in FIGURES for source in sources]
        memory = [common.format_bytes(own[source]["forward_backward_peak_bytes"]) for source in (sources[0], sources[-1])]
        lines.append([f"{batch:,} x {length:,}", kernel, *times, *memory])
    return common.markdown_table(header, lines)


def profile():
    header = ("kernel", "pairs x length x dim", "launch", "registers", "occupancy", "issue", "L1 hits", "L2 hits", "DRAM")
    keys = ("occupancy_percent", "issue_percent", "l1_hit_percent", "l2_hit_percent", "dram_percent")
    rows, lines = rows_of("profile"), []
    for row in rows:
        job = [other for other in rows if all(other[k] == row[k] for k in ("kernel", "batch", "length", "dim", "cost"))]
        if row["nanoseconds"] < LEAST_SHARE * sum(other["nanoseconds"] for other in job):
            continue
        shape = f"{row['batch']} x {row['length']} x {row['dim']}" + (", matrix" if row["cost"] == "matrix" else "")
        figures = ["-" if row[key] is None else f"{row[key]:.0f} %" for key in keys]
        lines.append((row["kernel"], shape, row["launch"], f"{row['registers']:.0f}", *figures))
    return common.markdown_table(header, lines)


def prefix_scan():
    """Of each algorithm the width that is fastest."""
    best = {}
    for row in rows_of("prefix_scan"):
        key = (row["batch"], row["length"], row["gamma"], row["algorithm"])
        if key not in best or row["forward"]["median"] < best[key]["forward"]["median"]:
            best[key] = row
    algorithms = list(dict.fromkeys(key[3] for key in best))
    lines = []
    for batch, length, gamma in dict.fromkeys(key[:3] for key in best):
        found = [best.get((batch, length, gamma, algorithm)) for algorithm in algorithms]
        what = "soft, gamma 1" if gamma else "hard"
        lines.append([f"{batch} x {length:,}", what, *(seconds(row, "forward") if row else "-" for row in found)])
    return common.markdown_table(("pairs x length", "DTW", *algorithms), lines)


TABLES = {
    "counts-100": lambda: over("counts", "batch", "pairs", rates, length=100),
    "counts-1024": lambda: over("counts", "batch", "pairs", rates, length=1024),
    "bands-100": lambda: banded(100),
    "bands-1024": lambda: banded(1024),
    "long": lambda: over("long", "length", "length", seconds),
    "costs": costs,
    "profile": profile,
    "prefix-scan": prefix_scan,
}


def filled(page):
    """The text of a page with the table of each mark behind it."""

    def table(mark):
        return f"{mark[1]}\n{TABLES[mark[2]]()}\n"

    return re.sub(r"^(<!-- ([\w-]+) -->)\n(?:\|.*\n)*", table, page, flags=re.MULTILINE)


def plot(path):
    """Cells per second over the number of pairs, a panel a length, and over the length of one pair."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = {
        "pairs of length 100": (rows_of("study", part="counts", length=100), "batch"),
        "pairs of length 1024": (rows_of("study", part="counts", length=1024), "batch"),
        "length of one pair": (rows_of("study", part="long"), "length"),
    }
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 3.8), sharey=True, layout="constrained")
    for axis, (name, (rows, key)) in zip(axes, panels.items(), strict=True):
        for color, kernel in enumerate(KERNELS):
            own = [row for row in rows if row["kernel"] == kernel]
            for what, line in zip(FIGURES, ("-", "--"), strict=True):
                label = kernel if what == "forward" else f"{kernel}, with gradients"
                points = [row[key] for row in own], [rate(row, what) for row in own]
                axis.loglog(*points, line, color=f"C{color}", marker=".", label=label)
        axis.set_xlabel(name)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("10⁹ cells a second")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into the page, and the chart beside it")
    if parser.parse_args().write:
        PAGE.write_text(filled(PAGE.read_text()))
        plot(CHART)
        return
    for name, table in TABLES.items():
        print(f"{name}\n\n{table()}\n")


if __name__ == "__main__":
    main()
