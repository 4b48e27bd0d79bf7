// What vectors cost at least against boxes: the terms of LB_Keogh. Compiled once per instruction set.

// How far x lies outside [low, high]; 0 where one of them is NaN.
template <typename T>
SOFTDTW_INLINE T outside(T x, T low, T high) {
  const T above = x > high ? x - high : T(0);
  return low > x ? low - x : above;
}

// cost[k], for k below count <= kHardBlock: of the k-th vector against the k-th box, all [dim][stride]. Rounded, it is no more
// than that of a vector in the box, up to how a sum over coordinates is rounded: a share only grows with the difference.
template <typename T>
void box_costs(const Boxes<T>& boxes, const T* x, int64_t x_stride, int64_t count, T* __restrict cost) {
  with_cost<Costs<PlainMath<T>>>(boxes.cost, [&](auto type) {
    const T *low = boxes.low, *high = boxes.high;
    for (int64_t k = 0; k < count; ++k) cost[k] = type.share(outside(x[k], low[k], high[k]), T(0));
    for (int64_t dim = 1; dim < boxes.dim; ++dim) {
      x += x_stride, low += boxes.stride, high += boxes.stride;
      for (int64_t k = 0; k < count; ++k) cost[k] = type.share(outside(x[k], low[k], high[k]), cost[k]);
    }
    for (int64_t k = 0; k < count; ++k) cost[k] = type.finish(cost[k]);
  });
}

template <typename T>
SOFTDTW_INLINE T sum_of(const T* cost, int64_t count) {
  Vec<T> sums = {};
  T sum = 0;
  int64_t k = 0;
  for (; k + kWidth<T> <= count; k += kWidth<T>) sums += load(cost + k);
  for (; k < count; ++k) sum += cost[k];
  for (int lane = 0; lane < kWidth<T>; ++lane) sum += sums[lane];
  return sum;
}

// The sum over `count` vectors, of any number.
template <typename T>
T box_sum(const Boxes<T>& boxes, const T* x, int64_t x_stride, int64_t count) {
  alignas(64) T cost[kHardBlock];
  T sum = 0;
  for (int64_t from = 0; from < count; from += kHardBlock) {
    const int64_t own = count - from < kHardBlock ? count - from : kHardBlock;
    box_costs(boxes.from(from), x + from, x_stride, own, cost);
    sum += sum_of(cost, own);
  }
  return sum;
}
