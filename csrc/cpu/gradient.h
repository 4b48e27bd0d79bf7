// (5) for a segment whose E is known: sums of E dC/dx over the cells, and of E dC/dy with the opposite sign.

template <typename T, Cost kCost>
void add_series_gradient(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, T* e) {
  using V = Vec<T>;
  constexpr int64_t kPitch = 3 * kRows;
  const int64_t y_begin = kRows + pair.m - 1 - first;
  for (int64_t k = 0; k < kRows; k += kWidth<T>) {
    T* const own = e + k;
    if (kCost == Cost::kEuclidean)
      for (int64_t i = 0; i <= last - first; ++i) {
        V squares = {};
        for (int64_t d = 0; d < pair.dim; ++d) {
          const V difference = load(pair.x + d * pair.x_stride + row + k) - load(pair.y + d * pair.y_stride + y_begin - i + k);
          squares += difference * difference;
        }
        V distance;
        for (int lane = 0; lane < kWidth<T>; ++lane) distance[lane] = T(__builtin_sqrt(squares[lane]));
        const V zero = {};
        store(own + i * kPitch, squares > zero ? load(own + i * kPitch) / distance : zero);
      }
    for (int64_t d = 0; d < pair.dim; ++d) {
      const V x = load(pair.x + d * pair.x_stride + row + k);
      const T* y = pair.y + d * pair.y_stride + y_begin + k;
      T* dy = scratch.dy + d * pair.y_stride + y_begin + k;
      V sum = {};
      for (int64_t i = 0; i <= last - first; ++i) {
        const V difference = x - load(y - i);
        V share = load(own + i * kPitch);
        if (kCost == Cost::kCityblock) {
          const V zero = {};
          share = difference > zero ? share : difference < zero ? -share : zero;
        } else {
          share *= difference;
        }
        sum += share;
        store(dy - i, load(dy - i) + share);
      }
      T* dx = scratch.dx + d * pair.x_stride + row + k;
      store(dx, load(dx) + sum);
    }
  }
}

template <typename T>
void write_cost_gradient(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, const T* e) {
  const int64_t rows = pair.n - row < kRows ? pair.n - row : kRows;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t left = row + r + pair.low, right = row + r + pair.high;
    int64_t begin = first - r > left ? first - r : left, end = last - r < right ? last - r : right;
    if (begin < 0) begin = 0;
    if (end > pair.m - 1) end = pair.m - 1;
    T* to = scratch.dcost.data + (row + r) * scratch.dcost.row_stride;
    for (int64_t column = begin; column <= end; ++column)
      to[column * scratch.dcost.column_stride] = scratch.factor * e[(column + r - first) * 3 * kRows + r];
  }
}

template <typename T>
void add_gradient(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last) {
  if (pair.cost == Cost::kMatrix)
    write_cost_gradient(pair, scratch, row, first, last, scratch.weights);
  else if (pair.cost == Cost::kSqEuclidean)
    add_series_gradient<T, Cost::kSqEuclidean>(pair, scratch, row, first, last, scratch.weights);
  else if (pair.cost == Cost::kCityblock || pair.dim == 1)
    add_series_gradient<T, Cost::kCityblock>(pair, scratch, row, first, last, scratch.weights);
  else
    add_series_gradient<T, Cost::kEuclidean>(pair, scratch, row, first, last, scratch.weights);
}
