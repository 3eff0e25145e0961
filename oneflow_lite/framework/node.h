// SPDX-License-Identifier: Apache-2.0
//
// The graph that backward walks: a node per recorded op, with an edge per input.
#pragma once

#include <string>

#include "oneflow_lite/core/stream.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/hooks.h"

namespace oneflow_lite {

class Node;
class OwnedWalk;  // owned.h

// Where a gradient goes: input `slot` of a node. A null node ends the path.
struct Edge {
  Ref<Node> node;
  uint32_t slot = 0;
};

// A step of backward. Created by the autograd stage for each recorded op; freed without recursion,
// however long the chain.
class OFL_API Node : public RefCounted {
 public:
  // Takes gradients of the forward's outputs (undefined: zero), gives those of its inputs, one per
  // edge. Called with GradEnabled() as create_graph says and on the forward's stream.
  virtual StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) = 0;
  // Frees what was saved; a later Backward is a RuntimeError where that is needed.
  virtual void ReleaseSaved() {}
  // "softmax_backward"
  virtual std::string name() const = 0;
  // Names to the walk each reference that the node counts. A class that adds some overrides it.
  virtual void VisitOwned(OwnedWalk& walk) const;
  // Drops those references, for a collector that found the node to be garbage.
  virtual void ClearOwned();

  absl::InlinedVector<Edge, 2> edges;
  uint32_t num_outputs = 1;  // of the forward: how many gradients come in
  uint64_t sequence = 0;     // of this thread's forward: the later, the earlier in backward
  Ref<Stream> stream;        // the forward's; null on the CPU
  HookList hooks;            // on the gradient of forward output `slot`

 protected:
  Node();
  ~Node() override = default;
  void Destroy() override { DeleteFlat(); }
};

}  // namespace oneflow_lite
