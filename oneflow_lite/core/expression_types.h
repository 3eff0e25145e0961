// SPDX-License-Identifier: Apache-2.0
//
// The dtypes of an expression's steps, by PyTorch's rules of promotion: what each gives, and the
// type in which it is computed.
//
//   OFL_ASSIGN_OR_RETURN(TypedExpression t, Typed(e, {{DType::kFloat16, ElementType::kTensor},
//                                                     {DType::kFloat64, ElementType::kNumber}}));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oneflow_lite/core/expression.h"

namespace oneflow_lite {

struct ElementType {
  // A weaker operand changes the dtype of what is computed only where its kind is higher.
  enum Strength : uint8_t { kNumber, kScalar, kTensor };  // a number, a 0-dim tensor, with dims

  DType dtype = DType::kFloat32;
  Strength strength = kTensor;

  // What such an element is computed in: a float beside no tensor is a double, as Python's.
  DType computed() const {
    return strength == kNumber && IsFloating(dtype) ? DType::kFloat64 : ComputeType(dtype);
  }
  bool operator==(const ElementType&) const = default;
};

struct TypedExpression {
  Expression expression;
  std::vector<ElementType> inputs;
  std::vector<ElementType> types;  // of each step
  std::vector<DType> taken;        // what each step takes its operands as, where it has any
  std::vector<DType> outputs;

  // A number that an input holds must fit all of these, which it is taken as. As a bound of clamp
  // it may be beyond the dtype: the call takes it as one that the text has.
  struct Use {
    int input;
    DType dtype;
    bool is_exponent;  // of integers, which have no negative powers
    bool is_bound;
  };
  std::vector<Use> uses;
};

OFL_API Status CheckUse(const Scalar& number, const TypedExpression::Use& use);

// DTypeError that names the function which has no such operands; OverflowError for a constant that
// an integer dtype does not hold.
OFL_API StatusOr<TypedExpression> Typed(const Expression& e, absl::Span<const ElementType> inputs);

// Both kept for the next call with the same text, and types.
OFL_API StatusOr<std::shared_ptr<const Expression>> ParsedExpression(const std::string& text);
OFL_API StatusOr<std::shared_ptr<const TypedExpression>> TypedOnce(
    const std::string& text, absl::Span<const ElementType> inputs);

}  // namespace oneflow_lite
