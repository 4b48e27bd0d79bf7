"""What the ops of csrc/ops.cpp take, by name."""

from typing import NamedTuple

import torch

NOTHING_PER_PAIR = (None,) * 5


class SeriesCall(NamedTuple):
    """The inputs of `forward` after x and y, in its order."""

    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None
    warp_penalties: torch.Tensor | None
    bandwidth: int
    gamma: float
    warp_penalty: float
    cost: str
    kernel: str
    rows_per_thread: int
    save: bool

    @property
    def per_pair(self):
        """The tensors of one number per pair, or None; nothing at all where all are None: to save those takes time, too."""
        tensors = self[:5]
        return () if tensors == NOTHING_PER_PAIR else tensors

    @property
    def numbers(self):
        """What is no tensor and `backward` takes as well: SeriesNumbers, yet without the names, which take time."""
        return self[5:-1]


class SeriesNumbers(NamedTuple):
    bandwidth: int
    gamma: float
    warp_penalty: float
    cost: str
    kernel: str
    rows_per_thread: int


class SeriesKept(NamedTuple):
    """The tensors that `backward` takes after the gradient from above, in its order."""

    x: torch.Tensor
    y: torch.Tensor
    value: torch.Tensor
    saved: torch.Tensor
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None
    warp_penalties: torch.Tensor | None


class GradientCall(NamedTuple):
    """The inputs of `backward` after the tensors that it differentiates."""

    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None
    warp_penalties: torch.Tensor | None
    bandwidth: int
    gamma: float
    warp_penalty: float
    cost: str
    kernel: str
    rows_per_thread: int
    need_x: bool
    need_y: bool

    @property
    def needs(self):
        return self.need_x, self.need_y

    @property
    def of_forward(self):
        """What `forward` takes of them, before `save`."""
        return self[:-2]

    @property
    def options(self):
        """arguments.Options, without the names."""
        return self[: self._fields.index("cost")]


class CostCall(NamedTuple):
    """The inputs of `forward_from_cost` after the cost matrix, in its order."""

    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None
    warp_penalties: torch.Tensor | None
    bandwidth: int
    gamma: float
    warp_penalty: float
    kernel: str
    rows_per_thread: int
    save: bool

    @property
    def per_pair(self):
        tensors = self[:5]
        return () if tensors == NOTHING_PER_PAIR else tensors

    @property
    def numbers(self):
        return self[5:-1]


class CostNumbers(NamedTuple):
    bandwidth: int
    gamma: float
    warp_penalty: float
    kernel: str
    rows_per_thread: int


class CostKept(NamedTuple):
    """The tensors that `backward_from_cost` takes after the gradient from above, in its order."""

    cost_matrix: torch.Tensor
    value: torch.Tensor
    saved: torch.Tensor
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None
    warp_penalties: torch.Tensor | None
