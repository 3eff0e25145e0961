// SPDX-License-Identifier: Apache-2.0
#include "functional/argument_names.h"
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/linalg.h"
#include "functional/linalg_call.h"
#include "functional/reduce.h"
#include "functional/shapes.h"
#include "functional/triangle.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kSingular[] =
    "the matrix is singular: the diagonal element {} of its factor U is zero";
constexpr char kNotPositive[] =
    "the matrix is not positive-definite: its leading minor of order {} is not";

StatusOr<Tensor> Mt(const Tensor& x) { return Transpose(x, -2, -1); }

// b as a matrix for each of a's: a vector has a dim of size 1 appended.
StatusOr<Tensor> RightSide(const char* name, const Tensor& a, const Tensor& b, bool left,
                           bool* vector) {
  OFL_RETURN_IF_ERROR(CheckMatrix(name, "A", a, /*square=*/true));
  OFL_RETURN_IF_ERROR(CheckSameDType(name, a, "B", b));
  Dims rows = a.shape().dims();
  rows.pop_back();
  *vector = left && (b.ndim() == 1 || (b.ndim() + 1 == a.ndim() && b.shape().dims() == rows));
  if (!*vector && b.ndim() < 2) {
    return ShapeMismatch(name, "B", b.shape(), "at least 2 dims");
  }
  const Tensor side = b;
  OFL_ASSIGN_OR_RETURN(const Tensor matrix, *vector ? Unsqueeze(side, -1) : StatusOr<Tensor>(side));
  const int64_t n = a.shape()[a.ndim() - 1];
  if (matrix.shape()[matrix.ndim() - (left ? 2 : 1)] != n) {
    return Error(ErrorKind::kShape, name, "(): B has shape ", b.shape().ToString(), ", expected ",
                 n, left ? " rows" : " columns", " to go with A of shape ", a.shape().ToString());
  }
  return matrix;
}

}  // namespace

StatusOr<TensorList> SolveFactored(const Tensor& a, const Tensor& b) {
  static const OpExpr& op = OpBuilder("solve")
                                .Input("A")
                                .Input("B")
                                .Output("result")
                                .Output("LU")
                                .Output("pivots")
                                .Output("info")
                                .Get();
  return CallAll(op, {a, b});
}

namespace {

StatusOr<TensorList> SolveAs(const char* name, const Tensor& given, const Tensor& b, bool left,
                             bool check_errors) {
  bool vector = false;
  OFL_ASSIGN_OR_RETURN(Tensor side, RightSide(name, given, b, left, &vector));
  Tensor a = given;
  OFL_RETURN_IF_ERROR(BroadcastBatches(name, &a, &side));
  if (!left) {  // A^T X^T = B^T
    OFL_ASSIGN_OR_RETURN(a, Mt(a));
    OFL_ASSIGN_OR_RETURN(side, Mt(side));
  }
  OFL_ASSIGN_OR_RETURN(TensorList y, SolveFactored(a, side));
  if (check_errors) OFL_RETURN_IF_ERROR(CheckInfo(name, y[3], kSingular));
  OFL_ASSIGN_OR_RETURN(Tensor x, left ? StatusOr<Tensor>(y[0]) : Mt(y[0]));
  if (vector) {
    OFL_ASSIGN_OR_RETURN(x, Squeeze(x, Dims{-1}));
  }
  return TensorList{std::move(x), y[3]};
}

}  // namespace

StatusOr<TensorList> SolveEx(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  return SolveAs("linalg.solve_ex", a, b, left, check_errors);
}
StatusOr<Tensor> Solve(const Tensor& a, const Tensor& b, bool left) {
  OFL_ASSIGN_OR_RETURN(TensorList y, SolveAs("linalg.solve", a, b, left, true));
  return std::move(y[0]);
}

StatusOr<Tensor> SolveTriangular(const Tensor& given, const Tensor& b, bool upper, bool left,
                                 bool unitriangular) {
  static const OpExpr& op = OpBuilder("solve_triangular")
                                .Input("A")
                                .Input("B")
                                .Output("out")
                                .Attr("upper")
                                .Attr("unitriangular")
                                .Get();
  constexpr char kName[] = "linalg.solve_triangular";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "A", given, /*square=*/true));
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "B", b));
  OFL_RETURN_IF_ERROR(CheckSameDType(kName, given, "B", b));
  const int64_t n = given.shape()[given.ndim() - 1];
  if (b.shape()[b.ndim() - (left ? 2 : 1)] != n) {
    return Error(ErrorKind::kShape, kName, "(): B has shape ", b.shape().ToString(), ", expected ",
                 n, left ? " rows" : " columns", " to go with A of shape ",
                 given.shape().ToString());
  }
  Tensor a = given, side = b;
  OFL_RETURN_IF_ERROR(BroadcastBatches(kName, &a, &side));
  if (left) return Call(op, {a, side}, {upper, unitriangular});
  OFL_ASSIGN_OR_RETURN(a, Mt(a));
  OFL_ASSIGN_OR_RETURN(side, Mt(side));
  OFL_ASSIGN_OR_RETURN(const Tensor x, Call(op, {a, side}, {!upper, unitriangular}));
  return Mt(x);
}

namespace {

StatusOr<TensorList> InvAs(const char* name, const Tensor& a, bool check_errors) {
  static const OpExpr& op = OpBuilder("inv").Input("A").Output("out").Output("info").Get();
  OFL_RETURN_IF_ERROR(CheckMatrix(name, "A", a, /*square=*/true));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}));
  if (check_errors) OFL_RETURN_IF_ERROR(CheckInfo(name, y[1], kSingular));
  return y;
}
StatusOr<TensorList> CholeskyAs(const char* name, const Tensor& a, bool upper, bool check_errors) {
  static const OpExpr& op =
      OpBuilder("cholesky").Input("A").Output("out").Output("info").Attr("upper").Get();
  OFL_RETURN_IF_ERROR(CheckMatrix(name, "A", a, /*square=*/true));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}, {upper}));
  if (check_errors) OFL_RETURN_IF_ERROR(CheckInfo(name, y[1], kNotPositive));
  return y;
}
StatusOr<TensorList> LuFactorAs(const char* name, const Tensor& a, bool check_errors) {
  static const OpExpr& op =
      OpBuilder("lu_factor").Input("A").Output("LU").Output("pivots").Output("info").Get();
  OFL_RETURN_IF_ERROR(CheckMatrix(name, "A", a));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}));
  if (check_errors) OFL_RETURN_IF_ERROR(CheckInfo(name, y[2], kSingular));
  return y;
}

}  // namespace

StatusOr<TensorList> InvEx(const Tensor& a, bool check_errors) {
  return InvAs("linalg.inv_ex", a, check_errors);
}
StatusOr<Tensor> Inv(const Tensor& a) {
  OFL_ASSIGN_OR_RETURN(TensorList y, InvAs("linalg.inv", a, true));
  return std::move(y[0]);
}

StatusOr<Tensor> Det(const Tensor& a) {
  static const OpExpr& op =
      OpBuilder("det").Input("A").Output("out").Output("LU").Output("pivots").Get();
  OFL_RETURN_IF_ERROR(CheckMatrix("linalg.det", "A", a, /*square=*/true));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}));
  return std::move(y[0]);
}
StatusOr<TensorList> SlogDet(const Tensor& a) {
  static const OpExpr& op = OpBuilder("slogdet")
                                .Input("A")
                                .Output("sign")
                                .Output("logabsdet")
                                .Output("LU")
                                .Output("pivots")
                                .Get();
  OFL_RETURN_IF_ERROR(CheckMatrix("linalg.slogdet", "A", a, /*square=*/true));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}));
  y.resize(2);
  return y;
}
StatusOr<Tensor> LogDet(const Tensor& a) {
  OFL_RETURN_IF_ERROR(CheckMatrix("logdet", "input", a, /*square=*/true));
  OFL_ASSIGN_OR_RETURN(const TensorList y, SlogDet(a));
  // log of the sign: 0, or NaN; of 0 the logarithm is -inf already.
  OFL_ASSIGN_OR_RETURN(const Tensor root, Sqrt(y[0].Detach()));
  OFL_ASSIGN_OR_RETURN(const Tensor negative, Sub(root, root));
  return Add(y[1], negative);
}

StatusOr<TensorList> CholeskyEx(const Tensor& a, bool upper, bool check_errors) {
  return CholeskyAs("linalg.cholesky_ex", a, upper, check_errors);
}
StatusOr<Tensor> Cholesky(const Tensor& a, bool upper) {
  OFL_ASSIGN_OR_RETURN(TensorList y, CholeskyAs("linalg.cholesky", a, upper, true));
  return std::move(y[0]);
}

StatusOr<Tensor> CholeskySolve(const Tensor& b, const Tensor& l, bool upper) {
  constexpr char kName[] = "cholesky_solve";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "L", l, /*square=*/true));
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "B", b));
  OFL_ASSIGN_OR_RETURN(const Tensor lt, Mt(l));
  StatusOr<Tensor> y = SolveTriangular(upper ? lt : l, b, /*upper=*/false);
  if (!y.ok()) return Renamed(kName, y.status());
  return SolveTriangular(upper ? l : lt, *y, /*upper=*/true);
}
StatusOr<Tensor> CholeskyInverse(const Tensor& l, bool upper) {
  OFL_RETURN_IF_ERROR(CheckMatrix("cholesky_inverse", "L", l, /*square=*/true));
  OFL_ASSIGN_OR_RETURN(const Tensor one, Eye(l.shape()[l.ndim() - 1], {}, l.dtype(), l.device()));
  return CholeskySolve(one, l, upper);
}

StatusOr<TensorList> LuFactorEx(const Tensor& a, bool check_errors) {
  return LuFactorAs("linalg.lu_factor_ex", a, check_errors);
}
// A singular matrix has factors too: what they solve shows it.
StatusOr<TensorList> LuFactor(const Tensor& a) {
  OFL_ASSIGN_OR_RETURN(TensorList y, LuFactorAs("linalg.lu_factor", a, false));
  y.resize(2);
  return y;
}

StatusOr<Tensor> LuPermutation(const Tensor& pivots, int64_t rows, DType dtype) {
  static const OpExpr& op =
      OpBuilder("lu_permutation").Input("pivots").Output("rows").Attr("m").Get();
  OFL_ASSIGN_OR_RETURN(Tensor places, Call(op, {pivots}, {rows}));
  OFL_ASSIGN_OR_RETURN(places, Unsqueeze(places, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor all, Arange(Scalar(rows), {}, {}, {}, pivots.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor same, Eq(places, all));
  return Cast(same, dtype);
}

StatusOr<TensorList> LuUnpack(const Tensor& lu, const Tensor& pivots) {
  constexpr char kName[] = "lu_unpack";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "LU_data", lu));
  const int64_t m = lu.shape()[lu.ndim() - 2], n = lu.shape()[lu.ndim() - 1];
  const int64_t r = std::min(m, n);
  StatusOr<Tensor> permutation = LuPermutation(pivots, m, lu.dtype());
  if (!permutation.ok()) {
    return WithArgument(Renamed(kName, permutation.status()), "pivots", "LU_pivots");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor p, Mt(*permutation));
  OFL_ASSIGN_OR_RETURN(Tensor l, Slice(lu, -1, 0, r));
  OFL_ASSIGN_OR_RETURN(l, Tril(l, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor one, Eye(m, r, lu.dtype(), lu.device()));
  OFL_ASSIGN_OR_RETURN(l, Add(l, one));
  OFL_ASSIGN_OR_RETURN(Tensor u, Slice(lu, -2, 0, r));
  OFL_ASSIGN_OR_RETURN(u, Triu(u));
  return TensorList{p, std::move(l), std::move(u)};
}
StatusOr<TensorList> Lu(const Tensor& a) {
  OFL_ASSIGN_OR_RETURN(const TensorList y, LuFactorAs("linalg.lu", a, false));
  return LuUnpack(y[0], y[1]);
}

StatusOr<Tensor> LuSolve(const Tensor& given, const Tensor& pivots, const Tensor& b, bool left,
                         bool adjoint) {
  static const OpExpr& op = OpBuilder("lu_solve")
                                .Input("LU")
                                .Input("pivots")
                                .Input("B")
                                .Output("out")
                                .Attr("adjoint")
                                .Get();
  constexpr char kName[] = "linalg.lu_solve";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "LU", given, /*square=*/true));
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "B", b));
  OFL_RETURN_IF_ERROR(CheckSameDType(kName, given, "B", b));
  if (!pivots.defined()) return NotDefined(kName, "pivots");
  if (pivots.dtype() != DType::kInt32) {
    return UnsupportedDType(kName, "pivots", pivots.dtype(), "int32");
  }
  Dims rows = given.shape().dims();
  rows.pop_back();
  if (pivots.shape().dims() != rows) {
    return ShapeMismatch(kName, "pivots", pivots.shape(), ToString(rows));
  }
  Tensor lu = given, side = b;
  if (!left) {
    OFL_ASSIGN_OR_RETURN(side, Mt(side));
  }
  const int64_t n = lu.shape()[lu.ndim() - 1];
  if (side.shape()[side.ndim() - 2] != n) {
    return Error(ErrorKind::kShape, kName, "(): B has shape ", b.shape().ToString(), ", expected ",
                 n, left ? " rows" : " columns", " to go with a matrix of shape ",
                 lu.shape().ToString());
  }
  OFL_RETURN_IF_ERROR(BroadcastBatches(kName, &lu, &side));
  rows = lu.shape().dims();
  rows.pop_back();
  OFL_ASSIGN_OR_RETURN(const Tensor swaps, Expand(pivots, rows));
  OFL_ASSIGN_OR_RETURN(Tensor x, Call(op, {lu, swaps, side}, {adjoint == left}));
  return left ? StatusOr<Tensor>(std::move(x)) : Mt(x);
}

}  // namespace oneflow_lite::functional
