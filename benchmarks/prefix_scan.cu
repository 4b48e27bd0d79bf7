// A row of the table as a prefix computation (Xiao et al. 2013), in place of the wavefront. For docs/kernel-study.md alone:
// the package does not use it. bench_prefix_scan.py builds and calls it.
//
// In a semiring (hard DTW: min, +; soft-DTW: +, x of a = exp(-R / gamma)) with w the weight of a cell's cost,
//     a[i,j] = w[i,j] x (s[i,j] + a[i,j-1]),    s[i,j] = a[i-1,j-1] + a[i-1,j],
// so a cell is an affine map of its left neighbour, and a row is a scan of maps, whose composition is associative:
//     (A2, B2) after (A1, B1) = (A2 x A1, A2 x B1 + B2).
//
// pipelined: a warp has 32 K columns of a pair. It scans a row by shuffles, hands the row's last entry to the warp on the
// right, and goes on: warps are some rows apart. row_by_row: the whole device scans one row, then the next.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace {

constexpr int kWarp = 32;
constexpr int kGroup = 8;         // rows whose left neighbours a warp reads at once
constexpr int kBlockWarps = 8;    // of row_by_row
constexpr int kMostBlocks = 256;  // of a row
constexpr unsigned kAll = 0xffffffffu;

// Hard DTW: an entry is R.
struct Hard {
  using Entry = float;
  static __device__ Entry zero() { return INFINITY; }
  static __device__ Entry one() { return 0.0f; }
  static __device__ Entry weight(float cost) { return cost; }
  static __device__ Entry add(Entry a, Entry b) { return fminf(a, b); }
  static __device__ Entry multiply(Entry a, Entry b) { return a + b; }
  static __device__ Entry normalised(Entry a) { return a; }
  static __device__ Entry up(Entry a, int lanes) { return __shfl_up_sync(kAll, a, lanes); }
  static __device__ Entry of(Entry a, int lane) { return __shfl_sync(kAll, a, lane); }
  static __device__ bool is_there(Entry a) { return !isnan(a); }
  static __device__ Entry load(const Entry* at) { return *reinterpret_cast<const volatile float*>(at); }
  static __device__ void store(Entry* at, Entry a) { *reinterpret_cast<volatile float*>(at) = a; }
  static __device__ float value(Entry a, float) { return a; }
};

// Soft-DTW: an entry is s 2^-m with a whole m; costs come in units of gamma ln 2, and are below 2^22. Zero is what has so large
// an m that nothing remains of it beside any other entry.
struct Soft {
  struct __align__(8) Entry {
    float s;
    int m;
  };
  static __device__ Entry zero() { return {1.0f, 1 << 29}; }
  static __device__ Entry one() { return {1.0f, 0}; }
  static __device__ Entry weight(float cost) {
    constexpr float kUnitsInLastPlace = 1.5f * (1 << 23);
    const float rounded = cost + kUnitsInLastPlace;
    return {exp2f(rounded - kUnitsInLastPlace - cost), __float_as_int(rounded) - __float_as_int(kUnitsInLastPlace)};
  }
  static __device__ float power(int m) { return __int_as_float(max(127 - m, 0) << 23); }  // 2^-m or 0, m >= 0
  static __device__ Entry add(Entry a, Entry b) {
    const int m = min(a.m, b.m);
    return {a.s * power(a.m - m) + b.s * power(b.m - m), m};
  }
  static __device__ Entry multiply(Entry a, Entry b) { return {a.s * b.s, a.m + b.m}; }
  static __device__ Entry normalised(Entry a) {  // s in [1, 2)
    const int bits = __float_as_int(a.s), exponent = (bits >> 23) - 127;
    return {__int_as_float(bits - (exponent << 23)), a.m - exponent};
  }
  static __device__ Entry up(Entry a, int lanes) {
    return {__shfl_up_sync(kAll, a.s, lanes), __shfl_up_sync(kAll, a.m, lanes)};
  }
  static __device__ Entry of(Entry a, int lane) { return {__shfl_sync(kAll, a.s, lane), __shfl_sync(kAll, a.m, lane)}; }
  static __device__ bool is_there(Entry a) { return !isnan(a.s); }
  static __device__ Entry load(const Entry* at) {  // 8 bytes at once: both or neither
    const unsigned long long bits = *reinterpret_cast<const volatile unsigned long long*>(at);
    return {__uint_as_float(static_cast<unsigned>(bits)), static_cast<int>(bits >> 32)};
  }
  static __device__ void store(Entry* at, Entry a) {
    *reinterpret_cast<volatile unsigned long long*>(at) =
        static_cast<unsigned long long>(static_cast<unsigned>(a.m)) << 32 | __float_as_uint(a.s);
  }
  static __device__ float value(Entry a, float unit) { return static_cast<float>((a.m - log2(double(a.s))) * unit); }
};

template <class S>
struct Map {  // x -> factor x + offset
  typename S::Entry factor, offset;

  static __device__ Map identity() { return {S::one(), S::zero()}; }
  __device__ typename S::Entry operator()(typename S::Entry x) const { return S::add(S::multiply(factor, x), offset); }
  __device__ Map after(const Map& first) const { return {S::multiply(factor, first.factor), (*this)(first.offset)}; }
  __device__ Map normalised() const { return {S::normalised(factor), S::normalised(offset)}; }
  __device__ Map up(int lanes) const { return {S::up(factor, lanes), S::up(offset, lanes)}; }
};

// All maps up to this lane's own, in order; `map` of the lanes to the left alone in `before`.
template <class S>
__device__ Map<S> scan(Map<S> map, int lane, Map<S>& before) {
  for (int lanes = 1; lanes < kWarp; lanes *= 2) {
    const Map<S> left = map.up(lanes), none = Map<S>::identity();
    map = map.after(lane >= lanes ? left : none);
  }
  map = map.normalised();
  before = map.up(1);
  if (lane == 0) before = Map<S>::identity();
  return map;
}

// A lane's K columns, row after row.
template <class S, int K>
struct Columns {
  typename S::Entry table[K], diagonal;  // the row above, and what is left of it
  typename S::Entry weight[K], sum[K];
  float y[K];

  __device__ Columns(const float* series, bool first) {
    for (int k = 0; k < K; ++k) {
      y[k] = series[k];
      table[k] = S::zero();
    }
    diagonal = first ? S::one() : S::zero();
  }

  __device__ Map<S> begin(float x, float scale) {
    Map<S> map = Map<S>::identity();
#pragma unroll
    for (int k = 0; k < K; ++k) {
      weight[k] = S::weight(scale * (x - y[k]) * (x - y[k]));
      sum[k] = S::add(k == 0 ? diagonal : table[k - 1], table[k]);
      const Map<S> cell{weight[k], S::multiply(weight[k], sum[k])};
      map = k == 0 ? cell : cell.after(map);
    }
    return map.normalised();
  }

  __device__ void finish(typename S::Entry left) {
    diagonal = left;
#pragma unroll
    for (int k = 0; k < K; ++k) left = table[k] = S::normalised(S::multiply(weight[k], S::add(sum[k], left)));
  }
};

struct Problem {
  const float *x, *y;  // (pairs, n), (pairs, m)
  int n, m;
  float scale, unit;  // of a cost to the semiring's units, and of these to the value
  float* value;
};

// Block (strip, pair), one warp. edges (pairs, strips, n) begin as NaN: an entry that is a number has been handed on.
template <class S, int K>
__global__ void __launch_bounds__(kWarp) pipelined(Problem p, typename S::Entry* edges) {
  const int lane = threadIdx.x, strip = blockIdx.x, pair = blockIdx.y;
  const float* x = p.x + int64_t{pair} * p.n;
  typename S::Entry* right = edges + (int64_t{pair} * gridDim.x + strip) * p.n;
  const typename S::Entry* from = strip == 0 ? nullptr : right - p.n;
  Columns<S, K> columns(p.y + int64_t{pair} * p.m + (strip * kWarp + lane) * K, strip == 0 && lane == 0);

  const bool reads = lane < kGroup;
  auto left_of = [&](int row) { return from != nullptr && reads && row < p.n ? S::load(from + row + lane) : S::zero(); };
  auto x_of = [&](int row) { return reads && row < p.n ? x[row + lane] : 0.0f; };
  typename S::Entry next = left_of(0);
  float next_x = x_of(0);
  for (int row = 0; row < p.n; row += kGroup) {
    while (!__all_sync(kAll, S::is_there(next))) next = left_of(row);
    const typename S::Entry group = next;
    const float group_x = next_x;
    next = left_of(row + kGroup);
    next_x = x_of(row + kGroup);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      Map<S> before;
      scan<S>(columns.begin(__shfl_sync(kAll, group_x, i), p.scale), lane, before);
      columns.finish(before(S::of(group, i)));
      if (lane == kWarp - 1) S::store(right + row + i, columns.table[K - 1]);
    }
  }
  if (strip == gridDim.x - 1 && lane == kWarp - 1) p.value[pair] = S::value(columns.table[K - 1], p.unit);
}

// Block (part of the row, pair): all blocks leave what their part does to a row's left end, meet, and read what stands left
// of them. parts (2, pairs, blocks): a block is at most one row ahead of another.
template <class S, int K>
__global__ void __launch_bounds__(kWarp* kBlockWarps) row_by_row(Problem p, Map<S>* parts) {
  __shared__ Map<S> of_warps[kBlockWarps];
  __shared__ typename S::Entry left_of_block;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, block = blockIdx.x, pair = blockIdx.y;
  const int column = (block * kBlockWarps * kWarp + threadIdx.x) * K;
  const float* x = p.x + int64_t{pair} * p.n;
  Columns<S, K> columns(p.y + int64_t{pair} * p.m + column, column == 0);
  for (int row = 0; row < p.n; ++row) {
    Map<S>* of_blocks = parts + (int64_t{row % 2} * gridDim.y + pair) * gridDim.x;
    Map<S> before;
    const Map<S> own = scan<S>(columns.begin(x[row], p.scale), lane, before);
    if (lane == kWarp - 1) of_warps[warp] = own;
    __syncthreads();
    Map<S> left = Map<S>::identity();
    for (int w = 0; w < warp; ++w) left = of_warps[w].after(left).normalised();
    if (warp == kBlockWarps - 1 && lane == 0) {
      const Map<S> part = of_warps[warp].after(left).normalised();
      S::store(&of_blocks[block].factor, part.factor);
      S::store(&of_blocks[block].offset, part.offset);
    }
    cooperative_groups::this_grid().sync();
    if (warp == 0) {  // a lane composes its share of the blocks to the left, then the warp all of them
      const int share = kMostBlocks / kWarp;
      Map<S> some = Map<S>::identity();
#pragma unroll
      for (int k = 0; k < share; ++k) {
        const int other = lane * share + k;
        if (other < block) {
          const Map<S> part{S::load(&of_blocks[other].factor), S::load(&of_blocks[other].offset)};
          some = part.after(some).normalised();
        }
      }
      Map<S> unused;
      some = scan<S>(some, lane, unused);
      if (lane == kWarp - 1) left_of_block = some(S::zero());
    }
    __syncthreads();
    columns.finish(before(left(left_of_block)));
  }
  if (block == gridDim.x - 1 && threadIdx.x == blockDim.x - 1) p.value[pair] = S::value(columns.table[K - 1], p.unit);
}

// 0, or a cudaError_t. Both kernels need all their blocks at once.
template <class S, int K>
int launch(Problem p, int pairs, bool by_row, void* workspace, size_t bytes, cudaStream_t stream) {
  const int columns = kWarp * K * (by_row ? kBlockWarps : 1);
  const int blocks = p.m / columns;
  if (p.m % columns != 0 || p.n % kGroup != 0 || (by_row && blocks > kMostBlocks)) return cudaErrorInvalidValue;
  const size_t entry = sizeof(typename S::Entry);
  const size_t needed = (by_row ? size_t{4} : size_t(p.n)) * entry * blocks * pairs;
  if (bytes < needed) return cudaErrorInvalidValue;
  if (by_row) {
    auto* parts = static_cast<Map<S>*>(workspace);
    void* arguments[] = {&p, &parts};
    return cudaLaunchCooperativeKernel(row_by_row<S, K>, dim3(blocks, pairs), kWarp * kBlockWarps, arguments, 0, stream);
  }
  if (const int error = cudaMemsetAsync(workspace, 0xff, needed, stream)) return error;
  auto* edges = static_cast<typename S::Entry*>(workspace);
  void* arguments[] = {&p, &edges};
  return cudaLaunchCooperativeKernel(pipelined<S, K>, dim3(blocks, pairs), kWarp, arguments, 0, stream);
}

template <class S>
int launch_width(int width, Problem p, int pairs, bool by_row, void* workspace, size_t bytes, cudaStream_t stream) {
  switch (width) {
    case 1:
      return launch<S, 1>(p, pairs, by_row, workspace, bytes, stream);
    case 2:
      return launch<S, 2>(p, pairs, by_row, workspace, bytes, stream);
    case 4:
      return launch<S, 4>(p, pairs, by_row, workspace, bytes, stream);
    case 8:
      return launch<S, 8>(p, pairs, by_row, workspace, bytes, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

// gamma 0: hard DTW. width: columns a lane. Values (pairs,) of x (pairs, n) against y (pairs, m), squared differences.
extern "C" int prefix_scan(
    const float* x, const float* y, float* value, int pairs, int n, int m, float gamma, int width, int by_row,
    void* workspace, size_t bytes, void* stream) {
  const float unit = gamma > 0.0f ? gamma * 0.69314718f : 1.0f;
  const Problem p{x, y, n, m, 1.0f / unit, unit, value};
  const auto on = static_cast<cudaStream_t>(stream);
  return gamma > 0.0f ? launch_width<Soft>(width, p, pairs, by_row, workspace, bytes, on)
                      : launch_width<Hard>(width, p, pairs, by_row, workspace, bytes, on);
}
