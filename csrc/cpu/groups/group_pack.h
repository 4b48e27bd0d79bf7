// From the caller's strided tensors to the series of a group.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/kernels.h"

namespace softdtw {
namespace cpu {

// The pairs that a group has, from the first on.
struct GroupPairs {
  int64_t first, count;

  // The last one again, where there are no more.
  int64_t of_lane(int64_t lane) const { return first + std::min(lane, count - 1); }
};

// Memory for a series of `numbers` of each pair, with so many zeros before and behind it.
template <typename Wide>
GroupSeries<Wide> take_series(Parts& parts, int64_t numbers, int64_t padding) {
  GroupSeries<Wide> series;
  series.stride = numbers + 2 * padding;
  series.numbers = parts.template take<Wide>(series.stride * kGroup);
  if (series.numbers) series.numbers += padding * kernels(Wide{}).lanes;
  return series;
}

template <typename T, typename Wide>
void interleave(const T* const* series, int64_t count, Wide* to, Wide limit, bool* fits) {
  if constexpr (std::is_same_v<T, Wide>)
    kernels(Wide{}).interleave(series, count, to, limit, fits);
  else
    kernels(Wide{}).interleave_floats(series, count, to, limit, fits);
}

// The series of each lane, view_of(lane) of so many rows. `fits`: whose numbers all are below the limit, whatever their sign.
template <typename T, typename Wide, class ViewOf>
void pack_series(
    const ViewOf& view_of, int64_t rows, int64_t dim, Wide limit, GroupSeries<Wide>& to, bool (&fits)[kGroup]) {
  const int64_t lanes = kernels(Wide{}).lanes, numbers = rows * dim, padding = (to.stride - numbers) / 2;
  View<const T> views[kGroup];
  bool is_one = true, is_contiguous = true, own_fits[kGroup];
  for (int64_t lane = 0; lane < kGroup; ++lane) {
    views[lane] = view_of(lane);
    own_fits[lane] = true;
    is_one &= views[lane].data == views[0].data;
    is_contiguous &= views[lane].row_stride == dim && (dim == 1 || views[lane].column_stride == 1);
  }
  to.is_one = is_one;
  for (int64_t k = 0; k < (is_one ? 1 : kGroup); k += lanes) {
    Wide *const own = to.numbers + k * to.stride, *const end = own + numbers * lanes;
    std::fill(own - padding * lanes, own, Wide(0));
    std::fill(end, end + padding * lanes, Wide(0));
    if (is_contiguous) {
      const T* from[kGroup];
      for (int64_t lane = 0; lane < lanes; ++lane) from[lane] = views[k + lane].data;
      interleave(from, numbers, own, limit, own_fits + k);
      continue;
    }
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t d = 0; d < dim; ++d) {
          const Wide number = views[k + lane].at(i, d);
          own[(i * dim + d) * lanes + lane] = number;
          if (!(std::abs(number) < limit)) own_fits[k + lane] = false;
        }
  }
  for (int64_t lane = 0; lane < kGroup; ++lane) fits[lane] &= own_fits[is_one ? 0 : lane];
}

}  // namespace cpu
}  // namespace softdtw
