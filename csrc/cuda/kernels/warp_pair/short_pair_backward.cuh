// Backward of a warp's pairs, by an engine of short pairs: of those that it has taken in forward. An Engine has
//     kMostWarps, kBlocks        of a block, and blocks of a multiprocessor, which registers are given out for
//     kStatus, kInWindow         which it left for these, and for those that a Window is to try first
//     Table                      a chunk's memory, shared by the warp, with the windows of y behind it
//     Pair, Window               its ShortPair, its PairWindow
//     sweep_back(pair, layout, table, kept, gradient)
//                                the pairs of the warp; of windows, returns whether the lane's has been done
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "window.cuh"

namespace softdtw {

// Pair: one of the two; own: the lane's, or -1. Returns whether it is still to be done.
template <class Engine, class Pair, typename T>
__device__ __forceinline__ bool short_pair_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const ShortPairLayout& layout, int64_t own, char* memory,
    const char* saved, int64_t stride) {
  using Table = typename Engine::Table;
  const bool exists = own >= 0;
  if (!__any_sync(kAllLanes, exists)) return false;
  Pair pair(problem, layout, own, exists, reinterpret_cast<T*>(memory + sizeof(Table)));
  const T scale = gradient_scale(problem, gradient, pair.pair);
  const ShortGradient<T> out = {
      gradient.x.data == nullptr || !exists ? nullptr : gradient.x.pair(pair.pair).data,
      gradient.y.data == nullptr || !exists ? nullptr : gradient.y.pair(pair.pair).data,
      Pair::kIsStretched ? scale / pair.factor : scale};
  return !Engine::sweep_back(pair, layout, *reinterpret_cast<Table*>(memory), saved + pair.pair * stride, out) && exists;
}

// In windows first, and those that a window did not do without one. Returns whether there are such.
template <class Engine>
__device__ bool short_pair_window_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const ShortPairLayout& layout, int64_t own,
    char* memory, const char* saved, int64_t stride) {
  using Window = typename Engine::Window;
  const unsigned failed =
      __ballot_sync(kAllLanes, short_pair_backward<Engine, Window>(problem, gradient, layout, own, memory, saved, stride));
  for (int i = 0; i < Window::kPairs; ++i) {
    if ((failed >> i * Window::kLanes & 1) == 0) continue;
    __syncwarp();
    short_pair_backward<Engine, typename Engine::Pair>(
        problem, gradient, layout, __shfl_sync(kAllLanes, own, i * Window::kLanes), memory, saved, stride);
  }
  return failed != 0;
}

}  // namespace softdtw
