// Which rows of a strip have cells in the table while the wavefront fills the strip, drains from it, or has no rows below.
//
// A strip has four quarters of kSteps rows. In a block of steps that starts at a multiple of kSteps, a quarter is dead if all
// its cells lie left of the table, right of it or below it. Dead quarters are always the last ones (left, below) or the first
// ones (right). They are left out: those on the left stay unreachable, as they start; those on the right keep their entries of
// the last live step, whose last row the next quarter reads once more. With a penalty, which is rare, all count as live.

constexpr int kQuarters = 4;
static_assert(kRows == kQuarters * kSteps, "a quarter becomes live or dead from block to block");

struct Live {
  int begin, end;

  bool all() const { return begin == 0 && end == kQuarters; }
};

// Of the block that `step` belongs to.
template <typename T>
inline Live live_quarters(const Pair<T>& pair, int64_t row, int64_t step) {
  if (pair.penalty > 0) return {0, kQuarters};
  const int64_t block = step / kSteps, past = step / kSteps * kSteps - pair.m + 1, rows = ceil_div(pair.n - row, kSteps);
  int64_t end = block + 1 < kQuarters ? block + 1 : kQuarters;
  if (rows < end) end = rows;
  const int64_t begin = past < kSteps || end < kQuarters ? 0 : past / kSteps < kQuarters ? past / kSteps : kQuarters - 1;
  return {int(begin), int(end)};
}

template <int Begin, int End>
struct Quarters {
  template <int Vectors>
  static constexpr int first = Begin * Vectors / kQuarters;
  template <int Vectors>
  static constexpr int last = End * Vectors / kQuarters;
};
using WholeStrip = Quarters<0, kQuarters>;

// Calls f with the Quarters that are live.
template <typename F>
SOFTDTW_INLINE void with_live(const Live& live, const F& f) {
  if (live.all()) return f(WholeStrip{});
  if (live.begin == 1) return f(Quarters<1, 4>{});
  if (live.begin == 2) return f(Quarters<2, 4>{});
  if (live.begin == 3) return f(Quarters<3, 4>{});
  if (live.end == 1) return f(Quarters<0, 1>{});
  if (live.end == 2) return f(Quarters<0, 2>{});
  if (live.end == 3) return f(Quarters<0, 3>{});
}
