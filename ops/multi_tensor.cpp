// SPDX-License-Identifier: Apache-2.0
//
// One op over many tensors: steps of optimizers (adam_ is in adam.cpp), and what else is done to
// all gradients or parameters at once. primitive/multi_tensor.h has the formulas.
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr int kAlone = 3;  // lr_tensor, scale, found_inf

// What the tensors of a list are: of the first list's dtype, of its compute type, or 0-dim numbers
// of float64 or float32. The first list has any floating dtype.
enum class Of : uint8_t { kFirst, kWide, kSteps, kFlags };

struct List {
  const char* name;
  Of of = Of::kFirst;
  bool mutated = false, optional = false;
};
struct Row {
  const char* name;
  const char* doc;
  std::vector<List> lists;
  std::vector<const char*> numbers, flags;
  double flops;  // of an element
};

List State(const char* name, bool optional = false) {
  return {name, Of::kWide, /*mutated=*/true, optional};
}

std::vector<Row> Optimizers() {
  const List params{"params", Of::kFirst, true}, grads{"grads"}, masters = State("masters", true);
  const List steps{"steps", Of::kSteps, true, true};
  return {
      {"sgd_",
       "A step of gradient descent with momentum.",
       {params, grads, State("momentum_buffers", true), masters},
       {"lr", "momentum", "dampening", "weight_decay"},
       {"nesterov", "maximize", "first"},
       8},
      {"rmsprop_",
       "A step of RMSprop; centered where there are means, grad_avgs.",
       {params, grads, State("square_avgs"), State("grad_avgs", true),
        State("momentum_buffers", true), masters, steps},
       {"lr", "alpha", "eps", "weight_decay", "momentum"},
       {"maximize"},
       12},
      {"adadelta_",
       "A step of Adadelta.",
       {params, grads, State("square_avgs"), State("acc_deltas"), masters, steps},
       {"lr", "rho", "eps", "weight_decay"},
       {"maximize"},
       14},
      {"adagrad_",
       "A step of Adagrad.",
       {params, grads, State("sums"), masters, steps},
       {"lr", "lr_decay", "eps", "weight_decay"},
       {"maximize"},
       8},
      {"lion_",
       "A step of Lion, the sign of a mean of gradients.",
       {params, grads, State("exp_avgs"), masters},
       {"lr", "beta1", "beta2", "weight_decay"},
       {"maximize"},
       10},
  };
}

std::vector<Row> Others() {
  const List tensors{"tensors", Of::kFirst, true};
  return {
      {"multi_lerp_",
       "All tensors moved by weight towards others.",
       {tensors, {"ends"}},
       {"weight"},
       {},
       3},
      {"multi_scale_",
       "All tensors times a factor, and times `scale` where it is given.",
       {tensors},
       {"factor"},
       {},
       1},
      {"multi_clamp_",
       "The elements of all tensors brought between two numbers; NaN stays.",
       {tensors},
       {"least", "most"},
       {},
       2},
      {"multi_fill_", "All elements of all tensors set to a value.", {tensors}, {"value"}, {}, 0},
      {"multi_unscale_",
       "All tensors divided by `scale`; a tensor's flag becomes 1 where one of its elements is not "
       "finite. Flags may be one tensor.",
       {tensors, {"flags", Of::kFlags, true}},
       {},
       {},
       2},
      {"update_scale_",
       "The scale of a loss after a step: times backoff where found_infs is above 0, times growth "
       "after `interval` steps without.",
       {{"scales", Of::kFirst, true}, {"found_infs"}, State("growth_counts")},
       {"growth", "backoff", "interval"},
       {},
       4},
  };
}

Status CheckAlone(InferContext& c) {
  static constexpr struct {
    const char* name;
    DType dtype;
  } kNumbers[kAlone] = {{"lr_tensor", DType::kFloat64},
                        {"grad_scale", DType::kFloat32},
                        {"found_inf", DType::kFloat32}};
  for (int i = 0; i < kAlone; ++i) {
    if (!c.has_input(i)) continue;
    const auto& [name, dtype] = kNumbers[i];
    if (c.shape(i).ndim() != 0) return ShapeMismatch(c.op(), name, c.shape(i), "[]");
    if (c.dtype(i) != dtype) return DTypeMismatch(c.op(), name, c.dtype(i), Name(dtype));
  }
  return OkStatus();
}

DType Wanted(Of of, DType first) {
  switch (of) {
    case Of::kFirst:
      return first;
    case Of::kWide:
      return ComputeType(first);
    case Of::kSteps:
      return DType::kFloat64;
    case Of::kFlags:
      return DType::kFloat32;
  }
  return first;
}

// Each list holds what belongs to the tensor of the first at the same place.
Status InferRow(const Row& row, InferContext& c) {
  OFL_RETURN_IF_ERROR(CheckAlone(c));
  const int lists = static_cast<int>(row.lists.size());
  const int count = (c.num_inputs() - kAlone) / lists;
  const DType first = c.dtype(kAlone);
  if (!IsFloating(first))
    return UnsupportedDType(c.op(), row.lists[0].name, first, kFloatingDTypes);
  for (int l = 0; l < lists; ++l) {
    const List& list = row.lists[l];
    const bool numbers = list.of == Of::kSteps || list.of == Of::kFlags;
    for (int i = 0; i < count; ++i) {
      const int input = kAlone + l * count + i;
      if (!c.has_input(input)) continue;
      const auto name = [&] { return absl::StrCat(list.name, "[", i, "]"); };
      const Shape& shape = numbers ? Shape() : c.shape(kAlone + i);
      if (c.shape(input) != shape) {
        return ShapeMismatch(c.op(), name(), c.shape(input), shape.ToString());
      }
      const DType want = Wanted(list.of, first);
      if (c.dtype(input) != want) return DTypeMismatch(c.op(), name(), c.dtype(input), Name(want));
    }
  }
  return OkStatus();
}

Cost CostOfRow(const Row& row, const InferContext& c) {
  Cost cost;
  const int count = (c.num_inputs() - kAlone) / static_cast<int>(row.lists.size());
  for (int i = kAlone; i < c.num_inputs(); ++i) {
    if (!c.has_input(i)) continue;
    const auto numel = static_cast<double>(c.shape(i).numel());
    const bool written = row.lists[(i - kAlone) / count].mutated;
    cost.bytes += numel * static_cast<double>(SizeOf(c.dtype(i))) * (written ? 2 : 1);
    if (i < kAlone + count) cost.flops += row.flops * numel;
  }
  return cost;
}

// The table lives as long as the process: the definitions refer to its rows.
const Row& RowOf(absl::string_view name) {
  static const auto* rows = [] {
    auto* all = new std::vector<Row>(Optimizers());
    for (Row& row : Others()) all->push_back(std::move(row));
    return all;
  }();
  for (const Row& row : *rows) {
    if (row.name == name) return row;
  }
  OFL_CHECK(false);
}

void DefineRow(OpDef& op) {
  const Row& row = RowOf(op.name);
  const auto optional = InputDef::Kind::kOptional;
  op.Input("lr_tensor", optional).Input("scale", optional).Input("found_inf", optional);
  for (const List& list : row.lists) op.List({list.name, list.mutated, list.optional});
  for (const char* number : row.numbers) op.Attr(number, AttrType::kFloat);
  for (const char* flag : row.flags) op.Attr(flag, AttrType::kBool, false);
  if (op.name == "adagrad_") op.Attr("step", AttrType::kInt, int64_t{1});
  op.doc = row.doc;
  op.differentiable = false;
  op.infer = [&row](InferContext& c) { return InferRow(row, c); };
  op.cost = [&row](const InferContext& c, absl::Span<const TensorSpec>) {
    return CostOfRow(row, c);
  };
  op.cost_text = "each list read once, and written once where it changes";
}

void DefineMultiNorm(OpDef& op) {
  op.Input("tensors", InputDef::Kind::kVariadic).Output("out").Attr("p", AttrType::kFloat, 2.0);
  op.doc = "The p-norm of each of many tensors, in their compute type.";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    Cost cost;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const auto numel = static_cast<double>(c.shape(i).numel());
      cost.bytes += numel * static_cast<double>(SizeOf(c.dtype(i)));
      cost.flops += 2 * numel;
    }
    return cost;
  };
  op.cost_text = "each tensor read once; 2 operations per element";
  op.sbp_text = "whole";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    const double p = c.attr<double>(0);
    if (!(p > 0)) return BadValue(c.op(), "p", absl::StrCat(p), "above 0");
    const DType dtype = c.dtype(0);
    if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "tensors", dtype, kFloatingDTypes);
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (c.dtype(i) == dtype) continue;
      return DTypeMismatch(c.op(), absl::StrCat("tensors[", i, "]"), c.dtype(i), Name(dtype));
    }
    c.SetOutput(0, Shape{c.num_inputs()}, ComputeType(dtype));
    return OkStatus();
  };
}

OFL_REGISTER_OP("sgd_", DefineRow);
OFL_REGISTER_OP("rmsprop_", DefineRow);
OFL_REGISTER_OP("adadelta_", DefineRow);
OFL_REGISTER_OP("adagrad_", DefineRow);
OFL_REGISTER_OP("lion_", DefineRow);
OFL_REGISTER_OP("multi_lerp_", DefineRow);
OFL_REGISTER_OP("multi_scale_", DefineRow);
OFL_REGISTER_OP("multi_clamp_", DefineRow);
OFL_REGISTER_OP("multi_fill_", DefineRow);
OFL_REGISTER_OP("multi_unscale_", DefineRow);
OFL_REGISTER_OP("update_scale_", DefineRow);
OFL_REGISTER_OP("multi_norm", DefineMultiNorm);

}  // namespace
}  // namespace oneflow_lite
