// SPDX-License-Identifier: Apache-2.0
#include "functional/random.h"

#include <algorithm>
#include <limits>

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/host_value.h"
#include "functional/made_like.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/sort.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/stream.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

StatusOr<Tensor> Leaf(StatusOr<Tensor> t, bool requires_grad) {
  if (t.ok() && requires_grad) OFL_RETURN_IF_ERROR(autograd::SetRequiresGrad(*t, true));
  return t;
}

Status CheckNotCaptured(Device device) {
  if (!MayBeCaptured(device)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  if (!stream->capturing()) return OkStatus();
  return Error(
      ErrorKind::kRuntime,
      "random numbers: a generator that is not the device's default one cannot be captured "
      "in a graph, whose replays would repeat its numbers; leave `generator` out");
}

// One Philox counter serves four elements, two where they are real and of float64.
int64_t PerCounter(DType dtype) { return dtype == DType::kFloat64 ? 2 : 4; }

StatusOr<Tensor> CallNew(const OpExpr& op, SizeList size, Ref<Generator> generator, DType dtype,
                         Device device, bool requires_grad) {
  OFL_ASSIGN_OR_RETURN(const DrawnPlace at, TakeNumbers(std::move(generator), device,
                                                        CheckedNumel(size), PerCounter(dtype)));
  return Leaf(Call(op, {}, {Dims(size.begin(), size.end()), dtype, device, at.seed, at.offset}),
              requires_grad);
}

const OpExpr& NewOp(const char* name) {
  return OpBuilder(name)
      .Output("out")
      .Attr("shape")
      .Attr("dtype")
      .Attr("device")
      .Attr("seed")
      .Attr("offset")
      .Get();
}
const OpExpr& IntoOp(const char* name, std::initializer_list<const char*> attrs) {
  OpBuilder builder(name);
  builder.Input("self").Output("out");
  for (const char* attr : attrs) builder.Attr(attr);
  return builder.Attr("seed").Attr("offset").Get();
}

// The op on self, with its own attributes in front of the place.
StatusOr<Tensor> CallInto(const OpExpr& op, const Tensor& self, Attrs attrs, int64_t per_counter,
                          Ref<Generator> generator) {
  if (!self.defined()) return NotDefined(op.def().name, "self");
  OFL_ASSIGN_OR_RETURN(const DrawnPlace at,
                       TakeNumbers(std::move(generator), self.device(), self.numel(), per_counter));
  attrs.push_back(at.seed);
  attrs.push_back(at.offset);
  return Call(op, {self}, attrs);
}

// How many integers there are from low on and below high: at most 2^64 - 1.
StatusOr<uint64_t> CountOf(const char* name, int64_t low, int64_t high) {
  if (high <= low) {
    return Error(ErrorKind::kValue, name, "(): there is no integer from ", low, " on and below ",
                 high);
  }
  return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
}

// How many integers from 0 on a dtype has without a gap.
int64_t CountFrom0(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 2;
    case DType::kUInt8:
      return 1 << 8;
    case DType::kInt8:
      return 1 << 7;
    case DType::kInt16:
      return 1 << 15;
    case DType::kInt32:
      return int64_t{1} << 31;
    case DType::kInt64:
      return std::numeric_limits<int64_t>::max();
    case DType::kFloat16:
      return (1 << 11) + 1;
    case DType::kBFloat16:
      return (1 << 8) + 1;
    case DType::kFloat32:
      return (1 << 24) + 1;
    case DType::kFloat64:
      return (int64_t{1} << 53) + 1;
  }
  return 0;
}

// Below what random_() draws where no end is given: of at most 31 bits.
int64_t LimitOf(DType dtype) {
  const int64_t count = CountFrom0(dtype) - (IsFloating(dtype) ? 1 : 0);
  return std::min(count, int64_t{1} << 31);
}

// More integers than a word tells apart: remainders of 63 bits, so that one comes at most
// (high - low) / 2^63 more often than another.
StatusOr<Tensor> WideIntegers(const Tensor& like, int64_t low, int64_t high,
                              Ref<Generator> generator) {
  Dims pair{2};
  pair.insert(pair.end(), like.shape().begin(), like.shape().end());
  OFL_ASSIGN_OR_RETURN(const Tensor words, RandomBits(pair, std::move(generator), like.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor upper, Select(words, 0, 0));
  OFL_ASSIGN_OR_RETURN(const Tensor lower, Select(words, 0, 1));
  OFL_ASSIGN_OR_RETURN(Tensor y, BitwiseLeftShift(upper, Scalar(int64_t{32})));
  OFL_ASSIGN_OR_RETURN(y, BitwiseOr(y, lower));
  const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const int64_t wrapped = static_cast<int64_t>(count);
  if (wrapped > 0) {
    OFL_ASSIGN_OR_RETURN(y, BitwiseAnd(y, Scalar(int64_t{INT64_MAX})));
    OFL_ASSIGN_OR_RETURN(y, Remainder(y, Scalar(wrapped)));
    return Add(y, Scalar(low));
  }
  // More than half of all int64: the others of 64 bits are moved in, which then come twice.
  OFL_ASSIGN_OR_RETURN(const Tensor below, Lt(y, Scalar(low)));
  OFL_ASSIGN_OR_RETURN(const Tensor above, Ge(y, Scalar(high)));
  OFL_ASSIGN_OR_RETURN(const Tensor outside, BitwiseOr(below, above));
  OFL_ASSIGN_OR_RETURN(const Tensor round, Sub(y, Scalar(wrapped)));
  return Where(outside, round, y);
}

StatusOr<Tensor> IntegersInto(const char* name, const Tensor& self, int64_t low, int64_t high,
                              Ref<Generator> generator) {
  static const OpExpr& op = IntoOp("random_", {"low", "count"});
  OFL_ASSIGN_OR_RETURN(const uint64_t count, CountOf(name, low, high));
  if (count <= uint64_t{1} << 32) {
    return CallInto(op, self, {low, static_cast<int64_t>(count)}, 4, std::move(generator));
  }
  if (self.dtype() != DType::kBool) {
    OFL_RETURN_IF_ERROR(CheckFits(name, Scalar(low), self.dtype()));
    OFL_RETURN_IF_ERROR(CheckFits(name, Scalar(high - 1), self.dtype()));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor y, WideIntegers(self, low, high, std::move(generator)));
  return CopyInto(self, y);
}

}  // namespace

StatusOr<DrawnPlace> TakeNumbers(Ref<Generator> generator, Device device, int64_t n,
                                 int64_t per_counter) {
  if (per_counter < 1)
    return BadValue("random", "per_counter", absl::StrCat(per_counter), "positive");
  const Ref<Generator> own = DefaultGenerator(device);
  if (!generator) generator = own;
  if (generator != own) OFL_RETURN_IF_ERROR(CheckNotCaptured(device));
  const Generator::State s =
      generator->Take(n > 0 ? static_cast<uint64_t>((n + per_counter - 1) / per_counter) : 0);
  return DrawnPlace{static_cast<int64_t>(s.seed), static_cast<int64_t>(s.offset)};
}

StatusOr<Tensor> Rand(SizeList size, Ref<Generator> generator, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad) {
  static const OpExpr& op = NewOp("rand");
  return CallNew(op, size, std::move(generator), dtype.value_or(DType::kFloat32),
                 device.value_or(Device{}), requires_grad);
}
StatusOr<Tensor> Randn(SizeList size, Ref<Generator> generator, std::optional<DType> dtype,
                       std::optional<Device> device, bool requires_grad) {
  static const OpExpr& op = NewOp("randn");
  return CallNew(op, size, std::move(generator), dtype.value_or(DType::kFloat32),
                 device.value_or(Device{}), requires_grad);
}
StatusOr<Tensor> RandomBits(SizeList size, Ref<Generator> generator, std::optional<Device> device) {
  static const OpExpr& op = NewOp("random_bits");
  return CallNew(op, size, std::move(generator), DType::kInt64, device.value_or(Device{}), false);
}

StatusOr<Tensor> UniformInto(const Tensor& self, double a, double b, Ref<Generator> generator) {
  static const OpExpr& op = IntoOp("uniform_", {"a", "b"});
  return CallInto(op, self, {a, b}, PerCounter(self.dtype()), std::move(generator));
}
StatusOr<Tensor> NormalInto(const Tensor& self, double mean, double std, Ref<Generator> generator) {
  static const OpExpr& op = IntoOp("normal_", {"mean", "std"});
  return CallInto(op, self, {mean, std}, PerCounter(self.dtype()), std::move(generator));
}
StatusOr<Tensor> ExponentialInto(const Tensor& self, double lambd, Ref<Generator> generator) {
  static const OpExpr& op = IntoOp("exponential_", {"lambd"});
  return CallInto(op, self, {lambd}, PerCounter(self.dtype()), std::move(generator));
}
StatusOr<Tensor> RandomInto(const Tensor& self, std::optional<int64_t> low,
                            std::optional<int64_t> high, Ref<Generator> generator) {
  if (!self.defined()) return NotDefined("random_", "self");
  const int64_t first = high ? low.value_or(0) : 0;
  const int64_t end = high ? *high : low.value_or(LimitOf(self.dtype()));
  return IntegersInto("random_", self, first, end, std::move(generator));
}
StatusOr<Tensor> BernoulliInto(const Tensor& self, double p, Ref<Generator> generator) {
  static const OpExpr& op = IntoOp("bernoulli_", {"p"});
  return CallInto(op, self, {p}, 4, std::move(generator));
}

namespace {

// ValueError for elements that are no probabilities, where reading them waits for nothing.
// Elsewhere they draw 0 below 0 and for NaN, and 1 above 1.
Status CheckChances(const char* name, const char* argument, const Tensor& p) {
  if (p.numel() == 0 || !ReadsAtOnce(p)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(const TensorList ends, AMinMax(p.Detach()));
  OFL_ASSIGN_OR_RETURN(const auto least, ValueOf<double>(name, ends[0]));
  OFL_ASSIGN_OR_RETURN(const auto most, ValueOf<double>(name, ends[1]));
  if (least >= 0 && most <= 1) return OkStatus();
  return Error(ErrorKind::kValue, name, "(): ", argument, " has elements from ", least, " to ",
               most, ", but they must be in [0, 1]");
}

// Float32 numbers as those that p, a tensor, is compared with.
StatusOr<Tensor> Draws(const Tensor& p, const Shape& shape, Ref<Generator> generator) {
  OFL_ASSIGN_OR_RETURN(const Tensor drawn, Rand(shape, std::move(generator), {}, p.device()));
  return Lt(drawn, p.Detach());
}

}  // namespace

StatusOr<Tensor> BernoulliInto(const Tensor& self, const Tensor& p, Ref<Generator> generator) {
  if (!self.defined()) return NotDefined("bernoulli_", "self");
  if (!p.defined()) return NotDefined("bernoulli_", "p");
  if (self.numel() > 0) OFL_RETURN_IF_ERROR(CheckChances("bernoulli_", "p", p));
  OFL_ASSIGN_OR_RETURN(const Tensor truth, Draws(p, self.shape(), std::move(generator)));
  return CopyInto(self, truth);
}

StatusOr<Tensor> Bernoulli(const Tensor& x, std::optional<double> p, Ref<Generator> generator) {
  if (!x.defined()) return NotDefined("bernoulli", "input");
  if (p) {
    OFL_ASSIGN_OR_RETURN(const Tensor y, Empty(x.shape(), x.dtype(), x.device()));
    return BernoulliInto(y, *p, std::move(generator));
  }
  OFL_RETURN_IF_ERROR(CheckChances("bernoulli", "input", x));
  OFL_ASSIGN_OR_RETURN(const Tensor truth, Draws(x, x.shape(), std::move(generator)));
  return Cast(truth, x.dtype());
}

StatusOr<Tensor> RandInt(int64_t low, int64_t high, SizeList size, Ref<Generator> generator,
                         std::optional<DType> dtype, std::optional<Device> device,
                         bool requires_grad) {
  OFL_RETURN_IF_ERROR(CheckLeaf("randint", dtype.value_or(DType::kInt64), requires_grad));
  OFL_RETURN_IF_ERROR(CountOf("randint", low, high).status());
  for (int64_t d : size) {
    if (d < 0) {
      return BadValue("randint", "the size", ToString(size), "a list of non-negative dims");
    }
  }
  OFL_ASSIGN_OR_RETURN(const Tensor y, Empty(size, dtype.value_or(DType::kInt64), device));
  return Leaf(IntegersInto("randint", y, low, high, std::move(generator)), requires_grad);
}

StatusOr<Tensor> RandPerm(int64_t n, Ref<Generator> generator, std::optional<DType> dtype,
                          std::optional<Device> device, bool requires_grad) {
  if (n < 0) {
    return Error(ErrorKind::kValue, "randperm(): n is ", n, ", but it must not be negative");
  }
  if (dtype && n > CountFrom0(*dtype)) {
    return Error(ErrorKind::kValue, "randperm(): n is ", n, ", but ", Name(*dtype),
                 " has only the ", CountFrom0(*dtype), " integers from 0 on without a gap");
  }
  OFL_RETURN_IF_ERROR(CheckLeaf("randperm", dtype.value_or(DType::kInt64), requires_grad));
  constexpr int64_t kMostOfOne = int64_t{1} << 32;  // the op's limit
  const Device where = device.value_or(Device{});
  static const KernelSet kernels("randperm");
  if (kernels.Has(where.type, DType::kInt64) && n <= kMostOfOne && !GlobalScope::Current()) {
    static const OpExpr& op = NewOp("randperm");
    OFL_ASSIGN_OR_RETURN(const DrawnPlace at,
                         TakeNumbers(std::move(generator), where, n, PerCounter(DType::kFloat64)));
    OFL_ASSIGN_OR_RETURN(const Tensor order,
                         Call(op, {}, {Dims{n}, DType::kInt64, where, at.seed, at.offset}));
    return Leaf(To(order, {}, dtype), requires_grad);
  }
  // Of 53 bits, so that two are alike once in 2^53 / n^2.
  OFL_ASSIGN_OR_RETURN(const Tensor keys, Rand({n}, std::move(generator), DType::kFloat64, device));
  OFL_ASSIGN_OR_RETURN(const Tensor order, ArgSort(keys, 0, false));
  return Leaf(To(order, {}, dtype), requires_grad);
}

namespace {

StatusOr<Tensor> RandIntBelow(int64_t high, SizeList size, Ref<Generator> generator,
                              std::optional<DType> dtype, std::optional<Device> device,
                              bool requires_grad) {
  return RandInt(0, high, size, std::move(generator), dtype, device, requires_grad);
}

}  // namespace

StatusOr<Tensor> RandIntLike(const Tensor& x, std::optional<int64_t> low,
                             std::optional<int64_t> high, Ref<Generator> generator,
                             std::optional<DType> dtype, std::optional<Device> device,
                             bool requires_grad) {
  if (!x.defined()) return NotDefined("randint_like", "input");
  if (!low && !high) {
    return Error(ErrorKind::kType, "randint_like() takes high, or low and high");
  }
  return MadeLike(x, [&] {
    return RandInt(high ? low.value_or(0) : 0, high ? *high : *low, x.shape(), std::move(generator),
                   dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
  });
}

StatusOr<Tensor> RandLike(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
                          bool requires_grad) {
  if (!x.defined()) return NotDefined("rand_like", "input");
  return MadeLike(x, [&] {
    return Rand(x.shape(), {}, dtype.value_or(x.dtype()), device.value_or(x.device()),
                requires_grad);
  });
}
StatusOr<Tensor> RandnLike(const Tensor& x, std::optional<DType> dtype,
                           std::optional<Device> device, bool requires_grad) {
  if (!x.defined()) return NotDefined("randn_like", "input");
  return MadeLike(x, [&] {
    return Randn(x.shape(), {}, dtype.value_or(x.dtype()), device.value_or(x.device()),
                 requires_grad);
  });
}

#define OFL_OPTIONS "dtype? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor"
OFL_REGISTER_FUNCTION("rand(int[] size, *, Generator? generator=None, " OFL_OPTIONS, Rand,
                      kFunction, "Uniform random numbers in [0, 1).");
OFL_REGISTER_FUNCTION("randn(int[] size, *, Generator? generator=None, " OFL_OPTIONS, Randn,
                      kFunction, "Normal random numbers with mean 0 and variance 1.");
OFL_REGISTER_FUNCTION(
    "random_bits(int[] size, *, Generator? generator=None, Device? device=None) -> Tensor",
    RandomBits, kFunction, "The generator's 32-bit integers as int64, the same on every device.");
OFL_REGISTER_FUNCTION("rand_like(Tensor input, *, " OFL_OPTIONS, RandLike, kFunction,
                      "Uniform random numbers of input's shape, dtype and device.");
OFL_REGISTER_FUNCTION("randn_like(Tensor input, *, " OFL_OPTIONS, RandnLike, kFunction,
                      "Normal random numbers of input's shape, dtype and device.");
OFL_REGISTER_FUNCTION(
    "randint(int low, int high, int[] size, *, Generator? generator=None, " OFL_OPTIONS, RandInt,
    kFunction,
    "Uniform integers: randint(high, size) from 0 on, randint(low, high, size). high is not among\n"
    "them; the dtype is int64 where absent. The same on every device.");
OFL_REGISTER_ADAPTER(
    "randint.high(int high, int[] size, *, Generator? generator=None, " OFL_OPTIONS, RandIntBelow,
    RandInt, kFunction, "");
OFL_REGISTER_FUNCTION(
    "randint_like(Tensor input, int? low=None, int? high=None, *, Generator? "
    "generator=None, " OFL_OPTIONS,
    RandIntLike, kFunction,
    "Uniform integers in the shape, dtype and device of a tensor: randint_like(input, high) or\n"
    "randint_like(input, low, high); see randint.");
OFL_REGISTER_FUNCTION("randperm(int n, *, Generator? generator=None, " OFL_OPTIONS, RandPerm,
                      kFunction, "The integers below n in random order; int64 without a dtype.");
#undef OFL_OPTIONS
OFL_REGISTER_FUNCTION(
    "uniform_(Tensor(a!) self, float a=0, float b=1, *, Generator? generator=None) -> Tensor",
    UniformInto, kMethodOnly, "Overwrites with uniform random numbers from [a, b).");
OFL_REGISTER_FUNCTION(
    "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor",
    NormalInto, kMethodOnly, "Overwrites with normal random numbers.");
OFL_REGISTER_FUNCTION(
    "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor",
    ExponentialInto, kMethodOnly,
    "Overwrites with random numbers of the density lambd exp(-lambd x), none of them 0.");
OFL_REGISTER_FUNCTION(
    "random_(Tensor(a!) self, int? low=None, int? high=None, *, Generator? generator=None) -> "
    "Tensor",
    RandomInto, kMethodOnly,
    "Overwrites with integers: from low on below high, or below the one number given. With none,\n"
    "of all (at most 2^31) that the dtype holds exactly.");
OFL_REGISTER_FUNCTION(
    "bernoulli_(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor",
    (Overload<const Tensor&, double, Ref<Generator>>(BernoulliInto)), kMethodOnly,
    "Overwrites with 1 with probability p, one for all or a tensor that broadcasts, else 0.");
OFL_REGISTER_FUNCTION(
    "bernoulli_.tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor",
    (Overload<const Tensor&, const Tensor&, Ref<Generator>>(BernoulliInto)), kMethodOnly, "");
OFL_REGISTER_FUNCTION(
    "bernoulli(Tensor input, float? p=None, *, Generator? generator=None) -> Tensor", Bernoulli,
    kMethod,
    "1 with the probability that each element gives, or everywhere p, else 0, in its dtype.\n"
    "ValueError for a probability beyond [0, 1] or NaN; of a tensor on CUDA or a global one, for\n"
    "which no call waits, it counts as the nearer of 0 and 1, and NaN as 0.");
OFL_REGISTER_FUNCTION(
    "multinomial(Tensor input, int num_samples, bool replacement=False, *, "
    "Generator? generator=None) -> Tensor",
    Multinomial, kMethod,
    "Places (int64) drawn with the probability that stands there, up to a factor: num_samples of\n"
    "a 1-D tensor, or of each row of a 2-D one; with replacement a place can be drawn again.\n"
    "ValueError for something negative, infinite or NaN, and for a row with too few places that\n"
    "are not 0. Looking for it waits for the device.");

}  // namespace oneflow_lite::functional
