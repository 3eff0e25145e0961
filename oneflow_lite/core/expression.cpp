// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/expression.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace oneflow_lite {
namespace {

// So that Parse reads the same number, of the same kind.
std::string TextOf(const Scalar& number) {
  if (number.kind() == Scalar::Kind::kBool) return number.to<bool>() ? "True" : "False";
  if (!number.is_float()) return absl::StrCat(number.to<int64_t>());
  const double v = number.to<double>();
  if (number.kind() == Scalar::Kind::kLargeInt) {
    // -2^63 itself is in int64; the integer below it has the same double.
    return v == -0x1p63 ? "-9223372036854775809" : absl::StrFormat("%.0f", v);
  }
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string text = absl::StrFormat("%.17g", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

uint64_t BitsOf(const Scalar& number) {
  uint64_t bits = 0;
  if (number.is_float()) {
    const double v = number.to<double>();  // 0.0 is not -0.0, NaN is NaN
    std::memcpy(&bits, &v, sizeof(bits));
  } else {
    bits = static_cast<uint64_t>(number.to<int64_t>());
  }
  return bits;
}

}  // namespace

int Expression::Step::arity() const {
  if (fn == ElementFn::kInput || fn == ElementFn::kConstant) return 0;
  return fn == ElementFn::kCast ? 1 : FunctionOf(fn).arity;
}

Expression::Expression(std::vector<std::string> parameters) : parameters_(std::move(parameters)) {}

int Expression::Intern(const Step& step) {
  int which = static_cast<int>(step.fn);
  uint64_t bits = 0;
  if (step.fn == ElementFn::kConstant) {
    which += 256 * (1 + static_cast<int>(step.number.kind()));
    bits = BitsOf(step.number);
  } else if (step.fn == ElementFn::kCast) {
    bits = static_cast<uint64_t>(step.dtype);
  }
  const Key key{which, step.input, step.args[0], step.args[1], step.args[2], bits};
  const auto [found, is_new] = numbers_.try_emplace(key, static_cast<int>(steps_.size()));
  if (is_new) steps_.push_back(step);
  return found->second;
}

int Expression::Input(int i) {
  Step step;
  step.input = i;
  return Intern(step);
}

int Expression::Constant(Scalar number) {
  Step step;
  step.fn = ElementFn::kConstant;
  step.number = number;
  return Intern(step);
}

int Expression::Cast(int arg, DType dtype) {
  Step step;
  step.fn = ElementFn::kCast;
  step.args[0] = arg;
  step.dtype = dtype;
  return Intern(step);
}

int Expression::Add(ElementFn fn, int a, int b, int c) {
  Step step;
  step.fn = fn;
  step.args = {a, b, c};
  return Intern(step);
}

std::vector<int> Expression::Inline(const Expression& other, absl::Span<const int> arguments) {
  std::vector<int> placed;
  for (const Step& step : other.steps_) {
    const auto& args = step.args;
    const auto at = [&](int i) { return args[i] < 0 ? -1 : placed[args[i]]; };
    switch (step.fn) {
      case ElementFn::kInput:
        placed.push_back(arguments[step.input]);
        break;
      case ElementFn::kConstant:
        placed.push_back(Constant(step.number));
        break;
      case ElementFn::kCast:
        placed.push_back(Cast(at(0), step.dtype));
        break;
      default:
        placed.push_back(Add(step.fn, at(0), at(1), at(2)));
    }
  }
  std::vector<int> results;
  for (const int output : other.outputs_) results.push_back(placed[output]);
  return results;
}

void Expression::Finish(std::vector<int> outputs) {
  std::vector<char> live(steps_.size(), 0);
  for (const int output : outputs) live[output] = 1;
  for (size_t i = steps_.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const int arg : steps_[i].args) {
      if (arg >= 0) live[arg] = 1;
    }
  }
  std::vector<Step> kept;
  std::vector<int> moved(steps_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!live[i]) continue;
    moved[i] = static_cast<int>(kept.size());
    kept.push_back(steps_[i]);
    for (int& arg : kept.back().args) {
      if (arg >= 0) arg = moved[arg];
    }
  }
  steps_ = std::move(kept);
  for (int& output : outputs) output = moved[output];
  outputs_ = std::move(outputs);
  numbers_.clear();
}

std::string Expression::Text() const {
  std::string text = absl::StrJoin(parameters_, ", ") + ":";
  std::vector<std::string> names;
  std::string prefix = "t";  // of names that no parameter has
  const auto taken = [&](const std::string& name) { return name.rfind(prefix, 0) == 0; };
  while (std::any_of(parameters_.begin(), parameters_.end(), taken)) prefix += "_";
  for (const Step& step : steps_) {
    if (step.fn == ElementFn::kInput) {
      names.push_back(parameters_[step.input]);
    } else if (step.fn == ElementFn::kConstant) {
      names.push_back(TextOf(step.number));
    } else {
      const std::string name = absl::StrCat(prefix, names.size());
      absl::StrAppend(&text, " ", name, " = ",
                      step.fn == ElementFn::kCast ? Name(step.dtype) : FunctionOf(step.fn).name,
                      "(");
      for (int i = 0; i < step.arity(); ++i) {
        absl::StrAppend(&text, i ? ", " : "", names[step.args[i]]);
      }
      absl::StrAppend(&text, ");");
      names.push_back(name);
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    absl::StrAppend(&text, i ? ", " : " ", names[outputs_[i]]);
  }
  return text;
}

}  // namespace oneflow_lite
