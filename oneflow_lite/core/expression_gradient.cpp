// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>

#include "oneflow_lite/core/expression.h"

namespace oneflow_lite {
namespace {

// Collects the gradients of steps, from the last to the first.
class Reverse {
 public:
  Reverse(const Expression& e, Expression* out, std::vector<int> placed, uint64_t numbers)
      : e_(e), out_(*out), placed_(std::move(placed)), gradients_(e.steps().size(), -1) {
    for (const Expression::Step& step : e.steps()) {
      bool all = step.fn != ElementFn::kInput || numbers >> step.input & 1;
      for (const int arg : step.args) all = all && (arg < 0 || is_number_[arg]);
      is_number_.push_back(all);
    }
  }

  void Flow(int step, int gradient) {
    int& sum = gradients_[step];
    sum = sum < 0 ? gradient : out_.Add(ElementFn::kAdd, sum, gradient);
  }

  // Through every step that depends on a wanted parameter.
  void Run(const std::vector<char>& matters) {
    for (int i = static_cast<int>(e_.steps().size()) - 1; i >= 0; --i) {
      if (gradients_[i] >= 0 && matters[i]) Visit(i, matters);
    }
  }

  int gradient(int step) const { return gradients_[step]; }

 private:
  void Visit(int i, const std::vector<char>& matters) {
    const Expression::Step& step = e_.steps()[i];
    if (step.fn == ElementFn::kCast) return Flow(step.args[0], gradients_[i]);
    if (step.fn == ElementFn::kInput) return;
    const ElementFunction& f = FunctionOf(step.fn);
    for (int k = 0; k < f.arity; ++k) {
      if (!matters[step.args[k]] || !f.slopes[k]) continue;
      // Parameters a, b, c, y, g; those that an operation does not have are not used.
      int arguments[5];
      for (int j = 0; j < 3; ++j) arguments[j] = placed_[step.args[j < f.arity ? j : 0]];
      arguments[3] = placed_[i];
      arguments[4] = gradients_[i];
      Flow(step.args[k], Inlined(SlopeOf(f, step, k), arguments));
    }
  }

  const char* SlopeOf(const ElementFunction& f, const Expression::Step& step, int k) const {
    bool others = f.slope_beside_numbers && k == 0;
    for (int j = 1; j < f.arity; ++j) others = others && is_number_[step.args[j]];
    return others ? f.slope_beside_numbers : f.slopes[k];
  }

  int Inlined(const char* slope, absl::Span<const int> arguments);

  const Expression& e_;
  Expression& out_;
  std::vector<int> placed_;  // where each step is in out
  std::vector<int> gradients_;
  std::vector<char> is_number_;  // whether a step depends on no tensor
};

const Expression& Parsed(const char* slope) {
  static std::map<const char*, Expression>* slopes = new std::map<const char*, Expression>;
  static std::mutex* mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  auto found = slopes->find(slope);
  if (found == slopes->end()) {
    StatusOr<Expression> e = Expression::Parse(absl::StrCat("a, b, c, y, g: ", slope));
    OFL_CHECK(e.ok());
    found = slopes->emplace(slope, *std::move(e)).first;
  }
  return found->second;
}

int Reverse::Inlined(const char* slope, absl::Span<const int> arguments) {
  return out_.Inline(Parsed(slope), arguments)[0];
}

// The steps that depend on the wanted parameters by way of floats.
std::vector<char> StepsOf(const Expression& e, absl::Span<const int> wanted) {
  std::vector<char> matters;
  for (const Expression::Step& step : e.steps()) {
    bool any = step.fn == ElementFn::kInput &&
               std::find(wanted.begin(), wanted.end(), step.input) != wanted.end();
    const bool cut = step.fn == ElementFn::kCast && !IsFloating(step.dtype);
    for (const int arg : step.args) any = any || (arg >= 0 && matters[arg] && !cut);
    matters.push_back(any);
  }
  return matters;
}

}  // namespace

StatusOr<Expression> Differentiate(const Expression& e, const ElementGradient& gradient) {
  std::vector<std::string> names;
  for (size_t j = 0; j < gradient.given.size(); ++j) names.push_back(absl::StrCat("d", j));
  for (size_t i = 0; i < e.parameters().size(); ++i) names.push_back(absl::StrCat("x", i));
  Expression out(std::move(names));
  const int first = static_cast<int>(gradient.given.size());
  std::vector<int> inputs;
  for (size_t i = 0; i < e.parameters().size(); ++i) {
    inputs.push_back(out.Input(first + static_cast<int>(i)));
  }
  Expression all = e;  // every step is a result, to learn where it is
  std::vector<int> every(e.steps().size());
  for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<int>(i);
  all.Finish(every);
  Reverse reverse(e, &out, out.Inline(all, inputs), gradient.numbers);
  for (int j = 0; j < first; ++j) reverse.Flow(e.outputs()[gradient.given[j]], out.Input(j));
  reverse.Run(StepsOf(e, gradient.wanted));
  std::vector<int> results;
  for (size_t k = 0; k < gradient.wanted.size(); ++k) {
    int found = -1;
    for (size_t i = 0; i < e.steps().size(); ++i) {
      const Expression::Step& step = e.steps()[i];
      const bool is_it = step.fn == ElementFn::kInput && step.input == gradient.wanted[k];
      if (is_it) found = reverse.gradient(static_cast<int>(i));
    }
    if (found < 0) found = out.Constant(Scalar(0.0));
    if (gradient.dtypes[k] != DType::kBool) found = out.Cast(found, gradient.dtypes[k]);
    results.push_back(found);
  }
  out.Finish(std::move(results));
  return out;
}

}  // namespace oneflow_lite
