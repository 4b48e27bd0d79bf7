// Directional derivatives of a table (7), (Mensch & Blondel, ICML 2018), apart from any wavefront, for host and device.
//
// With p_k the shares of a cell's predecessors, s and t two directions of the costs, and r_k the predecessors' R:
//   forward   R   = C + softmin r_k               backward   E(c) = sum over successors of p E, where c is predecessor k,
//             R_s = C_s + m_s,  m_s = sum p_k r_k,s          E_s = sum p (E_s - a E),             a = (R_s(c) - m_s) / gamma
//             R_t likewise                                   E_t likewise,                        b = (R_t(c) - m_t) / gamma
//             R_st = m_st = sum p_k r_k,st                   E_st = sum p (E_st - a E_t - b E_s + (a b - c) E),
//                    - cov_p(r_s, r_t) / gamma                                                    c = (R_st(c) - m_st) / gamma
// since p_k,s = -p_k (r_k,s - m_s) / gamma. The shares are those of the first order, in [0, 1], so nothing here can overflow
// that the result does not. R_s(c) - m_s is a difference of sums along paths and is divided by gamma: all of it is float64.
#pragma once

#include "recurrence.h"

namespace softdtw {

// One direction: E and E_s, the Hessian's product with s. Two: E_s and E_st, the third derivative's product with s and t.
template <typename T>
struct Tangents {
  View<const T> first, second;  // the directions (B, N, M); `second` without data where there is one
  T* value_tangent = nullptr;   // (B,) R_s of the last cell
  View<T> alignment;            // E, where asked for
  View<T> alignment_tangent;    // E_s
  View<T> alignment_curvature;  // E_st
};

// Derivatives of a cell's R, or of the mean of its predecessors' R, along s, along t, and along both.
template <int kDirections>
struct Jet {
  double s = 0;
};
template <>
struct Jet<2> {
  double s = 0, t = 0, st = 0;
};

// E of a cell and its derivatives.
template <int kDirections>
struct Flow {
  double e = 0, s = 0;
};
template <>
struct Flow<2> {
  double e = 0, s = 0, t = 0, st = 0;
};

// The shares of a cell's E that go to its predecessors.
template <typename T>
struct Shares {
  T diag, up, left;
};

template <int kDirections>
SOFTDTW_HD Jet<kDirections> mean_of(
    const Shares<double>& p, const Jet<kDirections>& diag, const Jet<kDirections>& up, const Jet<kDirections>& left,
    double inverse_gamma) {
  Jet<kDirections> mean;
  mean.s = p.diag * diag.s + p.up * up.s + p.left * left.s;
  if constexpr (kDirections == 2) {
    mean.t = p.diag * diag.t + p.up * up.t + p.left * left.t;
    const double covariance = p.diag * (diag.s - mean.s) * (diag.t - mean.t) + p.up * (up.s - mean.s) * (up.t - mean.t) +
                              p.left * (left.s - mean.s) * (left.t - mean.t);
    mean.st = p.diag * diag.st + p.up * up.st + p.left * left.st - covariance * inverse_gamma;
  }
  return mean;
}

// R's derivatives at a cell, from the mean over its predecessors and the directions at the cell.
template <int kDirections>
SOFTDTW_HD Jet<kDirections> at_cell(Jet<kDirections> mean, double s, double t) {
  mean.s += s;
  if constexpr (kDirections == 2) mean.t += t;
  return mean;
}

// What a cell whose R has the derivatives `own` receives from a successor: its flow, its mean, and the cell's share of it.
template <int kDirections>
SOFTDTW_HD void receive(
    Flow<kDirections>& flow, const Flow<kDirections>& from, const Jet<kDirections>& mean, const Jet<kDirections>& own,
    double share, double inverse_gamma) {
  const double a = (own.s - mean.s) * inverse_gamma;
  flow.e += share * from.e;
  flow.s += share * (from.s - a * from.e);
  if constexpr (kDirections == 2) {
    const double b = (own.t - mean.t) * inverse_gamma, c = (own.st - mean.st) * inverse_gamma;
    flow.t += share * (from.t - b * from.e);
    flow.st += share * (from.st - a * from.t - b * from.s + (a * b - c) * from.e);
  }
}

template <typename T, int kDirections>
SOFTDTW_HD void write_flow(const Tangents<T>& out, int64_t pair, int row, int column, const Flow<kDirections>& flow) {
  if (out.alignment.data) out.alignment.pair(pair).at(row, column) = static_cast<T>(flow.e);
  out.alignment_tangent.pair(pair).at(row, column) = static_cast<T>(flow.s);
  if constexpr (kDirections == 2) out.alignment_curvature.pair(pair).at(row, column) = static_cast<T>(flow.st);
}

}  // namespace softdtw
