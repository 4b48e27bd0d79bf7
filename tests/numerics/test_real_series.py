"""Values of real series in float32, whose costs and entropy nearly cancel where they are alike.

`stencil` and `tiled` round 1 / gamma (or its root) to float32, and exponentials in one direction: on top of the bound of
test_accuracy, up to 1.5e-7 gamma a step of n + m, as docs/gamma.md says.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import numpy64

from torchsoftdtw import soft_dtw

sys.path.append(str(Path(__file__).parents[2] / "examples"))
pytest.importorskip("aeon")

import real_series

LENGTH = 96
PER_STEP = {"cpu": 0.0, "diagonal": 0.0, "stencil": 1.5e-7, "tiled": 1.5e-7}  # gamma


@cache
def pairs(name):
    """The series of a data set, resampled to one length, each with one of the other half."""
    train, _, test, _ = real_series.load(name)
    series = torch.cat([train, test]).float().transpose(1, 2)
    series = torch.nn.functional.interpolate(series, LENGTH, mode="linear").transpose(1, 2)
    half = len(series) // 2
    return series[:half].contiguous(), series[half : 2 * half].contiguous()


@pytest.mark.parametrize("gamma", [1.0, 0.3, 0.1, 0.07, 0.045, 0.02])
@pytest.mark.parametrize("name", ["arrow_head", "gun_point"])
def test_values(kernel, name, gamma):
    x, y = pairs(name)
    expected = numpy64(soft_dtw(x.double(), y.double(), gamma))
    actual = numpy64(soft_dtw(x.to(kernel.device), y.to(kernel.device), gamma, kernel=kernel.name))
    allowed = 1e-5 * np.maximum(np.abs(expected), gamma) + PER_STEP[kernel.name] * gamma * 2 * LENGTH
    error = np.abs(actual - expected)
    assert np.all(error <= allowed), f"off by {np.max(error / allowed):.3g} times the bound"
