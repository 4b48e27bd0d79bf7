// What the kernels of elastic measures (core/elastic.h) offer to the backend. No torch header: plain pointers, memory, a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/elastic.h"
#include "core/hard_path.h"
#include "cuda/scratch.h"
#include "cuda/select/hard.h"

namespace softdtw {

// By anti-diagonals, hard and soft: elastic_diagonal.cu. saved is null, Spans of a hard problem, or what a soft one keeps.
template <typename T>
int64_t elastic_diagonal_bytes(const ElasticProblem<T>& problem);
template <typename T>
cudaError_t elastic_diagonal_forward(
    const ElasticProblem<T>& problem, T* value, void* saved, Scratch& scratch, cudaStream_t stream);
template <typename T>
cudaError_t elastic_diagonal_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream);

// Hard, by strips: of one dimension, elastic_univariate.cu, and with any distance or ready-made costs, elastic_dense.cu. has_...:
// whether it takes the problem.
template <typename T>
bool has_elastic_univariate(const ElasticProblem<T>& problem);
template <typename T>
cudaError_t elastic_univariate_forward(
    const ElasticProblem<T>& problem, T* value, Span* spans, Scratch& scratch, cudaStream_t stream);
// Its parts for many pairs, elastic_tall.cu, and for pairs with a band, rings/elastic_banded.cu: of all but those whose band is wider
// than the ring. width_of_others: pairs whose band has no more columns are done.
cudaError_t elastic_tall_forward(
    const ElasticProblem<float>& problem, int rows, int width_of_others, float* value, Span* spans, Scratch& scratch,
    cudaStream_t stream);
cudaError_t elastic_ring_forward(
    const ElasticProblem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch,
    cudaStream_t stream);
template <typename T>
bool has_elastic_dense(const ElasticProblem<T>& problem);
template <typename T>
cudaError_t elastic_dense_forward(
    const ElasticProblem<T>& problem, T* value, Span* spans, Scratch& scratch, cudaStream_t stream);

// Soft, by strips, of one dimension: soft/soft_strips.cu.
template <typename T>
bool has_soft_strips(const ElasticProblem<T>& problem);
template <typename T>
int64_t soft_strips_bytes(const ElasticProblem<T>& problem);
template <typename T>
cudaError_t soft_strips_forward(
    const ElasticProblem<T>& problem, T* value, void* saved, Scratch& scratch, cudaStream_t stream);
template <typename T>
cudaError_t soft_strips_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream);

// Along the paths of a hard problem, whichever kernel found them: elastic_gradient.cu.
template <typename T>
cudaError_t elastic_path_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const Span* spans, cudaStream_t stream);

}  // namespace softdtw
