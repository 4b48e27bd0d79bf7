// The strips of a pair, one after the other in one emulated warp, for test_emulation.py.
#include <type_traits>
#include <vector>

inline bool is_patient = false;    // whether engines go on with pairs for which the extended range would be faster
inline int stages_left_out = 0;    // so far, by the extended range's backward pass
inline int linear_steps_done = 0;  // up to the last look of the linear domain's that let a pair go on

#include "cuda/kernels/banded/banded_backward.cuh"
#include "cuda/kernels/banded/banded_forward.cuh"
#include "cuda/kernels/bidirectional/bidirectional.cuh"
#include "cuda/kernels/extended_range/engines.cuh"
#include "cuda/kernels/hard/paths/ring_walk.cuh"
#include "cuda/kernels/hard/rings/hard_ring.cuh"
#include "cuda/kernels/integer_log2/integer_log2_backward.cuh"
#include "cuda/kernels/integer_log2/integer_log2_forward.cuh"
#include "cuda/kernels/linear_domain/linear_domain_backward.cuh"
#include "cuda/kernels/linear_domain/linear_domain_forward.cuh"

namespace softdtw {
namespace {

// What a test hands over: series of one dimension, or a cost matrix where `costs` is not null.
template <typename T>
struct Pair {
  const T *x, *y, *costs;
  int64_t n, m;
  double gamma, warp_penalty;
  int64_t bandwidth;
  T *value, *dx, *dy, *alignment;  // null but for the value: nothing is kept for backward, which is left out
};

template <typename T>
Problem<T> problem_of(const Pair<T>& pair) {
  Problem<T> problem;
  problem.cost = pair.costs != nullptr ? Cost::kMatrix : Cost::kSqEuclidean;
  problem.x = {pair.x, pair.n, 1, 1};
  problem.y = {pair.y, pair.m, 1, 1};
  problem.cost_matrix = {pair.costs, pair.n * pair.m, pair.m, 1};
  problem.batch = 1;
  problem.n = pair.n;
  problem.m = pair.m;
  problem.dim = 1;
  problem.gamma = pair.gamma;
  problem.scale = 1 / (pair.gamma * kLn2);
  problem.warp_penalty = pair.warp_penalty;
  problem.bandwidth = pair.bandwidth;
  return problem;
}

template <typename T>
Gradient<T> gradient_of(const Pair<T>& pair) {
  static const T one = 1;
  Gradient<T> gradient;
  gradient.value = pair.value;
  gradient.grad_value = &one;
  gradient.x = {pair.dx, pair.n, 1, 1};
  gradient.y = {pair.dy, pair.m, 1, 1};
  gradient.cost = {pair.alignment, pair.n * pair.m, pair.m, 1};
  return gradient;
}

// By 32 lanes.
void in_a_warp(std::function<void()> kernel) {
  emulation::machine().run(1, emulation::kLanes, emulation::kSharedBytes / 2, std::move(kernel));
  if (emulation::machine().failure().empty()) return;
  std::fputs(emulation::machine().failure().c_str(), stderr);
  std::abort();
}

std::vector<double> memory_of(int64_t bytes) { return std::vector<double>(bytes / sizeof(double) + 8, -7e77); }

template <class Engine, typename T>
int64_t flow_bytes(const Problem<T>& problem) {
  return sizeof(T) * Engine::Upwards::scalars(1, Sizes<typename Engine::S>(problem), 1);
}

template <class Engine>
bool run(const Pair<typename Engine::T>& pair) {
  using T = typename Engine::T;
  using S = typename Engine::S;
  using Kept = typename Engine::Kept;
  const bool keeps = pair.dx != nullptr || pair.alignment != nullptr;
  const Problem<T> problem = problem_of(pair);
  const Extent extent = problem.extent(0);
  const Sizes<S> sizes(problem);
  const int64_t kept_bytes = keeps ? Kept::bytes_of_pair(sizes) : 0;
  std::vector<double> memory = memory_of(kept_bytes), row = memory_of(Edges<S>::bytes_of_rows(1, sizes.groups)),
                      flowing = memory_of(flow_bytes<Engine>(problem));
  const Kept kept = keeps ? Kept(memory.data(), sizes, kept_bytes) : Kept();
  const int strips = strips_of<S>(extent);
  for (int strip = 0; strip < strips; ++strip) {
    ForwardStrip<S> job;
    job.pair = 0;
    job.strip = strip;
    job.edges = keeps ? kept.edges : Edges<S>::rows(row.data(), sizes.groups);
    in_a_warp([&] { Engine::forward(problem, extent, job, kept, pair.value); });
  }
  if (!keeps) return true;

  const typename Engine::Upwards flows(flowing.data(), 1, sizes);
  const Gradient<T> gradient = gradient_of(pair);
  for (int strip = strips - 1; strip >= 0; --strip) {
    BackwardStrip job;
    job.pair = job.row = 0;
    job.strip = strip;
    in_a_warp([&] { Engine::backward(problem, gradient, extent, job, kept, flows); });
  }
  return true;
}

enum class ShortPairKind { kLinear, kWindow, kIntegerLog2, kLog2Window };

int window_failures = 0;

// As linear_domain.cu has it, of one of the engines. T is float for integer log2 and for windows.
template <class Options, typename T, int kRows, ShortPairKind kKind>
bool run_short_pair_with(const Problem<T>& problem, const ShortPairLayout& layout, const Pair<T>& pair) {
  constexpr bool kIsSteep = kKind == ShortPairKind::kIntegerLog2 || kKind == ShortPairKind::kLog2Window;
  using Table = std::conditional_t<kIsSteep, Log2Table<kRows>, LinearTable<T, kRows>>;
  const bool keeps = pair.dx != nullptr;
  const int64_t stride = layout.template bytes_of_pair<T>();
  std::vector<double> memory = memory_of(keeps ? stride : 0),
                      shared = memory_of(sizeof(Table) + std::max(2, kWarp / layout.lanes) * layout.window() * sizeof(T));
  char* const kept = keeps ? reinterpret_cast<char*>(memory.data()) : nullptr;
  T* const window = reinterpret_cast<T*>(shared.data());
  PairStatus status = PairStatus::kGivenUp;
  linear_steps_done = 0;
  in_a_warp([&] {
    const int64_t own = static_cast<int>(threadIdx.x) < layout.lanes ? 0 : -1;
    PairStatus then;
    [[maybe_unused]] bool is_tried = false;
    if constexpr (kIsSteep)
      then = log2_forward<kRows, Options>(problem, layout, own, window, pair.value, kept, stride);
    else
      then = linear_forward<T, kRows, Options>(problem, layout, own, window, pair.value, kept, stride, false, is_tried);
    if (threadIdx.x == 0) status = then;
  });
  if (status == PairStatus::kGivenUp || !keeps) return status != PairStatus::kGivenUp;
  const Gradient<T> gradient = gradient_of(pair);
  char* const table = reinterpret_cast<char*>(shared.data());
  bool failed = false;
  in_a_warp([&] {
    using Engine = std::conditional_t<kIsSteep, Log2Backward<kRows, Options>, LinearBackward<T, kRows, Options>>;
    if constexpr (kKind == ShortPairKind::kLog2Window || kKind == ShortPairKind::kWindow)
      failed = short_pair_window_backward<Engine>(
          problem, gradient, layout, static_cast<int>(threadIdx.x) < ShortPairLayout::kWindow ? 0 : -1, table, kept,
          stride);
    else
      short_pair_backward<Engine, typename Engine::Pair>(
          problem, gradient, layout, static_cast<int>(threadIdx.x) < layout.lanes ? 0 : -1, table, kept, stride);
  });
  window_failures += failed;
  return true;
}

template <typename T, int kRows, ShortPairKind kKind>
bool run_short_pair_of(const Problem<T>& problem, const ShortPairLayout& layout, const Pair<T>& pair) {
  using WithPenalty = ShortPairOptions<SquaredDifference, true>;
  return pair.warp_penalty != 0 ? run_short_pair_with<WithPenalty, T, kRows, kKind>(problem, layout, pair)
                                : run_short_pair_with<PlainOptions, T, kRows, kKind>(problem, layout, pair);
}

template <typename T, ShortPairKind kKind = ShortPairKind::kLinear>
bool run_short_pair(const Pair<T>& pair, int lanes) {
  const Problem<T> problem = problem_of(pair);
  ShortPairLayout layout(pair.n, pair.m, lanes, false);
  if constexpr (kKind == ShortPairKind::kWindow || kKind == ShortPairKind::kLog2Window) {
    layout.rows = ShortPairLayout::kMostRows;
    layout.has_windows = true;
    return run_short_pair_of<T, ShortPairLayout::kMostRows, kKind>(problem, layout, pair);
  } else {
    switch (layout.rows) {
      case 4:
        return run_short_pair_of<T, 4, kKind>(problem, layout, pair);
      case 8:
        return run_short_pair_of<T, 8, kKind>(problem, layout, pair);
      case 12:
        return run_short_pair_of<T, 12, kKind>(problem, layout, pair);
      case 16:
        return run_short_pair_of<T, 16, kKind>(problem, layout, pair);
    }
    return false;
  }
}

// As banded.cu has it.
template <int kRows>
bool run_ring_of(const Pair<float>& pair, int lanes) {
  const Problem<float> problem = problem_of(pair);
  const RingLayout layout(pair.n, pair.m, Ring{kRows, lanes});
  const bool keeps = pair.dx != nullptr;
  const int64_t stride = layout.bytes_of_pair();
  std::vector<double> memory = memory_of(keeps ? stride : 0),
                      shared =
                          memory_of(sizeof(RingTable<kRows>) + layout.pairs() * layout.floats_of_pair() * sizeof(float));
  char* const kept = keeps ? reinterpret_cast<char*>(memory.data()) : nullptr;
  PairStatus status = PairStatus::kGivenUp;
  in_a_warp([&] {
    if (banded_forward<kRows>(problem, layout, 0, reinterpret_cast<float*>(shared.data()), pair.value, kept, stride) &&
        threadIdx.x == 0)
      status = PairStatus::kLinearDomain;
  });
  if (status == PairStatus::kGivenUp || !keeps) return status != PairStatus::kGivenUp;
  const Gradient<float> gradient = gradient_of(pair);
  in_a_warp([&] {
    banded_backward<kRows>(problem, gradient, layout, 0, reinterpret_cast<char*>(shared.data()), kept, stride, &status);
  });
  return true;
}

// As hard_banded.cu has it, but for its two warps: one side after the other. Where a path is wanted, dx gets 4096 first + last of
// every row's span.
template <int kRows, bool kTwoSides, class Steps>
bool run_hard_ring_of(const Pair<float>& pair, int lanes) {
  using Series = HardNumbers<kRows, HardSquared>;
  const Problem<float> problem = problem_of(pair);
  const HardRingLayout layout(pair.n, pair.m, HardRing{Ring{kRows, lanes}, 1 + kTwoSides}, Series::floats_of);
  std::vector<double> meets[2], series[2];
  std::vector<RowSteps> steps(words_of_steps(layout) * lanes * kRows, RowSteps{0x2f1b9d43u, 0xd18e6a35u});
  std::vector<RowSteps> words(ring_walk_bytes(kRows) / sizeof(RowSteps));
  bool fits = false;
  for (const int side : {1, 0}) {
    meets[side].assign(layout.columns_that_meet() + 1, INFINITY);
    series[side] = memory_of(layout.pairs() * layout.floats_of_series * sizeof(float));
    if (side == 1 && !kTwoSides) continue;
    in_a_warp([&] {
      const bool has_pair = static_cast<int>(threadIdx.x) < lanes;
      HardRingSide<Series, true, kTwoSides, Problem<float>, Steps> ring(problem, layout, 0, has_pair, side == 1);
      if (!__any_sync(kAllLanes, ring.band.fits)) return;
      float* const own = reinterpret_cast<float*>(series[side].data()) + threadIdx.x / lanes * layout.floats_of_series;
      ring.read_series(layout, own);
      double last = ring.sweep(meets[side].data(), steps.data());
      if (kTwoSides && side == 0) last = ring.meeting(meets[0].data(), meets[1].data());
      if (kTwoSides ? side == 0 && threadIdx.x == 0 : ring.holds_last_cell()) {
        *pair.value = static_cast<float>(last);
        fits = true;
      }
      if constexpr (!std::is_same_v<Steps, NoSteps>) {
        const auto visit = [&](int row, int first, int last) {
          if (row >= 0) pair.dx[row] = 4096 * first + last;
        };
        RingWalk<kRows>(ring.band, steps.data(), words.data(), has_pair).walk(visit);
      }
    });
  }
  return fits;
}
// Walks back over given words of steps, whatever they hold: dx gets what it has of every row, as above, dy how often it came there.
template <int kRows>
void run_walk(const Pair<float>& pair, int lanes, const unsigned* given) {
  const Problem<float> problem = problem_of(pair);
  const RingLayout layout(pair.n, pair.m, Ring{kRows, lanes});
  std::vector<RowSteps> steps(words_of_steps(layout) * lanes * kRows), words(ring_walk_bytes(kRows) / sizeof(RowSteps));
  for (RowSteps& row : steps) row = {*given++ | RingSteps<kRows>::kBeyond, *given++ | RingSteps<kRows>::kBeyond};
  in_a_warp([&] {
    const bool has_pair = static_cast<int>(threadIdx.x) < lanes;
    const RingBand<kRows> band(layout, problem.extent(0), has_pair);
    RingWalk<kRows>(band, steps.data(), words.data(), has_pair).walk([&](int row, int first, int last) {
      if (row >= 0) pair.dx[row] = 4096 * first + last, pair.dy[row] += 1;
    });
  });
}
template <int kRows>
bool run_hard_ring(const Pair<float>& pair, int lanes, int sides) {
  if (sides == 2) return run_hard_ring_of<kRows, true, NoSteps>(pair, lanes);
  return pair.dx != nullptr ? run_hard_ring_of<kRows, false, RingSteps<kRows>>(pair, lanes)
                            : run_hard_ring_of<kRows, false, NoSteps>(pair, lanes);
}

template <int kRows>
using OfSeries = UnivariateTile<Shape<float, kRows>>;

}  // namespace
}  // namespace softdtw

using namespace softdtw;

// A table swept from both its ends; a radius below 0: without a band.
Extent extent_of(int64_t n, int64_t m, int64_t radius) {
  Problem<float> problem;
  problem.batch = 1;
  problem.n = n;
  problem.m = m;
  problem.bandwidth = radius;
  return problem.extent(0);
}

// What a pair saves, in bytes.
template <bool kHasBand>
int64_t bidirectional_bytes_of(int64_t n, int64_t m, int64_t radius) {
  return BidirectionalMemory::bytes_of_pair(BidirectionalSizes<kHasBand>(extent_of(n, m, radius)), true);
}

// Whether the sides of such a table meet without a gap, cover it as far as the band goes, get every column that a strip has from the
// strip above, and have room for what they save.
template <bool kHasBand>
bool sides_fit_of(int64_t n, int64_t m, int64_t radius) {
  const Extent extent = extent_of(n, m, radius);
  using OneSide = Side<kHasBand>;
  const OneSide front(extent, false), back(extent, true);
  constexpr int kSteps = BidirectionalShape::kSteps, kRows = BidirectionalShape::kRows,
                kStripRows = BidirectionalShape::kStripRows;
  // Those that a lane meets, as the side counts: the first one and the one behind the last.
  const auto first_column = [](const OneSide& side, int index, int lane) {
    return side.first_column + side.first_chunk(index) * kSteps - lane;
  };
  const auto end_column = [&](const OneSide& side, int index, int lane) {
    return first_column(side, index, lane) + side.chunks(index) * kSteps;
  };
  const auto first_inside = [&](int row) { return std::max(0, row + extent.low); };
  const auto end_inside = [&](int row) { return std::min<int>(m, row + extent.high + 1); };
  for (const OneSide* side : {&front, &back})
    for (int index = 1; side->chunks(index) > 0; ++index) {
      const int row = side->first_row + index * kStripRows - 1;
      const int last = std::min(end_inside(row), end_column(*side, index, 0)) - 1;
      const int from = side->first_chunk(index - 1);
      if (from > side->first_chunk(index) || side->chunks(index - 1) == 0) return false;
      if (last >= first_inside(row) && (last - side->first_column) / kSteps >= from + side->groups(index - 1)) return false;
    }
  for (int strip = 0; strip < front.sizes.strips; ++strip) {
    const int of_back = back.strip_of(strip), chunks = front.chunks(strip) + back.chunks(of_back);
    if (chunks > front.sizes.stages() * BidirectionalShape::kStage) return false;
    if (strip > 0 && front.groups(strip - 1) + back.groups(of_back) > front.sizes.groups()) return false;
    const bool has_front = front.chunks(strip) > 0, has_back = back.chunks(of_back) > 0;
    for (int row = strip * kStripRows; row < std::min<int>(n, (strip + 1) * kStripRows); ++row) {
      const int lane = row % kStripRows / kRows, other = kWarp - 1 - lane;
      const int start = has_front ? first_column(front, strip, lane) : m - end_column(back, of_back, other);
      const int end = has_back ? m - first_column(back, of_back, other) : end_column(front, strip, lane);
      if (start > first_inside(row) || end < end_inside(row)) return false;
      if (has_front && has_back && end_column(front, strip, lane) != m - end_column(back, of_back, other)) return false;
    }
  }
  return true;
}

extern "C" {

// Of series alone, but for extended_four.
bool extended_two_ahead(const Pair<float>* pair) { return run<ExtendedRange<Shape<float, 2>, OfSeries<2>, true>>(*pair); }
bool extended_four(const Pair<float>* pair) {
  using S = Shape<float, 4>;
  return pair->costs != nullptr ? run<ExtendedRange<S, DenseTile<S>>>(*pair) : run<ExtendedRange<S, OfSeries<4>>>(*pair);
}
bool linear_of_8_lanes(const Pair<float>* pair) { return run_short_pair(*pair, 8); }
bool linear_of_32_lanes(const Pair<float>* pair) { return run_short_pair(*pair, 32); }
bool linear_of_32_lanes_in_windows(const Pair<float>* pair) {
  return run_short_pair<float, ShortPairKind::kWindow>(*pair, 32);
}
bool linear_of_32_lanes_of_float64(const Pair<double>* pair) { return run_short_pair(*pair, 32); }
bool log2_of_8_lanes(const Pair<float>* pair) { return run_short_pair<float, ShortPairKind::kIntegerLog2>(*pair, 8); }
bool log2_of_32_lanes(const Pair<float>* pair) { return run_short_pair<float, ShortPairKind::kIntegerLog2>(*pair, 32); }
bool log2_of_32_lanes_in_windows(const Pair<float>* pair) {
  return run_short_pair<float, ShortPairKind::kLog2Window>(*pair, 32);
}

bool ring(const Pair<float>* pair, int rows, int lanes) {
  return rows == 4 ? run_ring_of<4>(*pair, lanes) : rows == 6 ? run_ring_of<6>(*pair, lanes) : run_ring_of<8>(*pair, lanes);
}

bool hard_ring(const Pair<float>* pair, int rows, int lanes, int sides) {
  return rows == 4   ? run_hard_ring<4>(*pair, lanes, sides)
         : rows == 6 ? run_hard_ring<6>(*pair, lanes, sides)
         : rows == 8 ? run_hard_ring<8>(*pair, lanes, sides)
                     : run_hard_ring<kRowsOfFewPairs>(*pair, lanes, sides);
}

void walk(const Pair<float>* pair, int rows, int lanes, const unsigned* given) {
  rows == 4   ? run_walk<4>(*pair, lanes, given)
  : rows == 6 ? run_walk<6>(*pair, lanes, given)
  : rows == 8 ? run_walk<8>(*pair, lanes, given)
              : run_walk<kRowsOfFewPairs>(*pair, lanes, given);
}

// Of tables swept from both their ends, and of a radius below 0: in kernels that know of no band.
int64_t bidirectional_bytes(int64_t n, int64_t m, int64_t radius) {
  return radius < 0 ? bidirectional_bytes_of<false>(n, m, radius) : bidirectional_bytes_of<true>(n, m, radius);
}
bool sides_fit(int64_t n, int64_t m, int64_t radius) {
  return sides_fit_of<true>(n, m, radius) && (radius >= 0 || sides_fit_of<false>(n, m, radius));
}

// Pairs whose gradients a window has not computed, so far.
int failures_of_windows() { return window_failures; }

int left_out() { return stages_left_out; }

double exp2_of_fraction(double fraction) { return DeviceMath<double>::exp2_of_fraction(fraction); }

int linear_steps() { return linear_steps_done; }

void set_patient(bool patient) { is_patient = patient; }

}  // extern "C"
