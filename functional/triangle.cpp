// SPDX-License-Identifier: Apache-2.0
#include "functional/triangle.h"

#include <algorithm>

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/everywhere.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

Status CheckSize(const char* name, const char* argument, int64_t size) {
  if (size >= 0) return OkStatus();
  return Error(ErrorKind::kValue, name, "(): ", argument, " is ", size,
               ", but it must not be negative");
}

// `input`: what errors call x.
StatusOr<Tensor> CallTriangle(const OpExpr& op, const char* name, const char* input,
                              const Tensor& x, int64_t diagonal, bool lower) {
  if (!x.defined()) return NotDefined(name, input);
  if (x.ndim() < 2) return ShapeMismatch(name, input, x.shape(), "at least 2 dims");
  const int64_t rows = x.shape()[x.ndim() - 2], cols = x.shape()[x.ndim() - 1];
  // Beyond the matrix all diagonals are alike, and the sum with a row is none that overflows.
  return Call(op, {x}, {std::clamp(diagonal, -rows - 1, cols + 1), lower});
}
StatusOr<Tensor> Triangle(const char* name, const Tensor& x, int64_t diagonal, bool lower) {
  static const OpExpr& op =
      OpBuilder("triangle").Input("in").Output("out").Attr("diagonal").Attr("lower").Get();
  return CallTriangle(op, name, "input", x, diagonal, lower);
}
StatusOr<Tensor> TriangleInto(const char* name, const Tensor& self, int64_t diagonal, bool lower) {
  static const OpExpr& op =
      OpBuilder("triangle_").Input("self").Output("out").Attr("diagonal").Attr("lower").Get();
  StatusOr<Tensor> y = CallTriangle(op, name, "self", self, diagonal, lower);
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed(name, y.status()));
}

// How many places of [rows, cols] are on and below a diagonal, whose offset is in [-rows, cols].
__int128 OnAndBelow(__int128 rows, __int128 cols, __int128 offset) {
  const __int128 first = std::max<__int128>(0, -offset);  // the row that has one
  const __int128 whole = std::clamp(cols - offset - 1, first, rows);
  const __int128 growing = whole - first, least = first + offset + 1;
  return growing * (2 * least + growing - 1) / 2 + (rows - whole) * cols;
}

StatusOr<Tensor> TriangleIndices(const char* name, int64_t rows, int64_t cols, int64_t offset,
                                 bool lower, std::optional<DType> dtype,
                                 std::optional<Device> device) {
  OFL_RETURN_IF_ERROR(CheckSize(name, "row", rows));
  OFL_RETURN_IF_ERROR(CheckSize(name, "col", cols));
  offset = std::clamp(offset, -rows, cols);
  // Of a row the columns that the triangle keeps: from first to last.
  const auto range = [&](int64_t r) {
    const int64_t at = std::clamp<int64_t>(r + offset + lower, 0, cols);
    return lower ? std::pair<int64_t, int64_t>(0, at) : std::pair<int64_t, int64_t>(at, cols);
  };
  // Those above a diagonal are those that are not on or below the next one.
  const __int128 below = OnAndBelow(rows, cols, lower ? offset : std::max(offset - 1, -rows));
  const __int128 kept = lower ? below : static_cast<__int128>(rows) * cols - below;
  const auto count = static_cast<int64_t>(std::min<__int128>(kept, INT64_MAX));
  OFL_ASSIGN_OR_RETURN(const Tensor places,
                       Tensor::Empty(Shape{2, count}, DType::kInt64, Device{}));
  int64_t* row = static_cast<int64_t*>(places.data());
  int64_t* col = row + count;
  // Rows without any, which may be very many, are left out.
  const int64_t first = lower ? std::max<int64_t>(0, -offset) : 0;
  const __int128 above = static_cast<__int128>(cols) - offset;
  const auto last = cols == 0 ? 0
                    : lower   ? rows
                              : static_cast<int64_t>(std::clamp<__int128>(above, 0, rows));
  for (int64_t r = first; r < last; ++r) {
    for (int64_t c = range(r).first; c < range(r).second; ++c) {
      *row++ = r;
      *col++ = c;
    }
  }
  OFL_ASSIGN_OR_RETURN(const Tensor there, To(places, device, dtype));
  return Everywhere(there);
}

StatusOr<Tensor> LocalEye(int64_t n, int64_t cols, std::optional<DType> dtype,
                          std::optional<Device> device) {
  const GlobalScope local(nullptr, {});
  OFL_ASSIGN_OR_RETURN(const Tensor y, Zeros({n, cols}, dtype, device));
  OFL_ASSIGN_OR_RETURN(const Tensor diagonal, Diagonal(y));
  OFL_RETURN_IF_ERROR(FillInto(diagonal, Scalar(1)).status());
  return y;
}

// Where all indices are the same. Global where x is, and whole.
StatusOr<Tensor> OnDiagonal(const Tensor& x, bool wraps) {
  const GlobalScope like(absl::MakeConstSpan(&x, 1));
  Tensor first, all;
  for (int d = 0; d < x.ndim(); ++d) {
    Dims shape(x.ndim(), 1);
    shape[d] = x.shape()[d];
    OFL_ASSIGN_OR_RETURN(Tensor index, Arange(Scalar(int64_t{0}), Scalar(shape[d]),
                                              Scalar(int64_t{1}), DType::kInt64, x.device()));
    OFL_ASSIGN_OR_RETURN(index, Reshape(index, shape));
    if (d == 0) {
      first = index;
      if (wraps) {
        OFL_ASSIGN_OR_RETURN(first, Remainder(first, Scalar(x.shape()[1] + 1)));
      }
      continue;
    }
    OFL_ASSIGN_OR_RETURN(const Tensor same, Eq(first, index));
    if (d == 1) {
      all = same;
    } else {
      OFL_ASSIGN_OR_RETURN(all, LogicalAnd(all, same));
    }
  }
  return all;
}

Status FillPlaces(const Tensor& self, const Dims& shape, const Dims& strides, int64_t offset,
                  Scalar value) {
  OFL_ASSIGN_OR_RETURN(const Tensor places,
                       AsStrided(self, shape, strides, self.offset() + offset));
  return FillInto(places, value).status();
}

// The diagonal of each square of a tall matrix, with a row between squares. The squares are a dim
// of their own; where rows follow each other in memory, all diagonals are one line.
Status FillWrappedDiagonal(const Tensor& self, Scalar value) {
  const int64_t rows = self.shape()[0], cols = self.shape()[1], period = cols + 1;
  const int64_t down = self.strides()[0], along = down + self.strides()[1];
  const int64_t squares = (rows + 1) / period, rest = rows - squares * period;
  if (down == cols * self.strides()[1]) {
    return FillPlaces(self, {squares * cols + std::max<int64_t>(rest, 0)}, {along}, 0, value);
  }
  OFL_RETURN_IF_ERROR(FillPlaces(self, {squares, cols}, {period * down, along}, 0, value));
  if (rest <= 0) return OkStatus();
  return FillPlaces(self, {rest}, {along}, squares * period * down, value);
}

}  // namespace

StatusOr<Tensor> Tril(const Tensor& x, int64_t diagonal) {
  return Triangle("tril", x, diagonal, /*lower=*/true);
}
StatusOr<Tensor> Triu(const Tensor& x, int64_t diagonal) {
  return Triangle("triu", x, diagonal, /*lower=*/false);
}
StatusOr<Tensor> TrilInto(const Tensor& self, int64_t diagonal) {
  return TriangleInto("tril_", self, diagonal, /*lower=*/true);
}
StatusOr<Tensor> TriuInto(const Tensor& self, int64_t diagonal) {
  return TriangleInto("triu_", self, diagonal, /*lower=*/false);
}
StatusOr<Tensor> TrilIndices(int64_t rows, int64_t cols, int64_t offset, std::optional<DType> dtype,
                             std::optional<Device> device) {
  return TriangleIndices("tril_indices", rows, cols, offset, /*lower=*/true, dtype, device);
}
StatusOr<Tensor> TriuIndices(int64_t rows, int64_t cols, int64_t offset, std::optional<DType> dtype,
                             std::optional<Device> device) {
  return TriangleIndices("triu_indices", rows, cols, offset, /*lower=*/false, dtype, device);
}

StatusOr<Tensor> Eye(int64_t n, std::optional<int64_t> m, std::optional<DType> dtype,
                     std::optional<Device> device, bool requires_grad) {
  const int64_t cols = m.value_or(n);
  OFL_RETURN_IF_ERROR(CheckLeaf("eye", dtype.value_or(DType::kFloat32), requires_grad));
  OFL_RETURN_IF_ERROR(CheckSize("eye", "n", n));
  OFL_RETURN_IF_ERROR(CheckSize("eye", "m", cols));
  OFL_ASSIGN_OR_RETURN(const Tensor local, LocalEye(n, cols, dtype, device));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Everywhere(local));
  if (requires_grad) OFL_RETURN_IF_ERROR(autograd::SetRequiresGrad(y, true));
  return y;
}

StatusOr<Tensor> DiagEmbed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  if (x.ndim() == 0) return ShapeMismatch("diag_embed", "input", x.shape(), "at least 1 dim");
  const int64_t ndim = x.ndim() + 1, count = x.shape()[x.ndim() - 1];
  for (const int64_t d : {dim1, dim2}) {
    if (d >= -ndim && d < ndim) continue;
    return Error(ErrorKind::kIndex, "diag_embed(): dim ", d, " is out of range [", -ndim, ", ",
                 ndim - 1, "] for a result of ", ndim, " dims");
  }
  if ((dim1 - dim2) % ndim == 0) {
    return Error(ErrorKind::kValue, "diag_embed(): dim1 and dim2 are ", dim1, " and ", dim2,
                 ", the same dim");
  }
  int64_t size;
  if (offset == INT64_MIN || __builtin_add_overflow(count, std::abs(offset), &size)) {
    size = INT64_MAX;
  }
  const auto [first, second] = std::minmax({(dim1 + ndim) % ndim, (dim2 + ndim) % ndim});
  Dims shape(x.shape().begin(), x.shape().end() - 1);
  shape.insert(shape.begin() + first, size);
  shape.insert(shape.begin() + second, size);
  OFL_ASSIGN_OR_RETURN(const Tensor y, Zeros(shape, x.dtype(), x.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor diagonal, Diagonal(y, offset, dim1, dim2));
  OFL_RETURN_IF_ERROR(CopyInto(diagonal, x).status());
  return y;
}

StatusOr<Tensor> Diag(const Tensor& x, int64_t diagonal) {
  if (x.ndim() == 2) {
    OFL_ASSIGN_OR_RETURN(const Tensor line, Diagonal(x, diagonal));
    return Clone(line);
  }
  if (x.ndim() != 1) return ShapeMismatch("diag", "input", x.shape(), "1 or 2 dims");
  return DiagEmbed(x, diagonal);
}

StatusOr<Tensor> Diagflat(const Tensor& x, int64_t offset) {
  OFL_ASSIGN_OR_RETURN(const Tensor line, Reshape(x, {-1}));
  return DiagEmbed(line, offset);
}

StatusOr<Tensor> FillDiagonalInto(const Tensor& self, Scalar value, bool wrap) {
  const Dims& dims = self.shape().dims();
  const bool square =
      std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return d == dims[0]; });
  if (self.ndim() < 2 || (self.ndim() > 2 && !square)) {
    return ShapeMismatch("fill_diagonal_", "self", self.shape(), "2 dims, or more of one size");
  }
  if (self.numel() == 0) return self;
  // A tall matrix wrapped: the diagonal starts again below each square and one row.
  const bool wraps = wrap && self.ndim() == 2 && dims[0] > dims[1] + 1;
  if (GlobalOf(self)) {  // whose diagonal lies on several ranks
    OFL_ASSIGN_OR_RETURN(const Tensor diagonal, OnDiagonal(self, wraps));
    OFL_ASSIGN_OR_RETURN(const Tensor filled, MaskedFill(self, diagonal, value));
    return CopyInto(self, filled);
  }
  if (wraps) {
    OFL_RETURN_IF_ERROR(FillWrappedDiagonal(self, value));
    return self;
  }
  int64_t stride = 0;
  for (const int64_t s : self.strides()) stride += s;
  const int64_t count = *std::min_element(dims.begin(), dims.end());
  OFL_RETURN_IF_ERROR(FillPlaces(self, {count}, {stride}, 0, value));
  return self;
}

OFL_REGISTER_FUNCTION("tril(Tensor input, int diagonal=0) -> Tensor", Tril, kMethod,
                      "What lies on the diagonal and below, else 0, of the last two dims.");
OFL_REGISTER_FUNCTION("triu(Tensor input, int diagonal=0) -> Tensor", Triu, kMethod,
                      "What lies on the diagonal and above, else 0, of the last two dims.");
OFL_REGISTER_FUNCTION("tril_(Tensor(a!) self, int diagonal=0) -> Tensor", TrilInto, kMethodOnly,
                      "Overwrites the tensor with the result of tril.");
OFL_REGISTER_FUNCTION("triu_(Tensor(a!) self, int diagonal=0) -> Tensor", TriuInto, kMethodOnly,
                      "Overwrites the tensor with the result of triu.");
#define OFL_OPTIONS "dtype? dtype=None, Device? device=None"
OFL_REGISTER_FUNCTION("tril_indices(int row, int col, int offset=0, *, " OFL_OPTIONS ") -> Tensor",
                      TrilIndices, kFunction,
                      "The places that tril keeps, row by row: int64 [2, count].");
OFL_REGISTER_FUNCTION("triu_indices(int row, int col, int offset=0, *, " OFL_OPTIONS ") -> Tensor",
                      TriuIndices, kFunction,
                      "The places that triu keeps, row by row: int64 [2, count].");
OFL_REGISTER_FUNCTION("eye(int n, int? m=None, *, " OFL_OPTIONS
                      ", bool requires_grad=False) -> Tensor",
                      Eye, kFunction,
                      "Ones on the diagonal of [n, m] (m is n where absent), zeros elsewhere.");
#undef OFL_OPTIONS
OFL_REGISTER_FUNCTION(
    "diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", DiagEmbed,
    kMethod,
    "Matrices, zeros elsewhere, with the last dim's elements on their diagonals.\n"
    "An offset moves the diagonal so many columns to the right, or if negative rows down; the\n"
    "rows and columns are the dims dim1 and dim2 of the result.");
OFL_REGISTER_FUNCTION(
    "diag(Tensor input, int diagonal=0) -> Tensor", Diag, kMethod,
    "A square matrix with this diagonal and zeros elsewhere; of a matrix its diagonal.");
OFL_REGISTER_FUNCTION(
    "diagflat(Tensor input, int offset=0) -> Tensor", Diagflat, kMethod,
    "A square matrix with all elements, in their order, on a diagonal and zeros elsewhere.");
OFL_REGISTER_FUNCTION(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor",
    FillDiagonalInto, kMethodOnly,
    "Overwrites the diagonal with a number: the elements whose indices are all "
    "the same.\nwrap: in a matrix with more rows than columns it starts again, a "
    "row below each square.");

}  // namespace oneflow_lite::functional
