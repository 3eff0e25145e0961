// SPDX-License-Identifier: Apache-2.0
#include "functional/matrix.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/linalg.h"
#include "functional/linalg_call.h"
#include "functional/matmul.h"
#include "functional/products.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/statistics.h"
#include "functional/triangle.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite::functional {
namespace {

int64_t Product(absl::Span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

// x ** n by squaring. Precondition: n >= 1.
StatusOr<Tensor> Power(Tensor square, uint64_t n) {
  if (n > 2 && IsWidened(square, square)) {
    OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(square, ComputeType(square.dtype())));
    OFL_ASSIGN_OR_RETURN(const Tensor power, Power(wide, n));
    return Cast(power, square.dtype());
  }
  Tensor y;
  for (; n > 0; n >>= 1) {
    if (n & 1) {
      OFL_ASSIGN_OR_RETURN(y, y.defined() ? Matmul(y, square) : StatusOr<Tensor>(square));
    }
    if (n > 1) {
      OFL_ASSIGN_OR_RETURN(square, Matmul(square, square));
    }
  }
  return y;
}

// Matrices of ones on the diagonal, like a.
StatusOr<Tensor> IdentityLike(const Tensor& a) {
  OFL_ASSIGN_OR_RETURN(const Tensor one, Eye(a.shape()[a.ndim() - 1], {}, a.dtype(), a.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor all, Expand(one, a.shape()));
  return Clone(all);
}

}  // namespace

StatusOr<Tensor> MatrixPower(const Tensor& a, int64_t n) {
  constexpr char kName[] = "linalg.matrix_power";
  if (!a.defined()) return NotDefined(kName, "A");
  const int d = a.ndim();
  if (d < 2 || a.shape()[d - 1] != a.shape()[d - 2]) {
    return ShapeMismatch(kName, "A", a.shape(), "square matrices");
  }
  if (n == 0) return IdentityLike(a);
  if (n > 0) return n == 1 ? Clone(a) : Power(a, static_cast<uint64_t>(n));
  StatusOr<Tensor> inverse = Inv(a);
  if (!inverse.ok()) return Renamed(kName, inverse.status());
  return Power(*std::move(inverse), -static_cast<uint64_t>(n));  // of the least too
}

namespace {

// The coefficients of Pade's approximation of degree 13 and, for float32, 7, with the largest norms
// that they serve: table 2.3 and 2.1 of Higham (2005).
struct Pade {
  std::vector<double> c;
  double most;
};
const Pade& PadeFor(DType dtype) {
  static const Pade wide = {
      {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
       10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1},
      5.371920351148152};
  static const Pade narrow = {{17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1},
                              3.925724783138660};
  return dtype == DType::kFloat64 ? wide : narrow;
}

// How often the largest of the matrices is halved.
StatusOr<int> Halvings(const Tensor& a, double most) {
  if (a.numel() == 0 || !HasData(a)) return 0;
  OFL_ASSIGN_OR_RETURN(const Tensor sizes, Abs(a.Detach()));
  OFL_ASSIGN_OR_RETURN(const Tensor sums, Sum(sizes, Dims{-2}));
  OFL_ASSIGN_OR_RETURN(const Tensor largest, Amax(sums));
  OFL_ASSIGN_OR_RETURN(const double norm, ValueOf<double>("linalg.matrix_exp", largest));
  if (!(norm > most) || std::isinf(norm)) return 0;
  return static_cast<int>(std::ceil(std::log2(norm / most)));
}

}  // namespace

StatusOr<Tensor> MatrixExp(const Tensor& a) {
  constexpr char kName[] = "linalg.matrix_exp";
  OFL_RETURN_IF_ERROR(CheckMatrix(kName, "A", a, /*square=*/true));
  const Pade& pade = PadeFor(a.dtype());
  OFL_ASSIGN_OR_RETURN(const int halvings, Halvings(a, pade.most));
  OFL_ASSIGN_OR_RETURN(const Tensor x, Mul(a, Scalar(std::ldexp(1.0, -halvings))));
  OFL_ASSIGN_OR_RETURN(const Tensor square, Matmul(x, x));
  OFL_ASSIGN_OR_RETURN(Tensor power, IdentityLike(a));
  // The sums of the even and of the odd terms.
  Tensor even, odd;
  for (size_t k = 0; k < pade.c.size(); k += 2) {
    if (k > 0) {
      OFL_ASSIGN_OR_RETURN(power, Matmul(power, square));
    }
    for (size_t i = k; i < std::min(k + 2, pade.c.size()); ++i) {
      Tensor& sum = i == k ? even : odd;
      OFL_ASSIGN_OR_RETURN(const Tensor term, Mul(power, Scalar(pade.c[i] / pade.c[0])));
      OFL_ASSIGN_OR_RETURN(sum, sum.defined() ? Add(sum, term) : StatusOr<Tensor>(term));
    }
  }
  OFL_ASSIGN_OR_RETURN(odd, Matmul(x, odd));
  OFL_ASSIGN_OR_RETURN(const Tensor above, Add(even, odd));
  OFL_ASSIGN_OR_RETURN(const Tensor below, Sub(even, odd));
  OFL_ASSIGN_OR_RETURN(const TensorList y, SolveFactored(below, above));
  return Power(y[0], int64_t{1} << halvings);
}

namespace {

// The cheapest way to multiply the matrices i to j, by the usual table: Cormen et al.,
// "Introduction to Algorithms", 15.2.
StatusOr<Tensor> Chain(const TensorList& tensors, const std::vector<std::vector<size_t>>& split,
                       size_t i, size_t j) {
  if (i == j) return tensors[i];
  OFL_ASSIGN_OR_RETURN(const Tensor left, Chain(tensors, split, i, split[i][j]));
  OFL_ASSIGN_OR_RETURN(const Tensor right, Chain(tensors, split, split[i][j] + 1, j));
  return Matmul(left, right);
}

std::vector<std::vector<size_t>> CheapestSplits(const std::vector<double>& sizes) {
  const size_t n = sizes.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = HUGE_VAL;
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (c >= cost[i][j]) continue;
        cost[i][j] = c;
        split[i][j] = k;
      }
    }
  }
  return split;
}

}  // namespace

StatusOr<Tensor> MultiDot(absl::Span<const Tensor> given) {
  constexpr char kName[] = "linalg.multi_dot";
  if (given.size() < 2) {
    return Error(ErrorKind::kValue, kName, "(): takes at least 2 tensors, not ", given.size());
  }
  TensorList tensors(given.begin(), given.end());
  std::vector<double> sizes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor& t = tensors[i];
    if (!t.defined()) return NotDefined(kName, "a tensor");
    const bool end = i == 0 || i + 1 == tensors.size();
    if (t.ndim() != 2 && !(end && t.ndim() == 1)) {
      return Error(ErrorKind::kShape, kName, "(): tensor ", i, " has shape ", t.shape().ToString(),
                   ", expected 2 dims", end ? " or 1" : "");
    }
    if (t.ndim() == 1) {
      OFL_ASSIGN_OR_RETURN(t, Unsqueeze(t, i == 0 ? 0 : 1));
    }
    if (i > 0 && t.shape()[0] != tensors[i - 1].shape()[1]) {
      return Error(ErrorKind::kShape, kName, "(): tensors ", i - 1, " and ", i, " of shapes ",
                   given[i - 1].shape().ToString(), " and ", given[i].shape().ToString(),
                   " do not go together");
    }
    sizes.push_back(static_cast<double>(t.shape()[0]));
  }
  sizes.push_back(static_cast<double>(tensors.back().shape()[1]));
  const DType dtype = tensors[0].dtype();
  const bool widened =
      tensors.size() > 2 && std::all_of(tensors.begin(), tensors.end(),
                                        [&](const Tensor& t) { return IsWidened(tensors[0], t); });
  for (Tensor& t : tensors) {
    if (!widened) break;
    OFL_ASSIGN_OR_RETURN(t, Cast(t, ComputeType(dtype)));
  }
  StatusOr<Tensor> y = Chain(tensors, CheapestSplits(sizes), 0, tensors.size() - 1);
  if (!y.ok()) return Renamed(kName, y.status());
  if (widened) {
    OFL_ASSIGN_OR_RETURN(*y, Cast(*y, dtype));
  }
  if (given.front().ndim() == 1) {
    OFL_ASSIGN_OR_RETURN(*y, Squeeze(*y, Dims{0}));
  }
  return given.back().ndim() == 1 ? Squeeze(*y, Dims{-1}) : y;
}

namespace {

// Both with as many dims, and the dim counted from the front.
Status AlignAlong(const char* name, Tensor* a, Tensor* b, int64_t* dim) {
  if (!a->defined()) return NotDefined(name, "input");
  if (!b->defined()) return NotDefined(name, "other");
  if (a->ndim() != b->ndim()) {
    return ShapeMismatch(name, "other", b->shape(),
                         absl::StrCat(a->ndim(), " dims to go with ", a->shape().ToString()));
  }
  OFL_ASSIGN_OR_RETURN(*dim, WrapDim(name, *dim, *a));
  const Shape shapes[] = {a->shape(), b->shape()};
  OFL_ASSIGN_OR_RETURN(const Shape common, CommonShape(name, absl::MakeConstSpan(shapes)));
  OFL_ASSIGN_OR_RETURN(*a, Expand(*a, common));
  OFL_ASSIGN_OR_RETURN(*b, Expand(*b, common));
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> Cross(const Tensor& given_a, const Tensor& given_b, int64_t dim) {
  constexpr char kName[] = "linalg.cross";
  Tensor a = given_a, b = given_b;
  OFL_RETURN_IF_ERROR(AlignAlong(kName, &a, &b, &dim));
  for (const auto& [name, given] : {std::pair("input", given_a), std::pair("other", given_b)}) {
    if (given.ndim() > 0 && given.shape()[static_cast<int>(dim)] == 3) continue;
    return ShapeMismatch(kName, name, given.shape(), absl::StrCat("3 elements in dim ", dim));
  }
  // Element i is a[i + 1] b[i + 2] - a[i + 2] b[i + 1].
  const auto turned = [dim](const Tensor& x, int64_t by) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor back, Narrow(x, dim, by, 3 - by));
    OFL_ASSIGN_OR_RETURN(const Tensor front, Narrow(x, dim, 0, by));
    return Cat({{back, front}}, dim);
  };
  const DType dtype = PromoteTypes(a.dtype(), b.dtype());
  OFL_ASSIGN_OR_RETURN(a, Cast(a, ComputeType(dtype)));
  OFL_ASSIGN_OR_RETURN(b, Cast(b, ComputeType(dtype)));
  OFL_ASSIGN_OR_RETURN(const Tensor a1, turned(a, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor a2, turned(a, 2));
  OFL_ASSIGN_OR_RETURN(const Tensor b1, turned(b, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor b2, turned(b, 2));
  OFL_ASSIGN_OR_RETURN(const Tensor plus, Mul(a1, b2));
  OFL_ASSIGN_OR_RETURN(const Tensor minus, Mul(a2, b1));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Sub(plus, minus));
  return Cast(y, dtype);
}

StatusOr<Tensor> VecDot(const Tensor& given_a, const Tensor& given_b, int64_t dim) {
  constexpr char kName[] = "linalg.vecdot";
  if (!given_a.defined()) return NotDefined(kName, "x");
  if (!given_b.defined()) return NotDefined(kName, "y");
  StatusOr<Tensor> products = Mul(given_a, given_b);
  if (!products.ok()) return Renamed(kName, products.status());
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(kName, dim, *products));
  return Sum(*products, Dims{axis}, false, products->dtype());
}

StatusOr<Tensor> Vander(const Tensor& x, std::optional<int64_t> n) {
  constexpr char kName[] = "linalg.vander";
  if (!x.defined()) return NotDefined(kName, "x");
  if (x.ndim() == 0 && !n) return ShapeMismatch(kName, "x", x.shape(), "at least 1 dim");
  const int64_t powers = n ? *n : x.shape()[x.ndim() - 1];
  if (powers < 0) return BadValue(kName, "N", absl::StrCat(powers), "at least 0");
  OFL_ASSIGN_OR_RETURN(const Tensor line, x.ndim() == 0 ? Reshape(x, {1}) : StatusOr<Tensor>(x));
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(line, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor row, Arange(Scalar(powers), {}, {}, {}, x.device()));
  return Pow(column, row);
}

StatusOr<Tensor> TensorInv(const Tensor& a, int64_t ind) {
  constexpr char kName[] = "linalg.tensorinv";
  if (!a.defined()) return NotDefined(kName, "A");
  if (ind <= 0) return BadValue(kName, "ind", absl::StrCat(ind), "positive");
  const auto dims = absl::MakeConstSpan(a.shape().dims());
  const size_t rows = std::min<size_t>(static_cast<size_t>(ind), dims.size());
  const int64_t m = Product(dims.subspan(0, rows)), n = Product(dims.subspan(rows));
  if (m != n) {
    return ShapeMismatch(kName, "A", a.shape(),
                         absl::StrCat("as many elements in its first ", ind,
                                      " dims as in the "
                                      "others"));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor matrix, Reshape(a, {m, n}));
  StatusOr<Tensor> inverse = Inv(matrix);
  if (!inverse.ok()) return Renamed(kName, inverse.status());
  Dims shape(dims.begin() + static_cast<int64_t>(rows), dims.end());
  shape.insert(shape.end(), dims.begin(), dims.begin() + static_cast<int64_t>(rows));
  return Reshape(*inverse, shape);
}

StatusOr<Tensor> TensorSolve(const Tensor& given, const Tensor& b, std::optional<Dims> dims) {
  constexpr char kName[] = "linalg.tensorsolve";
  if (!given.defined()) return NotDefined(kName, "A");
  if (!b.defined()) return NotDefined(kName, "B");
  Tensor a = given;
  if (dims && !dims->empty()) {
    OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims(kName, a, *dims));
    Dims last;
    for (size_t i = 0; i < wrapped.size(); ++i) {
      last.push_back(a.ndim() - static_cast<int64_t>(wrapped.size() - i));
    }
    OFL_ASSIGN_OR_RETURN(a, Movedim(a, wrapped, last));
  }
  const auto shape = absl::MakeConstSpan(a.shape().dims());
  const size_t rows = std::min(static_cast<size_t>(b.ndim()), shape.size());
  const int64_t m = Product(shape.subspan(0, rows)), n = Product(shape.subspan(rows));
  if (m != n || m != b.numel()) {
    return ShapeMismatch(kName, "A", given.shape(),
                         absl::StrCat("the dims of B, ", b.shape().ToString(),
                                      ", and as many elements in the others"));
  }
  const Dims result(shape.begin() + static_cast<int64_t>(rows), shape.end());
  OFL_ASSIGN_OR_RETURN(const Tensor matrix, Reshape(a, {m, n}));
  OFL_ASSIGN_OR_RETURN(const Tensor flat, Reshape(b, {m}));
  StatusOr<Tensor> x = Solve(matrix, flat);
  return x.ok() ? Reshape(*x, result) : Renamed(kName, x.status());
}

}  // namespace oneflow_lite::functional
