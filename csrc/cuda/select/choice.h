// What is chosen by how fast it is: a kernel, and the rows of a lane. The figures are in choice.cpp.
#pragma once

#include "plan.h"

namespace softdtw {

// stencil or tiled.
Kernel fastest_kernel(const Call& call, const Device& device);
// Whether integer log2 of vectors (stencil/vector_log2) is faster for these than other specialisations are.
bool are_many_vectors(const Call& call, const Device& device);
// Whether rings of vectors are faster than that.
bool ring_of_vectors_pays(const Call& call, const Device& device);
// Whether pairs with a wide band are so many, or so short, that the kernels of short pairs are faster than the extended range.
bool are_many_bands(const Call& call, const Device& device);
// Of a lane, in the strips of stencil and tiled: 2 or 4. More rows mean fewer instructions a cell, and fewer warps to hide latency
// with.
int fastest_rows(Kernel kernel, const Call& call, const Device& device);

}  // namespace softdtw
