"""Draw how many times as long other packages take, on a GPU and on a CPU, from records of this folder. Nothing is timed.

    python benchmarks/draw_speed.py --output docs/speed.png

Left, forward + backward of soft-DTW on a GPU, all called eagerly in one run of bench_libraries.py. A package that could
not run has no bar, and "does not run".
Middle, this package alone, from bench_shapes.py: one shape with each option and each kind of data.
Right, what people do with distances on a CPU, from bench_tasks.py, in float32: geometric means over the sets of series.
"""

import argparse
import json
import pathlib
import statistics

import tasks_chart

OPTIONS_OF = "4096x512x1"
OPTIONS = {
    "": "noise",
    "/band=10": "band 10 %",
    "/penalty=0.5": "warp penalty",
    "/euclidean": "cost |x - y|",
    "/walks": "random walks",
    "/sines": "sines",
    "/steps": "steps",
}
RESULTS = pathlib.Path(__file__).parent / "results"
NAMES = {"maghoumi": "pytorch-softdtw-cuda"}
COLOURS = {**tasks_chart.COLOURS, "pysdtw": "#6a994e", "maghoumi": "#7b5ea7"}
OURS = tasks_chart.OURS


def ratios_of_libraries(libraries, own="forward_backward"):
    """For each shape, for each other package that was installed the ratio of its time, called eagerly, and the figure `own`
    of ours; None where it did not run.
    """
    rows = {}
    for row in libraries["rows"]:
        if row["note"] != "not installed":
            shape = " x ".join(str(row[size]) for size in ("batch", "length", "dim"))
            figure = own if row["library"] == OURS else "forward_backward"
            rows.setdefault(shape, {})[row["library"]] = row.get(figure, {}).get("median")
    return {
        shape: {name: time and time / of_all[OURS] for name, time in of_all.items() if name != OURS}
        for shape, of_all in rows.items()
    }


def seconds_of_options(*records):
    """Forward + backward of OPTIONS_OF in a captured graph, with each option, of the last record that has it."""
    rows = {row["job"]: row for record in records for row in record["rows"]}
    return {name: rows[OPTIONS_OF + job]["forward_backward_graph"]["median"] for job, name in OPTIONS.items()}


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


def bars_of_options(axis, seconds, title):
    for place, time in enumerate(seconds.values()):
        axis.barh(place, 1e3 * time, 0.7, color=COLOURS[OURS])
        axis.text(1e3 * time, place, f" {1e3 * time:.2f}", va="center", fontsize=8)
    axis.set(yticks=range(len(seconds)))
    axis.set_yticklabels(seconds, fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 1.2e3 * max(seconds.values()))
    axis.tick_params(axis="y", length=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel("ms")
    axis.set_title(title, fontsize=11, loc="left")


def draw(shapes, options, libraries, tasks, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    gpu, cpu = ratios_of_libraries(libraries), ratios_of_tasks(tasks)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 5), layout="constrained", width_ratios=(3, 2, 3))
    device = shapes["device"]["name"].removeprefix("NVIDIA ")
    bars(left, gpu, f"Soft-DTW with gradients, {device}")
    shape = OPTIONS_OF.replace("x", " x ")
    bars_of_options(middle, seconds_of_options(options, shapes), f"{shape}, {device}")
    bars(right, cpu, f"Tasks on sets of series, CPU with {tasks['settings']['threads']} threads")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("shapes", "options", "libraries"):
        parser.add_argument(f"--{name}", type=pathlib.Path, default=RESULTS / f"h200_{name}.json")
    parser.add_argument("--tasks", type=pathlib.Path, default=RESULTS / "cpu_tasks.json")
    parser.add_argument("--output", default="speed.png")
    options = parser.parse_args()
    paths = options.shapes, options.options, options.libraries, options.tasks
    records = (json.loads(path.read_text()) for path in paths)
    draw(*records, options.output)
    print(f"drawn in {options.output}")


if __name__ == "__main__":
    main()
