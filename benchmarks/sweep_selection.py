"""Time every kernel variant over a grid of shapes: what the thresholds of csrc/cuda/select are chosen from.

A variant is a kernel and the rows that one of its threads holds. For each shape the table shows the fastest variant,
the one that kernel="auto" takes, and how much longer that one needs.
"""

import argparse
import contextlib
import itertools
import json
from pathlib import Path

import common
import data_kinds
import reference
import torch
from tqdm import tqdm

import torchsoftdtw
from torchsoftdtw._inputs import repeats
from torchsoftdtw._kernels import selection

ROWS_PER_THREAD = (2, 4)
FIGURES = ("forward", "forward_backward")
MOST_CELLS = 1 << 32  # of a shape: beyond it a sweep takes too long
MOST_DIAGONAL_CELLS = 1 << 30  # beyond which the plain kernel is neither fast nor small


def variants(device, cells, kernels=None):
    if kernels:
        return [selection.Plan(name, 0) for name in kernels]
    if device.type == "cpu":
        return [selection.Plan("cpu", 0)]
    plans = [selection.Plan(kernel, rows) for kernel in ("stencil", "tiled") for rows in ROWS_PER_THREAD]
    return plans + [selection.Plan("diagonal", 0)] * (cells <= MOST_DIAGONAL_CELLS)


@contextlib.contextmanager
def forced(plan):
    """Within it, every call of the package runs `plan`, as if none had been made before."""
    plan_for, known = selection.plan, repeats.known
    selection.plan, repeats.known = lambda *arguments: plan, {}
    try:
        yield
    finally:
        selection.plan, repeats.known = plan_for, known


def name_of(plan, kernels=None):
    """With `kernels`, which of them: its specialisation is named, or what has it."""
    kernel = plan.kernel.partition("/")[0]
    if kernels:
        return plan.kernel if plan.kernel in kernels else kernel
    return kernel if plan.rows_per_thread == 0 else f"{kernel}/{plan.rows_per_thread}"


def measure(batch, length, dim, dtype, device, options):
    """A shape's row: its variants' times, checked against each other, and the automatic choice."""
    x, y = data_kinds.pairs(options.kind, batch, length, dim, common.DTYPES[dtype], device)
    x.requires_grad_()
    y.requires_grad_()

    radius = None if options.band is None else max(1, length * options.band // 100)

    def soft_dtw(x, y):
        return torchsoftdtw.soft_dtw(x, y, options.gamma, bandwidth=radius)

    both = common.with_gradients(soft_dtw, x, y)
    captured = common.captured if options.graphs else lambda run: run
    expected, times = None, {}
    for plan in variants(device, batch * length * length, options.kernels):
        name = name_of(plan, options.kernels)
        with forced(plan):
            try:
                got = [z.detach() for z in both()]  # a graph that is kept would hinder capturing another
            except (RuntimeError, ValueError) as error:  # rows that this dtype has not, memory
                if "CUDA error" in str(error):
                    raise
                continue
            if expected is None:
                expected = got
            reference.assert_close(name, got, expected, x, y, options.gamma)
            del got
            timing = {"device": device, "warmup": 2, "repeats": options.repeats, "budget": options.budget}
            with torch.no_grad():
                forward = common.time_calls(captured(lambda: soft_dtw(x, y)), **timing)
            training = common.time_calls(captured(both), **timing)
            peak = common.peak_bytes(both, device)
        times[name] = {
            "forward": forward._asdict(),
            "forward_backward": training._asdict(),
            "peak_bytes": peak,
        }
    row = {"batch": batch, "length": length, "dim": dim, "dtype": dtype, "bandwidth": radius, "variants": times}
    return with_choice(row, device, options.kernels)


def with_choice(row, device, kernels=None):
    """The row with the automatic choice, and with what that loses."""
    sizes, dtype = (row["batch"], row["length"], row["length"], row["dim"]), common.DTYPES[row["dtype"]]

    def choice(what):
        plan = common.chosen_plan(sizes, dtype, device, what == "forward_backward", bandwidth=row.get("bandwidth"))
        return name_of(plan, kernels)

    auto = {what: choice(what) for what in FIGURES}
    row = row | {"auto": auto}
    return row | {"loss": {what: loss(row, what) for what in FIGURES}} if row["variants"] else row


def loss(row, what):
    """How much longer the automatic choice takes than the best one, as a fraction; None where it did not run."""
    own = row["variants"].get(row["auto"][what])
    return None if own is None else own[what]["median"] / row["variants"][best_of(row, what)][what]["median"] - 1


def best_of(row, what):
    return min(row["variants"], key=lambda name: row["variants"][name][what]["median"])


def show(rows):
    lines = []
    for row in rows:
        cells = [row["length"], row["batch"], row["dim"], row["dtype"]]
        for what in FIGURES:
            best, lost = best_of(row, what), row["loss"][what]
            fastest = common.format_seconds(row["variants"][best][what]["median"])
            own = "not measured" if lost is None else f"+{100 * lost:.0f} %"
            cells += [f"{best} {fastest}", f"{row['auto'][what]} {own}"]
        lines.append(cells)
    return common.markdown_table(
        ("length", "batch", "dim", "dtype", "best forward", "auto", "best forward + backward", "auto"), lines
    )


def summary(rows):
    """A line a figure: how much the automatic choice loses on average, and where it loses most."""
    lines = []
    for what in FIGURES:
        known = [row for row in rows if row["loss"][what] is not None]
        if known:
            worst = max(known, key=lambda row: row["loss"][what])
            mean = sum(row["loss"][what] for row in known) / len(known)
            shape = f"{worst['batch']} x {worst['length']} x {worst['dim']} in {worst['dtype']}"
            took = f"{worst['auto'][what]} for {best_of(worst, what)}"
            most = f"{100 * worst['loss'][what]:.0f} % at most, at {shape}: {took}"
            lines.append(f"{what}: auto loses {100 * mean:.1f} % on average, {most}")
    return "\n".join(lines)


def plot(rows, path):
    """Cells per second, forward + backward, over length: a panel a batch, a line a variant, rings the auto choice."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    dims_and_dtypes = sorted({(row["dim"], row["dtype"]) for row in rows})
    batches = sorted({row["batch"] for row in rows})
    names = sorted({name for row in rows for name in row["variants"]})
    size = (3.4 * len(batches), 3 * len(dims_and_dtypes))
    figure, axes = plt.subplots(
        len(dims_and_dtypes), len(batches), figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for (line, (dim, dtype)), (column, batch) in itertools.product(enumerate(dims_and_dtypes), enumerate(batches)):
        axis = axes[line, column]
        shapes = [row for row in rows if (row["dim"], row["dtype"], row["batch"]) == (dim, dtype, batch)]
        for name in names:
            points = [(row["length"], speed(row, name)) for row in shapes if name in row["variants"]]
            axis.plot(*zip(*points, strict=True) if points else ([], []), marker=".", label=name)
        autos = [(row, row["auto"]["forward_backward"]) for row in shapes]
        chosen = [(row["length"], speed(row, auto)) for row, auto in autos if auto in row["variants"]]
        if chosen:
            ring = {"s": 70, "facecolors": "none", "edgecolors": "black", "zorder": 3}
            axis.scatter(*zip(*chosen, strict=True), label="auto", **ring)
        axis.set(xscale="log", yscale="log", title=f"batch {batch}, dim {dim}, {dtype}")
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("length")
    figure.supylabel("cells per second, forward + backward", fontsize=10)
    figure.savefig(path, dpi=100)


def speed(row, name):
    return row["batch"] * row["length"] ** 2 / row["variants"][name]["forward_backward"]["median"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256, 512, 1024, 2048, 4096])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256, 512, 1024, 4096])
    parser.add_argument("--dims", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--dtypes", choices=("float32", "float64"), nargs="+", default=["float32", "float64"])
    parser.add_argument("--most-cells", type=int, default=MOST_CELLS, help="shapes with more cells are left out")
    parser.add_argument("--kernels", nargs="+", help="by name, such as tiled and stencil/banded, instead of rows of a lane")
    parser.add_argument("--band", type=int, help="its radius in percent of the length")
    parser.add_argument("--graphs", action="store_true", help="time calls in captured graphs")
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--kind", choices=data_kinds.KINDS, default="noise", help="of data")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of calls a figure, three at least")
    parser.add_argument("--plot", metavar="PNG", help="draw the sweep")
    parser.add_argument(
        "--choose-again", metavar="RECORD", help="time nothing: in a record, replace the choice by that of today's policy"
    )
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    return parser.parse_args()


def choose_again(options):
    path = Path(options.choose_again)
    record = json.loads(path.read_text())
    device, kernels = torch.device(record["device"]["type"]), record["settings"].get("kernels")
    record["rows"] = [with_choice(row, device, kernels) for row in record["rows"]]
    record["versions"]["policy_of_commit"] = common.describe_versions(options.commit)["commit"]
    print(f"{show(record['rows'])}\n\n{summary(record['rows'])}")
    Path(options.output or path).write_text(json.dumps(record, indent=1) + "\n")
    if options.plot:
        plot(record["rows"], options.plot)


def main():
    options = parse_arguments()
    if options.choose_again:
        return choose_again(options)
    device = common.resolve_device(options.device)
    axes = (options.batches, options.lengths, options.dims, options.dtypes)
    grid = [shape for shape in itertools.product(*axes) if shape[0] * shape[1] ** 2 <= options.most_cells]
    rows = [measure(*shape, device, options) for shape in tqdm(grid, desc="shapes")]
    rows = [row for row in rows if row["variants"]]
    print(f"gamma {options.gamma:g}, {common.describe_device(device)['name']}\n")
    print(show(rows))
    print(f"\n{summary(rows)}")
    settings = {"data": options.kind, "gamma": options.gamma, "band": options.band}
    settings |= {"kernels": options.kernels, "graphs": options.graphs}
    print(f"\nrecord: {common.write_record('selection', device, settings, rows, options.output, options.commit)}")
    if options.plot:
        plot(rows, options.plot)
        print(f"drawn in {options.plot}")


if __name__ == "__main__":
    main()
