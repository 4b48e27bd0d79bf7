// The schema of every op, and nothing else. Implementations: cpu/ and cuda/. Fakes and autograd: torchsoftdtw/ops.py.
//
// Shapes: x (B, N, D), y (B, M, D), cost_matrix (B, N, M); lengths and bandwidths (B,) int64 or None; a bandwidth of -1
// means no band. `saved` is a byte tensor whose layout only the kernel that wrote it knows.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(torchsoftdtw, m) {
  m.def(
      "forward(Tensor x, Tensor y, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, int bandwidth, "
      "float gamma, float warp_penalty, str cost, str kernel, int rows_per_thread, bool save) "
      "-> (Tensor value, Tensor saved)");
  m.def(
      "backward(Tensor grad_value, Tensor x, Tensor y, Tensor value, Tensor saved, Tensor? x_lengths, "
      "Tensor? y_lengths, Tensor? bandwidths, int bandwidth, float gamma, float warp_penalty, str cost, str kernel, "
      "int rows_per_thread, bool need_x, bool need_y) -> (Tensor grad_x, Tensor grad_y)");
  m.def(
      "forward_from_cost(Tensor cost_matrix, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, int bandwidth, "
      "float gamma, float warp_penalty, str kernel, int rows_per_thread, bool save) -> (Tensor value, Tensor saved)");
  m.def(
      "backward_from_cost(Tensor grad_value, Tensor cost_matrix, Tensor value, Tensor saved, Tensor? x_lengths, "
      "Tensor? y_lengths, Tensor? bandwidths, int bandwidth, float gamma, float warp_penalty, str kernel, "
      "int rows_per_thread) -> Tensor grad_cost");
  m.def(
      "hessian_product(Tensor cost_matrix, Tensor tangent, Tensor? x_lengths, Tensor? y_lengths, Tensor? bandwidths, "
      "int bandwidth, float gamma, float warp_penalty, bool need_alignment) "
      "-> (Tensor value_tangent, Tensor alignment, Tensor alignment_tangent)");
  m.def(
      "third_order_product(Tensor cost_matrix, Tensor first, Tensor second, Tensor? x_lengths, Tensor? y_lengths, "
      "Tensor? bandwidths, int bandwidth, float gamma, float warp_penalty) "
      "-> (Tensor alignment_tangent, Tensor alignment_curvature)");
}
