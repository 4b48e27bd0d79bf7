"""Wrong arguments: an error before any kernel starts, naming the argument, what came and what was expected."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from torchsoftdtw import (
    DTW,
    SoftDTW,
    SoftDTWDivergence,
    dtw,
    dtw_from_cost,
    dtw_path,
    dtw_path_from_cost,
    select_kernel,
    soft_dtw,
    soft_dtw_alignment,
    soft_dtw_divergence,
    soft_dtw_from_cost,
)

X, Y = torch.zeros(2, 5, 3), torch.zeros(2, 4, 3)
COSTS = torch.zeros(2, 5, 4)

NUMBERS = "a number, or a tensor or sequence of numbers, one per pair"
INTEGERS = "a tensor or sequence of integers, one per pair"


def strided(*parts):
    return torch.nested.nested_tensor(list(parts), layout=torch.strided)


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
    ((X, Y), {"cost": lambda x, y: COSTS.long()}, TypeError, "cost: expected .* dtype float64, .* or bfloat16, got int64"),
    ((X, Y), {"cost": lambda x, y: COSTS.to_sparse()}, TypeError, "cost: expected .* a dense tensor, got .*sparse_coo"),
    ((X, Y), {"cost": lambda x, y: strided(*COSTS)}, TypeError, "cost: expected .* a dense tensor, got a nested tensor"),
    ((X, Y), {"cost": lambda x, y: COSTS[0]}, ValueError, r"cost: expected .* shape \(2, 5, 4\), got \(5, 4\)"),
]

GAMMAS = [
    (-1.0, ValueError, "gamma: expected a positive finite number, got -1.0"),
    (float("nan"), ValueError, "gamma: expected a positive finite number, got nan"),
    (float("inf"), ValueError, "gamma: expected a positive finite number, got inf"),
    (10**400, ValueError, "gamma: expected a positive finite number, got inf"),
    (1e-39, ValueError, "gamma: 1e-39 is outside the range of float32"),
    (1e39, ValueError, r"gamma: 1e\+39 is outside the range of float32"),
    (True, TypeError, "gamma: expected a number, got a bool"),
    ("1", TypeError, "gamma: expected a number, got str"),
    (None, TypeError, "gamma: expected a number, got NoneType"),
    (1j, TypeError, "gamma: expected a number, or a tensor or sequence of numbers, one per pair, got complex"),
    ([1.0, "a"], TypeError, "gamma: expected a number, or a tensor or sequence of numbers, one per pair, got list"),
    (torch.tensor([True, True]), TypeError, "gamma: expected a number, or .*one per pair, got dtype bool"),
    (torch.tensor(1j), TypeError, "gamma: expected a number, or .*one per pair, got dtype complex64"),
    (torch.tensor(0.0), ValueError, "gamma: expected a positive finite number, got 0.0"),
    ([1, 0], ValueError, "gamma: expected a positive finite number, got 0.0"),
    (torch.tensor([1.0, float("nan")]), ValueError, "gamma: expected a positive finite number, got nan"),
    (torch.tensor([1.0, 1e-42]), ValueError, "gamma: 1.0.*e-42 is outside the range of float32"),
    ([1.0, 1.0, 1.0], ValueError, r"gamma: expected shape \(\) or \(2,\), one per pair, got \(3,\)"),
    (torch.ones(2, 1), ValueError, r"gamma: expected shape \(\) or \(2,\), one per pair, got \(2, 1\)"),
    ([1.0, 10**400], ValueError, "gamma: expected finite numbers, got one beyond the range of float64"),
    (torch.ones(2).to_sparse(), TypeError, rf"gamma: expected {NUMBERS}, got layout torch\.sparse_coo"),
    (strided(torch.ones(1), torch.ones(1)), TypeError, f"gamma: expected {NUMBERS}, got a nested tensor"),
    (torch.ones(2, device="meta"), ValueError, "gamma: expected a tensor on the CPU, got one on meta"),
]

PENALTIES = [
    (-0.5, ValueError, "warp_penalty: expected a finite number of at least 0, got -0.5"),
    (float("inf"), ValueError, "warp_penalty: expected a finite number of at least 0, got inf"),
    (float("nan"), ValueError, "warp_penalty: expected a finite number of at least 0, got nan"),
    (None, TypeError, "warp_penalty: expected a number, got NoneType"),
    (False, TypeError, "warp_penalty: expected a number, got a bool"),
    ({}, TypeError, "warp_penalty: expected a number, or a tensor or sequence of numbers, one per pair, got dict"),
    ([0.5, -1.0], ValueError, "warp_penalty: expected a finite number of at least 0, got -1.0"),
    (torch.tensor(float("nan")), ValueError, "warp_penalty: expected a finite number of at least 0, got nan"),
    (np.zeros((2, 2)), ValueError, r"warp_penalty: expected shape \(\) or \(2,\), one per pair, got \(2, 2\)"),
    ([0, 10**400], ValueError, "warp_penalty: expected finite numbers, got one beyond the range of float64"),
    (torch.ones(2).to_sparse(), TypeError, rf"warp_penalty: expected {NUMBERS}, got layout torch\.sparse_coo"),
    (strided(torch.ones(1)), TypeError, f"warp_penalty: expected {NUMBERS}, got a nested tensor"),
]

FLAGS = [
    ({"length_norm": 1}, TypeError, "length_norm: expected True or False, got int"),
    ({"length_norm": None}, TypeError, "length_norm: expected True or False, got NoneType"),
    ({"open_ends": "yes"}, TypeError, "open_ends: expected True or False, got str"),
    ({"open_ends": True, "bandwidth": 3}, ValueError, "open_ends: expected bandwidth=None"),
    ({"open_ends": True, "bandwidth": 0}, ValueError, "open_ends: expected bandwidth=None"),
]

OPTIONS = [
    *(({"warp_penalty": penalty}, *expected) for penalty, *expected in PENALTIES),
    *FLAGS,
    ({"open_ends": True, "bandwidth": [1, 2]}, ValueError, "open_ends: expected bandwidth=None"),
    ({"bandwidth": -1}, ValueError, "bandwidth: expected None or an integer of at least 0, got -1"),
    ({"bandwidth": True}, TypeError, f"bandwidth: expected an integer, or {INTEGERS}, got dtype bool"),
    ({"bandwidth": 2.0}, TypeError, "bandwidth: expected .*integers.*got dtype float32"),
    ({"bandwidth": "wide"}, TypeError, "bandwidth: expected .*integers.*got str"),
    ({"bandwidth": [1, -2]}, ValueError, "bandwidth: expected integers of at least 0, got values from -2 to 1"),
    ({"bandwidth": [1]}, ValueError, r"bandwidth: expected shape \(\) or \(2,\), one per pair, got \(1,\)"),
    ({"bandwidth": torch.tensor(-1)}, ValueError, "bandwidth: expected integers of at least 0, got values from -1 to -1"),
    ({"bandwidth": torch.tensor(1.0)}, TypeError, "bandwidth: expected .*integers.*got dtype float32"),
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
    (
        {"x_lengths": torch.ones(2).long().to_sparse()},
        TypeError,
        f"x_lengths: expected {INTEGERS}, got layout torch.sparse",
    ),
    ({"y_lengths": strided(torch.ones(1).long())}, TypeError, f"y_lengths: expected {INTEGERS}, got a nested tensor"),
    (
        {"bandwidth": torch.ones(2).long().to_sparse()},
        TypeError,
        f"bandwidth: expected an integer, or {INTEGERS}, got layout torch.sparse",
    ),
    (
        {"x_lengths": torch.ones(2, device="meta").long()},
        ValueError,
        "x_lengths: expected a tensor on the CPU, got one on meta",
    ),
]

SOFT_OPTIONS = [
    *(({"gamma": gamma}, *expected) for gamma, *expected in GAMMAS),
    ({"warp_penalty": 1e30, "gamma": 1e-10}, ValueError, r"warp_penalty: 1e\+30 / gamma = 1e-10 overflows float32"),
    (
        {"kernel": "fast"},
        ValueError,
        "kernel: expected one of 'auto', 'cpu', 'diagonal', 'stencil', 'tiled', .* got 'fast'",
    ),
    ({"kernel": 1}, TypeError, "kernel: expected a string, got int"),
    ({"kernel": "tiled"}, ValueError, "kernel: 'tiled' runs on CUDA tensors only, and x is on cpu; use 'auto' or 'cpu'"),
]

MATRICES = [
    (np.zeros((2, 5, 4)), TypeError, r"cost_matrix: expected a torch\.Tensor, got numpy\.ndarray"),
    (COSTS.int(), TypeError, "cost_matrix: expected dtype float64, float32, float16 or bfloat16, got int32"),
    (COSTS[0, 0], ValueError, r"cost_matrix: expected shape \(batch, N, M\) or \(N, M\), got \(4,\)"),
    (COSTS[:, :0], ValueError, r"cost_matrix: expected lengths from 1 to 2\^28, got shape \(2, 0, 4\)"),
    (COSTS[:, :, :0], ValueError, r"cost_matrix: expected lengths from 1 to 2\^28, got shape \(2, 5, 0\)"),
]


RAGGED = [
    (
        ({"x": "nested"}),
        {"x_lengths": [5, 4]},
        ValueError,
        "x_lengths: expected None if x is a nested tensor, which has",
    ),
    (
        ({"y": "nested"}),
        {"y_lengths": [5, 4]},
        ValueError,
        "y_lengths: expected None if y is a nested tensor, which has",
    ),
    (
        ({"x": "packed"}),
        {"x_lengths": [5, 4]},
        ValueError,
        "x_lengths: expected None if x is a PackedSequence, which has",
    ),
    (({"x": "flat"}), {}, ValueError, r"x: expected a nested tensor of \(length, dim\) series, got series of 1 dimensions"),
    (
        ({"y": "deep"}),
        {},
        ValueError,
        r"y: expected a PackedSequence of \(length, dim\) series, got series of 3 dimensions",
    ),
    (({"x": "three"}), {}, ValueError, r"x and y: expected the same batch size .*\(3, 5, 3\) and \(2, 4, 3\)"),
    (({"x": "wide"}), {}, ValueError, r"x and y: expected vectors of the same dimension, got \(2, 5, 4\) and \(2, 4, 3\)"),
    (({"x": "transposed"}), {}, ValueError, "x: expected a nested tensor that is ragged in dimension 1, got 2"),
    (({"x": "empty"}), {}, ValueError, "x: expected series of at least one vector, got a nested tensor with an empty one"),
    (({"y": "empty jagged"}), {}, ValueError, "y: expected series of at least one vector, got a nested tensor with an"),
    (({"x": "whole"}), {}, TypeError, "x: expected dtype float64, float32, float16 or bfloat16, got int64"),
    (({"y": "whole packed"}), {}, TypeError, "y: expected dtype float64, float32, float16 or bfloat16, got int64"),
    (({"x": "strided"}), {"x_lengths": [5, 4]}, ValueError, "x_lengths: expected None if x is a nested tensor"),
    (({"y": "mixed"}), {}, ValueError, r"y: expected series of the same dim.*, got shapes \(5, 3\) and \(4, 2\)"),
    (({"x": "packed"}), {"y_lengths": [5, 4]}, ValueError, "y_lengths: expected .* from 1 to 4, got values from 4 to 5"),
]


def ragged(form):
    def nested(*shapes, dtype=torch.float32):
        return torch.nested.nested_tensor([torch.zeros(s, dtype=dtype) for s in shapes], layout=torch.jagged)

    return {
        "nested": lambda: nested((5, 3), (4, 3)),
        "packed": lambda: pack_sequence([torch.zeros(5, 3), torch.zeros(4, 3)]),
        "flat": lambda: nested((5,), (4,)),
        "deep": lambda: pack_sequence([torch.zeros(5, 3, 1), torch.zeros(4, 3, 1)]),
        "three": lambda: nested((5, 3), (4, 3), (1, 3)),
        "wide": lambda: nested((5, 4), (4, 4)),
        "transposed": lambda: nested((5, 3), (4, 3)).transpose(1, 2),
        "empty": lambda: strided(torch.zeros(5, 3), torch.zeros(0, 3)),
        "empty jagged": lambda: nested((5, 3), (0, 3)),
        "whole": lambda: nested((5, 3), (4, 3), dtype=torch.int64),
        "whole packed": lambda: pack_sequence([torch.zeros(5, 3).long(), torch.zeros(4, 3).long()]),
        "strided": lambda: strided(torch.zeros(5, 3), torch.zeros(4, 3)),
        "mixed": lambda: strided(torch.zeros(5, 3), torch.zeros(4, 2)),
    }[form]()


def divergence(kind):
    """soft_dtw_divergence of one kind, as a function with that name."""

    def function(x, y, gamma=1.0, **options):
        return soft_dtw_divergence(x, y, gamma, kind=kind, **options)

    function.__name__ = f"{kind}_divergence"
    return function


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


MODULES = [SoftDTW, SoftDTWDivergence]
DIVERGENCES = [divergence(kind) for kind in ("soft", "sharp", "mean")]
# The same as soft_dtw but for gamma = 0, and the divergences for open_ends.
LIKE_SOFT_DTW = [soft_dtw_alignment, *DIVERGENCES]
LOSSES = [DTW(), SoftDTW(), SoftDTWDivergence(), SoftDTWDivergence(kind="sharp")]
OF_SERIES = [soft_dtw, dtw, dtw_path, *LIKE_SOFT_DTW, *LOSSES]
MODULE = [
    *(
        ({"gamma": gamma}, *expected)
        for gamma, *expected in GAMMAS
        if isinstance(gamma, (str, complex, type(None))) or (isinstance(gamma, (int, float)) and gamma not in (1e-39, 1e39))
    ),
    ({"gamma": torch.tensor([True])}, TypeError, "gamma: expected a number, or .*one per pair, got dtype bool"),
    ({"gamma": torch.zeros(2)}, ValueError, "gamma: expected a positive finite number, got 0.0"),
    ({"gamma": [0.5, -2.0]}, ValueError, "gamma: expected a positive finite number, got -2.0"),
    ({"gamma": torch.nn.Parameter(torch.tensor(-1.0))}, ValueError, "gamma: expected a positive finite number, got -1.0"),
    ({"gamma": torch.ones(2, 2)}, ValueError, r"gamma: expected shape \(\) or \(batch,\), one per pair, got \(2, 2\)"),
    ({"gamma": torch.ones(2).to_sparse()}, TypeError, f"gamma: expected {NUMBERS}, got layout torch.sparse_coo"),
    *(({"warp_penalty": penalty}, *expected) for penalty, *expected in PENALTIES if not isinstance(penalty, np.ndarray)),
    ({"warp_penalty": np.ones((1, 2))}, ValueError, r"warp_penalty: expected shape \(\) or \(batch,\), .*, got \(1, 2\)"),
    ({"cost": "manhattan"}, ValueError, "cost: expected one of"),
    ({"cost": None}, TypeError, "cost: expected a name or a callable, got NoneType"),
    ({"bandwidth": 1.5}, TypeError, "bandwidth: expected an integer or None, got float"),
    ({"bandwidth": True}, TypeError, "bandwidth: expected an integer or None, got bool"),
    ({"bandwidth": -2}, ValueError, "bandwidth: expected None or an integer of at least 0, got -2"),
    ({"reduction": "max"}, ValueError, "reduction: expected 'mean', 'sum' or 'none', got 'max'"),
    ({"reduction": None}, ValueError, "reduction: expected 'mean', 'sum' or 'none', got None"),
    ({"reduction": np.array(["mean", "sum"])}, ValueError, "reduction: expected 'mean', 'sum' or 'none', got array"),
]
KINDS = [
    ("hard", "'hard'"),
    ("Soft", "'Soft'"),
    (None, "None"),
    (["soft"], r"\['soft'\]"),
    (np.array(["soft", "mean"]), "array"),
    (torch.zeros(2), "tensor"),
]
SELECTION = [
    ({"n": 0}, ValueError, "n: expected an integer of at least 1, got 0"),
    ({"n": 5.0}, TypeError, "n: expected an integer, got float"),
    ({"n": 5, "m": -1}, ValueError, "m: expected an integer of at least 1, got -1"),
    ({"n": 5, "batch": -1}, ValueError, "batch: expected an integer of at least 0, got -1"),
    ({"n": 5, "batch": True}, TypeError, "batch: expected an integer, got bool"),
    ({"n": 5, "dim": 0}, ValueError, "dim: expected an integer of at least 1, got 0"),
    ({"n": 5, "dtype": torch.int64}, TypeError, r"dtype: expected float64, .*, got torch\.int64"),
    ({"n": 5, "dtype": "float32"}, TypeError, "dtype: expected float64, .*, got float32"),
    ({"n": 5, "device": "tpu"}, ValueError, "device: expected the CPU or CUDA, got 'tpu'"),
    ({"n": 5, "device": "xla"}, ValueError, "device: expected the CPU or CUDA, got xla"),
    ({"n": 5, "device": None}, ValueError, "device: expected the CPU or CUDA, got None"),
    ({"n": 5, "gradient": 1}, TypeError, "gradient: expected True or False, got int"),
]


@pytest.mark.parametrize("function", OF_SERIES, ids=name_of)
@pytest.mark.parametrize(("tensors", "options", "error", "message"), SERIES)
def test_wrong_series_and_costs(function, tensors, options, error, message):
    if options and isinstance(function, torch.nn.Module):
        pytest.skip("a module has its cost from the beginning")
    if function in DIVERGENCES:
        message = message.replace("(2, 5, 4\\)", "(6, 5, 5\\)")  # a callable gets all three terms at once
    with pytest.raises(error, match=message):
        function(*tensors, **options)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("cost", [lambda x, y: None, lambda x, y: COSTS.long(), lambda x, y: COSTS[0]])
def test_a_module_refuses_what_a_wrong_callable_returns(cost, module):
    with pytest.raises((TypeError, ValueError), match="cost: expected the callable to return"):
        module(cost=cost)(X, Y)


@pytest.mark.parametrize("function", OF_SERIES, ids=name_of)
@pytest.mark.parametrize(("forms", "options", "error", "message"), RAGGED)
def test_wrong_ragged_series(function, forms, options, error, message):
    tensors = {"x": X, "y": Y, **{name: ragged(form) for name, form in forms.items()}}
    with pytest.raises(error, match=message):
        function(*tensors.values(), **options)


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_wrong_options(options, error, message):
    for function in (soft_dtw, dtw, dtw_path):
        with pytest.raises(error, match=message):
            function(X, Y, **options)
    with pytest.raises(error, match=message):
        soft_dtw(X, Y, gamma=0, **options)
    for gamma in (1.0, 0):
        with pytest.raises(error, match=message):
            soft_dtw_from_cost(COSTS, gamma, **options)
    for function in (dtw_from_cost, dtw_path_from_cost):
        with pytest.raises(error, match=message):
            function(COSTS, **options)
    for function in LIKE_SOFT_DTW:
        with pytest.raises(error, match=message):
            function(X, Y, **options)
    if all("lengths" in name for name in options):
        for module in (DTW, *MODULES):
            with pytest.raises(error, match=message):
                module()(X, Y, **options)


@pytest.mark.parametrize(("options", "error", "message"), SOFT_OPTIONS)
def test_wrong_gammas_and_kernels(options, error, message):
    with pytest.raises(error, match=message):
        soft_dtw_from_cost(COSTS, **options)
    for function in (soft_dtw, *LIKE_SOFT_DTW):
        with pytest.raises(error, match=message):
            function(X, Y, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "fast", "gamma": 0}, ValueError, "kernel: expected one of 'auto', .*, got 'fast'"),
        ({"kernel": 1, "gamma": 0.0}, TypeError, "kernel: expected a string, got int"),
    ],
)
def test_wrong_kernels_of_hard_dtw(options, error, message):
    with pytest.raises(error, match=message):
        soft_dtw(X, Y, **options)
    with pytest.raises(error, match=message):
        soft_dtw_from_cost(COSTS, **options)


@pytest.mark.parametrize("gamma", [0, 0.0, -0.0, np.float32(0)], ids=repr)
@pytest.mark.parametrize("function", LIKE_SOFT_DTW, ids=name_of)
def test_where_a_gamma_of_zero_has_no_meaning_it_is_refused(function, gamma):
    with pytest.raises(ValueError, match=r"gamma: expected a positive finite number, got -?0\.0"):
        function(X, Y, gamma)
    with pytest.raises(ValueError, match=r"gamma: expected a positive finite number, got -?0\.0"):
        SoftDTWDivergence(gamma)


@pytest.mark.parametrize("name", ["gamma", "warp_penalty"])
@pytest.mark.parametrize("function", [soft_dtw_alignment, *DIVERGENCES[1:]], ids=name_of)
def test_numbers_that_ask_for_a_gradient_that_there_is_none_of(function, name):
    message = f"{name}: expected a tensor that requires no gradient, got one that does"
    for number in (torch.tensor(0.5), torch.tensor([0.5, 1.0])):
        number.requires_grad_()
        with pytest.raises(ValueError, match=message):
            function(X, Y, **{name: number})
        with torch.no_grad():
            function(X, Y, **{name: number})
    for kind in ("sharp", "mean"):
        module = SoftDTWDivergence(kind=kind, **{name: torch.nn.Parameter(torch.tensor(0.5))})
        with pytest.raises(ValueError, match=message):
            module(X, Y)


@pytest.mark.parametrize("function", [*DIVERGENCES, SoftDTWDivergence], ids=name_of)
def test_a_divergence_has_no_open_ends_and_says_why(function):
    inputs = () if isinstance(function, type) else (X, Y)
    with pytest.raises(ValueError, match=r"open_ends: expected False for a divergence, .* a part of y"):
        function(*inputs, open_ends=True)


def test_hard_dtw_has_neither_gamma_nor_kernel():
    for option in ({"gamma": 1.0}, {"kernel": "auto"}):
        for call in (lambda **o: dtw(X, Y, **o), lambda **o: dtw_path_from_cost(COSTS, **o), DTW):
            with pytest.raises(TypeError, match="unexpected keyword argument"):
                call(**option)


@pytest.mark.parametrize(("kind", "got"), KINDS)
def test_wrong_kinds_of_divergence(kind, got):
    for call in (lambda: soft_dtw_divergence(X, Y, kind=kind), lambda: SoftDTWDivergence(kind=kind)):
        with pytest.raises(ValueError, match=f"kind: expected 'soft', 'sharp' or 'mean', got {got}"):
            call()


@pytest.mark.parametrize("gamma", [1.0, 0])
@pytest.mark.parametrize(("matrix", "error", "message"), MATRICES)
def test_wrong_cost_matrices(matrix, error, message, gamma):
    with pytest.raises(error, match=message):
        soft_dtw_from_cost(matrix, gamma)
    for function in (dtw_from_cost, dtw_path_from_cost):
        with pytest.raises(error, match=message):
            function(matrix)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(("options", "error", "message"), MODULE)
def test_a_module_refuses_wrong_options_when_it_is_made(options, error, message, module):
    with pytest.raises(error, match=message):
        module(**options)
    if "gamma" not in options:
        with pytest.raises(error, match=message):
            DTW(**options)


@pytest.mark.parametrize(("options", "error", "message"), FLAGS)
def test_a_module_refuses_wrong_flags_when_it_is_made(options, error, message):
    for module in (DTW, *MODULES):
        with pytest.raises(error, match=message):
            module(**options)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_refuses_a_wrong_kernel(module):
    with pytest.raises(ValueError, match=r"kernel: expected one of 'auto', .*, got 'fast'"):
        module(kernel="fast")
    with pytest.raises(TypeError, match="kernel: expected a string, got int"):
        module(kernel=1)
    with pytest.raises(ValueError, match="kernel: 'tiled' runs on CUDA tensors only"):
        module(kernel="tiled")(X, Y)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("name", ["gamma", "warp_penalty"])
def test_a_module_refuses_a_wrong_number_of_numbers_when_it_is_called(name, module):
    loss = module(**{name: torch.ones(3)})
    with pytest.raises(ValueError, match=rf"{name}: expected shape \(\) or \(2,\), one per pair, got \(3,\)"):
        loss(X, Y)


@pytest.mark.parametrize(("options", "error", "message"), SELECTION)
def test_wrong_sizes_of_a_selection(options, error, message):
    with pytest.raises(error, match=message):
        select_kernel(**options)


def test_a_number_that_a_dtype_cannot_take_is_named_where_the_dtype_is_known():
    for gamma in (1e-39, 1e39):
        for module in MODULES:
            with pytest.raises(ValueError, match=r"gamma: .* is outside the range of float32"):
                module(gamma)(X, Y)
            assert module(gamma)(X.double(), Y.double()).isfinite()


def test_nested_cost_matrices_are_refused():
    nested = torch.nested.nested_tensor([torch.zeros(5, 4), torch.zeros(3, 4)], layout=torch.jagged)
    with pytest.raises(TypeError, match=r"cost_matrix: expected a dense tensor, got layout torch\.jagged"):
        soft_dtw_from_cost(nested)


def test_options_go_by_name():
    for call in (
        lambda: dtw(X, Y, "euclidean"),
        lambda: dtw(X, Y, gamma=1.0),
        *(lambda function=function: function(X, Y, 1.0, "soft") for function in (soft_dtw, *LIKE_SOFT_DTW[:1])),
        lambda: soft_dtw_divergence(X, Y, 1.0, "soft"),
        *(lambda module=module: module(1.0, "soft") for module in MODULES),
    ):
        with pytest.raises(TypeError, match=r"positional arguments? but|unexpected keyword argument"):
            call()


@pytest.mark.cuda
def test_tensors_on_two_devices():
    with pytest.raises(ValueError, match="x and y: expected one device, got cuda:0 and cpu"):
        soft_dtw(X.cuda(), Y)


def test_numbers_of_other_libraries_are_numbers():
    expected = soft_dtw(X + 1, Y, 0.5, bandwidth=2, warp_penalty=1)
    value = soft_dtw(X + 1, Y, np.float32(0.5), bandwidth=np.int64(2), warp_penalty=np.float64(1))
    assert torch.equal(value, expected)
    assert torch.equal(soft_dtw(X + 1, Y, 2), soft_dtw(X + 1, Y, 2.0))
