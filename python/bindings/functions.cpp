// SPDX-License-Identifier: Apache-2.0
//
// A builtin of CPython is a C function without room for data, so each registered function gets a
// C function of its own from a table of small instances that know their index. In return they are
// real builtins and method descriptors: the interpreter's fast paths, inspect.signature, help() and
// pickle know them.
#include "python/bindings/functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "oneflow_lite/core/error.h"
#include "python/bindings/named_results.h"

namespace oneflow_lite::python {
namespace {

constexpr size_t kMaxFunctions = 1024;

std::vector<BoundFunction>& Table() {
  static auto* table = new std::vector<BoundFunction>;
  return *table;
}

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

template <size_t I>
PyObject* Function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return CallBound(Table()[I], nullptr, args, nargs, kwnames);
}
template <size_t I>
PyObject* Method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return CallBound(Table()[I], self, args, nargs, kwnames);
}
template <size_t... I>
constexpr std::array<FastCall, sizeof...(I)> FunctionsOf(std::index_sequence<I...>) {
  return {&Function<I>...};
}
template <size_t... I>
constexpr std::array<FastCall, sizeof...(I)> MethodsOf(std::index_sequence<I...>) {
  return {&Method<I>...};
}
constexpr auto kFunctions = FunctionsOf(std::make_index_sequence<kMaxFunctions>{});
constexpr auto kMethods = MethodsOf(std::make_index_sequence<kMaxFunctions>{});

// Whether the tensors of the first argument may be given one by one.
bool SpreadsTensors(const FunctionSchema& f) {
  return f.text.find("(Tensor... ") != std::string::npos;
}

// "softmax(input, dim=None, dtype=None)\n--\n\n..." is what inspect.signature reads.
std::string DocOf(const FunctionSchema& f) {
  std::string doc = f.name + "(";
  bool star = false;
  for (size_t i = 0; i < f.args.size(); ++i) {
    const ArgSchema& a = f.args[i];
    if (i > 0) doc += ", ";
    if (a.keyword_only && !star) {
      doc += "*, ";
      star = true;
    }
    // "$self" is what makes a method's first argument implicit once it is bound.
    if (i == 0 && f.flags == kMethodOnly) doc += "$";
    if (i == 0 && SpreadsTensors(f)) {
      doc += "*";
      star = true;
    }
    doc += a.name;
    if (a.has_default) doc += "=" + a.default_text;
  }
  return doc + ")\n--\n\n" + f.doc + "\n\n" + f.text;
}

int SpreadOf(const FunctionSchema& f, size_t num_positional) {
  if (num_positional == 0) return -1;
  if (SpreadsTensors(f)) return 0;
  const size_t last = num_positional - 1;
  const ArgSchema& a = f.args[last];
  const bool after_self = last == 0 || (last == 1 && f.args[0].type == ArgType::kTensor);
  return a.type == ArgType::kInts && after_self ? static_cast<int>(last) : -1;
}

}  // namespace

namespace {

// Whether a function copies to the host, reads a number that its result depends on, or asks whether
// its values are allowed: what is read by ReadBack (functional/host_value.h).
bool MayWait(const FunctionSchema& f) {
  static constexpr absl::string_view kWaiting[] = {"argwhere",
                                                   "bernoulli",
                                                   "bincount",
                                                   "copy_",
                                                   "cov",
                                                   "cpu",
                                                   "det",
                                                   "equal",
                                                   "histc",
                                                   "inverse",
                                                   "logdet",
                                                   "masked_select",
                                                   "median",
                                                   "multinomial",
                                                   "nanmedian",
                                                   "nanquantile",
                                                   "nonzero",
                                                   "quantile",
                                                   "repeat_interleave",
                                                   "slogdet",
                                                   "tensor_split",
                                                   "to",
                                                   "unique",
                                                   "unique_consecutive"};
  const std::string& name = f.alias_of.empty() ? f.name : f.alias_of;
  const auto found = std::find(std::begin(kWaiting), std::end(kWaiting), name);
  return found != std::end(kWaiting) || absl::StartsWith(name, "linalg_");
}

}  // namespace

bool Bind(const FunctionSchema& f, BoundFunction* b) {
  *b = {&f, {}, 0, -1, DocOf(f)};
  if (!f.results.empty() && !(b->results = MakeResultsType(f.name, f.results))) return false;
  for (const ArgSchema& a : f.args) {
    b->names.push_back(PyUnicode_InternFromString(a.name.c_str()));
    if (!b->names.back()) return false;
    if (!a.keyword_only) ++b->num_positional;
  }
  b->spread = SpreadOf(f, b->num_positional);
  b->as_given = absl::EndsWith(f.text, "-> Tensor...");
  b->waits = MayWait(f);
  return true;
}

namespace {

// A tensor of one element is a number too, for which CUDA waits: it is left to the overload.
void LeaveTensorsTo(const FunctionSchema& overload, BoundFunction* first) {
  auto* schema = new FunctionSchema(*first->schema);  // lives for ever, like the table
  for (ArgSchema& a : schema->args) {
    for (const ArgSchema& other : overload.args) {
      const bool is_tensor = other.type == ArgType::kTensor && a.type != ArgType::kTensor;
      if (is_tensor && a.name == other.name) a.tensor_elsewhere = true;
    }
  }
  first->schema = schema;
}

// Hangs "split.sizes" on "split", in whose name its errors speak.
bool BindOverload(const FunctionSchema& f, BoundFunction* first) {
  auto* schema = new FunctionSchema(f);  // lives for ever, like the table
  schema->name = f.name.substr(0, f.name.find('.'));
  OFL_CHECK(first->schema->name == schema->name);
  auto* b = new BoundFunction;
  if (!Bind(*schema, b)) return false;
  first->doc += "\n" + f.text;
  LeaveTensorsTo(f, first);
  b->overload = first->overload;
  first->overload = b;
  return true;
}

bool BuildTable() {
  const auto& functions = ListFunctions();
  if (functions.size() > kMaxFunctions) {
    PyErr_Format(PyExc_ImportError,
                 "%zu functions are registered, but the bindings have room for "
                 "%zu (kMaxFunctions)",
                 functions.size(), kMaxFunctions);
    return false;
  }
  for (const FunctionSchema* f : functions) {
    BoundFunction b;
    if (absl::StrContains(f->name, '.')) {  // right after the function of which it is one
      if (!BindOverload(*f, &Table().back())) return false;
      continue;
    }
    if (!Bind(*f, &b)) return false;
    Table().push_back(std::move(b));
  }
  return true;
}

PyMethodDef DefOf(size_t i, FastCall call) {
  const BoundFunction& b = Table()[i];
  return {b.schema->name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)),
          METH_FASTCALL | METH_KEYWORDS, b.doc.c_str()};
}

}  // namespace

PyMethodDef* FunctionMethods() {
  if (Table().empty() && !BuildTable()) return nullptr;
  static auto* defs = [] {
    auto* list = new std::vector<PyMethodDef>;
    for (size_t i = 0; i < Table().size(); ++i) {
      if (Table()[i].schema->flags & kMethod) list->push_back(DefOf(i, kMethods[i]));
    }
    list->push_back({nullptr, nullptr, 0, nullptr});
    return list;
  }();
  return defs->data();
}

bool AddFunctions(PyObject* module) {
  if (Table().empty() && !BuildTable()) return false;
  static auto* defs = new std::vector<PyMethodDef>;
  for (size_t i = 0; i < Table().size(); ++i) {
    if (Table()[i].schema->flags != kMethodOnly) defs->push_back(DefOf(i, kFunctions[i]));
  }
  defs->push_back({nullptr, nullptr, 0, nullptr});
  static PyModuleDef def = {PyModuleDef_HEAD_INIT,
                            "oneflow_lite._C",
                            "The registered functions, as C++ parses them.",
                            -1,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr};
  PyRef functions(PyModule_Create(&def));
  if (!functions || PyModule_AddFunctions(functions.get(), defs->data()) < 0) return false;
  for (const BoundFunction& b : Table()) {  // for pickle
    if (b.results && PyModule_AddObjectRef(functions.get(), ResultsTypeName(b.schema->name).c_str(),
                                           reinterpret_cast<PyObject*>(b.results)) < 0) {
      return false;
    }
  }
  // So that "from oneflow_lite._C import softmax" and pickle find it.
  PyObject* modules = PyImport_GetModuleDict();
  return PyDict_SetItemString(modules, "oneflow_lite._C", functions.get()) == 0 &&
         PyModule_AddObjectRef(module, "_C", functions.get()) == 0;
}

}  // namespace oneflow_lite::python
