// The best ranges of series on the CPU: threads over the pairs, a pair by ranges_sweep.h.
#include <torch/csrc/stable/library.h>

#include "binding/ranges_entry.h"
#include "cpu/hard/hard_pack.h"
#include "cpu/kernels.h"
#include "cpu/threads/schedule.h"

namespace softdtw {
namespace cpu {
namespace {

template <typename T>
struct RangesPass {
  const Problem<T>& problem;
  double* const value;
  int32_t* const start;

  // Everything that a pair needs, one after the other; returns the bytes. With base null only counts them.
  int64_t carve(char* base, RangesPair<T>& pair, HardSeries<T>& series) const {
    Parts parts{base};
    series.carve(parts, problem);
    pair.entries = parts.take<double>(3 * entries_stride(problem.n));
    pair.origins = parts.take<int64_t>(3 * entries_stride(problem.n));
    return parts.used;
  }

  void operator()(int64_t b, char* memory) const {
    RangesPair<T> pair;
    HardSeries<T> series;
    carve(memory, pair, series);
    pair.extent = problem.extent(b);
    pack_pair(problem, b, series, pair);
    pair.value = value + b * problem.m;
    pair.start = start + b * problem.m;
    kernels(T{}).ranges(pair);
  }
};

struct RangesCpuBackend {
  static Tensor arrange(const Tensor& series) { return series; }

  template <typename T>
  static void best_ranges(const Problem<T>& problem, double* value, int32_t* start, const Tensor& like) {
    const RangesPass<T> pass{problem, value, start};
    RangesPair<T> pair;
    HardSeries<T> series;
    run_pairs(problem.batch, pass.carve(nullptr, pair, series), work_of(problem), like, pass);
  }
};

}  // namespace
}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER_RANGES(CPU, softdtw::cpu::RangesCpuBackend)
