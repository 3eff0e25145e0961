// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/collector.h"

#include <unordered_set>

#include "oneflow_lite/framework/owned.h"
#include "python/bindings/tensor_object.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

// Most programs have no Python object in any graph: then none is walked.
std::atomic<int64_t> objects_in_graphs{0};

void ReleaseFromGraph(PyObject* p) {
  CountInGraph(-1);
  ReleaseLater(p);
}

class Collector final : public OwnedWalk {
 public:
  template <class Start>
  int Visit(Start& start, visitproc visit, void* arg) {
    visit_ = visit, arg_ = arg, result_ = 0;
    From(start);
    return result_;
  }

 private:
  void OnForeign(const std::shared_ptr<void>& object) override {
    const auto* release = std::get_deleter<void (*)(PyObject*)>(object);
    if (result_ != 0 || !release || *release != &ReleaseFromGraph) return;
    result_ = visit_(static_cast<PyObject*>(object.get()), arg_);
  }
  void OnSlot(void* py_object) override {
    if (result_ == 0) result_ = VisitParked(py_object, visit_, arg_);
  }

  visitproc visit_ = nullptr;
  void* arg_ = nullptr;
  int result_ = 0;
};

// The traversals of one collection, by the same walk. CPython's collector first takes from each
// object's references those that come from the objects of the collection: it traverses each of
// these once, with the object itself as the argument. It then traverses those that are alive, with
// another argument, which is where the walk is repeated. No other code runs in between.
//
// A collection counts twice where it found garbage, with finalizers in between: the second count
// shows by its first object, which was in the first one. What ends a collection besides is told
// (EndCollection): its stop, the start of the next one, and that an object is cleared or freed.
// Where another Python passes another argument, each object is walked alone: what two of them keep
// together stays.
class Collection {
 public:
  // start: a tensor or a node, or null where there is nothing to visit.
  template <class Start>
  int Visit(PyObject* object, Start* start, visitproc visit, void* arg) {
    const bool counts = arg == object;
    if (!start && !counts) return 0;
    if (!counts && !collection_lasts) return Collector().Visit(*start, visit, arg);
    const bool goes_on = collection_lasts && counts == counts_ &&
                         (counts || (visit == visit_ && arg == arg_)) &&
                         objects_.insert(object).second;
    if (!goes_on) {
      if (counts) walk_ = Collector();
      if (!counts) walk_.Repeat();
      objects_ = std::unordered_set<PyObject*>{object};  // without the buckets of a larger one
    }
    counts_ = counts, visit_ = visit, arg_ = arg, collection_lasts = true;
    return start ? walk_.Visit(*start, visit, arg) : 0;
  }

 private:
  Collector walk_;
  std::unordered_set<PyObject*> objects_;  // traversed for `visit_` and `arg_`
  bool counts_ = false;
  visitproc visit_ = nullptr;
  void* arg_ = nullptr;
};

Collection& LastCollection() {
  static auto* collection = new Collection;
  return *collection;
}

template <class Start>
int Visit(PyObject* object, Start* start, visitproc visit, void* arg) {
  if (objects_in_graphs.load(std::memory_order_relaxed) == 0) {
    EndCollection();
    return 0;
  }
  return LastCollection().Visit(object, start, visit, arg);
}

}  // namespace

void CountInGraph(int change) { objects_in_graphs.fetch_add(change, std::memory_order_relaxed); }

SharedObject ShareInGraph(PyObject* borrowed) {
  Py_INCREF(borrowed);
  CountInGraph(1);
  return SharedObject(borrowed, &ReleaseFromGraph);
}

int VisitGraph(PyObject* object, const Tensor& t, visitproc visit, void* arg) {
  // Most tensors: nobody else's, and not in a graph.
  const bool alone = !t.defined() || (t.impl()->use_count() == 1 && !t.impl()->autograd);
  return Visit(object, alone ? nullptr : &t, visit, arg);
}
int VisitGraph(PyObject* object, Node& node, visitproc visit, void* arg) {
  return Visit(object, &node, visit, arg);
}

void AddCollector() {
  const auto end = [](const py::object& /*phase*/, const py::object& /*info*/) { EndCollection(); };
  py::module_::import("gc").attr("callbacks").attr("append")(py::cpp_function(end));
}

}  // namespace oneflow_lite::python
