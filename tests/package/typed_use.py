"""What mypy has to take, and to refuse, of code that uses the package: `make lint` and test_types.py check it."""

from typing import TYPE_CHECKING

import torch
from torch.nn.utils.rnn import PackedSequence

from torchsoftdtw import (
    DTW,
    DTWPath,
    Matches,
    ProfiledMatches,
    SoftAlignment,
    SoftDTW,
    SoftDTWDivergence,
    barycenter,
    cdist,
    dtw,
    dtw_from_cost,
    dtw_path,
    dtw_path_from_cost,
    nearest,
    select_kernel,
    soft_dtw,
    soft_dtw_alignment,
    soft_dtw_divergence,
    soft_dtw_from_cost,
    subsequence_matches,
)

if TYPE_CHECKING:
    from typing_extensions import assert_type


def absolute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x.unsqueeze(2) - y.unsqueeze(1)).abs().sum(3)


def taken(x: torch.Tensor, y: torch.Tensor, packed: PackedSequence) -> None:
    assert_type(soft_dtw(x, packed, 0.1, cost="cosine", x_lengths=[3, 2], bandwidth=5, open_ends=False), torch.Tensor)
    assert_type(soft_dtw(x, y, torch.ones(2), cost=absolute, warp_penalty=[0.5, 1.0], kernel="cpu"), torch.Tensor)
    assert_type(dtw(x, y, bandwidth=[1, 2], y_lengths=torch.tensor([3, 2]), length_norm=True), torch.Tensor)
    assert_type(soft_dtw_divergence(x, y, kind="sharp"), torch.Tensor)
    assert_type(soft_dtw_from_cost(x, 0), torch.Tensor)
    assert_type(dtw_from_cost(x), torch.Tensor)
    assert_type(dtw_path(x, y), DTWPath)
    assert_type(soft_dtw_alignment(x, y), SoftAlignment)
    value, alignment = soft_dtw_alignment(x, y)
    assert_type(value + alignment, torch.Tensor)
    distance, paths = dtw_path_from_cost(x)
    assert_type(distance, torch.Tensor)
    assert_type(paths[0], torch.Tensor)
    cdist(x, distance="soft_dtw", gamma=0.1, out="distances.npy", device="cpu", progress=False)
    cdist([x, y], [y], cost=absolute, x_lengths=[3, 2])
    indices, distances = nearest(x, y, 3, bandwidth=5)
    assert_type(subsequence_matches(x, y, 3, cost="cosine"), Matches)
    assert_type(subsequence_matches(x.numpy(), y.numpy(), 3, normalize=True, bandwidth=5, profile=True), ProfiledMatches)
    average, history = barycenter(x, weights=[0.5, 0.5], labels=[0, 1], init=y, optimizer=torch.optim.Adam)
    print(indices, distances, average, history)
    assert_type(select_kernel(100, device=torch.device("cpu")), str)


def losses(x: torch.Tensor, y: torch.Tensor, packed: PackedSequence) -> None:
    for loss in (
        DTW(cost=absolute, reduction="none"),
        SoftDTW(torch.nn.Parameter(torch.ones(()))),
        SoftDTWDivergence(0.1),
    ):
        assert_type(loss(x, y), torch.Tensor)
        loss(x, packed, x_lengths=[3, 2]).backward()


def refused(x: torch.Tensor, y: torch.Tensor) -> None:
    soft_dtw(x, y, cost="manhattan")  # type: ignore[arg-type]
    soft_dtw(x, y, bandwidth=0.1)  # type: ignore[arg-type]
    soft_dtw(x.numpy(), y)  # type: ignore[arg-type]
    soft_dtw(x, y, 1.0, "cosine")  # type: ignore[call-arg]
    soft_dtw_divergence(x, y, kind="hard")  # type: ignore[arg-type]
    dtw(x, y, gamma=1.0)  # type: ignore[call-arg]
    SoftDTW(reduction="average")  # type: ignore[arg-type]
    SoftDTW(bandwidth=[1, 2])  # type: ignore[arg-type]
    subsequence_matches(x, y, 3, 0.5)  # type: ignore[call-overload]
    DTW()(x)  # type: ignore[call-arg]
