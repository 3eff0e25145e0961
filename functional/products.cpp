// SPDX-License-Identifier: Apache-2.0
#include "functional/products.h"

#include <algorithm>
#include <cmath>

#include "functional/argument_names.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/matmul.h"
#include "functional/reduce.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {
namespace {

// matmul of tensors of these dims alone; `takes` says of which.
StatusOr<Tensor> MatmulOf(const char* name, const char* takes, const Tensor& a, int a_dims,
                          const Tensor& b, int b_dims) {
  if (!a.defined()) return NotDefined(name, "input");
  if (!b.defined()) return NotDefined(name, "other");
  const bool batches =
      a_dims != 3 || a.ndim() != 3 || b.ndim() != 3 || a.shape()[0] == b.shape()[0];
  if (a.ndim() != a_dims || b.ndim() != b_dims || !batches) {
    return Error(ErrorKind::kShape, name, "(): takes ", takes, ", not shapes ",
                 a.shape().ToString(), " and ", b.shape().ToString());
  }
  StatusOr<Tensor> y = Matmul(a, b);
  return y.ok() ? y : Renamed(name, y.status());
}

// A factor of integers; a float that is an integer counts as one.
StatusOr<Scalar> IntegerFactor(const char* name, const char* argument, const Scalar& factor) {
  if (!factor.is_float()) return factor;
  if (factor.kind() == Scalar::Kind::kLargeInt)
    return NumberOutOfRange(name, factor, DType::kInt64);
  const double value = factor.to<double>();
  if (std::floor(value) == value && factor.fits<int64_t>()) return Scalar(factor.to<int64_t>());
  return Error(ErrorKind::kValue, name, "(): ", argument, " is ", value,
               ", but it must be an integer for tensors of integers");
}

// Whether x + a b is what linear() gives by one op that rounds once: 16-bit matrices and a row.
bool IsLinear(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
              const Scalar& alpha) {
  return ComputeType(a.dtype()) != a.dtype() && x.dtype() == a.dtype() && b.dtype() == a.dtype() &&
         x.ndim() == 1 && a.ndim() == 2 && b.ndim() == 2 && a.shape()[1] == b.shape()[0] &&
         x.shape()[0] == b.shape()[1] && beta.to<double>() == 1 && alpha.to<double>() == 1;
}

// Whether both are of one dtype, and autocast lowers neither.
bool StayAlike(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.dtype() == b.dtype() &&
         !CurrentAutocast(a.device().type).enabled;
}

// Whether a b is given in float32: matrices of 16-bit floats that have so many dims each and fit.
// What does not is for Mm or Bmm to name.
bool IsWideProduct(const Tensor& a, const Tensor& b, int dims) {
  if (!StayAlike(a, b) || !IsFloating(a.dtype()) || ComputeType(a.dtype()) == a.dtype()) {
    return false;
  }
  if (a.device() != b.device() || a.ndim() != dims || b.ndim() != dims) return false;
  return a.shape()[dims - 1] == b.shape()[dims - 2] && (dims == 2 || a.shape()[0] == b.shape()[0]);
}

// beta x + alpha a b. Of 16 bits the product and the sum are in float32, and the sum is rounded.
StatusOr<Tensor> PlusProduct(const char* name, const Tensor& input, const Tensor& a,
                             const Tensor& b, int dims, Scalar beta, Scalar alpha) {
  if (input.defined() && a.defined() && b.defined() && IsLinear(input, a, b, beta, alpha)) {
    OFL_ASSIGN_OR_RETURN(const Tensor weight, Transpose(b, 0, 1));
    StatusOr<Tensor> y = Linear(a, weight, input);
    return y.ok() ? y : Renamed(name, y.status());
  }
  const bool widened = IsWideProduct(a, b, dims);
  const StatusOr<Tensor> product = widened ? WideMatmul(a, b) : dims == 2 ? Mm(a, b) : Bmm(a, b);
  if (!product.ok()) {
    const Status named =
        WithArgument(Renamed(name, product.status()), "other", dims == 2 ? "mat2" : "batch2");
    return WithArgument(named, "input", dims == 2 ? "mat1" : "batch1");
  }
  if (!input.defined()) return NotDefined(name, "input");
  OFL_ASSIGN_OR_RETURN(const Tensor x, AutocastLowered(input));
  if (!IsFloating(x.dtype())) {
    OFL_ASSIGN_OR_RETURN(alpha, IntegerFactor(name, "alpha", alpha));
    OFL_ASSIGN_OR_RETURN(beta, IntegerFactor(name, "beta", beta));
  }
  const DType given = PromoteTypes(x.dtype(), widened ? a.dtype() : product->dtype());
  const DType wide = IsFloating(given) ? ComputeType(given) : given;
  OFL_ASSIGN_OR_RETURN(Tensor y, Cast(*product, wide));
  if (alpha.to<double>() != 1) {
    OFL_ASSIGN_OR_RETURN(y, Mul(y, alpha));
  }
  Tensor added = x;
  if (beta.to<double>() == 0) {  // not even NaN counts
    OFL_ASSIGN_OR_RETURN(added, Zeros({}, wide, x.device()));
    OFL_ASSIGN_OR_RETURN(added, Expand(added, x.shape()));
  } else {
    OFL_ASSIGN_OR_RETURN(added, Cast(x, wide));
    if (beta.to<double>() != 1) {
      OFL_ASSIGN_OR_RETURN(added, Mul(added, beta));
    }
  }
  StatusOr<Tensor> sum = Add(added, y);
  if (!sum.ok()) return Renamed(name, sum.status());
  return Cast(*sum, given);
}

constexpr char kVectors[] = "tensors of 1 dim";

}  // namespace

bool IsWidened(const Tensor& a, const Tensor& b) {
  return StayAlike(a, b) && MultipliesInFloat32(a);
}

StatusOr<Tensor> Mm(const Tensor& a, const Tensor& b) {
  return MatmulOf("mm", "matrices", a, 2, b, 2);
}
StatusOr<Tensor> Bmm(const Tensor& a, const Tensor& b) {
  return MatmulOf("bmm", "batches of matrices", a, 3, b, 3);
}
StatusOr<Tensor> Dot(const Tensor& a, const Tensor& b) {
  return MatmulOf("dot", kVectors, a, 1, b, 1);
}
StatusOr<Tensor> Mv(const Tensor& a, const Tensor& vec) {
  StatusOr<Tensor> y = MatmulOf("mv", "a matrix and a tensor of 1 dim", a, 2, vec, 1);
  return y.ok() ? y : WithArgument(y.status(), "other", "vec");
}

StatusOr<Tensor> Addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta,
                       Scalar alpha) {
  return PlusProduct("addmm", x, a, b, 2, beta, alpha);
}
StatusOr<Tensor> Baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta,
                         Scalar alpha) {
  return PlusProduct("baddbmm", x, a, b, 3, beta, alpha);
}

StatusOr<Tensor> Outer(const Tensor& a, const Tensor& b) {
  if (a.ndim() != 1 || b.ndim() != 1) {
    return Error(ErrorKind::kShape, "outer(): takes ", kVectors, ", not shapes ",
                 a.shape().ToString(), " and ", b.shape().ToString());
  }
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(a, 1));
  return Mul(column, b);
}

StatusOr<Tensor> Inner(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 0 || b.ndim() == 0) return Mul(a, b);
  const int64_t last = a.ndim() - 1, last_b = b.ndim() - 1;
  if (a.shape()[static_cast<int>(last)] != b.shape()[static_cast<int>(last_b)]) {
    return Error(ErrorKind::kShape, "inner(): the last dims of shapes ", a.shape().ToString(),
                 " and ", b.shape().ToString(), " do not go together");
  }
  return Tensordot(a, b, {last}, {last_b});
}

StatusOr<Tensor> Kron(const Tensor& a, const Tensor& b) {
  const int n = std::max(a.ndim(), b.ndim());
  Dims of_a, of_b, joined;
  for (int d = 0; d < n; ++d) {
    const int in_a = d - n + a.ndim(), in_b = d - n + b.ndim();
    const int64_t size = in_a < 0 ? 1 : a.shape()[in_a], other = in_b < 0 ? 1 : b.shape()[in_b];
    of_a.insert(of_a.end(), {size, 1});
    of_b.insert(of_b.end(), {1, other});
    joined.push_back(size * other);
  }
  OFL_ASSIGN_OR_RETURN(Tensor x, Reshape(a, of_a));
  OFL_ASSIGN_OR_RETURN(Tensor y, Reshape(b, of_b));
  // Where the last dim of b is short, so are the runs of the product: the last pair of dims is
  // written out in either factor, if that is little beside the product.
  constexpr int64_t kShort = 64;
  const bool square = n >= 2 && !GlobalOf(a) && !GlobalOf(b);
  if (square && of_b.back() < kShort && of_a[2 * n - 4] >= 4 && of_b[2 * n - 3] >= 2) {
    Dims row_a = of_a, row_b = of_b;
    row_a.back() = of_b.back();
    row_b[2 * n - 2] = of_a[2 * n - 2];
    OFL_ASSIGN_OR_RETURN(x, Expand(x, row_a));
    OFL_ASSIGN_OR_RETURN(x, Contiguous(x));
    OFL_ASSIGN_OR_RETURN(y, Expand(y, row_b));
    OFL_ASSIGN_OR_RETURN(y, Contiguous(y));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor pairs, Mul(x, y));
  return Reshape(pairs, joined);
}

namespace {

// The dims that are not among those, then those; or those first.
Dims Order(int ndim, const Dims& chosen, bool chosen_first) {
  Dims order;
  for (int64_t d = 0; d < ndim; ++d) {
    if (std::find(chosen.begin(), chosen.end(), d) == chosen.end()) order.push_back(d);
  }
  order.insert(chosen_first ? order.begin() : order.end(), chosen.begin(), chosen.end());
  return order;
}

}  // namespace

StatusOr<Tensor> Tensordot(const Tensor& a, const Tensor& b, absl::Span<const int64_t> a_dims,
                           absl::Span<const int64_t> b_dims) {
  OFL_ASSIGN_OR_RETURN(const Dims of_a, WrapDims("tensordot", a, a_dims));
  OFL_ASSIGN_OR_RETURN(const Dims of_b, WrapDims("tensordot", b, b_dims));
  const size_t pairs = of_a.size();
  bool fits = pairs == of_b.size() && (a.ndim() > 0 || pairs == 0) && (b.ndim() > 0 || pairs == 0);
  Tensor x = a, y = b;
  for (size_t i = 0; fits && i < pairs; ++i) {
    const int64_t m = a.shape()[static_cast<int>(of_a[i])];
    const int64_t n = b.shape()[static_cast<int>(of_b[i])];
    fits = m == n || m == 1 || n == 1;
    // What is repeated is added up first, where the other's part is the same.
    if (fits && m != n && m == 1) {
      OFL_ASSIGN_OR_RETURN(y, Sum(y, Dims{of_b[i]}, /*keepdim=*/true, y.dtype()));
    } else if (fits && m != n) {
      OFL_ASSIGN_OR_RETURN(x, Sum(x, Dims{of_a[i]}, /*keepdim=*/true, x.dtype()));
    }
  }
  if (!fits) {
    return Error(ErrorKind::kShape, "tensordot(): dims ", ToString(of_a), " of shape ",
                 a.shape().ToString(), " do not go with dims ", ToString(of_b), " of shape ",
                 b.shape().ToString());
  }
  const Dims order_a = Order(x.ndim(), of_a, false), order_b = Order(y.ndim(), of_b, true);
  int64_t rows = 1, inner = 1, cols = 1;
  Dims shape;
  for (size_t i = 0; i < order_a.size(); ++i) {
    const int64_t size = x.shape()[static_cast<int>(order_a[i])];
    const bool free = i < order_a.size() - pairs;
    (free ? rows : inner) *= size;
    if (free) shape.push_back(size);
  }
  for (size_t i = pairs; i < order_b.size(); ++i) {
    shape.push_back(y.shape()[static_cast<int>(order_b[i])]);
    cols *= shape.back();
  }
  OFL_ASSIGN_OR_RETURN(x, Permute(x, order_a));
  OFL_ASSIGN_OR_RETURN(x, Reshape(x, {rows, inner}));
  OFL_ASSIGN_OR_RETURN(y, Permute(y, order_b));
  OFL_ASSIGN_OR_RETURN(y, Reshape(y, {inner, cols}));
  StatusOr<Tensor> z = Matmul(x, y);
  return z.ok() ? Reshape(*z, shape) : Renamed("tensordot", z.status());
}

StatusOr<Tensor> Tensordot(const Tensor& a, const Tensor& b, int64_t dims) {
  if (dims < 0 || dims > std::min(a.ndim(), b.ndim())) {
    return Error(ErrorKind::kShape, "tensordot(): there are no ", dims, " dims in shapes ",
                 a.shape().ToString(), " and ", b.shape().ToString());
  }
  Dims of_a, of_b;
  for (int64_t d = 0; d < dims; ++d) {
    of_a.push_back(a.ndim() - dims + d);
    of_b.push_back(d);
  }
  return Tensordot(a, b, of_a, of_b);
}

StatusOr<Tensor> Trace(const Tensor& x) {
  if (x.ndim() != 2) return ShapeMismatch("trace", "input", x.shape(), "2 dims");
  OFL_ASSIGN_OR_RETURN(const Tensor diagonal, DiagonalToRead(x));
  return Sum(diagonal, Dims{0});
}

StatusOr<Tensor> Vdot(const Tensor& a, const Tensor& b) {
  return MatmulOf("vdot", kVectors, a, 1, b, 1);
}

OFL_REGISTER_FUNCTION("mm(Tensor input, Tensor other) -> Tensor", Mm, kMethod,
                      "The product of two matrices.");
OFL_REGISTER_FUNCTION("bmm(Tensor input, Tensor other) -> Tensor", Bmm, kMethod,
                      "The products of two batches of matrices.");
OFL_REGISTER_FUNCTION("dot(Tensor input, Tensor other) -> Tensor", Dot, kMethod,
                      "The inner product of two 1-D tensors.");
OFL_REGISTER_FUNCTION("vdot(Tensor input, Tensor other) -> Tensor", Vdot, kMethod,
                      "The inner product of two 1-D tensors.");
OFL_REGISTER_FUNCTION("mv(Tensor input, Tensor vec) -> Tensor", Mv, kMethod,
                      "The product of a matrix and a 1-D tensor.");
OFL_REGISTER_FUNCTION(
    "addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    Addmm, kMethod,
    "beta * input + alpha * mat1 @ mat2; where beta is 0, input gives its shape alone.");
OFL_REGISTER_FUNCTION(
    "baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor",
    Baddbmm, kMethod,
    "beta * input + alpha * batch1 @ batch2; where beta is 0, input gives its shape alone.");
OFL_REGISTER_OLDER_ORDER("addmm", "beta, input, alpha, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("addmm", "beta, input, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("addmm", "input, beta, alpha, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("addmm", "input, beta, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("baddbmm", "beta, input, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("baddbmm", "beta, input, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("baddbmm", "input, beta, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("baddbmm", "input, beta, batch1, batch2");
OFL_REGISTER_FUNCTION("outer(Tensor input, Tensor other) -> Tensor", Outer, kMethod,
                      "Each element of one 1-D tensor times each of another.");
OFL_REGISTER_ALIAS("ger", "outer");
OFL_REGISTER_FUNCTION("inner(Tensor input, Tensor other) -> Tensor", Inner, kMethod,
                      "The sum of products over the last dims of both.");
OFL_REGISTER_FUNCTION("kron(Tensor input, Tensor other) -> Tensor", Kron, kMethod,
                      "other times each element of input, in its place.");
// Which dims are given as a pair of lists, which no signature says: tensordot() itself is Python's.
OFL_REGISTER_FUNCTION(
    "tensordot(Tensor a, Tensor b, int[] a_dims, int[] b_dims) -> Tensor",
    (Overload<const Tensor&, const Tensor&, absl::Span<const int64_t>, absl::Span<const int64_t>>(
        Tensordot)),
    kFunction,
    "The sum of products over dims of both, in pairs: the other dims of a, then those of b.");
OFL_REGISTER_FUNCTION("trace(Tensor input) -> Tensor", Trace, kMethod,
                      "The sum of the diagonal of a matrix.");

}  // namespace oneflow_lite::functional
