// What a warp of the linear engine (linear.cuh) keeps of a chunk in shared memory, and what reads and writes it there.
#pragma once

#include "linear_costs.cuh"
#include "linear_memory.cuh"
#include "strip_job.cuh"

namespace softdtw {

// What forward keeps of a chunk in shared memory: the state before it, but for units, to sweep it again.
template <class S, bool kUnivariate>
struct LinearForwardStage : LinearStage<S, kUnivariate> {
  using T = typename S::Scalar;
  T before[S::kRows + 1][kWarp];

  __device__ __forceinline__ void keep(const LinearLane<S>& state, int lane) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) before[k][lane] = state.left[k];
    before[S::kRows][lane] = state.diag;
  }
  __device__ __forceinline__ void restore(LinearLane<S>& state, int lane) const {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) state.left[k] = before[k][lane];
    state.diag = before[S::kRows][lane];
  }
};

// What backward keeps of a chunk in shared memory.
template <class S, bool kUnivariate>
struct LinearBackwardStage : LinearStage<S, kUnivariate> {
  using T = typename S::Scalar;
  using Word = typename LinearSnapshot<S>::Word;
  static constexpr int kPerAccess =
      16 / sizeof(Word) < S::kRows ? 16 / sizeof(Word) : S::kRows;  // words a lane moves at once
  static constexpr int kUnits = LinearSnapshot<S>::kHalf ? 1 : S::kRows;
  struct alignas(sizeof(Word) * kPerAccess) Words {
    Word of[kPerAccess];
  };
  Words table[S::kSteps][S::kRows / kPerAccess][kWarp];  // every cell's entry, and E in its place
  int lane_units[S::kSteps * kUnits][kWarp];             // of the entries: of a row, or, after a careful sweep, of a column
  T from_below[S::kSteps];                               // lane 31: sums of dy that the strip below leaves

  // What a word stands for, as KeptColumn keeps it.
  template <typename Number>
  __device__ __forceinline__ static Number number(Word word) {
    if constexpr (sizeof(Word) == sizeof(double))
      return word;
    else if constexpr (sizeof(Number) == sizeof(float))
      return __int_as_float(word);
    else
      return __hiloint2double(word, 0);
  }
  __device__ __forceinline__ void store(int t, int lane, const Word (&words)[S::kRows]) {
#pragma unroll
    for (int k = 0; k < S::kRows; k += kPerAccess) {
      Words packed;
#pragma unroll
      for (int i = 0; i < kPerAccess; ++i) packed.of[i] = words[k + i];
      table[t][k / kPerAccess][lane] = packed;
    }
  }
  __device__ __forceinline__ void load(int t, int lane, Word (&words)[S::kRows]) const {
#pragma unroll
    for (int k = 0; k < S::kRows; k += kPerAccess) {
      const Words packed = table[t][k / kPerAccess][lane];
#pragma unroll
      for (int i = 0; i < kPerAccess; ++i) words[k + i] = packed.of[i];
    }
  }
  // Whether r of the row below in the columns to the right, which is in the units of this chunk's, loses nothing that matters to
  // the lane's last row: that is, whether what the row hands down there is within the range.
  template <typename Number>
  __device__ __forceinline__ bool can_meet(Number factor_below, int lane) const {
    constexpr int kLast = S::kRows / kPerAccess - 1, kRow = kPerAccess - 1;
    const Number handed =
        max(number<Number>(table[S::kSteps - 2][kLast][lane].of[kRow]),
            number<Number>(table[S::kSteps - 1][kLast][lane].of[kRow]));
    return handed * factor_below < Number(INFINITY);
  }
  __device__ __forceinline__ void keep_units(const int (&units)[S::kRows], int lane) {
    static_assert(S::kRows <= S::kSteps * kUnits);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) lane_units[k][lane] = units[k];
  }
  __device__ __forceinline__ void load_units(int (&units)[S::kRows], int lane) const {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) units[k] = lane_units[k][lane];
  }
  // Turns what a plain sweep has kept into what a wide one would have.
  __device__ __forceinline__ void widen_table(int lane) {
    if constexpr (LinearSnapshot<S>::kHalf) {
#pragma unroll 1
      for (int t = 0; t < S::kSteps; ++t) {
        Word words[S::kRows];
        load(t, lane, words);
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) words[k] = __double2hiint(number<float>(words[k]));
        store(t, lane, words);
      }
    }
  }
};

template <class Stage>
__device__ __forceinline__ Stage& stage_of_warp() {
  return *reinterpret_cast<Stage*>(stage_memory + threadIdx.y * sizeof(Stage));
}

// Keeps the entries of a column, for sweep_linear.
template <class S, class Stage>
struct KeptColumn {
  Stage& stage;
  const int t, lane;
  typename LinearSnapshot<S>::Word words[S::kRows] = {};

  template <typename Number>
  __device__ __forceinline__ void operator()(int k, Number a) {
    if constexpr (!LinearSnapshot<S>::kHalf)
      words[k] = a;
    else
      words[k] = Range<Number>::word(a);  // of a float64 its upper half
    if (k == S::kRows - 1) stage.store(t, lane, words);
  }
};

// And for sweep_linear_carefully, relative to the largest of them.
template <class S, class Stage>
struct KeptWideColumn {
  Stage& stage;
  const int t, lane;
  Wide entries[S::kRows] = {};

  __device__ __forceinline__ void operator()(int k, const Wide& a) {
    entries[k] = a;
    if (k < S::kRows - 1) return;
    typename LinearSnapshot<S>::Word words[S::kRows];
    if constexpr (LinearSnapshot<S>::kHalf) {
      int base = kNoExponent;
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) base = max(base, entries[i].e);
#pragma unroll
      for (int i = 0; i < S::kRows; ++i)  // farther apart are only entries beyond the table
        words[i] = PackedNumber::of(
            base - entries[i].e <= kFarthestUnits ? entries[i].a : 0, entries[i].e, base, PackedNumber::kLeastBits);
      stage.lane_units[t][lane] = base;
    } else {
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) {
        words[i] = entries[i].a;
        stage.lane_units[t * S::kRows + i][lane] = entries[i].e;
      }
    }
    stage.store(t, lane, words);
  }
};

// What a column of a reversed sweep meets, for sweep_linear_reversed: its entries, and E in their place.
template <class S, class Stage>
struct TableVisitor {
  Stage& stage;
  const int t, lane;
  typename LinearSnapshot<S>::Word words[S::kRows];

  __device__ __forceinline__ TableVisitor(Stage& stage_, int t_, int lane_) : stage(stage_), t(t_), lane(lane_) {
    stage.load(t, lane, words);
  }
  // As KeptColumn keeps it.
  template <typename Number>
  __device__ __forceinline__ Number a(int k) const {
    return stage.template number<Number>(words[k]);
  }
  // As KeptWideColumn does.
  __device__ __forceinline__ Wide careful_a(int k) const {
    if constexpr (LinearSnapshot<S>::kHalf)
      return PackedNumber::unpack(words[k], stage.lane_units[t][lane], PackedNumber::kLeastBits);
    else
      return Wide{words[k], stage.lane_units[t * S::kRows + k][lane]};
  }
  __device__ __forceinline__ void cell(int k, double e) {
    if constexpr (LinearSnapshot<S>::kHalf)
      words[k] = __float_as_int(narrow(e));
    else
      words[k] = e;
  }
  __device__ __forceinline__ void end() { stage.store(t, lane, words); }
};

}  // namespace softdtw
