// The pairs of a banded call (banded.cu) in integer log2, by the same rings: those that the linear domain has given up, or all.
#include "cuda/kernels/banded/banded.h"
#include "cuda/kernels/banded/ring_launch.cuh"
#include "log2_ring.cuh"

namespace softdtw {
namespace {

// Warps of a multiprocessor that registers are given out for.
constexpr int kForwardWarps = 20, kBackwardWarps = 12;

extern __shared__ int4 log2_ring_memory[];

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
  using Pair = Log2RingPair<kRows, Options>;
  using Format = Log2Ring<Pair>;
  using Table = typename Format::Table;
  const int64_t own = Pair::number(layout, first_pair_of_block(layout));
  const bool accepted = own < problem.batch && statuses[own] == PairStatus::kIntegerLog2;
  Table& table = *reinterpret_cast<Table*>(log2_ring_memory);
  ring_gradients<Pair>(
      problem, gradient, layout, own, accepted, reinterpret_cast<float*>(&table + 1), saved, stride,
      [&](Pair& pair, const int* kept, const auto& out) { ring_backward<Format>(pair, layout, table, kept, out); });
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
        banded_log2_backward_kernel<rows(), Options>, problem, layout,
        sizeof(typename Log2Ring<Log2RingPair<rows(), Options>>::Table), stream, problem, gradient, layout, saved, stride,
        statuses);
  });
}

}  // namespace softdtw
