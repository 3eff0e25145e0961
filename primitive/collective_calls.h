// SPDX-License-Identifier: Apache-2.0
//
// What the files of the collectives share: what this process is doing, for others who ask, and the
// communicators there are.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "primitive/collective.h"

namespace oneflow_lite {

// One call, from its construction to its destruction.
class CurrentCall {
 public:
  struct Named {
    const char* op;
    int64_t number;
    absl::Span<const int> members;
    int peer = -1;  // of a message
  };
  explicit CurrentCall(const Named& call);
  ~CurrentCall();
  CurrentCall(const CurrentCall&) = delete;
  CurrentCall& operator=(const CurrentCall&) = delete;
  // "is in all_reduce number 17 of ranks [0, 1]", or what was the last.
  static std::string Describe();
};

// Whether OFL_CHECK_COLLECTIVES asks for agreement before each call.
bool ChecksCollectives();

// What an engine gives; a library's exception becomes an error.
template <class F>
Status WithoutExceptions(F&& engine) {
  try {
    return engine();
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::kOutOfMemory, "there is no memory left for the parts of others");
  } catch (const std::exception& e) {
    return Error(ErrorKind::kRuntime, e.what());
  }
}

// out = in on the stream's device, where they differ.
Status CopyDense(Stream& stream, const void* in, void* out, int64_t count, DType dtype);

}  // namespace oneflow_lite
