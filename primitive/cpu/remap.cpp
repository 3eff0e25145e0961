// SPDX-License-Identifier: Apache-2.0
#include "primitive/remap.h"

#include <algorithm>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/word.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread is worth starting for

// A row of the result, of the innermost dim.
template <class T>
void MoveRow(const RemapDim& d, ReverseFunction reverse, T fill, const T* x, T* y) {
  if (d.mode == RemapMode::kFlip) {
    const T* end = x + (d.size - 1) * d.stride;
    if (d.stride == 1) {
      reverse(d.out, end - (d.out - 1), y);
    } else {
      for (int64_t i = 0; i < d.out; ++i) y[i] = end[-i * d.stride];
    }
    return;
  }
  if (d.mode == RemapMode::kShift && d.stride == 1) {
    const int64_t begin = std::clamp<int64_t>(-d.shift, 0, d.out);
    const int64_t end = std::clamp(d.size - d.shift, begin, d.out);
    for (int64_t i = 0; i < begin; ++i) y[i] = fill;
    if (end > begin) {
      CopyBytes((end - begin) * int64_t{sizeof(T)}, x + begin + d.shift, y + begin);
    }
    for (int64_t i = end; i < d.out; ++i) y[i] = fill;
    return;
  }
  for (int64_t i = 0; i < d.out;) {
    int64_t j = i + d.shift;
    if (d.mode == RemapMode::kWrap) j = d.Place(i);
    if (d.stride == 1 && j >= 0 && j < d.size) {
      const int64_t n = std::min(d.out - i, d.size - j);
      CopyBytes(n * int64_t{sizeof(T)}, x + j, y + i);
      i += n;
      continue;
    }
    const int64_t place = d.Place(i);
    y[i++] = place < 0 ? fill : x[place * d.stride];
  }
}

// The indices from `begin` to `end` of a dim.
RemapDim Piece(RemapDim d, int64_t begin, int64_t end) {
  if (d.mode == RemapMode::kFlip) {
    d.size -= begin;
  } else {
    d.shift += begin;
  }
  d.out = end - begin;
  return d;
}

template <class T>
void MoveAll(const RemapShape& s, T fill, const T* x, T* y) {
  const RemapDim& last = s.dims[s.ndim - 1];
  const int64_t rows = s.numel / last.out;
  const ReverseFunction reverse = FindReverse(sizeof(T));
  const auto move = [&](int64_t row, int64_t begin, const RemapDim& piece) {
    int64_t rest = row, offset = 0;
    bool inside = true;
    for (int d = s.ndim - 2; d >= 0; --d) {
      const int64_t place = s.dims[d].Place(rest % s.dims[d].out);
      rest /= s.dims[d].out;
      inside = inside && place >= 0;
      offset += place * s.dims[d].stride;
    }
    T* to = y + row * last.out + begin;
    if (inside) {
      MoveRow(piece, reverse, fill, x + offset, to);
    } else {
      std::fill(to, to + piece.out, fill);
    }
  };
  if (rows >= NumThreads() || last.out < 2 * kGrain) {
    ParallelFor(rows, std::max<int64_t>(1, kGrain / last.out), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) move(row, 0, last);
    });
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {  // each by all threads
    ParallelFor(last.out, kGrain,
                [&](int64_t begin, int64_t end) { move(row, begin, Piece(last, begin, end)); });
  }
}

// The sum of dy over the indices that show the places.
template <class T>
T SumAt(const RemapShape& s, const int64_t* places, const T* dy) {
  using C = ComputeOf<T>;
  int64_t count = 1;
  for (int d = 0; d < s.ndim; ++d) count *= s.dims[d].Count(places[d]);
  C sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k, offset = 0, step = 1;
    for (int d = s.ndim - 1; d >= 0; --d) {
      const int64_t n = s.dims[d].Count(places[d]);
      offset += s.dims[d].Index(places[d], rest % n) * step;
      rest /= n;
      step *= s.dims[d].out;
    }
    sum += static_cast<C>(dy[offset]);
  }
  return static_cast<T>(sum);
}

class CpuRemap final : public Remap {
 public:
  explicit CpuRemap(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, const RemapShape& s, Scalar fill, const void* x, void* y) const override {
    uint64_t bits = 0;
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      const T element = CastScalar<T>(fill);
      std::memcpy(&bits, &element, sizeof(T));
    });
    VisitWord(SizeOf(dtype_), [&]<class T>(Tag<T>) {
      MoveAll(s, static_cast<T>(bits), static_cast<const T*>(x), static_cast<T*>(y));
    });
    return OkStatus();
  }
  Status LaunchBackward(Stream&, const RemapShape& s, const void* dy, void* dx) const override {
    int64_t numel = 1;
    for (int d = 0; d < s.ndim; ++d) numel *= s.dims[d].size;
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      ParallelFor(numel, kGrain / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t places[RemapShape::kMost], rest = i;
          for (int d = s.ndim - 1; d >= 0; --d) {
            places[d] = rest % s.dims[d].size;
            rest /= s.dims[d].size;
          }
          static_cast<T*>(dx)[i] = SumAt(s, places, static_cast<const T*>(dy));
        }
      });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

class CpuTriangle final : public Triangle {
 public:
  explicit CpuTriangle(DType dtype) : item_(static_cast<int64_t>(SizeOf(dtype))) {}

  Status Launch(Stream&, int64_t matrices, int64_t rows, int64_t cols, int64_t diagonal, bool lower,
                const void* x, void* y) const override {
    const int64_t bytes = cols * item_;
    ParallelFor(matrices * rows, std::max<int64_t>(1, kGrain / cols),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const char* from = static_cast<const char*>(x) + row * bytes;
                    char* to = static_cast<char*>(y) + row * bytes;
                    const int64_t edge = row % rows + diagonal + lower;
                    const int64_t cut = std::clamp<int64_t>(edge, 0, cols) * item_;
                    const auto first = static_cast<size_t>(cut);
                    const auto second = static_cast<size_t>(bytes - cut);
                    if (lower) {
                      std::memcpy(to, from, first);
                      std::memset(to + cut, 0, second);
                    } else {
                      std::memset(to, 0, first);
                      std::memcpy(to + cut, from + cut, second);
                    }
                  }
                });
    return OkStatus();
  }

 private:
  int64_t item_;
};

StatusOr<std::unique_ptr<Remap>> NewRemap(const Remap::Spec& spec) {
  return std::make_unique<CpuRemap>(spec.dtype);
}
StatusOr<std::unique_ptr<Triangle>> NewTriangle(const Triangle::Spec& spec) {
  return std::make_unique<CpuTriangle>(spec.dtype);
}

const bool registered = RegisterPrimitive<Remap>(DeviceType::kCPU, &NewRemap) &&
                        RegisterPrimitive<Triangle>(DeviceType::kCPU, &NewTriangle);

}  // namespace
}  // namespace oneflow_lite
