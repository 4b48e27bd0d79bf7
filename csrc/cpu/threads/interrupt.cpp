#include "interrupt.h"

#include <chrono>
#include <thread>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "progress.h"

namespace softdtw {
namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kCellsBetweenClocks = int64_t{1} << 20;  // a millisecond or so
constexpr Clock::duration kBetweenLooks = std::chrono::milliseconds(250);
constexpr Clock::duration kBeforeSleep = std::chrono::milliseconds(1);  // the caller waits without sleeping

// The library is not linked to Python, whose functions are there if the process is Python's.
struct Python {
  int (*is_initialized)() = find<int()>("Py_IsInitialized");
  int (*ensure_gil)() = find<int()>("PyGILState_Ensure");
  void (*release_gil)(int) = find<void(int)>("PyGILState_Release");
  int (*check_signals)() = find<int()>("PyErr_CheckSignals");
  void (*fetch)(void**, void**, void**) = find<void(void**, void**, void**)>("PyErr_Fetch");
  void (*restore)(void*, void*, void*) = find<void(void*, void*, void*)>("PyErr_Restore");
  int (*add_pending_call)(int (*)(void*), void*) = find<int(int (*)(void*), void*)>("Py_AddPendingCall");

  bool is_there() const {
    return is_initialized && ensure_gil && release_gil && check_signals && fetch && restore && add_pending_call;
  }

 private:
  template <class Function>
  static Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  }
};

const Python& python() {
  static const Python python;
  return python;
}

struct Exception {
  void *type = nullptr, *value = nullptr, *traceback = nullptr;
};

// What Python's interpreter calls as soon as it goes on.
int raise(void* argument) {
  Exception* const exception = static_cast<Exception*>(argument);
  python().restore(exception->type, exception->value, exception->traceback);
  delete exception;
  return -1;
}

// Lets Python handle its signals. Returns whether a handler has raised an exception, which is then on its way. An exception
// of C++ would not do: PyTorch makes a RuntimeError of each.
bool handler_raises() {
  const Python& api = python();
  const int gil = api.ensure_gil();
  const bool raises = api.check_signals() != 0;
  if (raises) {
    Exception* const exception = new Exception;
    api.fetch(&exception->type, &exception->value, &exception->traceback);
    while (api.add_pending_call(raise, exception) != 0) std::this_thread::yield();
  }
  api.release_gil(gil);
  return raises;
}

int64_t now() { return Clock::now().time_since_epoch().count(); }

thread_local Watch* watch = nullptr;

}  // namespace

Interrupt::Interrupt() : caller_(uint64_t(pthread_self())), next_look_(now() + kBetweenLooks.count()) {}

bool Interrupt::is_caller() const { return caller_ == uint64_t(pthread_self()); }

void Interrupt::look() {
  if (stopped() || now() < next_look_) return;
  const bool is_main = syscall(SYS_gettid) == getpid();  // the thread that Python handles signals in
  if (is_main && python().is_there() && python().is_initialized() && handler_raises()) stopped_.store(true);
  next_look_ = now() + kBetweenLooks.count();
}

void Interrupt::wait(const std::atomic<int64_t>& done, int64_t count) {
  const int64_t sleep_from = now() + kBeforeSleep.count();
  for (int64_t round = 0; !stopped() && done.load(std::memory_order_acquire) < count; ++round) {
    look();
    if (now() < sleep_from)
      rest(round);
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Watch::Watch(Interrupt& interrupt) : interrupt_(interrupt), before_(watch), is_caller_(interrupt.is_caller()) {
  watch = this;
}

Watch::~Watch() { watch = before_; }

bool Watch::asked(int64_t cells) {
  if (is_caller_ && (cells_ += cells) >= kCellsBetweenClocks) {
    cells_ = 0;
    interrupt_.look();
  }
  return interrupt_.stopped();
}

bool stop_asked(int64_t cells) { return watch && watch->asked(cells); }

}  // namespace cpu
}  // namespace softdtw
