// Soft elastic measures, for the target that is set. The unnamed namespace keeps targets apart.
namespace softdtw {
namespace cpu {
namespace {

#include "simd.h"

#include "core/cost_types.h"

constexpr int kLiveQuarters = 2;
#include "cpu/soft/live.h"

#include "cpu/soft/sweep.h"

#include "cpu/soft/backward.h"

#include "cpu/soft_elastic/soft_elastic_costs.h"

#include "cpu/soft_elastic/soft_elastic_sweep.h"

#include "cpu/soft_elastic/soft_elastic_gradient.h"

#include "cpu/soft_elastic/soft_elastic_backward.h"

}  // namespace

namespace SOFTDTW_ISA {
extern const BothOf<SoftElasticKernels> soft_elastic_kernels;
const BothOf<SoftElasticKernels> soft_elastic_kernels = {
    {soft_elastic<float>, soft_elastic_backward<float>, gap_weights<float>},
    {soft_elastic<double>, soft_elastic_backward<double>, gap_weights<double>}};
}  // namespace SOFTDTW_ISA

}  // namespace cpu
}  // namespace softdtw
