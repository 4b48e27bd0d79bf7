// A GPU on the host, for results and not for speed: grids of blocks of warps of 32 lanes. Lanes are coroutines of one thread that
// meet in every function of the whole warp. A lane that waits lets others go on. Which warp is next is drawn by lot, and so is the
// order of its lanes from one meeting to the next, so every seed is another order of events. A kernel that waits for ever, whose
// lanes part, or whose accesses to memory nothing orders (races.h), fails and says where.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "races.h"

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
  static Machine& the_one();
  // For the launches from now on. `resident`: blocks at a time; `watches`: whether accesses that nothing orders are failures.
  void set_order(unsigned seed, int resident, bool watches);
  // Calls the kernel in every thread of a grid. Where that fails, failure() says why, and nothing runs until it is taken.
  void run(dim3 grid, dim3 block, size_t dynamic_bytes, std::function<void()> kernel);
  const std::string& failure() const { return failure_; }
  std::string take_failure() { return std::exchange(failure_, {}); }

  // What follows is called by lanes.

  [[noreturn]] void fail(const char* what);
  // Every lane of the warp brings a word to the same function; then each sees all of them. Two sets in turn: a lane may be one
  // meeting ahead of another.
  const uint64_t* meet(const char* function, uint64_t word);
  // Of so many threads; 0: of all that are left.
  void barrier(int number, int threads);
  // Something that others may wait for has changed.
  void tell();
  // Lets others go on.
  void yield();
  // What the lane has done is done before what those do that acquire the same object.
  void release(const void* object);
  void acquire(const void* object);
  // An access to memory, by code at an address.
  void access(const void* memory, size_t bytes, bool writes, const void* code);
  // A copy that runs beside the lane: it may be done at once, or not before it is waited for. Those between two commits are a group;
  // all groups but the `newest` are waited for.
  void copy_beside(void* to, const void* from, size_t bytes);
  void commit_copies();
  void wait_for_copies(size_t newest);
  unsigned draw();
  int lane() const;
  char* dynamic_memory() const;
  // The block's object of a declaration.
  void* shared(const char* declaration, size_t bytes);

 private:
  enum State { kNew, kReady, kMeets, kAtBarrier, kDone, kStates };
  struct Copy {
    void* to;
    const void* from;
    size_t bytes, group;
  };
  struct Lane {
    jmp_buf place;
    ucontext_t start;
    State state;
    int turn, barrier;
    std::vector<Copy> copies;
    size_t groups;
  };
  struct Slot;
  struct Warp {
    Lane lanes[kLanes];
    uint64_t words[2][kLanes];
    int met, alive, number;
    int first, stride, flip;  // the order of its lanes, see lane_at
    int idle;                 // turns since it saw that something had been told
    uint64_t heard;           // how much had been told then
    const char* function;
    Slot* slot;
  };
  // Of a block that is under way.
  struct Slot {
    std::vector<std::unique_ptr<Warp>> warps;
    int alive, arrived[kBarriers], needed[kBarriers];
    int slow;  // the number of a warp that goes on only where all others wait
    uint3 index;
    char* memory;
    size_t used;
    std::vector<std::pair<const char*, size_t>> objects;
  };

  int warps_of_block() const { return (threads_ + kLanes - 1) / kLanes; }
  void start(int number, unsigned block);
  char* stack_of(size_t index);
  static int lane_at(const Warp& warp, int place);
  static int next_ready(const Warp& warp, int place);
  int number_of(const Warp& warp, int lane) const;
  bool release_met(Warp& warp);
  void release_barrier(Slot& slot, int number);
  void copy(const Copy& copy);
  static void enter();
  [[noreturn]] void leave();
  [[noreturn]] void pass_on(bool around);
  [[noreturn]] void go_on();
  void begin(Warp& warp);
  [[noreturn]] void resume(Warp& warp, int place);

  unsigned seed_ = 0, lot_ = 0, next_block_ = 0, turns_ = 0;
  uint64_t told_ = 0;
  int resident_ = 2, threads_ = 0, place_ = 0, lane_ = 0, yields_ = 0;
  size_t dynamic_bytes_ = 0;
  std::function<void()> kernel_;
  std::string failure_;
  Slot slots_[kMostResident];
  std::vector<Warp*> warps_;  // of the blocks that are under way
  Warp* warp_ = nullptr;
  char* stacks_ = nullptr;
  jmp_buf manager_;
  bool watches_ = false;
  Races races_;
};

inline Machine& machine() { return Machine::the_one(); }

// __shared__ T name: the block's.
template <class T>
T& shared(const char* declaration) {
  return *static_cast<T*>(machine().shared(declaration, sizeof(T)));
}

}  // namespace emulation
