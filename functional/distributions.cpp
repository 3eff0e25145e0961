// SPDX-License-Identifier: Apache-2.0
//
// Tensors overwritten with random numbers of distributions that are functions of uniform or normal
// ones.
#include <cmath>
#include <numbers>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/random.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

// What `formula` makes of uniform numbers from (0, 1), computed in float32 or wider, stored in
// self.
template <class F>
StatusOr<Tensor> OfUniform(const char* name, const Tensor& self, Ref<Generator> generator,
                           const F& formula) {
  if (!self.defined()) return NotDefined(name, "self");
  const DType wide = IsFloating(self.dtype()) ? ComputeType(self.dtype()) : DType::kFloat64;
  OFL_RETURN_IF_ERROR(BernoulliInto(self, 0, generator).status());  // zeros, without history
  GradGuard no_grad(false);
  OFL_ASSIGN_OR_RETURN(const Tensor drawn,
                       Rand(self.shape().dims(), std::move(generator), wide, self.device()));
  const double step = wide == DType::kFloat64 ? 0x1p-54 : 0x1p-25;  // half a step: never 0
  OFL_ASSIGN_OR_RETURN(const Tensor inside, Add(drawn, Scalar(step)));
  OFL_ASSIGN_OR_RETURN(const Tensor y, formula(inside));
  StatusOr<Tensor> stored = CopyInto(self, y);
  return stored.ok() ? stored : Renamed(name, stored.status());
}

Status CheckFloats(const char* name, const Tensor& self) {
  if (!self.defined()) return NotDefined(name, "self");
  if (IsFloating(self.dtype())) return OkStatus();
  return UnsupportedDType(name, "self", self.dtype(), "one of " + ToString(kFloatingSet));
}

}  // namespace

StatusOr<Tensor> CauchyInto(const Tensor& self, double median, double sigma,
                            Ref<Generator> generator) {
  constexpr char kName[] = "cauchy_";
  OFL_RETURN_IF_ERROR(CheckFloats(kName, self));
  if (!(sigma > 0)) return BadValue(kName, "sigma", absl::StrCat(sigma), "positive");
  return OfUniform(kName, self, std::move(generator), [&](const Tensor& u) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor centred, Sub(u, Scalar(0.5)));
    OFL_ASSIGN_OR_RETURN(const Tensor angle, Mul(centred, Scalar(std::numbers::pi)));
    OFL_ASSIGN_OR_RETURN(const Tensor slope, Tan(angle));
    OFL_ASSIGN_OR_RETURN(const Tensor scaled, Mul(slope, Scalar(sigma)));
    return Add(scaled, Scalar(median));
  });
}

StatusOr<Tensor> GeometricInto(const Tensor& self, double p, Ref<Generator> generator) {
  constexpr char kName[] = "geometric_";
  if (!(p > 0 && p < 1)) return BadValue(kName, "p", absl::StrCat(p), "in (0, 1)");
  return OfUniform(kName, self, std::move(generator), [&](const Tensor& u) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor log, Log(u));
    OFL_ASSIGN_OR_RETURN(const Tensor trials, Div(log, Scalar(std::log1p(-p))));
    OFL_ASSIGN_OR_RETURN(const Tensor whole, Ceil(trials));
    return Maximum(whole, Scalar(1.0));
  });
}

StatusOr<Tensor> LogNormalInto(const Tensor& self, double mean, double std,
                               Ref<Generator> generator) {
  constexpr char kName[] = "log_normal_";
  OFL_RETURN_IF_ERROR(CheckFloats(kName, self));
  if (!(std > 0)) return BadValue(kName, "std", absl::StrCat(std), "positive");
  OFL_RETURN_IF_ERROR(BernoulliInto(self, 0, generator).status());  // zeros, without history
  GradGuard no_grad(false);
  OFL_ASSIGN_OR_RETURN(const Tensor drawn, Randn(self.shape().dims(), std::move(generator),
                                                 ComputeType(self.dtype()), self.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor scaled, Mul(drawn, Scalar(std)));
  OFL_ASSIGN_OR_RETURN(const Tensor moved, Add(scaled, Scalar(mean)));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Exp(moved));
  StatusOr<Tensor> stored = CopyInto(self, y);
  return stored.ok() ? stored : Renamed(kName, stored.status());
}

OFL_REGISTER_FUNCTION(
    "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> "
    "Tensor",
    CauchyInto, kMethodOnly, "Overwrites with random numbers of Cauchy's distribution.");
OFL_REGISTER_FUNCTION(
    "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor", GeometricInto,
    kMethodOnly,
    "Overwrites with the number of trials up to the first success, which has probability p.");
OFL_REGISTER_FUNCTION(
    "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> "
    "Tensor",
    LogNormalInto, kMethodOnly, "Overwrites with exp of normal random numbers.");

}  // namespace oneflow_lite::functional
