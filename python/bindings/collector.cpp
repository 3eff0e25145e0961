// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/collector.h"

#include <unordered_set>
#include <utility>

#include "oneflow_lite/framework/owned.h"
#include "python/bindings/parked.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

// Most programs have no Python object in any graph: then none is walked.
std::atomic<int64_t> objects_in_graphs{0};

void ReleaseFromGraph(PyObject* p) {
  CountInGraph(-1);
  ReleaseLater(p);
}

// A parked object has one reference, its tensor's. So a count, which has a number from 1 on, visits
// it once, be it in the walk or as the .grad of another parked one.
int VisitParked(ParkedObject* p, uint64_t count, visitproc visit, void* arg) {
  if (count != 0 && std::exchange(p->reported, count) == count) return 0;
  return visit(reinterpret_cast<PyObject*>(p), arg);
}

class Collector final : public OwnedWalk {
 public:
  // count: its number while the collector counts, else 0.
  template <class Start>
  int Visit(Start& start, uint64_t count, visitproc visit, void* arg) {
    count_ = count, visit_ = visit, arg_ = arg, result_ = 0;
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
    if (result_ != 0 || !IsParked(py_object)) return;
    result_ = VisitParked(AsParked(py_object), count_, visit_, arg_);
  }

  uint64_t count_ = 0;
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
    if (!start && arg != object) return 0;
    const auto is_first = [&] { return objects_.insert(object).second; };
    const Phase phase = PhaseOf(arg == object, visit, arg, is_first);
    if (phase == Phase::kAlone) return Collector().Visit(*start, 0, visit, arg);
    return start ? walk_.Visit(*start, phase == Phase::kCount ? count_ : 0, visit, arg) : 0;
  }

  // Other threads may use the tensors, so these are not walked: the count asks for each .grad once,
  // and the traversal of what is alive repeats the answer. A thread that can reach a tensor here
  // counts a reference to one on the way, whose parked object therefore is alive.
  int VisitGrad(ParkedObject* p, visitproc visit, void* arg) {
    const bool counts = arg == p;
    const auto is_first = [&] { return !counts || p->counted != count_; };
    switch (PhaseOf(counts, visit, arg, is_first)) {
      case Phase::kCount:
        p->grad = ParkedGradOf(p);
        p->counted = count_;
        return p->grad ? VisitParked(p->grad, count_, visit, arg) : 0;
      case Phase::kRepeat:
        return p->grad && p->counted == count_ ? VisitParked(p->grad, 0, visit, arg) : 0;
      default:
        return 0;
    }
  }

 private:
  enum class Phase { kAlone, kCount, kRepeat };

  // is_first: whether the object was not met in this phase yet.
  template <class IsFirst>
  Phase PhaseOf(bool counts, visitproc visit, void* arg, IsFirst is_first) {
    if (!counts && !collection_lasts) return Phase::kAlone;
    const bool goes_on = collection_lasts && counts == counts_ &&
                         (counts || (visit == visit_ && arg == arg_)) && is_first();
    if (!goes_on && counts) {
      walk_ = Collector();
      ++count_;
    }
    if (!goes_on && !counts) walk_.Repeat();
    if (!goes_on) {
      objects_ = std::unordered_set<PyObject*>();  // without the buckets of a larger one
      is_first();
    }
    counts_ = counts, visit_ = visit, arg_ = arg, collection_lasts = true;
    return counts ? Phase::kCount : Phase::kRepeat;
  }

  Collector walk_;
  uint64_t count_ = 0;                     // the number of the last count
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

int VisitParkedGrad(ParkedObject* p, visitproc visit, void* arg) {
  return LastCollection().VisitGrad(p, visit, arg);
}

void AddCollector() {
  const auto end = [](const py::object& /*phase*/, const py::object& /*info*/) { EndCollection(); };
  py::module_::import("gc").attr("callbacks").attr("append")(py::cpp_function(end));
}

}  // namespace oneflow_lite::python
