// How forward tells backward what ran: in the size of what it saves, which the host knows without waiting for a device.
#pragma once

#include <cstdint>

namespace softdtw {

constexpr int64_t kRecordAlignment = 256;

// `bytes`, rounded up, and `code` more, of 1 to 255. Where there is nothing to tell, with a code of 0, `bytes` as they are.
inline int64_t recorded(int64_t bytes, int code) {
  if (code == 0) return bytes;
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment + code;
}
inline int recorded_code(int64_t size) { return static_cast<int>(size % kRecordAlignment); }

}  // namespace softdtw
