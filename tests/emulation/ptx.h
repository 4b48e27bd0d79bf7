// What the device code's assembly does: translate.py calls a function of these for each statement, outputs first.
#pragma once

#include "cuda.h"

namespace emulation {

// An H200's unit is about as much too low as one that truncates, but for results near 1.
inline void ex2(float& r, float a) {
  const double exact = std::exp2(static_cast<double>(a));
  r = exact < 0.7 ? __double2float_rz(exact) : exact;
  if (r < 1.17549435e-38f) r = 0;
}
inline void lg2(float& r, float a) { r = std::log2(a); }
inline void rcp(float& r, float a) { r = 1 / a; }
inline void sqrt(float& r, float a) { r = std::sqrt(a); }
inline void min_nan(float& r, float a, float b) { r = std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b); }
inline void max_nan(float& r, float a, float b) { r = std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); }

// Factors of 11 bits: what they have below that is not seen. A sum is cut off.
inline void mma(
    float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
    unsigned b1) {
  float left[16][8], right[8][8], words[kLanes];
  const auto exchange = [&](unsigned word) {
    const uint64_t* const all = meet("mma", word & 0xffffe000u);
    for (int i = 0; i < kLanes; ++i) words[i] = bit_cast_to<float>(all[i]);
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
  float* const sums[] = {&d0, &d1, &d2, &d3};
  for (int j = 0; j < 4; ++j) {
    double sum = *sums[j];
    for (int k = 0; k < 8; ++k) sum += static_cast<double>(left[group + j / 2 * 8][k]) * right[k][2 * member + j % 2];
    *sums[j] = __double2float_rz(sum);
  }
}

inline void bar_sync(int threads) { machine().barrier(1, threads); }

// A barrier in shared memory: how many arrivals are left in this phase, how many there are in each, and the phase.
struct Mbarrier {
  uint16_t left, arrivals;
  uint32_t phase;
  static constexpr uint32_t kStopped = 0xfffffffe;
};
inline Mbarrier& mbarrier(unsigned address) {
  if (address % 8 != 0 || address >= sizeof shared_memory) machine().fail("an mbarrier is not in shared memory");
  return *reinterpret_cast<Mbarrier*>(shared_memory + address);
}
inline Mbarrier& running(unsigned address) {
  Mbarrier& barrier = mbarrier(address);
  if (barrier.left == 0 || barrier.left > barrier.arrivals || barrier.phase >= Mbarrier::kStopped)
    machine().fail("an mbarrier was not started");
  return barrier;
}
inline void mbarrier_init(unsigned address, int arrivals) {
  machine().tell();
  mbarrier(address) = {static_cast<uint16_t>(arrivals), static_cast<uint16_t>(arrivals), 0};
}
inline void mbarrier_inval(unsigned address) { running(address).phase = Mbarrier::kStopped; }
inline void mbarrier_arrive(unsigned address) {
  Mbarrier& barrier = running(address);
  if (--barrier.left > 0) return;
  barrier.left = barrier.arrivals;
  ++barrier.phase;
  machine().tell();
}
// Lanes of a warp that ask at the same place get the same answer, as on a GPU.
inline void mbarrier_test(unsigned& open, unsigned address, unsigned parity) {
  open = running(address).phase % 2 != parity;
}
inline void mbarrier_try(unsigned& open, unsigned address, unsigned parity) {
  mbarrier_test(open, address, parity);
  if (!open) machine().yield();
}

template <class T>
T& in_shared(unsigned address) {
  if (address >= sizeof shared_memory) machine().fail("an address is not in shared memory");
  return *reinterpret_cast<T*>(shared_memory + address);
}
inline void store_near(unsigned address, unsigned long long value) {
  in_shared<unsigned long long>(address) = value;
  machine().tell();
}
inline void look_near(unsigned long long& seen, unsigned address) {
  machine().yield();
  seen = in_shared<unsigned long long>(address);
}
template <class T>
void store(T* word, T value) {
  *word = value;
  machine().tell();
}
template <class T>
void look(T& seen, const T* word) {
  machine().yield();
  seen = *word;
}
inline void store_four(unsigned* words, unsigned a, unsigned b, unsigned c, unsigned d) {
  const unsigned values[] = {a, b, c, d};
  std::copy_n(values, 4, words);
  machine().tell();
}
inline void look_four(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const unsigned* words) {
  machine().yield();
  a = words[0], b = words[1], c = words[2], d = words[3];
}

}  // namespace emulation
