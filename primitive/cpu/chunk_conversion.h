// SPDX-License-Identifier: Apache-2.0
//
// Operands of other dtypes than a loop is written for, converted chunk by chunk in the L1 cache.
//
//   const ChunkConversion widen(DType::kInt32, DType::kFloat32);
//   loop(n, widen(n, reader.Read(n, gathered), converted), ...);
#pragma once

#include "primitive/cpu/convert.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {

class ChunkConversion {
 public:
  ChunkConversion(DType from, DType to) : convert_(from == to ? nullptr : FindConvert(from, to)) {}
  // Through a dtype that the elements are rounded to on the way.
  ChunkConversion(DType from, DType through, DType to) : ChunkConversion(from, to) {
    const bool exact = from == DType::kBool || from == DType::kUInt8 || from == DType::kInt8;
    if (through == to || from == through || exact) return;
    round_ = FindConvert(from, through);
    convert_ = FindConvert(through, to);
  }
  explicit operator bool() const { return convert_ != nullptr; }

  // n <= kChunk elements: the chunk itself where nothing is to be converted, else in `buffer`.
  const void* operator()(int64_t n, const void* chunk, ChunkBuffer& buffer) const {
    if (!convert_) return chunk;
    if (!round_) {
      convert_(n, chunk, buffer.bytes);
      return buffer.bytes;
    }
    ChunkBuffer rounded;
    round_(n, chunk, rounded.bytes);
    convert_(n, rounded.bytes, buffer.bytes);
    return buffer.bytes;
  }

 private:
  ConvertFunction round_ = nullptr, convert_ = nullptr;
};

}  // namespace oneflow_lite
