// SPDX-License-Identifier: Apache-2.0
//
// QR, eigenvalues, singular values, least squares and pseudoinverses. The gradients are those of
// Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application in
// optimum experimental design" (arXiv:1001.1654), for QR; Giles, "An extended collection of matrix
// derivative results" (2008), for eigenvalues; Townsend, "Differentiating the singular value
// decomposition" (2016); Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear
// least squares problems whose variables separate" (1973).
#include "functional/cat.h"
#include "functional/creation.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "ops/linalg.h"

namespace oneflow_lite {
namespace {

// The triangle of the lower one and its mirror image.
Term Mirrored(const Term& lower) { return LowerOf(lower) + Mt(LowerOf(lower, -1)); }

// Of the dims of each matrix: rows, columns, the smaller one.
struct Sides {
  int64_t m, n, r;
};
Sides SidesOf(const Shape& s) { return {Rows(s), Columns(s), std::min(Rows(s), Columns(s))}; }

// QR ----------------------------------------------------------------------------------------------

// A = Q R with at least as many rows as columns.
Term TallQrGradient(const Term& q, const Term& r, const Term& dq, const Term& dr) {
  const Term inner = Times(r, Mt(dr)) - Times(Mt(dq), q);
  const Term g = dq + Times(q, Mirrored(inner));
  return Solved(Mt(r), g, /*upper=*/false, /*left=*/false);
}

Status QrGradient(GradContext& c) {
  const std::string& mode = c.attr<std::string>(0);
  const auto [m, n, r] = SidesOf(c.spec(0).shape);
  if (mode == "r" || (mode == "complete" && m > n)) {
    return Error(ErrorKind::kNotImplemented, "qr(): has no gradient with mode \"", mode,
                 mode == "r" ? "\", which does without Q"
                             : "\" where A has more rows than columns: Q is not unique");
  }
  const Term q{c.output(0)}, upper{c.output(1)}, dq{c.grad(0)}, dr{c.grad(1)};
  if (dq.nothing() && dr.nothing()) return OkStatus();
  if (m >= n) return c.Set(0, TallQrGradient(q, upper, dq, dr).value);
  // A = Q [R1 R2]: of A1 = Q R1, and of R2 = Q^T A2
  const auto rest = [r = r](const Term& t) {
    return With(t, [r](auto& x) { return functional::Slice(x, -1, r, {}); });
  };
  const Term dr2 = rest(dr);
  const Term da1 = TallQrGradient(q, First(upper, -1, r),
                                  dq + Times(Times(q, rest(upper)), Mt(dr2)), First(dr, -1, r));
  Term da2 = Times(q, dr2);
  if (da2.nothing()) {
    Shape shape = c.spec(0).shape;
    shape[shape.ndim() - 1] = n - r;
    da2 = {functional::Zeros(shape, c.spec(0).dtype, c.spec(0).device)};
  }
  return c.Set(0, Combine(da1, da2, [](auto& x, auto& y) {
                    return functional::Cat({{x, y}}, -1);
                  }).value);
}

void DefineQr(OpDef& op) {
  op.Input("A").Output("Q").Output("R").Attr("mode", AttrType::kString, std::string("reduced"));
  op.doc = "A = Q R, Q with orthonormal columns and R upper triangular.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0));
    const std::string& mode = c.attr<std::string>(0);
    const auto [m, n, r] = SidesOf(c.shape(0));
    const int64_t q = mode == "complete" ? m : r;
    c.SetOutput(0, mode == "r" ? Shape{0} : PerMatrix(c.shape(0), {m, q}), c.dtype(0));
    c.SetOutput(1, PerMatrix(c.shape(0), {q, n}), c.dtype(0));
    return OkStatus();
  };
  DefineCubic(op, 4, [](const Attrs& a) { return a.get<std::string>(0) == "r" ? Bit(0) : 0; });
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0) | Bit(1)}; };
  op.backward = QrGradient;
}

// Eigenvalues -------------------------------------------------------------------------------------

// x_j - x_i in place ij, and 1 on the diagonal.
Term Gaps(const Term& x) {
  const Term gaps = Unsqueezed(x, -2) - Unsqueezed(x, -1);
  return With(x, [&](auto& t) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor one,
                         functional::Eye(Columns(t.shape()), {}, t.dtype(), t.device()));
    return (gaps + Term{one}).value;
  });
}

Status NeedsVectors(const GradContext& c, int attr) {
  if (c.attr<bool>(attr)) return OkStatus();
  return Error(ErrorKind::kNotImplemented, c.op().name,
               "(): has no gradient without vectors, of which it is made");
}

// V (diag(dL) + (V^T dV) / gaps) V^T
Status EighGradient(GradContext& c) {
  OFL_RETURN_IF_ERROR(NeedsVectors(c, 1));
  const Term l{c.output(0)}, v{c.output(1)}, dl{c.grad(0)}, dv{c.grad(1)};
  if (dl.nothing() && dv.nothing()) return OkStatus();
  Term inner;
  if (!dv.nothing()) {
    // Along the vectors there is nothing to gain: their lengths stay.
    const Term turned = Times(Mt(v), dv);
    inner = (turned - Mt(turned)) * 0.5 / Gaps(l);
  }
  return c.Set(0, Times(Times(v, inner + Embedded(dl)), Mt(v)).value);
}

void DefineEigh(OpDef& op) {
  op.Input("A").Output("eigenvalues").Output("eigenvectors").Output("info");
  op.Attr("upper", AttrType::kBool, false).Attr("vectors", AttrType::kBool, true);
  op.doc = "Ascending eigenvalues of symmetric matrices, of one triangle, and vectors in columns.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0, true));
    const Shape& a = c.shape(0);
    c.SetOutput(0, PerMatrix(a, {Rows(a)}), c.dtype(0));
    c.SetOutput(1, c.attr<bool>(1) ? a : Shape{0}, c.dtype(0));
    c.SetOutput(2, PerMatrix(a, {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 9, [](const Attrs& a) { return a.get<bool>(1) ? 0 : Bit(1); });
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0) | Bit(1)}; };
  op.backward = EighGradient;
}

// Singular values ---------------------------------------------------------------------------------

Term Skew(const Term& a) { return a - Mt(a); }

Status SvdGradient(GradContext& c) {
  OFL_RETURN_IF_ERROR(NeedsVectors(c, 1));
  const auto [m, n, r] = SidesOf(c.spec(0).shape);
  // What fills up U and V^T is not unique: no gradient flows to it.
  const Term u = First({c.output(0)}, -1, r), s{c.output(1)}, vt = First({c.output(2)}, -2, r);
  const Term du = First({c.grad(0)}, -1, r), ds{c.grad(1)}, dvt = First({c.grad(2)}, -2, r);
  if (du.nothing() && ds.nothing() && dvt.nothing()) return OkStatus();
  if (r == 0)
    return c.Set(0, functional::Zeros(c.spec(0).shape, c.spec(0).dtype, c.spec(0).device));
  if (du.nothing() && dvt.nothing()) {
    return c.Set(0, Times(u * Unsqueezed(ds, -2), vt).value);
  }
  const Term gaps = Gaps(s * s);
  Term inner = Embedded(ds);
  if (!du.nothing()) inner = inner + Skew(Times(Mt(u), du)) / gaps * Unsqueezed(s, -2);
  if (!dvt.nothing()) {
    inner = inner + Unsqueezed(s, -1) * (Skew(Times(vt, Mt(dvt))) / gaps);
  }
  Term da = Times(Times(u, inner), vt);
  if (m > r && !du.nothing()) {  // (1 - U U^T) dU / S V^T
    const Term scaled = du / Unsqueezed(s, -2);
    da = da + Times(scaled - Times(u, Times(Mt(u), scaled)), vt);
  }
  if (n > r && !dvt.nothing()) {
    const Term scaled = dvt / Unsqueezed(s, -1);
    da = da + Times(u, scaled - Times(Times(scaled, Mt(vt)), vt));
  }
  return c.Set(0, da.value);
}

void DefineSvd(OpDef& op) {
  op.Input("A").Output("U").Output("S").Output("Vh").Output("info");
  op.Attr("full_matrices", AttrType::kBool, true).Attr("vectors", AttrType::kBool, true);
  op.doc = "A = U diag(S) Vh, S descending, U and Vh with orthonormal columns and rows.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0));
    const Shape& a = c.shape(0);
    const auto [m, n, r] = SidesOf(a);
    const bool full = c.attr<bool>(0), vectors = c.attr<bool>(1);
    c.SetOutput(0, vectors ? PerMatrix(a, {m, full ? m : r}) : Shape{0}, c.dtype(0));
    c.SetOutput(1, PerMatrix(a, {r}), c.dtype(0));
    c.SetOutput(2, vectors ? PerMatrix(a, {full ? n : r, n}) : Shape{0}, c.dtype(0));
    c.SetOutput(3, PerMatrix(a, {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 14, [](const Attrs& a) { return a.get<bool>(1) ? 0 : Bit(0) | Bit(2); });
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0) | Bit(1) | Bit(2)}; };
  op.backward = SvdGradient;
}

// Pseudoinverses ----------------------------------------------------------------------------------

// The gradient of A from that of P = A^+, where the rank does not change.
Term PinvGradient(const Term& a, const Term& p, const Term& dp) {
  const Term pt = Mt(p), dpt = Mt(dp);
  const Term along = Times(p, dpt), across = Times(dpt, p);  // [n, n], [m, m]
  const Term direct = -Mt(Times(along, p));
  const Term left = Times(across - Times(a, Times(p, across)), pt);
  const Term right = Times(pt, along - Times(Times(along, p), a));
  return direct + left + right;
}

void DefinePinv(OpDef& op) {
  op.Input("A").Input("tolerances").Output("out").Output("info");
  op.doc =
      "The Moore-Penrose inverse. Singular values up to the larger of tolerances[..., 0] and "
      "tolerances[..., 1] times the largest count as 0.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0));
    const Shape& a = c.shape(0);
    if (c.dtype(1) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "tolerances", c.dtype(1), Name(c.dtype(0)));
    }
    if (c.shape(1) != PerMatrix(a, {2})) {
      return ShapeMismatch(c.op(), "tolerances", c.shape(1), PerMatrix(a, {2}).ToString());
    }
    c.SetOutput(0, PerMatrix(a, {Columns(a), Rows(a)}), c.dtype(0));
    c.SetOutput(1, PerMatrix(a, {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 16);
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0), .outputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {  // the tolerances' is 0 but for where ranks change
    if (c.needs(0)) {
      OFL_RETURN_IF_ERROR(c.Set(0, PinvGradient({c.input(0)}, {c.output(0)}, {c.grad(0)}).value));
    }
    const TensorSpec& t = c.spec(1);
    return c.needs(1) ? c.Set(1, functional::Zeros(t.shape, t.dtype, t.device)) : OkStatus();
  };
}

// X = A^+ B where A has full rank.
Status LstsqGradient(GradContext& c) {
  if (c.grad(2).defined()) {
    return Error(ErrorKind::kNotImplemented,
                 "lstsq(): singular_values have no gradient; those of svdvals() have");
  }
  const Term dx{c.grad(0)};
  if (dx.nothing()) return OkStatus();
  const StatusOr<Tensor> p = functional::Pinv(c.input(0));
  if (c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, Times(Mt({p}), dx).value));
  if (!c.needs(0)) return OkStatus();
  return c.Set(0, PinvGradient({c.input(0)}, {p}, Times(dx, Mt({c.input(1)}))).value);
}

// Of LAPACK's drivers, those that find singular values.
bool GivesValues(const Attrs& attrs) {
  const std::string& driver = attrs.get<std::string>(1);
  return driver == "gelsd" || driver == "gelss";
}

void DefineLstsq(OpDef& op) {
  op.Input("A").Input("B");
  op.Output("solution").Output("rank").Output("singular_values").Output("info");
  op.Attr("rcond", AttrType::kFloat).Attr("driver", AttrType::kString, std::string("gelsy"));
  op.doc = "X of the least |A X - B|, and among those the least |X|.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSystem(c, 0, 1, /*square=*/false));
    const Shape& a = c.shape(0);
    const auto [m, n, r] = SidesOf(a);
    c.SetOutput(0, PerMatrix(a, {n, Columns(c.shape(1))}), c.dtype(0));
    c.SetOutput(1, PerMatrix(a, {}), DType::kInt64);
    c.SetOutput(2, GivesValues(c.attrs()) ? PerMatrix(a, {r}) : Shape{0}, c.dtype(0));
    c.SetOutput(3, PerMatrix(a, {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 4, [](const Attrs& a) { return GivesValues(a) ? 0 : Bit(2); });
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1)}; };
  op.backward = LstsqGradient;
}

OFL_REGISTER_OP("qr", DefineQr);
OFL_REGISTER_OP("eigh", DefineEigh);
OFL_REGISTER_OP("svd", DefineSvd);
OFL_REGISTER_OP("pinv", DefinePinv);
OFL_REGISTER_OP("lstsq", DefineLstsq);

}  // namespace
}  // namespace oneflow_lite
