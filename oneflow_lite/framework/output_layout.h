// SPDX-License-Identifier: Apache-2.0
//
// How the outputs of elementwise ops lie in memory: as their inputs do. The sum of two transposed
// matrices is transposed, so that a pass over them stays dense.
#pragma once

#include <string>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// Strides without gaps for an output of a shape that the inputs broadcast to: its dims are in the
// order of the first input whose strides tell two of them apart. Empty where that is row-major
// order, as it always is where all inputs are contiguous.
OFL_API Dims StridesLike(absl::Span<const Tensor> inputs, const Shape& shape);

namespace internal {
// Says that the op's kernels write outputs of any strides, and that its outputs lie as its inputs.
OFL_API bool KeepLayout(std::string op);
OFL_API bool KeepsLayout(const std::string& op);
}  // namespace internal

}  // namespace oneflow_lite
