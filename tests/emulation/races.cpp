#include "races.h"

#include <algorithm>

#include "machine.h"

namespace emulation {

Unwatched::Unwatched() : before(std::exchange(is_watching, false)) {}
Unwatched::~Unwatched() { is_watching = before; }

void Races::begin(size_t threads) {
  own_.assign(threads, 0);
  started_.assign(threads, 0);
  known_.assign(threads, std::make_shared<Clocks>(threads));
  released_.clear();
  pages_.clear();
}
void Races::start(int thread) {
  started_[thread] = ++own_[thread];
  known_[thread] = std::make_shared<Clocks>(own_.size());
}

void Races::release(int thread, const void* object) {
  Clocks known = *known_[thread];
  known[thread] = own_[thread]++;
  join(released_[object], std::make_shared<Clocks>(std::move(known)));
}
void Races::acquire(int thread, const void* object) {
  if (const auto found = released_.find(object); found != released_.end()) join(known_[thread], found->second);
}
void Races::meet(const std::vector<int>& threads) {
  Known all;
  for (int thread : threads) join(all, known_[thread]);
  Clocks known = *all;
  for (int thread : threads) known[thread] = own_[thread]++;
  all = std::make_shared<Clocks>(std::move(known));
  for (int thread : threads) known_[thread] = all;
}
void Races::join(Known& known, const Known& other) {
  if (known == other) return;
  if (known == nullptr) {
    known = other;
    return;
  }
  auto joined = std::make_shared<Clocks>(*known);
  for (size_t i = 0; i < joined->size(); ++i) (*joined)[i] = std::max((*joined)[i], (*other)[i]);
  known = std::move(joined);
}

void Races::forget(const char* memory, size_t bytes) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(memory);
  for (uintptr_t at = first; at < first + bytes; at += kPageBytes) pages_.erase(at / kPageBytes);
  for (auto each = released_.begin(); each != released_.end();)
    each = each->first >= memory && each->first < memory + bytes ? released_.erase(each) : std::next(each);
}
int Races::access(int thread, const void* memory, size_t bytes, bool writes) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(memory);
  for (uintptr_t at = first & ~uintptr_t{3}; at < first + bytes; at += 4) {
    const unsigned before_first = at < first ? first - at : 0, behind = at + 4 > first + bytes ? at + 4 - first - bytes : 0;
    const unsigned mask = 15u >> behind & 15u << before_first;
    const Access now = {own_[thread], static_cast<uint16_t>(thread), static_cast<uint16_t>(mask)};
    Word& word = word_at(at);
    if (is_apart(word.write, now)) return word.write.thread;
    if (!writes) {
      Access* own =
          std::find_if(word.reads, word.reads + kReads, [&](const Access& read) { return read.thread == thread; });
      if (own == word.reads + kReads) own = &word.reads[word.next++ % kReads];
      *own = now;
      continue;
    }
    for (const Access& read : word.reads)
      if (is_apart(read, now)) return read.thread;
    word.write = now;
  }
  return -1;
}
bool Races::is_apart(const Access& before, const Access& now) const {
  const bool is_own = before.thread == now.thread && before.time >= started_[now.thread];
  return (before.bytes & now.bytes) != 0 && !is_own && before.time > (*known_[now.thread])[before.thread];
}
Races::Word& Races::word_at(uintptr_t address) {
  Page& page = pages_[address / kPageBytes];
  if (page.empty()) page.resize(kPageBytes / 4);
  return page[address % kPageBytes / 4];
}

}  // namespace emulation

// What code calls that is compiled by -fsanitize=thread.
extern "C" {
void __tsan_read_range(const void* memory, size_t bytes) {
  if (emulation::is_watching) emulation::machine().access(memory, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(const void* memory, size_t bytes) {
  if (emulation::is_watching) emulation::machine().access(memory, bytes, true, __builtin_return_address(0));
}
#define ACCESS(name, bytes, writes)                                                                              \
  void __tsan_##name##bytes(const void* memory) {                                                                \
    if (emulation::is_watching) emulation::machine().access(memory, bytes, writes, __builtin_return_address(0)); \
  }
#define ACCESSES(bytes)                \
  ACCESS(read, bytes, false)           \
  ACCESS(write, bytes, true)           \
  ACCESS(unaligned_read, bytes, false) \
  ACCESS(unaligned_write, bytes, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void*, void*) {}
char __tsan_atomic8_load(const char* byte, int) { return __atomic_load_n(byte, __ATOMIC_ACQUIRE); }
void __tsan_atomic8_store(char* byte, char value, int) { __atomic_store_n(byte, value, __ATOMIC_RELEASE); }
}
