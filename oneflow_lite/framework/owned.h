// SPDX-License-Identifier: Apache-2.0
//
// What tensors and nodes keep alive, for the garbage collector of another language whose objects
// hang in the graph: functions of hooks, contexts of backward functions, attributes.
//
//   class Collector : public OwnedWalk { ... } walk;
//   walk.From(tensor);    // in the traversal of each object of a collection that holds a tensor
//   walk.Repeat();        // where the collector traverses those again that it found to be alive
//
// The walk counts the references that it names: From names the one that the object holds. Where all
// references to a tensor, a node or a shared object were named, the walk names those that it holds
// in turn. So a foreign object is reported once, and only where everything that keeps it goes with
// the objects of the collection. After Repeat() nothing is counted: each walk passes through what
// was wholly named, and each tensor, node and foreign object is met once.
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

#include <cstdint>
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

  // Names the reference of an object to the tensor or node, once a collection.
  void From(const Tensor& t);
  void From(Node& node);
  // From here on the walk goes again, from those that are given.
  void Repeat() { ++repeats_; }

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
  // Whether with this reference all were named; in a repeated walk, whether all were and none was
  // met since.
  bool All(const void* object, int64_t references);
  void Run();

  int64_t repeats_ = 0;
  // How many references were named while it counted, 0 where all were; from then on -n where repeat
  // n was the last that met them.
  std::unordered_map<const void*, int64_t> named_;
  std::vector<TensorImpl*> tensors_;
  std::vector<Node*> nodes_;
};

}  // namespace oneflow_lite
