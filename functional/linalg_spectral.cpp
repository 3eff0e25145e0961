// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/everywhere.h"
#include "functional/host_value.h"
#include "functional/linalg.h"
#include "functional/linalg_call.h"
#include "functional/matmul.h"
#include "functional/reduce.h"
#include "functional/shapes.h"
#include "functional/triangle.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kNotConverged[] =
    "the algorithm did not converge: {} elements remained beside the diagonal";

double EpsilonOf(DType dtype) {
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                  : std::numeric_limits<float>::epsilon();
}
int64_t LargerSide(const Tensor& a) {
  return std::max(a.shape()[a.ndim() - 1], a.shape()[a.ndim() - 2]);
}

// Whether a gradient of what is made of t may be asked for.
bool Recorded(const Tensor& t) { return GradEnabled() && autograd::RequiresGrad(t); }

StatusOr<TensorList> CallEigh(const char* name, const Tensor& a, absl::string_view uplo,
                              bool vectors) {
  static const OpExpr& op = OpBuilder("eigh")
                                .Input("A")
                                .Output("eigenvalues")
                                .Output("eigenvectors")
                                .Output("info")
                                .Attr("upper")
                                .Attr("vectors")
                                .Get();
  OFL_RETURN_IF_ERROR(CheckMatrix(name, "A", a, /*square=*/true));
  const bool upper = uplo == "U" || uplo == "u";
  if (!upper && uplo != "L" && uplo != "l") {
    return BadValue(name, "UPLO", absl::StrCat("\"", uplo, "\""), "\"L\" or \"U\"");
  }
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}, {upper, vectors}));
  OFL_RETURN_IF_ERROR(CheckInfo(name, y[2], kNotConverged));
  return y;
}

StatusOr<TensorList> CallSvd(const char* name, const Tensor& a, bool full_matrices, bool vectors) {
  static const OpExpr& op = OpBuilder("svd")
                                .Input("A")
                                .Output("U")
                                .Output("S")
                                .Output("Vh")
                                .Output("info")
                                .Attr("full_matrices")
                                .Attr("vectors")
                                .Get();
  OFL_RETURN_IF_ERROR(CheckMatrix(name, "A", a));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a}, {full_matrices, vectors}));
  OFL_RETURN_IF_ERROR(CheckInfo(name, y[3], kNotConverged));
  return y;
}

}  // namespace

StatusOr<TensorList> Qr(const Tensor& a, absl::string_view mode) {
  static const OpExpr& op = OpBuilder("qr").Input("A").Output("Q").Output("R").Attr("mode").Get();
  OFL_RETURN_IF_ERROR(CheckMatrix("linalg.qr", "A", a));
  if (mode != "reduced" && mode != "complete" && mode != "r") {
    return BadValue("linalg.qr", "mode", absl::StrCat("\"", mode, "\""),
                    "\"reduced\", \"complete\" or \"r\"");
  }
  return CallAll(op, {a}, {std::string(mode)});
}

StatusOr<TensorList> Eigh(const Tensor& a, absl::string_view uplo) {
  OFL_ASSIGN_OR_RETURN(TensorList y, CallEigh("linalg.eigh", a, uplo, true));
  y.resize(2);
  return y;
}
StatusOr<Tensor> Eigvalsh(const Tensor& a, absl::string_view uplo) {
  // The gradient is made of the vectors.
  OFL_ASSIGN_OR_RETURN(TensorList y, CallEigh("linalg.eigvalsh", a, uplo, Recorded(a)));
  return std::move(y[0]);
}

StatusOr<TensorList> Svd(const Tensor& a, bool full_matrices) {
  OFL_ASSIGN_OR_RETURN(TensorList y, CallSvd("linalg.svd", a, full_matrices, true));
  y.resize(3);
  return y;
}
StatusOr<Tensor> Svdvals(const Tensor& a) {
  OFL_ASSIGN_OR_RETURN(TensorList y, CallSvd("linalg.svdvals", a, false, Recorded(a)));
  return std::move(y[1]);
}

namespace {

// By Q and R of a full rank, for a device without the other drivers.
StatusOr<Tensor> LeastSquaresByQr(const Tensor& a, const Tensor& b) {
  const bool tall = a.shape()[a.ndim() - 2] >= a.shape()[a.ndim() - 1];
  OFL_ASSIGN_OR_RETURN(const Tensor at, Transpose(a, -2, -1));
  OFL_ASSIGN_OR_RETURN(const TensorList y, Qr(tall ? a : at));
  OFL_ASSIGN_OR_RETURN(const Tensor qt, Transpose(y[0], -2, -1));
  if (tall) {  // R X = Q^T B
    OFL_ASSIGN_OR_RETURN(const Tensor c, Matmul(qt, b));
    return SolveTriangular(y[1], c, /*upper=*/true);
  }
  // A^T = Q R: X = Q Y with R^T Y = B
  OFL_ASSIGN_OR_RETURN(const Tensor rt, Transpose(y[1], -2, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor c, SolveTriangular(rt, b, /*upper=*/false));
  return Matmul(y[0], c);
}

// The sums of squares that are left, where all matrices have full rank and more rows than columns.
StatusOr<Tensor> Residuals(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& rank) {
  const int64_t m = a.shape()[a.ndim() - 2], n = a.shape()[a.ndim() - 1];
  bool known = m > n;
  if (known && rank.numel() > 0 && HasData(rank)) {
    OFL_ASSIGN_OR_RETURN(const Tensor least, Amin(rank));
    OFL_ASSIGN_OR_RETURN(const int64_t value, ValueOf<int64_t>("linalg.lstsq", least));
    known = value == n;
  }
  if (!known) return Empty({0}, a.dtype(), a.device());
  OFL_ASSIGN_OR_RETURN(Tensor left, Matmul(a, x));
  OFL_ASSIGN_OR_RETURN(left, Sub(left, b));
  OFL_ASSIGN_OR_RETURN(left, Mul(left, left));
  return Sum(left, Dims{-2});
}

StatusOr<TensorList> CallLstsq(const Tensor& a, const Tensor& b, double rcond,
                               const std::string& driver) {
  static const OpExpr& op = OpBuilder("lstsq")
                                .Input("A")
                                .Input("B")
                                .Output("solution")
                                .Output("rank")
                                .Output("singular_values")
                                .Output("info")
                                .Attr("rcond")
                                .Attr("driver")
                                .Get();
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {a, b}, {rcond, driver}));
  OFL_RETURN_IF_ERROR(
      CheckInfo("linalg.lstsq", y[3],
                driver == "gels" ? "the matrix does not have full rank" : kNotConverged));
  return y;
}

}  // namespace

StatusOr<TensorList> Lstsq(const Tensor& given, const Tensor& given_b, std::optional<double> rcond,
                           const std::optional<std::string>& driver) {
  constexpr char kName[] = "linalg.lstsq";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "A", given));
  OFL_RETURN_IF_ERROR(CheckSameDType(kName, given, "B", given_b));
  const bool on_cuda = given.device().type == DeviceType::kCUDA;
  const std::string way = driver.value_or(on_cuda ? "gels" : "gelsy");
  const bool known = way == "gels" || way == "gelsy" || way == "gelsd" || way == "gelss";
  if (!known || (on_cuda && way != "gels")) {
    return BadValue(kName, "driver", absl::StrCat("\"", way, "\""),
                    on_cuda ? "\"gels\" on CUDA" : "\"gels\", \"gelsy\", \"gelsd\" or \"gelss\"");
  }
  Dims rows = given.shape().dims();
  rows.pop_back();
  const bool vector = given_b.shape().dims() == rows;
  Tensor a = given, b = given_b;
  if (vector) {
    OFL_ASSIGN_OR_RETURN(b, Unsqueeze(b, -1));
  }
  if (b.ndim() < 2 || b.shape()[b.ndim() - 2] != a.shape()[a.ndim() - 2]) {
    return ShapeMismatch(kName, "B", given_b.shape(),
                         absl::StrCat(a.shape()[a.ndim() - 2], " rows to go with A of shape ",
                                      a.shape().ToString()));
  }
  OFL_RETURN_IF_ERROR(BroadcastBatches(kName, &a, &b));
  OFL_ASSIGN_OR_RETURN(const Tensor none, Empty({0}, a.dtype(), a.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor no_rank, Empty({0}, DType::kInt64, a.device()));
  TensorList y;
  if (on_cuda) {
    OFL_ASSIGN_OR_RETURN(Tensor x, LeastSquaresByQr(a, b));
    y = {std::move(x), none, no_rank, none};
  } else {
    const double share = rcond.value_or(EpsilonOf(a.dtype()) * static_cast<double>(LargerSide(a)));
    OFL_ASSIGN_OR_RETURN(TensorList found, CallLstsq(a, b, share, way));
    const bool values = way == "gelsd" || way == "gelss";
    y = {found[0], none, way == "gels" ? no_rank : found[1], values ? found[2] : none};
  }
  OFL_ASSIGN_OR_RETURN(y[1], Residuals(a, b, y[0], y[2]));
  if (vector) {
    OFL_ASSIGN_OR_RETURN(y[0], Squeeze(y[0], Dims{-1}));
  }
  return y;
}

namespace {

// {atol, rtol} of each matrix, with a last dim of 2 or, for the same, apart.
StatusOr<TensorList> Tolerances(const char* name, const Tensor& a, const Tensor& atol,
                                const Tensor& rtol) {
  const double standard =
      atol.defined() ? 0.0 : EpsilonOf(a.dtype()) * static_cast<double>(LargerSide(a));
  const Dims batch = BatchOf(a);
  const GlobalScope like(absl::MakeConstSpan(&a, 1));
  TensorList both;
  for (const Tensor& given : {atol, rtol}) {
    Tensor t = given;
    if (!t.defined()) {
      const double value = both.empty() ? 0.0 : standard;
      OFL_ASSIGN_OR_RETURN(t, Full({}, Scalar(value), a.dtype(), a.device()));
    }
    OFL_ASSIGN_OR_RETURN(t, To(t.Detach(), a.device(), a.dtype()));
    if (t.ndim() == 0) {  // a number, the same on all ranks
      OFL_ASSIGN_OR_RETURN(t, Everywhere(t));
    }
    StatusOr<Tensor> wide = Expand(t, batch);
    if (!wide.ok()) return Renamed(name, wide.status());
    both.push_back(*std::move(wide));
  }
  return both;
}

// A of which the lower triangle is read, as a whole.
StatusOr<Tensor> Symmetric(const Tensor& a) {
  OFL_ASSIGN_OR_RETURN(const Tensor lower, Tril(a));
  OFL_ASSIGN_OR_RETURN(Tensor upper, Tril(a, -1));
  OFL_ASSIGN_OR_RETURN(upper, Transpose(upper, -2, -1));
  return Add(lower, upper);
}

}  // namespace

StatusOr<Tensor> Pinv(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  static const OpExpr& op =
      OpBuilder("pinv").Input("A").Input("tolerances").Output("out").Output("info").Get();
  constexpr char kName[] = "linalg.pinv";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "A", a, hermitian));
  OFL_ASSIGN_OR_RETURN(const TensorList both, Tolerances(kName, a, atol, rtol));
  OFL_ASSIGN_OR_RETURN(const Tensor pairs, Stack(both, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor matrix, hermitian ? Symmetric(a) : StatusOr<Tensor>(a));
  OFL_ASSIGN_OR_RETURN(TensorList y, CallAll(op, {matrix, pairs}));
  OFL_RETURN_IF_ERROR(CheckInfo(kName, y[1], kNotConverged));
  return std::move(y[0]);
}

StatusOr<Tensor> MatrixRank(const Tensor& a, const Tensor& atol, const Tensor& rtol,
                            bool hermitian) {
  constexpr char kName[] = "linalg.matrix_rank";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "A", a, hermitian));
  OFL_ASSIGN_OR_RETURN(const TensorList both, Tolerances(kName, a, atol, rtol));
  GradGuard no_grad(false);
  OFL_ASSIGN_OR_RETURN(Tensor s, hermitian ? Eigvalsh(a) : Svdvals(a));
  if (hermitian) {
    OFL_ASSIGN_OR_RETURN(s, Abs(s));
  }
  if (s.shape()[s.ndim() - 1] == 0) return Zeros(BatchOf(a), DType::kInt64, a.device());
  OFL_ASSIGN_OR_RETURN(const Tensor largest, Amax(s, Dims{-1}));
  OFL_ASSIGN_OR_RETURN(Tensor least, Mul(both[1], largest));
  OFL_ASSIGN_OR_RETURN(least, Maximum(both[0], least));
  OFL_ASSIGN_OR_RETURN(least, Unsqueeze(least, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor counted, Gt(s, least));
  return Sum(counted, Dims{-1});
}

}  // namespace oneflow_lite::functional
