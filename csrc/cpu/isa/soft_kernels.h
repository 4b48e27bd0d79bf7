// Soft-DTW, for the target that is set. The unnamed namespace keeps targets apart.
namespace softdtw {
namespace cpu {
namespace {

#include "simd.h"

#include "core/cost_types.h"

constexpr int kLiveQuarters = 1;
#include "cpu/soft/live.h"

#include "cpu/soft/sweep.h"

#include "cpu/soft/forward.h"

#include "cpu/soft/backward.h"

}  // namespace

namespace SOFTDTW_ISA {
extern const BothOf<SoftKernels> soft_kernels;
const BothOf<SoftKernels> soft_kernels = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};
}  // namespace SOFTDTW_ISA

}  // namespace cpu
}  // namespace softdtw
