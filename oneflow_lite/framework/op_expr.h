// SPDX-License-Identifier: Apache-2.0
//
// OpExpr: an op ready to be called. A functor resolves it once; it caches the kernels bound so far,
// so that the second call with the same device and dtypes looks nothing up.
//
//   static const OpExpr& op = OpBuilder("softmax").Input("in").Output("out").Attr("axis").Get();
//   OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {x}, {axis}));
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

class OFL_API OpExpr {
 public:
  explicit OpExpr(OpDef def) : def_(std::move(def)) {}
  ~OpExpr();

  const OpDef& def() const { return def_; }

  struct CachedKernel {
    uint64_t key;                 // the device and the first tensors' dtypes
    std::vector<uint8_t> beyond;  // the other tensors' dtypes, of an op of many
    const KernelDef* kernel;
    std::unique_ptr<BoundKernel> bound;
    const CachedKernel* next;
  };
  // The kernel for the device type and the tensors' dtypes, bound at the first such call.
  StatusOr<const CachedKernel*> Kernel(DeviceType device, absl::Span<const Tensor> inputs,
                                       absl::Span<const Tensor> outputs) const;

 private:
  OpDef def_;
  // Grows only; readers walk it without a lock.
  mutable std::atomic<const CachedKernel*> kernels_{nullptr};
  mutable std::mutex mutex_;
};

// Names an op and what the caller will pass; the names are compared with the OpDef once.
class OFL_API OpBuilder {
 public:
  explicit OpBuilder(absl::string_view op) : op_(op) {}
  OpBuilder& Input(absl::string_view name);
  OpBuilder& Output(absl::string_view name);
  OpBuilder& Attr(absl::string_view name);
  // NotImplementedError for an unknown op, RuntimeError where names or their order differ.
  StatusOr<const OpExpr*> Build() const;
  // For functors of this library, where a failure is our own bug.
  const OpExpr& Get() const;

 private:
  std::string op_;
  std::vector<std::string> inputs_, outputs_, attrs_;
};

// The inputs of a call of an op over lists (OpDef::lists): the tensors that stand alone, then each
// list; an optional one may be empty. ValueError where the lengths differ.
OFL_API StatusOr<TensorList> JoinLists(const OpDef& op, absl::Span<const Tensor> alone,
                                       std::initializer_list<absl::Span<const Tensor>> lists);

// Runs one op through the dispatch chain (framework/dispatch.h). Outputs go to the device of the
// inputs, or to the one the op's Device attribute names. One output:
OFL_API StatusOr<Tensor> Call(const OpExpr& op, absl::Span<const Tensor> inputs,
                              const Attrs& attrs = {});
// Of an elementwise op of one input, whose kernels may write over it: the result is x itself,
// overwritten, where it has x's shape and dtype, else a tensor of its own. For an x that autograd
// does not record.
OFL_API StatusOr<Tensor> CallOver(const OpExpr& op, const Tensor& x, const Attrs& attrs = {});
// All outputs:
OFL_API StatusOr<TensorList> CallAll(const OpExpr& op, absl::Span<const Tensor> inputs,
                                     const Attrs& attrs = {});

inline StatusOr<Tensor> Call(const OpExpr& op, std::initializer_list<Tensor> inputs,
                             const Attrs& attrs = {}) {
  return Call(op, absl::MakeConstSpan(inputs.begin(), inputs.size()), attrs);
}
inline StatusOr<TensorList> CallAll(const OpExpr& op, std::initializer_list<Tensor> inputs,
                                    const Attrs& attrs = {}) {
  return CallAll(op, absl::MakeConstSpan(inputs.begin(), inputs.size()), attrs);
}

}  // namespace oneflow_lite
