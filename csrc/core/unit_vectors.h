// Vectors of length 1 for the cosine cost (torchsoftdtw/_inputs/unit_vectors.py).
//
// A vector of D numbers becomes one of `width`: its numbers divided by its length, two numbers more, and zeros. Of the two, number
// `flag` is 1 where the vector is zero, whose own numbers stay zeros; the other one is 0. Lengths and quotients are float64, and
// rounded once: a length that is off is off in all costs of a vector in one direction.
#pragma once

#include <cmath>
#include <cstdint>

#include "problem.h"

namespace softdtw {

// As a backend reads and writes them, one after the other: series in forward, unit vectors in backward.
struct Vectors {
  const float* numbers;
  int64_t count, dim, width, flag;
};

// What is made of a series, and the gradient to one: two of each in a call, of x and y.
struct UnitVectors {
  Vectors vectors;
  float* unit;      // (count, width)
  double* inverse;  // (count,)
};
struct UnitGradient {
  Vectors unit;
  const float* grad_unit;  // (count, width)
  const double* inverse;
  float* grad;  // (count, dim)
};

// 1 / length, or 0 of a zero vector, which has no gradient.
SOFTDTW_HD double inverse_length(double sum_of_squares) { return sum_of_squares == 0 ? 0 : 1 / sqrt(sum_of_squares); }

// A number of a unit vector, made of the vector's own; and number d behind those.
SOFTDTW_HD float unit_number(float number, double inverse) { return static_cast<float>(number * inverse); }
SOFTDTW_HD float flag_number(const Vectors& vectors, int64_t d, double inverse) {
  return d == vectors.dim + vectors.flag && inverse == 0 ? 1.0f : 0.0f;
}

// Number d of the gradient to a vector: of that to its unit vector what is across it, divided by the length. `along`: their product.
SOFTDTW_HD float across(float gradient, float unit, double along, double inverse) {
  return static_cast<float>((gradient - unit * along) * inverse);
}

}  // namespace softdtw
