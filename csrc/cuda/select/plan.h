// The plan of a call: which kernel, which of its specialisations, and how many rows a lane has.
//
// A public name, `stencil`, is an ordered list of specialisations. The first that accepts a call has it: `stencil/linear_domain`. A
// plan is made once, in forward. Its code is written into the size of what is saved, and backward does what it says.
#pragma once

#include <optional>
#include <string>

#include "core/call.h"
#include "device.h"

namespace softdtw {

enum class Kernel : int { kDiagonal, kStencil, kTiled };

enum class Specialization : int {
  kPlain,         // of diagonal
  kLinearDomain,  // and pairs that it gives up by integer log2 and by extended range
  kIntegerLog2,   // and pairs that it gives up by extended range
  kExtendedRange,
  kWarpSpecialised,  // extended range, a strip by several warps
  kBidirectional,    // likewise, from both ends of the table
  kFewDims,          // forward warp-specialised, vector by vector; what is saved, and backward, as multivariate
  kMultivariate,
  kBanded,      // bands: linear domain, or integer log2 of few dimensions; pairs that they give up by extended range
  kVectorLog2,  // integer log2 of few dimensions or ready-made costs; pairs that it gives up by extended range
  kReadyMade,   // as kFewDims, of ready-made costs
};

struct Plan {
  Kernel kernel = Kernel::kDiagonal;
  Specialization specialization = Specialization::kPlain;
  int rows = 0;                 // of a lane, in what is saved and in backward; 0 where there are no strips
  int forward_rows = 0;         // of a lane in forward: other ones only where nothing is saved
  bool is_specialised = false;  // forward: a strip has several warps

  bool is(Specialization other) const { return specialization == other; }
  // Whether it may give up pairs, which the extended range takes then.
  bool gives_up_pairs() const {
    return is(Specialization::kLinearDomain) || is(Specialization::kIntegerLog2) || is(Specialization::kBanded) ||
           is(Specialization::kVectorLog2);
  }
  // Whether of a banded problem something stays unwritten that is to be 0: of what is saved, of gradients of series.
  bool needs_zeros() const { return !gives_up_pairs() && !is(Specialization::kBidirectional); }
  // From 1 to 255, of all that backward has to know.
  int code() const;
  static std::optional<Plan> from_code(int code);
  std::string name() const;  // such as "tiled/bidirectional"
};

// "auto", "stencil", "stencil/linear_domain" and so on. None where the name is not one of these, or does not accept the call.
// rows: of a lane; 0 for those that suit the call.
std::optional<Plan> plan_of(const std::string& name, const Call& call, int rows, const Device& device);
bool is_known_kernel(const std::string& name);

}  // namespace softdtw
