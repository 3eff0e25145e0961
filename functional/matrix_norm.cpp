// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/linalg.h"
#include "functional/linalg_call.h"
#include "functional/matrix.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/statistics.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite::functional {
namespace {

// The two dims of the matrices, from the front.
StatusOr<Dims> MatrixDims(const char* name, const Tensor& a, absl::Span<const int64_t> dims) {
  if (!a.defined()) return NotDefined(name, "A");
  if (a.ndim() < 2) return ShapeMismatch(name, "A", a.shape(), "at least 2 dims");
  if (dims.size() != 2) return BadValue(name, "dim", ToString(dims), "two dims");
  return WrapDims(name, a, dims);
}

// Singular values and matrix norms are made of floats.
StatusOr<Tensor> Floating(const char* name, const Tensor& a, std::optional<DType> dtype) {
  if (dtype && !IsFloating(*dtype)) {
    return UnsupportedDType(name, "dtype", *dtype, kFloatingDTypes);
  }
  if (!IsFloating(a.dtype())) return UnsupportedDType(name, "A", a.dtype(), kFloatingDTypes);
  return dtype ? Cast(a, *dtype) : StatusOr<Tensor>(a);
}

Status CheckOrd(const char* name, const char* argument, absl::string_view ord) {
  if (ord == "fro" || ord == "nuc") return OkStatus();
  return BadValue(name, argument, absl::StrCat("\"", ord, "\""), "\"fro\", \"nuc\" or a number");
}
Status CheckOrd(const char* name, const char* argument, double ord) {
  const double size = std::fabs(ord);
  if (size == 1 || size == 2 || std::isinf(ord)) return OkStatus();
  return BadValue(name, argument, absl::StrCat(ord), "1, -1, 2, -2, inf, -inf, \"fro\" or \"nuc\"");
}

// The largest of what is not negative; 0 of nothing.
StatusOr<Tensor> Largest(const Tensor& x, int64_t dim, bool keepdim) {
  const bool none = x.shape()[static_cast<int>(dim)] == 0;
  return none ? Sum(x, Dims{dim}, keepdim, x.dtype()) : Amax(x, Dims{dim}, keepdim);
}

// The sums of sizes along one dim, and the largest or least of them along the other.
StatusOr<Tensor> BySums(const Tensor& a, int64_t summed, int64_t other, bool largest) {
  OFL_ASSIGN_OR_RETURN(const Tensor sizes, Abs(a));
  OFL_ASSIGN_OR_RETURN(const Tensor sums, Sum(sizes, Dims{summed}, true, a.dtype()));
  return largest ? Largest(sums, other, true) : Amin(sums, Dims{other}, true);
}

// What becomes of the singular values.
enum class Spectral { kLargest, kLeast, kSum };

StatusOr<Tensor> BySingularValues(const Tensor& a, const Dims& dims, Spectral which) {
  OFL_ASSIGN_OR_RETURN(const Tensor matrices, Movedim(a, dims, {-2, -1}));
  OFL_ASSIGN_OR_RETURN(const Tensor s, Svdvals(matrices));
  OFL_ASSIGN_OR_RETURN(Tensor y, which == Spectral::kSum       ? Sum(s, Dims{-1})
                                 : which == Spectral::kLargest ? Largest(s, s.ndim() - 1, false)
                                                               : Amin(s, Dims{-1}));
  Dims kept = dims;
  std::sort(kept.begin(), kept.end());
  for (int64_t d : kept) {
    OFL_ASSIGN_OR_RETURN(y, Unsqueeze(y, d));
  }
  return y;
}

StatusOr<Tensor> WithDims(StatusOr<Tensor> y, const Dims& dims, bool keepdim) {
  return !y.ok() || keepdim ? y : Squeeze(*y, dims);
}

}  // namespace

StatusOr<Tensor> MatrixNorm(const Tensor& given, absl::string_view ord,
                            absl::Span<const int64_t> dim, bool keepdim,
                            std::optional<DType> dtype) {
  constexpr char kName[] = "linalg.matrix_norm";
  OFL_ASSIGN_OR_RETURN(const Dims dims, MatrixDims(kName, given, dim));
  OFL_RETURN_IF_ERROR(CheckOrd(kName, "ord", ord));
  OFL_ASSIGN_OR_RETURN(const Tensor a, Floating(kName, given, dtype));
  if (ord == "fro") return VectorNorm(a, 2, dims, keepdim, {});
  StatusOr<Tensor> y = BySingularValues(a, dims, Spectral::kSum);
  return y.ok() ? WithDims(std::move(y), dims, keepdim) : Renamed(kName, y.status());
}

StatusOr<Tensor> MatrixNorm(const Tensor& given, double ord, absl::Span<const int64_t> dim,
                            bool keepdim, std::optional<DType> dtype) {
  constexpr char kName[] = "linalg.matrix_norm";
  OFL_ASSIGN_OR_RETURN(const Dims dims, MatrixDims(kName, given, dim));
  OFL_RETURN_IF_ERROR(CheckOrd(kName, "ord", ord));
  OFL_ASSIGN_OR_RETURN(const Tensor a, Floating(kName, given, dtype));
  const double size = std::fabs(ord);
  StatusOr<Tensor> y;
  if (size == 2) {
    y = BySingularValues(a, dims, ord > 0 ? Spectral::kLargest : Spectral::kLeast);
  } else {
    const int columns = size == 1 ? 0 : 1;  // 1: the sums of columns
    y = BySums(a, dims[columns], dims[1 - columns], ord > 0);
  }
  return y.ok() ? WithDims(std::move(y), dims, keepdim) : Renamed(kName, y.status());
}

StatusOr<Tensor> LinalgNorm(const Tensor& x, std::optional<Scalar> ord, std::optional<Dims> dims,
                            bool keepdim, std::optional<DType> dtype) {
  constexpr char kName[] = "linalg.norm";
  if (!x.defined()) return NotDefined(kName, "A");
  OFL_ASSIGN_OR_RETURN(const Tensor a, Floating(kName, x, dtype));
  if (!ord) return VectorNorm(a, 2, dims, keepdim, {});
  if (dims && dims->size() > 2) {
    return BadValue(kName, "dim", ToString(*dims), "one or two dims where ord is given");
  }
  if (!dims && a.ndim() != 1 && a.ndim() != 2) {
    return ShapeMismatch(kName, "A", a.shape(), "1 or 2 dims where ord is given without dim");
  }
  const double p = ord->to<double>();
  if ((dims ? dims->size() : static_cast<size_t>(a.ndim())) == 1) {
    return VectorNorm(a, p, dims, keepdim, {});
  }
  return MatrixNorm(a, p, dims ? absl::MakeConstSpan(*dims) : absl::Span<const int64_t>({-2, -1}),
                    keepdim);
}

namespace {

template <class Ord>
StatusOr<Tensor> CondBy(const Tensor& a, Ord ord) {
  constexpr char kName[] = "linalg.cond";
  // As in PyTorch, matrices without elements have the number 0, and need be square for a name
  // alone.
  const bool nothing = a.defined() && a.numel() == 0;
  const bool square = !nothing || std::is_convertible_v<Ord, absl::string_view>;
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "A", a, square));
  OFL_RETURN_IF_ERROR(CheckOrd(kName, "p", ord));
  if (nothing) return Zeros(BatchOf(a), a.dtype(), a.device());
  StatusOr<Tensor> norm = MatrixNorm(a, ord);
  if (!norm.ok()) return Renamed(kName, norm.status());
  OFL_ASSIGN_OR_RETURN(const TensorList inverse, InvEx(a));
  StatusOr<Tensor> other = MatrixNorm(inverse[0], ord);
  if (!other.ok()) return Renamed(kName, other.status());
  OFL_ASSIGN_OR_RETURN(const Tensor product, Mul(*norm, *other));
  OFL_ASSIGN_OR_RETURN(const Tensor singular, Ne(inverse[1], Scalar(0)));
  return MaskedFill(product, singular, Scalar(HUGE_VAL));
}

}  // namespace

StatusOr<Tensor> Cond(const Tensor& a, absl::string_view p) { return CondBy(a, p); }
StatusOr<Tensor> Cond(const Tensor& a, std::optional<Scalar> p) {
  const double ord = p ? p->to<double>() : 2.0;
  if (std::fabs(ord) != 2 || !a.defined() || a.numel() == 0) return CondBy(a, ord);
  OFL_RETURN_IF_ERROR(CheckMatrix("linalg.cond", "A", a));
  const int64_t r = std::min(a.shape()[a.ndim() - 1], a.shape()[a.ndim() - 2]);
  OFL_ASSIGN_OR_RETURN(const Tensor s, Svdvals(a));
  OFL_ASSIGN_OR_RETURN(const Tensor largest, Select(s, -1, 0));
  OFL_ASSIGN_OR_RETURN(const Tensor least, Select(s, -1, r - 1));
  return ord > 0 ? Div(largest, least) : Div(least, largest);
}

}  // namespace oneflow_lite::functional
