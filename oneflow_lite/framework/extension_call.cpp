// SPDX-License-Identifier: Apache-2.0
//
// Calling the library's functions by name over the extension table.
#include "oneflow_lite/framework/extension_internal.h"

namespace oneflow_lite::extension_table {
namespace {

const char* Name(int32_t type) {
  static constexpr const char* kNames[] = {"None",   "bool",  "int",    "float",      "int[]",
                                           "string", "dtype", "Tensor", "Tensor list"};
  return type >= OFL_NONE && type <= OFL_VALUE_TENSORS ? kNames[type] : "of an unknown type";
}

// A reference for whoever gets the handle, which is null where the tensor is undefined.
void Own(const Tensor& t) {
  if (t.defined()) t.impl()->AddRef();
}

StatusOr<Value> ToArgument(const ArgSchema& arg, const ofl_value& v) {
  switch (v.type) {
    case OFL_NONE:
      if (arg.optional) return Value{};
      break;
    case OFL_VALUE_TENSOR:
      if (!v.as.tensor && !arg.optional) {
        return Error(ErrorKind::kType, "argument ", arg.name, " is not defined");
      }
      if (arg.type == ArgType::kTensor || arg.type == ArgType::kOperand)
        return Value{Borrow(v.as.tensor)};
      break;
    case OFL_VALUE_BOOL:
      if (arg.type == ArgType::kBool) return Value{v.as.b != 0};
      break;
    case OFL_VALUE_INT:
      if (arg.type == ArgType::kInt) return Value{v.as.i};
      if (arg.type == ArgType::kFloat) return Value{static_cast<double>(v.as.i)};
      if (arg.type == ArgType::kScalar || arg.type == ArgType::kOperand)
        return Value{Scalar(v.as.i)};
      if (arg.type == ArgType::kInts) return Value{Dims{v.as.i}};
      break;
    case OFL_VALUE_FLOAT:
      if (arg.type == ArgType::kFloat) return Value{v.as.f};
      if (arg.type == ArgType::kScalar || arg.type == ArgType::kOperand)
        return Value{Scalar(v.as.f)};
      break;
    case OFL_VALUE_INTS:
      if (arg.type == ArgType::kInts) {
        OFL_ASSIGN_OR_RETURN(Dims ints, ToInts(v));
        return Value{std::move(ints)};
      }
      break;
    case OFL_VALUE_STRING:
      if (arg.type == ArgType::kString && v.as.s) return Value{std::string(v.as.s)};
      break;
    case OFL_VALUE_DTYPE:
      if (arg.type == ArgType::kDType && v.as.i >= 0 && v.as.i < kNumDTypes) {
        return Value{static_cast<DType>(v.as.i)};
      }
      break;
    case OFL_VALUE_TENSORS:
      if (arg.type == ArgType::kTensorList) {
        TensorList list;
        if (v.as.tensors.size < 0 || (v.as.tensors.size > 0 && !v.as.tensors.data)) break;
        for (int64_t i = 0; i < v.as.tensors.size; ++i) {
          list.push_back(Borrow(v.as.tensors.data[i]));
        }
        return Value{std::move(list)};
      }
      break;
    default:
      break;
  }
  return Error(ErrorKind::kType, "argument ", arg.name, " cannot be ", Name(v.type));
}

StatusOr<Value> CallByName(const char* name, const ofl_value* args, int32_t num_args) {
  if (!name || (num_args > 0 && !args)) {
    return Error(ErrorKind::kValue, "call: the ", name ? "arguments are" : "name is", " missing");
  }
  OFL_ASSIGN_OR_RETURN(const FunctionSchema* f, FindFunction(name));
  if (num_args < 0 || static_cast<size_t>(num_args) > f->args.size()) {
    return Error(ErrorKind::kType, name, "(): ", num_args, " arguments for ", f->text);
  }
  ValueList values;
  for (size_t i = 0; i < f->args.size(); ++i) {
    if (i < static_cast<size_t>(num_args)) {
      auto value = ToArgument(f->args[i], args[i]);
      if (!value.ok()) {
        return Error(ErrorKind::kType, name, "(): ", value.status().message(), " in ", f->text);
      }
      values.push_back(*std::move(value));
    } else if (f->args[i].has_default) {
      values.push_back(f->args[i].default_value);
    } else {
      return Error(ErrorKind::kType, name, "(): argument ", f->args[i].name, " is missing");
    }
  }
  Value result;
  OFL_RETURN_IF_ERROR((*f)(absl::MakeSpan(values), &result));
  return result;
}

}  // namespace

int32_t CallFunction(const char* function, const ofl_value* args, int32_t num_args,
                     ofl_value* result) {
  thread_local std::vector<ofl_tensor> several;
  if (!result) return SetError(OFL_VALUE_ERROR, "call: there is no room for the result");
  auto value = CallByName(function, args, num_args);
  if (!value.ok()) return CodeOf(value.status());
  if (Tensor* t = std::get_if<Tensor>(&*value)) {
    Own(*t);
    result->type = OFL_VALUE_TENSOR;
    result->as.tensor = Handle(*t);
    return OFL_OK;
  }
  if (TensorList* list = std::get_if<TensorList>(&*value)) {
    several.clear();
    for (const Tensor& t : *list) {
      Own(t);
      several.push_back(Handle(t));
    }
    result->type = OFL_VALUE_TENSORS;
    result->as.tensors = {several.data(), static_cast<int64_t>(several.size())};
    return OFL_OK;
  }
  return SetError(OFL_TYPE_ERROR, "the function does not give tensors");
}

}  // namespace oneflow_lite::extension_table
