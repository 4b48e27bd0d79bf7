// What number formats that may give pairs up say of each: which of them has taken it, or that the extended range is to; and whether
// backward is to try a window (kernels/warp_pair/window.cuh) first. The names are in torchsoftdtw/_kernels/number_formats.py.
#pragma once

namespace softdtw {

enum class PairStatus : int { kLinearDomain, kGivenUp, kIntegerLog2, kLinearDomainInWindow, kIntegerLog2InWindow };
constexpr int kPairStatuses = 5;

}  // namespace softdtw
