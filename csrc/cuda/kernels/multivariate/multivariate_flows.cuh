// What flows from strip to strip in backward, and how far strips have to go for it.
#pragma once

#include "multivariate_channel.cuh"

namespace softdtw {

// What flows from every strip to the one above, group by group: zeros before the launch, then shares of E, which are never
// negative, with the sign bit set. So a number tells by itself that it is there, strips of different blocks need no other word
// between them, and nobody waits until what it has written has arrived.
//
// Most of E is all but 0, far from every likely path, and no sweep goes there. A strip looks for the first flow that counts
// from where the strip below has met its own: paths lead up and to the left, so nothing comes further right. It ends where
// neither it nor the strip below has any left. A flow below kNegligible does not count. What the sweeps so leave out is less
// than 2^8 such flows a chunk, and E anywhere is too small by no more than their sum over all chunks: 2^-29 in a table of 2^36
// cells.
struct FlowRows {
  using S = MultivariateShape;
  static constexpr unsigned kIsThere = 0x80000000u;
  unsigned* words = nullptr;
  int64_t strips = 0, groups = 0;

  // Of a strip, for those above: 1 + the group of the table's columns at which lane 0 of the next one is when something may
  // reach it, and 1 + the first of its own groups that flows were left in.
  struct Span {
    unsigned start, end;
  };
  Span* spans = nullptr;

  static int64_t words_of(int64_t batch, const Sizes<S>& sizes) {
    return batch * (sizes.strips - 1) * (sizes.chunks - S::kSkewChunks) * S::kSteps;
  }
  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return words_of(batch, sizes) * sizeof(unsigned) + batch * (sizes.strips - 1) * sizeof(Span);
  }
  FlowRows(void* memory, int64_t batch, const Sizes<S>& sizes)
      : words(static_cast<unsigned*>(memory)),
        strips(sizes.strips - 1),
        groups(sizes.chunks - S::kSkewChunks),
        spans(reinterpret_cast<Span*>(words + words_of(batch, sizes))) {}

  // What a strip, not the first one, leaves. Groups count from its first column.
  __device__ __forceinline__ unsigned* group(int64_t pair, int strip, int g) const {
    return words + ((pair * strips + strip - 1) * groups + g) * S::kSteps;
  }
  __device__ __forceinline__ Span& span(int64_t pair, int strip) const { return spans[pair * strips + strip - 1]; }
  __device__ __forceinline__ static unsigned look_at(const unsigned& word) { return ptx::load_relaxed_gpu(&word); }
  __device__ __forceinline__ static void leave(unsigned& word, unsigned value) { ptx::store_relaxed_gpu(&word, value); }
  __device__ __forceinline__ static void look_at(const unsigned* group, unsigned (&seen)[S::kSteps]) {
#pragma unroll
    for (int i = 0; i < S::kSteps; i += 4)
      ptx::load_four_relaxed_gpu(group + i, seen[i], seen[i + 1], seen[i + 2], seen[i + 3]);
  }
  __device__ __forceinline__ static bool are_there(const unsigned (&seen)[S::kSteps]) {
    unsigned all = kIsThere;
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) all &= seen[i];
    return all != 0;
  }
  template <int kCount>
  __device__ __forceinline__ static void leave(unsigned* group, const float (&flows)[kCount]) {
    unsigned marked[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) marked[i] = __float_as_uint(flows[i]) | kIsThere;
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      ptx::store_four_relaxed_gpu(group + i, marked[i], marked[i + 1], marked[i + 2], marked[i + 3]);
  }
};

// What comes from the strip below, for lane 31, whose columns in a chunk start one right of a group: to the sweep from a warp
// that looks for it, since a look takes half as long as the sweep of a chunk.
struct alignas(16) FlowItem {
  float flows[MultivariateShape::kSteps];
  // Of the first item, that alone: the chunk from which on E may be in the strip. Then there is an item for every chunk, until one
  // says that this chunk and those before it take nothing.
  int word;
};
struct FlowItems : Pipeline<FlowItem, 1, 8> {
  FlowItem none;

  __device__ void start(int lane) {
    Pipeline::start(lane);
    if (lane < MultivariateShape::kSteps) none.flows[lane] = 0;
  }
};

// The warp that looks.
__device__ inline void carry_flows_in(
    const FlowRows& flows, const Surroundings<MultivariateShape>& around, int64_t pair, int index, int last_chunk,
    FlowItems& items) {
  using S = MultivariateShape;
  const bool works = threadIdx.x == 0;
  const FlowRows::Span& span = flows.span(pair, index + 1);
  const unsigned* const rows = flows.group(pair, index + 1, 0);
  // The chunk that takes the first group of the strip below, and how many there are.
  const int first_taken = S::kSkewChunks + around.below_offset, groups = around.is_last ? 0 : around.below.groups();
  int chunk = last_chunk;
  unsigned item = 0, room = items.kRoom;
  if (works) {
    if (!around.is_last) {
      unsigned start;
      while ((start = FlowRows::look_at(span.start)) == 0) __nanosleep(20);
      chunk = max(0, min(chunk, static_cast<int>(start) - 1 - around.strip.first_column / S::kSteps));
    }
    items.slot(item).word = chunk;
    items.commit(item);
  }
  chunk = __shfl_sync(kAllLanes, chunk, 0);
  for (bool goes_on = true; goes_on; --chunk) {
    items.acquire(room, ++item + 1);
    if (works) {
      const int group = chunk - first_taken;
      goes_on = group >= 0 && groups > 0;
      unsigned words[S::kSteps] = {};
      while (goes_on && group < groups) {
        const unsigned end = FlowRows::look_at(span.end);
        FlowRows::look_at(rows + group * S::kSteps, words);
        if (FlowRows::are_there(words)) break;
        goes_on = end == 0 || group >= static_cast<int>(end) - 1;
      }
      FlowItem& to = items.slot(item);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) to.flows[t] = __uint_as_float(goes_on ? words[t] & ~FlowRows::kIsThere : 0u);
      to.word = !goes_on;
      items.commit(item);
    }
    goes_on = __shfl_sync(kAllLanes, goes_on, 0);
  }
}

// The sweep's side, whose lanes all read the same.
class Inflow {
  using S = MultivariateShape;
  FlowItems& items;
  unsigned item = 0;
  bool over = false;

 public:
  __device__ explicit Inflow(FlowItems& items_) : items(items_) {}

  // The chunk to look from; before anything else.
  __device__ int start() {
    const int chunk = items.wait(item).word;
    items.release(item++);
    return chunk;
  }
  // What the next chunk takes, until it leaves it.
  __device__ __forceinline__ const float* take() const { return over ? items.none.flows : items.wait(item).flows; }
  __device__ __forceinline__ void release() {
    if (over) return;
    over = items.items[item % items.kRoom].word != 0;
    items.release(item++);
  }
  // Whether the next chunk and all before it take nothing. Waits for what the next one takes.
  __device__ __forceinline__ bool is_over() const { return over || items.wait(item).word != 0; }
};

// Where flows will first count in a strip, in groups of columns of lane 0, or a little further right: from where they did two
// strips below, if paths go on as they went before, but no steeper to the left than the table's diagonal. By one lane.
__device__ inline int guess_start(const Extent& extent, const FlowRows& flows, int64_t pair, int index) {
  using S = MultivariateShape;
  constexpr int kMargin = 8;
  const int last = strips_of<S>(extent) - 1, end = (extent.m - 1) / S::kSteps + S::kSkewChunks;
  const float slope = static_cast<float>(extent.m) / extent.n / S::kSteps;
  const auto start_of = [&](int strip) {
    unsigned start;
    while ((start = FlowRows::look_at(flows.span(pair, strip).start)) == 0) __nanosleep(20);
    return static_cast<int>(start) - 2;
  };
  if (index + 2 >= last) return end + kMargin - static_cast<int>((extent.n - (index + 1) * S::kStripRows) * slope);
  const int start = start_of(index + 2);
  const float advance = fminf(max(start_of(index + 3) - start, 0), S::kStripRows * slope);
  return start + kMargin - static_cast<int>(2 * advance);
}

}  // namespace softdtw
