// SPDX-License-Identifier: Apache-2.0
//
// The ops that draw random numbers: new tensors of them, or in place. They are given the place in
// their generator's sequence as attributes, so that the op itself is a function.
#include "functional/random.h"

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

void AddPlace(OpDef& op) { op.Attr("seed", AttrType::kInt).Attr("offset", AttrType::kInt); }

Status CheckSize(const InferContext& c, const Dims& shape) {
  bool valid = shape.size() <= 16;
  for (int64_t d : shape) valid = valid && d >= 0;
  if (valid) return OkStatus();
  return BadValue(c.op(), "the size", ToString(shape), "a list of at most 16 non-negative dims");
}

enum class New { kReals, kBits, kOrder };

template <New kNew>
void DefineNew(OpDef& op) {
  op.Output("out").Attr("shape", AttrType::kInts).Attr("dtype", AttrType::kDType);
  op.Attr("device", AttrType::kDevice, Device{});
  AddPlace(op);
  op.doc = kNew == New::kBits    ? "32-bit integers of a Philox sequence."
           : kNew == New::kReals ? "Random numbers of a Philox sequence."
                                 : "The places of uniform numbers of float64 in their order.";
  op.random = true;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSize(c, c.attr<Dims>(0)));
    const DType dtype = c.attr<DType>(1);
    constexpr bool kWhole = kNew != New::kReals;
    if (kWhole ? dtype != DType::kInt64 : !IsFloating(dtype)) {
      return UnsupportedDType(c.op(), "the result", dtype, kWhole ? "int64" : kFloatingDTypes);
    }
    if (kNew == New::kOrder && c.attr<Dims>(0).size() != 1) {
      return BadValue(c.op(), "the size", ToString(c.attr<Dims>(0)), "one dim");
    }
    c.SetOutput(0, Shape(c.attr<Dims>(0)), dtype);
    return OkStatus();
  };
}

// In place; `check` looks at the attributes in front of the place.
template <bool kOfFloats, Status (*check)(const InferContext&)>
void DefineInto(OpDef& op, const char* doc) {
  AddPlace(op);
  op.doc = doc;
  op.random = true;
  op.infer = [](InferContext& c) -> Status {
    if (kOfFloats && !IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "self", c.dtype(0), kFloatingDTypes);
    }
    OFL_RETURN_IF_ERROR(check(c));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(0).numel());
    return Cost{.bytes = n * SizeOf(c.dtype(0)), .flops = 20 * n};
  };
  op.cost_text = "self is written once; some 20 operations per element";
  op.backward = [](GradContext&) -> Status { return OkStatus(); };  // nothing of self remains
}

OpDef& Self(OpDef& op) { return op.Input("self", InputDef::Kind::kMutated).Output("out"); }

Status CheckUniform(const InferContext& c) {
  const double a = c.attr<double>(0), b = c.attr<double>(1);
  if (a <= b && b - a <= 1.7976931348623157e308) return OkStatus();
  return Error(ErrorKind::kValue, c.op(), "(): there are no numbers from a = ", a, " to b = ", b);
}
Status CheckNormal(const InferContext& c) {
  const double std = c.attr<double>(1);
  if (std >= 0) return OkStatus();
  return Error(ErrorKind::kValue, c.op(), "(): std is ", std, ", but it must not be negative");
}
Status CheckExponential(const InferContext& c) {
  const double lambd = c.attr<double>(0);
  if (lambd > 0) return OkStatus();
  return Error(ErrorKind::kValue, c.op(), "(): lambd is ", lambd, ", but it must be positive");
}
Status CheckIntegers(const InferContext& c) {
  const int64_t low = c.attr<int64_t>(0), count = c.attr<int64_t>(1);
  if (count < 1 || count > int64_t{1} << 32 || low > INT64_MAX - (count - 1)) {
    return BadValue(c.op(), "count", absl::StrCat(count), "in [1, 2^32]");
  }
  if (c.dtype(0) == DType::kBool) return OkStatus();
  OFL_RETURN_IF_ERROR(CheckFits(c.op(), Scalar(low), c.dtype(0)));
  return CheckFits(c.op(), Scalar(low + (count - 1)), c.dtype(0));
}
Status CheckChance(const InferContext& c) {
  const double p = c.attr<double>(0);
  if (p >= 0 && p <= 1) return OkStatus();
  return Error(ErrorKind::kValue, c.op(), "(): p is ", p, ", but it must be in [0, 1]");
}

void DefineUniform(OpDef& op) {
  Self(op).Attr("a", AttrType::kFloat, 0.0).Attr("b", AttrType::kFloat, 1.0);
  DefineInto<true, CheckUniform>(op, "Overwrites with uniform random numbers from [a, b).");
}
void DefineNormal(OpDef& op) {
  Self(op).Attr("mean", AttrType::kFloat, 0.0).Attr("std", AttrType::kFloat, 1.0);
  DefineInto<true, CheckNormal>(op, "Overwrites with normal random numbers.");
}
void DefineExponential(OpDef& op) {
  Self(op).Attr("lambd", AttrType::kFloat, 1.0);
  DefineInto<true, CheckExponential>(
      op, "Overwrites with random numbers of the density lambd exp(-lambd x), none of them 0.");
}
void DefineIntegers(OpDef& op) {
  Self(op).Attr("low", AttrType::kInt).Attr("count", AttrType::kInt);
  DefineInto<false, CheckIntegers>(op, "Overwrites with integers from low to low + count - 1.");
}
void DefineBernoulli(OpDef& op) {
  Self(op).Attr("p", AttrType::kFloat, 0.5);
  DefineInto<false, CheckChance>(op, "Overwrites with 1 with probability p, else 0.");
}

OFL_REGISTER_OP("rand", DefineNew<New::kReals>);
OFL_REGISTER_OP("randn", DefineNew<New::kReals>);
OFL_REGISTER_OP("random_bits", DefineNew<New::kBits>);
OFL_REGISTER_OP("randperm", DefineNew<New::kOrder>);
OFL_REGISTER_OP("uniform_", DefineUniform);
OFL_REGISTER_OP("normal_", DefineNormal);
OFL_REGISTER_OP("exponential_", DefineExponential);
OFL_REGISTER_OP("random_", DefineIntegers);
OFL_REGISTER_OP("bernoulli_", DefineBernoulli);

}  // namespace
}  // namespace oneflow_lite
