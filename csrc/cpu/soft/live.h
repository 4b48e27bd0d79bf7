// Which rows of a strip have cells in the table while the wavefront fills the strip, drains from it, or has no rows below.
//
// A strip has four quarters of kSteps rows. In a block of steps that starts at a multiple of kSteps, a quarter is dead if all
// its cells lie outside the table or the band. Dead quarters are always the last ones (on the left, below) or the first ones (on
// the right). They are left out. Those on the left stay unreachable, as they start; they come to life a step before their first
// cell, in which they see what is above that cell's left. Those on the right keep their entries of the last live step, whose
// last row the next quarter reads on: right of the table that matters to no cell of it, and right of the band a quarter has had
// a step without a cell, and is unreachable, before it is dead.

//
// kLiveQuarters, of the file that includes this: so many are live or dead together. With two there are three loops instead of ten.

constexpr int kQuarters = 4;
static_assert(kRows == kQuarters * kSteps, "a quarter becomes live or dead from block to block");

struct Live {
  int begin, end;

  bool all() const { return begin == 0 && end == kQuarters; }
};

// Of the block that `step` belongs to.
template <typename T>
inline Live live_quarters(const Pair<T>& pair, int64_t row, int64_t step) {
  const auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  const int64_t block = step / kSteps, first = block * kSteps;
  // A quarter is kSteps columns from the one above it; its part of the band, twice as many.
  const int64_t in_band = first + kSteps - row - pair.low, beyond = first - row - pair.high, past = first - pair.m + 1;
  const int64_t end = least(least(block, in_band / (2 * kSteps)) + 1, least(ceil_div(pair.n - row, kSteps), kQuarters));
  const int64_t of_table = past / kSteps, of_band = beyond / (2 * kSteps);
  const int64_t begin = least(of_table > of_band ? of_table : of_band, end - 1);
  return {int(begin > 0 ? begin : 0) / kLiveQuarters * kLiveQuarters, int(ceil_div(end, kLiveQuarters)) * kLiveQuarters};
}

// Which of a strip's registers they fill: as constants, or as numbers where a strip has so many that they are gone through by
// loops anyway (ascending() of simd.h).
template <int Begin, int End>
struct Quarters {
  template <int Vectors>
  static constexpr Constant<Begin * Vectors / kQuarters> first() {
    return {};
  }
  template <int Vectors>
  static constexpr Constant<End * Vectors / kQuarters> last() {
    return {};
  }
};
using WholeStrip = Quarters<0, kQuarters>;
struct SomeQuarters {
  Live live;
  template <int Vectors>
  int first() const {
    return live.begin * Vectors / kQuarters;
  }
  template <int Vectors>
  int last() const {
    return live.end * Vectors / kQuarters;
  }
};

// Calls f with the quarters that are live: with a loop for whole strips and one for all others.
template <typename T, typename F>
SOFTDTW_INLINE void with_whole_or_some(const Live& live, const F& f) {
#if SOFTDTW_VECTOR_BYTES > 16
  if (live.all()) return f(WholeStrip{});
#endif
  f(SomeQuarters{live});
}

template <int kBegin, int kEnd, typename F>
SOFTDTW_INLINE void with_end(const Live& live, const F& f) {
  if constexpr (kBegin + kLiveQuarters < kEnd)
    if (live.end < kEnd) return with_end<kBegin, kEnd - kLiveQuarters>(live, f);
  f(Quarters<kBegin, kEnd>{});
}
template <int kBegin, typename F>
SOFTDTW_INLINE void with_begin(const Live& live, const F& f) {
  if constexpr (kBegin + kLiveQuarters < kQuarters)
    if (live.begin > kBegin) return with_begin<kBegin + kLiveQuarters>(live, f);
  with_end<kBegin, kQuarters>(live, f);
}

// The same with a loop for each, where a strip has few registers.
template <typename T, typename F>
SOFTDTW_INLINE void with_live(const Live& live, const F& f) {
  if constexpr (kRows / kWidth<T> > kUnrolled) {
    with_whole_or_some<T>(live, f);
  } else {
    if (live.all()) return f(WholeStrip{});
    with_begin<0>(live, f);
  }
}

// Goes through steps last, last - 1, ..., first of a strip in runs of one kind of block: f(quarters, begin, end).
template <typename T, typename F>
SOFTDTW_INLINE void with_runs(const Pair<T>& pair, int64_t row, int64_t first, int64_t last, const F& f) {
  while (last >= first) {
    int64_t begin = last / kSteps * kSteps;
    const Live live = live_quarters(pair, row, begin);
    while (begin > first && live.all() && live_quarters(pair, row, begin - kSteps).all()) begin -= kSteps;
    with_live<T>(live, [&](auto quarters) { f(quarters, begin, last); });
    last = begin - 1;
  }
}
