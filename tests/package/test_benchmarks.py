"""Benchmarks run on small problems and write what they measured."""

import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("tqdm")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import bench_eager
import bench_elastic
import bench_hard
import bench_kernels
import bench_kinds
import bench_libraries
import bench_nearest
import bench_shapes
import bench_study
import choose_gamma
import draw_speed
import profile_kernels
import study_tables
import sweep_selection
import torch

import torchsoftdtw


@pytest.fixture
def record_of(monkeypatch, tmp_path):
    """A function that runs a benchmark's main() on the CPU with arguments, and returns its record, the file `output`."""

    def run(module, *arguments):
        monkeypatch.setattr(sys, "argv", [module.__name__, *arguments, "--device", "cpu", "--output", str(run.output)])
        module.main()
        return json.loads(run.output.read_text())

    run.output = tmp_path / "record.json"
    return run


def test_shapes_name_their_data(record_of):
    jobs = ["3x20x1", "3x20x2/walks/float64/gamma=0.3", "4x9x1/real/pairs"]
    rows = record_of(bench_shapes, "--repeats", "1", "--jobs", *jobs)["rows"]
    assert [row["job"] for row in rows] == jobs
    assert [row["kind"] for row in rows] == ["noise", "walks", "real"]
    assert [row["gamma"] for row in rows] == [1.0, 0.3, 1.0]
    assert all(row["forward"]["median"] > 0 and row["value_error"] < 1e-5 for row in rows)


def test_shapes_name_their_options(record_of):
    jobs = ["2x20x1/band=10", "2x20x2/penalty=0.5/cityblock", "2x20x1/hard", "2x20x1/hard/band=5", "2x20x2/matrix"]
    rows = record_of(bench_shapes, "--repeats", "1", "--jobs", *jobs)["rows"]
    assert [row["cells"] for row in rows] == [2 * (20 + 2 * 19 + 2 * 18), 800, 800, 2 * (20 + 2 * 19), 800]
    assert [row["cost"] for row in rows] == ["sqeuclidean", "cityblock", "sqeuclidean", "sqeuclidean", "matrix"]
    assert [row["penalty"] for row in rows] == [0, 0.5, 0, 0, 0]
    assert [row["kernel"] for row in rows] == ["cpu", "cpu", "dtw", "dtw", "cpu"]


def test_every_shape_that_is_measured_by_default_is_understood():
    for texts in (bench_shapes.JOBS + bench_shapes.LONG_JOBS, bench_shapes.OPTION_JOBS):
        jobs = [bench_shapes.parse_job(text) for text in texts]
        assert len({job._replace(text="") for job in jobs}) == len(jobs)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (bench_hard, ["--shapes", "3x20x1"]),
        (bench_kernels, ["--lengths", "20", "--batch", "3", "--bands", "100", "50", "--backward"]),
        (bench_libraries, ["--shapes", "3x20x1", "--only", "none"]),
        (sweep_selection, ["--lengths", "20", "--batches", "3", "--dims", "1", "--dtypes", "float32"]),
        (sweep_selection, ["--lengths", "20", "--batches", "3", "--dims", "2", "--kernels", "cpu", "--band", "10"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_benchmarks_take_a_kind_of_data(record_of, module, arguments):
    record = record_of(module, *arguments, "--repeats", "1", "--kind", "smoothed")
    assert record["settings"]["data"] == "smoothed"
    assert record["rows"]


def test_a_sweep_forces_a_kernel_on_calls_like_earlier_ones():
    x = torch.zeros(3, 20, 1)
    value = torchsoftdtw.soft_dtw(x, x)
    with sweep_selection.forced(sweep_selection.selection.Plan("diagonal", 0)), pytest.raises((RuntimeError, ValueError)):
        torchsoftdtw.soft_dtw(x, x)
    assert torch.equal(torchsoftdtw.soft_dtw(x, x), value)


def test_bounds_are_timed_beside_all_values(record_of):
    small = "--count", "12", "--length", "20", "--repeats", "1"
    rows = record_of(bench_nearest, "--kinds", "walks", "real:GunPoint", *small)["rows"]
    assert [row["shape"][0] for row in rows] == 8 * [12, 24]
    assert all(own > 0 for row in rows for own in row["seconds"].values())


def test_the_host_is_timed_beside_a_bare_function_and_layer_by_layer(record_of):
    small = "--shapes", "2x5x1", "--sets", "3x6x1", "--rounds", "2", "--calls", "3"
    rows = record_of(bench_eager, *small)["rows"]
    beside_bare = [row for row in rows if "ratio" in row]
    assert {(row["function"], row["pass"]) for row in beside_bare} == {
        (function, each) for function in bench_eager.FUNCTIONS for each in bench_eager.PASSES
    }
    assert all(row["ratio"] == row["host"]["fastest"] / row["bare"]["fastest"] > 0 for row in beside_bare)
    assert all(row["host"]["fastest"] > 0 for row in rows if "layer" in row)
    assert {row["function"] for row in rows if "waited" in row} == {"cdist, soft_dtw", "cdist, dtw"}


KINDS = ["--shapes", "3x24x1", "--repeats", "1", "--kinds", "steps", "real:Heartbeats"]


def test_kinds_are_checked_and_timed_with_and_without_a_band(record_of, capsys):
    with pytest.raises(SystemExit) as end:
        record_of(bench_kinds, *KINDS, "--gammas", "0.1", "0", "--bands", "100", "25", "--kernels", "auto", "cpu")
    assert end.value.code == 0
    rows = bench_kinds.rows_of(record_of.output)
    assert len(rows) == 2 * 2 * (2 + 1)  # hard DTW has one kernel
    assert {(row["kind"], row["kernel"], row["gamma"], row["band_percent"]) for row in rows} >= {
        ("steps", "cpu", 0.1, 25),
        ("real:Heartbeats", "hard", 0.0, 100),
    }
    assert all(row["agrees"] and row["forward_backward"]["median"] > 0 for row in rows)
    assert all(row["gradient_error"] < 1e-3 for row in rows if row["gamma"] > 0)
    assert "3x24x1 | real:Heartbeats | hard" in capsys.readouterr().out


def test_kinds_with_ready_made_costs(record_of):
    with pytest.raises(SystemExit) as end:
        record_of(bench_kinds, *KINDS, "--matrix", "--gammas", "0.1", "0", "--bands", "100", "25")
    assert end.value.code == 0
    rows = bench_kinds.rows_of(record_of.output)
    assert len(rows) == 8 and all(row["agrees"] and row["forward_backward"]["median"] > 0 for row in rows)


def test_a_wrong_kernel_is_not_timed(record_of, monkeypatch, capsys):
    right = torchsoftdtw.soft_dtw

    def wrong(x, y, gamma, **options):
        return right(x, y, gamma, **options) * (1.001 if x.dtype == torch.float32 else 1)

    monkeypatch.setattr(torchsoftdtw, "soft_dtw", wrong)
    with pytest.raises(SystemExit) as end:
        record_of(bench_kinds, *KINDS, "--gammas", "1", "0")
    assert end.value.code == 1
    rows = bench_kinds.rows_of(record_of.output)
    assert [(row["gamma"], row["agrees"], "forward" in row) for row in rows] == [(1.0, False, False), (0.0, True, True)] * 2
    assert capsys.readouterr().out.count("WRONG") == 4


def test_records_are_compared_row_by_row_and_as_a_whole():
    def rows(**seconds):
        names = dict(zip(bench_kinds.SAME, (3, 24, 1, "float32", None, 1.0, 100, "auto"), strict=True))
        timed = [
            names | {"kind": kind, "agrees": True, "forward": {"median": f}, "forward_backward": {"median": b}}
            for kind, (f, b) in seconds.items()
        ]
        return [*timed, names | {"kind": "steps", "agrees": False}]

    new = rows(noise=(1.0, 1.0), walks=(1.0, 1.0), sines=(5.0, 5.0))
    old = rows(noise=(2.0, 4.0), walks=(0.89, 1.0), real=(9.0, 9.0))
    text = bench_kinds.compare(new, old)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line]
    assert ["3x24x1", "walks", "1.0", "100", "auto", "0.89", "1.00"] in lines
    assert not any("sines" in line or "steps" in line for line in lines)
    assert ["3x24x1", "auto", "forward", "2", "1.33", "0.89", "no"] in lines
    assert ["all", "auto", "forward + backward", "2", "2.00", "1.00", "yes"] in lines
    with pytest.raises(ValueError, match="no row in common"):
        bench_kinds.compare(new, old[2:3])


def test_two_kernels_of_one_record_are_compared():
    shared = dict(zip(bench_kinds.SAME, (2, 8, 1, "float32", "noise", 1.0, 100), strict=False)) | {"agrees": True}

    def row(kernel, *seconds):
        times = {figure: {"median": time} for figure, time in zip(bench_kinds.FIGURES, seconds, strict=True)}
        return shared | {"kernel": kernel} | times

    text = bench_kinds.compare([row("a", 1.0, 2.0)], [row("b", 3.0, 1.0)], bench_kinds.SAME[:-1])
    assert re.search(r"\| a +\| 3.00 +\| 0.50", text)


def test_the_study_has_a_row_for_every_case(record_of):
    rows = record_of(bench_study, "--quick", "--repeats", "1")["rows"]
    assert [row["part"] for row in rows] == ["counts"] * 3 + ["bands"] * 5 + ["long"] * 2 + ["costs"] * 3
    assert [row["source"] for row in rows[-3:]] == ["series", "matrix", "matrix made in the call"]
    assert rows[3]["cells"] == 2 * 20**2 - 2 * 2 * sum(range(1, 16))  # a band of 4 leaves two triangles of 15 rows out
    assert all(row["forward"]["median"] > 0 and row["gradient_error"] < 1e-3 for row in rows)


def test_a_launch_is_of_the_job_whose_mark_came_before():
    columns = ["ID", "Kernel Name", "Grid Size", "Block Size", *profile_kernels.METRICS.values()]
    own = "void softdtw::<unnamed>::stencil_forward<softdtw::Strip<float, 4>>(softdtw::Problem<float>)"
    launches = ["at::cuda::<unnamed>::spin_kernel(long)", own, "at::cuda::<unnamed>::spin_kernel(long)", own, own]
    figures = ["1,024", "nan"] + ["5"] * (len(profile_kernels.METRICS) - 2)
    table = [
        columns,
        [""] * len(columns),
        *([str(i), name, "(1, 1, 1)", "(32, 1, 1)", *figures] for i, name in enumerate(launches)),
    ]
    lines = ["==PROF== Connected"] + [",".join(f'"{cell}"' for cell in line) for line in table]
    rows = profile_kernels.rows_of(lines, profile_kernels.JOBS[:2])
    assert [row["length"] for row in rows] == [100, 1024, 1024]
    assert {(row["launch"], row["nanoseconds"], row["registers"]) for row in rows} == {("stencil_forward", 1024.0, None)}
    with pytest.raises(ValueError, match="fewer jobs"):
        profile_kernels.rows_of(lines, profile_kernels.JOBS[:3])


@pytest.mark.skipif(not all(map(Path.exists, study_tables.RECORDS.values())), reason="not measured yet")
def test_the_figures_of_the_study_are_those_of_its_records():
    page = study_tables.PAGE.read_text()
    assert study_tables.filled(page) == page
    assert all(f"<!-- {name} -->\n|" in page for name in study_tables.TABLES)


def test_a_gamma_is_chosen_from_figures_of_every_task(record_of):
    pytest.importorskip("sklearn")
    brief = ["--gammas", "0.1", "1", "--sets", "ItalyPowerDemand", "--seeds", "1", "--steps", "2"]
    rows = record_of(choose_gamma, *brief)["rows"]
    assert {(row["task"], row["loss"], row["gamma"]) for row in rows} == {
        (task, loss, gamma)
        for task in ("forecasts", "averages", "classes")
        for loss in ("soft_dtw", "divergence")
        for gamma in (0.1, 1.0)
    }


def test_tasks_are_judged_timed_and_drawn(record_of, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    import bench_tasks
    import task_libraries

    ours = [task_libraries.Ours(dtype, torch.device("cpu")) for dtype in (torch.float32, torch.float64)]
    monkeypatch.setattr(task_libraries, "installed", lambda device, threads: (ours, {"tslearn": "not asked"}))
    monkeypatch.setattr(bench_tasks, "SEEDS", (0,))
    monkeypatch.setattr(bench_tasks, "SETTLES", 0)
    picture = tmp_path / "tasks.png"
    only = ["--data", "GunPoint", "200 x 96", "--rounds", "1", "--threads", "1", "--plot", str(picture)]
    rows = record_of(bench_tasks, *only)["rows"]
    assert {row["task"] for row in rows} == {"all pairs", "1-NN", "nearest centroid", "k-means"}
    assert all(row["seconds"]["median"] > 0 for row in rows)
    accuracies = [row["figure"]["accuracy"] for row in rows if row["task"] == "1-NN"]
    assert len(accuracies) == 4 and all(0.9 < accuracy < 1 for accuracy in accuracies)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_chart_of_speed_and_the_readme_say_what_the_records_say(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "speed.png"
    monkeypatch.setattr(sys, "argv", ["draw_speed", "--output", str(picture)])
    draw_speed.main()
    assert picture.read_bytes().startswith(b"\x89PNG")

    def record(name):
        return json.loads((draw_speed.RESULTS / f"{name}.json").read_text())

    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    libraries = record("h200_libraries")
    best = {}
    for own in ("forward_backward", "forward_backward_graph"):
        shapes = draw_speed.ratios_of_libraries(libraries, own).values()
        ratios = [min(filter(None, of_shape.values())) for of_shape in shapes if any(of_shape.values())]
        best[own] = f"{min(ratios):.0f} to {max(ratios):.0f} times"
    assert f"{best['forward_backward']} as fast as the faster of two other CUDA packages" in readme
    assert f"and {best['forward_backward_graph']} in a CUDA graph" in readme
    rows = record("cpu_libraries")["rows"]
    on_cpu = [
        theirs["forward_backward"]["median"] / ours["forward_backward"]["median"]
        for ours, theirs in zip(rows[::2], rows[1::2], strict=True)
    ]
    assert f"{min(on_cpu):.0f} to {max(on_cpu):.0f} times as fast as tslearn's loss" in readme
    measured = [row for row in libraries["rows"] if row["batch"] == 4096 and "peak_bytes" in row]
    memory = [round(row["peak_bytes"] / 2**20) for row in measured]
    assert "4096 pairs of length 100 take {} MiB; the two other packages take {} and {} MiB".format(*memory) in readme
    tasks = draw_speed.ratios_of_tasks(record("cpu_tasks"))
    ratios = [ratio for of_task in tasks.values() for ratio in of_task.values() if ratio]
    assert f"{min(ratios):.1f} to {max(ratios):.0f} times as fast as tslearn and aeon" in readme


def test_elastic_measures_are_timed_beside_others_and_at_the_published_tasks(record_of):
    small = ["--length", "40", "--lengths", "30", "--batch", "2x20x1", "--set", "5x12x1", "--images", "3", "--long", "30"]
    parts = ["rivals", "pair", "batch", "sets", "query", "long-pairs"]
    rows = record_of(bench_elastic, *small, "--parts", *parts, "--repeats", "1")["rows"]
    assert {row["part"] for row in rows} == set(parts)
    assert {row["package"] for row in rows if row["part"] == "rivals"} >= {"torchsoftdtw"}
    assert all(row["seconds"]["median"] > 0 for row in rows)
    assert len([row for row in rows if row["part"] == "batch" and row["band"] == 100]) == 12
    assert len([row for row in rows if row["part"] == "batch" and row["band"] == 10]) == 12
