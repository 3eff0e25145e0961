// SPDX-License-Identifier: Apache-2.0
//
// Functions: the functors under their user-level names. Each is registered once with its signature
// as text; argument parsing, keywords, defaults, docstring and stub of the Python function come
// from that, and the extension API calls functors by these names.
//
//   OFL_REGISTER_FUNCTION("softmax(Tensor input, int? dim=None, dtype? dtype=None) -> Tensor",
//                         functional::Softmax, kMethod, "Softmax over a dim. ...");
//
// The function that is registered is the functor that C++ callers have: a header declares it, and a
// function of an anonymous namespace does not compile here. Where Python's arguments are others
// than C++'s, a second line of text names the functor (OFL_REGISTER_ADAPTER). An overloaded functor
// is given as Overload<const Tensor&, int64_t>(Split). FunctionSchema::functor has its name, and
// tests/python/test_cpp_api.py compares with the headers.
//
// Types: Tensor Tensor? Tensor[] int int? int[] int[]? float bool Scalar Scalar? Operand (a tensor
// or a number) dtype dtype? Device Device? str Generator?. A '*' makes what follows keyword-only;
// an int[] that comes first after self may be given as separate ints (x.view(2, 3)). Tensor(a!) is
// changed in place. Several results: "-> Tensor[]", or "-> (Tensor values, Tensor indices)" where
// they have names. Callers may use NumPy's names of arguments (OtherNames) and older orders of
// them:
//
//   OFL_REGISTER_OLDER_ORDER("add", "input, alpha, other");
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "oneflow_lite/core/generator.h"
#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// A tensor, or a number that adapts to the other operand's dtype (a Python scalar).
using Operand = std::variant<Tensor, Scalar>;

// An argument or a result on its way through a registered function; monostate is None.
using Value = std::variant<std::monostate, bool, int64_t, double, Scalar, DType, Device, Dims,
                           std::string, Tensor, TensorList, Ref<Generator>>;
using ValueList = absl::InlinedVector<Value, 6>;

enum class ArgType : uint8_t {
  kTensor,
  kTensorList,
  kInt,
  kInts,
  kFloat,
  kBool,
  kScalar,
  kOperand,
  kDType,
  kDevice,
  kString,
  kGenerator,
};

struct ArgSchema {
  std::string name;
  ArgType type;
  bool optional = false;  // None is allowed
  bool mutated = false;   // Tensor(a!)
  bool keyword_only = false;
  bool tensor_elsewhere = false;  // an overload has a tensor of this name: this takes none
  bool has_default = false;
  Value default_value;
  std::string default_text;  // as written in the signature
};

enum FunctionFlags : uint8_t {
  kFunction = 0,
  kMethod = 1,  // also a method of Tensor; the first argument is self
  kMethodOnly = 3,
};

struct FunctionSchema {
  std::string name;
  std::string text;  // the signature as registered
  std::string doc;
  std::vector<ArgSchema> args;
  std::vector<std::string> results;  // their names, where a list of tensors has them
  std::string alias_of;              // the function that this is another name of, or empty
  std::string functor;               // what C++ callers have: "Softmax" in namespace functional
  // Orders in which arguments were once given by place: indices into args.
  std::vector<std::vector<size_t>> older;
  FunctionFlags flags = kFunction;
  // Takes one Value per argument, of the declared type; gives the results.
  Status (*call)(void (*target)(), absl::Span<Value> args, Value* result) = nullptr;
  void (*target)() = nullptr;

  Status operator()(absl::Span<Value> args, Value* result) const {
    return call(target, args, result);
  }
};

// All functions in the order of their names; a bad signature of ours ends the process at first use.
OFL_API const std::vector<const FunctionSchema*>& ListFunctions();
// NotImplementedError where there is none.
OFL_API StatusOr<const FunctionSchema*> FindFunction(absl::string_view name);
// Parses "name(type arg=default, ...) -> ..."; ValueError with the place.
OFL_API StatusOr<FunctionSchema> ParseSignature(absl::string_view text);

// A name by which an argument may be given too, where the function has none of that name itself.
struct OtherName {
  absl::string_view given, meant;
};
// NumPy's names, which PyTorch takes as well: axis for dim, keepdims for keepdim ...
OFL_API absl::Span<const OtherName> OtherNames();
// Names of arguments that are taken and mean nothing: there is one layout, and nothing warns.
OFL_API absl::Span<const absl::string_view> MeaninglessNames();

namespace internal {

template <class T>
struct ArgTraits;
#define OFL_ARG_TRAITS(T, kind, is_optional, expr)          \
  template <>                                               \
  struct ArgTraits<T> {                                     \
    static constexpr ArgType kType = ArgType::kind;         \
    static constexpr bool kOptional = is_optional;          \
    static decltype(auto) From(Value& v) { return (expr); } \
  }
OFL_ARG_TRAITS(int64_t, kInt, false, std::get<int64_t>(v));
OFL_ARG_TRAITS(double, kFloat, false, std::get<double>(v));
OFL_ARG_TRAITS(bool, kBool, false, std::get<bool>(v));
OFL_ARG_TRAITS(DType, kDType, false, std::get<DType>(v));
OFL_ARG_TRAITS(Scalar, kScalar, false, std::get<Scalar>(v));
OFL_ARG_TRAITS(absl::Span<const int64_t>, kInts, false, absl::MakeConstSpan(std::get<Dims>(v)));
OFL_ARG_TRAITS(absl::Span<const Tensor>, kTensorList, false,
               absl::MakeConstSpan(std::get<TensorList>(v)));
OFL_ARG_TRAITS(absl::string_view, kString, false, absl::string_view(std::get<std::string>(v)));
#undef OFL_ARG_TRAITS

template <>
struct ArgTraits<Tensor> {  // also Tensor?: an absent one is undefined
  static constexpr ArgType kType = ArgType::kTensor;
  static constexpr bool kOptional = false;
  static const Tensor& From(Value& v) {
    static const Tensor absent;
    const Tensor* t = std::get_if<Tensor>(&v);
    return t ? *t : absent;
  }
};
template <>
struct ArgTraits<Operand> {
  static constexpr ArgType kType = ArgType::kOperand;
  static constexpr bool kOptional = false;
  static Operand From(Value& v) {
    if (Tensor* t = std::get_if<Tensor>(&v)) return std::move(*t);
    return std::get<Scalar>(v);
  }
};
template <>
struct ArgTraits<Ref<Generator>> {
  static constexpr ArgType kType = ArgType::kGenerator;
  static constexpr bool kOptional = true;
  static Ref<Generator> From(Value& v) {
    auto* g = std::get_if<Ref<Generator>>(&v);
    return g ? *g : Ref<Generator>();
  }
};
template <class T>
struct ArgTraits<std::optional<T>> {
  static constexpr ArgType kType = std::is_same_v<T, Device>        ? ArgType::kDevice
                                   : std::is_same_v<T, Dims>        ? ArgType::kInts
                                   : std::is_same_v<T, int64_t>     ? ArgType::kInt
                                   : std::is_same_v<T, DType>       ? ArgType::kDType
                                   : std::is_same_v<T, double>      ? ArgType::kFloat
                                   : std::is_same_v<T, bool>        ? ArgType::kBool
                                   : std::is_same_v<T, std::string> ? ArgType::kString
                                                                    : ArgType::kScalar;
  static constexpr bool kOptional = true;
  static std::optional<T> From(Value& v) {
    if (T* p = std::get_if<T>(&v)) return std::move(*p);
    return std::nullopt;
  }
};

struct ArgShape {
  ArgType type;
  bool optional;
};

template <class R, class... Args, size_t... I>
Status CallBoxed(R (*f)(Args...), absl::Span<Value> args, Value* result,
                 std::index_sequence<I...>) {
  auto r = f(ArgTraits<std::decay_t<Args>>::From(args[I])...);
  if constexpr (std::is_same_v<R, Status>) {
    return r;
  } else {
    if (!r.ok()) return std::move(r).status();
    *result = *std::move(r);
    return OkStatus();
  }
}

// Where a function stands in the source.
struct Place {
  const char* file;
  int line;
};

OFL_API bool AppendAlias(const char* alias, const char* name);
OFL_API bool AppendFunction(const char* signature, const char* doc, FunctionFlags flags,
                            absl::string_view functor, decltype(FunctionSchema::call) call,
                            void (*target)(), std::vector<ArgShape> shape, Place place);

OFL_API bool AppendOlderOrder(const char* function, const char* names, const char* file, int line);

template <class R, class... Args>
bool RegisterFunction(const char* signature, R (*f)(Args...), FunctionFlags flags, const char* doc,
                      absl::string_view functor, Place place) {
  const auto call = [](void (*target)(), absl::Span<Value> args, Value* result) {
    return CallBoxed(reinterpret_cast<R (*)(Args...)>(target), args, result,
                     std::index_sequence_for<Args...>{});
  };
  return AppendFunction(
      signature, doc, flags, functor, call, reinterpret_cast<void (*)()>(f),
      {{ArgTraits<std::decay_t<Args>>::kType, ArgTraits<std::decay_t<Args>>::kOptional}...}, place);
}

// "... [with auto kFunction = oneflow_lite::functional::Softmax]", or clang's
// "... [kFunction = &oneflow_lite::functional::Softmax]"
template <auto kFunction>
constexpr const char* NamedInFull() {
  return __PRETTY_FUNCTION__;
}
// "Softmax"; nothing where the function is another file's business, in an anonymous namespace.
template <auto kFunction>
constexpr absl::string_view FunctorName() {
  const char* const text = NamedInFull<kFunction>();
  size_t start = 0;
  while (text[start] != '=') ++start;
  size_t end = ++start;
  for (; text[end] != ']'; ++end) {
    if (text[end] == '{' || text[end] == '(') return {};  // {anonymous}, (anonymous namespace)
    if (text[end] == ':') start = end + 1;
  }
  while (text[start] == ' ' || text[start] == '&') ++start;
  return {text + start, end - start};
}
template <auto kFunctor>
bool RegisterFunctor(const char* signature, FunctionFlags flags, const char* doc, Place place) {
  constexpr absl::string_view name = FunctorName<kFunctor>();
  static_assert(!name.empty(),
                "C++ callers cannot reach this function: declare it in a header of functional/, "
                "or name the functor that they have (OFL_REGISTER_ADAPTER)");
  return RegisterFunction(signature, kFunctor, flags, doc, name, place);
}

template <class... Args>
struct OverloadOf {
  template <class R>
  constexpr auto operator()(R (*f)(Args...)) const {
    return f;
  }
};

}  // namespace internal

// The overload of a function that takes these arguments.
template <class... Args>
inline constexpr internal::OverloadOf<Args...> Overload;

}  // namespace oneflow_lite

#define OFL_REGISTER_FUNCTION(signature, function, flags, doc)                     \
  static const bool OFL_CONCAT(ofl_function_registered_, __COUNTER__) =            \
      ::oneflow_lite::internal::RegisterFunctor<(function)>(signature, flags, doc, \
                                                            {__FILE__, __LINE__})

// A function that only turns Python's arguments into those of `functor`, which C++ callers have:
//
//   OFL_REGISTER_ADAPTER("argsort(..., *, bool? stable=None) -> Tensor", ArgSortFunction, ArgSort,
//                        kMethod, "...");
#define OFL_REGISTER_ADAPTER(signature, function, functor, flags, doc)                           \
  static const bool OFL_CONCAT(ofl_function_registered_, __COUNTER__) = [] {                     \
    using ::oneflow_lite::functional::functor; /* there is one of that name */                   \
    return ::oneflow_lite::internal::RegisterFunction(signature, function, flags, doc, #functor, \
                                                      {__FILE__, __LINE__});                     \
  }()

// Another name of a registered function, which its errors speak of: OFL_REGISTER_ALIAS("less",
// "lt").
#define OFL_REGISTER_ALIAS(alias, name)                              \
  static const bool OFL_CONCAT(ofl_alias_registered_, __COUNTER__) = \
      ::oneflow_lite::internal::AppendAlias(alias, name)

#define OFL_REGISTER_OLDER_ORDER(function, names)               \
  static const bool OFL_CONCAT(ofl_older_order_, __COUNTER__) = \
      ::oneflow_lite::internal::AppendOlderOrder(function, names, __FILE__, __LINE__)
