// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/function.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "oneflow_lite/framework/argument_name.h"

namespace oneflow_lite {
namespace {

struct Pending {
  const char* signature;
  const char* doc;
  FunctionFlags flags;
  absl::string_view functor;
  decltype(FunctionSchema::call) call;
  void (*target)();
  std::vector<internal::ArgShape> shape;
  internal::Place place;
};
std::vector<Pending>& PendingFunctions() {
  static auto* pending = new std::vector<Pending>;
  return *pending;
}

struct Alias {
  const char* alias;
  const char* name;
};
std::vector<Alias>& PendingAliases() {
  static auto* pending = new std::vector<Alias>;
  return *pending;
}

struct PendingOrder {
  const char* function;
  const char* names;
  const char* file;
  int line;
};
std::vector<PendingOrder>& PendingOrders() {
  static auto* pending = new std::vector<PendingOrder>;
  return *pending;
}

struct TypeName {
  const char* name;
  ArgType type;
};
// Tensor...: a list of tensors that Python may give one by one.
constexpr TypeName kTypeNames[] = {
    {"Tensor...", ArgType::kTensorList},
    {"Tensor", ArgType::kTensor},
    {"Tensor[]", ArgType::kTensorList},
    {"int", ArgType::kInt},
    {"int[]", ArgType::kInts},
    {"float", ArgType::kFloat},
    {"bool", ArgType::kBool},
    {"Scalar", ArgType::kScalar},
    {"Operand", ArgType::kOperand},
    {"dtype", ArgType::kDType},
    {"Device", ArgType::kDevice},
    {"str", ArgType::kString},
    {"Generator", ArgType::kGenerator},
};

Status ParseDefault(absl::string_view text, ArgSchema* arg) {
  arg->has_default = true;
  arg->default_text = std::string(text);
  int64_t i;
  double d;
  if (text == "None") {
    arg->default_value = std::monostate{};
  } else if (text == "True" || text == "False") {
    arg->default_value = text == "True";
  } else if (arg->type == ArgType::kString) {
    arg->default_value = std::string(text.substr(1, text.size() - 2));
  } else if (arg->type == ArgType::kInts && text.size() > 2 && text.front() == '[') {
    Dims dims;
    for (const absl::string_view part : absl::StrSplit(text.substr(1, text.size() - 2), ' ')) {
      if (!absl::SimpleAtoi(part, &dims.emplace_back())) {
        return Error(ErrorKind::kValue, "\"", text, "\" is no list of ints, such as [0 1]");
      }
    }
    arg->default_text = absl::StrCat("(", absl::StrJoin(dims, ", "), dims.size() == 1 ? ",)" : ")");
    arg->default_value = std::move(dims);
  } else if (arg->type == ArgType::kInt && absl::SimpleAtoi(text, &i)) {
    arg->default_value = i;
  } else if (arg->type == ArgType::kFloat && absl::SimpleAtod(text, &d)) {
    arg->default_value = d;
  } else if (absl::SimpleAtoi(text, &i)) {
    arg->default_value = Scalar(i);
  } else if (absl::SimpleAtod(text, &d)) {
    arg->default_value = Scalar(d);
  } else {
    return Error(ErrorKind::kValue, "\"", text, "\" is no default value");
  }
  return OkStatus();
}

// "Tensor(a!) self", "int? dim=None"
StatusOr<ArgSchema> ParseArg(absl::string_view text) {
  ArgSchema arg;
  const size_t space = text.find(' ');
  if (space == absl::string_view::npos) {
    return Error(ErrorKind::kValue, "\"", text, "\" is not \"type name\"");
  }
  absl::string_view type = text.substr(0, space), rest = text.substr(space + 1);
  if (type == "Tensor(a!)" || type == "Tensor(a)") {
    arg.mutated = type == "Tensor(a!)";
    type = "Tensor";
  }
  if (type.back() == '?') {
    arg.optional = true;
    type.remove_suffix(1);
  }
  const auto* found = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                   [&](const TypeName& t) { return t.name == type; });
  if (found == std::end(kTypeNames)) return Error(ErrorKind::kValue, "\"", type, "\" is no type");
  arg.type = found->type;
  const size_t equals = rest.find('=');
  arg.name = std::string(rest.substr(0, equals));
  if (equals != absl::string_view::npos) {
    OFL_RETURN_IF_ERROR(ParseDefault(rest.substr(equals + 1), &arg));
  }
  return arg;
}

// The schema's types must be those of the C++ function, or unboxing would go wrong.
Status CheckShape(const FunctionSchema& f, const std::vector<internal::ArgShape>& shape) {
  if (f.args.size() != shape.size()) {
    return Error(ErrorKind::kValue, f.text, ": the C++ function has ", shape.size(), " arguments");
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool optional = f.args[i].optional && f.args[i].type != ArgType::kTensor;
    if (f.args[i].type != shape[i].type || optional != shape[i].optional) {
      return Error(ErrorKind::kValue, f.text, ": argument ", f.args[i].name,
                   " has another type in C++");
    }
  }
  return OkStatus();
}

using Table = std::map<std::string, FunctionSchema, std::less<>>;

// The functions once more under their other names.
void AddAliases(Table* functions) {
  for (const auto& [alias, name] : PendingAliases()) {
    OFL_CHECK(functions->count(name) == 1 && functions->count(alias) == 0);
    FunctionSchema f = functions->find(name)->second;
    f.text.replace(0, f.name.size(), alias);
    f.name = alias;
    f.alias_of = name;
    if (absl::StartsWith(f.name, "special_")) f.flags = kFunction;  // of a module, not of tensors
    functions->emplace(alias, std::move(f));
  }
}

Status AddOlderOrder(const PendingOrder& order, Table* functions) {
  const auto f = functions->find(order.function);
  if (f == functions->end()) {
    return Error(ErrorKind::kRuntime, "there is no function ", order.function);
  }
  std::vector<size_t> places;
  for (const absl::string_view part : absl::StrSplit(order.names, ", ")) {
    const std::vector<ArgSchema>& args = f->second.args;
    const auto found =
        std::find_if(args.begin(), args.end(), [&](const ArgSchema& a) { return a.name == part; });
    if (found == args.end()) {
      return Error(ErrorKind::kValue, f->second.text, ": there is no argument ", part);
    }
    places.push_back(static_cast<size_t>(found - args.begin()));
  }
  f->second.older.push_back(std::move(places));
  return OkStatus();
}
const Table& GetTable() {
  static const Table* const table = [] {
    auto* functions = new Table;
    for (const Pending& p : PendingFunctions()) {
      auto parsed = ParseSignature(p.signature);
      Status s = parsed.status();
      if (s.ok()) {
        s = CheckShape(*parsed, p.shape);
        parsed->doc = p.doc;
        parsed->flags = p.flags;
        parsed->functor = std::string(p.functor);
        parsed->call = p.call;
        parsed->target = p.target;
        const std::string name = parsed->name;
        if (s.ok() && !functions->emplace(name, *std::move(parsed)).second) {
          s = Error(ErrorKind::kRuntime, "function ", name, " is registered twice");
        }
      }
      if (!s.ok()) CheckFailed(p.place.file, p.place.line, std::string(s.message()).c_str());
    }
    for (const PendingOrder& order : PendingOrders()) {
      const Status s = AddOlderOrder(order, functions);
      if (!s.ok()) CheckFailed(order.file, order.line, std::string(s.message()).c_str());
    }
    AddAliases(functions);
    return functions;
  }();
  return *table;
}

constexpr OtherName kOtherNames[] = {
    {"axis", "dim"},
    {"axis", "dims"},
    {"axis0", "dim0"},
    {"axis1", "dim1"},
    {"axis2", "dim2"},
    {"keepdims", "keepdim"},
    {"ddof", "correction"},
    {"x", "input"},
    {"a", "input"},
    {"x1", "input"},
    {"x2", "other"},
    // PyTorch's own, of mm and bmm, outer, dot, split, tensor_split and its like, repeat, random_
    {"mat2", "other"},
    {"vec2", "other"},
    {"tensor", "other"},
    {"split_size", "split_size_or_sections"},
    {"sections", "indices_or_sections"},
    {"indices", "indices_or_sections"},
    {"repeats", "sizes"},
    {"to", "high"},
};
constexpr absl::string_view kMeaningless[] = {"_stacklevel", "memory_format", "layout",
                                              "sparse_grad", "pin_memory"};

}  // namespace

StatusOr<FunctionSchema> ParseSignature(absl::string_view text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(") ->");
  if (open == absl::string_view::npos || close == absl::string_view::npos) {
    return Error(ErrorKind::kValue, "\"", text, "\" is not \"name(arguments) -> results\"");
  }
  FunctionSchema f;
  f.text = std::string(text);
  f.name = std::string(text.substr(0, open));
  bool keyword_only = false;
  for (absl::string_view part :
       absl::StrSplit(text.substr(open + 1, close - open - 1), ',', absl::SkipWhitespace())) {
    part = absl::StripAsciiWhitespace(part);
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    OFL_ASSIGN_OR_RETURN(ArgSchema arg, ParseArg(part));
    arg.keyword_only = keyword_only;
    f.args.push_back(std::move(arg));
  }
  const absl::string_view results =
      absl::StripAsciiWhitespace(text.substr(close + sizeof(") ->") - 1));
  if (!results.empty() && results.front() == '(') {
    for (absl::string_view part : absl::StrSplit(results.substr(1, results.size() - 2), ", ")) {
      const size_t space = part.find(' ');
      if (space != absl::string_view::npos) f.results.emplace_back(part.substr(space + 1));
    }
  }
  return f;
}

const std::vector<const FunctionSchema*>& ListFunctions() {
  static const auto* const list = [] {
    auto* v = new std::vector<const FunctionSchema*>;
    for (const auto& [name, f] : GetTable()) v->push_back(&f);
    return v;
  }();
  return *list;
}

StatusOr<const FunctionSchema*> FindFunction(absl::string_view name) {
  const Table& table = GetTable();
  if (auto it = table.find(std::string(name)); it != table.end()) return &it->second;
  return Error(ErrorKind::kNotImplemented, "there is no function named \"", name, "\"");
}

absl::Span<const OtherName> OtherNames() { return kOtherNames; }
absl::Span<const absl::string_view> MeaninglessNames() { return kMeaningless; }

namespace internal {
bool AppendFunction(const char* signature, const char* doc, FunctionFlags flags,
                    absl::string_view functor, decltype(FunctionSchema::call) call,
                    void (*target)(), std::vector<ArgShape> shape, Place place) {
  PendingFunctions().push_back(
      {signature, doc, flags, functor, call, target, std::move(shape), place});
  return true;
}
bool AppendAlias(const char* alias, const char* name) {
  PendingAliases().push_back({alias, name});
  return true;
}
bool AppendOlderOrder(const char* function, const char* names, const char* file, int line) {
  PendingOrders().push_back({function, names, file, line});
  return true;
}
}  // namespace internal

namespace {

std::optional<size_t> ArgumentOf(const FunctionSchema& f, absl::string_view name) {
  for (size_t i = 0; i < f.args.size(); ++i) {
    if (f.args[i].name == name) return i;
  }
  return std::nullopt;
}

// The argument of `function` that another function of its functor calls `name`, or nothing.
std::string NameHere(const FunctionSchema& function, absl::string_view name) {
  for (const FunctionSchema* other : ListFunctions()) {
    if (other->functor != function.functor) continue;
    const std::optional<size_t> i = ArgumentOf(*other, name);
    // Where both have an argument of this name, they have them in different orders.
    if (i && *i < function.args.size() && !ArgumentOf(*other, function.args[*i].name)) {
      return function.args[*i].name;
    }
  }
  return {};
}

}  // namespace

Status InWordsOf(const FunctionSchema& function, const Status& s) {
  const Status named = Renamed(function.name, s);
  constexpr absl::string_view kMark = "(): ";
  const absl::string_view message = named.message();
  const size_t at = message.find(kMark);
  if (KindOf(named) == ErrorKind::kPython || at == absl::string_view::npos) return named;
  const size_t begin = at + kMark.size(), end = std::min(message.find(' ', begin), message.size());
  const absl::string_view subject = message.substr(begin, end - begin);
  if (function.functor.empty() || ArgumentOf(function, subject)) return named;
  const std::string here = NameHere(function, subject);
  if (here.empty()) return named;
  return MakeError(KindOf(named),
                   absl::StrCat(message.substr(0, begin), here, message.substr(end)));
}

std::string ArgumentName(const OpDef& op, size_t i) {
  size_t tensors = 0;
  if (const auto function = FindFunction(op.name); function.ok()) {
    for (const ArgSchema& arg : (*function)->args) {
      const bool tensor = arg.type == ArgType::kTensor || arg.type == ArgType::kOperand;
      if (tensor && tensors++ == i) return arg.name;
    }
  }
  return op.inputs[std::min(i, op.inputs.size() - 1)].name;
}

}  // namespace oneflow_lite
