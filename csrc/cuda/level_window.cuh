// One warp computes two pairs' gradients with the level engine where E counts, and nowhere else: in a window of 16 of a pair's 32
// lanes, which follows E from the last cell to the first.
//
// A window stands at lane 16, 12, 8, 4 or 0 of the pair, its `first` lane, and moves up by four lanes between two chunks once next to
// no E is left in its four last lanes. What it does not see is E that it leaves behind there, and E that flows up from its first
// row; both are measured, and a pair where they may come to more than 2^-18 in all is done again by level_backward(). Entries of
// the row above the window, which the rebuilt ones come from, have been kept.
//
// A lane of the pair has the lane of the window that is its number modulo 16, so a move concerns only lanes that it takes from the
// lower end to the upper one.
#pragma once

#include "level_backward.cuh"

namespace softdtw {

constexpr float kMostLeftBehind = 1.0f / (1 << 23);  // in a lane, in a move: there are four moves of four lanes
constexpr float kMostLost = 1.0f / (1 << 21);        // out of a first row, of which there are four

template <int kRows_>
struct LevelWindow {
  static constexpr int kRows = kRows_, kSteps = LevelLayout::kSteps, kAhead = LevelLayout::kAhead;
  static constexpr int kLanes = LevelLayout::kWindow, kStep = LevelLayout::kWindowStep, kPairs = kWarp / kLanes;
  const Problem<float>& problem;
  const int64_t pair;
  Extent extent;
  float x[kRows], factor, origin, deepest;
  float* columns;   // of y, with what is read ahead at either end
  int first, lane;  // of the pair
  int end_lane, end_step, end_chunk, chunks;
  double edge = 0;  // what the row above the window has

  __device__ LevelWindow(
      const Problem<float>& problem_, const LevelLayout& layout, int64_t pair_, bool wanted, float* memory)
      : problem(problem_), pair(pair_), extent(problem.extent(pair)) {
    if (!extent.valid()) extent.n = extent.m = 1;
    end_lane = (extent.n - 1) / kRows;
    end_step = extent.m - 1 + end_lane;
    end_chunk = wanted ? end_step / kSteps : -1;
    chunks = max(end_chunk, __shfl_xor_sync(kAllLanes, end_chunk, kLanes)) + 1;
    first = end_lane < kLanes ? 0 : (end_lane - kLanes) / kStep * kStep + kStep;
    lane = first + ((static_cast<int>(threadIdx.x) - first) & (kLanes - 1));

    const View<const float> rows = problem.x.pair(pair), line = problem.y.pair(pair);
    origin = line.data[0];
    factor = static_cast<float>(sqrt(problem.scale_of(pair)));
    float lowest = 0, highest = 0, y_lowest = 0, y_highest = 0;
    for (int i = threadIdx.x % kLanes; i < extent.n; i += kLanes) {
      const float own = (rows.data[i * rows.row_stride] - origin) * factor;
      lowest = fminf(lowest, own);
      highest = fmaxf(highest, own);
    }
    float* const own = memory + threadIdx.x / kLanes * layout.window();
    for (int i = threadIdx.x % kLanes; i < kWarp - 1 + kSteps * chunks + 2 * kAhead; i += kLanes) {
      const float y = (line.data[min(max(i - (kWarp - 1 + kAhead), 0), extent.m - 1) * line.row_stride] - origin) * factor;
      own[i] = y;
      y_lowest = fminf(y_lowest, y);
      y_highest = fmaxf(y_highest, y);
    }
    columns = own + kWarp - 1 + kAhead;
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      lowest = fminf(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, distance));
      y_lowest = fminf(y_lowest, __shfl_xor_sync(kAllLanes, y_lowest, distance));
      y_highest = fmaxf(y_highest, __shfl_xor_sync(kAllLanes, y_highest, distance));
    }
    const float widest = fmaxf(highest - y_lowest, y_highest - lowest);
    deepest = wanted ? widest * widest : 0;
    read_rows();
    __syncwarp();
  }
  __device__ __forceinline__ void read_rows() {
    const View<const float> rows = problem.x.pair(pair);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      x[k] = (rows.data[min(lane * kRows + k, extent.n - 1) * rows.row_stride] - origin) * factor;
  }
  // y at the lane's columns: of step t at t.
  __device__ __forceinline__ const float* window() const { return columns - lane; }
  __device__ __forceinline__ bool is_first_lane() const { return lane == first; }
  __device__ __forceinline__ bool is_last_lane() const { return lane == first + kLanes - 1; }
  // Whether the lane is one that the next move leaves behind.
  __device__ __forceinline__ bool is_leaving() const { return lane >= first + kLanes - kStep; }
  __device__ __forceinline__ int of_window(int i) const { return (threadIdx.x & ~(kLanes - 1)) | (i & (kLanes - 1)); }
  // As LevelPair has them.
  __device__ __forceinline__ double from_above(double a) const {
    const double above = shuffle_from(a, of_window(threadIdx.x - 1));
    return is_first_lane() ? edge : above;
  }
  __device__ __forceinline__ double from_below(double a) const {
    const double below = shuffle_from(a, of_window(threadIdx.x + 1));
    return is_last_lane() ? 0 : below;
  }
  __device__ __forceinline__ float from_below(float a) const {
    const float below = __shfl_sync(kAllLanes, a, of_window(threadIdx.x + 1));
    return is_last_lane() ? 0 : below;
  }
  __device__ __forceinline__ static bool any_of_pair(bool vote) {
    return (__ballot_sync(kAllLanes, vote) >> (threadIdx.x & ~(kLanes - 1)) & 0xffffu) != 0;
  }

 private:
  __device__ __forceinline__ static double shuffle_from(double a, int lane) {
    return __hiloint2double(
        __shfl_sync(kAllLanes, __double2hiint(a), lane), __shfl_sync(kAllLanes, __double2loint(a), lane));
  }
};

// Of the pairs whose end_chunk is not below 0. Returns whether the lane's has been done.
template <class Weight, int kRows>
__device__ __forceinline__ bool level_window_back(
    LevelWindow<kRows>& window, const LevelLayout& layout, LevelTable<float, kRows>& table, const int* kept, float scale,
    float* dx, float* dy) {
  using Window = LevelWindow<kRows>;
  using Numbers = LevelNumbers<float>;
  constexpr int kSteps = LevelLayout::kSteps, kWords = kRows + 1;
  LevelFlow<float, kRows> flow;
  float lost = 0;
  int written = window.extent.m;  // columns of dy from which on they are
  int words[kWords], edge_word;
  // Of chunks that the pair does not have, entries of 0.
  const auto fetch = [&](int chunk) {
    const bool has_chunk = chunk <= window.end_chunk;
    const int* const from = kept + int64_t{chunk - 1} * kWords * kWarp + window.lane;
#pragma unroll
    for (int k = 0; k < kWords; ++k) words[k] = has_chunk && chunk > 0 ? __ldcs(from + k * kWarp) : 0;
    // The step of the chunk that is the lane's number in the window, of the row above the window.
    const int* const edge =
        kept + layout.first_edge<float>() + (int64_t{window.first / Window::kStep - 1} * layout.chunks + chunk) * kSteps;
    edge_word = has_chunk && window.first > 0 ? __ldcs(edge + threadIdx.x % kSteps) : 0;
  };
  const auto leave_rows = [&] {
    if (dx == nullptr) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (window.lane * kRows + k < window.extent.n) dx[window.lane * kRows + k] = flow.rows[k] * scale;
  };
  fetch(window.chunks - 1);
  for (int chunk = window.chunks - 1; chunk >= 0; --chunk) {
    LevelState<float, kRows> state;
    state.take(words);
    if (chunk == 0) state.start(window.lane == 0);
    const int edges = edge_word;
    const auto edge_at = [&](int t) { return Numbers::of_word(__shfl_sync(kAllLanes, edges, window.of_window(t))); };
    if (chunk > 0) fetch(chunk - 1);
    {
      ColumnsAhead<float, 1> columns(window.window() + chunk * kSteps);
      LevelWeights<Weight> weights(window, columns);
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t) {
        window.edge = edge_at(t);
        state.template step<false>(window, weights, columns);
        columns.move();
        table.store(t, state.left);
      }
    }
    ColumnsAhead<float, -1> columns(window.window() + chunk * kSteps + kSteps - 1);
    LevelWeights<Weight> weights(window, columns);
    const bool ends_here = chunk == window.end_chunk && window.lane == window.end_lane;
    const int end = ends_here ? window.end_step - chunk * kSteps : -1, first_column = chunk * kSteps - window.lane;
    const int end_row = (window.extent.n - 1) % kRows;
    const auto step_back = [&](int t, auto may_end) {
      double entries[kRows];
      table.load(t, entries);
      const double before = flow.right[0];
      const float mass = flow.template step<may_end()>(window, weights, columns, entries, t == end ? end_row : -1);
      columns.move();
      // What flows up from the window, into the row above it: E of one step up, and of one to the upper left.
      const float out = Numbers::product(edge_at(t), fma(before, kDiagonal, flow.right[0]));
      const int column = first_column + t;
      if (window.is_first_lane()) {
        lost += window.first > 0 ? out : 0;
        if (dy != nullptr && column >= 0 && column < written) dy[column] = flow.column * -scale;
      }
      return mass;
    };
    float left_behind = 0;
    if (__any_sync(kAllLanes, ends_here)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t) {
        const float mass = step_back(t, std::true_type());
        if (t < 2) left_behind += mass;
      }
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= 2; --t) step_back(t, std::false_type());
      left_behind = step_back(1, std::false_type());
      left_behind += step_back(0, std::false_type());
    }
    // All E that is still to flow on passes the last column, or the one before it, of a lane.
    const bool must_stay = !(left_behind <= kMostLeftBehind) && window.is_leaving();
    const bool stays = window.any_of_pair(must_stay) || window.first == 0 || chunk > window.end_chunk;
    if (!stays) {
      written = min(written, chunk * kSteps - window.first);
      window.first -= Window::kStep;
      if (window.lane >= window.first + Window::kLanes) {
        leave_rows();
        flow = LevelFlow<float, kRows>();
        window.lane -= Window::kLanes;
        window.read_rows();
      }
      if (chunk > 0) fetch(chunk - 1);
    }
    const bool has_failed = window.any_of_pair(!(lost <= kMostLost));
    if (__all_sync(kAllLanes, has_failed || window.end_chunk < 0)) break;
  }
  leave_rows();
  const bool failed = !(lost <= kMostLost) || window.first > 0;
  return !window.any_of_pair(failed);
}

// Returns the lanes of pairs that a window did not do.
template <int kRows>
__device__ unsigned level_window_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const LevelLayout& layout, int64_t first_pair,
    char* memory, const char* saved, int64_t stride, const Verdict* verdicts) {
  using Window = LevelWindow<kRows>;
  using Numbers = LevelNumbers<float>;
  using Table = LevelTable<float, kRows>;
  const int64_t own = first_pair + threadIdx.x / Window::kLanes, pair = min(own, problem.batch - 1);
  const bool accepted = own < problem.batch && verdicts[pair] == Verdict::kAccepted;
  if (!__any_sync(kAllLanes, accepted)) return 0;
  bool done;
  {
    Table& table = *reinterpret_cast<Table*>(memory);
    Window window(problem, layout, pair, accepted, reinterpret_cast<float*>(memory + sizeof(Table)));
    float* const dx = gradient.x.data == nullptr || !accepted ? nullptr : gradient.x.pair(pair).data;
    float* const dy = gradient.y.data == nullptr || !accepted ? nullptr : gradient.y.pair(pair).data;
    const int* const kept = reinterpret_cast<const int*>(saved + pair * stride);
    const float scale = gradient_scale(problem, gradient, pair) / window.factor;
    const bool is_shallow = __all_sync(kAllLanes, window.deepest <= Numbers::Shallow::kDeepest);
    done = is_shallow ? level_window_back<typename Numbers::Shallow>(window, layout, table, kept, scale, dx, dy)
                      : level_window_back<typename Numbers::Deep>(window, layout, table, kept, scale, dx, dy);
  }
  const unsigned failed = __ballot_sync(kAllLanes, accepted && !done);
  for (int i = 0; i < Window::kPairs; ++i) {
    if ((failed >> i * Window::kLanes & 1) == 0) continue;
    __syncwarp();
    level_backward<float, kRows>(problem, gradient, layout, first_pair + i, memory, saved, stride, verdicts);
  }
  return failed;
}

}  // namespace softdtw
