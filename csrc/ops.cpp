// The schema of every op, and nothing else. Implementations: cpu/ and cuda/. In torchsoftdtw: _kernels/fakes.py, _autograd.
//
// Shapes: x (B, N, D), y (B, M, D), cost_matrix (B, N, M); lengths and bandwidths (B,) int64 or None; gammas and
// warp_penalties (B,) float64, or None where the number beside them holds for every pair; a bandwidth of -1 means no band.
// An op that ends in _of_pairs is told which series each pair has, x[x_index[b]] and y[y_index[b]] with (B,) int32 indices: lengths
// are then those of the series, however many there are, and gradients those of each pair.
// `saved` is a byte tensor whose layout only the kernel that wrote it knows; its size says which one that was, and backward does
// what it says, whatever `kernel` and `rows_per_thread` it is given.
#include <string>

#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(torchsoftdtw, m) {
  const auto define_also_of_pairs = [&](const std::string& name, const std::string& rest) {
    m.def((name + "(" + rest).c_str());
    m.def((name + "_of_pairs(Tensor? x_index, Tensor? y_index, " + rest).c_str());
  };
  define_also_of_pairs(
      "forward",
      "Tensor x, Tensor y, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, Tensor? gammas, "
      "Tensor? warp_penalties, int bandwidth, float gamma, float warp_penalty, str cost, str kernel, int rows_per_thread, "
      "bool save) -> (Tensor value, Tensor saved)");
  define_also_of_pairs(
      "backward",
      "Tensor grad_value, Tensor x, Tensor y, Tensor value, Tensor saved, Tensor? x_lengths, "
      "Tensor? y_lengths, Tensor? bandwidths, Tensor? gammas, Tensor? warp_penalties, int bandwidth, float gamma, "
      "float warp_penalty, str cost, str kernel, int rows_per_thread, bool need_x, bool need_y) "
      "-> (Tensor grad_x, Tensor grad_y)");
  m.def(
      "forward_from_cost(Tensor cost_matrix, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, Tensor? gammas, "
      "Tensor? warp_penalties, int bandwidth, float gamma, float warp_penalty, str kernel, int rows_per_thread, bool save) "
      "-> (Tensor value, Tensor saved)");
  m.def(
      "backward_from_cost(Tensor grad_value, Tensor cost_matrix, Tensor value, Tensor saved, Tensor? x_lengths, "
      "Tensor? y_lengths, Tensor? bandwidths, Tensor? gammas, Tensor? warp_penalties, int bandwidth, float gamma, "
      "float warp_penalty, str kernel, int rows_per_thread) -> Tensor grad_cost");

  // Without tensors: the size of `saved`, by the backend of either library; and which kernel takes a call, or "", on a GPU of which
  // is known: 10 times its capability, its multiprocessors, the shared memory of a block, how much faster float32 is than float64.
  for (const char* const of_device : {"cpu", "cuda"})
    m.def(
        (std::string(of_device) +
         "_saved_size(int batch, int n, int m, int dim, bool is_float64, str cost, bool has_lengths, bool has_bandwidths, "
         "int bandwidth, bool has_penalty, str kernel, int rows_per_thread, int device) -> int")
            .c_str());
  m.def(
      "select_kernel(str kernel, int batch, int n, int m, int dim, bool is_float64, str cost, bool has_band, "
      "bool has_penalty, bool is_ragged, bool gradient, int capability, int processors, int shared_memory, "
      "int float64_ratio, int bandwidth=-1) -> (str name, int rows_per_thread)");
  // Which number format has taken each pair, by what forward saved on CUDA for stencil/linear_domain, integer_log2 or banded: (4 B,)
  // bytes, a PairStatus each (cuda/numbers/pair_status.cuh). To look into, not to compute with.
  m.def("pair_statuses(Tensor saved, int batch) -> Tensor");
  m.def("device_properties(int device) -> (int capability, int processors, int shared_memory, int float64_ratio)");

  // Hard DTW. `spans` (B, N, 2) int32: the first and the last column that the best path meets in each row, or nothing
  // where save is false. open_ends: the path may begin and end in any column.
  define_also_of_pairs(
      "dtw",
      "Tensor x, Tensor y, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, Tensor? warp_penalties, "
      "int bandwidth, float warp_penalty, bool open_ends, str cost, bool save) "
      "-> (Tensor value, Tensor spans)");
  define_also_of_pairs(
      "dtw_backward",
      "Tensor grad_value, Tensor x, Tensor y, Tensor value, Tensor spans, Tensor? x_lengths, "
      "Tensor? y_lengths, str cost, bool need_x, bool need_y) "
      "-> (Tensor grad_x, Tensor grad_y)");
  m.def(
      "dtw_from_cost(Tensor cost_matrix, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, Tensor? warp_penalties, "
      "int bandwidth, float warp_penalty, bool open_ends, bool save) -> (Tensor value, Tensor spans)");
  m.def(
      "dtw_from_cost_backward(Tensor grad_value, Tensor cost_matrix, Tensor value, Tensor spans, Tensor? x_lengths, "
      "Tensor? y_lengths) -> Tensor grad_cost");

  // For the nearest series under hard DTW, on the CPU. Boxes low, high (Q, D, L), L of at least N: a series of them for each of y,
  // whose i-th box holds all vectors of y that a path may match the i-th of x with; x of dtw_bounds is (P, D, L).
  // dtw_bounds: (P, Q), what x costs at least against them, a NaN nothing. dtw_within_of_pairs: the values of dtw_of_pairs, or
  // infinity where one is above its limit, (B,) float64.
  m.def("dtw_bounds(Tensor x, Tensor low, Tensor high, str cost) -> Tensor");
  m.def(
      "dtw_within_of_pairs(Tensor x_index, Tensor y_index, Tensor x, Tensor y, Tensor low, Tensor high, Tensor limits, "
      "Tensor? x_lengths, Tensor? y_lengths, int bandwidth, float warp_penalty, str cost) -> Tensor");

  // For cosine costs (core/unit_vectors.h), of series x (B, N, D) and y (B', M, D) float32: unit (B, L, width) float32 and inverse (B, L)
  // float64, 1 / length or 0, width at least D + 2. Backward takes these as forward returned them, and leaves out what no gradient comes to.
  m.def(
      "unit_vectors(Tensor x, Tensor y, int width) -> (Tensor unit_x, Tensor inverse_x, Tensor unit_y, Tensor inverse_y)");
  m.def(
      "unit_vectors_backward(Tensor? grad_unit_x, Tensor? grad_unit_y, Tensor unit_x, Tensor inverse_x, Tensor unit_y, "
      "Tensor inverse_y, int dim) -> (Tensor grad_x, Tensor grad_y)");

  // Of every range of y, and so of every column that is its last one, the hard DTW of x with the best: value (B, M) float64
  // and start (B, M) int32, of equal ones the first. A column that holds a NaN is in no range; start is below 0 where none is.
  m.def("best_ranges(Tensor x, Tensor y, float warp_penalty, str cost) -> (Tensor value, Tensor start)");

  // Elastic measures (core/elastic.h): "edit", "edr", "lcss", "twed", "msm" or "weighted"; gamma 0, without gammas: hard.
  // x_times (B, N), y_times (B, M): of "twed", in the unit of the costs, or None for `parameter` times the place; x_gaps (B, N),
  // y_gaps (B, M): u and l of "edit" and "twed"; the dtype of the series, any strides. parameters (B,) float64, or None where
  // `parameter` holds for every pair: epsilon of "edr" and "lcss", c of "msm", g of "weighted". With x_index and y_index (B,) int32
  // (both or neither) a pair has those series, with their lengths, times and gaps; what is (B,) stays of pairs. sum_border: (11).
  // saved: hard, the path as spans (B, N + 1, 2) int32, the first and last column, of 0 to M, that it meets in each row of 0 to
  // N, [M + 1, M] beyond a pair's length or where there is none; soft, bytes. Nothing where save is false.
  // Gradients are of each pair; an empty tensor where none is asked for. grad_parameter and grad_gamma: (B,), by need_numbers.
  const std::string elastic_options =
      "Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, Tensor? gammas, Tensor? parameters, int bandwidth, "
      "float gamma, float parameter, str measure, str cost, bool sum_border, str kernel, ";
  m.def(("elastic(Tensor? x_index, Tensor? y_index, Tensor x, Tensor y, Tensor? x_times, Tensor? y_times, Tensor? x_gaps, "
         "Tensor? y_gaps, " +
         elastic_options + "bool save) -> (Tensor value, Tensor saved)")
            .c_str());
  m.def(("elastic_backward(Tensor? x_index, Tensor? y_index, Tensor grad_value, Tensor x, Tensor y, Tensor? x_times, "
         "Tensor? y_times, Tensor? x_gaps, Tensor? y_gaps, Tensor value, Tensor saved, " +
         elastic_options +
         "bool need_x, bool need_y, bool need_times, bool need_gaps, bool need_numbers) -> (Tensor grad_x, Tensor grad_y, "
         "Tensor grad_x_times, Tensor grad_y_times, Tensor grad_x_gaps, Tensor grad_y_gaps, Tensor grad_parameter, "
         "Tensor grad_gamma)")
            .c_str());
  // What twed charges rows and columns, (14) of core/twed_terms.h: the x_times, y_times, x_gaps and y_gaps of elastic. Given times are
  // float32, float64 or int64; nus and lmbdas (B,) float64, or None. Times come back empty where elastic needs none, and (1, L) where
  // all pairs have the same. ..._has_slopes: an infinite step of x or y, which has no slope, costs NaN. Gradients to nus and lmbdas
  // are of each series of x and then of y; empty where none is asked for.
  const std::string twed_given =
      "Tensor x, Tensor y, Tensor? x_times, Tensor? y_times, Tensor? x_lengths, Tensor? y_lengths, Tensor? nus, "
      "Tensor? lmbdas, float nu, float lmbda, str cost, ";
  m.def(("twed_terms(" + twed_given +
         "bool x_has_slopes, bool y_has_slopes) -> (Tensor x_times, Tensor y_times, Tensor x_gaps, Tensor y_gaps)")
            .c_str());
  m.def(("twed_terms_backward(Tensor? grad_x_times, Tensor? grad_y_times, Tensor? grad_x_gaps, Tensor? grad_y_gaps, " +
         twed_given +
         "bool need_x, bool need_y, bool need_times, bool need_numbers) -> (Tensor grad_x, Tensor grad_y, "
         "Tensor grad_x_times, Tensor grad_y_times, Tensor grad_nus, Tensor grad_lmbdas)")
            .c_str());
  // diagonal, up, left: (B, N, M) of one dtype, any strides, 0 where they do not depend on the cell. Their gradients are D, U, L.
  m.def(
      "elastic_from_costs(Tensor diagonal, Tensor up, Tensor left, Tensor? x_lengths, Tensor? y_lengths, Tensor? "
      "bandwidths, "
      "Tensor? gammas, int bandwidth, float gamma, bool sum_border, str kernel, bool save) -> (Tensor value, Tensor "
      "saved)");
  m.def(
      "elastic_from_costs_backward(Tensor grad_value, Tensor diagonal, Tensor up, Tensor left, Tensor value, Tensor saved, "
      "Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, Tensor? gammas, int bandwidth, float gamma, bool "
      "sum_border, "
      "str kernel, bool need_numbers) -> (Tensor grad_diagonal, Tensor grad_up, Tensor grad_left, Tensor grad_gamma)");
  // The size of `saved` of a soft call, by the backend of either library.
  for (const char* const of_device : {"cpu", "cuda"})
    m.def((std::string(of_device) +
           "_elastic_saved_size(int batch, int n, int m, int dim, bool is_float64, str measure, str cost, bool sum_border, "
           "bool has_lengths, bool has_bandwidths, int bandwidth, str kernel) -> int")
              .c_str());

  m.def(
      "hessian_product(Tensor cost_matrix, Tensor tangent, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, "
      "Tensor? gammas, Tensor? warp_penalties, int bandwidth, float gamma, float warp_penalty, bool need_alignment) "
      "-> (Tensor value_tangent, Tensor alignment, Tensor alignment_tangent)");
  m.def(
      "third_order_product(Tensor cost_matrix, Tensor first, Tensor second, Tensor? x_lengths, Tensor? y_lengths, "
      "Tensor? bandwidths, Tensor? gammas, Tensor? warp_penalties, int bandwidth, float gamma, float warp_penalty) "
      "-> (Tensor alignment_tangent, Tensor alignment_curvature)");
}
