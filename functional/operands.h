// SPDX-License-Identifier: Apache-2.0
//
// Calls of elementwise ops with operands that are tensors or numbers: promoted, cast, checked. For
// the functors of this library.
//
//   StatusOr<Tensor> Hypot(const Operand& a, const Operand& b) {
//     return CallFloating(OpOfTwo<"hypot">(), a, b);
//   }
#pragma once

#include <cstddef>
#include <cstdint>

#include "functional/binary.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

// An op's name as an argument of a template, which makes its OpExpr once.
template <size_t N>
struct OpName {
  constexpr OpName(const char (&given)[N]) {  // NOLINT: implicit, to be written as a literal
    for (size_t i = 0; i < N; ++i) text[i] = given[i];
  }
  char text[N];
};
// The name of the op whose form in place is `name`: the same without its last character, "_".
template <size_t N>
constexpr OpName<N - 1> PlainName(const OpName<N>& name) {
  char text[N - 1] = {};
  for (size_t i = 0; i + 2 < N; ++i) text[i] = name.text[i];
  return OpName<N - 1>(text);
}
template <OpName kName>
const OpExpr& OpOfTwo() {
  static const OpExpr& op = OpBuilder(kName.text).Input("a").Input("b").Output("out").Get();
  return op;
}
template <OpName kName>
const OpExpr& OpIntoFirst() {
  static const OpExpr& op = OpBuilder(kName.text).Input("self").Input("other").Output("out").Get();
  return op;
}

// bool < integers < floats.
inline int KindOfDType(DType t) { return t == DType::kBool ? 0 : IsFloating(t) ? 2 : 1; }
// What three operands are promoted to.
DType ResultDType(const Operand& a, const Operand& b, const Operand& c);
// TypeError in the op's name where no operand is a tensor.
Status CheckOperands(const OpExpr& op, const Operand& a, const Operand& b);
// An operand of arithmetic in `dtype`. A number and a 0-dim tensor on the CPU, which the kernel
// takes as a number, stay in the compute type: 16-bit floats are rounded once, after the operation.
StatusOr<Tensor> ToTerm(const OpExpr& op, const Operand& o, DType dtype);

// Whether a gradient's formula gives the same of operands that have not been cast: backward sees
// what the op was called with, and promotes it by and by.
enum class Gradient : uint8_t { kTakesAnyDType, kTakesOneDType };
// In the dtype that the operands are promoted to; with integers and bool as float32; in `dtype`,
// which is one of these. Tensors with dims are cast by the kernel as it loads them, unless the
// gradient needs them cast.
StatusOr<Tensor> CallPromoted(const OpExpr& op, const Operand& a, const Operand& b,
                              Gradient gradient = Gradient::kTakesOneDType);
StatusOr<Tensor> CallFloating(const OpExpr& op, const Operand& a, const Operand& b,
                              Gradient gradient = Gradient::kTakesOneDType);
StatusOr<Tensor> CallWithDType(const OpExpr& op, const Operand& a, const Operand& b, DType dtype,
                               Gradient gradient = Gradient::kTakesOneDType);
// DTypeError where self cannot hold elements of `result`.
Status CheckHolds(const OpExpr& op, const Tensor& self, DType result);
// self after `value`, or its error in the name of op, a form in place, has been written to it.
StatusOr<Tensor> Written(const OpExpr& op, const Tensor& self, StatusOr<Tensor> value);
// In place; `floating`: the result is no integer. Where self is narrower than what the operands are
// promoted to, `plain`, the op that is not in place, computes in that, and self is written once.
StatusOr<Tensor> CallInPlace(const OpExpr& op, const OpExpr& plain, const Tensor& self,
                             const Operand& other, bool floating = false);

}  // namespace oneflow_lite::functional
