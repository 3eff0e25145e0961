// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/expression_types.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace {

constexpr char kOp[] = "fuse_elements";

// bool < integers < floats.
int KindOf(DType t) { return t == DType::kBool ? 0 : IsFloating(t) ? 2 : 1; }

ElementType Promoted(absl::Span<const ElementType> given) {
  std::optional<DType> dtype;
  ElementType result{DType::kBool, ElementType::kNumber};
  for (int strength = ElementType::kTensor; strength >= 0; --strength) {
    std::optional<DType> alike;
    for (const ElementType& t : given) {
      if (t.strength == strength) alike = alike ? PromoteTypes(*alike, t.dtype) : t.dtype;
    }
    if (!alike) continue;
    if (!dtype) result.strength = static_cast<ElementType::Strength>(strength);
    dtype = dtype && KindOf(*alike) <= KindOf(*dtype) ? *dtype : *alike;
  }
  result.dtype = *dtype;
  return result;
}

// What numbers and elements are compared in: the number as it is.
DType ComparedIn(const ElementType& promoted, absl::Span<const ElementType> given) {
  const auto is_number = [](const ElementType& t) { return t.strength == ElementType::kNumber; };
  const auto is_float = [](const ElementType& t) { return IsFloating(t.dtype); };
  const bool any = std::any_of(given.begin(), given.end(), is_number);
  if (any && KindOf(promoted.dtype) < 2) return DType::kInt64;
  if (any && std::count_if(given.begin(), given.end(), is_float) == 1 &&
      std::any_of(given.begin(), given.end(),
                  [&](const ElementType& t) { return is_number(t) && is_float(t); })) {
    return DType::kFloat64;  // an integer beside a float's number
  }
  return promoted.computed();
}

class Typing {
 public:
  explicit Typing(TypedExpression* t) : t_(*t) {}

  Status Run() {
    for (size_t i = 0; i < t_.expression.steps().size(); ++i) {
      const Expression::Step& step = t_.expression.steps()[i];
      t_.types.emplace_back();
      t_.taken.push_back(DType::kBool);
      OFL_RETURN_IF_ERROR(Visit(step, &t_.types[i], &t_.taken[i]));
      const bool clamps = IsClamp(step.fn);
      t_.expression.Replace(static_cast<int>(i), Settled(step, t_.taken[i]));
      OFL_RETURN_IF_ERROR(Check(step, t_.taken[i], clamps));
    }
    for (const int output : t_.expression.outputs()) {
      const ElementType& type = t_.types[output];
      const Expression::Step& step = t_.expression.steps()[output];
      if (step.fn == ElementFn::kConstant) {
        OFL_RETURN_IF_ERROR(CheckFits(kOp, step.number, type.dtype));
      }
      const bool wide = type.strength == ElementType::kNumber && IsFloating(type.dtype);
      t_.outputs.push_back(wide ? DType::kFloat32 : type.dtype);
    }
    return OkStatus();
  }

 private:
  Status Visit(const Expression::Step& step, ElementType* type, DType* taken) {
    if (step.fn == ElementFn::kInput) {
      *type = t_.inputs[step.input];
      if (type->strength == ElementType::kNumber && IsFloating(type->dtype)) {
        type->dtype = DType::kFloat32;  // as promotion sees it
      }
      return OkStatus();
    }
    if (step.fn == ElementFn::kConstant) {
      *type = {step.number.default_dtype(), ElementType::kNumber};
      return OkStatus();
    }
    ElementType given[3];
    for (int k = 0; k < step.arity(); ++k) given[k] = t_.types[step.args[k]];
    const auto all = absl::MakeConstSpan(given, static_cast<size_t>(step.arity()));
    if (step.fn == ElementFn::kCast) {
      *type = {step.dtype, std::max(given[0].strength, ElementType::kScalar)};
      *taken = given[0].computed();
      return OkStatus();
    }
    return Apply(FunctionOf(step.fn), all, type, taken);
  }

  static Status Apply(const ElementFunction& f, absl::Span<const ElementType> given,
                      ElementType* type, DType* taken) {
    if (f.fn == ElementFn::kWhere && given[0].dtype != DType::kBool) {
      return UnsupportedDType(kOp, "the condition of where", given[0].dtype, "bool");
    }
    // Of where, the condition has no say.
    *type = Promoted(f.fn == ElementFn::kWhere ? given.subspan(1) : given);
    if (f.fn == ElementFn::kWhere) type->strength = Promoted(given).strength;
    if (f.rule == ElementRule::kFloating && !IsFloating(type->dtype)) {
      type->dtype = DType::kFloat32;
    }
    const bool is_bool = type->dtype == DType::kBool;
    if (f.rule == ElementRule::kNumber && is_bool && type->strength > ElementType::kNumber) {
      return UnsupportedDType(kOp, absl::StrCat("an operand of ", f.name), type->dtype,
                              "a number's dtype");
    }
    if (f.rule == ElementRule::kNumber && is_bool) type->dtype = DType::kInt64;  // as Python's True
    if (f.rule == ElementRule::kBits && IsFloating(type->dtype)) {
      return UnsupportedDType(kOp, absl::StrCat("an operand of ", f.name), type->dtype,
                              "an integer dtype or bool");
    }
    *taken = type->computed();
    if (f.rule == ElementRule::kTruth) {
      *taken = ComparedIn(*type, given);
      type->dtype = DType::kBool;
    }
    return OkStatus();
  }

  // The number that is a step's operand; null: not one that the text has.
  const Scalar* NumberAt(int step) const {
    const Expression::Step& arg = t_.expression.steps()[step];
    return arg.fn == ElementFn::kConstant ? &arg.number : nullptr;
  }

  static Expression::Step Constant(const Scalar& number) {
    Expression::Step step;
    step.fn = ElementFn::kConstant;
    step.number = number;
    return step;
  }

  static bool IsClamp(ElementFn fn) {
    return IsMin(fn) || fn == ElementFn::kClampMax || fn == ElementFn::kClampHigh;
  }
  static bool IsMin(ElementFn fn) {
    return fn == ElementFn::kClampMin || fn == ElementFn::kClampLow;
  }

  // The step where it asks what it may of numbers beyond the dtype that operands are taken as.
  Expression::Step Settled(const Expression::Step& step, DType taken) const {
    if (IsClamp(step.fn)) return Clamped(step, taken);
    const bool is_fmax = step.fn == ElementFn::kFmax;
    if ((is_fmax || step.fn == ElementFn::kFmin) && !IsFloating(taken)) {  // none is NaN
      Expression::Step same = step;
      same.fn = is_fmax ? ElementFn::kMaximum : ElementFn::kMinimum;
      return same;
    }
    const bool compares = step.fn >= ElementFn::kEq && step.fn <= ElementFn::kGe;
    return compares && !IsFloating(taken) ? Compared(step) : step;
  }

  // A comparison of an integer with one beyond int64 has one answer.
  Expression::Step Compared(const Expression::Step& step) const {
    const auto beyond = [&](int k) {
      const Scalar* number = NumberAt(step.args[k]);
      return number && number->kind() == Scalar::Kind::kLargeInt ? number : nullptr;
    };
    const Scalar *left = beyond(0), *right = beyond(1);
    if (!left == !right) return step;
    if (step.fn == ElementFn::kEq || step.fn == ElementFn::kNe) {
      return Constant(Scalar(step.fn == ElementFn::kNe));
    }
    const bool is_less = right ? right->to<double>() > 0 : left->to<double>() < 0;
    const bool asks_less = step.fn == ElementFn::kLt || step.fn == ElementFn::kLe;
    return Constant(Scalar(is_less == asks_less));
  }

  // A bound beyond the dtype is none, or makes every element the dtype's last integer.
  Expression::Step Clamped(const Expression::Step& step, DType taken) const {
    const bool is_min = IsMin(step.fn);
    const Scalar* bound = NumberAt(step.args[1]);
    Expression::Step same = step;
    same.fn = is_min ? ElementFn::kMaximum : ElementFn::kMinimum;
    same.args[2] = -1;
    if (!bound || bound->Fits(taken)) return same;
    const bool is_above = bound->to<double>() > 0;
    if (is_min == is_above) {
      const Scalar last = VisitAll(taken, [&]<class T>(Tag<T>) {
        if constexpr (std::is_integral_v<T>) {
          using Limits = std::numeric_limits<T>;
          return Scalar(static_cast<int64_t>(is_min ? Limits::max() : Limits::min()));
        } else {
          return *bound;  // an integer that no double is near
        }
      });
      return Constant(last);
    }
    same.args[1] = same.args[0];
    return same;
  }

  // Whether the numbers among the operands are what they are taken as.
  Status Check(const Expression::Step& step, DType taken, bool clamps) {
    for (int k = step.fn == ElementFn::kWhere ? 1 : 0; k < step.arity(); ++k) {
      const Expression::Step& arg = t_.expression.steps()[step.args[k]];
      const bool is_exponent = step.fn == ElementFn::kPow && k == 1;
      if (arg.fn == ElementFn::kConstant) {
        OFL_RETURN_IF_ERROR(CheckUse(arg.number, {arg.input, taken, is_exponent, false}));
      } else if (arg.fn == ElementFn::kInput &&
                 t_.inputs[arg.input].strength == ElementType::kNumber) {
        t_.uses.push_back({arg.input, taken, is_exponent, clamps && k == 1});
      }
    }
    return OkStatus();
  }

  TypedExpression& t_;
};

}  // namespace

Status CheckUse(const Scalar& number, const TypedExpression::Use& use) {
  if (use.is_exponent) OFL_RETURN_IF_ERROR(CheckExponent(kOp, number, use.dtype));
  return CheckFits(kOp, number, use.dtype);
}

StatusOr<TypedExpression> Typed(const Expression& e, absl::Span<const ElementType> inputs) {
  TypedExpression typed{e, {inputs.begin(), inputs.end()}, {}, {}, {}, {}};
  OFL_RETURN_IF_ERROR(Typing(&typed).Run());
  return typed;
}

namespace {

// What was made of texts; begun anew where that becomes much. Thread-safe.
template <class T>
class Made {
 public:
  template <class F>
  StatusOr<std::shared_ptr<const T>> Get(const std::string& key, F make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = made_.find(key); found != made_.end()) return found->second;
    }
    OFL_ASSIGN_OR_RETURN(T t, make());
    const std::lock_guard lock(mutex_);
    if (made_.size() >= kMost) made_.clear();
    return made_.try_emplace(key, std::make_shared<const T>(std::move(t))).first->second;
  }

 private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const T>> made_;
};

}  // namespace

StatusOr<std::shared_ptr<const Expression>> ParsedExpression(const std::string& text) {
  static auto* made = new Made<Expression>;
  return made->Get(text, [&] { return Expression::Parse(text); });
}

StatusOr<std::shared_ptr<const TypedExpression>> TypedOnce(const std::string& text,
                                                           absl::Span<const ElementType> inputs) {
  static auto* made = new Made<TypedExpression>;
  std::string key = text;
  for (const ElementType& t : inputs) {
    key += '\0';
    key += static_cast<char>(t.dtype);
    key += static_cast<char>(t.strength);
  }
  return made->Get(key, [&]() -> StatusOr<TypedExpression> {
    OFL_ASSIGN_OR_RETURN(const auto e, ParsedExpression(text));
    const size_t wanted = e->parameters().size();
    if (inputs.size() != wanted) {
      return Error(ErrorKind::kType, kOp, "(): the expression has ", wanted, " parameter(s), ",
                   inputs.size(), " operand(s) were given");
    }
    return Typed(*e, inputs);
  });
}

}  // namespace oneflow_lite
