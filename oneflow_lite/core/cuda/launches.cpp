// SPDX-License-Identifier: Apache-2.0
//
// Tells of launches (core/launches.h). cmake/cuda.cmake has the linker lead what this library calls
// of the runtime through the functions here (--wrap), so that no launcher has to know.
#include "oneflow_lite/core/launches.h"

#include <cuda_runtime_api.h>

#include <cstdlib>

#if __has_include(<nvtx3/nvToolsExt.h>)  // a part of the toolkit that may be left out
#include <nvtx3/nvToolsExt.h>
#endif

namespace oneflow_lite {
namespace {

const char* NameOfKernel(const void* kernel) {
#if CUDART_VERSION >= 12030
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) == cudaSuccess && name) return name;
  cudaGetLastError();
#endif
  return "kernel";
}

#ifdef NVTX_VERSION
// A profiler that watches from outside names a library in this variable, which NVTX's header opens.
const bool watched = [] {
  if (!std::getenv("NVTX_INJECTION64_PATH")) return false;
  SetRangeMarker({[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }});
  return true;
}();
#endif

}  // namespace
}  // namespace oneflow_lite

using oneflow_lite::LaunchScope;
using oneflow_lite::NameOfKernel;

// __real_f is the runtime's f, __wrap_f what a call of f comes to.
extern "C" {

cudaError_t __real_cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __wrap_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                                    size_t shared, cudaStream_t stream) {
  const LaunchScope launch(NameOfKernel, kernel);
  return __real_cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

#if CUDART_VERSION >= 13000  // what <<<>>> comes to
cudaError_t __real___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                      size_t shared, cudaStream_t stream) {
  const LaunchScope launch(NameOfKernel, kernel);
  return __real___cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
#endif

cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                       void** args) {
  const LaunchScope launch(NameOfKernel, kernel);
  return __real_cudaLaunchKernelExC(config, kernel, args);
}

cudaError_t __real_cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  const LaunchScope launch("copy");
  return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}

cudaError_t __real_cudaMemsetAsync(void*, int, size_t, cudaStream_t);
cudaError_t __wrap_cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  const LaunchScope launch("fill");
  return __real_cudaMemsetAsync(to, value, bytes, stream);
}

cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const LaunchScope launch("graph");
  return __real_cudaGraphLaunch(graph, stream);
}

}  // extern "C"
