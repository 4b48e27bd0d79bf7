"""Benchmarks run on small problems and write what they measured."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("tqdm")
sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import bench_hard
import bench_kernels
import bench_libraries
import bench_shapes
import sweep_selection


@pytest.fixture
def record_of(monkeypatch, tmp_path):
    """A function that runs a benchmark's main() on the CPU with arguments, and returns its record."""

    def run(module, *arguments):
        output = tmp_path / "record.json"
        monkeypatch.setattr(sys, "argv", [module.__name__, *arguments, "--device", "cpu", "--output", str(output)])
        module.main()
        return json.loads(output.read_text())

    return run


def test_shapes_name_their_data(record_of):
    jobs = ["3x20x1", "3x20x2/walks/float64/gamma=0.3", "4x9x1/real/pairs"]
    rows = record_of(bench_shapes, "--repeats", "1", "--jobs", *jobs)["rows"]
    assert [row["job"] for row in rows] == jobs
    assert [row["kind"] for row in rows] == ["noise", "walks", "real"]
    assert [row["gamma"] for row in rows] == [1.0, 0.3, 1.0]
    assert all(row["forward"]["median"] > 0 and row["value_error"] < 1e-5 for row in rows)


def test_every_shape_that_is_measured_by_default_is_understood():
    jobs = [bench_shapes.parse_job(text) for text in bench_shapes.JOBS + bench_shapes.LONG_JOBS]
    assert len({job._replace(text="") for job in jobs}) == len(jobs)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (bench_hard, ["--shapes", "3x20x1"]),
        (bench_kernels, ["--lengths", "20", "--batch", "3", "--bands", "100", "50", "--backward"]),
        (bench_libraries, ["--shapes", "3x20x1", "--only", "none"]),
        (sweep_selection, ["--lengths", "20", "--batches", "3", "--dims", "1", "--dtypes", "float32"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_benchmarks_take_a_kind_of_data(record_of, module, arguments):
    record = record_of(module, *arguments, "--repeats", "1", "--kind", "smoothed")
    assert record["settings"]["data"] == "smoothed"
    assert record["rows"]
