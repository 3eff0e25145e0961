// SPDX-License-Identifier: Apache-2.0
#include "functional/matmul.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/reduce.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

constexpr int64_t kProductsAtOnce = 1 << 22;

StatusOr<Tensor> CallMatmul(const Tensor& a, const Tensor& b, bool wide = false) {
  static const OpExpr& op =
      OpBuilder("matmul").Input("a").Input("b").Output("out").Attr("wide").Get();
  return Call(op, {a, b}, {wide});
}

// A bound of the elements' magnitude: of the narrow dtypes theirs, else that of those there are,
// where reading it waits for nothing.
StatusOr<double> MagnitudeOf(const Tensor& t) {
  if (SizeOf(t.dtype()) <= 2) return t.dtype() == DType::kInt16 ? 0x1p15 : 0x1p8;
  if (!ReadsAtOnce(t) || t.numel() == 0) return std::numeric_limits<double>::infinity();
  OFL_ASSIGN_OR_RETURN(const TensorList ends, AMinMax(t));
  OFL_ASSIGN_OR_RETURN(const double least, ValueOf<double>("matmul", ends[0]));
  OFL_ASSIGN_OR_RETURN(const double most, ValueOf<double>("matmul", ends[1]));
  return std::max(-least, most);
}

// No BLAS multiplies integers, but double holds those below 2^53. Beyond, the products of rows and
// columns, as many of the inner dim at once as fit, are added up in int64. What does not fit into
// the dtype wraps round.
StatusOr<Tensor> IntegerMatmul(const Tensor& a, const Tensor& b) {
  const int last = a.ndim() - 1;
  const int64_t inner = a.shape()[last];
  if (b.shape()[last - 1] != inner) {
    Shape wanted = b.shape();
    wanted[last - 1] = inner;
    return ShapeMismatch("matmul", "other", b.shape(),
                         absl::StrCat(wanted.ToString(), " to go with ", a.shape().ToString()));
  }
  OFL_ASSIGN_OR_RETURN(const double most_a, MagnitudeOf(a));
  OFL_ASSIGN_OR_RETURN(const double most_b, MagnitudeOf(b));
  if (most_a * most_b * static_cast<double>(inner) < 0x1p53) {  // which 2^53 + 1 is rounded to
    OFL_ASSIGN_OR_RETURN(const Tensor wide_a, Cast(a, DType::kFloat64));
    OFL_ASSIGN_OR_RETURN(const Tensor wide_b, Cast(b, DType::kFloat64));
    OFL_ASSIGN_OR_RETURN(Tensor exact, CallMatmul(wide_a, wide_b));
    OFL_ASSIGN_OR_RETURN(exact, Cast(exact, DType::kInt64));
    return Cast(exact, a.dtype());
  }
  Dims shape = a.shape().dims();
  shape[last] = b.shape()[last];
  OFL_ASSIGN_OR_RETURN(Tensor sums, Zeros(shape, DType::kInt64, a.device()));
  const int64_t step = std::max<int64_t>(1, kProductsAtOnce / std::max<int64_t>(1, sums.numel()));
  for (int64_t k = 0; k < inner && sums.numel() > 0; k += step) {
    const int64_t length = std::min(step, inner - k);
    OFL_ASSIGN_OR_RETURN(Tensor columns, Narrow(a, last, k, length));
    OFL_ASSIGN_OR_RETURN(Tensor rows, Narrow(b, last - 1, k, length));
    OFL_ASSIGN_OR_RETURN(columns, Unsqueeze(columns, -1));
    OFL_ASSIGN_OR_RETURN(rows, Unsqueeze(rows, -3));
    OFL_ASSIGN_OR_RETURN(Tensor products, Mul(columns, rows));
    OFL_ASSIGN_OR_RETURN(Tensor part, Sum(products, Dims{-2}));
    OFL_RETURN_IF_ERROR(AddInto(sums, part).status());
  }
  return Cast(sums, a.dtype());
}

// 2-D by 2-D, or 3-D by 3-D of equal batch.
StatusOr<Tensor> OneMatmul(const Tensor& a, const Tensor& b) {
  const bool integers = !IsFloating(a.dtype()) && a.dtype() != DType::kBool;
  return integers && a.dtype() == b.dtype() ? IntegerMatmul(a, b) : CallMatmul(a, b);
}

// Batch dims broadcast against each other; the last two as they are.
StatusOr<Tensor> BatchedMatmul(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 3 && b.ndim() == 3 && a.shape()[0] == b.shape()[0]) return OneMatmul(a, b);
  const int ndim = std::max(a.ndim(), b.ndim());
  Dims batch(ndim - 2, 1);
  for (const Tensor* t : {&a, &b}) {
    for (int d = 0; d < t->ndim() - 2; ++d) {
      int64_t& size = batch[d + ndim - t->ndim()];
      const int64_t given = t->shape()[d];
      if (given != size && given != 1 && size != 1) {
        return ShapeMismatch("matmul", "other", b.shape(),
                             absl::StrCat("a batch that broadcasts with ", a.shape().ToString()));
      }
      if (size == 1) size = given;
    }
  }
  const auto flatten = [&](const Tensor& t) -> StatusOr<Tensor> {
    Dims full = batch;
    full.push_back(t.shape()[t.ndim() - 2]);
    full.push_back(t.shape()[t.ndim() - 1]);
    OFL_ASSIGN_OR_RETURN(Tensor expanded, Expand(t, full));
    return Reshape(expanded, {Shape(batch).numel(), full[ndim - 2], full[ndim - 1]});
  };
  OFL_ASSIGN_OR_RETURN(Tensor x, flatten(a));
  OFL_ASSIGN_OR_RETURN(Tensor y, flatten(b));
  OFL_ASSIGN_OR_RETURN(Tensor z, OneMatmul(x, y));
  batch.push_back(a.shape()[a.ndim() - 2]);
  batch.push_back(b.shape()[b.ndim() - 1]);
  return Reshape(z, batch);
}

// The product of two vectors, without views that a gradient would go through, where none does.
bool IsPlainDot(const Tensor& a, const Tensor& b) {
  const bool records = GradEnabled() && (autograd::RequiresGrad(a) || autograd::RequiresGrad(b));
  return a.ndim() == 1 && b.ndim() == 1 && !records && !GlobalOf(a) && !GlobalOf(b) &&
         IsFloating(a.dtype());
}
StatusOr<Tensor> PlainDot(const Tensor& a, const Tensor& b) {
  const int64_t n = a.numel();
  const Tensor row = a.WithGeometry(Shape{1, n}, {n * a.strides()[0], a.strides()[0]}, a.offset());
  const Tensor column = b.WithGeometry(Shape{n, 1}, {b.strides()[0], 1}, b.offset());
  OFL_ASSIGN_OR_RETURN(const Tensor z, CallMatmul(row, column));
  return z.WithGeometry(Shape{}, {}, z.offset());
}

// ShapeError in the shapes that the caller gave: the products see rows of a batch and columns.
Status CheckInner(const Tensor& a, const Tensor& b) {
  const int64_t inner = a.shape()[a.ndim() - 1];
  const int dim = std::max(0, b.ndim() - 2);
  if (b.shape()[dim] == inner) return OkStatus();
  Shape wanted = b.shape();
  wanted[dim] = inner;
  return ShapeMismatch("matmul", "other", b.shape(),
                       absl::StrCat(wanted.ToString(), " to go with ", a.shape().ToString()));
}

}  // namespace

StatusOr<Tensor> Matmul(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 0 || b.ndim() == 0) {
    const bool first = a.ndim() == 0;
    return ShapeMismatch("matmul", first ? "input" : "other", (first ? a : b).shape(),
                         "at least 1 dim");
  }
  if (a.ndim() == 2 && b.ndim() == 2) return OneMatmul(a, b);
  OFL_RETURN_IF_ERROR(CheckInner(a, b));
  if (IsPlainDot(a, b)) return PlainDot(a, b);
  if (a.ndim() == 1) {
    OFL_ASSIGN_OR_RETURN(Tensor row, Unsqueeze(a, 0));
    if (b.ndim() == 1) {
      OFL_ASSIGN_OR_RETURN(Tensor column, Unsqueeze(b, 1));
      OFL_ASSIGN_OR_RETURN(Tensor z, OneMatmul(row, column));
      return Squeeze(z, Dims{0, 1});
    }
    OFL_ASSIGN_OR_RETURN(Tensor z, Matmul(row, b));
    return Squeeze(z, Dims{-2});
  }
  if (b.ndim() == 1) {
    OFL_ASSIGN_OR_RETURN(Tensor column, Unsqueeze(b, 1));
    OFL_ASSIGN_OR_RETURN(Tensor z, Matmul(a, column));
    return Squeeze(z, Dims{-1});
  }
  if (b.ndim() == 2) {  // one matrix for the whole batch: a longer product instead of many
    OFL_ASSIGN_OR_RETURN(Tensor rows, Flatten(a, 0, -2));
    OFL_ASSIGN_OR_RETURN(Tensor z, OneMatmul(rows, b));
    Dims shape = a.shape().dims();
    shape.back() = b.shape()[1];
    return Reshape(z, shape);
  }
  return BatchedMatmul(a, b);
}

namespace {

// What the product says of its operands, as the caller knows them.
Status LinearError(const Tensor& x, const Tensor& weight, const Status& s) {
  if (!x.defined() || !weight.defined())
    return NotDefined("linear", x.defined() ? "weight" : "input");
  if (x.device() != weight.device()) {
    return DeviceMismatch("linear", "input", x.device(), "weight", weight.device());
  }
  if (x.dtype() != weight.dtype()) {
    return DTypeMismatch("linear", "input", x.dtype(),
                         absl::StrCat(Name(weight.dtype()), " as the weight"));
  }
  return Renamed("linear", s);
}

// A matrix of floats and, if any, a bias of one number an output: the op's. It says itself what
// else does not fit.
bool IsOneOp(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!x.defined() || !weight.defined() || weight.ndim() != 2 || !IsFloating(x.dtype()) ||
      x.device() != weight.device()) {
    return false;
  }
  return !bias.defined() || (bias.ndim() == 1 && bias.shape()[0] == weight.shape()[0] &&
                             bias.dtype() == weight.dtype() && bias.device() == x.device());
}

}  // namespace

StatusOr<Tensor> Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (IsOneOp(x, weight, bias)) {
    static const OpExpr& op =
        OpBuilder("linear").Input("input").Input("weight").Input("bias").Output("out").Get();
    return Call(op, {x, weight, bias});
  }
  // Vectors, integers, and biases that broadcast or are of another dtype.
  const int ndim = weight.ndim();
  if (ndim != 1 && ndim != 2) {
    return ShapeMismatch("linear", "weight", weight.shape(), "1 or 2 dims");
  }
  const int64_t features = weight.shape()[ndim - 1];
  if (x.ndim() == 0 || x.shape()[x.ndim() - 1] != features) {
    return ShapeMismatch("linear", "input", x.shape(),
                         absl::StrCat("a last dim of ", features, " to go with the weight's ",
                                      weight.shape().ToString()));
  }
  Tensor transposed = weight;
  if (ndim == 2) {
    OFL_ASSIGN_OR_RETURN(transposed, Transpose(weight, 0, 1));
  }
  const StatusOr<Tensor> y = Matmul(x, transposed);
  if (!y.ok()) return LinearError(x, weight, y.status());
  if (!bias.defined()) return y;
  OFL_ASSIGN_OR_RETURN(const Tensor added, AutocastLowered(bias));
  StatusOr<Tensor> z = Add(*y, added);
  if (z.ok()) return z;
  return bias.device() != x.device()
             ? DeviceMismatch("linear", "input", x.device(), "bias", bias.device())
             : Renamed("linear", z.status());
}

StatusOr<Tensor> WideMatmul(const Tensor& a, const Tensor& b) {
  return CallMatmul(a, b, /*wide=*/true);
}

StatusOr<Tensor> MatmulInto(const Tensor& self, const Tensor& a, const Tensor& b,
                            const Tensor& bias, bool accumulate) {
  static const OpExpr& op = OpBuilder("matmul_into_")
                                .Input("self")
                                .Input("a")
                                .Input("b")
                                .Input("bias")
                                .Output("out")
                                .Attr("accumulate")
                                .Get();
  return Call(op, {self, a, b, bias}, {accumulate});
}

OFL_REGISTER_FUNCTION("matmul(Tensor input, Tensor other) -> Tensor", Matmul, kMethod,
                      "Matrix product, batched over leading dims, as in numpy.matmul.");
OFL_REGISTER_FUNCTION("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", Linear,
                      kFunction,
                      "input times weight transposed, plus bias; weight is [out, in] or [in].");

}  // namespace oneflow_lite::functional
