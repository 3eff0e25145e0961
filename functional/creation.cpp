// SPDX-License-Identifier: Apache-2.0
#include "functional/creation.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "functional/argument_names.h"
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/in_place.h"
#include "functional/made_like.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// A new tensor, or why there is none: what it is asked for is its size.
StatusOr<Tensor> Leaf(StatusOr<Tensor> t, bool requires_grad) {
  if (!t.ok()) return WithArgument(t.status(), "shape", "size");
  if (requires_grad) OFL_RETURN_IF_ERROR(autograd::SetRequiresGrad(*t, true));
  return t;
}

StatusOr<Tensor> CallFull(const char* name, SizeList size, Scalar value, DType dtype,
                          std::optional<Device> device, bool requires_grad) {
  OFL_RETURN_IF_ERROR(CheckLeaf(name, dtype, requires_grad));
  static const OpExpr& op = OpBuilder("full")
                                .Output("out")
                                .Attr("shape")
                                .Attr("value")
                                .Attr("dtype")
                                .Attr("device")
                                .Get();
  for (int64_t d : size) {
    if (d < 0) return BadValue(name, "the size", ToString(size), "a list of non-negative dims");
  }
  OFL_RETURN_IF_ERROR(CheckFits(name, value, dtype));
  return Leaf(
      Call(op, {}, {Dims(size.begin(), size.end()), value, dtype, device.value_or(Device{})}),
      requires_grad);
}

// OverflowError where the first or the last of an integer sequence does not fit. Start and step
// count without their fractions.
Status CheckSequence(const Scalar& start, const Scalar& step, int64_t count, DType dtype) {
  if (!IsIntegral(dtype) || count == 0) return OkStatus();
  OFL_RETURN_IF_ERROR(CheckFits("arange", start, dtype));
  OFL_RETURN_IF_ERROR(CheckFits("arange", step, DType::kInt64));
  const __int128 way = static_cast<__int128>(step.to<int64_t>()) * (count - 1);
  const __int128 last = start.to<int64_t>() + way;
  const auto narrow = static_cast<int64_t>(last);
  return CheckFits("arange",
                   narrow == last ? Scalar(narrow) : Scalar::LargeInt(static_cast<double>(last)),
                   dtype);
}

// What linspace and logspace make: of an integer dtype without the fractions of the ends.
struct Spaced {
  double ends[2];
  int64_t steps;
  DType dtype;
  Device device;
};
// OverflowError where end(number), of each end that is in the result, does not fit the dtype.
template <class End>
StatusOr<Spaced> SpacedBetween(const char* name, std::array<Scalar, 2> ends, int64_t steps,
                               std::optional<DType> dtype, std::optional<Device> device,
                               bool requires_grad, End end) {
  if (steps < 0) {
    return Error(ErrorKind::kValue, name, "(): steps is ", steps, ", but it must not be negative");
  }
  const DType kind = dtype.value_or(DType::kFloat32);
  OFL_RETURN_IF_ERROR(CheckLeaf(name, kind, requires_grad));
  for (int64_t k = 0; k < 2; ++k) {
    if (ends[k].kind() == Scalar::Kind::kLargeInt && !std::isfinite(ends[k].to<double>())) {
      return NumberOutOfRange(name, ends[k], DType::kFloat64);
    }
    if (IsFloating(kind)) continue;
    if (ends[k].kind() == Scalar::Kind::kFloat) ends[k] = std::trunc(ends[k].to<double>());
    if (k < steps) OFL_RETURN_IF_ERROR(CheckFits(name, end(ends[k]), kind));
  }
  return Spaced{
      {ends[0].to<double>(), ends[1].to<double>()}, steps, kind, device.value_or(Device{})};
}
StatusOr<Tensor> CallLinspace(const Spaced& s) {
  static const OpExpr& op = OpBuilder("linspace")
                                .Output("out")
                                .Attr("count")
                                .Attr("start")
                                .Attr("end")
                                .Attr("dtype")
                                .Attr("device")
                                .Get();
  return Call(op, {}, {s.steps, s.ends[0], s.ends[1], s.dtype, s.device});
}

}  // namespace

Status CheckLeaf(const char* name, DType dtype, bool requires_grad) {
  if (!requires_grad || IsFloating(dtype) || !IsDType(dtype)) return OkStatus();
  return Error(ErrorKind::kRuntime, name,
               "(): only floating tensors can require grad, but the dtype is ", Name(dtype));
}

StatusOr<Tensor> Empty(SizeList size, std::optional<DType> dtype, std::optional<Device> device,
                       bool requires_grad) {
  OFL_RETURN_IF_ERROR(CheckLeaf("empty", dtype.value_or(DType::kFloat32), requires_grad));
  // A byte other than 0 and 1 is no bool, and kernels may not meet one.
  if (dtype == DType::kBool || GlobalScope::Current()) {
    return CallFull("empty", size, Scalar(false), dtype.value_or(DType::kFloat32), device,
                    requires_grad);
  }
  return Leaf(
      Tensor::Empty(Shape(size), dtype.value_or(DType::kFloat32), device.value_or(Device{})),
      requires_grad);
}

StatusOr<Tensor> Zeros(SizeList size, std::optional<DType> dtype, std::optional<Device> device,
                       bool requires_grad) {
  return CallFull("zeros", size, Scalar(0), dtype.value_or(DType::kFloat32), device, requires_grad);
}

StatusOr<Tensor> Ones(SizeList size, std::optional<DType> dtype, std::optional<Device> device,
                      bool requires_grad) {
  return CallFull("ones", size, Scalar(1), dtype.value_or(DType::kFloat32), device, requires_grad);
}

StatusOr<Tensor> Full(SizeList size, Scalar value, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad) {
  return CallFull("full", size, value, dtype.value_or(value.default_dtype()), device,
                  requires_grad);
}

StatusOr<Tensor> Arange(Scalar start, std::optional<Scalar> end, std::optional<Scalar> step,
                        std::optional<DType> dtype, std::optional<Device> device,
                        bool requires_grad) {
  static const OpExpr& op = OpBuilder("arange")
                                .Output("out")
                                .Attr("count")
                                .Attr("start")
                                .Attr("step")
                                .Attr("dtype")
                                .Attr("device")
                                .Get();
  const Scalar first = end ? start : Scalar(0), last = end ? *end : start;
  const Scalar by = step.value_or(Scalar(1));
  bool floating = false;
  for (const Scalar& s : {first, last, by}) {
    if (s.kind() == Scalar::Kind::kLargeInt) return NumberOutOfRange("arange", s, DType::kInt64);
    floating |= s.is_float();
  }
  const double from = first.to<double>(), to = last.to<double>(), stride = by.to<double>();
  if (!std::isfinite(from) || !std::isfinite(to) || !std::isfinite(stride) || stride == 0) {
    return Error(ErrorKind::kValue, "arange(): start ", from, ", end ", to, " and step ", stride,
                 " must be finite, and the step not 0");
  }
  if ((stride > 0) != (to >= from) && to != from) {
    return Error(ErrorKind::kValue, "arange(): from ", from, " no step of ", stride, " leads to ",
                 to);
  }
  // Integers are counted exactly: a double would lose the last ones beyond 2^53.
  double count = std::ceil((to - from) / stride);
  if (!floating) {
    const __int128 span = static_cast<__int128>(last.to<int64_t>()) - first.to<int64_t>();
    const __int128 s = by.to<int64_t>();
    count = static_cast<double>((span + s - (s > 0 ? 1 : -1)) / s);
  }
  if (count > 1e15) return BadValue("arange", "the count", absl::StrCat(count), "at most 1e15");
  const DType kind = dtype.value_or(floating ? DType::kFloat32 : DType::kInt64);
  OFL_RETURN_IF_ERROR(CheckLeaf("arange", kind, requires_grad));
  OFL_RETURN_IF_ERROR(CheckSequence(first, by, static_cast<int64_t>(count), kind));
  return Leaf(
      Call(op, {}, {static_cast<int64_t>(count), first, by, kind, device.value_or(Device{})}),
      requires_grad);
}

StatusOr<Tensor> Linspace(Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype,
                          std::optional<Device> device, bool requires_grad) {
  const auto itself = [](const Scalar& end) { return end; };
  OFL_ASSIGN_OR_RETURN(const Spaced s, SpacedBetween("linspace", {start, end}, steps, dtype, device,
                                                     requires_grad, itself));
  return Leaf(CallLinspace(s), requires_grad);
}

StatusOr<Tensor> Logspace(Scalar start, Scalar end, int64_t steps, double base,
                          std::optional<DType> dtype, std::optional<Device> device,
                          bool requires_grad) {
  const auto power = [&](const Scalar& end) {
    return Scalar(std::trunc(std::pow(base, end.to<double>())));
  };
  OFL_ASSIGN_OR_RETURN(Spaced s, SpacedBetween("logspace", {start, end}, steps, dtype, device,
                                               requires_grad, power));
  const DType kind = std::exchange(s.dtype, DType::kFloat64);
  // e^(x log(base)) is off in the last bits of float64, which the other floats have not.
  const bool rounds = IsFloating(kind) && kind != DType::kFloat64;
  const double scale = rounds && base > 0 ? std::log(base) : HUGE_VAL;
  const double low = s.ends[0] * scale, high = s.ends[1] * scale;
  const bool scaled = std::isfinite(scale) && std::isfinite(low) && std::isfinite(high);
  if (scaled) s.ends[0] = low, s.ends[1] = high;
  OFL_ASSIGN_OR_RETURN(Tensor powers, CallLinspace(s));
  OFL_ASSIGN_OR_RETURN(powers, scaled ? ExpInto(powers) : Pow(Scalar(base), powers));
  return Leaf(Cast(powers, kind), requires_grad);
}

StatusOr<Tensor> FillInto(const Tensor& self, const Operand& value) {
  static const OpExpr& op = OpBuilder("fill_").Input("self").Output("out").Attr("value").Get();
  if (const Scalar* number = std::get_if<Scalar>(&value)) {
    OFL_RETURN_IF_ERROR(CheckFits("fill_", *number, self.dtype()));
    return Call(op, {self}, {*number});
  }
  const Tensor& t = std::get<Tensor>(value);
  if (t.ndim() == 0) return CopyInto(self, t);
  return Error(ErrorKind::kShape, "fill_(): value has shape ", t.shape().ToString(),
               ", but must have 0 dims");
}

StatusOr<Tensor> ZeroInto(const Tensor& self) { return FillInto(self, Scalar(0)); }

StatusOr<Tensor> Fill(const Tensor& x, const Operand& value) {
  if (!x.defined()) return NotDefined("fill", "input");
  OFL_ASSIGN_OR_RETURN(const Tensor y, Empty(x.shape(), x.dtype(), x.device()));
  StatusOr<Tensor> filled = FillInto(y, value);
  return filled.ok() ? filled : Renamed("fill", filled.status());
}

StatusOr<Tensor> EmptyLike(const Tensor& x, std::optional<DType> dtype,
                           std::optional<Device> device, bool requires_grad) {
  if (!x.defined()) return NotDefined("empty_like", "input");
  return MadeLike(x, [&] {
    return Empty(x.shape(), dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
  });
}
StatusOr<Tensor> ZerosLike(const Tensor& x, std::optional<DType> dtype,
                           std::optional<Device> device, bool requires_grad) {
  if (!x.defined()) return NotDefined("zeros_like", "input");
  return MadeLike(x, [&] {
    return Zeros(x.shape(), dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
  });
}
StatusOr<Tensor> OnesLike(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
                          bool requires_grad) {
  if (!x.defined()) return NotDefined("ones_like", "input");
  return MadeLike(x, [&] {
    return Ones(x.shape(), dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
  });
}
StatusOr<Tensor> FullLike(const Tensor& x, Scalar value, std::optional<DType> dtype,
                          std::optional<Device> device, bool requires_grad) {
  if (!x.defined()) return NotDefined("full_like", "input");
  return MadeLike(x, [&] {
    return Full(x.shape(), value, dtype.value_or(x.dtype()), device.value_or(x.device()),
                requires_grad);
  });
}

namespace {

StatusOr<Tensor> ArangeTo(Scalar end, std::optional<DType> dtype, std::optional<Device> device,
                          bool requires_grad) {
  return Arange(end, {}, {}, dtype, device, requires_grad);
}

}  // namespace

#define OFL_OPTIONS "dtype? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor"
OFL_REGISTER_FUNCTION("empty(int[] size, *, " OFL_OPTIONS, Empty, kFunction,
                      "Uninitialised memory.");
OFL_REGISTER_FUNCTION("zeros(int[] size, *, " OFL_OPTIONS, Zeros, kFunction, "A tensor of zeros.");
OFL_REGISTER_FUNCTION("ones(int[] size, *, " OFL_OPTIONS, Ones, kFunction, "A tensor of ones.");
OFL_REGISTER_FUNCTION("full(int[] size, Scalar fill_value, *, " OFL_OPTIONS, Full, kFunction,
                      "A tensor filled with a number.");
OFL_REGISTER_FUNCTION("arange(Scalar start, Scalar? end=None, Scalar? step=None, *, " OFL_OPTIONS,
                      Arange, kFunction,
                      "start, start + step, ... before end; from 0 where one "
                      "number is given.");
OFL_REGISTER_ADAPTER("arange.end(*, Scalar end, " OFL_OPTIONS, ArangeTo, Arange, kFunction, "");
OFL_REGISTER_FUNCTION("linspace(Scalar start, Scalar end, int steps, *, " OFL_OPTIONS, Linspace,
                      kFunction,
                      "``steps`` numbers from ``start`` to ``end``, both included, equally far "
                      "apart. For an integer dtype the ends lose their fractions first, and each "
                      "number its own; OverflowError where an end does not fit.");
OFL_REGISTER_FUNCTION(
    "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, " OFL_OPTIONS, Logspace,
    kFunction,
    "``steps`` powers of ``base``, with exponents from ``start`` to ``end`` "
    "equally far apart. For an integer dtype the ends lose their fractions "
    "first, and each power its own; OverflowError where the power at an end "
    "does not fit.");
OFL_REGISTER_FUNCTION("empty_like(Tensor input, *, " OFL_OPTIONS, EmptyLike, kFunction,
                      "Uninitialised memory of input's shape, dtype and device.");
OFL_REGISTER_FUNCTION("zeros_like(Tensor input, *, " OFL_OPTIONS, ZerosLike, kFunction,
                      "Zeros of input's shape, dtype and device.");
OFL_REGISTER_FUNCTION("ones_like(Tensor input, *, " OFL_OPTIONS, OnesLike, kFunction,
                      "Ones of input's shape, dtype and device.");
OFL_REGISTER_FUNCTION("full_like(Tensor input, Scalar fill_value, *, " OFL_OPTIONS, FullLike,
                      kFunction, "A number in input's shape, dtype and device.");
#undef OFL_OPTIONS
OFL_REGISTER_FUNCTION("fill(Tensor input, Operand value) -> Tensor", Fill, kFunction,
                      "A number, or a tensor of 0 dims, in the input's shape and dtype.");
OFL_REGISTER_FUNCTION("fill_(Tensor(a!) self, Operand value) -> Tensor", FillInto, kMethodOnly,
                      "Overwrites every element with a number, or with a tensor of 0 dims.");
OFL_REGISTER_FUNCTION("zero_(Tensor(a!) self) -> Tensor", ZeroInto, kMethodOnly,
                      "Overwrites every element with zero.");

}  // namespace oneflow_lite::functional
