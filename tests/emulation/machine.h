// A GPU on the host, for results and not for speed: grids of blocks of warps of 32 lanes. Lanes are coroutines of one thread that
// meet in every function of the whole warp. A lane that waits lets others go on. Which warp is next is drawn by lot, and so is the
// order of its lanes from one meeting to the next, so every seed is another order of events. A kernel that waits for ever, or whose lanes part, fails and says where.
#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline uint3 threadIdx{0, 0, 0}, blockIdx{0, 0, 0};
inline dim3 blockDim, gridDim;

namespace emulation {

constexpr int kLanes = 32, kMostWarps = 32, kBarriers = 16, kMostResident = 4;
constexpr size_t kStackBytes = 1 << 17, kSharedBytes = 1 << 18;  // of a lane, of a block
constexpr int kGarbage = 0xff;                                   // NaN, and words that no counter reaches

// What every shared address lies in, so that 32 bits are enough for one.
alignas(1024) inline char shared_memory[kMostResident * kSharedBytes];

class Machine {
 public:
  static Machine& the_one() {
    static Machine machine;
    return machine;
  }
  // For the launches from now on. `resident`: blocks at a time.
  void set_order(unsigned seed, int resident) {
    seed_ = seed;
    resident_ = std::clamp(resident, 1, kMostResident);
  }
  // Calls the kernel in every thread of a grid. Where that fails, failure() says why, and nothing runs until it is taken.
  void run(dim3 grid, dim3 block, size_t dynamic_bytes, std::function<void()> kernel) {
    gridDim = grid;
    blockDim = block;
    threads_ = block.x * block.y * block.z;
    dynamic_bytes_ = dynamic_bytes;
    kernel_ = std::move(kernel);
    lot_ = seed_;
    next_block_ = 0;
    const unsigned blocks = grid.x * grid.y * grid.z;
    if (!failure_.empty()) return;
    if (threads_ > kMostWarps * kLanes || dynamic_bytes > kSharedBytes) {
      failure_ = "too many threads in a block, or too much shared memory";
      return;
    }
    for (Slot& slot : slots_) slot.alive = 0;
    _setjmp(manager_);
    while (failure_.empty()) {
      warps_.clear();
      for (int i = 0; i < resident_; ++i) {
        if (slots_[i].alive == 0 && next_block_ < blocks) start(i, next_block_++);
        if (slots_[i].alive > 0)
          for (const auto& warp : slots_[i].warps) warps_.push_back(warp.get());
      }
      if (warps_.empty()) break;
      tell();
      go_on();
    }
    threadIdx = blockIdx = {0, 0, 0};
  }
  const std::string& failure() const { return failure_; }
  std::string take_failure() { return std::exchange(failure_, {}); }

  // What follows is called by lanes.

  [[noreturn]] void fail(const char* what) {
    char where[160];
    std::snprintf(where, sizeof where, "%s: block %u, thread (%u, %u)", what, blockIdx.x, threadIdx.x, threadIdx.y);
    failure_ = where;
    for (const Warp* warp : warps_) {
      int counts[kStates] = {};
      for (const Lane& lane : warp->lanes) ++counts[lane.state];
      std::snprintf(
          where, sizeof where, "\n  block %u, warp %d: %d lanes under way, %d wait in %s, %d at a barrier, %d done",
          warp->slot->index.x, warp->number, counts[kNew] + counts[kReady], counts[kMeets],
          warp->function == nullptr ? "nothing" : warp->function, counts[kAtBarrier], counts[kDone]);
      failure_ += where;
    }
    _longjmp(manager_, 1);
  }
  // Every lane of the warp brings a word to the same function; then each sees all of them. Two sets in turn: a lane may be one
  // meeting ahead of another.
  const uint64_t* meet(const char* function, uint64_t word) {
    Warp& warp = *warp_;
    Lane& lane = warp.lanes[lane_];
    uint64_t* const words = warp.words[lane.turn];
    lane.turn ^= 1;
    words[lane_] = word;
    if (warp.met == 0) warp.function = function;
    if (warp.function != function && std::strcmp(warp.function, function) != 0)
      fail("lanes of a warp meet in different functions");
    lane.state = kMeets;
    ++warp.met;
    const bool all_met = release_met(warp);
    if (_setjmp(lane.place) == 0) {
      if (all_met) begin(warp);
      pass_on(true);
    }
    return words;
  }
  // Of so many threads; 0: of all that are left.
  void barrier(int number, int threads) {
    Slot& slot = *warp_->slot;
    Lane& lane = warp_->lanes[lane_];
    lane.state = kAtBarrier;
    lane.barrier = number;
    slot.needed[number] = threads;
    ++slot.arrived[number];
    release_barrier(slot, number);
    if (_setjmp(lane.place) == 0) pass_on(true);
  }
  // Something that others may wait for has changed.
  void tell() { yields_ = 0; }
  // Lets others go on.
  void yield() {
    if (++yields_ > kMostYields) fail("threads wait for ever");
    if (_setjmp(warp_->lanes[lane_].place) == 0) pass_on(false);
  }
  // A copy that runs beside the lane: it may be done at once, or not before it is waited for.
  void copy_beside(void* to, const void* from, size_t bytes) {
    if (draw() % 2 == 0)
      std::memcpy(to, from, bytes);
    else
      warp_->lanes[lane_].copies.push_back({to, from, bytes});
  }
  void wait_for_copies() {
    auto& copies = warp_->lanes[lane_].copies;
    for (const Copy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
    copies.clear();
  }
  unsigned draw() {
    lot_ = lot_ * 1664525u + 1013904223u;
    return lot_ >> 8;
  }
  int lane() const { return lane_; }
  char* dynamic_memory() const { return warp_->slot->memory; }
  // The block's object of a declaration.
  void* shared(const char* declaration, size_t bytes) {
    Slot& slot = *warp_->slot;
    for (const auto& [known, offset] : slot.objects)
      if (known == declaration) return slot.memory + offset;
    const size_t offset = (slot.used + 127) / 128 * 128;
    slot.objects.push_back({declaration, offset});
    slot.used = offset + bytes;
    if (slot.used > kSharedBytes) fail("a block has no more shared memory");
    return slot.memory + offset;
  }

 private:
  enum State { kNew, kReady, kMeets, kAtBarrier, kDone, kStates };
  static constexpr int kMostYields = 1 << 22;  // in all of which nothing has changed
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  struct Lane {
    jmp_buf place;
    ucontext_t start;
    State state;
    int turn, barrier;
    std::vector<Copy> copies;
  };
  struct Slot;
  struct Warp {
    Lane lanes[kLanes];
    uint64_t words[2][kLanes];
    int met, alive, number;
    int first, stride, flip;  // the order of its lanes, see lane_at
    const char* function;
    Slot* slot;
  };
  // Of a block that is under way.
  struct Slot {
    std::vector<std::unique_ptr<Warp>> warps;
    int alive, arrived[kBarriers], needed[kBarriers];
    uint3 index;
    char* memory;
    size_t used;
    std::vector<std::pair<const char*, size_t>> objects;
  };

  void start(int number, unsigned block) {
    Slot& slot = slots_[number];
    slot.alive = threads_;
    slot.index = {block % gridDim.x, block / gridDim.x % gridDim.y, block / gridDim.x / gridDim.y};
    std::fill_n(slot.arrived, kBarriers, 0);
    slot.memory = shared_memory + number * kSharedBytes;
    std::memset(slot.memory, kGarbage, kSharedBytes);
    slot.used = dynamic_bytes_;
    slot.objects.clear();
    const size_t warps = (threads_ + kLanes - 1) / kLanes;
    slot.warps.resize(std::min(slot.warps.size(), warps));
    while (slot.warps.size() < warps) slot.warps.push_back(std::make_unique<Warp>());
    for (size_t i = 0; i < warps; ++i) {
      Warp& warp = *slot.warps[i];
      warp.slot = &slot;
      warp.number = i;
      warp.met = warp.alive = warp.first = warp.flip = 0;
      warp.stride = 1;
      warp.function = nullptr;
      for (int lane = 0; lane < kLanes; ++lane) {
        Lane& each = warp.lanes[lane];
        each.turn = 0;
        each.copies.clear();
        each.state = static_cast<int>(i) * kLanes + lane < threads_ ? kNew : kDone;
        if (each.state == kDone) continue;
        ++warp.alive;
        getcontext(&each.start);
        each.start.uc_stack.ss_sp = stack_of((number * kMostWarps + i) * kLanes + lane);
        each.start.uc_stack.ss_size = kStackBytes;
        makecontext(&each.start, enter, 0);
      }
    }
  }
  char* stack_of(size_t index) {
    constexpr size_t kBytes = kMostResident * kMostWarps * kLanes * kStackBytes;  // taken as they are written to
    if (stacks_ == nullptr) {
      void* const memory =
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) std::abort();
      stacks_ = static_cast<char*>(memory);
    }
    return stacks_ + index * kStackBytes;
  }

  // The lane at a place of their order. Strides are odd, so every lane has a place. Of two lanes either may be the first one.
  static int lane_at(const Warp& warp, int place) { return (warp.first + place * warp.stride) % kLanes ^ warp.flip; }
  // The first of the warp's lanes that can go on, at `place` or behind it in their order; kLanes if none can.
  static int next_ready(const Warp& warp, int place) {
    while (place < kLanes && warp.lanes[lane_at(warp, place)].state > kReady) ++place;
    return place;
  }
  static bool release_met(Warp& warp) {
    if (warp.met == 0 || warp.met < warp.alive) return false;
    for (Lane& lane : warp.lanes)
      if (lane.state == kMeets) lane.state = kReady;
    warp.met = 0;
    return true;
  }
  void release_barrier(Slot& slot, int number) {
    const int needed = slot.needed[number] > 0 ? slot.needed[number] : slot.alive;
    if (slot.arrived[number] == 0 || slot.arrived[number] < needed) return;
    for (const auto& warp : slot.warps)
      for (Lane& lane : warp->lanes)
        if (lane.state == kAtBarrier && lane.barrier == number) lane.state = kReady;
    slot.arrived[number] = 0;
    tell();
  }

  static void enter() {
    Machine& machine = the_one();
    machine.kernel_();
    machine.leave();
  }
  [[noreturn]] void leave() {
    Warp& warp = *warp_;
    Slot& slot = *warp.slot;
    warp.lanes[lane_].state = kDone;
    --warp.alive;
    --slot.alive;
    release_met(warp);
    for (int i = 0; i < kBarriers; ++i)
      if (slot.arrived[i] > 0 && slot.needed[i] == 0) release_barrier(slot, i);
    if (slot.alive == 0) _longjmp(manager_, 1);
    pass_on(true);
  }

  // To the warp's next lane that can go on, or else to some warp. One that only yields lets other warps on after the last lane.
  [[noreturn]] void pass_on(bool around) {
    Warp& warp = *warp_;
    int place = next_ready(warp, place_ + 1);
    if (place == kLanes && around) place = next_ready(warp, 0);
    if (place < kLanes) resume(warp, place);
    go_on();
  }
  [[noreturn]] void go_on() {
    const size_t first = draw();
    for (size_t i = 0; i < warps_.size(); ++i) begin(*warps_[(first + i) % warps_.size()]);
    fail("all threads wait for each other");
  }
  // Lanes go on in an order of their own. Returns if none can.
  void begin(Warp& warp) {
    const unsigned lot = draw();
    warp.first = lot % kLanes;
    warp.stride = lot / kLanes % kLanes | 1;
    warp.flip = lot / (kLanes * kLanes) % kLanes;
    const int place = next_ready(warp, 0);
    if (place < kLanes) resume(warp, place);
  }
  [[noreturn]] void resume(Warp& warp, int place) {
    const int lane = lane_at(warp, place);
    warp_ = &warp;
    place_ = place;
    lane_ = lane;
    blockIdx = warp.slot->index;
    const unsigned thread = warp.number * kLanes + lane;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
    Lane& next = warp.lanes[lane];
    if (next.state == kNew) {
      next.state = kReady;
      setcontext(&next.start);
    }
    _longjmp(next.place, 1);
  }
  unsigned seed_ = 0, lot_ = 0, next_block_ = 0;
  int resident_ = 2, threads_ = 0, place_ = 0, lane_ = 0, yields_ = 0;
  size_t dynamic_bytes_ = 0;
  std::function<void()> kernel_;
  std::string failure_;
  Slot slots_[kMostResident];
  std::vector<Warp*> warps_;  // of the blocks that are under way
  Warp* warp_ = nullptr;
  char* stacks_ = nullptr;
  jmp_buf manager_;
};

inline Machine& machine() { return Machine::the_one(); }

// __shared__ T name: the block's.
template <class T>
T& shared(const char* declaration) {
  return *static_cast<T*>(machine().shared(declaration, sizeof(T)));
}

}  // namespace emulation
