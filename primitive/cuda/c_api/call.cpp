// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/c_api/call.h"

#include <stdarg.h>
#include <stdio.h>

namespace {

thread_local char last_error[256];

}  // namespace

namespace oneflow_lite {
namespace cuda {

void Call::Fail(ofl_status status, const char* format, ...) {
  if (!ok()) return;
  status_ = status;
  const int at = snprintf(last_error, sizeof(last_error), "%s: ", function_);
  va_list args;
  va_start(args, format);
  vsnprintf(last_error + at, sizeof(last_error) - at, format, args);
  va_end(args);
}

void Call::FailOfDtype(ofl_dtype dtype) {
  if (dtype == OFL_BOOL) {
    Fail(OFL_UNSERVED, "dtype is bool, of which there are only masks");
  } else {
    Fail(OFL_UNKNOWN_DTYPE, "dtype is %d; it is one of OFL_FLOAT16 to OFL_FLOAT64 (1 to 4)",
         static_cast<int>(dtype));
  }
}

void Call::FailOfCuda(cudaError_t error) {
  cudaGetLastError();  // reported here, not to the next who asks
  Fail(OFL_CUDA_ERROR + static_cast<ofl_status>(error), "%s", cudaGetErrorString(error));
}

namespace {

// Elements of a tensor of which every byte's distance from the first can be counted.
constexpr int64_t kMostElements = int64_t{1} << 59;

bool Fits(int64_t rows, int64_t cols) { return cols == 0 || rows <= kMostElements / cols; }

}  // namespace

void Call::Matrix(int64_t rows, int64_t cols) {
  if (rows >= 0 && cols >= 0 && Fits(rows, cols)) return;
  Fail(OFL_INVALID_SIZE, "%lld rows of %lld columns; neither is negative, their product below 2^59",
       static_cast<long long>(rows), static_cast<long long>(cols));
}

int64_t Call::Stride(const char* name, int64_t stride, int64_t rows, int64_t cols) {
  if (stride == 0) return cols;
  if (stride < cols || (ok() && !Fits(rows, stride))) {
    Fail(OFL_INVALID_SIZE, "%s is %lld; it is 0 or not below the %lld columns, times rows < 2^59",
         name, static_cast<long long>(stride), static_cast<long long>(cols));
  }
  return stride;
}

void Call::CheckWorkspace(const void* workspace, size_t bytes, size_t needed) {
  if (needed == 0) return;
  if (!workspace || bytes < needed) {
    Fail(OFL_WORKSPACE, "%zu bytes of workspace are needed, %zu were given", needed,
         workspace ? bytes : 0);
  } else if (reinterpret_cast<uintptr_t>(workspace) % 16 != 0) {
    Fail(OFL_MISALIGNED, "workspace is not aligned to 16 bytes");
  }
}

}  // namespace cuda
}  // namespace oneflow_lite

int ofl_rows_version(void) { return OFL_ROWS_VERSION; }

const char* ofl_rows_last_error(void) { return last_error; }

const char* ofl_rows_error_string(ofl_status status) {
  switch (status) {
    case OFL_OK:
      return "no error";
    case OFL_NULL_POINTER:
      return "a pointer that is needed is null";
    case OFL_INVALID_SIZE:
      return "a size or stride is negative, too small, or too large";
    case OFL_UNKNOWN_DTYPE:
      return "unknown dtype";
    case OFL_UNSERVED:
      return "no kernel takes these dtypes or arguments together";
    case OFL_MISALIGNED:
      return "a pointer is not aligned";
    case OFL_INVALID_VALUE:
      return "a number lies outside its range";
    case OFL_WORKSPACE:
      return "the workspace is missing or too small";
    default:
      return status > OFL_CUDA_ERROR
                 ? cudaGetErrorString(static_cast<cudaError_t>(status - OFL_CUDA_ERROR))
                 : "unknown status";
  }
}
