// What flows from strip to strip in backward, and how far strips have to go for it.
#pragma once

#include "product_channel.cuh"

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
  using S = ProductShape;
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
  __device__ __forceinline__ static unsigned look_at(const unsigned& word) {
    unsigned seen;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&word) : "memory");
    return seen;
  }
  __device__ __forceinline__ static void leave(unsigned& word, unsigned value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(&word), "r"(value) : "memory");
  }
  __device__ __forceinline__ static void look_at(const unsigned* group, unsigned (&seen)[S::kSteps]) {
#pragma unroll
    for (int i = 0; i < S::kSteps; i += 4)
      asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(seen[i]), "=r"(seen[i + 1]), "=r"(seen[i + 2]), "=r"(seen[i + 3])
                   : "l"(group + i)
                   : "memory");
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
      asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(group + i), "r"(marked[i]),
                   "r"(marked[i + 1]), "r"(marked[i + 2]), "r"(marked[i + 3])
                   : "memory");
  }
};

// Of a strip in backward: what comes from the strip below, for lane 31, whose columns in a chunk start one right of a group.
class Inflow {
  using S = ProductShape;
  const unsigned* const rows;
  const FlowRows::Span* const span;
  const int first_taken, taken;  // the chunk that takes the first group, and how many there are
  int ended = 0;                 // the first group that the strip below has left flows in, as far as is known
  unsigned words[S::kSteps];

  __device__ __forceinline__ bool takes(int chunk) const {
    return chunk - first_taken >= ended && chunk - first_taken < taken;
  }
  __device__ __forceinline__ void look(int chunk) { FlowRows::look_at(rows + (chunk - first_taken) * S::kSteps, words); }
  __device__ __forceinline__ void know_end(unsigned end) {
    if (end != 0) ended = end - 1;
  }

 public:
  __device__ Inflow(const FlowRows& flows, const Surroundings<S>& around, int64_t pair, int index)
      : rows(flows.group(pair, index + 1, 0)),
        span(&flows.span(pair, index + 1)),
        first_taken(S::kSkewChunks + around.below_offset),
        taken(threadIdx.x == kWarp - 1 && !around.is_last ? around.below.groups() : 0) {}

  // Starts to look for what a chunk takes.
  __device__ __forceinline__ void prepare(int chunk) {
    if (takes(chunk)) look(chunk);
  }
  // Waits for it, and prepares the chunk before.
  __device__ __forceinline__ void take(int chunk, float (&below)[S::kSteps]) {
    if (takes(chunk)) {
#pragma unroll 1
      while (!FlowRows::are_there(words)) {
        const unsigned end = FlowRows::look_at(span->end);
        look(chunk);
        know_end(end);
        if (!takes(chunk)) break;
      }
    }
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) below[t] = __uint_as_float(takes(chunk) ? words[t] & ~FlowRows::kIsThere : 0u);
    prepare(chunk - 1);
    __syncwarp();
  }
  // Whether chunks before this one take nothing.
  __device__ __forceinline__ bool is_over(int chunk) {
    if (taken > 0) know_end(FlowRows::look_at(span->end));
    return __all_sync(kAllLanes, min(chunk - 1 - first_taken, taken - 1) < ended);
  }
};

// Where flows will first count in a strip, in groups of columns of lane 0, or a little further right: from where they did two
// strips below, if paths go on as they went before, but no steeper to the left than the table's diagonal. By one lane.
__device__ inline int guess_start(const Extent& extent, const FlowRows& flows, int64_t pair, int index) {
  using S = ProductShape;
  constexpr int kMargin = 4;
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
