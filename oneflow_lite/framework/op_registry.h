// SPDX-License-Identifier: Apache-2.0
//
// The table of ops. Static initialisers only append a definition function; definitions run at the
// first lookup. Registering a name twice is an error that names both places.
//
//   OFL_REGISTER_OP("softmax", DefineSoftmax);
#pragma once

#include <string>
#include <vector>

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

class OpExpr;  // framework/op_expr.h

// Adds an op at run time. RuntimeError where the name is taken or the definition is incomplete;
// the registry is then as it was.
OFL_API Status RegisterOp(OpDef op);
// The op and its expression; NotImplementedError (naming near misses) where there is none. The
// result lives forever.
OFL_API StatusOr<const OpExpr*> FindOp(absl::string_view name);
// All names, sorted.
OFL_API std::vector<std::string> ListOps();

namespace internal {
// Takes back an op that nobody has called yet: the rollback of a registration that failed halfway.
OFL_API void EraseOp(absl::string_view name);
// Called by OFL_REGISTER_OP: appends to the table.
OFL_API bool AppendOp(const char* name, void (*define)(OpDef&), const char* file, int line);
}  // namespace internal

}  // namespace oneflow_lite

#define OFL_REGISTER_OP(name, define)                             \
  static const bool OFL_CONCAT(ofl_op_registered_, __COUNTER__) = \
      ::oneflow_lite::internal::AppendOp(name, define, __FILE__, __LINE__)
