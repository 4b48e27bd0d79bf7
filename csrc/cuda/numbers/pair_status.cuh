// What the engines that may give pairs up say of each: which of them has taken it, or that extended_range.cuh is to compute it.
#pragma once

namespace softdtw {

enum class Verdict : int { kAccepted, kRejected, kSteep };  // kAccepted: by the level engine

}  // namespace softdtw
