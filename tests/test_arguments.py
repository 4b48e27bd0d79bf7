"""Wrong arguments: an error before any kernel starts, naming the argument, what came and what was expected."""

import numpy as np
import pytest
import torch

from torchsoftdtw import SoftDTW, soft_dtw, soft_dtw_from_cost

X, Y = torch.zeros(2, 5, 3), torch.zeros(2, 4, 3)
COSTS = torch.zeros(2, 5, 4)

SERIES = [
    ((np.zeros((2, 5, 3)), Y), {}, TypeError, r"x: expected a torch\.Tensor, got numpy\.ndarray"),
    ((X, [[0.0]]), {}, TypeError, r"y: expected a torch\.Tensor, got list"),
    ((X.long(), Y), {}, TypeError, "x: expected dtype float64, float32, float16 or bfloat16, got int64"),
    ((X, Y.to(torch.complex64)), {}, TypeError, "y: expected dtype .*, got complex64"),
    ((X.to_sparse(), Y), {}, TypeError, r"x: expected a dense tensor, got layout torch\.sparse_coo"),
    ((X[0, 0], Y[0, 0]), {}, ValueError, r"x: expected shape \(batch, length, dim\) or \(length, dim\), got \(3,\)"),
    ((X[None], Y), {}, ValueError, r"x: expected shape .*, got \(1, 2, 5, 3\)"),
    ((X[0], Y), {}, ValueError, r"x and y: expected both with a batch or both without, got \(5, 3\) and \(2, 4, 3\)"),
    ((X[:1], Y), {}, ValueError, r"x and y: expected the same batch size.*no broadcasting.*\(1, 5, 3\) and \(2, 4, 3\)"),
    ((X[:, :, :1], Y), {}, ValueError, r"x and y: expected vectors of the same dimension, got \(2, 5, 1\) and \(2, 4, 3\)"),
    ((X[:, :0], Y), {}, ValueError, r"x: expected lengths from 1 to 2\^28, got shape \(2, 0, 3\)"),
    ((X, Y[:, :0]), {}, ValueError, r"y: expected lengths from 1 to 2\^28, got shape \(2, 0, 3\)"),
    ((X[:, :, :0], Y[:, :, :0]), {}, ValueError, r"x: expected a dimension of at least 1, got shape \(2, 5, 0\)"),
    (
        (X, Y),
        {"cost": "manhattan"},
        ValueError,
        "cost: expected one of 'sqeuclidean', .* or a callable, got 'manhattan'",
    ),
    ((X, Y), {"cost": 3}, TypeError, "cost: expected a name or a callable, got int"),
    ((X, Y), {"cost": lambda x, y: None}, TypeError, "cost: expected the callable to return a torch.Tensor, got NoneType"),
    ((X, Y), {"cost": lambda x, y: COSTS.long()}, TypeError, "cost: expected .* a floating-point tensor, got torch.int64"),
    ((X, Y), {"cost": lambda x, y: COSTS[0]}, ValueError, r"cost: expected .* shape \(2, 5, 4\), got \(5, 4\)"),
]

OPTIONS = [
    ({"gamma": 0}, ValueError, "gamma: expected a positive finite number, got 0.0"),
    ({"gamma": -1.0}, ValueError, "gamma: expected a positive finite number, got -1.0"),
    ({"gamma": float("nan")}, ValueError, "gamma: expected a positive finite number, got nan"),
    ({"gamma": float("inf")}, ValueError, "gamma: expected a positive finite number, got inf"),
    ({"gamma": 10**400}, ValueError, "gamma: expected a positive finite number, got inf"),
    ({"gamma": 1e-39}, ValueError, "gamma: 1e-39 is outside the range of float32"),
    ({"gamma": 1e39}, ValueError, r"gamma: 1e\+39 is outside the range of float32"),
    ({"gamma": True}, TypeError, "gamma: expected a number, got a bool"),
    ({"gamma": "1"}, TypeError, "gamma: expected a number, got str"),
    ({"gamma": None}, TypeError, "gamma: expected a number, got NoneType"),
    ({"gamma": torch.tensor(1.0)}, TypeError, "gamma: expected a number, got torch.Tensor"),
    ({"warp_penalty": -0.5}, ValueError, "warp_penalty: expected a finite number of at least 0, got -0.5"),
    ({"warp_penalty": float("inf")}, ValueError, "warp_penalty: expected a finite number of at least 0, got inf"),
    ({"warp_penalty": torch.tensor(1.0)}, TypeError, "warp_penalty: expected a number, got torch.Tensor"),
    ({"warp_penalty": 1e30, "gamma": 1e-10}, ValueError, r"warp_penalty: 1e\+30 / gamma = 1e-10 overflows float32"),
    ({"bandwidth": -1}, ValueError, "bandwidth: expected None or an integer of at least 0, got -1"),
    ({"bandwidth": True}, TypeError, "bandwidth: expected a tensor or sequence of integers, one per pair, got dtype bool"),
    ({"bandwidth": 2.0}, TypeError, "bandwidth: expected .*integers.*got dtype float32"),
    ({"bandwidth": "wide"}, TypeError, "bandwidth: expected .*integers.*got str"),
    ({"bandwidth": [1, -2]}, ValueError, "bandwidth: expected integers of at least 0, got values from -2 to 1"),
    ({"bandwidth": [1]}, ValueError, r"bandwidth: expected shape \(2,\), one per pair, got \(1,\)"),
    ({"bandwidth": torch.tensor(1)}, ValueError, r"bandwidth: expected shape \(2,\), one per pair, got \(\)"),
    ({"x_lengths": [5, 6]}, ValueError, "x_lengths: expected integers from 1 to 5, got values from 5 to 6"),
    ({"x_lengths": [0, 3]}, ValueError, "x_lengths: expected integers from 1 to 5, got values from 0 to 3"),
    ({"y_lengths": torch.tensor([4, 5])}, ValueError, "y_lengths: expected integers from 1 to 4, got values from 4 to 5"),
    ({"x_lengths": [5, 5, 5]}, ValueError, r"x_lengths: expected shape \(2,\), one per pair, got \(3,\)"),
    ({"x_lengths": [[5, 5]]}, ValueError, r"x_lengths: expected shape \(2,\), one per pair, got \(1, 2\)"),
    ({"x_lengths": 5}, ValueError, r"x_lengths: expected shape \(2,\), one per pair, got \(\)"),
    ({"x_lengths": [5.0, 4.0]}, TypeError, "x_lengths: expected .*integers, one per pair, got dtype float32"),
    ({"y_lengths": np.array([1.0, 2.0])}, TypeError, "y_lengths: expected .*integers, one per pair, got dtype float64"),
    ({"y_lengths": torch.tensor([True, True])}, TypeError, "y_lengths: expected .*integers.*got dtype bool"),
    ({"y_lengths": ["a", "b"]}, TypeError, "y_lengths: expected .*integers, one per pair, got list"),
    ({"kernel": "fast"}, ValueError, "kernel: expected one of 'auto', 'cpu', 'diagonal', 'stencil', 'tiled', got 'fast'"),
    ({"kernel": 1}, TypeError, "kernel: expected a string, got int"),
]

MATRICES = [
    (np.zeros((2, 5, 4)), TypeError, r"cost_matrix: expected a torch\.Tensor, got numpy\.ndarray"),
    (COSTS.int(), TypeError, "cost_matrix: expected dtype float64, float32, float16 or bfloat16, got int32"),
    (COSTS[0, 0], ValueError, r"cost_matrix: expected shape \(batch, N, M\) or \(N, M\), got \(4,\)"),
    (COSTS[:, :0], ValueError, r"cost_matrix: expected lengths from 1 to 2\^28, got shape \(2, 0, 4\)"),
    (COSTS[:, :, :0], ValueError, r"cost_matrix: expected lengths from 1 to 2\^28, got shape \(2, 5, 0\)"),
]


@pytest.mark.parametrize(("tensors", "options", "error", "message"), SERIES)
def test_wrong_series_and_costs(tensors, options, error, message):
    with pytest.raises(error, match=message):
        soft_dtw(*tensors, **options)


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        soft_dtw(X, Y, **options)
    with pytest.raises(error, match=message):
        soft_dtw_from_cost(COSTS, **options)


@pytest.mark.parametrize(("matrix", "error", "message"), MATRICES)
def test_wrong_cost_matrices(matrix, error, message):
    with pytest.raises(error, match=message):
        soft_dtw_from_cost(matrix)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gamma": -1}, ValueError, "gamma: expected a positive finite number"),
        ({"cost": "manhattan"}, ValueError, "cost: expected one of"),
        ({"bandwidth": 1.5}, TypeError, "bandwidth: expected an integer or None, got float"),
        ({"bandwidth": -2}, ValueError, "bandwidth: expected None or an integer of at least 0, got -2"),
        ({"warp_penalty": -1}, ValueError, "warp_penalty: expected a finite number of at least 0"),
        ({"reduction": "max"}, ValueError, "reduction: expected 'mean', 'sum' or 'none', got 'max'"),
    ],
)
def test_a_module_refuses_wrong_options_when_it_is_made(options, error, message):
    with pytest.raises(error, match=message):
        SoftDTW(**options)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_layout_that_torch_cannot_stride_over():
    nested = torch.nested.nested_tensor([torch.zeros(5, 3), torch.zeros(4, 3)])
    with pytest.raises(TypeError, match="x: expected a dense tensor"):
        soft_dtw(nested, Y)


@pytest.mark.cuda
def test_tensors_on_two_devices():
    with pytest.raises(ValueError, match="x and y: expected one device, got cuda:0 and cpu"):
        soft_dtw(X.cuda(), Y)


def test_numbers_of_other_libraries_are_numbers():
    expected = soft_dtw(X + 1, Y, 0.5, bandwidth=2, warp_penalty=1)
    value = soft_dtw(X + 1, Y, np.float32(0.5), bandwidth=np.int64(2), warp_penalty=np.float64(1))
    assert torch.equal(value, expected)
    assert torch.equal(soft_dtw(X + 1, Y, 2), soft_dtw(X + 1, Y, 2.0))
