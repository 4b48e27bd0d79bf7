"""A chart of a record of bench_tasks.py: how much faster this package is, and how good the answers of all are."""

import statistics

OURS = "torchsoftdtw"
COLOURS = {OURS: "#d1495b", "tslearn": "#3c7dc4", "aeon": "#e0a030"}


def _label(row):
    """The task, and what tells its measures apart."""
    measure = row["measure"]
    with_band = ", band 10 %" if "radius" in measure else ""
    measure = measure.replace("dtw", "DTW")
    return f"{row['task']}, {measure.split(', radius')[0].replace(', gamma', ' of gamma')}{with_band}"


def by_task(record):
    """For each task and measure, for each library the rows of its data sets; ours in float32."""
    found = {}
    for row in record["rows"]:
        if row.get("dtype", "float32") == "float32":
            found.setdefault(_label(row), {}).setdefault(row["library"], {})[row["data"]] = row
    return found


def ratios(libraries, name):
    return [
        row["seconds"]["median"] / libraries[OURS][data]["seconds"]["median"]
        for data, row in libraries.get(name, {}).items()
    ]


def draw(record, path):
    """Two panels: times as ratios, geometric means over data sets; accuracies and Rand indices, means over them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = by_task(record)
    judged = {
        label: libraries
        for label, libraries in tasks.items()
        if any("objective" not in row.get("figure", {"objective": 0}) for row in libraries[OURS].values())
    }
    rivals = [name for name in COLOURS if name != OURS and any(name in libraries for libraries in tasks.values())]
    size = (11, 0.7 + 0.42 * len(tasks))
    figure, (left, right) = plt.subplots(1, 2, figsize=size, width_ratios=(1.35, 1), layout="constrained")

    def bars(axis, groups, names, value_of, text_of):
        height = 0.8 / len(names)
        for place, libraries in enumerate(groups.values()):
            for number, name in enumerate(names):
                value = value_of(libraries, name)
                if value is None:
                    continue
                y = place + (number - (len(names) - 1) / 2) * height
                axis.barh(y, value, height * 0.92, color=COLOURS[name], label=name if place == 0 else None)
                axis.text(value, y, f" {text_of(value)}", va="center", fontsize=7.5, color="0.25")
        axis.set_yticks(range(len(groups)), groups, fontsize=8.5)
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(axis="y", length=0)

    def times(libraries, name):
        found = ratios(libraries, name)
        return statistics.geometric_mean(found) if found else None

    def quality(libraries, name):
        figures = [value for row in libraries.get(name, {}).values() for value in row["figure"].values()]
        return statistics.fmean(figures) if figures else None

    bars(left, tasks, rivals or [OURS], times, lambda value: f"{value:.0f}x" if value >= 10 else f"{value:.1f}x")
    left.set_xscale("log")
    left.axvline(1, color=COLOURS[OURS], lw=1.5)
    left.set_xlim(0.3, left.get_xlim()[1] * 1.6)
    left.set_title(f"time, as a multiple of that of {OURS} (float32)", fontsize=10)
    bars(right, judged, [OURS, *rivals], quality, lambda value: f"{value:.2f}")
    right.set_xlim(0, 1.1)
    right.set_title("accuracy, or adjusted Rand index", fontsize=10)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
