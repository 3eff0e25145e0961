// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input. An op is one entry: name, documentation, dtypes, what backward
// keeps, and the gradient.
#include "functional/unary.h"

#include "functional/binary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

using functional::Div;
using functional::Mul;
using functional::Neg;
using functional::ReluBackward;

constexpr SavePlan kNothing{};
constexpr SavePlan kInput{.inputs = Bit(0)};
constexpr SavePlan kOutput{.outputs = Bit(0)};

struct Entry {
  const char* name;
  const char* doc;
  DTypeSet dtypes;
  SavePlan save;
  StatusOr<Tensor> (*gradient)(const GradContext& c);  // of the input
};

// clang-format off
constexpr Entry kEntries[] = {
    {"neg", "Negates each element.", kNumericSet, kNothing,
     [](const GradContext& c) { return Neg(c.grad(0)); }},
    {"exp", "e to the power of each element.", kFloatingSet, kOutput,
     [](const GradContext& c) { return Mul(c.grad(0), c.output(0)); }},
    {"log", "Natural logarithm of each element.", kFloatingSet, kInput,
     [](const GradContext& c) { return Div(c.grad(0), c.input(0)); }},
    {"relu", "max(x, 0) of each element.", kNumericSet, kOutput,
     [](const GradContext& c) { return ReluBackward(c.grad(0), c.output(0)); }},
};
// clang-format on

template <size_t kIndex>
void Define(OpDef& op) {
  static constexpr const Entry& entry = kEntries[kIndex];
  op.Input("in").Output("out");
  op.doc = entry.doc;
  op.infer = [](InferContext& c) -> Status {
    if (!(entry.dtypes & SetOf(c.dtype(0)))) {
      return UnsupportedDType(c.op(), "the input", c.dtype(0), "one of " + ToString(entry.dtypes));
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.save = [](const Attrs&, Needs) { return entry.save; };
  op.backward = [](GradContext& c) -> Status { return c.Set(0, entry.gradient(c)); };
}

template <size_t... I>
bool RegisterAll(std::index_sequence<I...>) {
  return (internal::AppendOp(kEntries[I].name, Define<I>, __FILE__, __LINE__) && ...);
}
const bool registered = RegisterAll(std::make_index_sequence<std::size(kEntries)>());

}  // namespace
}  // namespace oneflow_lite
