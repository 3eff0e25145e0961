// SPDX-License-Identifier: Apache-2.0
//
// CUDA source of an expression of elements: a struct that loads, computes and stores, for the loop
// of primitive/cuda/elementwise/fused.cuh.
//
//   FusedSource source = SourceOf(*expression, layout);
//   CompileCuda(source.text, source.kernel, 90);   launched with source.words 8-byte words
#pragma once

#include <string>
#include <vector>

#include "primitive/fused_elements.h"

namespace oneflow_lite {

// How the elements of an operand lie along the innermost dim.
enum class FusedOperandForm : uint8_t {
  kNumber,    // no elements: a number, given by value
  kUnit,      // one after another
  kRepeated,  // one for all
  kStrided,   // any stride
};

// Everything that a kernel's source depends on besides the expression.
struct FusedLayout {
  std::vector<FusedOperandForm> inputs, outputs;
  int dims = 1;          // merged
  int pack = 1;          // elements that are read at once; all are kStrided where this is 1
  int unroll = 1;        // packs that a thread has in flight
  bool is_long = false;  // 2^31 elements or more
};
// The layout of a call. A dim of packs has whole ones of them, unless it is the only dim.
OFL_API FusedLayout LayoutOf(const TypedExpression& e, const FusedGeometry& g,
                             absl::Span<const FusedElements::Input> inputs);

struct FusedSource {
  std::string text;
  std::string kernel;  // its name expression
  size_t words = 0;
};
OFL_API FusedSource SourceOf(const TypedExpression& e, const FusedLayout& layout);

// The words of the struct that the kernel takes, in the order in which the source names them.
OFL_API std::vector<uint64_t> WordsOf(const TypedExpression& e, const FusedLayout& layout,
                                      const FusedGeometry& g,
                                      absl::Span<const FusedElements::Input> inputs,
                                      absl::Span<const FusedElements::Output> outputs);

}  // namespace oneflow_lite
