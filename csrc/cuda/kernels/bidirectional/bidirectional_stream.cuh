// What flows on from strip to strip in backward of a table swept from both its ends (bidirectional.cuh), with the sums of dy: in groups of
// columns from right to left, as each side sees them. E counts in a part of the groups only, so strips say where it begins and ends.
#pragma once

#include "bidirectional.cuh"
#include "cuda/hardware/pipeline.cuh"

namespace softdtw {

// The first item of a stream says with which group it begins, or that there is none (less than 0), any other one whether it is the
// last one.
struct alignas(16) StreamItem {
  using S = BidirectionalShape;
  float flows[S::kSteps], sums[S::kSteps];
  int word;
};
using Stream = Pipeline<StreamItem>;

// The writing warp's end.
class StreamWriter {
  Stream& pipeline;
  const int lane;
  unsigned item = 0, room = Stream::kRoom;

 public:
  __device__ explicit StreamWriter(Stream& stream) : pipeline(pinned(stream)), lane(threadIdx.x) {}
  // Waits for room for so many items.
  __device__ __forceinline__ void acquire(unsigned count) { pipeline.acquire(room, item + count); }
  // The item to be written, if there is room for it.
  __device__ __forceinline__ StreamItem& slot() { return pipeline.slot(item); }
  // The same, for which it waits.
  __device__ __forceinline__ StreamItem& next() {
    acquire(1);
    return slot();
  }
  // Hands it over, as one lane alone has written it.
  __device__ __forceinline__ void hand_over(int word, int writer = 0) {
    if (lane == writer) {
      pipeline.slot(item).word = word;
      pipeline.commit(item);
    }
    ++item;
  }
  // None with a negative one.
  __device__ __forceinline__ void begin(int group) {
    next();
    hand_over(group);
  }
};

// The reading warp's end. Groups are read in turn.
class StreamReader {
  Stream& pipeline;
  unsigned item = 0;
  int group = -1;

 public:
  __device__ explicit StreamReader(Stream& stream) : pipeline(pinned(stream)) {}
  __device__ __forceinline__ void begin() {
    group = pipeline.wait(item).word;
    pipeline.release(item++);
  }
  // The group to be read next; less than 0 after the last one.
  __device__ __forceinline__ int next_group() const { return group; }
  __device__ __forceinline__ const StreamItem& read() const { return pipeline.wait(item); }
  __device__ __forceinline__ void release() {
    group = pipeline.items[item % Stream::kRoom].word != 0 ? -1 : group - 1;
    pipeline.release(item++);
  }
};

// Between blocks: a row of groups in global memory, and a word of what is there of them.
class StreamRow {
  using S = BidirectionalShape;
  static constexpr Progress kIsOver = 1u << 31;
  FlowSlot<S>* const row;
  Progress* const word;

  __device__ __forceinline__ static Progress word_of(int first_group, unsigned items, bool is_over) {
    return static_cast<Progress>(first_group + 2) << 32 | items | (is_over ? kIsOver : 0);
  }
  __device__ __forceinline__ static int items_of(Progress seen) {
    return static_cast<int>(static_cast<unsigned>(seen) & ~kIsOver);
  }

 public:
  __device__ StreamRow(FlowSlot<S>* row_, Progress* word_) : row(row_), word(word_) {}

  // By a warp of the block that leaves them. Strips of other blocks use the row in turn.
  __device__ void carry_out(Stream& pipeline, int lane) const {
    const int first = pipeline.wait(0).word;
    pipeline.release(0);
    bool is_over = first < 0;
    if (lane == 0) publish<false>(word, word_of(first, 0, is_over));
    for (unsigned item = 1; !is_over;) {
      do {
        const StreamItem& from = pipeline.wait(item);
        is_over = from.word != 0;
        if (lane == 0) {
          FlowSlot<S>& to = row[first + 1 - static_cast<int>(item)];
          float four[S::kSteps];
          load_group(from.flows, true, four);
          store_group(to.flows, four);
          load_group(from.sums, true, four);
          store_group(to.sums, four);
        }
        pipeline.release(item++);
      } while (!is_over && pipeline.is_filled(item));
      if (lane == 0) publish<false>(word, word_of(first, item - 1, is_over));
    }
  }
  // By a warp of the block that takes them.
  __device__ void carry_in(Stream& pipeline, int lane) const {
    StreamWriter out(pipeline);
    Progress seen = 0;
    if (lane == 0)
      while ((seen = look_at<false>(word)) == 0) __nanosleep(20);
    const int first = __shfl_sync(kAllLanes, static_cast<int>(seen >> 32), 0) - 2;
    out.begin(first);
    // As many at a time as are there: a block that starts late has all those to catch up with that others have handed on meanwhile.
    constexpr int kAtOnce = 8;
    bool is_over = first < 0;
    for (int item = 1; !is_over;) {
      if (lane == 0)
        while (items_of(seen) < item)
          if (items_of(seen = look_at<false>(word)) < item) __nanosleep(20);
      __syncwarp();
      const unsigned there = __shfl_sync(kAllLanes, static_cast<unsigned>(seen), 0);
      const int last = items_of(there), end = min(last + 1, item + kAtOnce);
      float flows[S::kSteps] = {}, sums[S::kSteps] = {};
      if (item + lane < end) {
        const FlowSlot<S>& from = row[first + 1 - (item + lane)];
        load_group(from.flows, false, flows);
        load_group(from.sums, false, sums);
      }
      for (int writer = 0; item < end; ++writer, ++item) {
        StreamItem& to = out.next();
        if (lane == writer) {
          store_group(to.flows, flows);
          store_group(to.sums, sums);
        }
        is_over = item == last && (there & kIsOver) != 0;
        out.hand_over(is_over, writer);
      }
    }
  }
};

// Leaves a side's sums of dy, `add(column, sum)`.
template <class Side, class Add>
__device__ void add_sums(Stream& pipeline, int lane, const Side& side, Add&& add) {
  using S = BidirectionalShape;
  StreamReader in(pipeline);
  for (in.begin(); in.next_group() >= 0; in.release()) {
    const StreamItem& from = in.read();
    const int column = side.first_column + in.next_group() * S::kSteps + lane;
    if (lane < S::kSteps && column >= 0 && column < side.extent.m) add(column, from.sums[lane]);
  }
}

}  // namespace softdtw
