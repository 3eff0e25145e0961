// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/op_expr.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr size_t kTensorsInKey = 14;

uint8_t CodeOf(const Tensor& t) {
  return t.defined() ? static_cast<uint8_t>(static_cast<uint8_t>(t.dtype()) + 1) : 0;
}

// Eight bits for the device, and four for each of the first tensors, outputs before inputs.
uint64_t KernelKey(DeviceType device, absl::Span<const Tensor> inputs,
                   absl::Span<const Tensor> outputs) {
  uint64_t key = static_cast<uint64_t>(device);
  int shift = 8;
  const auto add = [&](const Tensor& t) {
    if (shift > 60) return;
    key |= uint64_t{CodeOf(t)} << shift;
    shift += 4;
  };
  for (const Tensor& t : outputs) add(t);
  for (const Tensor& t : inputs) add(t);
  return key;
}

// The dtypes of the tensors that the key has no room for. None of a variadic op: its inputs have
// one dtype, so that the first ones tell.
std::vector<uint8_t> BeyondKey(const OpDef& op, absl::Span<const Tensor> inputs,
                               absl::Span<const Tensor> outputs) {
  std::vector<uint8_t> codes;
  if (inputs.size() + outputs.size() <= kTensorsInKey || op.variadic()) return codes;
  for (const Tensor& t : outputs) codes.push_back(CodeOf(t));
  for (const Tensor& t : inputs) codes.push_back(CodeOf(t));
  codes.erase(codes.begin(), codes.begin() + std::ptrdiff_t{kTensorsInKey});
  return codes;
}

}  // namespace

OpExpr::~OpExpr() {
  for (const CachedKernel* k = kernels_.load(); k;) delete std::exchange(k, k->next);
}

StatusOr<const OpExpr::CachedKernel*> OpExpr::Kernel(DeviceType device,
                                                     absl::Span<const Tensor> inputs,
                                                     absl::Span<const Tensor> outputs) const {
  const uint64_t key = KernelKey(device, inputs, outputs);
  std::vector<uint8_t> beyond = BeyondKey(def_, inputs, outputs);
  const auto find = [&]() -> const CachedKernel* {
    for (auto* k = kernels_.load(std::memory_order_acquire); k; k = k->next) {
      if (k->key == key && k->beyond == beyond) return k;
    }
    return nullptr;
  };
  if (const CachedKernel* k = find()) return k;

  std::lock_guard lock(mutex_);
  if (const CachedKernel* k = find()) return k;
  BindContext context{device, {}, {}};
  const auto given =
      std::find_if(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.defined(); });
  const bool by_input = given != inputs.end() && (given == inputs.begin() || !def_.lists.empty());
  const DType first = by_input ? given->dtype() : outputs[0].dtype();
  for (const Tensor& t : inputs) context.inputs.push_back(t.defined() ? t.dtype() : first);
  for (const Tensor& t : outputs) context.outputs.push_back(t.dtype());
  OFL_ASSIGN_OR_RETURN(const KernelDef* kernel, FindKernel(def_.name, device, first));
  OFL_ASSIGN_OR_RETURN(auto bound, kernel->bind(context));
  if (!bound) return Error(ErrorKind::kRuntime, def_.name, "(): bind gave no kernel");
  auto* entry = new CachedKernel{key, std::move(beyond), kernel, std::move(bound), kernels_.load()};
  kernels_.store(entry, std::memory_order_release);
  return entry;
}

StatusOr<TensorList> JoinLists(const OpDef& op, absl::Span<const Tensor> alone,
                               std::initializer_list<absl::Span<const Tensor>> lists) {
  if (lists.size() == 0 || lists.size() != op.lists.size()) {
    return BadValue(op.name, "the tensors", absl::StrCat(lists.size(), " lists"),
                    absl::StrCat(op.lists.size(), " lists"));
  }
  const size_t length = lists.begin()->size();
  TensorList joined(alone.begin(), alone.end());
  joined.reserve(alone.size() + length * lists.size());
  auto def = op.lists.begin();
  for (absl::Span<const Tensor> list : lists) {
    if (list.empty() && def->optional) {
      joined.resize(joined.size() + length);
    } else if (list.size() != length) {
      return BadValue(op.name, def->name, absl::StrCat("a list of ", list.size()),
                      absl::StrCat("as many tensors as ", op.lists[0].name, ", ", length));
    }
    for (const Tensor& t : list) {
      if (!t.defined()) return NotDefined(op.name, def->name);
    }
    joined.insert(joined.end(), list.begin(), list.end());
    ++def;
  }
  return joined;
}

OpBuilder& OpBuilder::Input(absl::string_view name) {
  inputs_.emplace_back(name);
  return *this;
}
OpBuilder& OpBuilder::Output(absl::string_view name) {
  outputs_.emplace_back(name);
  return *this;
}
OpBuilder& OpBuilder::Attr(absl::string_view name) {
  attrs_.emplace_back(name);
  return *this;
}

StatusOr<const OpExpr*> OpBuilder::Build() const {
  OFL_ASSIGN_OR_RETURN(const OpExpr* expr, FindOp(op_));
  const OpDef& def = expr->def();
  std::vector<std::string> inputs, attrs;
  for (const InputDef& in : def.inputs) inputs.push_back(in.name);
  for (const AttrDef& a : def.attrs) attrs.push_back(a.name);
  if (inputs != inputs_ || def.outputs != outputs_ || attrs != attrs_) {
    return Error(ErrorKind::kRuntime, "OpBuilder: the op is ", def.Schema(), ", but was built as (",
                 absl::StrJoin(inputs_, ", "), "; ", absl::StrJoin(attrs_, ", "), ") -> (",
                 absl::StrJoin(outputs_, ", "), ")");
  }
  return expr;
}

const OpExpr& OpBuilder::Get() const {
  auto expr = Build();
  if (!expr.ok()) CheckFailed(__FILE__, __LINE__, std::string(expr.status().message()).c_str());
  return **expr;
}

}  // namespace oneflow_lite
