// Hard elastic measures, for the target that is set. The unnamed namespace keeps targets apart.
namespace softdtw {
namespace cpu {
namespace {

#include "simd.h"

#include "core/cost_types.h"

#include "cpu/elastic/elastic_costs.h"

#include "cpu/elastic/elastic_sweep.h"

}  // namespace

namespace SOFTDTW_ISA {
extern const BothOf<ElasticKernels> elastic_kernels;
const BothOf<ElasticKernels> elastic_kernels = {{elastic_sweep<float>}, {elastic_sweep<double>}};
}  // namespace SOFTDTW_ISA

}  // namespace cpu
}  // namespace softdtw
