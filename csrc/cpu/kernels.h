// Everything that is compiled once per instruction set. SOFTDTW_VECTOR_BYTES, SOFTDTW_ISA and SOFTDTW_ISA_NAME come from the
// including file; the unnamed namespace keeps the targets apart.
namespace softdtw {
namespace cpu {
namespace {

#include "simd.h"

#include "core/cost_types.h"

#include "live.h"

#include "sweep.h"

#include "forward.h"

#include "backward.h"

#include "box_costs.h"

#include "hard_sweep.h"

#include "hard_lanes.h"

#include "ranges_sweep.h"

#include "elastic_costs.h"

#include "elastic_sweep.h"

#include "soft_elastic_costs.h"

#include "soft_elastic_sweep.h"

#include "soft_elastic_gradient.h"

#include "soft_elastic_backward.h"

}  // namespace

extern const Isa SOFTDTW_ISA;
const Isa SOFTDTW_ISA = {
    SOFTDTW_ISA_NAME,
    {forward<float>, backward<float>, hard_sweep<float>, hard_lanes<float>, box_sum<float>, ranges_sweep<float>,
     elastic_sweep<float>, soft_elastic<float>, soft_elastic_backward<float>, gap_weights<float>},
    {forward<double>, backward<double>, hard_sweep<double>, hard_lanes<double>, box_sum<double>, ranges_sweep<double>,
     elastic_sweep<double>, soft_elastic<double>, soft_elastic_backward<double>, gap_weights<double>}};

}  // namespace cpu
}  // namespace softdtw
