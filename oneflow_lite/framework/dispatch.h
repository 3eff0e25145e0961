// SPDX-License-Identifier: Apache-2.0
//
// The fixed chain every call of every op runs through, on thread-local state:
//
//   observers -> autocast -> autograd -> one of local, meta, global
//
// A mode is added to one of the first two stages and edits no op:
//
//   class Counter : public DispatchMode {
//     Status Run(OpCall& call, const Next& next) override { ++n; return next(call); }
//   };
//   ModeGuard guard(DispatchStage::kObserver, &counter);   // until the guard goes
#pragma once

#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite {

// One call on its way down the chain. A mode may replace `inputs` before it goes on.
struct OpCall {
  const OpExpr& op;
  absl::Span<const Tensor> inputs;
  const Attrs& attrs;
  TensorList* outputs;
  // Of a call that autograd does not record: output 0 takes the place of input 0, where it has the
  // shape and dtype of that (CallOver).
  bool overwrites = false;
};

enum class DispatchStage : uint8_t { kObserver, kAutocast };

class OFL_API DispatchMode {
 public:
  // What comes after this mode in the chain.
  class OFL_API Next {
   public:
    Next(DispatchStage stage, size_t index) : stage_(stage), index_(index) {}
    Status operator()(OpCall& call) const;

   private:
    DispatchStage stage_;
    size_t index_;
  };
  virtual ~DispatchMode() = default;
  virtual Status Run(OpCall& call, const Next& next) = 0;
};

// Puts a mode into this thread's chain until destroyed; guards nest. The call that a mode was given
// goes on to the modes after it through `next`; an op that the mode calls itself is a call of its
// own and runs the whole chain, that mode included.
class OFL_API ModeGuard {
 public:
  ModeGuard(DispatchStage stage, DispatchMode* mode);
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  DispatchStage stage_;
};

// Whether autograd records on this thread (true at first).
OFL_API bool GradEnabled();
OFL_API void SetGradEnabled(bool enabled);
class OFL_API GradGuard {
 public:
  explicit GradGuard(bool enabled) : previous_(GradEnabled()) { SetGradEnabled(enabled); }
  ~GradGuard() { SetGradEnabled(previous_); }
  GradGuard(const GradGuard&) = delete;
  GradGuard& operator=(const GradGuard&) = delete;

 private:
  bool previous_;
};

namespace internal {
// The last stages; each is a function in a file of its own.
Status DispatchAutograd(OpCall& call);  // autograd.cpp
Status DispatchBackend(OpCall& call);   // backend.cpp: local, meta, global
}  // namespace internal

}  // namespace oneflow_lite
