"""Two processes: DistributedDataParallel, each with half of the batch, gets the gradients of one with all of it; all pairs,
of which each computes a part, are those of one alone."""

import pytest
import torch
from cases import normal
from torch.nn.parallel import DistributedDataParallel

from torchsoftdtw import SoftDTW, SoftDTWDivergence, cdist, pairwise
from torchsoftdtw._pairs.measure import Measure

LOSSES = {
    "soft_dtw": lambda: SoftDTW(gamma=0.5),
    "learnt_gamma": lambda: SoftDTW(torch.nn.Parameter(torch.tensor(0.5)), warp_penalty=0.1, length_norm=True),
    "soft_divergence": lambda: SoftDTWDivergence(gamma=0.5),
    "learnt_gamma_of_divergence": lambda: SoftDTWDivergence(torch.nn.Parameter(torch.tensor(0.5))),
    "sharp_divergence": lambda: SoftDTWDivergence(gamma=0.5, kind="sharp", bandwidth=4),
    "mean_divergence": lambda: SoftDTWDivergence(kind="mean"),
}


class Forecaster(torch.nn.Module):
    """A network with its loss inside, so that DistributedDataParallel wraps both."""

    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.recurrent = torch.nn.GRU(1, 4, batch_first=True)
        self.linear = torch.nn.Linear(4, 1)
        self.loss = LOSSES[name]()

    def forward(self, x, y, y_lengths):
        return self.loss(self.linear(self.recurrent(x)[0]), y, y_lengths=y_lengths)


def batch():
    return normal(4, 8, 1, seed=1).float(), normal(4, 6, 1, seed=2).float(), torch.tensor([6, 2, 3, 5])


def gradients(network, device, inputs):
    network(*(tensor.to(device) for tensor in inputs)).backward()
    return {name.removeprefix("module."): p.grad.cpu() for name, p in network.named_parameters()}


def all_pairs(device, folder, distributed):
    """In memory, where every rank gets the whole, and on disk, where all write to one file."""
    series = normal(23, 40, 1, dtype=torch.float32).to(device)
    options = {"distance": "soft_dtw", "distributed": distributed}
    on_disk = cdist(series, out=f"{folder}/{distributed}.npy", device=device, **options)
    return cdist(series, **options).cpu(), torch.from_numpy(on_disk.copy())


def distributed_worker(rank, folder, device, backend):
    torch.set_num_threads(1)
    device = f"{device}:{rank}" if device == "cuda" else device
    if device != "cpu":
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(backend, init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    mine = [tensor[2 * rank : 2 * rank + 2] for tensor in batch()]
    own = {name: gradients(DistributedDataParallel(Forecaster(name).to(device)), device, mine) for name in LOSSES}
    Measure.tile_shape, pairwise.AT_ONCE = (lambda *_, **__: (4, 4)), 0
    own["all pairs"] = all_pairs(device, folder, True)
    torch.save(own, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def results(request, tmp_path_factory):
    """(device, the gradients of every loss in either process): one start of two processes for all losses."""
    device = request.param
    if device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    folder = tmp_path_factory.mktemp("distributed")
    backend = {"cpu": "gloo", "cuda": "nccl"}[device]
    torch.multiprocessing.spawn(distributed_worker, (str(folder), device, backend), nprocs=2)
    return device, [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_get_the_gradients_of_one(results, name):
    device, own = results
    expected = gradients(Forecaster(name).to(device), device, batch())
    assert all(gradient.any() for gradient in expected.values())
    for rank in range(2):
        torch.testing.assert_close(own[rank][name], expected)
    # Either half of the batch alone has others.
    for half in (slice(0, 2), slice(2, 4)):
        alone = gradients(Forecaster(name).to(device), device, [tensor[half] for tensor in batch()])
        assert not torch.allclose(alone["linear.weight"], expected["linear.weight"], rtol=1e-3)


def test_two_processes_compute_the_pairs_of_one(results, tmp_path):
    device, own = results
    expected = all_pairs(device, tmp_path, False)
    for rank in range(2):
        for found, one in zip(own[rank]["all pairs"], expected, strict=True):
            assert torch.equal(found, one)
