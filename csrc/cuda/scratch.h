// Memory that kernels borrow for the time of a call. No torch header: launch.h gives it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace softdtw {

class Scratch {
 public:
  // A part of so many bytes each, aligned for any type. What an earlier launch of the call got goes back: kernels of a stream come one
  // after the other.
  template <class... Bytes>
  std::array<char*, sizeof...(Bytes)> parts(Bytes... bytes) {
    const auto padded = [](int64_t count) { return (count + 255) / 256 * 256; };
    char* next = take((padded(bytes) + ...));
    return {std::exchange(next, next + padded(bytes))...};
  }

 protected:
  // Null where no byte is needed.
  virtual char* take(int64_t bytes) = 0;
  ~Scratch() = default;
};

}  // namespace softdtw
