// All inline assembly: the instructions that CUDA C++ has no name for, a function each. What is said of them is what the PTX ISA
// promises. The emulated GPU (tests/emulation/ptx.h) has functions of the same names in this file's place, and no other file may
// have assembly.
//
// `volatile` keeps an instruction where it stands among others of that kind, and "memory" keeps the accesses around it from being
// moved across it by the compiler. Neither is there where a result depends on the operands alone.
#pragma once

namespace softdtw {

// Lanes of a warp, and the mask of all of them.
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

namespace ptx {

// An instruction that GPUs before sm_80 lack. No kernel gets there: the plan of a call keeps away those that need it (cuda/select).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define SOFTDTW_SINCE_SM_80(...) __trap()
#else
#define SOFTDTW_SINCE_SM_80(...) __VA_ARGS__
#endif

// Where an object of shared memory lies, in 32 bits.
__device__ __forceinline__ unsigned shared_address(const void* object) {
  return static_cast<unsigned>(__cvta_generic_to_shared(object));
}

// No instruction: the compiler has to have the number in a register here, and knows nothing of it any more.
__device__ __forceinline__ void pin(int& number) { asm volatile("" : "+r"(number)); }
__device__ __forceinline__ void pin(unsigned& number) { asm volatile("" : "+r"(number)); }

// Two words to device memory, aligned as one of eight bytes, where `holds` is not 0: without a jump.
__device__ __forceinline__ void store_where(unsigned holds, void* to, int a, int b) {
  asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, %0, 0;\n @p st.global.v2.s32 [%1], {%2, %3};\n}"
               :
               : "r"(holds), "l"(to), "r"(a), "r"(b)
               : "memory");
}

// a, or where `holds` is 0 what is left of it without its upper word: one selection, for which the compiler takes up to four moves.
__device__ __forceinline__ double with_upper_word_where(unsigned holds, double a) {
  asm("{\n .reg .pred p;\n .reg .b32 low, high;\n setp.ne.u32 p, %1, 0;\n mov.b64 {low, high}, %0;\n"
      " selp.b32 high, high, 0, p;\n mov.b64 %0, {low, high};\n}"
      : "+d"(a)
      : "r"(holds));
  return a;
}

// ---- A kernel and the one before it in its stream (Start::kOverlapping of launch.cuh). Nothing before sm_90, where they do not overlap.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Waits until the kernel before has come to its end, and what it has written is there to read.
__device__ __forceinline__ void wait_for_kernel_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// The next kernel may start once all blocks have said so, or have ended.
__device__ __forceinline__ void let_next_kernel_start() { asm volatile("griddepcontrol.launch_dependents;"); }
#else
__device__ __forceinline__ void wait_for_kernel_before() {}
__device__ __forceinline__ void let_next_kernel_start() {}
#endif

// ---- Approximations in float32. ftz: subnormal operands and results are 0.

#define SOFTDTW_UNARY(name, instruction)                \
  __device__ __forceinline__ float name(float a) {      \
    float r;                                            \
    asm(instruction ".f32 %0, %1;" : "=f"(r) : "f"(a)); \
    return r;                                           \
  }
#define SOFTDTW_BINARY(name, instruction)                           \
  __device__ __forceinline__ float name(float a, float b) {         \
    float r;                                                        \
    asm(instruction ".f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); \
    return r;                                                       \
  }

SOFTDTW_UNARY(ex2_approx, "ex2.approx.ftz")  // 2^a, to 2 ulp
SOFTDTW_UNARY(lg2_approx, "lg2.approx.ftz")  // log2(a), to 2^-22 in absolute terms near 1 and else in relative ones
SOFTDTW_UNARY(rcp_approx, "rcp.approx.ftz")  // 1 / a, to 1 ulp
SOFTDTW_UNARY(sqrt_approx, "sqrt.approx")    // with subnormal numbers; to 2^-23 in relative terms

// ---- From sm_80 on: NaN if either operand is NaN, unlike fminf and fmaxf.

SOFTDTW_BINARY(min_nan, "min.NaN")
SOFTDTW_BINARY(max_nan, "max.NaN")

#undef SOFTDTW_UNARY
#undef SOFTDTW_BINARY

// From sm_80 on, by a whole warp: sum += left right, 16 x 8 and 8 x 8, of which a lane holds what tensor_core.cuh says. Of a
// factor, bits below TF32's 11 are not looked at; how sums are rounded is left open.
__device__ __forceinline__ void mma_m16n8k8_tf32(
    float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  SOFTDTW_SINCE_SM_80(
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(
              sum[0]),
          "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)));
}

// The greatest of the warp's numbers.
__device__ __forceinline__ unsigned reduce_max(unsigned number) {
  SOFTDTW_SINCE_SM_80(number = __reduce_max_sync(0xffffffffu, number));
  return number;
}

// A hint: the line of global memory is wanted soon.
__device__ __forceinline__ void prefetch_to_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// ---- Barrier 1 of a block, for some of its warps: waits until so many threads, a multiple of 32, have come. Their accesses before
// it are seen by all of them behind it. A warp arrives as a whole, so its lanes have to be together.

__device__ __forceinline__ void bar_sync(int threads) { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); }
template <int kThreads>
__device__ __forceinline__ void bar_sync() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// ---- From sm_80 on: a barrier object in shared memory. A phase is complete when so many lanes have arrived, and the next one
// begins. An arrival releases and a successful test acquires, both for the block.

template <int kArrivals>
__device__ __forceinline__ void mbarrier_init(unsigned address) {
  SOFTDTW_SINCE_SM_80(asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "n"(kArrivals) : "memory"));
}
// Its memory may be used otherwise, or initialised again.
__device__ __forceinline__ void mbarrier_inval(unsigned address) {
  SOFTDTW_SINCE_SM_80(asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(address) : "memory"));
}
__device__ __forceinline__ void mbarrier_arrive(unsigned address) {
  SOFTDTW_SINCE_SM_80(
      asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address) : "memory"));
}
// Whether the phase of this parity is complete: of the current phase, or of the one before it.
__device__ __forceinline__ bool mbarrier_test_wait(unsigned address, unsigned parity) {
  unsigned open = 0;
  SOFTDTW_SINCE_SM_80(
      asm volatile(
          "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(open) : "r"(
              address),
          "r"(parity) : "memory"));
  return open != 0;
}
// The same; from sm_90 on, the lane may sleep for a while, until the phase is complete.
__device__ __forceinline__ bool mbarrier_try_wait(unsigned address, unsigned parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return mbarrier_test_wait(address, parity);
#else
  unsigned open;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(open)
               : "r"(address), "r"(parity)
               : "memory");
  return open != 0;
#endif
}

// ---- Words through which threads hand over what they have written. A load that acquires and sees what a store has released sees
// all that was written before that store. Within a block both are atomic operations, so that racecheck can tell them from
// unordered accesses.

__device__ __forceinline__ void store_release_block(unsigned address, unsigned long long value) {
  asm volatile("{ .reg .b64 before; atom.release.cta.shared.exch.b64 before, [%0], %1; }" ::"r"(address), "l"(value)
               : "memory");
}
__device__ __forceinline__ unsigned long long load_acquire_block(unsigned address) {
  unsigned long long seen;
  asm volatile("atom.acquire.cta.shared.cas.b64 %0, [%1], 0, 0;" : "=l"(seen) : "r"(address) : "memory");
  return seen;
}
__device__ __forceinline__ void store_release_gpu(unsigned long long* word, unsigned long long value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ __forceinline__ unsigned long long load_acquire_gpu(const unsigned long long* word) {
  unsigned long long seen;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
  return seen;
}

// ---- Words that carry the data themselves: other blocks see a store some time, whole, and no order among several. Of four words
// each is whole.

__device__ __forceinline__ void store_relaxed_gpu(unsigned* word, unsigned value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ __forceinline__ unsigned load_relaxed_gpu(const unsigned* word) {
  unsigned seen;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
  return seen;
}
__device__ __forceinline__ void store_four_relaxed_gpu(unsigned* words, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(words), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
__device__ __forceinline__ void load_four_relaxed_gpu(
    const unsigned* words, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "l"(words)
               : "memory");
}

}  // namespace ptx

}  // namespace softdtw
