// Hard elastic measures of many pairs, for the target that is set. The unnamed namespace keeps targets apart.
namespace softdtw {
namespace cpu {
namespace {

#include "simd.h"

#include "core/cost_types.h"

#include "core/elastic_types.h"

#include "cpu/groups/lanes_sweep.h"

#include "cpu/elastic/elastic_lanes.h"

}  // namespace

namespace SOFTDTW_ISA {
extern const BothOf<ElasticLanesKernels> elastic_lanes_kernels;
const BothOf<ElasticLanesKernels> elastic_lanes_kernels = {{elastic_lanes<float>}, {elastic_lanes<double>}};
}  // namespace SOFTDTW_ISA

}  // namespace cpu
}  // namespace softdtw
