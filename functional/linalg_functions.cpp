// SPDX-License-Identifier: Apache-2.0
//
// The functions of linear algebra by their names: linalg_... are those of flow.linalg, the others
// are functions of flow and, most of them, methods.
#include "absl/strings/ascii.h"
#include "functional/argument_names.h"
#include "functional/copy.h"
#include "functional/linalg.h"
#include "functional/matrix.h"
#include "functional/products.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/statistics.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

// Tolerances that are numbers, as 0-dim tensors.
StatusOr<Tensor> AsTensor(const std::optional<double>& value) {
  return value ? ToTensor("linalg", Scalar(*value), DType::kFloat64) : StatusOr<Tensor>(Tensor());
}
template <auto kFunction>
StatusOr<Tensor> ByNumbers(const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                           bool hermitian) {
  OFL_ASSIGN_OR_RETURN(const Tensor absolute, AsTensor(atol));
  OFL_ASSIGN_OR_RETURN(const Tensor relative, AsTensor(rtol));
  return kFunction(a, absolute, relative, hermitian);
}
template <auto kFunction>
StatusOr<Tensor> ByShare(const Tensor& a, double share, bool hermitian) {
  return ByNumbers<kFunction>(a, {}, share, hermitian);
}
// An absolute tolerance, as it once was.
StatusOr<Tensor> RankBy(const Tensor& a, double tol, bool hermitian) {
  return ByNumbers<MatrixRank>(a, tol, 0.0, hermitian);
}
StatusOr<Tensor> Pinverse(const Tensor& a, double rcond) {
  return ByNumbers<Pinv>(a, {}, rcond, false);
}

StatusOr<TensorList> LuFactorFunction(const Tensor& a, bool pivot) {
  if (!pivot) return BadValue("linalg.lu_factor", "pivot", "False", "True");
  StatusOr<TensorList> y = LuFactorEx(a, /*check_errors=*/true);
  if (!y.ok()) return Renamed("linalg.lu_factor", y.status());
  y->resize(2);
  return y;
}
StatusOr<TensorList> LuFactorExFunction(const Tensor& a, bool pivot, bool check_errors) {
  if (!pivot) return BadValue("linalg.lu_factor_ex", "pivot", "False", "True");
  return LuFactorEx(a, check_errors);
}
// torch.lu's, whose pivots may come with LAPACK's info.
StatusOr<TensorList> OldLu(const Tensor& a, bool pivot, bool get_infos) {
  if (!pivot) return BadValue("lu", "pivot", "False", "True");
  if (!get_infos) return LuFactor(a);
  return LuFactorEx(a);
}
StatusOr<TensorList> LuFunction(const Tensor& a, bool pivot) {
  if (!pivot) return BadValue("linalg.lu", "pivot", "False", "True");
  return Lu(a);
}

// The dims given, or the last two.
absl::Span<const int64_t> DimsOfMatrix(const std::optional<Dims>& dim) {
  static constexpr int64_t kLastTwo[] = {-2, -1};
  return dim ? absl::MakeConstSpan(*dim) : absl::MakeConstSpan(kLastTwo);
}

StatusOr<Tensor> NamedNorm(const Tensor& a, absl::string_view ord, std::optional<Dims> dim,
                           bool keepdim, std::optional<DType> dtype) {
  if (!dim && a.defined() && a.ndim() != 2) {
    return ShapeMismatch("linalg.norm", "A", a.shape(), "2 dims where ord is a name without dim");
  }
  return MatrixNorm(a, ord, DimsOfMatrix(dim), keepdim, dtype);
}

// Without a dim, the first of 3 elements.
StatusOr<Tensor> CrossFunction(const Tensor& a, const Tensor& b, std::optional<int64_t> dim) {
  if (dim || !a.defined()) return Cross(a, b, dim.value_or(-1));
  for (int d = 0; d < a.ndim(); ++d) {
    if (a.shape()[d] == 3) return Cross(a, b, d);
  }
  return ShapeMismatch("cross", "input", a.shape(), "a dim of 3 elements");
}

// The older forms of PyTorch's top level.
StatusOr<TensorList> QrFunction(const Tensor& a, bool some) {
  return Qr(a, some ? "reduced" : "complete");
}
StatusOr<TensorList> SvdFunction(const Tensor& a, bool some, bool compute_uv) {
  if (!compute_uv)
    return Error(ErrorKind::kNotImplemented,
                 "svd(): compute_uv=False is "
                 "linalg.svdvals()");
  OFL_ASSIGN_OR_RETURN(TensorList y, Svd(a, !some));
  OFL_ASSIGN_OR_RETURN(y[2], Transpose(y[2], -2, -1));
  return y;
}
StatusOr<TensorList> TriangularSolve(const Tensor& b, const Tensor& a, bool upper, bool transpose,
                                     bool unitriangular) {
  OFL_ASSIGN_OR_RETURN(const Tensor at, transpose ? Transpose(a, -2, -1) : StatusOr<Tensor>(a));
  StatusOr<Tensor> x = SolveTriangular(at, b, upper != transpose, true, unitriangular);
  if (!x.ok()) return WithArgument(Renamed("triangular_solve", x.status()), "B", "b");
  OFL_ASSIGN_OR_RETURN(const Tensor copy, Clone(a));
  return TensorList{*std::move(x), copy};
}
StatusOr<Tensor> LuSolveFunction(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  StatusOr<Tensor> x = LuSolve(lu, pivots, b);
  if (x.ok()) return x;
  const Status named = WithArgument(Renamed("lu_solve", x.status()), "LU", "LU_data");
  return WithArgument(WithArgument(named, "pivots", "LU_pivots"), "B", "b");
}
StatusOr<TensorList> LuUnpackFunction(const Tensor& lu, const Tensor& pivots, bool data,
                                      bool with_pivots) {
  if (!data || !with_pivots) {
    return Error(ErrorKind::kNotImplemented, "lu_unpack(): unpacks both data and pivots");
  }
  return LuUnpack(lu, pivots);
}
StatusOr<Tensor> NuclearNorm(const Tensor& a, std::optional<Dims> dim, bool keepdim) {
  StatusOr<Tensor> y = MatrixNorm(a, "nuc", DimsOfMatrix(dim), keepdim);
  return y.ok() ? y : WithArgument(Renamed("nuclear_norm", y.status()), "A", "input");
}
StatusOr<Tensor> VectorNormFunction(const Tensor& x, double ord, std::optional<Dims> dim,
                                    bool keepdim, std::optional<DType> dtype) {
  StatusOr<Tensor> y = VectorNorm(x, ord, std::move(dim), keepdim, dtype);
  return y.ok() ? y : Renamed("linalg.vector_norm", y.status());
}

}  // namespace

// flow.linalg -------------------------------------------------------------------------------------

OFL_REGISTER_FUNCTION(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", Solve, kFunction,
    "X with A @ X = B, or X @ A = B where not left. LinAlgError where a matrix is\n"
    "singular. B is a vector where it has 1 dim, or A's shape less the last dim.");
OFL_REGISTER_FUNCTION(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
    "(Tensor result, Tensor info)",
    SolveEx, kFunction, "solve with LAPACK's info for each matrix in place of an error.");
OFL_REGISTER_FUNCTION(
    "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    SolveTriangular, kFunction, "solve for a triangular A, of which only the triangle is read.");
OFL_REGISTER_FUNCTION("linalg_inv(Tensor A) -> Tensor", Inv, kFunction,
                      "The inverse; LinAlgError where a matrix is singular.");
OFL_REGISTER_FUNCTION(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", InvEx,
    kFunction, "inv with LAPACK's info for each matrix in place of an error.");
OFL_REGISTER_FUNCTION("linalg_det(Tensor A) -> Tensor", Det, kFunction, "The determinant.");
OFL_REGISTER_FUNCTION("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", SlogDet,
                      kFunction, "The sign of the determinant and the logarithm of its size.");
OFL_REGISTER_FUNCTION(
    "linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor", Cholesky, kFunction,
    "L with L @ L.mT = A, or U with U.mT @ U = A where upper, for symmetric\n"
    "positive-definite matrices, of which one triangle is read. LinAlgError where\n"
    "one is not.");
OFL_REGISTER_FUNCTION(
    "linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> "
    "(Tensor L, Tensor info)",
    CholeskyEx, kFunction, "cholesky with LAPACK's info for each matrix in place of an error.");
OFL_REGISTER_ADAPTER(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    LuFactorFunction, LuFactor, kFunction,
    "L, below the diagonal, and U of A = P @ L @ U in one matrix, and the row,\n"
    "counted from 1, that each row changed places with. LinAlgError where U has a 0 on\n"
    "its diagonal, with which nothing can be solved; lu_factor_ex has it, too.");
OFL_REGISTER_ADAPTER(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
    "(Tensor LU, Tensor pivots, Tensor info)",
    LuFactorExFunction, LuFactorEx, kFunction, "lu_factor with LAPACK's info for each matrix.");
OFL_REGISTER_ADAPTER("lu(Tensor A, bool pivot=True, bool get_infos=False) -> Tensor[]", OldLu,
                     LuFactor, kMethod,
                     "LU and pivots as linalg.lu_factor gives them, and info where asked.");
OFL_REGISTER_ADAPTER("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
                     LuFunction, Lu, kFunction,
                     "A permutation and two triangles with A = P @ L @ U.");
OFL_REGISTER_FUNCTION(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
    "Tensor",
    LuSolve, kFunction, "X with A @ X = B by lu_factor of A; of A.mT where adjoint.");
OFL_REGISTER_FUNCTION(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", Qr, kFunction,
    "A = Q @ R: Q with orthonormal columns, R upper triangular. mode: \"reduced\";\n"
    "\"complete\", with a square Q; \"r\", with an empty one.");
OFL_REGISTER_FUNCTION(
    "linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, "
    "Tensor eigenvectors)",
    Eigh, kFunction,
    "Ascending eigenvalues of symmetric matrices, of which the triangle UPLO is\n"
    "read, and eigenvectors in columns. Gradients of the vectors of equal\n"
    "eigenvalues are not finite.");
OFL_REGISTER_FUNCTION("linalg_eigvalsh(Tensor A, str UPLO='L') -> Tensor", Eigvalsh, kFunction,
                      "The eigenvalues of eigh.");
OFL_REGISTER_FUNCTION(
    "linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)", Svd,
    kFunction,
    "A = U @ diag(S) @ Vh with S descending. U and Vh are square where full_matrices. Gradients\n"
    "of U and Vh of equal singular values are not finite.");
OFL_REGISTER_FUNCTION("linalg_svdvals(Tensor A) -> Tensor", Svdvals, kFunction,
                      "The singular values, descending.");
OFL_REGISTER_FUNCTION(
    "linalg_lstsq(Tensor A, Tensor B, float? rcond=None, *, str? driver=None) -> "
    "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    Lstsq, kFunction,
    "X of the least norm(A @ X - B). Residuals are there for more rows than columns and full\n"
    "rank. driver: LAPACK's gelsy (for the CPU), gels (for CUDA, and full rank), gelsd or gelss.");
OFL_REGISTER_ADAPTER(
    "linalg_pinv(Tensor A, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    ByNumbers<Pinv>, Pinv, kFunction,
    "The Moore-Penrose inverse: singular values up to max(atol, rtol * the largest) count as 0.\n"
    "rtol is max(m, n) times the dtype's epsilon where neither is given. Both may be tensors.");
OFL_REGISTER_FUNCTION(
    "linalg_pinv.tensors(Tensor A, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor",
    Pinv, kFunction, "");
OFL_REGISTER_ADAPTER("linalg_pinv.share(Tensor A, float rcond, bool hermitian=False) -> Tensor",
                     ByShare<Pinv>, Pinv, kFunction, "");
OFL_REGISTER_ADAPTER(
    "linalg_matrix_rank(Tensor A, *, float? atol=None, float? rtol=None, bool hermitian=False) -> "
    "Tensor",
    ByNumbers<MatrixRank>, MatrixRank, kFunction,
    "How many singular values are above max(atol, rtol * the largest), as in pinv.");
OFL_REGISTER_FUNCTION(
    "linalg_matrix_rank.tensors(Tensor A, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    MatrixRank, kFunction, "");
OFL_REGISTER_ADAPTER("linalg_matrix_rank.tol(Tensor A, float tol, bool hermitian=False) -> Tensor",
                     RankBy, MatrixRank, kFunction, "");
OFL_REGISTER_FUNCTION(
    "linalg_cond(Tensor A, Scalar? p=None) -> Tensor",
    (Overload<const Tensor&, std::optional<Scalar>>(Cond)), kFunction,
    "The norm of A times that of its inverse, infinite where it has none. p is 2\n"
    "(for None), -2, 1, -1, inf, -inf, \"fro\" or \"nuc\".");
OFL_REGISTER_FUNCTION("linalg_cond.name(Tensor A, str p) -> Tensor",
                      (Overload<const Tensor&, absl::string_view>(Cond)), kFunction, "");
OFL_REGISTER_FUNCTION("linalg_matrix_power(Tensor A, int n) -> Tensor", MatrixPower, kFunction,
                      "A times itself n times; of a negative n that of the inverse.");
OFL_REGISTER_FUNCTION("linalg_matrix_exp(Tensor A) -> Tensor", MatrixExp, kFunction,
                      "The sum of A^k / k!.");
OFL_REGISTER_FUNCTION(
    "linalg_matrix_norm(Tensor A, str ord='fro', int[] dim=[-2 -1], bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    (Overload<const Tensor&, absl::string_view, absl::Span<const int64_t>, bool,
              std::optional<DType>>(MatrixNorm)),
    kFunction,
    "A norm of matrices: \"fro\", \"nuc\" (the sum of singular values), 2, -2 (the largest, the\n"
    "least of them), 1, -1 (the largest, the least sum of a column's sizes), inf, -inf (a row's).");
OFL_REGISTER_FUNCTION(
    "linalg_matrix_norm.number(Tensor A, float ord, int[] dim=[-2 -1], bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    (Overload<const Tensor&, double, absl::Span<const int64_t>, bool, std::optional<DType>>(
        MatrixNorm)),
    kFunction, "");
OFL_REGISTER_FUNCTION(
    "linalg_norm(Tensor A, Scalar? ord=None, int[]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    LinalgNorm, kFunction,
    "The root of the sum of squares; with ord vector_norm over one dim, matrix_norm over two.");
OFL_REGISTER_ADAPTER(
    "linalg_norm.name(Tensor A, str ord, int[]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    NamedNorm, MatrixNorm, kFunction, "");
OFL_REGISTER_ADAPTER(
    "linalg_vector_norm(Tensor x, float ord=2, int[]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    VectorNormFunction, VectorNorm, kFunction,
    "The norm of vectors along the dims, or of all elements.");
OFL_REGISTER_FUNCTION("linalg_multi_dot(Tensor[] tensors) -> Tensor", MultiDot, kFunction,
                      "The product of matrices in the order of the fewest multiplications; the\n"
                      "first and the last may be vectors.");
OFL_REGISTER_FUNCTION(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", Diagonal,
    kFunction, "flow.diagonal of the last two dims.");
OFL_REGISTER_FUNCTION("linalg_cross(Tensor input, Tensor other, *, int dim=-1) -> Tensor", Cross,
                      kFunction, "The cross product of vectors of 3 elements along dim.");
OFL_REGISTER_FUNCTION("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", VecDot,
                      kFunction, "The sum of products along dim.");
OFL_REGISTER_FUNCTION("linalg_vander(Tensor x, *, int? N=None) -> Tensor", Vander, kFunction,
                      "The powers 0 to N - 1 of each element, in rows.");
OFL_REGISTER_FUNCTION("linalg_tensorinv(Tensor A, int ind=2) -> Tensor", TensorInv, kFunction,
                      "The inverse of tensordot with A, whose first ind dims are the rows.");
OFL_REGISTER_FUNCTION("linalg_tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor",
                      TensorSolve, kFunction,
                      "X with tensordot(A, X, X.ndim) = B; dims of A are moved to its end first.");

// flow --------------------------------------------------------------------------------------------

OFL_REGISTER_FUNCTION("inverse(Tensor input) -> Tensor", Inv, kMethod, "linalg.inv.");
OFL_REGISTER_FUNCTION("det(Tensor input) -> Tensor", Det, kMethod, "linalg.det.");
OFL_REGISTER_FUNCTION("slogdet(Tensor input) -> (Tensor sign, Tensor logabsdet)", SlogDet, kMethod,
                      "linalg.slogdet.");
OFL_REGISTER_FUNCTION("logdet(Tensor input) -> Tensor", LogDet, kMethod,
                      "The logarithm of the determinant: -inf where it is 0, NaN below.");
OFL_REGISTER_FUNCTION("cholesky(Tensor input, bool upper=False) -> Tensor", Cholesky, kMethod,
                      "linalg.cholesky.");
OFL_REGISTER_FUNCTION("cholesky_solve(Tensor B, Tensor L, bool upper=False) -> Tensor",
                      CholeskySolve, kMethod, "X with A @ X = B, by A's factor.");
OFL_REGISTER_FUNCTION("cholesky_inverse(Tensor L, bool upper=False) -> Tensor", CholeskyInverse,
                      kMethod, "The inverse of A, by A's factor.");
OFL_REGISTER_FUNCTION("matrix_power(Tensor input, int n) -> Tensor", MatrixPower, kMethod,
                      "linalg.matrix_power.");
OFL_REGISTER_FUNCTION("matrix_exp(Tensor input) -> Tensor", MatrixExp, kMethod,
                      "linalg.matrix_exp.");
OFL_REGISTER_ADAPTER("pinverse(Tensor input, float rcond=1e-15) -> Tensor", Pinverse, Pinv, kMethod,
                     "linalg.pinv with rtol=rcond.");
OFL_REGISTER_ADAPTER("qr(Tensor input, bool some=True) -> (Tensor Q, Tensor R)", QrFunction, Qr,
                     kMethod, "linalg.qr, \"reduced\" where some, else \"complete\".");
OFL_REGISTER_ADAPTER(
    "svd(Tensor input, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    SvdFunction, Svd, kMethod, "linalg.svd with V in place of its transpose.");
OFL_REGISTER_ADAPTER(
    "triangular_solve(Tensor b, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    TriangularSolve, SolveTriangular, kMethod,
    "linalg.solve_triangular, of A.mT where transpose; and A.");
OFL_REGISTER_ADAPTER("lu_solve(Tensor b, Tensor LU_data, Tensor LU_pivots) -> Tensor",
                     LuSolveFunction, LuSolve, kMethod, "linalg.lu_solve.");
OFL_REGISTER_ADAPTER(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    LuUnpackFunction, LuUnpack, kFunction, "P, L and U of what linalg.lu_factor gives.");
OFL_REGISTER_FUNCTION("chain_matmul(Tensor... matrices) -> Tensor", MultiDot, kFunction,
                      "linalg.multi_dot.");
OFL_REGISTER_ADAPTER("nuclear_norm(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
                     NuclearNorm, MatrixNorm, kFunction, "The sum of the singular values.");
OFL_REGISTER_ADAPTER("cross(Tensor input, Tensor other, int? dim=None) -> Tensor", CrossFunction,
                     Cross, kMethod, "linalg.cross; without a dim along the first of 3 elements.");

}  // namespace oneflow_lite::functional
