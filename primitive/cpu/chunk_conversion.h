// SPDX-License-Identifier: Apache-2.0
//
// What is done to one operand of a pass that goes chunk by chunk: how long its chunks are, and what
// they are converted to.
#pragma once

#include <algorithm>
#include <cstdint>

#include "primitive/cpu/convert.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {

// Chunks end where rows do: what lies in long rows is read in place, and short ones are whole.
class ChunkLengths {
 public:
  // `row`: elements of the innermost dim.
  explicit ChunkLengths(int64_t row) : row_(row) {
    constexpr int64_t kShort = 256, kStep = 64;
    if (row < kShort) {
      step_ = kChunk / std::max<int64_t>(1, row) * row;
      return;
    }
    const int64_t parts = (row + kChunk - 1) / kChunk;
    step_ = ((row + parts - 1) / parts + kStep - 1) / kStep * kStep;
    is_long_ = true;
  }
  // Of the chunk that begins at element i of the pass.
  int64_t At(int64_t i) const {
    const int64_t past = i % row_;
    return is_long_ ? std::min(step_, row_ - past) : step_ - past;
  }

 private:
  int64_t row_, step_ = kChunk;
  bool is_long_ = false;
};

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

}  // namespace oneflow_lite
