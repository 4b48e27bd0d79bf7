// Ctrl-C ends a long call. A call from Python's main thread lets Python handle its signals now and then, and where a handler
// raises, which the one of Ctrl-C does, the call gives up: its threads stop, it returns what there is, and Python raises the
// exception before anything of that can be used.
#pragma once

#include <atomic>
#include <cstdint>

namespace softdtw {
namespace cpu {

// One for every run of a pass, on the stack of the thread that calls.
class Interrupt {
 public:
  Interrupt();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  bool is_caller() const;
  // For the caller. Looks for signals if the last time is long ago.
  void look();
  // For the caller, which has nothing left to do: waits until all is done, and looks for signals meanwhile.
  void wait(const std::atomic<int64_t>& done, int64_t count);

 private:
  const uint64_t caller_;
  std::atomic<bool> stopped_{false};
  int64_t next_look_;
};

// While it lives, stop_asked() speaks of this interrupt in the thread.
class Watch {
 public:
  explicit Watch(Interrupt& interrupt);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  bool asked(int64_t cells);

 private:
  Interrupt& interrupt_;
  Watch* const before_;
  const bool is_caller_;
  int64_t cells_ = 0;
};

// Whether the thread is to stop; `cells` were computed since it asked before.
bool stop_asked(int64_t cells);

}  // namespace cpu
}  // namespace softdtw
