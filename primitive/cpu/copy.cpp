// SPDX-License-Identifier: Apache-2.0
//
// Copies: contiguous operands are converted in one go; a transposed plane goes tile by tile, so
// that both sides are walked along their lines; any other geometry goes through chunk buffers.
#include "primitive/copy.h"

#include <algorithm>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

// A tile has as many rows of dst as elements of src are in a cache line, and of each row of dst
// four lines or fewer.
constexpr int64_t kLine = 64, kTileBytes = 8192;
constexpr int64_t TileRows(int64_t item) { return kLine / item; }
constexpr int64_t TileCols(int64_t item) { return std::min<int64_t>(128, 4 * kLine / item); }
static_assert(TileRows(1) * TileCols(1) <= kTileBytes);

// The pass seen as planes: dst runs along its last dim, src along dim `row`.
struct TransposedPlane {
  int row = -1;
  int64_t rows = 0, cols = 0;
};

TransposedPlane FindTransposedPlane(const Elementwise<2>& g) {
  const int last = g.ndim - 1;
  if (g.ndim < 2 || g.strides[1][last] != 1 || g.strides[0][last] <= 1) return {};
  for (int d = 0; d < last; ++d) {
    if (g.strides[0][d] == 1 && g.dims[d] >= 4 && g.dims[last] >= 4) {
      return {d, g.dims[d], g.dims[last]};
    }
  }
  return {};
}

class CpuCopy final : public Copy {
 public:
  explicit CpuCopy(const Spec& spec)
      : convert_(FindConvert(spec.from, spec.to)),
        from_item_(static_cast<int64_t>(SizeOf(spec.from))),
        to_item_(static_cast<int64_t>(SizeOf(spec.to))),
        transpose_(FindTranspose(SizeOf(spec.from))) {}

  Status Launch(Stream&, const Elementwise<2>& g, const void* src, void* dst) const override {
    if (g.numel == 0) return OkStatus();
    const char* from = static_cast<const char*>(src);
    char* to = static_cast<char*>(dst);
    if (g.contiguous) {
      ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        convert_(end - begin, from + begin * from_item_, to + begin * to_item_);
      });
    } else if (const TransposedPlane plane = FindTransposedPlane(g); plane.row >= 0) {
      LaunchPlanes(g, plane, from, to);
    } else {
      ParallelFor(g.numel, kElementwiseGrain,
                  [&](int64_t begin, int64_t end) { LaunchChunks(g, begin, end, from, to); });
    }
    return OkStatus();
  }

 private:
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
    Elementwise<2> outer = g;  // the pass over planes: the plane's dims shrunk to 1
    outer.dims[plane.row] = outer.dims[g.ndim - 1] = 1;
    outer.numel = g.numel / (plane.rows * plane.cols);
    const int64_t height = TileRows(from_item_);
    const int64_t strips = (plane.rows + height - 1) / height;
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (height * plane.cols));
    const int64_t src_stride = g.strides[0][g.ndim - 1];
    const int64_t dst_stride = g.strides[1][plane.row];
    ParallelFor(outer.numel * strips, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % strips * height;
        const int64_t src_offset = PlaneOffset(outer, 0, i / strips) + row;
        const int64_t dst_offset = PlaneOffset(outer, 1, i / strips) + row * dst_stride;
        CopyStrip(std::min(height, plane.rows - row), plane.cols, src + src_offset * from_item_,
                  src_stride, dst + dst_offset * to_item_, dst_stride);
      }
    });
  }

  static int64_t PlaneOffset(const Elementwise<2>& outer, int operand, int64_t index) {
    int64_t offset = 0;
    for (int d = outer.ndim - 1; d >= 0; --d) {
      offset += index % outer.dims[d] * outer.strides[operand][d];
      index /= outer.dims[d];
    }
    return offset;
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

  ConvertFunction convert_;
  int64_t from_item_, to_item_;
  TransposeFunction transpose_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  return std::make_unique<CpuCopy>(spec);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCPU, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
