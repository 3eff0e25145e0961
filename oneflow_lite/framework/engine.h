// SPDX-License-Identifier: Apache-2.0
//
// Between the files of autograd: nodes of its own, and the ops that it calls by name.
#pragma once

#include "oneflow_lite/framework/autograd.h"

namespace oneflow_lite::autograd {

// What autograd knows of t; null where nothing.
inline AutogradMeta* Find(const Tensor& t) {
  return t.defined() ? static_cast<AutogradMeta*>(t.impl()->autograd.get()) : nullptr;
}

// The sequence of accumulators, and of no other node: they run first.
inline constexpr uint64_t kAccumulates = UINT64_MAX;

// The end of a path at a leaf: adds the gradient into .grad, or hands it to a capture.
Ref<Node> AccumulatorOf(const Tensor& leaf);
// The leaf an accumulator adds to; undefined for other nodes.
Tensor LeafOf(const Node& node);
// A gradient's slot, which other threads may read or replace meanwhile.
Tensor ReadSlot(const Tensor& slot);

// A contiguous copy, and a + b, through the dispatch chain.
StatusOr<Tensor> CloneTensor(const Tensor& t);
StatusOr<Tensor> AddTensors(const Tensor& a, const Tensor& b);

// Of that shape, dtype and device, each element `value`, or 0.
StatusOr<Tensor> FullOf(const TensorSpec& spec, double value);
StatusOr<Tensor> ZerosOf(const TensorSpec& spec);

// In-place change of `self` recorded as `node` (autograd's stage has checked that it may be):
// gives self, and where it is a view its base, their new history.
Status RebaseHistory(const Tensor& self, Ref<Node> node);
// Refreshes the grad_fn of a view whose base was changed in place since.
Status RefreshView(const Tensor& t);

}  // namespace oneflow_lite::autograd
