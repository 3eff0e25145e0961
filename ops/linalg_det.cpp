// SPDX-License-Identifier: Apache-2.0
//
// Determinants. d det(A) = <cof(A), dA> with the matrix of cofactors det(A) A^-T, which is there
// for a singular A too: Higham, "What is the adjugate of a matrix?" (2020).
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/reduce.h"
#include "functional/shapes.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/dispatch.h"
#include "ops/linalg.h"

namespace oneflow_lite {
namespace {

using functional::Cast;

// g, a number for each matrix, on the diagonal of matrices like a.
Term Diagonals(const Term& g, const Tensor& a) {
  Dims shape = a.shape().dims();
  shape.pop_back();
  return Embedded(With(Unsqueezed(g, -1), [&](auto& x) { return functional::Expand(x, shape); }));
}

// g cof(A) by LU. A determinant is smooth: where a diagonal element of U is 0, it becomes tiny.
Term CofactorsByLu(const Tensor& lu, const Tensor& pivots, const Term& g) {
  const DType dtype = lu.dtype();
  const Term diagonal = DiagonalOf({lu});
  const Term is_zero = With(diagonal, [&](auto& x) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor zero, functional::Eq(x, Scalar(0)));
    return Cast(zero, dtype);
  });
  const double tiny = dtype == DType::kFloat64 ? 2.2e-16 : 1.2e-7;
  const Term size = With(diagonal, [&](auto& x) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor sizes, functional::Abs(x));
    OFL_ASSIGN_OR_RETURN(const Tensor largest, functional::Amax(sizes, Dims{-1}, true));
    return functional::Maximum(largest, Scalar(1e-30));
  });
  const Term moved = Term{lu} + Embedded(is_zero * (size * tiny));
  const Term sign = With({pivots}, [&](auto& p) -> StatusOr<Tensor> {  // of the exchanges
    const int64_t n = p.shape()[p.ndim() - 1];
    OFL_ASSIGN_OR_RETURN(const Tensor own, functional::Arange(Scalar(int64_t{1}), Scalar(n + 1), {},
                                                              DType::kInt32, p.device()));
    OFL_ASSIGN_OR_RETURN(const Tensor swapped, functional::Ne(p, own));
    return Cast(swapped, dtype);
  });
  const Term det = With(DiagonalOf(moved) * (sign * -2.0 + 1.0),
                        [](auto& x) { return functional::Prod(x, Dims{-1}); });
  return Combine(moved, Diagonals(g * det, lu), [&](auto& factors, auto& right) {
    return functional::LuSolve(factors, pivots, right, true, /*adjoint=*/true);
  });
}

// g cof(A) of A = U S V^T: det(U) det(V) U cof(S) V^T, which can be differentiated.
Term CofactorsBySvd(const Tensor& a, const Term& g) {
  StatusOr<TensorList> y = functional::Svd(a, /*full_matrices=*/false);
  if (!y.ok()) return {y.status()};
  const Term u{(*y)[0]}, s{(*y)[1]}, vt{(*y)[2]};
  const auto det = [](auto& x) { return functional::Det(x.Detach()); };
  // For each singular value the product of the others: a 1 in its place.
  const int64_t n = a.shape()[a.ndim() - 1];
  const Term one{functional::Eye(n, {}, a.dtype(), a.device())};
  const Term others = With(Unsqueezed(s, -2) * (1.0 - one) + one,
                           [](auto& x) { return functional::Prod(x, Dims{-1}); });
  const Term factor = Unsqueezed(g * With(u, det) * With(vt, det), -1);
  return Times(u * Unsqueezed(others * factor, -2), vt);
}

StatusOr<bool> AnyIsZero(const Tensor& det) {
  if (det.device().type == DeviceType::kMeta || det.numel() == 0) return false;
  OFL_ASSIGN_OR_RETURN(const Tensor sizes, functional::Abs(det.Detach()));
  OFL_ASSIGN_OR_RETURN(const Tensor least, functional::Amin(sizes));
  OFL_ASSIGN_OR_RETURN(const double value, functional::ValueOf<double>("det", least));
  return value == 0;
}

Term OfDeterminant(const GradContext& c) {
  const Tensor &a = c.input(0), &det = c.output(0), &lu = c.output(1), &pivots = c.output(2);
  const Term g{c.grad(0)};
  if (g.nothing() || a.numel() == 0) return g.nothing() ? g : Term{functional::Clone(a)};
  if (!GradEnabled()) return CofactorsByLu(lu, pivots, g);
  const StatusOr<bool> singular = AnyIsZero(det);
  if (!singular.ok()) return {singular.status()};
  if (*singular) return CofactorsBySvd(a, g);
  return SolvedAdjoint(a, lu, pivots, Diagonals(g * Term{det}, a));
}

// The number, or numbers, of each matrix, and the factors it came from.
Status InferNumbers(InferContext& c) {
  OFL_RETURN_IF_ERROR(CheckMatrices(c, 0, true));
  const Shape& a = c.shape(0);
  const int n = c.num_outputs();
  for (int i = 0; i < n - 2; ++i) c.SetOutput(i, PerMatrix(a, {}), c.dtype(0));
  c.SetOutput(n - 2, a, c.dtype(0));
  c.SetOutput(n - 1, PerMatrix(a, {Rows(a)}), DType::kInt32);
  return OkStatus();
}

void DefineDeterminant(OpDef& op) {
  op.Input("A").Output("out").Output("LU").Output("pivots");
  op.doc = "The determinant, and the factors of A.";
  op.infer = InferNumbers;
  DefineCubic(op, 2.0 / 3);
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0), .outputs = Bit(0) | Bit(1) | Bit(2)};
  };
  op.backward = [](GradContext& c) -> Status {
    const int64_t n = Rows(c.spec(0).shape);
    const Term da = OfDeterminant(c) + LuGradient(c.output(1), c.output(2), c.grad(1), n, n);
    return da.nothing() ? OkStatus() : c.Set(0, da.value);
  };
}

void DefineLogDeterminant(OpDef& op) {
  op.Input("A").Output("sign").Output("logabsdet").Output("LU").Output("pivots");
  op.doc = "The sign and the logarithm of the size of the determinant, and the factors of A.";
  op.infer = InferNumbers;
  DefineCubic(op, 2.0 / 3);
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0), .outputs = Bit(2) | Bit(3)};
  };
  op.backward = [](GradContext& c) -> Status {  // g A^-T; the sign is a step
    const Tensor &a = c.input(0), &lu = c.output(2), &pivots = c.output(3);
    const int64_t n = Rows(a.shape());
    const Term da = SolvedAdjoint(a, lu, pivots, Diagonals({c.grad(1)}, a)) +
                    LuGradient(lu, pivots, c.grad(2), n, n);
    if (da.nothing()) return c.Set(0, functional::Zeros(a.shape(), a.dtype(), a.device()));
    return c.Set(0, da.value);
  };
}

OFL_REGISTER_OP("det", DefineDeterminant);
OFL_REGISTER_OP("slogdet", DefineLogDeterminant);

}  // namespace
}  // namespace oneflow_lite
