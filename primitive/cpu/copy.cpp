// SPDX-License-Identifier: Apache-2.0
//
// Copies: contiguous operands are converted in one go; a transposed plane goes tile by tile, so
// that both sides are walked along their lines. Elements of any other geometry are moved from run
// to run, rows of a few elements row by row, or converted by way of chunk buffers.
#include "primitive/copy.h"

#include <algorithm>
#include <cstring>

#include "oneflow_lite/core/elementwise_order.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/cpu/strided.h"
#include "primitive/cpu/transposed.h"

namespace oneflow_lite {
namespace {

class CpuCopy final : public Copy {
 public:
  explicit CpuCopy(const Spec& spec)
      : converts_(spec.from != spec.to),
        convert_(FindConvert(spec.from, spec.to)),
        from_item_(static_cast<int64_t>(SizeOf(spec.from))),
        to_item_(static_cast<int64_t>(SizeOf(spec.to))),
        transpose_(FindTranspose(SizeOf(spec.from))),
        repeat_(FindRepeat(SizeOf(spec.from))),
        every_second_(FindEverySecond(SizeOf(spec.from))) {}

  Status Launch(Stream&, const Elementwise<2>& given, const void* src, void* dst) const override {
    if (given.numel == 0) return OkStatus();
    const Elementwise<2> g = OrderedBy(given, 1);
    const char* from = static_cast<const char*>(src);
    char* to = static_cast<char*>(dst);
    if (g.contiguous) {
      ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        convert_(end - begin, from + begin * from_item_, to + begin * to_item_);
      });
    } else if (const TransposedPlane plane = FindTransposedPlane(g, 0, 1); plane.row >= 0) {
      LaunchPlanes(g, plane, from, to);
    } else if (!converts_ && g.ndim >= 2 && HasShortRuns(g)) {
      LaunchShortRuns(g, from, to);
    } else {
      ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        if (converts_) {
          LaunchChunks(g, begin, end, from, to);
        } else {
          LaunchRuns(g, begin, end, from, to);
        }
      });
    }
    return OkStatus();
  }
  // Parts of the same rows of dst are copied row by row, of short ones a few rows at a time, so
  // that dst is written in its order.
  Status LaunchAll(Stream& stream, absl::Span<const Part> parts) const override {
    if (!HaveRowsInCommon(parts)) return Copy::LaunchAll(stream, parts);
    int64_t cols = 0;
    for (const Part& p : parts) cols += p.g.dims[1];
    ParallelFor(parts[0].g.dims[0], std::max<int64_t>(1, kElementwiseGrain / cols),
                [&](int64_t begin, int64_t end) {
                  constexpr int64_t kAtOnce = 4096;  // bytes of dst
                  const int64_t most = std::max<int64_t>(1, kAtOnce / (cols * to_item_));
                  for (int64_t r = begin, n; r < end; r += n) {
                    n = std::min(most, end - r);
                    for (const Part& p : parts) CopyPart(p, r, n);
                  }
                });
    return OkStatus();
  }

 private:
  bool HaveRowsInCommon(absl::Span<const Part> parts) const {
    if (converts_ || parts.size() < 2) return false;
    const Elementwise<2>& first = parts[0].g;
    return std::all_of(parts.begin(), parts.end(), [&](const Part& p) {
      return p.g.ndim == 2 && p.g.dims[0] == first.dims[0] &&
             p.g.strides[1][0] == first.strides[1][0] && p.g.strides[0][1] == 1 &&
             p.g.strides[1][1] == 1;
    });
  }
  // Its rows [r, r + n).
  void CopyPart(const Part& p, int64_t r, int64_t n) const {
    constexpr int64_t kLong = 256;  // for which memcpy is worth its call
    const int64_t bytes = p.g.dims[1] * to_item_, x_stride = p.g.strides[0][0] * to_item_;
    const int64_t y_stride = p.g.strides[1][0] * to_item_;
    const char* x = static_cast<const char*>(p.src) + r * x_stride;
    char* y = static_cast<char*>(p.dst) + r * y_stride;
    if (bytes < kLong) return CopyRows(n, bytes, x, x_stride, y, y_stride);
    for (int64_t i = 0; i < n; ++i, x += x_stride, y += y_stride) CopyBytes(bytes, x, y);
  }

  // Whether a run takes less than the way to the next one.
  bool HasShortRuns(const Elementwise<2>& g) const {
    constexpr int64_t kElements = 16, kBytes = 512;  // of any run; of one that is dense
    const int last = g.ndim - 1;
    const bool dense = g.strides[0][last] == 1 && g.strides[1][last] == 1;
    return g.dims[last] <= kElements || (dense && g.dims[last] * to_item_ <= kBytes);
  }

  // Two dims at a time.
  void LaunchShortRuns(const Elementwise<2>& g, const char* src, char* dst) const {
    const int last = g.ndim - 1;
    Elementwise<2> rows = g;
    rows.ndim = last;
    rows.numel = g.numel / g.dims[last];
    ParallelFor(rows.numel, kElementwiseGrain / g.dims[last], [&](int64_t begin, int64_t end) {
      StridedCursor from(rows, 0, begin), to(rows, 1, begin);
      for (int64_t i = begin; i < end;) {
        const int64_t n = std::min({end - i, from.run(), to.run()});
        CopyPlane(static_cast<size_t>(to_item_), n, g.dims[last], src + from.offset() * from_item_,
                  {from.stride(), g.strides[0][last]}, dst + to.offset() * to_item_,
                  {to.stride(), g.strides[1][last]});
        from.Advance(n);
        to.Advance(n);
        i += n;
      }
    });
  }

  void LaunchRuns(const Elementwise<2>& g, int64_t begin, int64_t end, const char* src,
                  char* dst) const {
    StridedCursor from(g, 0, begin), to(g, 1, begin);
    for (int64_t i = begin; i < end;) {
      const int64_t n = std::min({end - i, from.run(), to.run()});
      const char* here = src + from.offset() * from_item_;
      char* there = dst + to.offset() * to_item_;
      if (from.stride() == 0 && to.stride() == 1) {
        repeat_(n, here, there);
      } else if (from.stride() == 2 && to.stride() == 1) {
        every_second_(n, here, there);
      } else {
        CopyStrided(static_cast<size_t>(to_item_), n, here, from.stride(), there, to.stride());
      }
      from.Advance(n);
      to.Advance(n);
      i += n;
    }
  }

  void LaunchChunks(const Elementwise<2>& g, int64_t begin, int64_t end, const char* src,
                    char* dst) const {
    StridedReader reader(g, 0, static_cast<size_t>(from_item_), src, begin);
    StridedWriter writer(g, 1, static_cast<size_t>(to_item_), dst, begin);
    ChunkBuffer gathered, converted;
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      convert_(n, reader.Read(n, gathered), writer.Start(n, converted));
      writer.Finish(n, converted);
    }
  }

  // One unit of work is a strip: a tile's rows of one plane, all of its columns.
  void LaunchPlanes(const Elementwise<2>& g, const TransposedPlane& plane, const char* src,
                    char* dst) const {
    const int64_t src_stride = g.strides[0][g.ndim - 1];
    const int64_t dst_stride = g.strides[1][plane.row];
    const int64_t bytes = plane.cols * from_item_;  // of a row, which is not worth a call if short
    const bool direct = !converts_ && bytes <= kLine;
    const bool joined = dst_stride == plane.cols && bytes <= 4 * kLine;
    const int64_t height = direct || joined ? kTileBytes / bytes : TileRows(from_item_);
    ForStrips(g, plane, height, [&](const auto& offsets, int64_t rows) {
      const char* from = src + offsets[0] * from_item_;
      char* to = dst + offsets[1] * to_item_;
      if (direct) {
        transpose_(rows, plane.cols, from, src_stride, to, dst_stride);
      } else if (joined) {
        alignas(64) char tile[kTileBytes];
        transpose_(rows, plane.cols, from, src_stride, tile, plane.cols);
        convert_(rows * plane.cols, tile, to);
      } else {
        CopyStrip(rows, plane.cols, from, src_stride, to, dst_stride);
      }
    });
  }

  void CopyStrip(int64_t rows, int64_t cols, const char* src, int64_t src_stride, char* dst,
                 int64_t dst_stride) const {
    alignas(64) char tile[kTileBytes];
    const int64_t width = TileCols(from_item_);
    for (int64_t c = 0; c < cols; c += width) {
      const int64_t count = std::min(width, cols - c);
      transpose_(rows, count, src + c * src_stride * from_item_, src_stride, tile, width);
      for (int64_t r = 0; r < rows; ++r) {
        convert_(count, tile + r * width * from_item_, dst + (r * dst_stride + c) * to_item_);
      }
    }
  }

  bool converts_;
  ConvertFunction convert_;
  int64_t from_item_, to_item_;
  TransposeFunction transpose_;
  RepeatFunction repeat_;
  EverySecondFunction every_second_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  return std::make_unique<CpuCopy>(spec);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCPU, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
