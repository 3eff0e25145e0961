// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/op_def.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/sharding.h"

namespace oneflow_lite {

const char* Name(AttrType type) {
  static constexpr const char* kNames[] = {"None",  "bool",   "int",   "float", "Scalar",
                                           "dtype", "Device", "int[]", "str"};
  return kNames[static_cast<int>(type)];
}

std::string AttrText(const AttrValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return absl::StrCat(v); }
    std::string operator()(double v) const { return absl::StrCat(v); }
    std::string operator()(const Scalar& v) const {
      if (v.kind() == Scalar::Kind::kBool) return v.to<bool>() ? "True" : "False";
      return v.is_float() ? absl::StrCat(v.to<double>()) : absl::StrCat(v.to<int64_t>());
    }
    std::string operator()(DType v) const { return Name(v); }
    std::string operator()(Device v) const { return v.ToString(); }
    std::string operator()(const Dims& v) const { return oneflow_lite::ToString(v); }
    std::string operator()(const std::string& v) const {
      return absl::StrCat("'", absl::Utf8SafeCHexEscape(v), "'");
    }
  };
  return std::visit(Visitor{}, value);
}

std::string OpDef::Schema() const {
  std::vector<std::string> arguments;
  for (const InputDef& in : absl::MakeConstSpan(inputs).first(inputs.size() - !lists.empty())) {
    static constexpr const char* kTypes[] = {"Tensor", "Tensor?", "Tensor(a!)", "Tensor(a)",
                                             "Tensor[]"};
    arguments.push_back(absl::StrCat(kTypes[static_cast<int>(in.kind)], " ", in.name));
  }
  for (const ListDef& list : lists) {
    arguments.push_back(absl::StrCat("Tensor", list.mutated ? "(a!)" : "", "[]",
                                     list.optional ? "? " : " ", list.name));
  }
  for (const AttrDef& a : attrs) {
    std::string text = absl::StrCat(Name(a.type), a.optional ? "? " : " ", a.name);
    if (a.optional)
      absl::StrAppend(&text, "=None");
    else if (a.default_value.index() != 0)
      absl::StrAppend(&text, "=", AttrText(a.default_value));
    arguments.push_back(std::move(text));
  }
  std::vector<std::string> results;
  for (const std::string& o : outputs) {
    results.push_back(absl::StrCat(mutates() ? "Tensor(a!) "
                                   : views() ? "Tensor(a) "
                                             : "Tensor ",
                                   o));
  }
  return absl::StrCat(name, "(", absl::StrJoin(arguments, ", "), ") -> (",
                      absl::StrJoin(results, ", "), ")");
}

Tensor DenseBase(const Shape& shape, DType dtype) {
  const size_t nbytes = static_cast<size_t>(shape.numel()) * SizeOf(dtype);
  const Device meta{DeviceType::kMeta, 0};
  return Tensor(MakeRef<TensorImpl>(Storage::FromExternal(nullptr, nbytes, meta, nullptr, nullptr),
                                    shape, ContiguousStrides(shape), 0, dtype));
}

Status InferOutputs(const OpDef& op, const absl::InlinedVector<TensorSpec, 4>& inputs,
                    const Attrs& attrs, absl::InlinedVector<TensorSpec, 2>* outputs) {
  outputs->resize(op.outputs.size());
  if (op.views()) {
    OFL_ASSIGN_OR_RETURN(Geometry g, op.view(DenseBase(inputs[0].shape, inputs[0].dtype), attrs));
    (*outputs)[0].shape = std::move(g.shape);
    (*outputs)[0].dtype = inputs[0].dtype;
    return OkStatus();
  }
  InferContext context(op.name, inputs, attrs, outputs);
  OFL_RETURN_IF_ERROR(op.infer(context));
  for (const TensorSpec& out : *outputs) OFL_RETURN_IF_ERROR(CheckDType(op.name, out.dtype));
  return OkStatus();
}

std::string SbpSignature::ToString() const {
  const auto text = [](const auto& list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const Sbp& s) { *out += s.ToString(); });
  };
  return absl::StrCat("(", text(inputs), ") -> (", text(outputs), ")");
}

StatusOr<SbpSignatures> SignaturesOf(const OpDef& op,
                                     const absl::InlinedVector<TensorSpec, 4>& inputs,
                                     const Attrs& attrs,
                                     const absl::InlinedVector<TensorSpec, 2>& outputs) {
  SbpSignatures signatures;
  SbpContext context{{}, attrs};
  for (const TensorSpec& in : inputs) context.inputs.push_back(in.shape);
  if (op.sbp) {
    OFL_ASSIGN_OR_RETURN(signatures, op.sbp(context));
  }
  if (const WeightedRule* rule = WeightedRuleOf(op)) {
    OFL_ASSIGN_OR_RETURN(const SbpSignatures weighted, rule->signatures(context));
    signatures.insert(signatures.end(), weighted.begin(), weighted.end());
  }
  AppendLinearSignatures(op, inputs, outputs, &signatures);
  const auto fits = [](const Sbp& s, const TensorSpec& t) {
    return s.kind != Sbp::Kind::kSplit || !t.defined || (s.axis >= 0 && s.axis < t.shape.ndim());
  };
  for (const SbpSignature& s : signatures) {
    bool valid = s.inputs.size() == inputs.size() && s.outputs.size() == outputs.size();
    for (size_t i = 0; valid && i < inputs.size(); ++i) valid = fits(s.inputs[i], inputs[i]);
    for (size_t i = 0; valid && i < outputs.size(); ++i) valid = fits(s.outputs[i], outputs[i]);
    if (valid) continue;
    const auto shapes = [](const auto& specs) {
      return absl::StrJoin(specs, ", ", [](std::string* out, const TensorSpec& t) {
        *out += t.defined ? t.shape.ToString() : "None";
      });
    };
    return Error(ErrorKind::kRuntime, op.name, "(): the SBP signature ", s.ToString(), " (",
                 op.file, ":", op.line, ") does not fit a call (", shapes(inputs), ") -> (",
                 shapes(outputs), ")");
  }
  return signatures;
}

Status InferPhysical(const OpDef& op, PhysicalContext& c,
                     absl::InlinedVector<TensorSpec, 2>* outputs) {
  if (op.infer_physical) OFL_RETURN_IF_ERROR(op.infer_physical(c));
  return InferOutputs(op, {c.inputs.begin(), c.inputs.end()}, c.attrs, outputs);
}

Cost CostOf(const OpDef& op, const absl::InlinedVector<TensorSpec, 4>& inputs, const Attrs& attrs,
            const absl::InlinedVector<TensorSpec, 2>& outputs) {
  if (op.cost) {
    absl::InlinedVector<TensorSpec, 2> unused = outputs;
    return op.cost(InferContext(op.name, inputs, attrs, &unused), outputs);
  }
  Cost cost;
  if (op.views()) return cost;
  for (const TensorSpec& in : inputs) {
    if (in.defined) cost.bytes += static_cast<double>(in.shape.numel()) * SizeOf(in.dtype);
  }
  for (const TensorSpec& out : outputs) {
    cost.bytes += static_cast<double>(out.shape.numel()) * SizeOf(out.dtype);
    cost.flops += static_cast<double>(out.shape.numel());
  }
  return cost;
}

}  // namespace oneflow_lite
