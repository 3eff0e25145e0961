// SPDX-License-Identifier: Apache-2.0
#include "functional/scan.h"

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

const OpExpr& ScanExpr(const char* name) {
  return OpBuilder(name).Input("in").Output("out").Attr("dim").Attr("reverse").Get();
}
const OpExpr& ExtremesExpr(const char* name) {
  return OpBuilder(name)
      .Input("in")
      .Output("values")
      .Output("indices")
      .Attr("dim")
      .Attr("reverse")
      .Get();
}

// Cast to dtype, where absent integers and bool to int64, then scanned.
StatusOr<Tensor> CallScan(const char* name, const OpExpr& op, const Tensor& input, int64_t dim,
                          std::optional<DType> dtype) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, dim, input));
  const DType own = IsFloating(input.dtype()) ? input.dtype() : DType::kInt64;
  OFL_ASSIGN_OR_RETURN(Tensor x, Cast(input, dtype.value_or(own)));
  return Call(op, {x}, {axis, false});
}

StatusOr<TensorList> CallExtremes(const char* name, const OpExpr& op, const Tensor& x,
                                  int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, dim, x));
  const Tensor inputs[] = {x};
  return CallAll(op, inputs, {axis, false});
}

}  // namespace

StatusOr<Tensor> CumSum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  static const OpExpr& op = ScanExpr("cumsum");
  return CallScan("cumsum", op, input, dim, dtype);
}

StatusOr<Tensor> CumProd(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  static const OpExpr& op = ScanExpr("cumprod");
  return CallScan("cumprod", op, input, dim, dtype);
}

StatusOr<Tensor> CumProdFrom(const Tensor& x, int64_t dim, bool reverse) {
  static const OpExpr& op = ScanExpr("cumprod");
  return Call(op, {x}, {dim, reverse});
}

StatusOr<TensorList> CumMax(const Tensor& x, int64_t dim) {
  static const OpExpr& op = ExtremesExpr("cummax");
  return CallExtremes("cummax", op, x, dim);
}

StatusOr<TensorList> CumMin(const Tensor& x, int64_t dim) {
  static const OpExpr& op = ExtremesExpr("cummin");
  return CallExtremes("cummin", op, x, dim);
}

StatusOr<Tensor> LogCumSumExp(const Tensor& x, int64_t dim) {
  static const OpExpr& op = ScanExpr("logcumsumexp");
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("logcumsumexp", dim, x));
  return Call(op, {x}, {axis, false});
}

StatusOr<Tensor> LinearScan(const Tensor& x, const Tensor& factor, int64_t dim, bool reverse,
                            bool shifted) {
  static const OpExpr& op = OpBuilder("linear_scan")
                                .Input("in")
                                .Input("factor")
                                .Output("out")
                                .Attr("dim")
                                .Attr("reverse")
                                .Attr("shifted")
                                .Get();
  return Call(op, {x, factor}, {dim, reverse, shifted});
}

StatusOr<Tensor> Diff(const Tensor& input, int64_t n, int64_t dim, const Tensor& prepend,
                      const Tensor& append) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("diff", dim, input));
  if (input.ndim() == 0) return ShapeMismatch("diff", "input", input.shape(), "at least 1 dim");
  if (n < 0) {
    return Error(ErrorKind::kValue, "diff(): n is ", n, ", but it must not be negative");
  }
  Tensor x = input;
  if (n > 0 && (prepend.defined() || append.defined())) {
    TensorList parts;
    for (const Tensor* t : {&prepend, &input, &append}) {
      if (t->defined()) parts.push_back(*t);
    }
    OFL_ASSIGN_OR_RETURN(x, Cat(parts, axis));
  }
  const DType dtype = x.dtype();
  if (n > 1) {
    OFL_ASSIGN_OR_RETURN(x, Cast(x, ComputeType(dtype)));  // rounded once
  }
  for (int64_t i = 0; i < n && x.shape()[static_cast<int>(axis)] > 0; ++i) {
    const int64_t rest = x.shape()[static_cast<int>(axis)] - 1;
    OFL_ASSIGN_OR_RETURN(const Tensor later, Narrow(x, axis, 1, rest));
    OFL_ASSIGN_OR_RETURN(const Tensor earlier, Narrow(x, axis, 0, rest));
    OFL_ASSIGN_OR_RETURN(x, dtype == DType::kBool ? Ne(later, earlier) : Sub(later, earlier));
  }
  OFL_ASSIGN_OR_RETURN(x, Cast(x, dtype));
  return x.IsSame(input) ? Clone(x) : StatusOr<Tensor>(x);
}

OFL_REGISTER_FUNCTION(
    "diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    Diff, kMethod,
    "The differences of neighbours along a dim, n times; of input with tensors joined to it in "
    "front and behind, where given.");
OFL_REGISTER_FUNCTION("cumsum(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", CumSum,
                      kMethod,
                      "The sums of the elements up to each one along dim; bool and integers are "
                      "summed in int64.");
OFL_REGISTER_FUNCTION("cumprod(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", CumProd,
                      kMethod,
                      "The products of the elements up to each one along dim; bool and integers "
                      "are multiplied in int64.");
OFL_REGISTER_FUNCTION("cummax(Tensor input, int dim) -> (Tensor values, Tensor indices)", CumMax,
                      kMethod,
                      "The largest of each element and all before it along dim, and its place.");
OFL_REGISTER_FUNCTION("cummin(Tensor input, int dim) -> (Tensor values, Tensor indices)", CumMin,
                      kMethod,
                      "The smallest of each element and all before it along dim, and its place.");
OFL_REGISTER_FUNCTION("logcumsumexp(Tensor input, int dim) -> Tensor", LogCumSumExp, kMethod,
                      "log of the running sum of exp(x) along dim, without overflow.");

}  // namespace oneflow_lite::functional
