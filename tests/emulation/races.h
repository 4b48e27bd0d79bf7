// Accesses to memory that nothing orders: a thread writes what another one reads or writes, and no barrier, no __syncwarp() and
// nothing that one releases and the other acquires stands between them, whichever came first this time. Shuffles and votes order
// no memory. Threads have vector clocks; a word remembers its last write and some of the reads.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace emulation {

// Whether accesses are watched just now: not in the machine itself, or in words by which threads wait for each other.
inline bool is_watching = false;
struct Unwatched {
  const bool before;
  Unwatched();
  ~Unwatched();
};

class Races {
 public:
  // For a launch of so many threads at a time.
  void begin(size_t threads);
  // Of another block than before.
  void start(int thread);
  // What one hands on, by an object at any address, others learn there.
  void release(int thread, const void* object);
  void acquire(int thread, const void* object);
  void meet(const std::vector<int>& threads);
  // Other objects lie there now.
  void forget(const char* memory, size_t bytes);
  // Returns a thread whose access to the same nothing orders with this one; -1 if there is none.
  int access(int thread, const void* memory, size_t bytes, bool writes);

 private:
  using Clocks = std::vector<uint32_t>;
  using Known = std::shared_ptr<const Clocks>;
  static constexpr int kReads = 3;
  static constexpr uintptr_t kPageBytes = 4096;
  struct Access {
    uint32_t time = 0;
    uint16_t thread = 0, bytes = 0;  // of the word, a bit for each
  };
  struct Word {
    Access write, reads[kReads];
    int next = 0;  // of the reads, the one to be forgotten
  };
  using Page = std::vector<Word>;

  bool is_apart(const Access& before, const Access& now) const;
  static void join(Known& known, const Known& other);
  Word& word_at(uintptr_t address);

  Clocks own_, started_;                             // what a thread's clock shows, and did where its block started
  std::vector<Known> known_;                         // by each thread, of all
  std::unordered_map<const void*, Known> released_;  // by an object's address
  std::unordered_map<uintptr_t, Page> pages_;
};

}  // namespace emulation
