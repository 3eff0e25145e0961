// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/op_registry.h"

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "absl/strings/str_join.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite {
namespace {

struct Pending {
  const char* name;
  void (*define)(OpDef&);
  const char* file;
  int line;
};

struct Registry {
  std::mutex mutex;
  std::vector<Pending> pending;
  std::map<std::string, std::unique_ptr<const OpExpr>, std::less<>> ops;
};
Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

Status Validate(const OpDef& op) {
  const auto fail = [&](absl::string_view why) {
    return Error(ErrorKind::kRuntime, "op ", op.name, " (", op.file, ":", op.line, "): ", why);
  };
  if (op.name.empty()) return fail("an op needs a name");
  if (op.outputs.empty() && op.lists.empty())
    return fail("an op needs an output; of one that changes an input it is that input");
  if (!op.lists.empty() && (!op.outputs.empty() || op.differentiable || op.inputs.size() == 1)) {
    return fail("an op over lists changes them in place, without outputs or a gradient");
  }
  if (op.inputs.size() > 32 || op.outputs.size() > 16) return fail("at most 32 inputs, 16 outputs");
  if (op.views() ? !op.view : !op.infer) {
    return fail(op.views() ? "a viewed input needs `view`" : "`infer` is missing");
  }
  if (op.outputs.size() > 1 && (op.mutates() || op.views())) {
    return fail(op.mutates() ? "an op that changes an input has that as its only output"
                             : "an op that views an input has the view as its only output");
  }
  std::set<absl::string_view> names;
  for (const InputDef& in : op.inputs) {
    if (!names.insert(in.name).second) return fail(absl::StrCat("two arguments named ", in.name));
  }
  for (const AttrDef& a : op.attrs) {
    if (!names.insert(a.name).second) return fail(absl::StrCat("two arguments named ", a.name));
    const size_t given = a.default_value.index();
    if (given != 0 && given != static_cast<size_t>(a.type)) {
      return fail(absl::StrCat("the default of ", a.name, ", ", AttrText(a.default_value),
                               ", is no ", Name(a.type)));
    }
  }
  if (std::set<std::string>(op.outputs.begin(), op.outputs.end()).size() != op.outputs.size()) {
    return fail("two outputs of one name");
  }
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const auto kind = op.inputs[i].kind;
    if (i > 0 && (kind == InputDef::Kind::kMutated || kind == InputDef::Kind::kViewed)) {
      return fail("only the first input may be mutated or viewed");
    }
    if (i + 1 < op.inputs.size() && kind == InputDef::Kind::kVariadic) {
      return fail("only the last input may be variadic");
    }
  }
  return OkStatus();
}

// Precondition: the registry's mutex is held.
Status Insert(Registry& r, OpDef op) {
  OFL_RETURN_IF_ERROR(Validate(op));
  if (auto it = r.ops.find(op.name); it != r.ops.end()) {
    const OpDef& other = it->second->def();
    return Error(ErrorKind::kRuntime, "op ", op.name, " is registered twice: at ", other.file, ":",
                 other.line, " and at ", op.file, ":", op.line,
                 "; an op stays until the process ends: give one of them another name or, after a "
                 "change, start Python (a notebook's kernel) anew");
  }
  std::string name = op.name;
  r.ops.emplace(std::move(name), std::make_unique<const OpExpr>(std::move(op)));
  return OkStatus();
}

void DefinePending(Registry& r) {
  for (const Pending& p : std::exchange(r.pending, {})) {
    OpDef op;
    op.name = p.name;
    op.file = p.file;
    op.line = p.line;
    p.define(op);
    if (Status s = Insert(r, std::move(op)); !s.ok()) {
      CheckFailed(p.file, p.line, std::string(s.message()).c_str());  // a bug of this library
    }
  }
}

}  // namespace

Status RegisterOp(OpDef op) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  DefinePending(r);
  return Insert(r, std::move(op));
}

StatusOr<const OpExpr*> FindOp(absl::string_view name) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  DefinePending(r);
  const std::string key(name);
  if (auto it = r.ops.find(key); it != r.ops.end()) return it->second.get();
  constexpr size_t kMostNear = 5;
  std::vector<absl::string_view> near;
  for (const auto& [other, unused] : r.ops) {
    if (key.empty() || near.size() == kMostNear) break;
    if (other.find(key) != std::string::npos || key.find(other) != std::string::npos) {
      near.push_back(other);
    }
  }
  return Error(ErrorKind::kNotImplemented, "there is no op named \"", name, "\"",
               near.empty() ? "" : "; did you mean ", absl::StrJoin(near, " or "),
               near.empty() ? "" : "?");
}

std::vector<std::string> ListOps() {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  DefinePending(r);
  std::vector<std::string> names;
  for (const auto& [name, unused] : r.ops) names.push_back(name);
  return names;
}

namespace internal {
void EraseOp(absl::string_view name) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  r.ops.erase(std::string(name));
}

bool AppendOp(const char* name, void (*define)(OpDef&), const char* file, int line) {
  Registry& r = GetRegistry();
  std::lock_guard lock(r.mutex);
  r.pending.push_back({name, define, file, line});
  return true;
}
}  // namespace internal

}  // namespace oneflow_lite
