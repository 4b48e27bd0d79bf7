// Hard DTW, lower bounds of it, and ranges of a series, for the target that is set. The unnamed namespace keeps targets apart.
namespace softdtw {
namespace cpu {
namespace {

#include "simd.h"

#include "core/cost_types.h"

#include "cpu/search/box_costs.h"

#include "cpu/hard/hard_sweep.h"

#include "cpu/groups/interleave.h"

#include "cpu/groups/lanes_sweep.h"

#include "cpu/hard/hard_lanes.h"

#include "cpu/search/ranges_sweep.h"

}  // namespace

namespace SOFTDTW_ISA {
extern const BothOf<HardKernels> hard_kernels;
const BothOf<HardKernels> hard_kernels = {
    {hard_sweep<float>, hard_lanes<float>, kWidth<float>, interleave<float, float>, interleave<float, float>,
     box_sum<float>, ranges_sweep<float>},
    {hard_sweep<double>, hard_lanes<double>, kWidth<double>, interleave<double, double>, interleave<float, double>,
     box_sum<double>, ranges_sweep<double>}};
}  // namespace SOFTDTW_ISA

}  // namespace cpu
}  // namespace softdtw
