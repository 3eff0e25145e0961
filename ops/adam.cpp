// SPDX-License-Identifier: Apache-2.0
//
// adam_: a step of Adam or AdamW on many parameters in one launch. primitive/adam_math.h has the
// formula.
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr int kAlone = 3;  // lr, grad_scale, found_inf

Status CheckNumber(InferContext& c, int i, const char* name, DType dtype) {
  if (!c.has_input(i)) return OkStatus();
  if (c.shape(i).ndim() != 0) return ShapeMismatch(c.op(), name, c.shape(i), "[]");
  return c.dtype(i) == dtype ? OkStatus() : DTypeMismatch(c.op(), name, c.dtype(i), Name(dtype));
}

// Each list holds what belongs to the parameter at the same place.
Status InferAdam(InferContext& c) {
  static constexpr const char* kNames[] = {"params",          "grads",   "exp_avgs", "exp_avg_sqs",
                                           "max_exp_avg_sqs", "masters", "steps"};
  OFL_RETURN_IF_ERROR(CheckNumber(c, 0, "lr", DType::kFloat64));
  OFL_RETURN_IF_ERROR(CheckNumber(c, 1, "grad_scale", DType::kFloat32));
  OFL_RETURN_IF_ERROR(CheckNumber(c, 2, "found_inf", DType::kFloat32));
  const int count = (c.num_inputs() - kAlone) / 7;
  const DType dtype = c.dtype(kAlone), wide = ComputeType(dtype);
  if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "params", dtype, kFloatingDTypes);
  for (int list = 0; list < 7; ++list) {
    const DType want = list < 2 ? dtype : list < 6 ? wide : DType::kFloat64;
    for (int i = 0; i < count; ++i) {
      const int input = kAlone + list * count + i;
      if (!c.has_input(input)) continue;
      const auto name = [&] { return absl::StrCat(kNames[list], "[", i, "]"); };
      const Shape& shape = list < 6 ? c.shape(kAlone + i) : Shape();
      if (c.shape(input) != shape) {
        return ShapeMismatch(c.op(), name(), c.shape(input), shape.ToString());
      }
      if (c.dtype(input) != want) return DTypeMismatch(c.op(), name(), c.dtype(input), Name(want));
    }
  }
  if (c.attr<int64_t>(7) < 1) {
    return BadValue(c.op(), "step", absl::StrCat(c.attr<int64_t>(7)), "1 or more");
  }
  return OkStatus();
}

void DefineAdam(OpDef& op) {
  const auto optional = InputDef::Kind::kOptional;
  op.Input("lr_tensor", optional).Input("grad_scale", optional).Input("found_inf", optional);
  op.List({"params", true}).List({"grads"}).List({"exp_avgs", true}).List({"exp_avg_sqs", true});
  op.List({"max_exp_avg_sqs", true, true}).List({"masters", true, true});
  op.List({"steps", true, true});
  op.Attr("lr", AttrType::kFloat).Attr("beta1", AttrType::kFloat).Attr("beta2", AttrType::kFloat);
  op.Attr("eps", AttrType::kFloat).Attr("weight_decay", AttrType::kFloat);
  op.Attr("decoupled", AttrType::kBool).Attr("maximize", AttrType::kBool);
  op.Attr("step", AttrType::kInt, int64_t{1});
  op.doc = "A step of Adam, or of AdamW where decoupled, on all parameters at once.";
  op.differentiable = false;
  op.infer = InferAdam;
  // Each list but the gradients is read and written.
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    Cost cost;
    const int count = (c.num_inputs() - kAlone) / 7;
    for (int i = kAlone; i < c.num_inputs(); ++i) {
      if (!c.has_input(i)) continue;
      const auto numel = static_cast<double>(c.shape(i).numel());
      const bool read_only = (i - kAlone) / count == 1;
      cost.bytes += numel * static_cast<double>(SizeOf(c.dtype(i))) * (read_only ? 1 : 2);
      if (i < kAlone + count) cost.flops += 14 * numel;
    }
    return cost;
  };
  op.cost_text = "each list read, and written but for the gradients";
}

OFL_REGISTER_OP("adam_", DefineAdam);

}  // namespace
}  // namespace oneflow_lite
