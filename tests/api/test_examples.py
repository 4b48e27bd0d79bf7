"""The examples run to their end and draw, on the CPU and unchanged on a GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize(
    ("script", "brief"),
    [
        ("explain.py", ["--rounds", "2"]),
        ("train_forecaster.py", ["--epochs", "2"]),
        ("fit_barycenter.py", ["--steps", "2"]),
        ("dilate.py", ["--epochs", "2"]),
        ("cluster_series.py", ["--dataset", "gun_point", "--starts", "1", "--rounds", "1", "--steps", "2"]),
        ("nearest_centroid.py", ["--steps", "2"]),
        ("elastic_neighbours.py", ["--dataset", "gun_point", "--steps", "2"]),
        ("find_pattern.py", ["--matches", "5"]),
        ("draw_bands.py", []),
    ],
)
def test_example_runs_and_draws(tmp_path, script, brief, device):
    for needed in ("aeon", "matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed)
    picture = tmp_path / "picture.png"
    command = [sys.executable, str(EXAMPLES / script), *brief, "--device", device, "--output", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
