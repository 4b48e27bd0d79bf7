#include "plan.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "blocks.h"
#include "choice.h"
#include "core/cost.h"

namespace softdtw {
namespace {

using Accepts = bool (*)(const Call&, int rows, const Device&);

bool always(const Call&, int, const Device&) { return true; }

struct Candidate {
  Specialization specialization;
  const char* name;
  Accepts accepts;
  Accepts pays = always;  // where it is not asked for by its name
};

// With a band: of many pairs.
bool short_pairs_pay(const Call& call, int, const Device& device) { return !call.has_band || are_many_bands(call, device); }

// Vectors, by warps of their own. With many dimensions gradients of E / cost need room for these.
bool takes_vectors(const Call& call, const Device& device) {
  const bool divides = call.is_multivariate() && call.dim > kFewDims && is_over_cost(call.cost);
  return call.is_multivariate() && device.has_pipelines() && (!divides || device.block_bytes >= kDividingBytes);
}

// From both ends: tables that are not too small, and of several dimensions values alone. Of many the blocks are those of multivariate.
bool goes_from_both_ends(const Call& call, int rows, const Device& device) {
  constexpr int64_t kNarrowest = 256, kShortest = 128;  // m, n
  const bool has_kernel = is_of_numbers(call) || (call.is_multivariate() && !call.keeps);
  if (call.is_float64 || rows != 2 || !has_kernel || call.is_ragged || !device.has_pipelines()) return false;
  const bool has_room = call.dim > kFewDims ? takes_vectors(call, device) : device.block_bytes >= kBidirectionalBytes;
  return call.n > kShortest && call.m >= kNarrowest && has_room;
}
// Of few pairs. Where the chain of strips is long it pays in several rounds of blocks, more so with gradients: measured
// (benchmarks/results/h200_meeting.json). With a band, in which few strips are under way at once, likewise, but less so with gradients.
// Of vectors, whose costs take as long as the sweep, while every strip that is under way has a warp for them; of many dimensions while all
// that are under way have a place.
bool pays_from_both_ends(const Call& call, int rows, const Device& device) {
  constexpr int64_t kLongChain = 16;  // strips
  const int64_t strips = strips_of(call.n, rows);
  const auto blocks = [&](int of_strips) { return 2 * call.batch * ceil_div(strips, of_strips); };
  if (call.is_multivariate() && call.dim > kFewDims)
    return side_strips(call) <= paying_side_strips(call) * device.processors;
  if (call.is_multivariate()) {
    const int64_t of_band = std::max(2 * call.batch, blocks(kBidirectionalStrips) / 2);  // half of a side's strips
    return (call.has_band ? of_band : blocks(kBidirectionalStrips / 2)) <= device.processors;
  }
  const int64_t of_table = strips < kLongChain ? 1 : call.keeps ? 4 : 2, of_band = call.keeps ? 2 : 4;
  return blocks(kBidirectionalStrips) <= (call.has_band ? of_band : of_table) * device.processors;
}

const std::vector<Candidate>& candidates(Kernel kernel) {
  static const Candidate extended_range = {Specialization::kExtendedRange, "extended_range", always};
  static const std::vector<Candidate> of_diagonal = {{Specialization::kPlain, "plain", always}};
  static const std::vector<Candidate> of_stencil = {
      {Specialization::kMultivariate, "multivariate",
       [](const Call& call, int, const Device& device) {
         return call.dim >= kStencilMultivariateDims && takes_vectors(call, device);
       }},
      {Specialization::kBanded, "banded", [](const Call& call, int, const Device&) { return has_ring(call); },
       [](const Call& call, int, const Device& device) {
         if (call.dim > 1) return ring_of_vectors_pays(call, device);
         return ring_pays(call) || !are_many_bands(call, device);
       }},
      {Specialization::kLinearDomain, "linear_domain",
       [](const Call& call, int, const Device& device) {
         const bool has_kernel = !call.has_band || (call.is_univariate() && !call.has_penalty);
         return are_short_pairs(call) && has_kernel && device.has_fast_float64();
       },
       short_pairs_pay},
      {Specialization::kIntegerLog2, "integer_log2",
       [](const Call& call, int, const Device&) { return are_short_pairs(call) && !call.is_float64; }, short_pairs_pay},
      {Specialization::kVectorLog2, "vector_log2",
       [](const Call& call, int, const Device&) { return are_vectors(call) || are_matrices(call); },
       [](const Call& call, int, const Device& device) { return are_many_vectors(call, device); }},
      extended_range,
  };
  static const std::vector<Candidate> of_tiled = {
      {Specialization::kBidirectional, "bidirectional", goes_from_both_ends, pays_from_both_ends},
      {Specialization::kFewDims, "few_dims",
       [](const Call& call, int, const Device& device) {
         return call.dim <= kFewDims && takes_vectors(call, device) && rows_of_specialised(call, 2, device) > 0;
       }},
      {Specialization::kReadyMade, "ready_made",
       [](const Call& call, int, const Device& device) { return is_matrix(call) && device.has_pipelines(); }},
      {Specialization::kMultivariate, "multivariate",
       [](const Call& call, int, const Device& device) { return takes_vectors(call, device); }},
      {Specialization::kWarpSpecialised, "warp_specialised",
       [](const Call& call, int rows, const Device& device) {
         if (call.is_float64 || !is_of_numbers(call) || !device.has_pipelines()) return false;
         return (call.keeps && rows == 2) || rows_of_specialised(call, rows, device) > 0;
       }},
      extended_range,
  };
  return kernel == Kernel::kDiagonal ? of_diagonal : kernel == Kernel::kStencil ? of_stencil : of_tiled;
}

constexpr int kSpecializations = 16;  // at most
constexpr const char* kKernelNames[] = {"diagonal", "stencil", "tiled"};

// "tiled/bidirectional" -> the kernel, and the name of its specialisation, which may be empty.
std::optional<std::pair<Kernel, std::string>> parse(const std::string& name) {
  const size_t slash = name.find('/');
  for (const Kernel kernel : {Kernel::kDiagonal, Kernel::kStencil, Kernel::kTiled})
    if (name.substr(0, slash) == kKernelNames[static_cast<int>(kernel)])
      return std::pair(kernel, slash == std::string::npos ? "" : name.substr(slash + 1));
  return {};
}

// With what follows from the choice of a specialisation.
Plan completed(Plan plan, const Call& call, const Device& device) {
  plan.forward_rows = plan.rows;
  switch (plan.specialization) {
    case Specialization::kPlain:
      plan.rows = plan.forward_rows = 0;
      break;
    case Specialization::kMultivariate:
    case Specialization::kBidirectional:
    case Specialization::kBanded:  // of pairs given up: lower strips have fewer columns outside the band
    case Specialization::kVectorLog2:
      plan.rows = plan.forward_rows = 2;
      break;
    case Specialization::kLinearDomain:
    case Specialization::kIntegerLog2:
      if (!call.is_univariate() || call.has_band) plan.rows = plan.forward_rows = 2;
      break;
    case Specialization::kFewDims:
    case Specialization::kReadyMade:
      plan.rows = 2;
      plan.forward_rows = rows_of_specialised(call, 2, device);
      plan.is_specialised = true;
      break;
    case Specialization::kWarpSpecialised: {
      // What is kept in strips of four rows goes back in tiled's blocks, which know no penalty of cells and no other cost.
      if (call.keeps && (call.has_penalty || !call.is_univariate())) plan.rows = 2;
      const int rows = rows_of_specialised(call, plan.rows, device);
      plan.is_specialised = rows > 0;
      if (plan.is_specialised) plan.forward_rows = rows;
      break;
    }
    case Specialization::kExtendedRange:
      // Strips of tiled, where they are not those of backward by several warps. Tiles of costs take registers.
      if (!call.is_float64 && (plan.kernel == Kernel::kTiled || call.cost == Cost::kMatrix))
        plan.forward_rows = call.is_univariate() ? 4 : 2;
      // At the edges of a band strips of fewer rows have fewer columns outside, and these take options in the plain sweep.
      if (plan.kernel == Kernel::kStencil && !call.is_plain()) plan.forward_rows = 2;
      plan.rows = plan.forward_rows;
      break;
    default:
      break;
  }
  return plan;
}

}  // namespace

int Plan::code() const {
  return 1 + static_cast<int>(kernel) + 3 * (static_cast<int>(specialization) + kSpecializations * (rows == 4 ? 1 : 0));
}

std::optional<Plan> Plan::from_code(int code) {
  const int rest = (code - 1) / 3, rows = rest / kSpecializations;
  if (code < 1 || rows > 1) return {};
  Plan plan;
  plan.kernel = static_cast<Kernel>((code - 1) % 3);
  plan.specialization = static_cast<Specialization>(rest % kSpecializations);
  plan.rows = plan.forward_rows = plan.is(Specialization::kPlain) ? 0 : rows == 1 ? 4 : 2;
  return plan;
}

std::string Plan::name() const {
  const std::string kernel_name = kKernelNames[static_cast<int>(kernel)];
  for (const Candidate& candidate : candidates(kernel))
    if (is(candidate.specialization)) return kernel_name + "/" + candidate.name;
  return kernel_name;
}

bool is_known_kernel(const std::string& name) {
  if (name == "auto") return true;
  const auto parsed = parse(name);
  if (!parsed) return false;
  if (name.find('/') == std::string::npos) return true;
  for (const Candidate& candidate : candidates(parsed->first))
    if (parsed->second == candidate.name) return true;
  return false;
}

std::optional<Plan> plan_of(const std::string& name, const Call& call, int rows, const Device& device) {
  if (!is_known_kernel(name) || (rows != 0 && rows != 2 && !(rows == 4 && !call.is_float64))) return {};
  Plan plan;
  std::string wanted;
  if (name == "auto")
    plan.kernel = fastest_kernel(call, device);
  else
    std::tie(plan.kernel, wanted) = *parse(name);
  plan.rows = rows > 0 ? rows : fastest_rows(plan.kernel, call, device);
  for (const Candidate& candidate : candidates(plan.kernel))
    if ((wanted.empty() ? candidate.pays(call, plan.rows, device) : wanted == candidate.name) &&
        candidate.accepts(call, plan.rows, device)) {
      plan.specialization = candidate.specialization;
      return completed(plan, call, device);
    }
  return {};
}

}  // namespace softdtw
