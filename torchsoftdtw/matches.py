"""Where in a long series a short one is found."""

from typing import TYPE_CHECKING, Literal, TypedDict, overload

import torch

from ._inputs import arguments
from ._inputs import cost as costs
from ._matches import arguments as queries
from ._matches import greedy, windows
from ._matches.by_end import ByEnd
from ._matches.smallest import Smallest
from .signatures import Array, Cost, Matches, ProfiledMatches

if TYPE_CHECKING:
    from typing_extensions import Unpack

    class Options(TypedDict, total=False):
        cost: Cost
        warp_penalty: float
        normalize: bool
        bandwidth: int | None
        device: torch.device | str | int | None
        progress: Literal[False] | None


@overload
def subsequence_matches(
    x: torch.Tensor | Array, y: torch.Tensor | Array, k: int, *, profile: Literal[False] = ..., **options: "Unpack[Options]"
) -> Matches: ...
@overload
def subsequence_matches(
    x: torch.Tensor | Array, y: torch.Tensor | Array, k: int, *, profile: Literal[True], **options: "Unpack[Options]"
) -> ProfiledMatches: ...
def subsequence_matches(
    x: torch.Tensor | Array,
    y: torch.Tensor | Array,
    k: int,
    *,
    cost: Cost = "sqeuclidean",
    warp_penalty: float = 0.0,
    normalize: bool = False,
    bandwidth: int | None = None,
    profile: bool = False,
    device: torch.device | str | int | None = None,
    progress: Literal[False] | None = None,
) -> Matches | ProfiledMatches:
    """The k ranges of a long series that are nearest to a query by hard DTW and do not overlap.

    Every range y[start:end], of any length, has the value dtw(x, y[start:end]). Ranges are taken in the order of their
    values, and those that overlap one taken before are skipped. If values are equal, the earlier start comes first, and
    then the earlier end. The search is exact, and neither all ranges nor the N x M table are ever in memory. The
    recursion is that of Sakurai, Faloutsos & Yamamuro, "Stream Monitoring under the Time Warping Distance", ICDE 2007.

    There is no soft variant, since soft-DTW sums over all starts and its value does not belong to one range.
    `soft_dtw(x, y, open_ends=True)` sums over all starts and ends, and is differentiable.

    Args:
        x: (N, D), the query: a tensor or a NumPy array.
        y: (M, D), the long series. Ranges with a NaN or an infinity in them are not chosen.
        k: how many ranges, at least 1.
        cost: a name, as in `soft_dtw`; a callable only with `normalize`.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        normalize: compare shapes only, as the UCR suite does (Rakthanmanon et al., KDD 2012). The ranges are the M - N
            + 1 windows of length N, and x and every window are z-normalised, each coordinate to mean 0 and standard
            deviation 1; constant ones become 0.
        bandwidth: Sakoe-Chiba radius, as in `soft_dtw`; only with `normalize`.
        profile: whether to return the smallest value for every end as well.
        device: where to compute, as in `cdist`; None: the device of x.
        progress: None or False, as in `cdist`; for `normalize`, which takes longer.

    Returns:
        Matches (start, end, value), each (k,) and sorted by value; fewer than k if no range is left. The range is
        y[start:end]: `end` is exclusive. start and end are int64, value is float64 for float64 inputs, else float32; on
        the device of x, or NumPy arrays if x is one. With `profile`, ProfiledMatches (start, end, value, profile):
        profile (M,) has the value of the best range whose last vector is y[j], overlapping or not, and inf if there is
        none. There is no gradient: if you need one, compute `dtw(x, y[start:end])` again.

    Raises:
        TypeError, ValueError: an argument is wrong, a NaN in x among them; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part; or a gradient is asked for.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[0.0], [2.0]]), torch.tensor([[5.0], [0.0], [2.0], [2.0], [5.0], [1.0], [2.0]])
        >>> start, end, value = subsequence_matches(x, y, 2)
        >>> start.tolist(), end.tolist(), value.tolist()
        ([1, 5], [3, 7], [0.0, 1.0])
    """
    query = queries.of_call(x, y, k, cost, warp_penalty, normalize, bandwidth, device)
    arguments.check_progress(progress)
    with_profile = arguments.flag("profile", profile)
    with torch.no_grad():
        found, costs_by_end = _windows(query, progress is False) if normalize else _ranges(query)
    value, start, end = zip(*found, strict=True) if found else ((), (), ())
    options = {"device": query.home}
    positions = (torch.tensor(each, dtype=torch.int64, **options) for each in (start, end))
    columns = (*positions, torch.tensor(value, dtype=query.x.dtype, **options))
    if with_profile:
        columns = (*columns, costs_by_end.to(query.home, query.x.dtype))
    answer = (column.numpy() for column in columns) if query.is_array else columns
    return ProfiledMatches(*answer) if with_profile else Matches(*answer)


def _ranges(query):
    """(what is taken, the least value of every end)."""
    x, y = query.x.unsqueeze(0), query.y.unsqueeze(0)
    options = arguments.options(x, len(query.x), len(query.y), True, 1.0, query.warp_penalty, None, None, None)
    own = costs.reduce_to_kernel_cost(query.cost, x, y, options)
    by_end = ByEnd(own.x[0], own.y[0], own.options.warp_penalty, own.name)
    value, start = by_end.between(0, len(query.y))
    profile = own.value(value)
    found = greedy.take(by_end, query.k, value, start)
    return [(own.value(number), begin, end) for number, begin, end in found], profile


def _windows(query, is_silent):
    """The same of z-normalised windows."""
    n, m = len(query.x), len(query.y)
    profile = torch.full((m,), torch.inf, dtype=torch.float64, device="cpu")
    if n > m:
        return [], profile
    profile[n - 1 :] = windows.values(query, is_silent)
    return greedy.windows(Smallest(profile[n - 1 :]), query.k, n), profile
