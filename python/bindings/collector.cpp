// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/collector.h"

#include "oneflow_lite/framework/owned.h"
#include "python/bindings/tensor_object.h"

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
  Collector(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}
  int result() const { return result_; }

 private:
  void OnForeign(const std::shared_ptr<void>& object) override {
    const auto* release = std::get_deleter<void (*)(PyObject*)>(object);
    if (result_ != 0 || !release || *release != &ReleaseFromGraph) return;
    result_ = visit_(static_cast<PyObject*>(object.get()), arg_);
  }
  void OnSlot(void* py_object) override {
    if (result_ == 0) result_ = VisitParked(py_object, visit_, arg_);
  }

  visitproc visit_;
  void* arg_;
  int result_ = 0;
};

template <class Start>
int Visit(Start& start, visitproc visit, void* arg) {
  if (objects_in_graphs.load(std::memory_order_relaxed) == 0) return 0;
  Collector collector(visit, arg);
  collector.From(start);
  return collector.result();
}

}  // namespace

void CountInGraph(int change) { objects_in_graphs.fetch_add(change, std::memory_order_relaxed); }

SharedObject ShareInGraph(PyObject* borrowed) {
  Py_INCREF(borrowed);
  CountInGraph(1);
  return SharedObject(borrowed, &ReleaseFromGraph);
}

int VisitGraph(const Tensor& t, visitproc visit, void* arg) { return Visit(t, visit, arg); }
int VisitGraph(Node& node, visitproc visit, void* arg) { return Visit(node, visit, arg); }

}  // namespace oneflow_lite::python
