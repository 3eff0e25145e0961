// SPDX-License-Identifier: Apache-2.0
//
// The gradient of the norms' gradient, as a function of all its inputs. With v = x - mean and
// h = v rstd (or v = y - bias and h = v / weight), g = dy weight, m() the mean over the columns:
//
//   dx = rstd (g - m(g) - h m(g h)),  dweight = sum over rows of dy h,  dbias = sum over rows of dy
//
// The map from g to dx is symmetric. For incoming G, Gw and Gb let u be dx with G in place of g;
// then dy gets u weight + Gw h + Gb, weight the sum over rows of u dy, and h gets
//
//   Gw dy - rstd (G m(g h) + g m(G h))
//
// which flows on to x, mean and rstd, or to y, weight and bias. rms_norm has no m(g) and no mean.
#include "oneflow_lite/framework/autograd.h"
#include "ops/norm.h"
#include "ops/norm_terms.h"

namespace oneflow_lite {
namespace {

using I = NormBackwardInputs;

functional::NormGradientInputs InputsOf(const GradContext& c) {
  return {.dy = c.input(I::kDy),
          .rstd = c.input(I::kRstd),
          .x = c.input(I::kX),
          .y = c.input(I::kY),
          .weight = c.input(I::kWeight),
          .bias = c.input(I::kBias),
          .mean = c.input(I::kMean)};
}

}  // namespace

Status NormSecondOrder(GradContext& c, NormKind kind) {
  const Shape& shape = c.spec(I::kDy).shape;
  const int axis = WrapNormAxis(c.attrs(), shape.ndim());
  double cols = 1;
  for (int d = axis; d < shape.ndim(); ++d) cols *= static_cast<double>(shape[d]);
  const auto mean = [&](const Term& t) { return SumFrom(t, axis) * (1 / cols); };
  const auto centred = [&](const Term& t) { return kind.centred ? t - mean(t) : t; };
  const DType compute = ComputeType(c.spec(I::kDy).dtype);
  const auto incoming = [&](int i) {
    return c.grad(i).defined() ? As({c.grad(i)}, compute, c.grad(i).shape()) : Term();
  };

  const NormTerms in(InputsOf(c));
  const Term &dy = in.dy, &h = in.x_hat, &rstd = in.rstd;
  const Term g = in.weight.nothing() ? dy : dy * in.weight;
  const Term G = incoming(0), Gw = incoming(1), Gb = kind.centred ? incoming(2) : Term();
  const Term m_gh = mean(g * h), m_Gh = mean(G * h);
  const Term u = rstd * (centred(G) - h * m_Gh);
  const Term dh = Gw * dy - rstd * (G * m_gh + g * m_Gh);
  const Term dv =
      in.divisor.nothing() ? (c.input(I::kX).defined() ? dh * rstd : dh) : dh / in.divisor;

  const auto set = [&](int i, const Term& t) -> Status {
    if (!c.needs(i)) return OkStatus();
    return c.Set(i, As(t, c.spec(i).dtype, c.spec(i).shape).value);
  };
  const auto columns = [&](const Term& t) { return SumTo(t, c.spec(I::kWeight).shape); };
  OFL_RETURN_IF_ERROR(set(I::kDy, (in.weight.nothing() ? u : u * in.weight) + Gw * h + Gb));
  OFL_RETURN_IF_ERROR(set(I::kDSum, G));
  Term drstd = SumFrom(G * (centred(g) - h * m_gh), axis);
  Term dweight = in.weight.nothing() ? Term() : columns(u * dy);
  if (c.input(I::kX).defined()) {
    drstd = drstd + SumFrom(dh * in.v, axis);
    OFL_RETURN_IF_ERROR(set(I::kX, dv));
    if (kind.centred) OFL_RETURN_IF_ERROR(set(I::kMean, -SumFrom(dv, axis)));
  } else {
    if (!in.weight.nothing()) dweight = dweight - columns(dv * h);
    OFL_RETURN_IF_ERROR(set(I::kY, dv));
    if (kind.centred) {
      OFL_RETURN_IF_ERROR(set(I::kBias, -SumTo(dv, c.spec(I::kBias).shape)));
    }
  }
  OFL_RETURN_IF_ERROR(set(I::kRstd, drstd));
  return set(I::kWeight, dweight);
}

}  // namespace oneflow_lite
