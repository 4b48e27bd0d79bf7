// The sweep of (9) over a pair, compiled once per instruction set; the loops over a diagonal become vectors.

// A cost that is the sum of shares, and nothing more: of one dimension a share may be added to an entry at once.
template <class Type>
constexpr bool kIsSum = std::is_same_v<Type, typename Type::Sum>;

template <typename T>
inline void hard_costs(const HardPair<T>& pair, int64_t d, int64_t row, int64_t count, T* __restrict cost) {
  if (pair.cost == Cost::kMatrix) {
    const int64_t stride = pair.matrix.row_stride - pair.matrix.column_stride;
    const T* const from = pair.matrix.data + row * pair.matrix.row_stride + (d - row) * pair.matrix.column_stride;
    for (int64_t k = 0; k < count; ++k) cost[k] = from[k * stride];
    return;
  }
  with_cost<Costs<PlainMath<T>>>(pair.cost, [&](auto type) {
    const T* x = pair.x + row;
    const T* y = pair.y + pair.extent.m - 1 - d + row;
    for (int64_t k = 0; k < count; ++k) cost[k] = type.share(x[k] - y[k], T(0));
    for (int64_t dim = 1; dim < pair.dim; ++dim) {
      x += pair.x_stride, y += pair.y_stride;
      for (int64_t k = 0; k < count; ++k) cost[k] = type.share(x[k] - y[k], cost[k]);
    }
  });
  // Whole registers: of a square root the compiler makes a loop over numbers, in case one is negative.
  with_cost<Costs<VectorMath<T>>>(pair.cost, [&](auto type) {
    for (int64_t k = 0; k < count; k += kWidth<T>) store(cost + k, type.finish(load(cost + k)));
  });
}

// `count` cells of a diagonal, and more up to a whole register: rows that do not lie on it, whose entries nothing reads.
// plus_cost(k, low): entries from k on, whose best predecessors have `low`. With steps, their bits are added to the bytes of their
// rows.
template <bool WithSteps, class PlusCost>
SOFTDTW_INLINE void hard_cells(
    const PlusCost& plus_cost, const double* before, const double* last, double* now, uint8_t* steps, int shift,
    double penalty, int64_t count) {
  using V = Vec<double>;
  using Bits = typename Lanes<double>::Bits;
  const V stepped = splat(penalty);
  for (int64_t k = 0; k < count; k += kWidth<double>) {
    const V up = load(last + k - 1), left = load(last + k), diagonal = load(before + k - 1);
    const V side = minimum(up, left) + stepped;
    store(now + k, plus_cost(k, minimum(side, diagonal)));
    if constexpr (WithSteps) {
      const Bits sideways = side < diagonal;  // all bits of a lane, or none
      const Bits step = (sideways & (Bits{} + int64_t(kUp))) + (sideways & (left < up) & (Bits{} + int64_t(kLeft - kUp)));
      Bytes bytes;
      __builtin_memcpy(&bytes, steps + k, sizeof bytes);
      bytes |= __builtin_convertvector(step << shift, Bytes);
      __builtin_memcpy(steps + k, &bytes, sizeof bytes);
    }
  }
}

// The same with the pair's costs. Returns whether one is NaN, which a minimum would lose. `cost`: memory for kHardBlock.
template <bool WithSteps, typename T>
bool hard_block(
    const HardPair<T>& pair, int64_t d, int64_t row, int64_t count, const double* before, const double* last, double* now,
    uint8_t* steps, int shift, T* cost) {
  using V = Vec<double>;
  if (pair.wide_x) {
    const double *const x = pair.wide_x + row, *const y = pair.wide_y + pair.extent.m - 1 - d + row;
    with_cost<Costs<VectorMath<double>>>(pair.cost, [&](auto type) {
      if constexpr (kIsSum<decltype(type)>) {
        const auto plus_cost = [&](int64_t k, V low) SOFTDTW_LAMBDA { return type.share(load(x + k) - load(y + k), low); };
        hard_cells<WithSteps>(plus_cost, before, last, now, steps, shift, pair.penalty, count);
      }
    });
    return false;
  }
  hard_costs(pair, d, row, count, cost);
  typename Lanes<double>::Bits spoiled = {};
  const auto plus_cost = [&](int64_t k, V low) SOFTDTW_LAMBDA {
    const V own = load_wide(cost + k);
    spoiled |= own != own;
    return own + low;
  };
  hard_cells<WithSteps>(plus_cost, before, last, now, steps, shift, pair.penalty, count);
  for (int lane = 0; lane < kWidth<double>; ++lane)
    if (spoiled[lane]) return true;
  return false;
}

SOFTDTW_INLINE double lowest_of(const double* entries, int64_t count) {
  Vec<double> least = splat(__builtin_inf());
  int64_t k = 0;
  for (; k + kWidth<double> <= count; k += kWidth<double>) least = minimum(load(entries + k), least);
  double found = lowest<double>(least);
  for (; k < count; ++k) found = entries[k] < found ? entries[k] : found;
  return found;
}

constexpr int64_t kDiagonalsPerLook = 8;  // at the limit

// What the rows below one cost at least, whatever they are matched with.
template <typename T>
class RowsBelow {
 public:
  explicit RowsBelow(const HardPair<T>& pair) : costs_(pair.box_costs) {
    if (!pair.boxes.low) return;
    for (int64_t row = 0; row < pair.extent.n; row += kHardBlock) {
      const int64_t count = pair.extent.n - row < kHardBlock ? pair.extent.n - row : kHardBlock;
      box_costs(pair.boxes.from(row), pair.x + row, pair.x_stride, count, pair.box_costs + row);
      left_ += sum_of(costs_ + row, count);
    }
  }
  // Rows only grow from call to call.
  double operator()(int64_t row) {
    for (; next_ <= row; ++next_) left_ -= costs_[next_];
    return left_;
  }

 private:
  const T* const costs_;
  int64_t next_ = 0;
  double left_ = 0;
};

enum class Wanted { kValue, kSteps, kUpToLimit };

template <typename T, Wanted kWanted>
HardEnd hard_sweep_of(const HardPair<T>& pair) {
  constexpr bool WithSteps = kWanted == Wanted::kSteps;
  const Extent& extent = pair.extent;
  const int64_t diagonals = diagonals_of(extent), bottom = extent.n - 1;
  const double infinite = __builtin_inf();
  double* rows[3];
  for (int k = 0; k < 3; ++k) {
    rows[k] = pair.entries + k * entries_stride(extent.n) + 1;  // row -1 is the border
    for (int64_t i = -1; i <= extent.n + kHardSlack; ++i) rows[k][i] = infinite;
  }
  rows[1][-1] = 0;  // R[0,0], the diagonal predecessor of the first cell
  if (pair.open_ends) rows[2][-1] = 0;
  HardEnd end = {infinite, extent.m - 1};
  bool spoiled = false;
  alignas(64) T cost[kHardBlock] = {};  // what is beyond a diagonal keeps an earlier number
  uint8_t* steps = pair.steps;
  DiagonalRows group = rows_of_group(extent, 0);
  RowsBelow<T> below(pair);
  for (int64_t d = 0; d < diagonals; ++d) {
    double *const now = rows[d % 3], *const last = rows[(d + 2) % 3], *const before = rows[(d + 1) % 3];
    const DiagonalRows own(extent, d);
    if (stop_asked(own.last - own.first + 1)) {
      spoiled = true;
      break;
    }
    const int shift = int(2 * (d % kDiagonalsPerByte));
    if (WithSteps && shift == 0) {
      if (d > 0) steps += group.last - group.first + 1;
      group = rows_of_group(extent, d / kDiagonalsPerByte);
      pair.starts[d / kDiagonalsPerByte] = steps - pair.steps;
      __builtin_memset(steps, 0, size_t(group.last - group.first + 1));
    }
    for (int64_t row = own.first; row <= own.last; row += kHardBlock) {
      const int64_t count = own.last - row + 1 < kHardBlock ? own.last - row + 1 : kHardBlock;
      uint8_t* const own_steps = WithSteps ? steps + (row - group.first) : nullptr;
      spoiled |= hard_block<WithSteps>(pair, d, row, count, before + row, last + row, now + row, own_steps, shift, cost);
    }
    // What the next two diagonals may read beside this one.
    now[own.first - 1] = own.first == 0 && pair.open_ends ? 0 : infinite;
    now[own.last + 1] = infinite;
    if (pair.open_ends && own.last == bottom && now[bottom] < end.value) end = {now[bottom], d - bottom};
    if constexpr (kWanted == Wanted::kUpToLimit) {
      if (d % kDiagonalsPerLook == kDiagonalsPerLook - 1) {  // a path meets this diagonal or the last one
        const DiagonalRows others(extent, d - 1);
        const double here = lowest_of(now + own.first, own.last - own.first + 1);
        const double there = lowest_of(last + others.first, others.last - others.first + 1);
        if ((here < there ? here : there) + below(own.last) > pair.limit) return {infinite, extent.m - 1};
      }
    }
  }
  if (!pair.open_ends) end.value = rows[(diagonals - 1) % 3][bottom];
  if (spoiled) end.value = __builtin_nan("");
  return end;
}

template <typename T>
HardEnd hard_sweep(const HardPair<T>& pair) {
  if (pair.steps) return hard_sweep_of<T, Wanted::kSteps>(pair);
  return pair.boxes.low ? hard_sweep_of<T, Wanted::kUpToLimit>(pair) : hard_sweep_of<T, Wanted::kValue>(pair);
}
