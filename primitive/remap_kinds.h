// SPDX-License-Identifier: Apache-2.0
//
// Which place of a dim an index of the result shows, for host and device.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/philox.h"  // OFL_HOST_DEVICE

namespace oneflow_lite {

enum class RemapMode : uint8_t {
  kShift,    // j = i + shift, none outside
  kWrap,     // round at the ends
  kReflect,  // mirrored at the first and the last place
  kClamp,    // the first or the last place
  kFlip,     // size - 1 - i
};

struct RemapDim {
  int64_t size = 1;    // places of what is read
  int64_t out = 1;     // indices of the result
  int64_t stride = 0;  // of what is read, in elements
  int64_t shift = 0;   // in [-size, size]; j = i + shift is in [-size, 2 size) but for kShift
  RemapMode mode = RemapMode::kShift;

  // -1: none.
  OFL_HOST_DEVICE int64_t Place(int64_t i) const { return PlaceAs<int64_t>(i); }
  // In 32 bits where size and out are below 2^30.
  template <class Int>
  OFL_HOST_DEVICE Int PlaceAs(Int i) const {
    const Int n = static_cast<Int>(size), j = i + static_cast<Int>(shift);
    if (mode == RemapMode::kShift) return j >= 0 && j < n ? j : -1;  // of most dims
    switch (mode) {
      case RemapMode::kWrap:
        return j < 0 ? j + n : j >= n ? j - n : j;
      case RemapMode::kReflect:
        return j < 0 ? -j : j >= n ? 2 * (n - 1) - j : j;
      case RemapMode::kClamp:
        return j < 0 ? 0 : j >= n ? n - 1 : j;
      default:
        return n - 1 - i;
    }
  }

  // The indices that show place p, in their order: how many, and number k of them.
  OFL_HOST_DEVICE int64_t Count(int64_t p) const {
    switch (mode) {
      case RemapMode::kShift:
        return p - shift >= 0 && p - shift < out ? 1 : 0;
      case RemapMode::kWrap: {
        const int64_t first = FirstRound(p);
        return first < out ? (out - 1 - first) / size + 1 : 0;
      }
      case RemapMode::kReflect: {
        int64_t count = 0;
        for (int k = 0; k < 3; ++k) count += Shows(Mirrored(p, k), p, k);
        return count;
      }
      case RemapMode::kClamp:
        return End(p) - Begin(p);
      default:
        return 1;
    }
  }
  OFL_HOST_DEVICE int64_t Index(int64_t p, int64_t k) const {
    switch (mode) {
      case RemapMode::kShift:
        return p - shift;
      case RemapMode::kWrap:
        return FirstRound(p) + k * size;
      case RemapMode::kReflect: {
        for (int m = 0; m < 3; ++m) {
          if (!Shows(Mirrored(p, m), p, m)) continue;
          if (k-- == 0) return Mirrored(p, m);
        }
        return 0;
      }
      case RemapMode::kClamp:
        return Begin(p) + k;
      default:
        return size - 1 - p;
    }
  }

 private:
  OFL_HOST_DEVICE int64_t FirstRound(int64_t p) const {
    const int64_t i = (p - shift) % size;
    return i < 0 ? i + size : i;
  }
  // The index whose mirror image before the first place, itself, or behind the last one is p.
  OFL_HOST_DEVICE int64_t Mirrored(int64_t p, int k) const {
    return (k == 0 ? -p : k == 1 ? p : 2 * (size - 1) - p) - shift;
  }
  OFL_HOST_DEVICE bool Shows(int64_t i, int64_t p, int k) const {
    return i >= 0 && i < out && (k == 1 || (k == 0 ? p > 0 : p < size - 1));
  }
  OFL_HOST_DEVICE int64_t Within(int64_t i) const { return i < 0 ? 0 : i > out ? out : i; }
  OFL_HOST_DEVICE int64_t Begin(int64_t p) const { return p == 0 ? 0 : Within(p - shift); }
  OFL_HOST_DEVICE int64_t End(int64_t p) const {
    return p == size - 1 ? out : Within(p - shift + 1);
  }
};

// Plain data, so that a CUDA kernel can take it as an argument.
struct RemapShape {
  static constexpr int kMost = 16;
  int ndim = 0;
  int64_t numel = 1;     // of the result
  RemapDim dims[kMost];  // outermost first
};

}  // namespace oneflow_lite
