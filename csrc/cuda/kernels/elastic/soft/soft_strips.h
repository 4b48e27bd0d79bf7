// The launches of soft elastic measures by strips, for soft_strips.cu; each measure's stand in a file of measures.
#pragma once

#include "cuda/kernels/elastic/elastic_kernels.h"
#include "cuda/strips/strip.cuh"

namespace softdtw {

template <typename T>
using SoftShape = Shape<T, sizeof(T) == 4 ? 4 : 2>;

// What a pair has one number of, of one strip: the expected cost of its steps, and d value / d parameter.
struct SoftNumbers {
  double cost, parameter;
};

template <class Tile, typename T>
cudaError_t launch_soft_forward(
    const ElasticProblem<T>& problem, T* value, void* memory, Scratch& scratch, cudaStream_t stream);
// kAll: with gradients of times, parameters and gamma.
template <class Tile, bool kAll, typename T>
cudaError_t launch_soft_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const void* memory, Scratch& scratch,
    cudaStream_t stream);
// Gradients of parameters and gamma, from what strips have left: soft_strips.cu.
template <typename T>
cudaError_t launch_soft_numbers(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const SoftNumbers* numbers, cudaStream_t stream);

template <class S>
struct SoftEdit;
template <class S>
struct SoftThreshold;
template <class S>
struct SoftTwed;
template <class S>
struct SoftMsm;
template <class S>
struct SoftWeighted;

}  // namespace softdtw
