// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of rows of logits: the losses with what backward needs, the gradient, both at once,
// and the few numbers around them.
#include "primitive/cross_entropy.h"

#include "python/torch/bindings/launch.h"
#include "python/torch/bindings/operators.h"
#include "python/torch/invariant/invariant.h"

namespace oneflow_lite::torch_ops {
namespace {

constexpr char kBackward[] = "cross_entropy_backward";

struct LossCall {
  LossCall(const Tensor& logits, const Tensor& targets, int64_t ignore_index, double smoothing)
      : x(logits), target(targets) {
    Require(x.is_floating() && x.ndim == 2,
            "cross_entropy(): logits must be [rows, classes] of a floating dtype");
    Require(target.known && target.dtype == DType::kInt64 && target.ndim == 1 &&
                target.sizes[0] == x.sizes[0],
            "cross_entropy(): targets must be int64, one for each row of logits");
    RequireBeside("cross_entropy", "target", target, x);
    shape = {.rows = x.sizes[0],
             .classes = x.sizes[1],
             .ignore_index = ignore_index,
             .smoothing = smoothing,
             .row_stride = RowsOf(x, 1).stride};
  }
  bool is_served() const { return shape.row_stride > 0 || x.numel() == 0; }
  bool targets_are_dense() const { return shape.rows <= 1 || target.strides[0] == 1; }
  const int64_t* targets() const { return static_cast<const int64_t*>(target.data); }

  TensorInfo x, target;
  CrossEntropyShape shape;
};

// Targets without gaps: as they are, or copied.
const int64_t* Dense(const Tensor& targets, const TensorInfo& info, OptionalTensor* copy) {
  if (IsContiguous(info)) return static_cast<const int64_t*>(info.data);
  *copy = Copied(targets);
  return static_cast<const int64_t*>((*copy)->data());
}

// Of one number of x's compute type, or of one for each of its rows: from number to number.
int64_t StepOf(const char* op, const char* name, const TensorInfo& t, const TensorInfo& x) {
  const bool one = t.numel() == 1;
  Require(t.known && t.dtype == ComputeType(x.dtype) &&
              (one || (t.ndim == 1 && t.sizes[0] == x.sizes[0])),
          op, "(): ", name, " must be one number, or one for each row");
  RequireBeside(op, name, t, x);
  return one ? 0 : t.strides[0];
}

// The dtype of a result.
DType ResultDType(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
      return DType::kFloat16;
    case ScalarType::BFloat16:
      return DType::kBFloat16;
    case ScalarType::Double:
      return DType::kFloat64;
    default:
      Require(type == ScalarType::Float, "cross_entropy(): a loss must have a floating dtype");
      return DType::kFloat32;
  }
}
// One target for each of `rows` losses, or of any number of them.
void CheckTargets(const char* op, const TensorInfo& target, int64_t rows) {
  Require(target.known && target.dtype == DType::kInt64 && target.numel() == rows, op,
          "(): target must be int64, one for each loss");
}

}  // namespace

std::tuple<Tensor, Tensor> CrossEntropyForward(const Tensor& logits, const Tensor& targets,
                                               int64_t ignore_index, double smoothing,
                                               bool invariant) {
  const LossCall call(logits, targets, ignore_index, smoothing);
  if (!call.is_served() || !call.targets_are_dense()) {
    return CrossEntropyForward(Contiguous(logits), Contiguous(targets), ignore_index, smoothing,
                               invariant);
  }
  if (NeedsCopy(invariant, call.x, call.shape.classes, call.shape.stride())) {
    return CrossEntropyForward(CopyOf(logits), targets, ignore_index, smoothing, invariant);
  }
  const DType compute = ComputeType(call.x.dtype);
  const int64_t sizes[2] = {call.shape.rows, 2};
  Tensor loss = Empty(sizes, 1, compute, call.x.device);
  Tensor stats = Empty(sizes, 2, compute, call.x.device);
  if (call.shape.rows == 0) return {std::move(loss), std::move(stats)};
  CurrentStream stream(call.x.device, invariant);
  const auto& forward = RowPrimitive<CrossEntropy>(invariant, call.x.device,
                                                   {.dtype = call.x.dtype}, call.shape.classes);
  const Workspace workspace(call.x.device, forward.WorkspaceBytes(stream, call.shape));
  Check(forward.Launch(stream, call.shape, call.x.data, call.targets(), loss.data(), stats.data(),
                       workspace.data()));
  return {std::move(loss), std::move(stats)};
}

Tensor CrossEntropyGradient(const Tensor& logits, const Tensor& targets, const Tensor& stats,
                            const Tensor& dloss, int64_t ignore_index, double smoothing) {
  const LossCall call(logits, targets, ignore_index, smoothing);
  if (!call.is_served() || !call.targets_are_dense()) {
    return CrossEntropyGradient(Contiguous(logits), Contiguous(targets), stats, dloss, ignore_index,
                                smoothing);
  }
  const TensorInfo d(dloss);
  const int64_t step = StepOf(kBackward, "the losses' gradient", d, call.x);
  const TensorInfo numbers(stats);
  RequireNumbers(kBackward, "stats", numbers, ComputeType(call.x.dtype), 2 * call.shape.rows,
                 call.x);
  Tensor dx = EmptyLike(call.x);
  if (call.x.numel() == 0) return dx;
  CurrentStream stream(call.x.device);
  const auto& backward =
      Primitive<CrossEntropyBackward>(call.x.device.type, {.dtype = call.x.dtype});
  Check(backward.Launch(stream, call.shape, call.x.data, call.targets(), numbers.data, d.data, step,
                        dx.data()));
  return dx;
}

Tensor CrossEntropyReplace(const Tensor& logits, const Tensor& targets, const OptionalTensor& scale,
                           int64_t ignore_index, double smoothing, bool invariant) {
  const LossCall call(logits, targets, ignore_index, smoothing);
  Require(IsContiguous(call.x), "cross_entropy(): logits must be contiguous to become a gradient");
  if (NeedsCopy(invariant, call.x, call.shape.classes, call.shape.classes)) {
    const Tensor copy = CopyOf(logits);
    Tensor loss = CrossEntropyReplace(copy, targets, scale, ignore_index, smoothing, true);
    CopyInto(logits, copy);
    return loss;
  }
  OptionalTensor copy;
  const int64_t* const target = Dense(targets, call.target, &copy);
  const int64_t rows = call.shape.rows;
  Tensor loss = Empty(&rows, 1, ComputeType(call.x.dtype), call.x.device);
  if (rows == 0) return loss;
  if (scale) {
    RequireNumbers("cross_entropy", "scale", TensorInfo(*scale), ComputeType(call.x.dtype), 1,
                   call.x);
  }
  CurrentStream stream(call.x.device, invariant);
  const auto& in_place = RowPrimitive<CrossEntropyInPlace>(
      invariant, call.x.device, {.dtype = call.x.dtype}, call.shape.classes);
  const Workspace workspace(call.x.device, in_place.WorkspaceBytes(stream, call.shape));
  Check(in_place.Launch(stream, call.shape, call.x.data, target, scale ? scale->data() : nullptr,
                        loss.data(), workspace.data()));
  return loss;
}

Tensor MeanWeightOf(const Tensor& targets, int64_t ignore_index, ScalarType dtype) {
  const TensorInfo target(targets);
  CheckTargets("mean_weight", target, target.numel());
  OptionalTensor copy;
  const DType compute = ComputeType(ResultDType(dtype));
  Tensor weight = Empty(nullptr, 0, compute, target.device);
  CurrentStream stream(target.device);
  const auto& mean = Primitive<MeanWeight>(target.device.type, {.dtype = compute});
  Check(mean.Launch(stream, target.numel(), ignore_index, Dense(targets, target, &copy),
                    weight.data()));
  return weight;
}

std::tuple<Tensor, Tensor> ReduceLossOf(const Tensor& losses, const OptionalTensor& targets,
                                        int64_t ignore_index, ScalarType dtype) {
  const TensorInfo loss(losses);
  OptionalTensor copy;
  const DType result = ResultDType(dtype);
  const int64_t rows = loss.numel();
  RequireNumbers("reduce_loss", "loss", loss, ComputeType(result), rows, loss);
  Tensor value = Empty(nullptr, 0, result, loss.device);
  Tensor weight = Empty(nullptr, 0, ComputeType(result), loss.device);
  static constexpr int64_t kNoTarget = 0;  // where there are none, but a mean is asked for
  const int64_t* target = nullptr;
  if (targets) {
    const TensorInfo t(*targets);
    CheckTargets("reduce_loss", t, rows);
    RequireBeside("reduce_loss", "target", t, loss);
    target = rows == 0 ? &kNoTarget : Dense(*targets, t, &copy);
  }
  CurrentStream stream(loss.device);
  const auto& reduce = Primitive<ReduceLoss>(loss.device.type, {.dtype = result});
  Check(reduce.Launch(stream, rows, ignore_index, loss.data, target, value.data(), weight.data()));
  return {std::move(value), std::move(weight)};
}

void ScaleRowsOf(const Tensor& input, const Tensor& factor) {
  const TensorInfo x(input), f(factor);
  Require(x.is_floating() && x.ndim == 2 && IsContiguous(x),
          "scale_rows_(): input must be contiguous rows");
  const int64_t step = StepOf("scale_rows_", "factor", f, x);
  if (x.numel() == 0) return;
  CurrentStream stream(x.device);
  const auto& scale = Primitive<ScaleRows>(x.device.type, {.dtype = x.dtype});
  Check(scale.Launch(stream, x.sizes[0], x.sizes[1], f.data, step, x.data));
}

}  // namespace oneflow_lite::torch_ops
