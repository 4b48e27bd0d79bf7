// Squared distances of many coordinates from a matrix product, |x|^2 + |y|^2 - 2 x.y, for float32 pairs whose costs are wanted in
// double (pack.h). Tiles of kSteps rows and columns: in a product no row is behind another, so vectors are loaded once and not
// shifted. A quarter of a strip needs two tiles for a block, one of which it had for the block before.
//
// Vectors are first moved by that of the first row, which changes no distance and is exact or rounded in double. Then what cancels
// is below the cost of the box (farthest.h), and the error of a scaled cost below dim 2^-52 of it: pack.h asks for that to be small.

constexpr int kTileDims = 16;  // whose vectors are brought together
constexpr int kTileVectors = kSteps / kWidth<double>;
constexpr int kTileRows = (SOFTDTW_VECTOR_BYTES == 64 ? 16 : 8) / kTileVectors;  // whose products are in registers

// The tile at a row of x and a column of y, to rows of 2 kSteps.
inline void fill_tile(
    const Pair<float>& pair, int64_t row, int64_t column, float (*to_m)[2 * kSteps], float (*to_r)[2 * kSteps]) {
  using V = Vec<double>;
  alignas(64) double x[kTileDims][kSteps], y[kTileDims][kSteps], product[kSteps][kSteps];
  alignas(64) double x_square[kSteps] = {}, y_square[kSteps] = {};
  const float* const from_x = pair.x + row;
  const float* const from_y = pair.y + kRows + pair.m - column - kSteps;
  for (int64_t first = 0; first < pair.dim; first += kTileDims) {
    const int64_t dims = pair.dim - first < kTileDims ? pair.dim - first : kTileDims;
    for (int64_t d = 0; d < dims; ++d) {
      const double centre = pair.x[(first + d) * pair.x_stride];
      for (int64_t k = 0; k < kSteps; ++k) x[d][k] = double(from_x[(first + d) * pair.x_stride + k]) - centre;
      for (int64_t k = 0; k < kSteps; ++k) y[d][k] = double(from_y[(first + d) * pair.y_stride + k]) - centre;
      for (int64_t k = 0; k < kSteps; ++k) x_square[k] += x[d][k] * x[d][k];
      for (int64_t k = 0; k < kSteps; ++k) y_square[k] += y[d][k] * y[d][k];
    }
    for (int64_t i = 0; i < kSteps; i += kTileRows) {
      V sum[kTileRows * kTileVectors];
      ascending<0, kTileRows>([&](auto a) SOFTDTW_LAMBDA {
        for (int v = 0; v < kTileVectors; ++v)
          sum[a * kTileVectors + v] = first > 0 ? load(product[i + a] + v * kWidth<double>) : V{};
      });
      for (int64_t d = 0; d < dims; ++d)
        ascending<0, kTileRows>([&](auto a) SOFTDTW_LAMBDA {
          const V own = splat(x[d][i + a]);
          for (int v = 0; v < kTileVectors; ++v) sum[a * kTileVectors + v] += own * load(y[d] + v * kWidth<double>);
        });
      ascending<0, kTileRows>([&](auto a) SOFTDTW_LAMBDA {
        for (int v = 0; v < kTileVectors; ++v) store(product[i + a] + v * kWidth<double>, sum[a * kTileVectors + v]);
      });
    }
  }
  for (int64_t i = 0; i < kSteps; ++i)
    for (int64_t k = 0; k < kSteps; k += kWidth<double>) {
      const V cost = (x_square[i] + load(y_square + k)) - 2.0 * load(product[i] + k);
      split_wide_cost(cost < V{} ? V{} : cost, pair.scale, to_m[i] + k, to_r[i] + k);  // a NaN stays one
    }
}

// Lane l of row i and lane i of row l change places, for rows and lanes whose numbers differ in bit kBit.
template <int kBit, int... I>
SOFTDTW_INLINE void exchange(Vec<float>& a, Vec<float>& b, std::integer_sequence<int, I...>) {
  const Vec<float> upper = __builtin_shufflevector(a, b, (I & kBit ? kWidth<float> + I - kBit : I)...);
  b = __builtin_shufflevector(a, b, (I & kBit ? kWidth<float> + I : I + kBit)...);
  a = upper;
}
template <int kBit = 1>
SOFTDTW_INLINE void transpose(Vec<float>* rows) {
  if constexpr (kBit < kWidth<float>) {
    for (int i = 0; i < kWidth<float>; ++i)
      if (!(i & kBit)) exchange<kBit>(rows[i], rows[i + kBit], std::make_integer_sequence<int, kWidth<float>>());
    transpose<2 * kBit>(rows);
  }
}

// From the rows of two tiles to the steps of a block: step i of row r is column i - r.
SOFTDTW_INLINE void skew(const float (*tile)[2 * kSteps], float (*to)[kRows]) {
  for (int r = 0; r < kSteps; r += kWidth<float>)
    for (int l = 0; l < kSteps; l += kWidth<float>) {
      Vec<float> rows[kWidth<float>];
      for (int a = 0; a < kWidth<float>; ++a) rows[a] = load(tile[r + a] + r + a + l);
      transpose(rows);
      for (int a = 0; a < kWidth<float>; ++a) store(to[kSteps - 1 - l - a] + r, rows[a]);
    }
}

inline void fill_by_products(
    const Pair<float>& pair, int64_t row, const Live& live, int64_t step, CostBlock<float>& block) {
  Tiles<float>& tiles = block.tiles;
  for (int64_t q = live.begin; q < live.end; ++q) {
    auto *const m = tiles.m[q], *const r = tiles.r[q];
    const int64_t own = row + q * kSteps, column = step - q * kSteps;
    if (step > 0 && tiles.step[q] == step - kSteps)
      for (int64_t i = 0; i < kSteps; ++i) {
        __builtin_memcpy(m[i] + kSteps, m[i], kSteps * sizeof(float));
        __builtin_memcpy(r[i] + kSteps, r[i], kSteps * sizeof(float));
      }
    else
      fill_tile(pair, own, column - kSteps, (float (*)[2 * kSteps])(m[0] + kSteps), (float (*)[2 * kSteps])(r[0] + kSteps));
    fill_tile(pair, own, column, m, r);
    tiles.step[q] = step;
    skew(m, (float (*)[kRows])(block.m[0] + q * kSteps));
    skew(r, (float (*)[kRows])(block.r[0] + q * kSteps));
  }
}
