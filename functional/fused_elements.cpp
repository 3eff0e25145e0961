// SPDX-License-Identifier: Apache-2.0
#include "functional/fused_elements.h"

#include <array>
#include <string>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/expression_types.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite::functional {
namespace {

// The op that gives so many results: fuse_elements, fuse_elements_2, ...
StatusOr<const OpExpr*> OpOf(size_t results) {
  constexpr size_t kMost = 8;
  static const auto* ops = [] {
    auto* found = new std::array<const OpExpr*, kMost + 1>{};
    for (size_t n = 1; n <= kMost; ++n) {
      const auto op = FindOp(n == 1 ? "fuse_elements" : absl::StrCat("fuse_elements_", n));
      OFL_CHECK(op.ok());
      (*found)[n] = *op;
    }
    return found;
  }();
  if (results <= kMost) return (*ops)[results];
  return Error(ErrorKind::kValue, "fuse_elements(): the expression has ", results,
               " results, at most ", kMost, " are allowed");
}

StatusOr<Tensor> AsTensor(const Scalar& number) {
  const DType dtype = number.is_float() ? DType::kFloat64 : number.default_dtype();
  OFL_ASSIGN_OR_RETURN(Tensor t, Tensor::Empty(Shape{}, dtype, Device{}));
  VisitAll(dtype, [&]<class T>(Tag<T>) { *t.data<T>() = number.to<T>(); });
  return t;
}

}  // namespace

StatusOr<TensorList> FuseElementsOf(absl::string_view expression, absl::Span<const Tensor> tensors,
                                    int64_t numbers) {
  const std::string text(expression);
  OFL_ASSIGN_OR_RETURN(const auto e, ParsedExpression(text));
  if (tensors.size() != e->parameters().size()) {
    return Error(ErrorKind::kType, "fuse_elements(): the expression has ", e->parameters().size(),
                 " parameter(s), ", tensors.size(), " operand(s) were given");
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) return NotDefined("fuse_elements", e->parameters()[i]);
  }
  OFL_ASSIGN_OR_RETURN(const OpExpr* op, OpOf(e->outputs().size()));
  return CallAll(*op, tensors, {text, numbers});
}

StatusOr<TensorList> FuseElements(absl::string_view expression,
                                  absl::Span<const Operand> operands) {
  TensorList tensors;
  uint64_t numbers = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (const Tensor* t = std::get_if<Tensor>(&operands[i])) {
      tensors.push_back(*t);
      continue;
    }
    OFL_ASSIGN_OR_RETURN(Tensor t, AsTensor(std::get<Scalar>(operands[i])));
    tensors.push_back(std::move(t));
    if (i < 64) numbers |= uint64_t{1} << i;
  }
  return FuseElementsOf(expression, tensors, static_cast<int64_t>(numbers));
}

OFL_REGISTER_FUNCTION(
    "fuse_elements(str expression, Tensor[] tensors, int numbers=0) -> Tensor[]", FuseElementsOf,
    kFunction,
    "The results of an expression of one element, such as 'x, y: x * sigmoid(y)', over tensors "
    "that broadcast against each other, in one pass; flow.fuse.elements makes one of a lambda. The "
    "tensors whose bits are in numbers are 0-dim and promoted as Python's numbers are.");

}  // namespace oneflow_lite::functional
