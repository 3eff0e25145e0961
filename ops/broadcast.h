// SPDX-License-Identifier: Apache-2.0
//
// Inference and sharding of ops whose inputs are broadcast against each other, as in NumPy.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// The shape that a and input i of the call are broadcast to. ShapeError that speaks of input i as
// `operand` where they do not go together.
inline StatusOr<Shape> Broadcast(const InferContext& c, const Shape& a, int i,
                                 const char* operand) {
  const Shape& b = c.shape(i);
  const int ndim = std::max(a.ndim(), b.ndim());
  Shape out;
  out.dims().resize(ndim);
  for (int d = 0; d < ndim; ++d) {
    const int64_t x = d < ndim - a.ndim() ? 1 : a[d - (ndim - a.ndim())];
    const int64_t y = d < ndim - b.ndim() ? 1 : b[d - (ndim - b.ndim())];
    if (x != y && x != 1 && y != 1) {
      return ShapeMismatch(c.op(), operand, b,
                           absl::StrCat("one that broadcasts with ", a.ToString()));
    }
    out[d] = x == 1 ? y : x;
  }
  return out;
}

inline constexpr char kBroadcastSbpText[] =
    "the result split on any dim, with it each operand that is not repeated there";

// Split on any dim of the result. An operand that has the dim is split with it; one that is
// repeated along it stays whole.
inline SbpSignatures BroadcastSignatures(const SbpContext& c) {
  SbpSignatures out;
  int ndim = 0;
  for (const Shape& shape : c.inputs) ndim = std::max(ndim, shape.ndim());
  for (int d = 0; d < ndim; ++d) {
    const auto own_dim = [&](const Shape& shape) { return d - (ndim - shape.ndim()); };
    const auto size = [&](const Shape& shape) {
      return own_dim(shape) < 0 ? 1 : shape[own_dim(shape)];
    };
    const bool repeats = std::any_of(c.inputs.begin(), c.inputs.end(),
                                     [&](const Shape& shape) { return size(shape) != 1; });
    SbpSignature s{{}, {Sbp::Split(d)}};
    for (const Shape& shape : c.inputs) {
      const bool split = size(shape) != 1 || (!repeats && own_dim(shape) >= 0);
      s.inputs.push_back(split ? Sbp::Split(own_dim(shape)) : Sbp::Broadcast());
    }
    out.push_back(s);
  }
  return out;
}

}  // namespace oneflow_lite
