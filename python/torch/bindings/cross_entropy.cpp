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

struct LossCall {
  LossCall(const Tensor& logits, const Tensor& targets, int64_t ignore_index, double smoothing)
      : x(logits), target(targets) {
    Require(x.is_floating() && x.ndim == 2,
            "cross_entropy(): logits must be [rows, classes] of a floating dtype");
    Require(target.known && target.dtype == DType::kInt64 && target.ndim == 1 &&
                target.sizes[0] == x.sizes[0],
            "cross_entropy(): targets must be int64, one for each row of logits");
    Require(target.device.type == x.device.type,
            "cross_entropy(): targets are on another device than logits");
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

// A list of numbers: of those, or of one.
int64_t StepOf(const TensorInfo& t) { return t.ndim == 0 || t.numel() == 1 ? 0 : t.strides[0]; }

DType ComputeDType(ScalarType type) {
  return type == ScalarType::Double ? DType::kFloat64 : DType::kFloat32;
}
// The dtype of a result.
DType ResultDType(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
      return DType::kFloat16;
    case ScalarType::BFloat16:
      return DType::kBFloat16;
    default:
      return ComputeDType(type);
  }
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
  Require(d.known && d.dtype == ComputeType(call.x.dtype) &&
              (d.numel() == 1 || (d.ndim == 1 && d.numel() == call.shape.rows)),
          "cross_entropy_backward(): the losses' gradient must be one number, or one for each row");
  Tensor dx = EmptyLike(call.x);
  if (call.x.numel() == 0) return dx;
  CurrentStream stream(call.x.device);
  const auto& backward =
      Primitive<CrossEntropyBackward>(call.x.device.type, {.dtype = call.x.dtype});
  Check(backward.Launch(stream, call.shape, call.x.data, call.targets(), stats.data(), d.data,
                        StepOf(d), dx.data()));
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
    const TensorInfo s(*scale);
    Require(s.known && s.dtype == ComputeType(call.x.dtype) && s.numel() == 1,
            "cross_entropy(): scale must be one number of the logits' compute type");
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
  OptionalTensor copy;
  const DType compute = ComputeDType(dtype);
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
  Tensor value = Empty(nullptr, 0, result, loss.device);
  Tensor weight = Empty(nullptr, 0, ComputeType(result), loss.device);
  static constexpr int64_t kNoTarget = 0;  // where there are none, but a mean is asked for
  const int64_t* target = !targets            ? nullptr
                          : loss.numel() == 0 ? &kNoTarget
                                              : Dense(*targets, TensorInfo(*targets), &copy);
  CurrentStream stream(loss.device);
  const auto& reduce = Primitive<ReduceLoss>(loss.device.type, {.dtype = result});
  Check(reduce.Launch(stream, loss.numel(), ignore_index, loss.data, target, value.data(),
                      weight.data()));
  return {std::move(value), std::move(weight)};
}

void ScaleRowsOf(const Tensor& input, const Tensor& factor) {
  const TensorInfo x(input), f(factor);
  Require(x.is_floating() && x.ndim == 2 && IsContiguous(x) &&
              (f.numel() == 1 || f.numel() == x.sizes[0]) && f.known &&
              f.dtype == ComputeType(x.dtype),
          "scale_rows_(): input must be contiguous rows, factor one number or one for each row");
  if (x.numel() == 0) return;
  CurrentStream stream(x.device);
  const auto& scale = Primitive<ScaleRows>(x.device.type, {.dtype = x.dtype});
  Check(scale.Launch(stream, x.sizes[0], x.sizes[1], f.data, StepOf(f), x.data));
}

}  // namespace oneflow_lite::torch_ops
