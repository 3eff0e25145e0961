// SPDX-License-Identifier: Apache-2.0
//
// What one tensor or node alone keeps alive, for the garbage collector of another language whose
// objects hang in the graph: functions of hooks, contexts of backward functions, attributes.
//
//   class Collector : public OwnedWalk { ... };
//   Collector(visit).From(tensor);    // in the traversal of the object that holds `tensor`
//
// The walk starts at what one object of that language holds the only reference to, and goes on to
// whatever all references to come from what was walked. So a foreign object is reported by one
// object at most, and only while it would go with that object. What two objects keep together is
// reported by neither, until one of them goes.
//
// Invariant: the walk takes no lock but that of hook lists (hooks.cpp), in which nothing waits and
// nothing is called, and needs none. The collector's language has a lock (the GIL) that its whole
// collection holds. A thread that works without that lock counts a reference to each
// tensor that it began with, from before it gave the lock away until it has the lock again; what it
// meets further it reaches from those. So nothing that it can reach is walked, since one reference
// on the way does not come from what was walked; what is walked can neither change nor gain
// references while a collection lasts, and a collector that asks twice hears of no fewer objects
// the second time. Bindings must keep to this: no call without the lock on a tensor that is only
// borrowed from an object.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

class Node;
class HookList;

class OFL_API OwnedWalk {
 public:
  virtual ~OwnedWalk() = default;

  // Walks what goes with the only reference to the tensor or node; where there are others, nothing.
  void From(const Tensor& t);
  void From(Node& node);

  // For VisitOwned of nodes and their like: each names every reference that it counts, once.
  void Visit(const Tensor& t);
  void Visit(const Ref<Node>& node);
  void Visit(const HookList& hooks);
  // A shared object that only passes references on: true once all references to it were named,
  // whereupon the caller names those that it holds.
  template <class T>
  bool VisitShared(const std::shared_ptr<T>& p) {
    return p && All(p.get(), p.use_count());
  }
  void VisitForeign(const std::shared_ptr<void>& p) {
    if (VisitShared(p)) OnForeign(p);
  }

 protected:
  // An object that a hook, a node or saved tensors keep.
  virtual void OnForeign(const std::shared_ptr<void>& object) = 0;
  // What the binding left in py_object of a tensor without an object.
  virtual void OnSlot(void* py_object) = 0;

 private:
  // Whether `named` references, one more than so far, are all that there are.
  bool All(const void* object, int64_t references) {
    return references == 1 || ++named_[object] == references;
  }
  void Run();

  std::unordered_map<const void*, int64_t> named_;
  std::vector<TensorImpl*> tensors_;
  std::vector<Node*> nodes_;
};

}  // namespace oneflow_lite
