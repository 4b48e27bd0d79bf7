// What number formats that may give pairs up say of each: which of them has taken it, or that the extended range is to.
#pragma once

namespace softdtw {

enum class PairStatus : int { kLinearDomain, kGivenUp, kIntegerLog2 };

}  // namespace softdtw
