// The pairs of a banded call (banded.cu) in integer log2, by the same rings: those that the linear domain has given up, or all.
#include "banded.h"
#include "cuda/hardware/launch.cuh"
#include "cuda/numbers/extended_range_state.cuh"
#include "log2_ring.cuh"

namespace softdtw {
namespace {

// Warps of a multiprocessor that registers are given out for.
constexpr int kForwardWarps = 20, kBackwardWarps = 12;
constexpr int kLog2GroupsBetweenLooks = 8;

extern __shared__ int4 log2_ring_memory[];

// Returns what has become of the lane's pair.
template <class Pair, int kRows = Pair::kRows>
__device__ __forceinline__ bool log2_ring_forward(
    const Problem<float>& problem, const RingLayout& layout, int64_t own, bool wanted, float* memory, float* value,
    char* saved, int64_t stride) {
  constexpr int kGroups = RingLayout::groups_of_chunk(kRows);
  Pair pair(problem, layout, min(own, problem.batch - 1), wanted);
  char* const kept_of_pair = saved == nullptr || !pair.fits ? nullptr : saved + pair.pair * stride;
  pair.read_series(problem, layout, memory, reinterpret_cast<float*>(kept_of_pair));
  if (!__any_sync(kAllLanes, pair.fits)) return false;
  int* const kept =
      kept_of_pair == nullptr ? nullptr : reinterpret_cast<int*>(kept_of_pair) + layout.words_of_series() + pair.lane;
  pair.take_rows(pair.block(0));
  RingSweep<Pair, Log2RingCells<Pair, false>> sweep(pair, 0);
  auto& state = sweep.cells.state;
  state.start(false);
  bool is_exact = true;
  Entry<float> last = {NAN, NAN};
  int last_reference = 0;
  for (int i = 0; i < pair.most_groups; ++i) {
    if (i > 0) sweep.turn(i);
    sweep.cells.begin_group(pair, i);
    const bool ends = i == pair.groups - 1;
    if (i < pair.groups_with_start() || (i >= pair.fewest_groups - 1 && __any_sync(kAllLanes, ends))) {
      const int end = ends && pair.is_block_of_last_row(i) ? pair.last_step : -1;
      sweep.template group<true>(i, [&](int r) {
        if (r != end) return;
        last = pick(state.left, (pair.extent.n - 1) % kRows);
        last_reference = state.reference;
      });
    } else {
      sweep.template group<false>(i, [](int) {});
    }
    if (i % kGroups == kGroups - 1 || i == pair.most_groups - 1) {
      state.renew(Log2RingStep<Pair>(pair));
      if (i / kGroups <= (pair.groups - 1) / kGroups) is_exact = state.is_exact;
      if (kept != nullptr && i < pair.groups - 1) state.keep(kept + i / kGroups * layout.words_of_chunk(true), pair.lanes);
    }
    if (i % kLog2GroupsBetweenLooks == kLog2GroupsBetweenLooks - 1) {
      const bool is_lost = pair.any_of_pair(!is_exact);
      if (!__any_sync(kAllLanes, pair.fits && i < pair.groups - 1 && !is_lost)) break;
    }
  }
  const int steps = pair.extent.n + pair.extent.m;
  const auto reference = pair.penalty.without_tilt(last_reference, steps);
  const double exponent = reference + last.m - log2(static_cast<double>(last.s));
  // Of the lane with the last cell.
  const bool accepted = pair.fits && !pair.any_of_pair(!is_exact) && last.m < kLog2Most && exponent < INFINITY &&
                        fabs(exponent) >= kLeastOfAStep * steps;
  if (accepted) store_value(problem, pair.pair, reference, last.m, last.s, value);
  return pair.any_of_pair(accepted);
}

// Without options after the linear domain.
template <class Options>
constexpr bool kIsFirst = !std::is_same_v<Options, PlainOptions>;

template <int kRows, class Options>
__global__ void __launch_bounds__(kWarp, kForwardWarps) banded_log2_forward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ RingLayout layout, float* value, char* saved,
    int64_t stride, PairStatus* statuses) {
  const int64_t own = RingBand<kRows>::number(layout, first_pair_of_block(layout));
  const bool wanted = own < problem.batch && (kIsFirst<Options> || statuses[own] == PairStatus::kGivenUp);
  if (!__any_sync(kAllLanes, wanted)) return;
  const bool taken = log2_ring_forward<Log2RingPair<kRows, Options>>(
      problem, layout, own, wanted, reinterpret_cast<float*>(log2_ring_memory), value, saved, stride);
  if (wanted && (kIsFirst<Options> || taken) && threadIdx.x % layout.lanes == 0)
    statuses[own] = taken ? PairStatus::kIntegerLog2 : PairStatus::kGivenUp;
}

template <int kRows, class Options>
__global__ void __launch_bounds__(kWarp, kBackwardWarps) banded_log2_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ RingLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  using Format = Log2Ring<kRows, Options>;
  using Table = typename Format::Table;
  using Pair = typename Format::Pair;
  const int64_t own = Pair::number(layout, first_pair_of_block(layout));
  const bool accepted = own < problem.batch && statuses[own] == PairStatus::kIntegerLog2;
  Table& table = *reinterpret_cast<Table*>(log2_ring_memory);
  ring_gradients<Pair>(
      problem, gradient, layout, own, accepted, reinterpret_cast<float*>(&table + 1), saved, stride,
      [&](Pair& pair, const int* kept, const RingGradient& out) { ring_backward<Format>(pair, layout, table, kept, out); });
}

// Calls f(options, rows) as types.
template <class F>
cudaError_t with_kernel(const Problem<float>& problem, const RingLayout& layout, F&& f) {
  return with_ring_rows(layout.rows, [&](auto rows) {
    return has_linear_rings(call_of(problem, false), current_device()) ? f(PlainOptions(), rows) : f(AnyOptions(), rows);
  });
}

}  // namespace

cudaError_t launch_banded_log2_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream) {
  const RingLayout layout = ring_layout_of(problem);
  return with_kernel(problem, layout, [&](auto options, auto rows) {
    return launch_rings(
        banded_log2_forward_kernel<rows(), decltype(options)>, problem, layout, 0, stream, problem, layout, value, saved,
        stride, statuses);
  });
}

cudaError_t launch_banded_log2_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream) {
  const RingLayout layout = ring_layout_of(problem);
  return with_kernel(problem, layout, [&](auto options, auto rows) {
    using Options = decltype(options);
    return launch_rings(
        banded_log2_backward_kernel<rows(), Options>, problem, layout, sizeof(typename Log2Ring<rows(), Options>::Table),
        stream, problem, gradient, layout, saved, stride, statuses);
  });
}

}  // namespace softdtw
