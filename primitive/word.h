// SPDX-License-Identifier: Apache-2.0
//
// Elements as words without a meaning: only their size matters to what moves them.
//
//   VisitWord(SizeOf(dtype), [&]<class T>(Tag<T>) { ... });  // T: uint8_t ... uint64_t
#pragma once

#include <cstddef>
#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// f(Tag<T>) with the unsigned T of so many bytes: 1, 2, 4 or 8.
template <class F>
auto VisitWord(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(Tag<uint8_t>{});
    case 2:
      return f(Tag<uint16_t>{});
    case 4:
      return f(Tag<uint32_t>{});
    default:
      return f(Tag<uint64_t>{});
  }
}

}  // namespace oneflow_lite
