"""Time everyday tasks beside tslearn and aeon, on real series of unit variance, and say how good the answers are.

    all pairs          distances of a set of series with itself
    1-NN               accuracy on the test series of a data set, with and without a band of 10 %
    nearest centroid   accuracy; what has no such classifier uses its averages and distances
    k-means            adjusted Rand index and time of one start, of all series of a data set; means over seeds
    average            objective: mean DTW, or soft-DTW, of the series to it, in float64

All libraries run in turn, --rounds times. Distances agree before any of a task is timed. Of tslearn, whose jobs are
processes, the faster of one and of --threads jobs is taken. Through public functions, from series in memory to an answer in
memory; on a GPU that of this package, the others on the CPU.

    python benchmarks/bench_tasks.py --threads 2 --plot docs/tasks.png
    python benchmarks/bench_tasks.py --from benchmarks/results/cpu_tasks.json --plot docs/tasks.png
"""

import argparse
import json
import pathlib
import statistics
import time
import warnings
from typing import Any, NamedTuple

import common
import data_kinds
import numpy as np
import task_libraries
import tasks_chart
import torch
from sklearn.metrics import adjusted_rand_score
from task_libraries import Measure

GAMMA = 0.1
TASKS = ("all pairs", "1-NN", "nearest centroid", "k-means", "average")
CLUSTERED = ("Trace", "BasicMotions", "GunPoint")
SEEDS = (0, 1, 2)
CHECKED = 12  # series of each set, whose distances are compared
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8}
SLOW = 3.0  # seconds: what takes longer is run once
SETTLES = 0.3  # seconds before each call: a library's workers keep cores busy for up to 0.2 after its answer is there


class Job(NamedTuple):
    """One row for each library: what it does, with which arguments beyond itself, and how the answer is judged."""

    task: str
    data: str
    measure: Measure
    arguments: tuple  # of the library's method; NumPy arrays of three dimensions are series
    figure: str | None  # what `judge` returns
    judge: Any
    checked: tuple  # two sets of series, whose distances have to agree

    def run(self, library, arguments):
        method = getattr(library, METHODS[self.task])
        if self.task == "k-means":
            return [method(*arguments, seed, self.measure) for seed in SEEDS]
        return method(*arguments, self.measure)


METHODS = dict(zip(TASKS, ("all_pairs", "neighbors", "nearest_centroid", "clusters", "average"), strict=True))


def band(length):
    return round(0.1 * length)


def all_pairs():
    for count, length, measures in (
        (200, 96, [Measure("soft_dtw", 1.0)]),
        (500, 150, [Measure("dtw"), Measure("dtw", None, band(150))]),
    ):
        series = data_kinds.pairs("real", count, length, dtype=torch.float64)[0].numpy()
        for measure in measures:
            checked = (series[:CHECKED], series[CHECKED : 2 * CHECKED])
            yield Job("all pairs", f"{count} x {length}", measure, (series, None), None, None, checked)


def classifiers():
    for name, split in data_kinds.real_splits().items():
        train, classes, test, truth = (part.numpy() for part in split)
        train, test = train.astype(np.float64), test.astype(np.float64)

        def accuracy(answer, truth=truth):
            return (answer == truth).mean()

        radius = band(train.shape[1])
        for task, measure in (
            ("1-NN", Measure("dtw")),
            ("1-NN", Measure("dtw", None, radius)),
            ("nearest centroid", Measure("dtw")),
            ("nearest centroid", Measure("soft_dtw", GAMMA)),
        ):
            checked = (test[:CHECKED], train[:CHECKED])
            yield Job(task, name, measure, (train, classes, test), "accuracy", accuracy, checked)


def clusters():
    for name in CLUSTERED:
        split = data_kinds.real_splits()[name]
        series = torch.cat([split.train, split.test]).double().numpy()
        truth = torch.cat([split.train_classes, split.test_classes]).numpy()

        def rand(answers, truth=truth):
            return statistics.fmean(adjusted_rand_score(truth, labels) for labels in answers)

        count = len(set(truth.tolist()))
        checked = (series[:CHECKED], series[-CHECKED:])
        yield Job("k-means", name, Measure("dtw"), (series, count), "adjusted Rand index", rand, checked)


def averages():
    split = data_kinds.real_splits()["ArrowHead"]
    series = split.train[split.train_classes == 0].double()  # which are twelve
    shrunk = torch.nn.functional.interpolate(series.mT, 137, mode="linear", align_corners=True).mT
    shrunk = data_kinds.z_normalised(shrunk).numpy()
    whole = data_kinds.real_splits()["GunPoint"]
    whole = whole.train[whole.train_classes == 0].double().numpy()
    for name, own in ((f"{len(shrunk)} x 137", shrunk), (f"{len(whole)} x {whole.shape[1]}", whole)):
        for measure in (Measure("soft_dtw", 1.0), Measure("soft_dtw", GAMMA), Measure("dtw")):

            def objective(average, own=own, measure=measure):
                exact = task_libraries.Ours(torch.float64, torch.device("cpu"))
                both = (exact.prepared(np.asarray(each, np.float64)) for each in (average[None], own))
                return exact.all_pairs(*both, measure).mean().item()

            checked = (own[:CHECKED], own[-CHECKED:])
            yield Job("average", name, measure, (own,), "objective", objective, checked)


def check(job, libraries):
    """Raise AssertionError where this package's distances are not those of a plain recursion; the libraries whose own are
    others, by name, and by how much."""
    exact = reference_distances(*job.checked, job.measure)
    wrong = {}
    for library in libraries:
        own = np.asarray(library.all_pairs(*map(library.prepared, job.checked), job.measure))
        off = np.abs(own - exact).max() / np.abs(exact).max()
        is_ours = isinstance(library, task_libraries.Ours)
        if is_ours and not off <= TOLERANCE[library.dtype]:
            raise AssertionError(f"{job.task}, {job.data}, {job.measure}: {library.dtype} is off by {off:.2g}")
        if not off <= 1e-6 and not is_ours:
            wrong[library.name] = f"distances off by {off:.2g}"
    return wrong


def reference_distances(x, y, measure):
    """(P, Q) by a plain recursion in NumPy, cell by cell, all pairs at once."""
    count, (n, m) = (len(x), len(y)), (x.shape[1], y.shape[1])
    cost = np.square(x[:, None, :, None] - y[None, :, None]).sum(-1)
    table = np.full((*count, n + 1, m + 1), np.inf)
    table[..., 0, 0] = 0
    radius = max(n, m) if measure.bandwidth is None else measure.bandwidth
    for i in range(1, n + 1):
        for j in range(max(1, i - radius), min(m, i + radius) + 1):
            before = np.stack([table[..., i - 1, j - 1], table[..., i - 1, j], table[..., i, j - 1]])
            least = before.min(0)
            if measure.gamma is not None:
                least = least - measure.gamma * np.log(np.exp((least - before) / measure.gamma).sum(0))
            table[..., i, j] = cost[..., i - 1, j - 1] + least
    return table[..., n, m]


def timed(job, library, arguments, device):
    time.sleep(SETTLES)
    common.synchronize(device)
    start = time.perf_counter()
    answer = job.run(library, arguments)
    common.synchronize(device)
    return time.perf_counter() - start, answer


def measure(job, libraries, rounds, device):
    """The rows of a job: all libraries in turn, `rounds` times; a first call of each is not counted."""
    wrong = check(job, libraries)
    running, rows = [], []
    for library in libraries:
        is_ours = isinstance(library, task_libraries.Ours)
        row = {"task": job.task, "data": job.data, "measure": str(job.measure), "library": library.name}
        row |= {"dtype": str(library.dtype).removeprefix("torch."), "device": device.type} if is_ours else {"device": "cpu"}
        row |= {"jobs": library.jobs["n_jobs"]} if hasattr(library, "jobs") else {}
        row |= {"note": wrong[library.name]} if library.name in wrong else {}
        try:
            arguments = [library.prepared(a) if np.ndim(a) == 3 else a for a in job.arguments]
            seconds, answer = timed(job, library, arguments, device)
        except NotImplementedError:
            continue
        if job.figure:
            row["figure"] = {job.figure: float(job.judge(answer))}
        running.append((library, arguments, row, [], seconds))
        rows.append(row)
    slowest = [first > SLOW for *_, first in running]
    for number in range(rounds):
        for (library, arguments, _, seconds, _), is_slow in zip(running, slowest, strict=True):
            if number == 0 or not is_slow:
                seconds.append(timed(job, library, arguments, device)[0])
    for *_, row, seconds, _ in running:
        row["seconds"] = common.Timing(statistics.median(seconds), min(seconds), max(seconds), len(seconds))._asdict()
    return best_of_jobs(rows)


def best_of_jobs(rows):
    """The rows, of a library with several numbers of jobs the fastest one."""
    best = {}
    for row in rows:
        key = row["library"], row.get("dtype")
        if key not in best or row["seconds"]["median"] < best[key]["seconds"]["median"]:
            best[key] = row
    return list(best.values())


def groups(rows):
    """The rows of each job, in their order."""
    found = {}
    for row in rows:
        found.setdefault((row["task"], row["data"], row["measure"]), []).append(row)
    return found


def lines_of(rows):
    """Cells of a table for the rows of one job; ratios are to this package in float32."""
    own = next(row for row in rows if row.get("dtype") == "float32")["seconds"]["median"]
    for row in rows:
        median = row["seconds"]["median"]
        name = " ".join(filter(None, (row["library"], row.get("dtype"))))
        figure = ", ".join(f"{what} {value:.4g}" for what, value in row.get("figure", {}).items())
        cells = row["task"], row["data"], row["measure"], name, common.format_seconds(median), f"{median / own:.3g}x"
        yield (*cells, figure, row.get("note", ""))


HEADER = ("task", "data", "measure", "library", "time", "of float32", "figure", "note")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--data", nargs="+", help="only these data sets, such as GunPoint; all by default")
    parser.add_argument("--device", default="auto", help="of this package: auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads, of each library")
    parser.add_argument("--rounds", type=int, default=5, help="timed calls; of what takes long, one")
    parser.add_argument("--note", help="on the machine, for the record")
    parser.add_argument("--from", dest="record", metavar="RECORD", help="time nothing: show and draw a record")
    parser.add_argument("--plot", metavar="PNG", help="draw a chart")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    return parser.parse_args()


def run(options):
    common.set_threads(options.threads)
    warnings.filterwarnings("ignore", module="(tslearn|aeon|sklearn|joblib|numba)")
    device = common.resolve_device(options.device)
    libraries, missing = task_libraries.installed(device, options.threads)
    for name, reason in missing.items():
        print(f"{name}: {reason}")
    makers = dict(zip(TASKS, (all_pairs, classifiers, classifiers, clusters, averages), strict=True))
    jobs = [job for maker in dict.fromkeys(makers[task] for task in options.tasks) for job in maker()]
    rows = []
    for job in jobs:
        if job.task in options.tasks and (options.data is None or job.data in options.data):
            rows += measure(job, libraries, options.rounds, device)
            for line in lines_of(list(groups(rows).values())[-1]):
                print(" | ".join(filter(None, line)), flush=True)
    settings = {"threads": options.threads, "rounds": options.rounds, "note": options.note, "seeds": SEEDS}
    extra = {"libraries": {name: common.installed_version(name) for name in ("tslearn", "aeon", "numba", "scikit-learn")}}
    path = common.write_record("tasks", device, settings, rows, options.output, options.commit, **extra)
    print(f"\nrecord: {path}")
    return json.loads(pathlib.Path(path).read_text())


def main():
    options = parse_arguments()
    record = json.loads(pathlib.Path(options.record).read_text()) if options.record else run(options)
    print()
    print(common.markdown_table(HEADER, [line for rows in groups(record["rows"]).values() for line in lines_of(rows)]))
    if options.plot:
        tasks_chart.draw(record, options.plot)
        print(f"drawn in {options.plot}")


if __name__ == "__main__":
    main()
