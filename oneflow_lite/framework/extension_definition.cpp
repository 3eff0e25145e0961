// SPDX-License-Identifier: Apache-2.0
//
// Errors, attributes and definitions as they cross the extension table.
#include <cmath>
#include <cstdio>

#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/extension_internal.h"

namespace oneflow_lite::extension_table {
namespace {

static_assert(static_cast<int>(DType::kFloat64) == OFL_FLOAT64 &&
              static_cast<int>(DType::kFloat16) == OFL_FLOAT16);
static_assert(static_cast<int>(DeviceType::kMeta) == OFL_META);
static_assert(static_cast<int>(InputDef::Kind::kVariadic) == OFL_INPUT_VARIADIC);

thread_local std::string last_message;
thread_local ErrorKind last_kind = ErrorKind::kRuntime;

constexpr std::pair<ErrorKind, int32_t> kCodes[] = {
    {ErrorKind::kRuntime, OFL_RUNTIME_ERROR},    {ErrorKind::kIndex, OFL_INDEX_ERROR},
    {ErrorKind::kDType, OFL_DTYPE_ERROR},        {ErrorKind::kType, OFL_TYPE_ERROR},
    {ErrorKind::kShape, OFL_SHAPE_ERROR},        {ErrorKind::kValue, OFL_VALUE_ERROR},
    {ErrorKind::kOverflow, OFL_OVERFLOW_ERROR},  {ErrorKind::kNotImplemented, OFL_NOT_IMPLEMENTED},
    {ErrorKind::kOutOfMemory, OFL_OUT_OF_MEMORY}};

void ToC(const AttrValue& v, ofl_value* out) {
  out->type = OFL_NONE;
  out->as.i = 0;
  if (auto* b = std::get_if<bool>(&v))
    out->type = OFL_VALUE_BOOL, out->as.b = *b;
  else if (auto* i = std::get_if<int64_t>(&v))
    out->type = OFL_VALUE_INT, out->as.i = *i;
  else if (auto* f = std::get_if<double>(&v))
    out->type = OFL_VALUE_FLOAT, out->as.f = *f;
  else if (auto* t = std::get_if<DType>(&v)) {
    out->type = OFL_VALUE_DTYPE;
    out->as.i = static_cast<int64_t>(*t);
  } else if (auto* s = std::get_if<std::string>(&v)) {
    out->type = OFL_VALUE_STRING;
    out->as.s = s->c_str();
  } else if (auto* d = std::get_if<Dims>(&v)) {
    out->type = OFL_VALUE_INTS;
    out->as.ints = {d->data(), static_cast<int64_t>(d->size())};
  }
}

StatusOr<AttrType> AttrTypeOf(int32_t type) {
  switch (type) {
    case OFL_VALUE_BOOL:
      return AttrType::kBool;
    case OFL_VALUE_INT:
      return AttrType::kInt;
    case OFL_VALUE_FLOAT:
      return AttrType::kFloat;
    case OFL_VALUE_INTS:
      return AttrType::kInts;
    case OFL_VALUE_STRING:
      return AttrType::kString;
    case OFL_VALUE_DTYPE:
      return AttrType::kDType;
    default:
      return Error(ErrorKind::kValue, "an attribute cannot have type ", type);
  }
}

StatusOr<AttrValue> ToAttr(const ofl_value& v) {
  switch (v.type) {
    case OFL_NONE:
      return AttrValue{};
    case OFL_VALUE_BOOL:
      return AttrValue{v.as.b != 0};
    case OFL_VALUE_INT:
      return AttrValue{v.as.i};
    case OFL_VALUE_FLOAT:
      return AttrValue{v.as.f};
    case OFL_VALUE_STRING:
      return AttrValue{std::string(v.as.s ? v.as.s : "")};
    case OFL_VALUE_INTS: {
      OFL_ASSIGN_OR_RETURN(Dims ints, ToInts(v));
      return AttrValue{std::move(ints)};
    }
    case OFL_VALUE_DTYPE:
      if (v.as.i < 0 || v.as.i >= kNumDTypes) break;
      return AttrValue{static_cast<DType>(v.as.i)};
    default:
      break;
  }
  return Error(ErrorKind::kValue, "a default value of type ", v.type, " is not valid");
}

// No call asks for a cost, so none can report its error: it is printed, and the cost is no number.
void PrintOfCost(const Status& error) {
  std::fprintf(stderr, "in cost: %s\n", std::string(error.message()).c_str());
}

void SetCallbacks(const ofl_op& c, OpDef* op) {
  const auto* name = new std::string(c.name);  // as long as the process, like the op
  op->infer = [infer = c.infer, user = c.user, name,
               outputs = op->outputs](InferContext& context) -> Status {
    InferCall call{context};
    const int32_t code = infer(reinterpret_cast<ofl_infer_context>(&call), user);
    if (code != OFL_OK) return ToStatus(code, *name);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (call.set >> i & 1) continue;
      return Error(ErrorKind::kRuntime, *name, "(): infer did not set output ", outputs[i]);
    }
    return OkStatus();
  };
  if (c.backward) {
    op->save = [plan = SavePlan{c.save_inputs, c.save_outputs}](const Attrs&, Needs) {
      return plan;
    };
    op->backward = [backward = c.backward, user = c.user, name](GradContext& context) {
      const int32_t code = backward(reinterpret_cast<ofl_grad_context>(&context), user);
      return code == OFL_OK ? context.CheckAnySet() : ToStatus(code, *name);
    };
  }
  if (c.sbp) {
    op->sbp = [sbp = c.sbp, user = c.user, name,
               outputs = op->outputs.size()](const SbpContext& context) -> StatusOr<SbpSignatures> {
      SbpSignatures signatures;
      SbpCall call{context, outputs, &signatures};
      const int32_t code = sbp(reinterpret_cast<ofl_sbp_context>(&call), user);
      if (code != OFL_OK) return ToStatus(code, *name);
      return signatures;
    };
  }
  if (c.cost) {
    op->cost = [cost = c.cost, user = c.user, name](const InferContext& context,
                                                    absl::Span<const TensorSpec>) {
      Cost result;
      InferCall call{const_cast<InferContext&>(context)};
      const auto c = reinterpret_cast<ofl_infer_context>(&call);
      const int32_t code = cost(c, user, &result.bytes, &result.flops);
      if (code == OFL_OK) return result;
      PrintOfCost(ToStatus(code, *name));
      return Cost{.bytes = NAN, .flops = NAN};
    };
  }
}

class ExtensionKernel final : public BoundKernel {
 public:
  ExtensionKernel(const ofl_kernel& c, std::string op)
      : launch_(c.launch), user_(c.user), op_(op) {}
  Status Launch(KernelContext& context) const override {
    const AutocastPause below_autocast;
    const int32_t code = launch_(reinterpret_cast<ofl_kernel_context>(&context), user_);
    return code == OFL_OK ? OkStatus() : ToStatus(code, op_);
  }

 private:
  int32_t (*launch_)(ofl_kernel_context, void*);
  void* user_;
  std::string op_;
};

}  // namespace

int32_t SetError(int32_t code, const char* message) {
  last_message = message ? message : "";
  last_kind = ErrorKind::kRuntime;
  for (const auto& [kind, c] : kCodes) {
    if (c == code) last_kind = kind;
  }
  return code == OFL_OK ? OFL_RUNTIME_ERROR : code;
}

int32_t CodeOf(const Status& s) {
  if (s.ok()) return OFL_OK;
  int32_t code = OFL_RUNTIME_ERROR;
  for (const auto& [kind, c] : kCodes) {
    if (kind == KindOf(s)) code = c;
  }
  return SetError(code, std::string(s.message()).c_str());
}

Status ToStatus(int32_t code, const std::string& op) {
  if (code == OFL_OK) return OkStatus();
  // Taken, so that a callback that only gives a code does not show an earlier one's message.
  std::string message = std::exchange(last_message, "");
  if (message.empty()) message = absl::StrCat("error code ", code, ", without a message");
  const bool named = message.rfind(op, 0) == 0;
  return named ? MakeError(last_kind, message) : Error(last_kind, op, "(): ", message);
}

const char* LastError() { return last_message.c_str(); }

Staged*& CurrentStage() {
  thread_local Staged* staged = nullptr;
  return staged;
}

int32_t GetAttr(const Attrs& attrs, int32_t i, ofl_value* value) {
  if (i < 0 || i >= static_cast<int32_t>(attrs.size())) {
    return CodeOf(Error(ErrorKind::kIndex, "there is no attribute ", i, ", but ", attrs.size()));
  }
  const auto* text = std::get_if<std::string>(&attrs[i]);
  if (text && text->find('\0') != std::string::npos) {
    return CodeOf(Error(ErrorKind::kValue, "attribute ", i, " has a NUL, at which C would cut it"));
  }
  ToC(attrs[i], value);
  return OFL_OK;
}

StatusOr<Dims> ToInts(const ofl_value& v) {
  const auto& ints = v.as.ints;
  if (ints.size < 0 || (ints.size > 0 && !ints.data)) {
    return Error(ErrorKind::kValue, "a list of ", ints.size, " ints",
                 ints.data ? "" : " at a null pointer", " is not valid");
  }
  return Dims(ints.data, ints.data + ints.size);
}

// The name of an input, output or attribute.
StatusOr<std::string> ToName(const OpDef& op, const char* kind, int32_t i, const char* name) {
  if (name) return std::string(name);
  return Error(ErrorKind::kValue, "op ", op.name, ": ", kind, " ", i, " has no name");
}

StatusOr<OpDef> ToOpDef(const ofl_op& c) {
  OpDef op;
  if (!c.name || !*c.name) return Error(ErrorKind::kValue, "an op needs a name");
  op.name = c.name;
  if (c.num_inputs < 0 || c.num_outputs < 0 || c.num_attrs < 0 || (c.num_inputs && !c.inputs) ||
      (c.num_outputs && !c.outputs) || (c.num_attrs && !c.attrs)) {
    return Error(ErrorKind::kValue, "op ", op.name, ": a list is missing, or its size negative");
  }
  op.doc = c.doc ? c.doc : "";
  op.file = c.file ? c.file : "";
  op.line = c.line;
  op.random = c.random != 0;
  for (int32_t i = 0; i < c.num_inputs; ++i) {
    const int32_t kind = c.inputs[i].kind;
    if (kind < OFL_INPUT_REQUIRED || kind > OFL_INPUT_VARIADIC || kind == 3) {
      return Error(ErrorKind::kValue, "op ", op.name, ": input ", i, " has no valid kind");
    }
    OFL_ASSIGN_OR_RETURN(std::string name, ToName(op, "input", i, c.inputs[i].name));
    op.Input(std::move(name), static_cast<InputDef::Kind>(kind));
  }
  for (int32_t i = 0; i < c.num_outputs; ++i) {
    OFL_ASSIGN_OR_RETURN(std::string name, ToName(op, "output", i, c.outputs[i]));
    op.Output(std::move(name));
  }
  for (int32_t i = 0; i < c.num_attrs; ++i) {
    OFL_ASSIGN_OR_RETURN(std::string name, ToName(op, "attribute", i, c.attrs[i].name));
    OFL_ASSIGN_OR_RETURN(const AttrType type, AttrTypeOf(c.attrs[i].type));
    OFL_ASSIGN_OR_RETURN(AttrValue value, ToAttr(c.attrs[i].default_value));
    if (value.index() != 0 && value.index() != static_cast<size_t>(type)) {
      return Error(ErrorKind::kValue, "op ", op.name, ": the default of attribute ", name,
                   " has another type than the attribute");
    }
    op.Attr(std::move(name), type, std::move(value));
    op.attrs.back().optional = c.attrs[i].optional != 0;
  }
  if (!c.infer) return Error(ErrorKind::kValue, "op ", op.name, " has no infer function");
  SetCallbacks(c, &op);
  return op;
}

StatusOr<KernelDef> ToKernelDef(const ofl_kernel& c) {
  if (!c.op || !c.launch)
    return Error(ErrorKind::kValue, "a kernel needs an op and a launch function");
  if (c.device < OFL_ANY_DEVICE || c.device >= OFL_META) {
    return Error(ErrorKind::kValue, "kernel for ", c.op, ": ", c.device, " is no device type");
  }
  KernelDef k;
  k.op = c.op;
  if (c.device != OFL_ANY_DEVICE) k.device = static_cast<DeviceType>(c.device);
  if (c.dtypes == 0 || (c.dtypes & ~kAllDTypes)) {
    return Error(ErrorKind::kValue, "kernel for ", c.op, ": it is for no dtype, or for one that ",
                 "there is not");
  }
  k.dtypes = c.dtypes;
  k.strided_inputs = c.strided_inputs;
  k.file = c.file ? c.file : "";
  k.line = c.line;
  k.bind = [c, op = k.op](const BindContext&) -> StatusOr<std::unique_ptr<BoundKernel>> {
    return std::make_unique<ExtensionKernel>(c, op);
  };
  return k;
}

}  // namespace oneflow_lite::extension_table
