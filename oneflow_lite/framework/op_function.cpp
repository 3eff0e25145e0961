// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/op_function.h"

#include <map>
#include <memory>
#include <mutex>

namespace oneflow_lite {
namespace {

ArgType ArgTypeOf(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return ArgType::kBool;
    case AttrType::kFloat:
      return ArgType::kFloat;
    case AttrType::kScalar:
      return ArgType::kScalar;
    case AttrType::kDType:
      return ArgType::kDType;
    case AttrType::kDevice:
      return ArgType::kDevice;
    case AttrType::kInts:
      return ArgType::kInts;
    case AttrType::kString:
      return ArgType::kString;
    default:
      return ArgType::kInt;
  }
}

// The alternatives that attributes and values share.
template <class To, class From>
To Convert(From&& from) {
  return std::visit(
      [](auto&& v) -> To {
        if constexpr (std::is_constructible_v<To, std::in_place_type_t<std::decay_t<decltype(v)>>,
                                              decltype(v)>) {
          return To(std::in_place_type<std::decay_t<decltype(v)>>, std::forward<decltype(v)>(v));
        } else {
          return To();
        }
      },
      std::forward<From>(from));
}

void AddInputs(const OpDef& op, FunctionSchema* f) {
  for (const InputDef& in : op.inputs) {
    ArgSchema arg;
    arg.name = in.name;
    arg.type = in.kind == InputDef::Kind::kVariadic ? ArgType::kTensorList : ArgType::kTensor;
    arg.optional = arg.has_default = in.kind == InputDef::Kind::kOptional;
    arg.mutated = in.kind == InputDef::Kind::kMutated;
    if (arg.has_default) arg.default_text = "None";
    f->args.push_back(std::move(arg));
  }
}

void AddAttrs(const OpDef& op, FunctionSchema* f) {
  for (const AttrDef& attr : op.attrs) {
    ArgSchema arg;
    arg.name = attr.name;
    arg.type = ArgTypeOf(attr.type);
    arg.optional = attr.optional;
    arg.has_default = attr.optional || attr.default_value.index() != 0;
    if (arg.has_default) {
      arg.default_value = Convert<Value>(attr.default_value);
      arg.default_text = AttrText(attr.default_value);
    }
    f->args.push_back(std::move(arg));
  }
}

Status CallOp(void (*target)(), absl::Span<Value> args, Value* result) {
  const OpExpr& expr = *reinterpret_cast<const OpExpr*>(target);
  const OpArguments call = SplitArguments(expr, args);
  OFL_ASSIGN_OR_RETURN(TensorList outputs, CallAll(expr, call.inputs, call.attrs));
  if (outputs.size() == 1)
    *result = std::move(outputs[0]);
  else
    *result = std::move(outputs);
  return OkStatus();
}

}  // namespace

Value ToValue(const AttrValue& attr) { return Convert<Value>(attr); }

OpArguments SplitArguments(const OpExpr& op, absl::Span<Value> args) {
  const size_t num_inputs = op.def().inputs.size();
  OpArguments call;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i >= num_inputs) {
      call.attrs.push_back(Convert<AttrValue>(std::move(args[i])));
    } else if (TensorList* list = std::get_if<TensorList>(&args[i])) {
      call.inputs.insert(call.inputs.end(), list->begin(), list->end());
    } else {
      const Tensor* t = std::get_if<Tensor>(&args[i]);
      call.inputs.push_back(t ? *t : Tensor());
    }
  }
  return call;
}

const FunctionSchema& FunctionOf(const OpExpr& op) {
  static std::mutex mutex;
  static auto* functions = new std::map<const OpExpr*, std::unique_ptr<FunctionSchema>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<FunctionSchema>& f = (*functions)[&op];
  if (!f) {
    f = std::make_unique<FunctionSchema>();
    const OpDef& def = op.def();
    f->name = def.name;
    f->text = def.Schema();
    f->doc = def.doc;
    AddInputs(def, f.get());
    AddAttrs(def, f.get());
    f->call = CallOp;
    f->target = reinterpret_cast<void (*)()>(const_cast<OpExpr*>(&op));
  }
  return *f;
}

}  // namespace oneflow_lite
