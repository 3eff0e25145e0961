// SPDX-License-Identifier: Apache-2.0
//
// What every elementwise family does on the CPU: a loop over contiguous elements of one dtype, run
// over operands of any geometry and dtype. What the loop cannot take as it lies is gathered and
// converted chunk by chunk, in the L1 cache.
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
#include "primitive/cpu/convert.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {

// An operand's way from memory to the dtype of a loop, through the dtype that it is promoted to.
class ChunkConversion {
 public:
  ChunkConversion() = default;
  ChunkConversion(DType from, DType through, DType to) {
    const bool exact = from == DType::kBool || from == DType::kUInt8 || from == DType::kInt8;
    const bool rounds = through != to && from != through && !exact;
    if (rounds) round_ = FindConvert(from, through);
    if (rounds || from != to) convert_ = FindConvert(rounds ? through : from, to);
  }
  explicit operator bool() const { return convert_ != nullptr; }

  // n <= kChunk elements: the chunk itself where nothing is to be converted, else in `buffer`.
  const void* operator()(int64_t n, const void* chunk, ChunkBuffer& buffer) const {
    if (!convert_) return chunk;
    if (round_) return Round(n, chunk, buffer);
    convert_(n, chunk, buffer.bytes);
    return buffer.bytes;
  }

 private:
  const void* Round(int64_t n, const void* chunk, ChunkBuffer& buffer) const {
    ChunkBuffer rounded;
    round_(n, chunk, rounded.bytes);
    convert_(n, rounded.bytes, buffer.bytes);
    return buffer.bytes;
  }

  ConvertFunction round_ = nullptr, convert_ = nullptr;
};

template <int N>
struct ChunkedTypes {
  std::array<DType, N> in;  // of the operands in memory
  DType common;             // what they are promoted to
  DType loop;               // what the loop takes: `common` or its compute type
  DType result;             // what the loop gives
  DType out;                // of the result in memory
};

// Elements, or without data a number for all of them.
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
    bool direct = g.contiguous && !converts_;
    for (const ChunkedOperand& operand : in) direct = direct && operand.data;
    if (!direct) return RunChunks(OrderedBy(g, N), in, out, loop);
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
      if (!in[i].data) Repeat(*in[i].number, std::min(g.numel, kChunk), numbers[i]);
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
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      Chunks chunks;
      for (int k = 0; k < N; ++k) {
        chunks[k] = in[k].data ? convert_[k](n, readers[k].Read(n, gathered[k]), converted[k])
                               : numbers[k].bytes;
      }
      if (narrow_) {
        loop(n, chunks, result.bytes);
        narrow_(n, result.bytes, writer.Start(n, narrowed));
        writer.Finish(n, narrowed);
      } else {
        loop(n, chunks, writer.Start(n, result));
        writer.Finish(n, result);
      }
    }
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
  int64_t out_item_;
  std::array<ChunkConversion, N> convert_;
  ConvertFunction narrow_ =
      nullptr;  // of what the loop gives, where that is not the result's dtype
  bool converts_ = false;
};

}  // namespace oneflow_lite
