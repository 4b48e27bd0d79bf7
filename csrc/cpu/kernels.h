// What is compiled once for each instruction set, in a file of its own for each part of it and each set (isa).
#pragma once

#include "cpu/soft/pair.h"

namespace softdtw {
namespace cpu {

// One strip. Forward takes them from the first to the last, backward from the last to the first; a strip may run while the one
// before it does, which it follows by its state.
template <typename T>
struct SoftKernels {
  void (*forward)(const Pair<T>& pair, const Table<T>& table, StripState* states, int64_t strip);
  void (*backward)(
      const Pair<T>& pair, const Table<T>& table, const Scratch<T>& scratch, StripState* states, int64_t strip);
};

template <typename T>
struct HardKernels {
  HardEnd (*hard)(const HardPair<T>& pair);  // a whole pair
  void (*hard_group)(HardGroup<T>& group);   // whole pairs, `lanes` of them at once
  int64_t lanes;                             // of a register of T
  void (*interleave)(const T* const* series, int64_t count, T* to, T limit, bool* fits);  // `lanes` contiguous series
  void (*interleave_floats)(const float* const* series, int64_t count, T* to, T limit, bool* fits);
  T (*box_sum)(const Boxes<T>& boxes, const T* x, int64_t x_stride, int64_t count);
  void (*ranges)(const RangesPair<T>& pair);
};

template <typename T>
struct ElasticKernels {
  bool (*elastic)(const ElasticPair<T>& pair, const ElasticStrip& strip);  // whether it has values
};

template <typename T>
struct ElasticLanesKernels {
  void (*elastic_group)(ElasticGroup<T>& group);  // whole pairs
};

// The same as forward and backward; and what exponentials of `count` gaps are, which m holds before.
template <typename T>
struct SoftElasticKernels {
  void (*soft_elastic)(const SoftElastic<T>& pair, const Table<T>& table, StripState* states, int64_t strip);
  void (*soft_elastic_backward)(
      const SoftElastic<T>& pair, const Table<T>& table, const ElasticScratch<T>& scratch, StripState* states,
      int64_t strip);
  void (*gap_weights)(double scale, int64_t count, T* m, T* s);
};

template <typename T>
struct Kernels : SoftKernels<T>, HardKernels<T>, ElasticKernels<T>, ElasticLanesKernels<T>, SoftElasticKernels<T> {};

template <template <typename> class Part>
struct BothOf {
  Part<float> for_float;
  Part<double> for_double;
};
using Isa = BothOf<Kernels>;

const Isa& chosen_isa();
inline const Kernels<float>& kernels(float) { return chosen_isa().for_float; }
inline const Kernels<double>& kernels(double) { return chosen_isa().for_double; }

// Each set's parts, in a namespace of its name.
#define SOFTDTW_DECLARE_ISA(isa)                                  \
  namespace isa {                                                 \
  extern const BothOf<SoftKernels> soft_kernels;                  \
  extern const BothOf<HardKernels> hard_kernels;                  \
  extern const BothOf<ElasticKernels> elastic_kernels;            \
  extern const BothOf<ElasticLanesKernels> elastic_lanes_kernels; \
  extern const BothOf<SoftElasticKernels> soft_elastic_kernels;   \
  }
SOFTDTW_DECLARE_ISA(plain)
#if defined(__x86_64__)
SOFTDTW_DECLARE_ISA(avx2)
SOFTDTW_DECLARE_ISA(avx512)
#endif

}  // namespace cpu
}  // namespace softdtw
