// The strips of a pair, one after the other in one emulated warp, for tests/test_emulation.py.
#include "warp.h"

#include "csrc/cuda/linear_strip.cuh"
#include "csrc/cuda/robust_strip.cuh"

namespace softdtw {
namespace {

// What a test hands over: float32 series of one dimension, or a cost matrix where `costs` is not null.
struct Pair {
  const float *x, *y, *costs;
  int64_t n, m;
  double gamma, warp_penalty;
  int64_t bandwidth;
  float *value, *dx, *dy, *alignment;
};

Problem<float> problem_of(const Pair& pair) {
  Problem<float> problem;
  problem.cost = pair.costs != nullptr ? Cost::kMatrix : Cost::kSqEuclidean;
  problem.x = {pair.x, pair.n, 1, 1};
  problem.y = {pair.y, pair.m, 1, 1};
  problem.cost_matrix = {pair.costs, pair.n * pair.m, pair.m, 1};
  problem.batch = 1;
  problem.n = pair.n;
  problem.m = pair.m;
  problem.dim = 1;
  problem.gamma = pair.gamma;
  problem.scale = 1 / (pair.gamma * kLn2);
  problem.warp_penalty = pair.warp_penalty;
  problem.bandwidth = pair.bandwidth;
  return problem;
}

std::vector<double> memory_of(int64_t bytes) { return std::vector<double>(bytes / sizeof(double) + 8, -7e77); }

template <class S, class Tile, bool kIsAhead>
void robust(const Pair& pair) {
  const Problem<float> problem = problem_of(pair);
  const Extent extent = problem.extent(0);
  const Sizes<S> sizes(problem);
  std::vector<double> kept = memory_of(Saved<S>::bytes(1, sizes));
  std::vector<double> flowing = memory_of(sizeof(float) * Flows<S>::scalars(1, sizes, 1));
  const Saved<S> saved(kept.data(), 1, sizes);
  const Flows<S> flows(reinterpret_cast<float*>(flowing.data()), 1, sizes);
  const float one = 1;
  Gradient<float> gradient;
  gradient.value = pair.value;
  gradient.grad_value = &one;
  if (pair.costs != nullptr) {
    gradient.cost = {pair.alignment, pair.n * pair.m, pair.m, 1};
  } else {
    gradient.x = {pair.dx, pair.n, 1, 1};
    gradient.y = {pair.dy, pair.m, 1, 1};
  }
  const int strips = strips_of<S>(extent);
  for (int strip = 0; strip < strips; ++strip) {
    ForwardStrip<S> job;
    job.pair = 0;
    job.strip = strip;
    job.edges = saved.edges;
    Warp::the_one().run([&] { robust_forward_strip<S, Tile, kIsAhead>(problem, extent, job, saved, pair.value); });
  }
  for (int strip = strips - 1; strip >= 0; --strip) {
    BackwardStrip job;
    job.pair = 0;
    job.strip = strip;
    Warp::the_one().run([&] { robust_backward_strip<S, Tile, kIsAhead>(problem, gradient, extent, job, saved, flows); });
  }
}

// The value alone. False where the pair is given up.
template <class S>
bool linear(const Pair& pair) {
  const Problem<float> problem = problem_of(pair);
  const Extent extent = problem.extent(0);
  const Sizes<S> sizes(problem);
  std::vector<double> row = memory_of(Edges<S>::bytes(1, 1, sizes.groups));
  bool right = true;
  for (int strip = 0; strip < strips_of<S>(extent) && right; ++strip) {
    ForwardStrip<S> job;
    job.pair = 0;
    job.strip = strip;
    job.edges = Edges<S>(row.data(), 1, 1, sizes.groups, true);
    Warp::the_one().run([&] {
      const bool done = linear_forward_strip<S, LinearTile<S, UnivariateTile<S, true>>>(problem, extent, job, pair.value);
      if (threadIdx.x == 0) right = done;
    });
  }
  return right;
}

}  // namespace
}  // namespace softdtw

using namespace softdtw;
using Two = Shape<float, 2>;
using Four = Shape<float, 4>;

extern "C" {

// Of series alone.
void robust_two_ahead(const Pair* pair) { robust<Two, UnivariateTile<Two, false>, true>(*pair); }
void robust_four(const Pair* pair) {
  pair->costs != nullptr ? robust<Four, DenseTile<Four>, false>(*pair)
                         : robust<Four, UnivariateTile<Four, false>, false>(*pair);
}
bool linear_four(const Pair* pair) { return linear<Four>(*pair); }

}  // extern "C"
