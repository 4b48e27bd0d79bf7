"""Draw how many times as long other packages take, on a GPU and on a CPU, from records of this folder. Nothing is timed.

    python benchmarks/draw_speed.py --output docs/speed.png

Left, forward + backward of soft-DTW on a GPU, all called eagerly: this package from bench_shapes.py, the others from
bench_libraries.py, at the shapes that both records have. A package that could not run has no bar, and "does not run".
Right, what people do with distances on a CPU, from bench_tasks.py, in float32: geometric means over the sets of series.
"""

import argparse
import json
import pathlib
import statistics

import tasks_chart

RESULTS = pathlib.Path(__file__).parent / "results"
NAMES = {"maghoumi": "pytorch-softdtw-cuda"}
COLOURS = {**tasks_chart.COLOURS, "pysdtw": "#6a994e", "maghoumi": "#7b5ea7"}
OURS = tasks_chart.OURS


def ratios_of_shapes(shapes, libraries):
    """For each shape of both records, for each other package the ratio of its time and ours, None where it did not run."""
    ours = {
        (row["batch"], row["length"], row["dim"]): row["forward_backward"]["median"]
        for row in shapes["rows"]
        if row["kind"] == "noise" and row["dtype"] == "float32" and row["gamma"] == libraries["settings"]["gamma"]
        if not row["pairs"] and "forward_backward" in row
    }
    found = {}
    for row in libraries["rows"]:
        shape = row["batch"], row["length"], row["dim"]
        if row["library"] != OURS and shape in ours:
            time = row["forward_backward"]["median"] / ours[shape] if "forward_backward" in row else None
            found.setdefault(" x ".join(map(str, shape)), {})[row["library"]] = time
    return found


def ratios_of_tasks(tasks):
    """For each task, for each other library the geometric mean of the ratios of its time and ours."""
    found = {}
    for task, libraries in tasks_chart.by_task(tasks).items():
        for library in libraries:
            if library != OURS:
                ratios = tasks_chart.ratios(libraries, library)
                found.setdefault(task, {})[library] = statistics.geometric_mean(ratios)
    return found


def bars(axis, groups, title):
    libraries = list(dict.fromkeys(library for group in groups.values() for library in group))
    height = 0.8 / len(libraries)
    for number, library in enumerate(libraries):
        for place, group in enumerate(groups.values()):
            y = place + (number - (len(libraries) - 1) / 2) * height
            if group.get(library) is not None:
                ratio = group[library]
                axis.barh(y, ratio, height * 0.9, color=COLOURS[library])
                axis.text(ratio, y, f" {ratio:.0f}x" if ratio >= 10 else f" {ratio:.1f}x", va="center", fontsize=8)
            elif library in group:
                axis.text(1, y, " does not run", va="center", fontsize=8, color=COLOURS[library])
    axis.set(xscale="log", yticks=range(len(groups)))
    axis.set_yticklabels(groups, fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(min(0.4, *(r * 0.8 for group in groups.values() for r in group.values() if r)), axis.get_xlim()[1] * 2)
    axis.axvline(1, color=COLOURS[OURS], lw=2)
    axis.tick_params(axis="y", length=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel(f"time, that of {OURS} being 1")
    axis.set_title(title, fontsize=11, loc="left")
    for library in (*libraries, OURS):
        axis.fill_between([], [], color=COLOURS[library], label=NAMES.get(library, library))
    axis.legend(frameon=False, fontsize=9, ncols=3, loc="upper left", bbox_to_anchor=(0, -0.13))


def draw(shapes, libraries, tasks, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    gpu, cpu = ratios_of_shapes(shapes, libraries), ratios_of_tasks(tasks)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 5), layout="constrained")
    device = shapes["device"]["name"].removeprefix("NVIDIA ")
    bars(left, gpu, f"Soft-DTW, forward + backward, {device} (batch x length x dimension)")
    bars(right, cpu, f"Tasks on sets of series, CPU with {tasks['settings']['threads']} threads")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("shapes", "libraries"):
        parser.add_argument(f"--{name}", type=pathlib.Path, default=RESULTS / f"h200_{name}.json")
    parser.add_argument("--tasks", type=pathlib.Path, default=RESULTS / "cpu_tasks.json")
    parser.add_argument("--output", default="speed.png")
    options = parser.parse_args()
    records = (json.loads(record.read_text()) for record in (options.shapes, options.libraries, options.tasks))
    draw(*records, options.output)
    print(f"drawn in {options.output}")


if __name__ == "__main__":
    main()
