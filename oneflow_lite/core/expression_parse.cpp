// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "oneflow_lite/core/expression_functions.h"

namespace oneflow_lite {
namespace {

using internal::ComposedFunctions;
using internal::ParsedOnce;
using internal::StepFunctions;

// Names may have letters of any language.
bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_' || (c & 0x80); }
bool IsNumberWord(absl::string_view word) {
  return word == "inf" || word == "nan" || word == "True" || word == "False";
}

// Whether the digits, in parentheses or not, are 2^63: beyond int64, though the negative is not.
bool IsBeyondByOne(absl::string_view digits) {
  const auto strip = [](char c, char parenthesis) {
    return c == parenthesis || absl::ascii_isspace(c);
  };
  while (!digits.empty() && strip(digits.front(), '(')) digits.remove_prefix(1);
  while (!digits.empty() && strip(digits.back(), ')')) digits.remove_suffix(1);
  uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() && value == 1ull << 63;
}

// Of a number that is no bool, written as `text`.
Scalar Negative(const Scalar& number, absl::string_view text) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  if (number.kind() == Scalar::Kind::kFloat) return Scalar(-number.to<double>());
  if (number.kind() == Scalar::Kind::kLargeInt) {
    return IsBeyondByOne(text) ? Scalar(kLeast) : Scalar::LargeInt(-number.to<double>());
  }
  const auto whole = number.to<int64_t>();
  return whole == kLeast ? Scalar::LargeInt(-static_cast<double>(whole)) : Scalar(-whole);
}

struct BinaryOperator {
  const char* text;
  ElementFn fn;
};
// Loosest first; the longer of two that begin alike comes first.
constexpr BinaryOperator kComparisons[] = {{"==", ElementFn::kEq}, {"!=", ElementFn::kNe},
                                           {"<=", ElementFn::kLe}, {">=", ElementFn::kGe},
                                           {"<", ElementFn::kLt},  {">", ElementFn::kGt}};
constexpr BinaryOperator kOrs[] = {{"|", ElementFn::kOr}};
constexpr BinaryOperator kXors[] = {{"^", ElementFn::kXor}};
constexpr BinaryOperator kAnds[] = {{"&", ElementFn::kAnd}};
constexpr BinaryOperator kSums[] = {{"+", ElementFn::kAdd}, {"-", ElementFn::kSub}};
constexpr BinaryOperator kProducts[] = {{"*", ElementFn::kMul},
                                        {"//", ElementFn::kFloorDivide},
                                        {"/", ElementFn::kDiv},
                                        {"%", ElementFn::kRemainder}};
constexpr absl::Span<const BinaryOperator> kLevels[] = {kComparisons, kOrs,  kXors,
                                                        kAnds,        kSums, kProducts};

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  StatusOr<Expression> Run() {
    OFL_RETURN_IF_ERROR(Parameters());
    std::vector<int> results;
    while (true) {
      Skip();
      const size_t start = at_;
      const absl::string_view name = Name();
      if (!name.empty() && Take("=") && Peek() != '=') {
        OFL_RETURN_IF_ERROR(CheckName(name, start));
        OFL_ASSIGN_OR_RETURN(scope_[std::string(name)], Level(0));
        if (!Take(";")) return Fail("; is expected behind an assignment");
        continue;
      }
      at_ = start;
      break;
    }
    do {
      OFL_ASSIGN_OR_RETURN(const int result, Level(0));
      results.push_back(result);
    } while (Take(","));
    Skip();
    if (at_ < text_.size()) return Fail("an operator is expected");
    e_.Finish(std::move(results));
    return std::move(e_);
  }

 private:
  static constexpr int kMostDepth = 200;

  Status Fail(const std::string& why) const { return FailAt(at_, why); }
  Status FailAt(size_t at, const std::string& why) const {
    const std::string shown(text_.substr(at, 24));
    return Error(
        ErrorKind::kValue, "fuse_elements(): ", why, " at character ", at + 1,
        at < text_.size() ? " of the expression, '" + shown + "'" : " of the expression, its end");
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }
  bool Take(absl::string_view token) {
    Skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  absl::string_view Name() {
    Skip();
    size_t end = at_;
    if (!absl::ascii_isdigit(Peek())) {
      while (end < text_.size() && IsNameChar(text_[end])) ++end;
    }
    const absl::string_view name = text_.substr(at_, end - at_);
    at_ = end;
    return name;
  }
  Status CheckName(absl::string_view name, size_t at) const {
    if (!IsNumberWord(name)) return OkStatus();
    return FailAt(at, absl::StrCat(name, " is a number and cannot be a name"));
  }

  Status Parameters() {
    std::vector<std::string> names;
    do {
      Skip();
      const size_t start = at_;
      const std::string name(Name());
      if (name.empty()) return Fail("parameters, as in 'x, y: x * y', are expected");
      OFL_RETURN_IF_ERROR(CheckName(name, start));
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        return FailAt(start, name + " is a parameter already");
      }
      names.push_back(name);
    } while (Take(","));
    if (!Take(":")) return Fail("a colon is expected behind the parameters, as in 'x, y: x * y'");
    if (names.size() > Expression::kMostParameters) {
      return Fail(absl::StrCat("at most ", Expression::kMostParameters, " parameters are allowed"));
    }
    e_ = Expression(names);
    for (size_t i = 0; i < names.size(); ++i) scope_[names[i]] = e_.Input(static_cast<int>(i));
    return OkStatus();
  }

  StatusOr<int> Level(size_t level) {
    if (level == std::size(kLevels)) return Signed();
    OFL_ASSIGN_OR_RETURN(int left, Level(level + 1));
    for (int count = 0;; ++count) {
      const BinaryOperator* found = nullptr;
      Skip();
      for (const BinaryOperator& o : kLevels[level]) {
        const bool power = o.fn == ElementFn::kMul && text_.substr(at_, 2) == "**";
        if (!found && !power && Take(o.text)) found = &o;
      }
      if (!found) return left;
      if (level == 0 && count > 0) return Fail("comparisons do not chain; join two by &");
      OFL_ASSIGN_OR_RETURN(const int right, Level(level + 1));
      left = e_.Add(found->fn, left, right);
      OFL_RETURN_IF_ERROR(CheckSize());
    }
  }

  StatusOr<int> Signed() {
    if (++depth_ > kMostDepth) return Fail("the expression is nested too deep; name parts of it");
    const StatusOr<int> result = SignedWithin();
    --depth_;
    return result;
  }
  StatusOr<int> SignedWithin() {
    if (Take("+")) return Signed();
    if (Take("-")) {
      const size_t start = at_;
      OFL_ASSIGN_OR_RETURN(const int x, Signed());
      const Expression::Step& step = e_.steps()[x];
      if (step.fn != ElementFn::kConstant || step.number.kind() == Scalar::Kind::kBool) {
        return e_.Add(ElementFn::kNeg, x);
      }
      return e_.Constant(Negative(step.number, text_.substr(start, at_ - start)));
    }
    if (Take("~")) {
      OFL_ASSIGN_OR_RETURN(const int x, Signed());
      return e_.Add(ElementFn::kBitwiseNot, x);
    }
    OFL_ASSIGN_OR_RETURN(const int base, Atom());
    if (!Take("**")) return base;
    OFL_ASSIGN_OR_RETURN(const int exponent, Signed());
    return Power(base, exponent);
  }

  // By multiplications where the exponent is an int from 1 to 8.
  int Power(int base, int exponent) {
    const Expression::Step step = e_.steps()[exponent];
    const bool whole = step.fn == ElementFn::kConstant && step.number.kind() == Scalar::Kind::kInt;
    const int64_t n = whole ? step.number.to<int64_t>() : 0;
    if (n < 1 || n > 8) return e_.Add(ElementFn::kPow, base, exponent);
    int power = base;
    for (int64_t bit = n >= 4 ? (n >= 8 ? 8 : 4) : n >= 2 ? 2 : 1; bit > 1;) {
      bit /= 2;
      power = e_.Add(ElementFn::kMul, power, power);
      if (n & bit) power = e_.Add(ElementFn::kMul, power, base);
    }
    return power;
  }

  StatusOr<int> Atom() {
    if (Take("(")) {
      OFL_ASSIGN_OR_RETURN(const int x, Level(0));
      if (!Take(")")) return Fail(") is expected");
      return x;
    }
    Skip();
    const size_t start = at_;
    if (absl::ascii_isdigit(Peek()) || Peek() == '.') return Number();
    const std::string name(Name());
    if (name.empty()) return Fail("a number, a name or ( is expected");
    if (IsNumberWord(name)) return Word(name);
    if (Take("(")) return CallOf(name, start);
    const auto found = scope_.find(name);
    if (found != scope_.end()) return found->second;
    return FailAt(start, absl::StrCat("there is no parameter ", name));
  }

  int Word(absl::string_view name) {
    if (name == "inf") return e_.Constant(Scalar(std::numeric_limits<double>::infinity()));
    if (name == "nan") return e_.Constant(Scalar(std::numeric_limits<double>::quiet_NaN()));
    return e_.Constant(Scalar(name == "True"));
  }

  StatusOr<int> Number() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    int64_t whole = 0;
    double real = 0;
    const auto as_whole = std::from_chars(begin, end, whole);
    const auto as_real = std::from_chars(begin, end, real);
    if (as_real.ec == std::errc::invalid_argument) return Fail("a number is expected");
    if (as_real.ec != std::errc()) return Fail("the number is beyond a double");
    at_ += static_cast<size_t>(as_real.ptr - begin);
    if (IsNameChar(Peek()) || Peek() == '.') return Fail("an operator is expected");
    if (as_whole.ptr != as_real.ptr) return e_.Constant(Scalar(real));
    const bool is_large = as_whole.ec == std::errc::result_out_of_range;
    return e_.Constant(is_large ? Scalar::LargeInt(real) : Scalar(whole));
  }

  StatusOr<int> CallOf(const std::string& name, size_t start) {
    std::vector<int> args;
    if (!Take(")")) {
      do {
        OFL_ASSIGN_OR_RETURN(const int arg, Level(0));
        args.push_back(arg);
      } while (Take(","));
      if (!Take(")")) return Fail(") or , is expected");
    }
    const auto checked = [&](int arity) {
      return static_cast<int>(args.size()) == arity
                 ? OkStatus()
                 : FailAt(start,
                          absl::StrCat(name, " takes ", arity, " argument(s), not ", args.size()));
    };
    for (const ElementFunction& f : StepFunctions()) {
      if (name != f.name) continue;
      OFL_RETURN_IF_ERROR(checked(f.arity));
      args.resize(3, -1);
      return e_.Add(f.fn, args[0], args[1], args[2]);
    }
    for (const internal::ComposedFunction& f : ComposedFunctions()) {
      if (name != f.name) continue;
      const Expression& body = ParsedOnce(f.text);
      OFL_RETURN_IF_ERROR(checked(static_cast<int>(body.parameters().size())));
      return e_.Inline(body, args)[0];
    }
    for (int t = 0; t < kNumDTypes; ++t) {
      const auto dtype = static_cast<DType>(t);
      if (name != oneflow_lite::Name(dtype)) continue;
      OFL_RETURN_IF_ERROR(checked(1));
      return e_.Cast(args[0], dtype);
    }
    std::vector<std::string> known;
    for (const ElementFunctionName& f : ElementFunctions()) known.push_back(f.name);
    return FailAt(start,
                  absl::StrCat(name, "() cannot be fused; allowed are ", absl::StrJoin(known, ", "),
                               ", and casts such as float32(x)"));
  }

  Status CheckSize() const {
    if (e_.steps().size() <= Expression::kMostSteps) return OkStatus();
    return Fail(absl::StrCat("more than ", Expression::kMostSteps, " operations"));
  }

  absl::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Expression e_{{}};
  std::map<std::string, int> scope_;
};

}  // namespace

StatusOr<Expression> Expression::Parse(absl::string_view text) { return Parser(text).Run(); }

}  // namespace oneflow_lite
