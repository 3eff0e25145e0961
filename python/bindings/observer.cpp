// SPDX-License-Identifier: Apache-2.0
//
// Observers in Python: a callable around every op of a thread.
//
//   def observe(name, run):
//     seen = run()          # the op runs; {"inputs": ..., "outputs": ..., "seconds": ...}
#include <chrono>
#include <thread>
#include <vector>

#include "oneflow_lite/framework/profiler.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

// One call of an op while its observer sees it; outlives the call where Python keeps run().
struct Observed {
  OpCall* call;  // null when the call is over
  const DispatchMode::Next* next;
  bool ran = false;
  Status status;
  const std::thread::id thread = std::this_thread::get_id();
};

py::list DescribeTensors(absl::Span<const Tensor> tensors) {
  py::list list;
  for (const Tensor& t : tensors) {
    if (!t.defined()) {
      list.append(py::none());
      continue;
    }
    list.append(py::make_tuple(OwnedOrThrow(WrapDims(t.shape())),
                               OwnedOrThrow(WrapDType(t.dtype())),
                               OwnedOrThrow(WrapDevice(t.device()))));
  }
  return list;
}

py::dict RunObserved(Observed& o) {
  if (!o.call || o.ran) throw std::runtime_error("an observer may call run() once, before it ends");
  // Another thread could still be at it when the call, which it borrows, is over.
  if (o.thread != std::this_thread::get_id()) {
    throw std::runtime_error("an observer may call run() on the thread of its op only");
  }
  o.ran = true;
  const TensorList inputs(o.call->inputs.begin(), o.call->inputs.end());  // counted while unlocked
  const auto start = std::chrono::steady_clock::now();
  {
    GilRelease unlocked;
    o.status = (*o.next)(*o.call);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ThrowIfError(o.status);
  const Cost cost = CostOfCall(*o.call);
  py::dict d;
  d["op"] = o.call->op.def().name;
  d["inputs"] = DescribeTensors(o.call->inputs);
  d["outputs"] = DescribeTensors(*o.call->outputs);
  d["seconds"] = seconds.count();
  d["bytes"] = cost.bytes;
  d["flops"] = cost.flops;
  return d;
}

class PythonObserver : public DispatchMode, public std::enable_shared_from_this<PythonObserver> {
 public:
  explicit PythonObserver(SharedObject callable) : callable_(std::move(callable)) {}

  Status Run(OpCall& call, const Next& next) override {
    const auto keep = shared_from_this();  // it may be popped by the callable
    GilAcquire locked;
    auto observed = std::make_shared<Observed>(Observed{&call, &next, false, OkStatus()});
    try {
      py::cpp_function run([observed] { return RunObserved(*observed); });
      py::handle(callable_.get())(call.op.def().name, run);
    } catch (...) {
      observed->call = nullptr;
      RaiseCaught();
      return TakeRaised();
    }
    observed->call = nullptr;
    if (!observed->ran) {
      return Error(ErrorKind::kRuntime, call.op.def().name,
                   "(): the observer did not call run(), so the op did not run");
    }
    return observed->status;
  }

 private:
  SharedObject callable_;
};

struct Pushed {
  explicit Pushed(std::shared_ptr<PythonObserver> o)
      : observer(std::move(o)), guard(DispatchStage::kObserver, observer.get()) {}
  std::shared_ptr<PythonObserver> observer;
  ModeGuard guard;
};
thread_local std::vector<std::unique_ptr<Pushed>> pushed;

}  // namespace

void AddObserver(py::module_& m) {
  m.def(
      "push_observer",
      [](const py::function& f) {
        pushed.push_back(
            std::make_unique<Pushed>(std::make_shared<PythonObserver>(ShareObject(f.ptr()))));
      },
      py::arg("observer"),
      "Calls observer(name, run) for every op of this thread; it must call run() once, which runs "
      "the op and gives a dict of its inputs, outputs, seconds, bytes and flops.");
  m.def("pop_observer", [] {
    if (pushed.empty()) throw std::runtime_error("pop_observer(): there is none on this thread");
    pushed.pop_back();
  });
}

}  // namespace oneflow_lite::python
