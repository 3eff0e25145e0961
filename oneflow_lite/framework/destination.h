// SPDX-License-Identifier: Apache-2.0
//
// Where a caller wants the result of a functor: an op that makes an output of the same shape, dtype
// and device writes it there, and no copy follows. The functor's result is then that tensor itself;
// where it is another one, the tensor may hold anything, and the caller copies.
//
//   internal::Destination there(out);
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Sin(x));
//   if (!y.IsSame(out)) OFL_RETURN_IF_ERROR(functional::CopyInto(out, y).status());
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::internal {

// For this thread, until it goes. Preconditions: `out` is contiguous and local, shares no memory
// with any argument of the functor, and nothing here is recorded. Nothing happens while modes are
// in place, or in kernels, which may be written in Python: what they make is theirs.
class OFL_API Destination {
 public:
  explicit Destination(const Tensor& out);
  ~Destination();
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

 private:
  const Tensor* before_;
};

// Whether a mode is in place on this thread (framework/dispatch.h).
bool AnyMode();

}  // namespace oneflow_lite::internal
