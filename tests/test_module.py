import copy
import io
import pickle

import pytest
import torch
from cases import normal
from torch.nn.parallel import DistributedDataParallel

from torchsoftdtw import SoftDTW, soft_dtw

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def module_level_cost(x, y):
    return torch.cdist(x, y)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device):
    x, y = normal(4, 6, 2, seed=1).to(device), normal(4, 5, 2, seed=2).to(device)
    options = dict(cost="cityblock", bandwidth=2, warp_penalty=0.3)
    lengths = dict(x_lengths=[6, 1, 2, 3], y_lengths=[5, 4, 3, 2])
    value = soft_dtw(x, y, 0.2, **options, **lengths)
    assert torch.equal(SoftDTW(0.2, reduction="none", **options)(x, y, **lengths), value)
    assert torch.equal(SoftDTW(0.2, reduction="sum", **options)(x, y, **lengths), value.sum())
    assert torch.equal(SoftDTW(0.2, **options)(x, y, **lengths), value.mean())


def test_a_pair_without_a_batch():
    x, y = normal(6, 2, seed=1), normal(5, 2, seed=2)
    for reduction in ("mean", "sum", "none"):
        assert torch.equal(SoftDTW(reduction=reduction)(x, y), soft_dtw(x, y))


def test_repr_tells_the_options():
    assert repr(SoftDTW()) == "SoftDTW(gamma=1, cost=sqeuclidean, bandwidth=None, warp_penalty=0, reduction=mean)"
    module = SoftDTW(0.01, cost=module_level_cost, bandwidth=7, warp_penalty=0.5, reduction="sum")
    assert repr(module) == "SoftDTW(gamma=0.01, cost=module_level_cost, bandwidth=7, warp_penalty=0.5, reduction=sum)"


@pytest.mark.parametrize("cost", ["euclidean", module_level_cost])
def test_pickles_copies_and_saves(cost):
    module = SoftDTW(0.3, cost=cost, bandwidth=3, warp_penalty=0.1, reduction="none")
    x, y = normal(2, 6, 2, seed=1), normal(2, 5, 2, seed=2)
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for other in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module), torch.load(buffer, weights_only=False)):
        assert repr(other) == repr(module)
        assert torch.equal(other(x, y), module(x, y))


def test_has_no_state():
    assert not SoftDTW().state_dict() and not list(SoftDTW().parameters())


class Forecaster(torch.nn.Module):
    """A network with its loss inside, so that DistributedDataParallel wraps both."""

    def __init__(self):
        super().__init__()
        self.recurrent = torch.nn.GRU(1, 4, batch_first=True)
        self.linear = torch.nn.Linear(4, 1)
        self.loss = SoftDTW(gamma=0.5)

    def forward(self, x, y, y_lengths):
        return self.loss(self.linear(self.recurrent(x)[0]), y, y_lengths=y_lengths)


def batch():
    return normal(4, 8, 1, seed=1).float(), normal(4, 6, 1, seed=2).float(), torch.tensor([6, 2, 3, 5])


def gradients(network, device, inputs):
    network(*(tensor.to(device) for tensor in inputs)).backward()
    return [parameter.grad.cpu() for parameter in network.parameters()]


def distributed_worker(rank, folder, device, backend):
    torch.set_num_threads(1)
    device = f"{device}:{rank}" if device == "cuda" else device
    if device != "cpu":
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(backend, init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(0)
    network = DistributedDataParallel(Forecaster().to(device))
    mine = [tensor[2 * rank : 2 * rank + 2] for tensor in batch()]
    torch.save(gradients(network, device, mine), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(("device", "backend"), [("cpu", "gloo"), pytest.param("cuda", "nccl", marks=pytest.mark.cuda)])
def test_distributed_data_parallel_averages_the_gradients(tmp_path, device, backend):
    if device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    torch.multiprocessing.spawn(distributed_worker, (str(tmp_path), device, backend), nprocs=2)
    torch.manual_seed(0)
    expected = gradients(Forecaster().to(device), device, batch())
    for rank in range(2):
        torch.testing.assert_close(torch.load(tmp_path / f"{rank}.pt"), expected)
