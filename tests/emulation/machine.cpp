#include "machine.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulation {
namespace {

constexpr size_t kAllStackBytes =
    size_t{kMostResident} * kMostWarps * kLanes * kStackBytes;  // taken as they are written to
constexpr int kMostYields = 1 << 22;                            // in all of which nothing has changed
constexpr int kMostIdle = 8;  // turns, in which nothing has changed, of a warp that others do not wait for
constexpr unsigned kSlowTurns = 1024;

}  // namespace

Machine& Machine::the_one() {
  static Machine machine;
  return machine;
}

void Machine::set_order(unsigned seed, int resident, bool watches) {
  seed_ = seed;
  resident_ = std::clamp(resident, 1, kMostResident);
  watches_ = watches;
}

void Machine::run(dim3 grid, dim3 block, size_t dynamic_bytes, std::function<void()> kernel) {
  gridDim = grid;
  blockDim = block;
  threads_ = block.x * block.y * block.z;
  dynamic_bytes_ = dynamic_bytes;
  kernel_ = std::move(kernel);
  lot_ = seed_;
  next_block_ = turns_ = 0;
  const unsigned blocks = grid.x * grid.y * grid.z;
  if (!failure_.empty()) return;
  if (threads_ > kMostWarps * kLanes || dynamic_bytes > kSharedBytes) {
    failure_ = "too many threads in a block, or too much shared memory";
    return;
  }
  for (Slot& slot : slots_) slot.alive = 0;
  if (watches_) races_.begin(resident_ * warps_of_block() * kLanes);
  _setjmp(manager_);
  is_watching = false;
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

void Machine::fail(const char* what) {
  char where[160];
  failure_ = what;
  std::snprintf(where, sizeof where, ": block %u, thread (%u, %u)", blockIdx.x, threadIdx.x, threadIdx.y);
  failure_ += where;
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

const uint64_t* Machine::meet(const char* function, uint64_t word) {
  const Unwatched unwatched;
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

void Machine::barrier(int number, int threads) {
  const Unwatched unwatched;
  Slot& slot = *warp_->slot;
  Lane& lane = warp_->lanes[lane_];
  lane.state = kAtBarrier;
  lane.barrier = number;
  slot.needed[number] = threads;
  ++slot.arrived[number];
  release(slot.memory + number);
  release_barrier(slot, number);
  if (_setjmp(lane.place) == 0) pass_on(true);
  acquire(warp_->slot->memory + number);
}

void Machine::tell() {
  yields_ = 0;
  ++told_;
}
void Machine::yield() {
  const Unwatched unwatched;
  if (++yields_ > kMostYields) fail("threads wait for ever");
  if (_setjmp(warp_->lanes[lane_].place) == 0) pass_on(false);
}

void Machine::release(const void* object) {
  if (watches_) races_.release(number_of(*warp_, lane_), object);
}
void Machine::acquire(const void* object) {
  if (watches_) races_.acquire(number_of(*warp_, lane_), object);
}
void Machine::access(const void* memory, size_t bytes, bool writes, const void* code) {
  const char* const first = static_cast<const char*>(memory);
  if (first >= stacks_ && first < stacks_ + kAllStackBytes) return;
  const int other = races_.access(number_of(*warp_, lane_), memory, bytes, writes);
  if (other < 0) return;
  Dl_info library;
  dladdr(code, &library);
  char what[160];
  std::snprintf(
      what, sizeof what, "nothing orders a %s, by code at %#zx, and an access of thread (%d, %d) of %s block",
      writes ? "write" : "read", static_cast<const char*>(code) - static_cast<const char*>(library.dli_fbase),
      other % kLanes, other / kLanes % warps_of_block(),
      &slots_[other / kLanes / warps_of_block()] == warp_->slot ? "the same" : "another");
  fail(what);
}

void Machine::copy_beside(void* to, const void* from, size_t bytes) {
  Lane& own = warp_->lanes[lane_];
  const Copy all = {to, from, bytes, own.groups};
  if (draw() % 2 == 0)
    copy(all);
  else
    own.copies.push_back(all);
}
void Machine::commit_copies() { ++warp_->lanes[lane_].groups; }
void Machine::wait_for_copies(size_t newest) {
  Lane& own = warp_->lanes[lane_];
  auto& copies = own.copies;
  auto rest = copies.begin();
  for (; rest != copies.end() && rest->group + newest < own.groups; ++rest) copy(*rest);
  copies.erase(copies.begin(), rest);
}
void Machine::copy(const Copy& copy) {
  if (watches_) {
    access(copy.from, copy.bytes, false, __builtin_return_address(0));
    access(copy.to, copy.bytes, true, __builtin_return_address(0));
  }
  std::memcpy(copy.to, copy.from, copy.bytes);
}

unsigned Machine::draw() {
  lot_ = lot_ * 1664525u + 1013904223u;
  return lot_ >> 8;
}
int Machine::lane() const { return lane_; }
char* Machine::dynamic_memory() const { return warp_->slot->memory; }
void* Machine::shared(const char* declaration, size_t bytes) {
  Slot& slot = *warp_->slot;
  for (const auto& [known, offset] : slot.objects)
    if (known == declaration) return slot.memory + offset;
  const size_t offset = (slot.used + 127) / 128 * 128;
  slot.objects.push_back({declaration, offset});
  slot.used = offset + bytes;
  if (slot.used > kSharedBytes) fail("a block has no more shared memory");
  return slot.memory + offset;
}

void Machine::start(int number, unsigned block) {
  Slot& slot = slots_[number];
  slot.alive = threads_;
  slot.index = {block % gridDim.x, block / gridDim.x % gridDim.y, block / gridDim.x / gridDim.y};
  std::fill_n(slot.arrived, kBarriers, 0);
  slot.memory = shared_memory + number * kSharedBytes;
  std::memset(slot.memory, kGarbage, kSharedBytes);
  if (watches_) races_.forget(slot.memory, kSharedBytes);
  slot.used = dynamic_bytes_;
  slot.objects.clear();
  const size_t warps = warps_of_block();
  slot.warps.resize(std::min(slot.warps.size(), warps));
  while (slot.warps.size() < warps) slot.warps.push_back(std::make_unique<Warp>());
  for (size_t i = 0; i < warps; ++i) {
    Warp& warp = *slot.warps[i];
    warp.slot = &slot;
    warp.number = i;
    warp.met = warp.alive = warp.first = warp.flip = warp.idle = 0;
    warp.stride = 1;
    warp.heard = told_;
    warp.function = nullptr;
    for (int lane = 0; lane < kLanes; ++lane) {
      Lane& each = warp.lanes[lane];
      each.turn = 0;
      each.copies.clear();
      each.groups = 0;
      each.state = static_cast<int>(i) * kLanes + lane < threads_ ? kNew : kDone;
      if (each.state == kDone) continue;
      ++warp.alive;
      if (watches_) races_.start(number_of(warp, lane));
      getcontext(&each.start);
      each.start.uc_stack.ss_sp = stack_of(number_of(warp, lane));
      each.start.uc_stack.ss_size = kStackBytes;
      makecontext(&each.start, enter, 0);
    }
  }
}
char* Machine::stack_of(size_t index) {
  if (stacks_ == nullptr) {
    void* const memory =
        mmap(nullptr, kAllStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    stacks_ = static_cast<char*>(memory);
  }
  return stacks_ + index * kStackBytes;
}

// The lane at a place of their order. Strides are odd, so every lane has a place. Of two lanes either may be the first one.
int Machine::lane_at(const Warp& warp, int place) { return (warp.first + place * warp.stride) % kLanes ^ warp.flip; }
// The first of the warp's lanes that can go on, at `place` or behind it in their order; kLanes if none can.
int Machine::next_ready(const Warp& warp, int place) {
  while (place < kLanes && warp.lanes[lane_at(warp, place)].state > kReady) ++place;
  return place;
}
// Of all threads that are under way.
int Machine::number_of(const Warp& warp, int lane) const {
  return ((warp.slot - slots_) * warps_of_block() + warp.number) * kLanes + lane;
}
bool Machine::release_met(Warp& warp) {
  if (warp.met == 0 || warp.met < warp.alive) return false;
  std::vector<int> threads;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (warp.lanes[lane].state != kMeets) continue;
    warp.lanes[lane].state = kReady;
    threads.push_back(number_of(warp, lane));
  }
  if (watches_ && std::strcmp(warp.function, "syncwarp") == 0) races_.meet(threads);
  warp.met = 0;
  return true;
}
void Machine::release_barrier(Slot& slot, int number) {
  const int needed = slot.needed[number] > 0 ? slot.needed[number] : slot.alive;
  if (slot.arrived[number] == 0 || slot.arrived[number] < needed) return;
  for (const auto& warp : slot.warps)
    for (Lane& lane : warp->lanes)
      if (lane.state == kAtBarrier && lane.barrier == number) lane.state = kReady;
  slot.arrived[number] = 0;
  tell();
}

void Machine::enter() {
  Machine& machine = the_one();
  is_watching = machine.watches_;
  machine.kernel_();
  is_watching = false;
  machine.leave();
}
void Machine::leave() {
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
void Machine::pass_on(bool around) {
  Warp& warp = *warp_;
  int place = next_ready(warp, place_ + 1);
  if (place == kLanes && around) place = next_ready(warp, 0);
  if (place < kLanes) resume(warp, place);
  go_on();
}
// To some warp. In every block one, or none, is slow for a while, so that others go as far ahead of it as they can. Those that
// seem to wait come last.
void Machine::go_on() {
  if (turns_++ % kSlowTurns == 0)
    for (Slot& slot : slots_) slot.slow = draw() % (warps_of_block() + 1);
  const size_t first = draw();
  for (int patience = 0; patience < 3; ++patience)
    for (size_t i = 0; i < warps_.size(); ++i) {
      Warp& warp = *warps_[(first + i) % warps_.size()];
      const bool waits = warp.heard == told_ && warp.idle >= kMostIdle;
      if ((waits ? 2 : warp.number == warp.slot->slow) != patience || next_ready(warp, 0) == kLanes) continue;
      warp.idle = warp.heard == told_ ? warp.idle + 1 : 0;
      warp.heard = told_;
      begin(warp);
    }
  fail("all threads wait for each other");
}
// Lanes go on in an order of their own. Returns if none can.
void Machine::begin(Warp& warp) {
  const unsigned lot = draw();
  warp.first = lot % kLanes;
  warp.stride = lot / kLanes % kLanes | 1;
  warp.flip = lot / (kLanes * kLanes) % kLanes;
  const int place = next_ready(warp, 0);
  if (place < kLanes) resume(warp, place);
}
void Machine::resume(Warp& warp, int place) {
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

}  // namespace emulation
