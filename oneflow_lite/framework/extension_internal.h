// SPDX-License-Identifier: Apache-2.0
//
// Between the files of the extension table: errors, handles and values as they cross it.
#pragma once

#include <string>
#include <vector>

#include "oneflow_lite/extension/c_api.h"
#include "oneflow_lite/framework/extension.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::extension_table {

// Remembers the message for this thread; gives the code, or OFL_RUNTIME_ERROR for OFL_OK.
int32_t SetError(int32_t code, const char* message);
const char* LastError();
// A Status as a code, its message remembered.
int32_t CodeOf(const Status& s);
// A callback's code as a Status that names the op.
Status ToStatus(int32_t code, const std::string& op);

inline ofl_tensor Handle(const Tensor& t) { return reinterpret_cast<ofl_tensor>(t.impl()); }
inline TensorImpl* Impl(ofl_tensor t) { return reinterpret_cast<TensorImpl*>(t); }
inline Tensor Borrow(ofl_tensor t) { return Tensor(Ref<TensorImpl>(Impl(t))); }

// A context crosses as its address.
template <class T, class H>
T& As(H handle) {
  return *reinterpret_cast<T*>(handle);
}

// What an infer or cost callback works on.
struct InferCall {
  InferContext& context;
  uint64_t set = 0;  // bit i: output i was set
};

// What an sbp callback works on.
struct SbpCall {
  const SbpContext& context;
  size_t outputs;
  SbpSignatures* signatures;
};

// Ops and kernels of a library that is being loaded wait here, so that all or none register.
struct Staged {
  std::vector<OpDef> ops;
  std::vector<KernelDef> kernels;
};
Staged*& CurrentStage();  // of this thread; null outside of loading

// Definitions that crossed the table, checked. ValueError where they make no sense.
StatusOr<OpDef> ToOpDef(const ofl_op& c);
StatusOr<KernelDef> ToKernelDef(const ofl_kernel& c);
// The ints of a value of type OFL_VALUE_INTS.
StatusOr<Dims> ToInts(const ofl_value& v);

// Entries of the table.
int32_t GetAttr(const Attrs& attrs, int32_t i, ofl_value* value);
int32_t CallFunction(const char* name, const ofl_value* args, int32_t num_args, ofl_value* result);

}  // namespace oneflow_lite::extension_table
