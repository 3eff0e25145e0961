// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_elements_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "primitive/fused_elements_names.h"

namespace oneflow_lite {
namespace {

using Form = FusedOperandForm;

constexpr int kBytesInFlight = 64;  // of inputs, that a thread should have at least
constexpr int kMostUnrolled = 4;
constexpr size_t kMostSteps = 24;  // of an expression that is computed for several packs in turn
constexpr int kMostHeld = 64;      // elements of inputs and outputs that a thread may hold

const char* TypeOf(DType t) {
  static constexpr const char* kTypes[kNumDTypes] = {
      "bool",    "uint8_t", "int8_t",        "int16_t", "int32_t",
      "int64_t", "__half",  "__nv_bfloat16", "float",   "double"};
  return kTypes[static_cast<int>(t)];
}

std::string Literal(const Scalar& number, DType dtype) {
  const char* type = TypeOf(dtype);
  if (dtype == DType::kBool) return number.to<bool>() ? "true" : "false";
  if (!IsFloating(dtype)) {
    const int64_t v = number.to<int64_t>();
    if (v == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
    return absl::StrCat("static_cast<", type, ">(", v, "ll)");
  }
  const double v = number.to<double>();
  if (std::isnan(v)) return absl::StrCat("static_cast<", type, ">(__int_as_float(0x7fc00000))");
  if (std::isinf(v)) {
    return absl::StrCat("static_cast<", type, ">(", v < 0 ? "-" : "",
                        "__int_as_float(0x7f800000))");
  }
  std::string digits = absl::StrFormat("%.17g", v);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return absl::StrCat("static_cast<", type, ">(", digits, ")");
}

// A number given by value is a word that holds one of these.
DType WordType(DType t) { return IsFloating(t) ? DType::kFloat64 : DType::kInt64; }

class Writer {
 public:
  Writer(const TypedExpression& e, const FusedLayout& layout) : e_(e), l_(layout) {}

  FusedSource Run() {
    std::string text = "// " + e_.expression.Text() + "\n";
    absl::StrAppend(
        &text, "#include <primitive/cuda/elementwise/fused.cuh>\n\n",
        "namespace oneflow_lite {\nnamespace cuda {\n\nstruct Elements {\n",
        "  using Index = ", l_.is_long ? "int64_t" : "uint32_t", ";\n",
        "  static constexpr bool kWhole = ", l_.dims > 1 || l_.pack == 1 ? "true" : "false", ";\n",
        Members(), InputsStruct(), Load(), Store(), "};\n");
    absl::StrAppend(&text, "static_assert(sizeof(Elements) == ", 8 * words_,
                    ", \"the launcher's words\");\n\n}  // namespace cuda\n",
                    "}  // namespace oneflow_lite\n");
    return {text,
            absl::StrCat("oneflow_lite::cuda::FusedElementsKernel<", l_.pack, ", ", l_.unroll,
                         ", oneflow_lite::cuda::Elements>"),
            words_};
  }

 private:
  static std::string In(size_t i) { return absl::StrCat("i", i); }
  static std::string Out(size_t j) { return absl::StrCat("o", j); }

  std::string Member(const std::string& type, const std::string& name) {
    ++words_;
    return absl::StrCat("  ", type, " ", name, ";\n");
  }

  // The strides of an operand, innermost last; the innermost one where it may be any.
  std::string Strides(const std::string& operand, Form form) {
    std::string text;
    for (int d = 0; d < l_.dims; ++d) {
      if (d + 1 < l_.dims || form == Form::kStrided) {
        text += Member("int64_t", absl::StrCat("s", d, "_", operand));
      }
    }
    return text;
  }

  std::string Members() {
    std::string text = Member("int64_t", "numel");
    for (int d = 1; d < l_.dims; ++d) {
      text += Member("int64_t", absl::StrCat("size", d));
      text += Member("uint64_t", absl::StrCat("divisor", d));
    }
    for (size_t i = 0; i < l_.inputs.size(); ++i) {
      const DType dtype = e_.inputs[i].dtype;
      if (l_.inputs[i] == Form::kNumber) {
        text += Member(TypeOf(WordType(dtype)), In(i));
      } else {
        text += Member(absl::StrCat("const ", TypeOf(dtype), "*"), In(i));
        text += Strides(In(i), l_.inputs[i]);
      }
    }
    for (size_t j = 0; j < l_.outputs.size(); ++j) {
      text += Member(absl::StrCat(TypeOf(e_.outputs[j]), "*"), Out(j));
      text += Strides(Out(j), l_.outputs[j]);
    }
    return text;
  }

  std::string InputsStruct() const {
    std::string text = "\n  template <int N>\n  struct Inputs {\n";
    for (size_t i = 0; i < l_.inputs.size(); ++i) {
      if (l_.inputs[i] == Form::kNumber) continue;
      absl::StrAppend(&text, "    Pack<", TypeOf(e_.inputs[i].dtype), ", N> ", In(i), ";\n");
    }
    return text + "  };\n";
  }

  // Statements that split i into coordinates c0, c1, ..., the innermost last.
  std::string Coordinates() const {
    std::string text;
    std::string rest = "i";
    for (int d = l_.dims - 1; d > 0; --d) {
      absl::StrAppend(&text, "    const Index q", d, " = Quotient(", rest, ", divisor", d, ");\n");
      absl::StrAppend(&text, "    const Index c", d, " = ", rest, " - q", d,
                      " * static_cast<Index>(size", d, ");\n");
      rest = absl::StrCat("q", d);
    }
    return absl::StrCat(text, "    const Index c0 = ", rest, ";\n");
  }

  // Where the element, or the pack, is.
  std::string Place(const std::string& operand, Form form) const {
    std::string text = operand;
    for (int d = 0; d < l_.dims; ++d) {
      const bool innermost = d + 1 == l_.dims;
      if (innermost && form == Form::kRepeated) continue;
      absl::StrAppend(&text, " + static_cast<int64_t>(c", d, ")");
      if (!innermost || form == Form::kStrided) {
        absl::StrAppend(&text, " * s", d, "_", operand);
      }
    }
    return text;
  }

  std::string Load() const {
    std::string text =
        "  template <int N>\n  __device__ __forceinline__ Inputs<N> Load(Index i) const {\n" +
        Coordinates() + "    (void)c0;\n    Inputs<N> inputs;\n";
    for (size_t i = 0; i < l_.inputs.size(); ++i) {
      if (l_.inputs[i] == Form::kNumber) continue;
      const char* load = l_.inputs[i] == Form::kUnit ? "LoadPack" : "LoadRepeated";
      absl::StrAppend(&text, "    inputs.", In(i), " = ", load, "<N>(", Place(In(i), l_.inputs[i]),
                      ");\n");
    }
    return text + "    return inputs;\n  }\n";
  }

  std::string Store() const {
    std::string text =
        "  template <int N>\n"
        "  __device__ __forceinline__ void Store(Index i, const Inputs<N>& inputs) const {\n";
    for (size_t j = 0; j < l_.outputs.size(); ++j) {
      absl::StrAppend(&text, "    Pack<", Held(j), ", N> r", j, ";\n");
    }
    text += "#pragma unroll\n    for (int k = 0; k < N; ++k) {\n" + Computed() + "    }\n" +
            Coordinates();
    for (size_t j = 0; j < l_.outputs.size(); ++j) {
      absl::StrAppend(&text, "    StorePack<N>(", Place(Out(j), l_.outputs[j]), ", ConvertPack<",
                      TypeOf(e_.outputs[j]), ">(r", j, "));\n");
    }
    return text + "  }\n";
  }

  // The type that an output's elements are computed in.
  const char* Held(size_t j) const {
    return TypeOf(e_.types[e_.expression.outputs()[j]].computed());
  }

  std::string Computed() const {
    std::string text;
    const auto& steps = e_.expression.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].fn == ElementFn::kConstant) continue;
      absl::StrAppend(&text, "      const ", TypeOf(e_.types[i].computed()), " t", i, " = ",
                      Value(static_cast<int>(i)), ";\n");
    }
    for (size_t j = 0; j < l_.outputs.size(); ++j) {
      const int step = e_.expression.outputs()[j];
      absl::StrAppend(&text, "      r", j, ".v[k] = ", Operand(step, e_.types[step].computed()),
                      ";\n");
    }
    return text;
  }

  // A step's value as one of another type.
  std::string Operand(int step, DType dtype) const {
    const Expression::Step& s = e_.expression.steps()[step];
    if (s.fn == ElementFn::kConstant) return Literal(s.number, dtype);
    const std::string name = absl::StrCat("t", step);
    if (e_.types[step].computed() == dtype) return name;
    return absl::StrCat("ConvertTo<", TypeOf(dtype), ">(", name, ")");
  }

  std::string Value(int i) const {
    const Expression::Step& step = e_.expression.steps()[i];
    const char* type = TypeOf(e_.types[i].computed());
    if (step.fn == ElementFn::kInput) {
      const bool number = l_.inputs[step.input] == Form::kNumber;
      return absl::StrCat("ConvertTo<", type, ">(", number ? "" : "inputs.", In(step.input),
                          number ? ")" : ".v[k])");
    }
    const DType taken = e_.taken[i];
    if (step.fn == ElementFn::kCast) {
      return absl::StrCat("ConvertTo<", type, ">(ConvertTo<", TypeOf(step.dtype), ">(",
                          Operand(step.args[0], taken), "))");
    }
    if (step.fn == ElementFn::kWhere) {
      return absl::StrCat(Operand(step.args[0], DType::kBool), " ? ", Operand(step.args[1], taken),
                          " : ", Operand(step.args[2], taken));
    }
    std::vector<std::string> args;
    for (int k = 0; k < step.arity(); ++k) args.push_back(Operand(step.args[k], taken));
    return FusedCall(step.fn, IsFloating(taken), args);
  }

  const TypedExpression& e_;
  const FusedLayout& l_;
  size_t words_ = 0;
};

uint64_t WordOf(const Scalar& number, DType dtype) {
  uint64_t word = 0;
  if (IsFloating(dtype)) {
    const double v = number.to<double>();
    std::memcpy(&word, &v, sizeof(word));
  } else {
    word = static_cast<uint64_t>(number.to<int64_t>());
  }
  return word;
}

// A divisor as Quotient (elementwise/fused.cuh) takes it.
uint64_t DivisorOf(int64_t size, bool is_long) {
  const auto divisor = static_cast<uint64_t>(size);
  if (is_long) return divisor;
  uint64_t shift = 0;
  while ((uint64_t{1} << shift) < divisor) ++shift;
  const uint64_t multiplier =
      (uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor) / divisor + 1;
  return (multiplier & 0xffffffff) | shift << 32;
}

}  // namespace

FusedLayout LayoutOf(const TypedExpression& e, const FusedGeometry& g,
                     absl::Span<const FusedElements::Input> inputs) {
  FusedLayout l;
  l.dims = std::max<int>(1, static_cast<int>(g.dims.size()));
  l.is_long = g.numel >= int64_t{1} << 31;
  size_t most = 1, bytes = 0;
  bool packs = true;
  const auto form_of = [&](const std::vector<int64_t>& strides, size_t size) {
    most = std::max(most, size);
    const int64_t stride = strides.empty() ? 1 : strides.back();
    packs = packs && (stride == 0 || stride == 1);
    return stride == 0 ? Form::kRepeated : Form::kUnit;
  };
  size_t elements = e.outputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t size = SizeOf(e.inputs[i].dtype);
    l.inputs.push_back(inputs[i].data ? form_of(g.strides[i], size) : Form::kNumber);
    if (!inputs[i].data) continue;
    bytes += size;
    ++elements;
  }
  for (size_t j = 0; j < e.outputs.size(); ++j) {
    l.outputs.push_back(form_of(g.strides[inputs.size() + j], SizeOf(e.outputs[j])));
  }
  l.pack = static_cast<int>(16 / most);
  while (l.pack > 1 && l.pack * elements > kMostHeld) l.pack /= 2;
  if (l.dims > 1 && g.dims.back() % l.pack != 0) packs = false;
  if (!packs || l.pack == 1) {
    l.pack = 1;
    for (auto* forms : {&l.inputs, &l.outputs}) {
      for (Form& form : *forms) form = form == Form::kNumber ? form : Form::kStrided;
    }
  }
  const size_t each = std::max<size_t>(1, bytes * l.pack);
  if (e.expression.steps().size() > kMostSteps) {
    l.unroll = 1;
    return l;
  }
  const size_t held = std::max<size_t>(1, kMostHeld / (l.pack * elements));
  l.unroll =
      static_cast<int>(std::min<size_t>({(kBytesInFlight + each - 1) / each, held, kMostUnrolled}));
  return l;
}

FusedSource SourceOf(const TypedExpression& e, const FusedLayout& layout) {
  return Writer(e, layout).Run();
}

std::vector<uint64_t> WordsOf(const TypedExpression& e, const FusedLayout& l,
                              const FusedGeometry& g, absl::Span<const FusedElements::Input> inputs,
                              absl::Span<const FusedElements::Output> outputs) {
  std::vector<uint64_t> words = {static_cast<uint64_t>(g.numel)};
  for (int d = 1; d < l.dims; ++d) {
    words.push_back(static_cast<uint64_t>(g.dims[d]));
    words.push_back(DivisorOf(g.dims[d], l.is_long));
  }
  const auto add = [&](const void* data, size_t operand, Form form) {
    words.push_back(reinterpret_cast<uint64_t>(data));
    for (int d = 0; d < l.dims; ++d) {
      if (d + 1 == l.dims && form != Form::kStrided) continue;
      const auto& strides = g.strides[operand];
      words.push_back(static_cast<uint64_t>(strides.empty() ? 0 : strides[d]));
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (l.inputs[i] == Form::kNumber) {
      words.push_back(WordOf(inputs[i].number, e.inputs[i].dtype));
    } else {
      add(inputs[i].data, i, l.inputs[i]);
    }
  }
  for (size_t j = 0; j < outputs.size(); ++j) add(outputs[j].data, inputs.size() + j, l.outputs[j]);
  return words;
}

}  // namespace oneflow_lite
