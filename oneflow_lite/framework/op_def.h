// SPDX-License-Identifier: Apache-2.0
//
// OpDef: everything the framework knows of an op, in one struct, written once in ops/<stem>.cpp.
//
//   void DefineSoftmax(OpDef& op) {
//     op.Input("in").Output("out").Attr("axis", AttrType::kInt);
//     op.infer = [](InferContext& c) -> Status { ... c.SetOutput(0, c.shape(0), c.dtype(0)); ... };
//     op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0)}; };
//     op.backward = [](GradContext& c) -> Status { ... };
//   }
//   OFL_REGISTER_OP("softmax", DefineSoftmax);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/attr.h"
#include "oneflow_lite/framework/sbp.h"

namespace oneflow_lite {

class GradContext;  // framework/autograd.h

// Bit i stands for input (or output) i, and for i + 64, i + 128 ... where an input is variadic.
using Needs = uint64_t;
constexpr uint64_t Bit(int i) { return uint64_t{1} << i; }

struct InputDef {
  enum class Kind : uint8_t {
    kRequired,
    kOptional,  // may be an undefined tensor
    kMutated,   // Tensor(a!): changed in place, and the op's only output
    kViewed,    // the output is a view of it; the op has `view` and no kernel
    kVariadic,  // the last input: one or more tensors
  };
  std::string name;
  Kind kind = Kind::kRequired;
};

// One of the lists that an op over many tensors takes, such as an optimizer's parameters.
struct ListDef {
  std::string name;
  bool mutated = false;   // its tensors change in place
  bool optional = false;  // its tensors may all be undefined
};

struct AttrDef {
  std::string name;
  AttrType type;
  AttrValue default_value;  // monostate: none, the caller must give it unless optional
  bool optional = false;    // may be absent (monostate) in a call
};

// Shape, dtype and device of a tensor that need not exist.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kFloat32;
  Device device;
  bool defined = true;
};
// Of an undefined tensor one that is not defined, on `otherwise`.
inline TensorSpec SpecOf(const Tensor& t, Device otherwise = {}) {
  if (t.defined()) return {t.shape(), t.dtype(), t.device(), true};
  return {{}, DType::kFloat32, otherwise, false};
}

// What `infer` sees of a call, and where it puts the outputs' specs.
class OFL_API InferContext {
 public:
  InferContext(const std::string& op, const absl::InlinedVector<TensorSpec, 4>& inputs,
               const Attrs& attrs, absl::InlinedVector<TensorSpec, 2>* outputs)
      : op_(op), inputs_(inputs), attrs_(attrs), outputs_(*outputs) {}

  const std::string& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int i) const { return i < num_inputs() && inputs_[i].defined; }
  const TensorSpec& input(int i) const { return inputs_[i]; }
  const Shape& shape(int i) const { return inputs_[i].shape; }
  DType dtype(int i) const { return inputs_[i].dtype; }
  const Attrs& attrs() const { return attrs_; }
  template <class T>
  const T& attr(int i) const {
    return attrs_.get<T>(i);
  }
  void SetOutput(int i, const Shape& shape, DType dtype) {
    outputs_[i].shape = shape;
    outputs_[i].dtype = dtype;
  }

 private:
  const std::string& op_;
  const absl::InlinedVector<TensorSpec, 4>& inputs_;
  const Attrs& attrs_;
  absl::InlinedVector<TensorSpec, 2>& outputs_;
};

// Geometry of a view within its base's storage; offset in elements from the storage's start.
struct Geometry {
  Shape shape;
  Dims strides;
  int64_t offset = 0;
};

// What backward will want to see again.
struct SavePlan {
  uint64_t inputs = 0;
  uint64_t outputs = 0;
  // An input that was given as a number (TensorImpl::wrapped_number) is kept as an attribute is: no
  // pass frees it, so that a second backward may run where no tensor was saved.
  bool keep_numbers = false;
};

// Work of one call: bytes that must move at least, and floating-point operations.
struct Cost {
  double bytes = 0;
  double flops = 0;
};

// One shard of a call that runs under an SBP signature, and the whole call that it is a part of.
struct PhysicalContext {
  const SbpSignature& signature;
  absl::Span<const TensorSpec> logical_inputs, logical_outputs;
  absl::Span<const TensorSpec> inputs;  // of this shard
  int part = 0;                         // this shard's number
  int parts = 1;
  Attrs attrs;  // those of the whole call, for infer_physical to make them the shard's

  // The shard's part of an output, by the signature.
  Shape OutputShape(int i) const {
    return ShardShape(logical_outputs[i].shape, signature.outputs[i], part, parts);
  }
};

struct OFL_API OpDef {
  std::string name;  // "softmax", or "namespace::name" for an op from outside
  std::string doc;
  const char* file = "";
  int line = 0;

  std::vector<InputDef> inputs;
  std::vector<std::string> outputs;
  std::vector<AttrDef> attrs;
  // Of an op over many tensors at once: its variadic input holds these lists one after another, all
  // of one length; JoinLists (op_expr.h) makes it. Such an op has no outputs and no gradient.
  std::vector<ListDef> lists;

  bool random = false;                // draws from a generator
  bool makes_outputs = false;         // the kernel makes its outputs (set_output) instead of
                                      // writing into allocated ones
  bool data_dependent_shape = false;  // ... and it, not infer, knows their shapes
  bool scalar_operands = false;       // 0-dim CPU tensors may accompany tensors of another device
  int device_attr = -1;               // the attribute that says where the outputs go, if any
  bool differentiable = true;         // false: outputs never require grad (comparisons, argmax)

  // Output shapes and dtypes from the inputs'; refuses whatever a kernel cannot take.
  std::function<Status(InferContext&)> infer;
  // Before infer runs on a shard: rewrites the attributes that speak of the whole (a shape).
  std::function<Status(PhysicalContext&)> infer_physical;
  // For an op with a viewed input, instead of infer.
  std::function<StatusOr<Geometry>(const Tensor& base, const Attrs&)> view;
  // The ways in which the op may run on shards; all-broadcast is always allowed.
  std::function<StatusOr<SbpSignatures>(const SbpContext&)> sbp;
  std::string sbp_text;  // the same in words, for flow.ops.describe
  // Default: each input read once, each output written once, one operation per output element.
  std::function<Cost(const InferContext&, absl::Span<const TensorSpec> outputs)> cost;
  std::string cost_text;  // the same in words
  // Which inputs and outputs backward needs; default: none.
  std::function<SavePlan(const Attrs&, Needs)> save;
  // Sets the gradient of each input in needs, composed of functors. Absent: an error at backward.
  std::function<Status(GradContext&)> backward;

  OpDef& Input(std::string n, InputDef::Kind kind = InputDef::Kind::kRequired) {
    inputs.push_back({std::move(n), kind});
    return *this;
  }
  OpDef& Output(std::string n) {
    outputs.push_back(std::move(n));
    return *this;
  }
  OpDef& Attr(std::string n, AttrType type, AttrValue default_value = {}) {
    if (type == AttrType::kDevice) device_attr = static_cast<int>(attrs.size());
    attrs.push_back({std::move(n), type, std::move(default_value), false});
    return *this;
  }
  OpDef& OptionalAttr(std::string n, AttrType type) {
    attrs.push_back({std::move(n), type, {}, true});
    return *this;
  }

  OpDef& List(ListDef list) {
    if (lists.empty()) Input("tensors", InputDef::Kind::kVariadic);
    lists.push_back(std::move(list));
    return *this;
  }

  // The list that input i of num_inputs belongs to; null for an input of its own.
  const ListDef* ListOf(size_t i, size_t num_inputs) const {
    const size_t alone = lists.empty() ? num_inputs : inputs.size() - 1;
    return i < alone ? nullptr : &lists[(i - alone) / ((num_inputs - alone) / lists.size())];
  }
  // Whether input i of num_inputs is changed in place.
  bool MutatesInput(size_t i, size_t num_inputs) const {
    const ListDef* list = ListOf(i, num_inputs);
    return list ? list->mutated : i == 0 && mutates();
  }
  bool mutates() const { return !inputs.empty() && inputs[0].kind == InputDef::Kind::kMutated; }
  bool views() const { return !inputs.empty() && inputs[0].kind == InputDef::Kind::kViewed; }
  bool variadic() const {
    return !inputs.empty() && inputs.back().kind == InputDef::Kind::kVariadic;
  }
  // "softmax(Tensor in, int axis) -> (Tensor out)"
  std::string Schema() const;
};

// A dense tensor that no memory is counted for: geometry needs strides alone.
OFL_API Tensor DenseBase(const Shape& shape, DType dtype);
// Runs infer (or the view's geometry without data) on specs; the one entry for meta, tests, shards.
OFL_API Status InferOutputs(const OpDef& op, const absl::InlinedVector<TensorSpec, 4>& inputs,
                            const Attrs& attrs, absl::InlinedVector<TensorSpec, 2>* outputs);
// The signatures that the op declares for a call, or the error of its sbp. RuntimeError where one
// does not have an entry per tensor or splits a dim that is not there; it names the op's place. An
// absent input may have any.
OFL_API StatusOr<SbpSignatures> SignaturesOf(const OpDef& op,
                                             const absl::InlinedVector<TensorSpec, 4>& inputs,
                                             const Attrs& attrs,
                                             const absl::InlinedVector<TensorSpec, 2>& outputs);
// Makes c.attrs those of the shard, and infers the shard's outputs.
OFL_API Status InferPhysical(const OpDef& op, PhysicalContext& c,
                             absl::InlinedVector<TensorSpec, 2>* outputs);
OFL_API Cost CostOf(const OpDef& op, const absl::InlinedVector<TensorSpec, 4>& inputs,
                    const Attrs& attrs, const absl::InlinedVector<TensorSpec, 2>& outputs);

}  // namespace oneflow_lite
