// SPDX-License-Identifier: Apache-2.0
//
// What an op declares, as it is and for the arguments of one call: the facts behind
// flow.ops.describe and flow.check_op. `arguments` is a list with one entry per argument of the
// op's function, tensors of any device among them (meta will do: no kernel runs).
#include <pybind11/stl.h>

#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_function.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/sharding.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

using Specs = absl::InlinedVector<TensorSpec, 4>;
using OutputSpecs = absl::InlinedVector<TensorSpec, 2>;

// "ops/softmax.cpp:12": the folder and the file, wherever it was compiled.
std::string Place(absl::string_view file, int line) {
  size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos && slash > 0) slash = file.rfind('/', slash - 1);
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  return absl::StrCat(file, ":", line);
}

py::list DTypesOf(DTypeSet set) {
  py::list list;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (set & SetOf(dtype)) list.append(OwnedOrThrow(WrapDType(dtype)));
  }
  return list;
}

py::list KernelsOf(const OpDef& op) {
  py::list list;
  for (const KernelDef* k : ListKernels(op.name)) {
    py::dict kernel;
    kernel["device"] = k->device ? py::object(py::str(Name(*k->device))) : py::none();
    kernel["dtypes"] = DTypesOf(k->dtypes);
    kernel["place"] = Place(k->file, k->line);
    list.append(std::move(kernel));
  }
  return list;
}

py::dict OpInfo(const std::string& name) {
  static constexpr const char* kKinds[] = {"required", "optional", "mutated", "viewed", "variadic"};
  const OpDef& op = ValueOrThrow(FindOp(name))->def();
  py::list inputs, attrs;
  for (const InputDef& in : op.inputs) {
    inputs.append(py::make_tuple(in.name, kKinds[static_cast<int>(in.kind)]));
  }
  for (const AttrDef& a : op.attrs) attrs.append(py::make_tuple(a.name, Name(a.type)));
  py::dict d;
  d["name"] = op.name;
  d["schema"] = op.Schema();
  d["doc"] = op.doc;
  d["place"] = Place(op.file, op.line);
  d["inputs"] = std::move(inputs);
  d["outputs"] = op.outputs;
  d["attrs"] = std::move(attrs);
  d["kernels"] = KernelsOf(op);
  d["random"] = op.random;
  d["data_dependent_shape"] = op.data_dependent_shape;
  d["differentiable"] = op.differentiable;
  d["has_backward"] = static_cast<bool>(op.backward);
  d["has_sbp"] = static_cast<bool>(op.sbp);
  d["sbp_text"] = op.sbp_text;
  d["has_cost"] = static_cast<bool>(op.cost);
  d["cost_text"] = op.cost_text;
  return d;
}

// A call of an op as its specs.
struct CallSpecs {
  const OpDef* op;
  Specs inputs;
  Attrs attrs;
};

OpArguments ReadArguments(const OpExpr& expr, const py::list& arguments) {
  const std::string& name = expr.def().name;
  const FunctionSchema& function = FunctionOf(expr);
  if (arguments.size() != function.args.size()) {
    throw py::type_error(name + "(): " + std::to_string(function.args.size()) +
                         " arguments are wanted");
  }
  ValueList values(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!ReadArgument(name.c_str(), function.args[i], py::object(arguments[i]).ptr(), &values[i])) {
      throw py::error_already_set();
    }
  }
  return SplitArguments(expr, absl::MakeSpan(values));
}

CallSpecs Read(const std::string& name, const py::list& arguments) {
  const OpExpr* expr = ValueOrThrow(FindOp(name));
  OpArguments call = ReadArguments(*expr, arguments);
  Specs inputs;
  for (const Tensor& t : call.inputs) inputs.push_back(SpecOf(t));
  return {&expr->def(), std::move(inputs), std::move(call.attrs)};
}

OutputSpecs Infer(const CallSpecs& call) {
  OutputSpecs outputs;
  ThrowIfError(InferOutputs(*call.op, call.inputs, call.attrs, &outputs));
  return outputs;
}

py::list ShapesAndDTypes(const OutputSpecs& specs) {
  py::list list;
  for (const TensorSpec& t : specs) {
    list.append(
        py::make_tuple(OwnedOrThrow(WrapDims(t.shape.dims())), OwnedOrThrow(WrapDType(t.dtype))));
  }
  return list;
}

py::list OpInfer(const std::string& name, const py::list& arguments) {
  return ShapesAndDTypes(Infer(Read(name, arguments)));
}

py::tuple OpCost(const std::string& name, const py::list& arguments) {
  const CallSpecs call = Read(name, arguments);
  const Cost cost = CostOf(*call.op, call.inputs, call.attrs, Infer(call));
  return py::make_tuple(cost.bytes, cost.flops);
}

SbpSignatures SignaturesOfCall(const CallSpecs& call) {
  return ValueOrThrow(SignaturesOf(*call.op, call.inputs, call.attrs, Infer(call)));
}

template <class List>
py::list Texts(const List& entries) {
  py::list list;
  for (const Sbp& s : entries) list.append(s.ToString());
  return list;
}

py::list OpSignatures(const std::string& name, const py::list& arguments) {
  py::list list;
  for (const SbpSignature& s : SignaturesOfCall(Read(name, arguments))) {
    list.append(py::make_tuple(Texts(s.inputs), Texts(s.outputs)));
  }
  return list;
}

std::vector<int64_t> OpSignatureSizes(const std::string& name, const py::list& arguments) {
  std::vector<int64_t> sizes;
  for (const SbpSignature& s : SignaturesOfCall(Read(name, arguments))) {
    sizes.push_back(s.divisible);
  }
  return sizes;
}

py::tuple OpInferShard(const std::string& name, const py::list& arguments, size_t signature,
                       int part, int parts, const py::list& shards) {
  const CallSpecs call = Read(name, arguments);
  const OutputSpecs logical = Infer(call);
  const SbpSignatures signatures = SignaturesOfCall(call);
  if (signature >= signatures.size() || part < 0 || part >= parts) {
    throw py::index_error("op_infer_shard(): there is no such signature or part");
  }
  Specs inputs;
  for (size_t i = 0; i < shards.size(); ++i) {
    const py::object shard = shards[i];
    inputs.push_back(SpecOf(IsTensor(shard.ptr()) ? Unwrap(shard.ptr()) : Tensor()));
  }
  PhysicalContext context{.signature = signatures[signature],
                          .logical_inputs = call.inputs,
                          .logical_outputs = logical,
                          .inputs = inputs,
                          .part = part,
                          .parts = parts,
                          .attrs = call.attrs};
  OutputSpecs outputs;
  ThrowIfError(InferPhysical(*call.op, context, &outputs));
  py::list attrs;
  for (size_t i = 0; i < context.attrs.size(); ++i) {
    attrs.append(OwnedOrThrow(WrapValue(ToValue(context.attrs[static_cast<int>(i)]))));
  }
  return py::make_tuple(attrs, ShapesAndDTypes(outputs), WeightOf(*call.op, context));
}

// What each of so many ranks sends to bring an input to another SBP; None where no op does so
// unasked.
py::object BytesOf(const Tensor& t, const Sbp& from, const Sbp& to, int parts, bool splits) {
  const double bytes = static_cast<double>(t.numel()) * SizeOf(t.dtype());
  const bool once = splits && from.kind == Sbp::Kind::kBroadcast;  // a bias that one rank adds
  if (from != to && to.kind == Sbp::Kind::kPartialSum) {
    return once ? py::object(py::float_(0.0)) : py::none();
  }
  return py::float_(BoxingBytes(t.shape(), bytes, from, to, parts));
}

// Of a call on global tensors, for each dim of the grid, each way to run it: (inputs, outputs, what
// the ranks send for each global input, whether it is the one chosen, and whether the parts fit).
py::list OpCandidates(const std::string& name, const py::list& arguments) {
  const OpExpr* expr = ValueOrThrow(FindOp(name));
  const OpArguments call = ReadArguments(*expr, arguments);
  TensorList unused;
  const auto plan = ValueOrThrow(PlanOf({*expr, call.inputs, call.attrs, &unused}));
  SbpSignatures ways = SignaturesOfCall(Read(name, arguments));
  SbpSignature whole;
  whole.inputs.assign(call.inputs.size(), Sbp::Broadcast());
  whole.outputs.assign(plan->outputs.size(), Sbp::Broadcast());
  ways.push_back(std::move(whole));
  py::list dims;
  for (int d = 0; d < plan->placement->ndim(); ++d) {
    const int parts = plan->placement->grid()[d];
    py::list all;
    for (const SbpSignature& s : ways) {
      bool chosen = true, splits = false;
      for (const Sbp& in : s.inputs) splits = splits || in.kind == Sbp::Kind::kSplit;
      py::list sent;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        chosen = chosen && s.inputs[i] == plan->inputs[i][d];
        const GlobalSpec* g = GlobalOf(call.inputs[i]);
        if (g) sent.append(BytesOf(call.inputs[i], g->sbp[d], s.inputs[i], parts, splits));
      }
      for (size_t i = 0; i < s.outputs.size(); ++i) {
        chosen = chosen && s.outputs[i] == plan->outputs[i][d];
      }
      all.append(
          py::make_tuple(Texts(s.inputs), Texts(s.outputs), sent, chosen, s.FitsParts(parts)));
    }
    dims.append(all);
  }
  return dims;
}

// How a call on global tensors would run; None for one on local tensors. Nothing moves.
py::object OpPlan(const std::string& name, const py::list& arguments) {
  const OpExpr* expr = ValueOrThrow(FindOp(name));
  const OpArguments call = ReadArguments(*expr, arguments);
  bool global = false;
  for (const Tensor& t : call.inputs) global = global || GlobalOf(t);
  if (!global || !expr->def().lists.empty()) return py::none();
  TensorList unused;
  const auto plan = ValueOrThrow(PlanOf({*expr, call.inputs, call.attrs, &unused}));
  py::list moves;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const GlobalSpec* g = GlobalOf(call.inputs[i]);
    if (!g) continue;
    moves.append(py::make_tuple(Texts(g->sbp), Texts(plan->inputs[i])));
  }
  py::list outputs;
  for (const NdSbp& sbp : plan->outputs) outputs.append(Texts(sbp));
  return py::make_tuple(plan->placement->ToString(), moves, outputs, plan->bytes, plan->aside);
}

// Notes every call of an op before it runs.
class Recorder : public DispatchMode {
 public:
  Status Run(OpCall& call, const Next& next) override {
    {
      GilAcquire locked;
      try {
        calls_.append(py::make_tuple(call.op.def().name, Arguments(call)));
      } catch (...) {
        RaiseCaught();
        return TakeRaised();
      }
    }
    return next(call);
  }
  const py::list& calls() const { return calls_; }

 private:
  static py::object Detached(const Tensor& t) {
    return t.defined() ? OwnedOrThrow(Wrap(t.Detach())) : py::none();
  }
  static py::list Arguments(const OpCall& call) {
    const OpDef& op = call.op.def();
    const size_t single = op.inputs.size() - (op.variadic() ? 1 : 0);
    py::list arguments, variadic;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      (i < single ? arguments : variadic).append(Detached(call.inputs[i]));
    }
    if (op.variadic()) arguments.append(variadic);
    for (size_t i = 0; i < call.attrs.size(); ++i) {
      const Value value = ToValue(call.attrs[static_cast<int>(i)]);
      arguments.append(OwnedOrThrow(WrapValue(Value(value))));
    }
    return arguments;
  }
  py::list calls_;
};

py::list RecordOps(const py::function& function) {
  Recorder recorder;
  {
    ModeGuard guard(DispatchStage::kObserver, &recorder);
    function();
  }
  return recorder.calls();
}

}  // namespace

void AddOpDefinition(py::module_& m) {
  const auto name = py::arg("name");
  const auto arguments = py::arg("arguments");
  m.def("op_info", &OpInfo, name, "What an op declares, as a dict.");
  m.def("op_infer", &OpInfer, name, arguments, "Shape and dtype of each output of a call.");
  m.def("op_cost", &OpCost, name, arguments, "Bytes and operations of a call.");
  m.def("op_signatures", &OpSignatures, name, arguments,
        "The SBP signatures of a call: (inputs, outputs), each a list of \"S(0)\", \"B\", \"P\".");
  m.def("op_signature_sizes", &OpSignatureSizes, name, arguments,
        "Of each of them the size that the number of parts must divide, 0 for any number.");
  m.def("op_infer_shard", &OpInferShard, name, arguments, py::arg("signature"), py::arg("part"),
        py::arg("parts"), py::arg("shards"),
        "The attributes of one shard, shape and dtype of each of its outputs, and what its partial "
        "sums are multiplied by.");
  m.def("op_plan", &OpPlan, name, arguments,
        "How a call on global tensors would run: placement, (from, to) of each global input, the "
        "outputs, the bytes each rank sends, whether it is computed aside. None for local ones.");
  m.def("op_candidates", &OpCandidates, name, arguments,
        "For each dim of the grid each way to run a call on global tensors: (inputs, outputs, what "
        "each rank sends for each global input or None, whether it is chosen, whether its parts "
        "fit).");
  m.def("record_ops", &RecordOps, py::arg("function"),
        "Calls function() and gives (name, arguments) of every op that this thread ran in it.");
}

}  // namespace oneflow_lite::python
