// SPDX-License-Identifier: Apache-2.0
//
// What is computed of one element: a list of steps, each from earlier ones, and its text.
//
//   OFL_ASSIGN_OR_RETURN(Expression e, Expression::Parse("x, y: s = sigmoid(y); x * s, s"));
//   e.parameters()   {"x", "y"}
//   e.outputs()      the steps that give x * s and s
//
// The text is the body of a Python lambda: names, a colon, assignments that end in semicolons, then
// one result or more. It has numbers, + - * / // % **, comparisons, & | ^ ~ and the functions of
// ElementFunctions(); a float's dtype as a function is a cast: float16(x).
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

enum class ElementFn : uint8_t {
  kInput,
  kConstant,
  kCast,
  kWhere,
  kClampLow,   // of clamp: as kClampMin and kClampMax, the third operand is the other bound, which
  kClampHigh,  // the slopes look at
  // Of two operands that are promoted.
  kAdd,
  kSub,
  kMul,
  kMaximum,
  kMinimum,
  kClampMin,  // as kMaximum and kMinimum, but numbers beyond an integer dtype are no errors
  kClampMax,
  kFmod,
  kRemainder,
  kFloorDivide,
  kPow,
  kDiv,  // from here on floats
  kAtan2,
  kHypot,
  kCopySign,
  kXLogY,
  kLogAddExp,
  kFmax,
  kFmin,
  kGeluSlope,  // a times the slope of gelu at b
  kGeluTanhSlope,
  kEq,  // bool
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kAnd,  // of integers and bool
  kOr,
  kXor,
  // Of one.
  kNeg,
  kAbs,
  kRelu,
  kSign,
  kSquare,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kBitwiseNot,
  kIsNan,  // bool
  kIsInf,
  kIsFinite,
  kIsSigned,
  kLogicalNot,
  kExp,  // floats
  kExp2,
  kExpm1,
  kLog,
  kLog1p,
  kLog2,
  kLog10,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kSigmoid,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kErfc,
  kErfinv,
  kGelu,
  kGeluTanh,
};

// What a function gives.
enum class ElementRule : uint8_t {
  kPromoted,  // the dtype that its operands are promoted to
  kNumber,    // the same; none of bool
  kFloating,  // the same; float32 for integers and bool
  kTruth,     // bool
  kBits,      // as kPromoted, of integers and bool
};

struct ElementFunction {
  ElementFn fn;
  const char* name;
  int arity;
  ElementRule rule;
  // The gradient of each operand, of the operands a, b, c, the result y and its gradient g; null: 0
  const char* slopes[3] = {};
  // The gradient of a where all other operands are numbers, if it is another.
  const char* slope_beside_numbers = nullptr;
};
// Of a function that is one step; precondition: no input, constant or cast.
OFL_API const ElementFunction& FunctionOf(ElementFn fn);

// The names that a text may call, with their numbers of operands, in the order of the names. A name
// with a leading _ is a part of another function and not among them.
struct ElementFunctionName {
  std::string name;
  int arity;
};
OFL_API std::vector<ElementFunctionName> ElementFunctions();

class OFL_API Expression {
 public:
  struct Step {
    ElementFn fn = ElementFn::kInput;
    std::array<int, 3> args = {-1, -1, -1};
    int input = -1;                 // kInput: of which parameter
    Scalar number;                  // kConstant
    DType dtype = DType::kFloat32;  // kCast
    int arity() const;
  };
  static constexpr size_t kMostParameters = 64;
  static constexpr size_t kMostSteps = 10000;

  explicit Expression(std::vector<std::string> parameters);
  // ValueError with the place where the text is none.
  static StatusOr<Expression> Parse(absl::string_view text);

  const std::vector<std::string>& parameters() const { return parameters_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<int>& outputs() const { return outputs_; }
  // A text that Parse makes the same expression of.
  std::string Text() const;

  // A step, each distinct one once; gives its number.
  int Input(int i);
  int Constant(Scalar number);
  int Cast(int arg, DType dtype);
  int Add(ElementFn fn, int a, int b = -1, int c = -1);
  // The results of another expression, of these steps as its parameters.
  std::vector<int> Inline(const Expression& other, absl::Span<const int> arguments);
  // What step i is from now on, of steps before it.
  void Replace(int i, const Step& step) { steps_[i] = step; }
  // Sets the results and drops what none of them needs.
  void Finish(std::vector<int> outputs);

 private:
  using Key = std::tuple<int, int, int, int, int, uint64_t>;
  int Intern(const Step& step);

  std::vector<std::string> parameters_;
  std::vector<Step> steps_;
  std::vector<int> outputs_;
  std::map<Key, int> numbers_;
};

// The gradients of the parameters in `wanted`, which have these dtypes (kBool: not cast), where
// there are gradients of the outputs in `given`. Its parameters are those gradients, then the
// parameters of e; not all may be used. The parameters whose bits are in `numbers` are numbers.
// RuntimeError for a function without a slope.
struct ElementGradient {
  std::vector<int> wanted;
  std::vector<DType> dtypes;
  std::vector<int> given;
  uint64_t numbers = 0;
};
OFL_API StatusOr<Expression> Differentiate(const Expression& e, const ElementGradient& gradient);

}  // namespace oneflow_lite
