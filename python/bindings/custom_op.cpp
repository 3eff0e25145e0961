// SPDX-License-Identifier: Apache-2.0
//
// Ops from outside: libraries that speak the extension table, and ops whose functions are Python's
// (oneflow_lite/custom_op.py has the comfortable side).
#include <pybind11/stl.h>

#include <cmath>
#include <cstdio>
#include <tuple>

#include "functional/copy.h"
#include "functional/creation.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/extension.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_function.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

py::object WrapOrNone(const Tensor& t) { return OwnedOrThrow(Wrap(t)); }

template <class Range>
py::list WrapList(const Range& tensors) {
  py::list list;
  for (const Tensor& t : tensors) list.append(WrapOrNone(t));
  return list;
}

py::list WrapAttrs(const Attrs& attrs) {
  py::list list;
  for (size_t i = 0; i < attrs.size(); ++i) list.append(OwnedOrThrow(WrapValue(ToValue(attrs[i]))));
  return list;
}

// Runs f, whose exceptions become the op's status.
template <class F>
Status CallPython(F&& f) {
  GilAcquire locked;
  try {
    return f();
  } catch (...) {
    RaiseCaught();
    return TakeRaised();
  }
}

// The Python functions of an op; C++ keeps and drops them without the lock.
struct PythonOp {
  SharedObject infer, forward, backward, sbp, cost;
  std::string name;
  std::string infers;  // who does, in error messages
  std::string place;   // " (file:line)", where errors end
  std::vector<std::string> outputs;
};

py::object MetaTensor(const Shape& shape, DType dtype) {
  const Device meta{DeviceType::kMeta, 0};
  return WrapOrNone(ValueOrThrow(Tensor::Empty(shape, dtype, meta)));
}
py::list MetaInputs(const InferContext& c) {
  py::list inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    inputs.append(c.has_input(i) ? MetaTensor(c.shape(i), c.dtype(i)) : py::none());
  }
  return inputs;
}

// What infer must give per output.
constexpr char kSpecWanted[] = "a meta tensor or a pair (shape, dtype)";

Status SetOutput(const PythonOp& op, int i, py::handle spec, InferContext& c) {
  std::pair<std::vector<int64_t>, py::object> pair;
  DType dtype;
  try {
    pair = spec.cast<std::pair<std::vector<int64_t>, py::object>>();
    if (!AsDType(pair.second.ptr(), &dtype)) throw py::cast_error();
  } catch (const py::cast_error&) {
    return Error(ErrorKind::kType, op.name, "(): ", op.infers, " gave ",
                 std::string(py::repr(spec)), " as output ", op.outputs[i], ", but must give ",
                 kSpecWanted);
  }
  const std::vector<int64_t>& shape = pair.first;
  if (CheckedNumel(shape) < 0 ||
      std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; })) {
    return Error(ErrorKind::kValue, op.name, "(): ", op.infers, " gave the shape ",
                 ToString(shape));
  }
  c.SetOutput(i, Shape(shape), dtype);
  return OkStatus();
}

Status Infer(const PythonOp& op, InferContext& c) {
  return CallPython([&]() -> Status {
    GradGuard no_grad(false);
    const AutocastPause below_autocast;
    const py::list specs = py::handle(op.infer.get())(MetaInputs(c), WrapAttrs(c.attrs()));
    if (static_cast<int>(specs.size()) != c.num_outputs()) {
      return Error(ErrorKind::kValue, op.name, "(): ", op.infers, " gave ", specs.size(),
                   " outputs, but the op has ", c.num_outputs(), ", and each is ", kSpecWanted);
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      OFL_RETURN_IF_ERROR(SetOutput(op, i, specs[i], c));
    }
    return OkStatus();
  });
}

// "S(1)", "B" or "P".
Sbp ReadSbp(const std::string& text) {
  int axis = 0, read = 0;
  if (text == "B") return Sbp::Broadcast();
  if (text == "P") return Sbp::PartialSum();
  if (std::sscanf(text.c_str(), "S(%d)%n", &axis, &read) == 1 &&
      static_cast<size_t>(read) == text.size()) {
    return Sbp::Split(axis);
  }
  throw py::value_error("an SBP entry is \"S(axis)\", \"B\" or \"P\", not \"" + text + "\"");
}

StatusOr<SbpSignatures> Signatures(const PythonOp& op, const SbpContext& c) {
  SbpSignatures out;
  OFL_RETURN_IF_ERROR(CallPython([&]() -> Status {
    GradGuard no_grad(false);
    py::list inputs;
    for (const Shape& shape : c.inputs) inputs.append(MetaTensor(shape, DType::kFloat32));
    const py::list signatures = py::handle(op.sbp.get())(inputs, WrapAttrs(c.attrs));
    for (size_t i = 0; i < signatures.size(); ++i) {
      SbpSignature s;
      for (const std::string& entry : py::cast<std::vector<std::string>>(signatures[i])) {
        const Sbp sbp = ReadSbp(entry);
        if (s.inputs.size() < c.inputs.size())
          s.inputs.push_back(sbp);
        else
          s.outputs.push_back(sbp);
      }
      out.push_back(std::move(s));
    }
    return OkStatus();
  }));
  return out;
}

// No call asks for a cost, so none can report its exception: Python prints it, and the cost is no
// number.
Cost CostOfCall(const PythonOp& op, const InferContext& c) {
  GilAcquire locked;
  try {
    GradGuard no_grad(false);
    const py::object result = py::handle(op.cost.get())(MetaInputs(c), WrapAttrs(c.attrs()));
    const auto [bytes, flops] = py::cast<std::pair<double, double>>(result);
    return {.bytes = bytes, .flops = flops};
  } catch (...) {
    RaiseCaught();
    PyErr_WriteUnraisable(py::str(op.name).ptr());
    return {.bytes = NAN, .flops = NAN};
  }
}

// An output that is an input or an earlier output, or a view of one, would share its memory unknown
// to autograd; and a tensor that someone else holds too would get this call's history.
StatusOr<Tensor> OwnMemory(const py::object& object, const TensorList& earlier, KernelContext& c) {
  const Tensor& out = Unwrap(object.ptr());
  const auto shares = [&](const Tensor& t) {
    return t.defined() && t.storage()->Overlaps(*out.storage());
  };
  bool shared = std::any_of(earlier.begin(), earlier.end(), shares);
  for (int i = 0; i < c.num_inputs(); ++i) shared = shared || shares(c.input(i));
  if (shared) return functional::Clone(out);
  // Of the owners two are known: `object`, and the list that forward gave. The base of a view would
  // take part in its changes, and is not known to the call.
  const bool as_it_is =
      object.ref_count() <= 2 && !autograd::RequiresGrad(out) && !autograd::Base(out).defined();
  return as_it_is ? out : out.Detach();
}

class PythonKernel final : public BoundKernel {
 public:
  explicit PythonKernel(std::shared_ptr<PythonOp> op) : op_(std::move(op)) {}

  Status Launch(KernelContext& c) const override {
    return CallPython([&]() -> Status {
      GradGuard no_grad(false);
      const AutocastPause below_autocast;
      const GlobalScope local(nullptr, {});  // as the inputs are
      py::list inputs;
      for (int i = 0; i < c.num_inputs(); ++i) {
        const Tensor& t = c.input(i);
        inputs.append(WrapOrNone(t.defined() && autograd::RequiresGrad(t) ? t.Detach() : t));
      }
      const py::list outputs = py::handle(op_->forward.get())(inputs, WrapAttrs(c.attrs()));
      if (static_cast<int>(outputs.size()) != c.num_outputs()) {
        return Error(ErrorKind::kValue, op_->name, "(): forward gave ", outputs.size(),
                     " outputs, but the op has ", c.num_outputs(), op_->place);
      }
      TensorList own;
      for (int i = 0; i < c.num_outputs(); ++i) {
        const py::object out = outputs[i];
        if (!IsTensor(out.ptr())) {
          return Error(ErrorKind::kType, op_->name, "(): forward gave ",
                       Py_TYPE(out.ptr())->tp_name, " as output ", op_->outputs[i],
                       ", but must give a Tensor", op_->place);
        }
        OFL_ASSIGN_OR_RETURN(Tensor t, OwnMemory(out, own, c));
        own.push_back(t);
        c.set_output(i, std::move(t));
      }
      return OkStatus();
    });
  }

 private:
  std::shared_ptr<PythonOp> op_;
};

// The gradients of all outputs: zeros where nothing flowed back to a floating one.
StatusOr<TensorList> Gradients(const PythonOp& op, GradContext& c) {
  TensorList grads;
  for (size_t i = 0; i < op.outputs.size(); ++i) grads.push_back(c.grad(static_cast<int>(i)));
  const auto given = [](const Tensor& t) { return t.defined(); };
  const auto some = std::find_if(grads.begin(), grads.end(), given);
  if (some == grads.end() || std::all_of(grads.begin(), grads.end(), given)) return grads;
  const Device device = some->device();
  absl::InlinedVector<TensorSpec, 4> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.spec(i));
  absl::InlinedVector<TensorSpec, 2> outputs;
  OFL_RETURN_IF_ERROR(InferOutputs(c.op(), inputs, c.attrs(), &outputs));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() || !IsFloating(outputs[i].dtype)) continue;
    OFL_ASSIGN_OR_RETURN(grads[i],
                         functional::Zeros(outputs[i].shape.dims(), outputs[i].dtype, device));
  }
  return grads;
}

Status Backward(const PythonOp& op, GradContext& c) {
  OFL_ASSIGN_OR_RETURN(const TensorList gradients, Gradients(op, c));
  return CallPython([&]() -> Status {
    py::list inputs, outputs, needs;
    const py::list grads = WrapList(gradients);
    for (int i = 0; i < c.num_inputs(); ++i) {
      inputs.append(WrapOrNone(c.input(i)));
      needs.append(c.needs(i));
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      outputs.append(WrapOrNone(c.output(static_cast<int>(i))));
    }
    const py::list results =
        py::handle(op.backward.get())(inputs, outputs, grads, WrapAttrs(c.attrs()), needs);
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (!c.needs(i)) continue;
      const py::object result = results[i];
      if (result.is_none()) continue;
      if (!IsTensor(result.ptr())) {
        return Error(ErrorKind::kType, op.name, "(): backward gave ",
                     Py_TYPE(result.ptr())->tp_name, " for ", c.input_name(i),
                     ", but must give a Tensor or None", op.place);
      }
      OFL_RETURN_IF_ERROR(c.Set(i, Unwrap(result.ptr())));
    }
    return c.CheckAnySet(/*zeros_stand_in=*/true);
  });
}

struct AttrSpec {
  AttrType type;
  AttrValue default_value;
};
AttrSpec ReadAttr(const std::string& name, const std::string& type, const py::object& value) {
  const bool none = value.is_none();
  if (type == "bool") return {AttrType::kBool, none ? AttrValue() : AttrValue(value.cast<bool>())};
  if (type == "int") return {AttrType::kInt, none ? AttrValue() : AttrValue(value.cast<int64_t>())};
  if (type == "float") {
    return {AttrType::kFloat, none ? AttrValue() : AttrValue(value.cast<double>())};
  }
  if (type == "str") {
    if (none) return {AttrType::kString, {}};
    Py_ssize_t n = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &n);
    if (text) return {AttrType::kString, std::string(text, static_cast<size_t>(n))};
    PyErr_Clear();
    throw py::value_error("register_op(): the default of attribute " + name +
                          " has half of a surrogate pair");
  }
  if (type == "int[]") {
    if (none) return {AttrType::kInts, {}};
    const auto list = value.cast<std::vector<int64_t>>();
    return {AttrType::kInts, Dims(list.begin(), list.end())};
  }
  DType dtype;
  if (type == "dtype" && (none || AsDType(value.ptr(), &dtype))) {
    return {AttrType::kDType, none ? AttrValue() : AttrValue(dtype)};
  }
  throw py::type_error("register_op(): attribute " + name + " has no valid type or default");
}

using InputSpecs = std::vector<std::pair<std::string, std::string>>;
using AttrSpecs = std::vector<std::tuple<std::string, std::string, py::object, bool>>;

void RegisterPythonOp(const std::string& name, const std::string& doc, const std::string& file,
                      int line, const InputSpecs& inputs, const std::vector<std::string>& outputs,
                      const AttrSpecs& attrs, const py::object& infer, const std::string& infers,
                      const py::object& forward, const py::object& backward, const py::object& sbp,
                      const py::object& cost, uint64_t save_inputs, uint64_t save_outputs) {
  auto op = std::make_shared<PythonOp>();
  op->infer = ShareObject(infer.ptr());
  op->forward = ShareObject(forward.ptr());
  op->name = name;
  op->infers = infers;
  op->place = absl::StrCat(" (", file, ":", line, ")");
  op->outputs = outputs;
  OpDef def;
  def.name = name;
  def.doc = doc;
  def.file = (new std::string(file))->c_str();  // lives as long as the op: forever
  def.line = line;
  def.makes_outputs = true;
  for (const auto& [input, kind] : inputs) {
    def.Input(input, kind == "optional"   ? InputDef::Kind::kOptional
                     : kind == "variadic" ? InputDef::Kind::kVariadic
                                          : InputDef::Kind::kRequired);
  }
  for (const std::string& output : outputs) def.Output(output);
  for (const auto& [attr, type, value, optional] : attrs) {
    AttrSpec spec = ReadAttr(attr, type, value);
    def.Attr(attr, spec.type, std::move(spec.default_value));
    def.attrs.back().optional = optional;
  }
  def.infer = [op](InferContext& c) { return Infer(*op, c); };
  if (!backward.is_none()) {
    op->backward = ShareObject(backward.ptr());
    const SavePlan plan{save_inputs, save_outputs};
    def.save = [plan](const Attrs&, Needs) { return plan; };
    def.backward = [op](GradContext& c) { return Backward(*op, c); };
  }
  if (!sbp.is_none()) {
    op->sbp = ShareObject(sbp.ptr());
    def.sbp = [op](const SbpContext& c) { return Signatures(*op, c); };
  }
  if (!cost.is_none()) {
    op->cost = ShareObject(cost.ptr());
    def.cost = [op](const InferContext& c, absl::Span<const TensorSpec>) {
      return CostOfCall(*op, c);
    };
  }
  KernelDef kernel;
  kernel.op = name;
  kernel.strided_inputs = ~uint32_t{0};
  kernel.file = def.file;
  kernel.line = line;
  kernel.bind = [op](const BindContext&) -> StatusOr<std::unique_ptr<BoundKernel>> {
    return std::make_unique<PythonKernel>(op);
  };
  std::vector<OpDef> ops;
  ops.push_back(std::move(def));
  ThrowIfError(RegisterAll(std::move(ops), {std::move(kernel)}));
}

}  // namespace

void AddCustomOp(py::module_& m) {
  m.def("register_python_op", &RegisterPythonOp, py::kw_only(), py::arg("name"), py::arg("doc"),
        py::arg("file"), py::arg("line"), py::arg("inputs"), py::arg("outputs"), py::arg("attrs"),
        py::arg("infer"), py::arg("infers"), py::arg("forward"), py::arg("backward"),
        py::arg("sbp"), py::arg("cost"), py::arg("save_inputs"), py::arg("save_outputs"),
        "Registers an op whose functions are Python's; see custom_op.py.");
  m.def(
      "load_library", [](const std::string& path) { return ValueOrThrow(LoadExtension(path)); },
      py::arg("path"), "Registers the ops of a shared library; the names of the new ones.");
}

}  // namespace oneflow_lite::python
