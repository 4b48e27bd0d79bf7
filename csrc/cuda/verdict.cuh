// What an engine that may give pairs up says of each; robust.cuh computes what the one before it has rejected.
#pragma once

namespace softdtw {

enum class Verdict : int { kAccepted, kRejected };

}  // namespace softdtw
