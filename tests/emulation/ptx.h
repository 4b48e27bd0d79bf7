// What stands in the place of csrc/cuda/hardware/assembly.cuh on the emulated GPU: the same names.
#pragma once

#include "cuda.h"

namespace softdtw {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

namespace ptx {

using emulation::machine;

inline unsigned shared_address(const void* object) { return static_cast<unsigned>(__cvta_generic_to_shared(object)); }
template <class T>
void pin(T&) {}
inline void store_where(unsigned holds, void* to, int a, int b) {
  if (holds != 0) static_cast<int*>(to)[0] = a, static_cast<int*>(to)[1] = b;
}
inline double with_upper_word_where(unsigned holds, double a) {
  return holds != 0 ? a : __hiloint2double(0, __double2loint(a));
}

// A kernel starts when the one before it has come to its end.
inline void wait_for_kernel_before() {}
inline void let_next_kernel_start() {}

// An H200's unit is about as much too low as one that truncates, but for results near 1.
inline float ex2_approx(float a) {
  const double exact = std::exp2(static_cast<double>(a));
  const float r = exact < 0.7 ? __double2float_rz(exact) : static_cast<float>(exact);
  return r < 1.17549435e-38f ? 0 : r;
}
inline float lg2_approx(float a) { return std::log2(a); }
inline float rcp_approx(float a) { return 1 / a; }
inline float sqrt_approx(float a) { return std::sqrt(a); }
inline float min_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b); }
inline float max_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); }

// Factors of 11 bits: what they have below that is not seen. A sum is cut off.
inline void mma_m16n8k8_tf32(
    float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  using emulation::kLanes;
  float left[16][8], right[8][8], words[kLanes];
  const auto exchange = [&](unsigned word) {
    const uint64_t* const all = emulation::meet("mma", word & 0xffffe000u);
    for (int i = 0; i < kLanes; ++i) words[i] = emulation::bit_cast_to<float>(all[i]);
  };
  const unsigned a[] = {a0, a1, a2, a3}, b[] = {b0, b1};
  for (int part = 0; part < 4; ++part) {
    exchange(a[part]);
    for (int i = 0; i < kLanes; ++i) left[i / 4 + part % 2 * 8][i % 4 + part / 2 * 4] = words[i];
  }
  for (int part = 0; part < 2; ++part) {
    exchange(b[part]);
    for (int i = 0; i < kLanes; ++i) right[i % 4 + part * 4][i / 4] = words[i];
  }
  const int group = machine().lane() / 4, member = machine().lane() % 4;
  for (int j = 0; j < 4; ++j) {
    double sum = sums[j];
    for (int k = 0; k < 8; ++k) sum += static_cast<double>(left[group + j / 2 * 8][k]) * right[k][2 * member + j % 2];
    sums[j] = __double2float_rz(sum);
  }
}

inline void prefetch_to_l2(const void*) {}

inline void bar_sync(int threads) { machine().barrier(1, threads); }
template <int kThreads>
void bar_sync() {
  bar_sync(kThreads);
}

// A barrier in shared memory: how many arrivals are left in this phase, how many there are in each, and the phase.
struct Mbarrier {
  uint16_t left, arrivals;
  uint32_t phase;
  static constexpr uint32_t kStopped = 0xfffffffe;
};
inline Mbarrier& mbarrier(unsigned address) {
  if (address % 8 != 0 || address >= sizeof emulation::shared_memory) machine().fail("an mbarrier is not in shared memory");
  return *reinterpret_cast<Mbarrier*>(emulation::shared_memory + address);
}
inline Mbarrier& running(unsigned address) {
  Mbarrier& barrier = mbarrier(address);
  if (barrier.left == 0 || barrier.left > barrier.arrivals || barrier.phase >= Mbarrier::kStopped)
    machine().fail("an mbarrier was not started");
  return barrier;
}
template <int kArrivals>
void mbarrier_init(unsigned address) {
  machine().tell();
  const emulation::Unwatched unwatched;
  mbarrier(address) = {kArrivals, kArrivals, 0};
}
inline unsigned reduce_max(unsigned number) { return __reduce_max_sync(0xffffffffu, number); }
inline void mbarrier_inval(unsigned address) {
  const emulation::Unwatched unwatched;
  running(address).phase = Mbarrier::kStopped;
}
inline void mbarrier_arrive(unsigned address) {
  const emulation::Unwatched unwatched;
  Mbarrier& barrier = running(address);
  machine().release(&barrier);
  if (--barrier.left > 0) return;
  barrier.left = barrier.arrivals;
  ++barrier.phase;
  machine().tell();
}
inline bool is_open(unsigned address, unsigned parity) {
  Mbarrier& barrier = running(address);
  const bool open = barrier.phase % 2 != parity;
  if (open) machine().acquire(&barrier);
  return open;
}
// Lanes of a warp may get different answers.
inline bool mbarrier_test_wait(unsigned address, unsigned parity) {
  const emulation::Unwatched unwatched;
  if (machine().draw() % 16 == 0) machine().yield();
  return is_open(address, parity);
}
inline bool mbarrier_try_wait(unsigned address, unsigned parity) {
  const emulation::Unwatched unwatched;
  const bool open = is_open(address, parity);
  if (!open) machine().yield();
  return open;
}

template <class T>
T& in_shared(unsigned address) {
  if (address >= sizeof emulation::shared_memory) machine().fail("an address is not in shared memory");
  return *reinterpret_cast<T*>(emulation::shared_memory + address);
}
inline void store_release_gpu(unsigned long long* word, unsigned long long value) {
  const emulation::Unwatched unwatched;
  machine().release(word);
  *word = value;
  machine().tell();
}
inline unsigned long long load_acquire_gpu(const unsigned long long* word) {
  const emulation::Unwatched unwatched;
  machine().yield();
  machine().acquire(word);
  return *word;
}
inline void store_release_block(unsigned address, unsigned long long value) {
  store_release_gpu(&in_shared<unsigned long long>(address), value);
}
inline unsigned long long load_acquire_block(unsigned address) {
  return load_acquire_gpu(&in_shared<unsigned long long>(address));
}
inline void store_relaxed_gpu(unsigned* word, unsigned value) {
  const emulation::Unwatched unwatched;
  *word = value;
  machine().tell();
}
inline unsigned load_relaxed_gpu(const unsigned* word) {
  const emulation::Unwatched unwatched;
  machine().yield();
  return *word;
}
inline void store_four_relaxed_gpu(unsigned* words, unsigned a, unsigned b, unsigned c, unsigned d) {
  const emulation::Unwatched unwatched;
  const unsigned values[] = {a, b, c, d};
  std::copy_n(values, 4, words);
  machine().tell();
}
inline void load_four_relaxed_gpu(const unsigned* words, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
  const emulation::Unwatched unwatched;
  machine().yield();
  a = words[0], b = words[1], c = words[2], d = words[3];
}

}  // namespace ptx

}  // namespace softdtw
