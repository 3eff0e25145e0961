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

// The indices [to, to + n) of a dim, which show places from `from` on, each `step` farther, or
// none.
struct Stretch {
  int64_t to, n, from, step;
  bool inside;
};

// A dim's stretches: what lies before the places, what shows them in order, and what lies behind.
struct Stretches {
  Stretch of[3];
  int count = 0;

  explicit Stretches(const RemapDim& d) {
    if (d.mode == RemapMode::kFlip) {
      Add(d, 0, d.out, -1);
      return;
    }
    const int64_t begin = std::clamp<int64_t>(-d.shift, 0, d.out);
    const int64_t end = std::clamp(d.size - d.shift, begin, d.out);
    const int64_t beyond = d.mode == RemapMode::kWrap ? 1 : d.mode == RemapMode::kReflect ? -1 : 0;
    Add(d, 0, begin, beyond);
    Add(d, begin, end, 1);
    Add(d, end, d.out, beyond);
  }
  const Stretch* begin() const { return of; }
  const Stretch* end() const { return of + count; }

 private:
  void Add(const RemapDim& d, int64_t begin, int64_t end, int64_t step) {
    if (begin == end) return;
    const int64_t from = d.Place(begin);
    of[count++] = {begin, end - begin, from, step, from >= 0};
  }
};

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

// The result plane by plane of the two innermost dims, block by block of their stretches.
template <class T>
class Mover {
 public:
  Mover(const RemapShape& s, T fill, const T* x, T* y)
      : s_(s),
        cols_(s.dims[s.ndim - 1]),
        rows_(s.ndim > 1 ? s.dims[s.ndim - 2] : RemapDim()),
        down_(rows_),
        fill_(fill),
        x_(x),
        y_(y) {}

  // Of rows [row, end) the columns of `cols`, which begin at `begin`.
  void Move(int64_t row, int64_t end, const RemapDim& cols, int64_t begin) const {
    const Stretches across(cols);
    while (row < end) {
      const int64_t top = row % rows_.out, n = std::min(rows_.out - top, end - row);
      MovePlane(row / rows_.out, top, n, across, y_ + row * cols_.out + begin);
      row += n;
    }
  }

 private:
  // Rows [top, top + n) of a plane.
  void MovePlane(int64_t plane, int64_t top, int64_t n, const Stretches& across, T* y) const {
    int64_t offset = 0;
    bool inside = true;
    for (int d = s_.ndim - 3; d >= 0; plane /= s_.dims[d--].out) {
      const int64_t place = s_.dims[d].Place(plane % s_.dims[d].out);
      inside = inside && place >= 0;
      offset += place * s_.dims[d].stride;
    }
    for (const Stretch& r : down_) {
      const int64_t begin = std::max(r.to, top), end = std::min(r.to + r.n, top + n);
      if (begin >= end) continue;
      const int64_t from = offset + (r.from + (begin - r.to) * r.step) * rows_.stride;
      for (const Stretch& c : across) {
        T* to = y + (begin - top) * cols_.out + c.to;
        if (inside && r.inside && c.inside) {
          MoveBlock(end - begin, c.n, x_ + from + c.from * cols_.stride, r.step * rows_.stride,
                    c.step * cols_.stride, to);
        } else {
          for (int64_t i = begin; i < end; ++i, to += cols_.out) std::fill_n(to, c.n, fill_);
        }
      }
    }
  }
  void MoveBlock(int64_t rows, int64_t cols, const T* x, int64_t x_row, int64_t x_col, T* y) const {
    constexpr int64_t kItem = sizeof(T), kLong = 512;  // bytes that are worth a call of memcpy
    if (x_col == 1 && cols * kItem <= kLong) {
      return CopyRows(rows, cols * kItem, x, x_row * kItem, y, cols_.out * kItem);
    }
    if (x_col == -1 && x_row == -cols && cols_.out == cols) {  // one long row
      return reverse_(1, rows * cols, x - (rows * cols - 1), 0, y, 0);
    }
    if (x_col == -1) return reverse_(rows, cols, x - (cols - 1), x_row, y, cols_.out);
    for (int64_t r = 0; r < rows; ++r, x += x_row, y += cols_.out) {
      if (x_col == 1) {
        CopyBytes(cols * kItem, x, y);
      } else if (x_col == 0) {
        repeat_(cols, x, y);
      } else {
#pragma GCC unroll 4  // see CopyStrided
        for (int64_t c = 0; c < cols; ++c) y[c] = x[c * x_col];
      }
    }
  }

  const RemapShape& s_;
  const RemapDim cols_, rows_;
  const Stretches down_;
  const T fill_;
  const T* const x_;
  T* const y_;
  const ReverseFunction reverse_ = FindReverse(sizeof(T));
  const RepeatFunction repeat_ = FindRepeat(sizeof(T));
};

template <class T>
void MoveAll(const RemapShape& s, T fill, const T* x, T* y) {
  const RemapDim& last = s.dims[s.ndim - 1];
  const int64_t rows = s.numel / last.out;
  const Mover<T> mover(s, fill, x, y);
  if (rows >= NumThreads() || last.out < 2 * kGrain) {
    ParallelFor(rows, std::max<int64_t>(1, kGrain / last.out),
                [&](int64_t begin, int64_t end) { mover.Move(begin, end, last, 0); });
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {  // each by all threads
    ParallelFor(last.out, kGrain, [&](int64_t begin, int64_t end) {
      mover.Move(row, row + 1, Piece(last, begin, end), begin);
    });
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
    const auto copy = [in_place = x == y](char* to, const char* from, int64_t n) {
      if (!in_place) CopyBytes(n, from, to);
    };
    ParallelFor(matrices * rows, std::max<int64_t>(1, kGrain / cols),
                [&](int64_t begin, int64_t end) {
                  int64_t in_matrix = begin % rows;
                  for (int64_t row = begin; row < end; ++row) {
                    const char* from = static_cast<const char*>(x) + row * bytes;
                    char* to = static_cast<char*>(y) + row * bytes;
                    const int64_t edge = in_matrix + diagonal + lower;
                    const int64_t cut = std::clamp<int64_t>(edge, 0, cols) * item_;
                    if (lower) {
                      copy(to, from, cut);
                      std::memset(to + cut, 0, static_cast<size_t>(bytes - cut));
                    } else {
                      std::memset(to, 0, static_cast<size_t>(cut));
                      copy(to + cut, from + cut, bytes - cut);
                    }
                    if (++in_matrix == rows) in_matrix = 0;
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
