// SPDX-License-Identifier: Apache-2.0
//
// LU and Cholesky factorizations and what they solve. The gradients are those of Giles, "An
// extended collection of matrix derivative results for forward and reverse mode algorithmic
// differentiation" (2008), and for Cholesky of Murray, "Differentiation of the Cholesky
// decomposition" (arXiv:1602.07527); those of LU follow from A = P L U in the same way.
#include <algorithm>

#include "ops/linalg.h"

namespace oneflow_lite {
namespace {

using functional::LuSolve;

// LU ----------------------------------------------------------------------------------------------

void DefineLuFactor(OpDef& op) {
  op.Input("A").Output("LU").Output("pivots").Output("info");
  op.doc = "L, below the diagonal, and U of A = P L U, and the rows exchanged, from 1 on.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0));
    const Shape& a = c.shape(0);
    c.SetOutput(0, a, c.dtype(0));
    c.SetOutput(1, PerMatrix(a, {std::min(Rows(a), Columns(a))}), DType::kInt32);
    c.SetOutput(2, PerMatrix(a, {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 2.0 / 3);
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0) | Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    const Shape& a = c.spec(0).shape;
    return c.Set(0, LuGradient(c.output(0), c.output(1), c.grad(0), Rows(a), Columns(a)).value);
  };
}

void DefineLuPermutation(OpDef& op) {
  op.Input("pivots").Output("rows").Attr("m", AttrType::kInt);
  op.doc = "The rows of A in the order in which they are those of L U.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    if (c.dtype(0) != DType::kInt32) {
      return UnsupportedDType(c.op(), "pivots", c.dtype(0), "int32");
    }
    const int n = c.shape(0).ndim();
    if (n < 1) return ShapeMismatch(c.op(), "pivots", c.shape(0), "at least 1 dim");
    if (c.attr<int64_t>(0) < c.shape(0)[n - 1]) {
      return ShapeMismatch(c.op(), "pivots", c.shape(0), "no more of them than rows");
    }
    Shape rows = c.shape(0);
    rows[n - 1] = c.attr<int64_t>(0);
    c.SetOutput(0, rows, DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitAllAxesBut(c.inputs[0].ndim() - 1, c); };
  op.sbp_text = "split on any dim but the last";
}

// The gradient of A from that of X with A X = B, or A^T X = B, and dB.
Term OfMatrix(const Term& db, const Term& x, bool adjoint) {
  return adjoint ? -Times(x, Mt(db)) : -Times(db, Mt(x));
}

void DefineLuSolve(OpDef& op) {
  op.Input("LU").Input("pivots").Input("B").Output("out").Attr("adjoint", AttrType::kBool, false);
  op.doc = "X with A X = B, or with the transpose of A, by the factors of A.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSystem(c, 0, 2));
    if (c.dtype(1) != DType::kInt32 || c.shape(1) != PerMatrix(c.shape(0), {Rows(c.shape(0))})) {
      return ShapeMismatch(c.op(), "pivots", c.shape(1), "an int32 for each row of LU");
    }
    c.SetOutput(0, c.shape(2), c.dtype(2));
    return OkStatus();
  };
  DefineCubic(op, 0);
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = Bit(0) | Bit(1), .outputs = needs & Bit(0) ? Bit(0) : 0};
  };
  op.backward = [](GradContext& c) -> Status {
    const bool adjoint = c.attr<bool>(0);
    const Term db{LuSolve(c.input(0), c.input(1), c.grad(0), true, !adjoint)};
    if (c.needs(2)) OFL_RETURN_IF_ERROR(c.Set(2, db.value));
    if (!c.needs(0)) return OkStatus();
    const Term lu{c.input(0)};
    const Term pt{functional::LuPermutation(c.input(1), Rows(c.spec(0).shape), c.spec(0).dtype)};
    const Term da = Times(pt, OfMatrix(db, {c.output(0)}, adjoint));  // of P^T A = L U
    const Term l = LowerOf(lu, -1), u = UpperOf(lu);
    const Term dl = LowerOf(Times(da, Mt(u)), -1);
    return c.Set(0, (dl + UpperOf(da + Times(Mt(l), da))).value);
  };
}

// Solutions ---------------------------------------------------------------------------------------

void DefineSolve(OpDef& op) {
  op.Input("A").Input("B").Output("result").Output("LU").Output("pivots").Output("info");
  op.doc = "X with A X = B, and the factors of A.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSystem(c, 0, 1));
    const Shape& a = c.shape(0);
    c.SetOutput(0, c.shape(1), c.dtype(0));
    c.SetOutput(1, a, c.dtype(0));
    c.SetOutput(2, PerMatrix(a, {Rows(a)}), DType::kInt32);
    c.SetOutput(3, PerMatrix(a, {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 2.0 / 3);
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0), .outputs = Bit(0) | Bit(1) | Bit(2)};
  };
  op.backward = [](GradContext& c) -> Status {
    const Tensor &a = c.input(0), &lu = c.output(1), &pivots = c.output(2);
    const Term db = SolvedAdjoint(a, lu, pivots, {c.grad(0)});
    if (c.needs(1) && !db.nothing()) OFL_RETURN_IF_ERROR(c.Set(1, db.value));
    if (!c.needs(0)) return OkStatus();
    const int64_t n = Rows(a.shape());
    const Term da = OfMatrix(db, {c.output(0)}, false) + LuGradient(lu, pivots, c.grad(1), n, n);
    return da.nothing() ? OkStatus() : c.Set(0, da.value);
  };
}

void DefineSolveTriangular(OpDef& op) {
  op.Input("A").Input("B").Output("out");
  op.Attr("upper", AttrType::kBool).Attr("unitriangular", AttrType::kBool, false);
  op.doc = "X with A X = B, of a triangle of A.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSystem(c, 0, 1));
    c.SetOutput(0, c.shape(1), c.dtype(0));
    return OkStatus();
  };
  DefineCubic(op, 0);
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = Bit(0), .outputs = needs & Bit(0) ? Bit(0) : 0};
  };
  op.backward = [](GradContext& c) -> Status {
    const bool upper = c.attr<bool>(0), unit = c.attr<bool>(1);
    const Term db = Solved(Mt({c.input(0)}), {c.grad(0)}, !upper, true, unit);
    if (c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, db.value));
    if (!c.needs(0)) return OkStatus();
    const Term da = OfMatrix(db, {c.output(0)}, false);
    return c.Set(0, (upper ? UpperOf(da, unit ? 1 : 0) : LowerOf(da, unit ? -1 : 0)).value);
  };
}

void DefineInverse(OpDef& op) {
  op.Input("A").Output("out").Output("info");
  op.doc = "The inverse.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0, true));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, PerMatrix(c.shape(0), {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 2);
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {  // -Y^T g Y^T
    const Term yt = Mt({c.output(0)});
    return c.Set(0, (-Times(Times(yt, {c.grad(0)}), yt)).value);
  };
}

void DefineCholesky(OpDef& op) {
  op.Input("A").Output("out").Output("info").Attr("upper", AttrType::kBool, false);
  op.doc = "L with L L^T = A, or U with U^T U = A, of one triangle of A.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckMatrices(c, 0, true));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, PerMatrix(c.shape(0), {}), DType::kInt32);
    return OkStatus();
  };
  DefineCubic(op, 1.0 / 3);
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {  // L^-T (S + S^T) / 2 L^-1, S = Phi(L^T dL)
    Term l{c.output(0)}, dl{c.grad(0)};
    if (c.attr<bool>(0)) {
      l = Mt(l);
      dl = Mt(dl);
    }
    Term s = LowerOf(Times(Mt(l), dl));
    s = (s + Mt(LowerOf(s, -1))) * 0.5;  // Phi halves the diagonal
    s = Solved(Mt(l), s, /*upper=*/true);
    return c.Set(0, Solved(l, s, /*upper=*/false, /*left=*/false).value);
  };
}

OFL_REGISTER_OP("lu_factor", DefineLuFactor);
OFL_REGISTER_OP("lu_permutation", DefineLuPermutation);
OFL_REGISTER_OP("lu_solve", DefineLuSolve);
OFL_REGISTER_OP("solve", DefineSolve);
OFL_REGISTER_OP("solve_triangular", DefineSolveTriangular);
OFL_REGISTER_OP("inv", DefineInverse);
OFL_REGISTER_OP("cholesky", DefineCholesky);

}  // namespace
}  // namespace oneflow_lite
