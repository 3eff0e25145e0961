// SPDX-License-Identifier: Apache-2.0
//
// What every elementwise family does on the CPU: a loop over contiguous elements of one dtype, run
// over operands of any geometry and dtype. What the loop cannot take as it lies is gathered and
// converted chunk by chunk, in the L1 cache; what lies across, tile by tile.
//
//   const ChunkedPass<2> pass({.in = {a, b}, .common = dtype, .loop = compute, .result = compute,
//                              .out = dtype});
//   pass.Run(g, {{{a.data()}, {b.data()}}}, out, [&](int64_t n, const auto& in, void* y) {
//     loop(n, in[0], in[1], y);
//   });
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "oneflow_lite/core/elementwise_order.h"
#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/cpu/chunk_conversion.h"
#include "primitive/cpu/strided.h"
#include "primitive/cpu/transposed.h"

namespace oneflow_lite {

template <int N>
struct ChunkedTypes {
  std::array<DType, N> in;  // of the operands in memory
  DType common;             // what they are promoted to
  DType loop;               // what the loop takes: `common` or its compute type
  DType result;             // what the loop gives
  DType out;                // of the result in memory
};

// Elements, or without data a number for all of them; or neither, if the loop knows what to take.
struct ChunkedOperand {
  const void* data = nullptr;
  const Scalar* number = nullptr;
};

template <int N>
class ChunkedPass {
 public:
  using Operands = std::array<ChunkedOperand, N>;
  // The chunks that a loop takes.
  using Chunks = std::array<const void*, N>;

  explicit ChunkedPass(const ChunkedTypes<N>& types)
      : loop_(types.loop), out_item_(static_cast<int64_t>(SizeOf(types.out))) {
    for (int i = 0; i < N; ++i) {
      item_[i] = static_cast<int64_t>(SizeOf(types.in[i]));
      transpose_[i] = FindTranspose(SizeOf(types.in[i]));
      convert_[i] = ChunkConversion(types.in[i], types.common, types.loop);
      converts_ = converts_ || convert_[i];
    }
    if (types.result != types.out) narrow_ = FindConvert(types.result, types.out);
    converts_ = converts_ || narrow_;
  }

  // Calls loop(n, Chunks, out) until all elements are done, on several threads. Operands of g: the
  // inputs, out. `out` may be an operand of the same geometry and element size.
  template <class Loop>
  void Run(const Elementwise<N + 1>& g, const Operands& in, void* out, const Loop& loop) const {
    bool direct = !converts_;
    for (const ChunkedOperand& operand : in) direct = direct && operand.data;
    const Elementwise<N + 1> ordered = OrderedBy(g, N);
    if (!direct || !ordered.contiguous) return RunChunks(ordered, in, out, loop);
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      Chunks here;
      for (int i = 0; i < N; ++i) {
        here[i] = static_cast<const char*>(in[i].data) + begin * item_[i];
      }
      loop(end - begin, here, static_cast<char*>(out) + begin * out_item_);
    });
  }

 private:
  template <class Loop>
  void RunChunks(const Elementwise<N + 1>& g, const Operands& in, void* out,
                 const Loop& loop) const {
    std::array<ChunkBuffer, N> numbers;
    for (int i = 0; i < N; ++i) {
      if (in[i].number && !in[i].data) {
        Repeat(*in[i].number, std::min(g.numel, kChunk), numbers[i]);
      }
    }
    for (int i = 0; i < N; ++i) {
      constexpr int64_t kLeastCols = 16;  // that are worth a call of the loop
      const TransposedPlane plane = in[i].data ? FindTransposedPlane(g, i, N) : TransposedPlane();
      if (plane.cols >= kLeastCols) return RunTiles(g, plane, in, numbers, out, loop);
    }
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      RunRange(g, in, numbers, out, begin, end, loop);
    });
  }

  template <class Loop>
  void RunRange(const Elementwise<N + 1>& g, const Operands& in,
                const std::array<ChunkBuffer, N>& numbers, void* out, int64_t begin, int64_t end,
                const Loop& loop) const {
    auto readers = [&]<size_t... I>(std::index_sequence<I...>) {
      return std::array<StridedReader, N>{StridedReader(
          g, static_cast<int>(I), static_cast<size_t>(item_[I]), in[I].data, begin)...};
    }
    (std::make_index_sequence<N>());
    StridedWriter writer(g, N, static_cast<size_t>(out_item_), out, begin);
    std::array<ChunkBuffer, N> gathered, converted;
    ChunkBuffer result, narrowed;
    const ChunkLengths lengths(g.ndim == 0 ? 1 : g.dims[g.ndim - 1]);
    for (int64_t i = begin, n; i < end; i += n) {
      n = std::min(lengths.At(i), end - i);
      Chunks chunks;
      for (int k = 0; k < N; ++k) {
        chunks[k] = in[k].data ? convert_[k](n, readers[k].Read(n, gathered[k]), converted[k])
                               : numbers[k].bytes;
      }
      Call(loop, n, chunks, writer.Start(n, narrowed), result);
      writer.Finish(n, narrowed);
    }
  }

  template <class Loop>
  void Call(const Loop& loop, int64_t n, const Chunks& chunks, void* to,
            ChunkBuffer& result) const {
    loop(n, chunks, narrow_ ? result.bytes : to);
    if (narrow_) narrow_(n, result.bytes, to);
  }

  // A plane that an operand walks the other way round: tiles of it are turned, and the loop runs
  // over their rows.
  template <class Loop>
  void RunTiles(const Elementwise<N + 1>& g, const TransposedPlane& plane, const Operands& in,
                const std::array<ChunkBuffer, N>& numbers, void* out, const Loop& loop) const {
    const int along = g.ndim - 1;
    int64_t item = 1;
    bool turned[N];
    for (int k = 0; k < N; ++k) {
      turned[k] = in[k].data && FindTransposedPlane(g, k, N).row == plane.row;
      if (turned[k]) item = std::max(item, item_[k]);
    }
    const int64_t width = TileCols(item);
    ForStrips(g, plane, TileRows(item), [&](const auto& offsets, int64_t rows) {
      alignas(64) char tiles[N][kTileBytes];
      std::array<ChunkBuffer, N> gathered, converted;
      ChunkBuffer result;
      for (int64_t c = 0; c < plane.cols; c += width) {
        const int64_t n = std::min(width, plane.cols - c);
        const auto at = [&](int k, int64_t row) {
          const int64_t offset =
              offsets[k] + row * g.strides[k][plane.row] + c * g.strides[k][along];
          return static_cast<const char*>(in[k].data) + offset * item_[k];
        };
        for (int k = 0; k < N; ++k) {
          if (turned[k]) transpose_[k](rows, n, at(k, 0), g.strides[k][along], tiles[k], width);
        }
        for (int64_t r = 0; r < rows; ++r) {
          Chunks chunks;
          for (int k = 0; k < N; ++k) {
            const void* row = turned[k]    ? tiles[k] + r * width * item_[k]
                              : in[k].data ? RowOf(k, n, at(k, r), g.strides[k][along], gathered[k])
                                           : nullptr;
            chunks[k] = row ? convert_[k](n, row, converted[k]) : numbers[k].bytes;
          }
          const int64_t to = offsets[N] + r * g.strides[N][plane.row] + c;
          Call(loop, n, chunks, static_cast<char*>(out) + to * out_item_, result);
        }
      }
    });
  }

  // n elements of operand k in a row: in place, or in `buffer`.
  const void* RowOf(int k, int64_t n, const char* from, int64_t stride, ChunkBuffer& buffer) const {
    if (stride == 1) return from;
    CopyStrided(static_cast<size_t>(item_[k]), n, from, stride, buffer.bytes, 1);
    return buffer.bytes;
  }

  // n copies of the number in the loop's dtype.
  void Repeat(const Scalar& number, int64_t n, ChunkBuffer& buffer) const {
    VisitAll(loop_, [&]<class C>(Tag<C>) {
      const C value = CastScalar<C>(number);
      for (int64_t i = 0; i < n; ++i) {
        std::memcpy(buffer.bytes + i * static_cast<int64_t>(sizeof(C)), &value, sizeof(C));
      }
    });
  }

  DType loop_;
  std::array<int64_t, N> item_ = {};
  std::array<TransposeFunction, N> transpose_ = {};
  int64_t out_item_;
  std::array<ChunkConversion, N> convert_;
  ConvertFunction narrow_ =
      nullptr;  // of what the loop gives, where that is not the result's dtype
  bool converts_ = false;
};

}  // namespace oneflow_lite
