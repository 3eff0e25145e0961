// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/cublaslt.h"

#include <dlfcn.h>

#include <string>

#include "primitive/cuda/library.h"

namespace oneflow_lite::cuda {
namespace {

constexpr char kSoname[] = "libcublasLt.so.13";

struct Loaded {
  CublasLt functions = {};
  std::string problem;  // empty where all went well
};

Loaded* Load() {
  auto* loaded = new Loaded;
  const OpenedLibrary library = OpenLibrary(kSoname, {"nvidia/cu13/lib"});
  if (!library.handle) {
    loaded->problem = library.problem;
    return loaded;
  }
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(library.handle, name);
    if (!symbol) loaded->problem = std::string(kSoname) + " has no " + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  CublasLt& f = loaded->functions;
  find("cublasLtCreate", f.Create);
  find("cublasLtMatmul", f.Matmul);
  find("cublasLtMatmulDescCreate", f.MatmulDescCreate);
  find("cublasLtMatmulDescDestroy", f.MatmulDescDestroy);
  find("cublasLtMatmulDescSetAttribute", f.MatmulDescSetAttribute);
  find("cublasLtMatrixLayoutCreate", f.MatrixLayoutCreate);
  find("cublasLtMatrixLayoutDestroy", f.MatrixLayoutDestroy);
  find("cublasLtMatrixLayoutSetAttribute", f.MatrixLayoutSetAttribute);
  find("cublasLtMatmulPreferenceCreate", f.MatmulPreferenceCreate);
  find("cublasLtMatmulPreferenceDestroy", f.MatmulPreferenceDestroy);
  find("cublasLtMatmulPreferenceSetAttribute", f.MatmulPreferenceSetAttribute);
  find("cublasLtMatmulAlgoGetHeuristic", f.MatmulAlgoGetHeuristic);
  return loaded;
}

const char* NameOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "invalid value";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "not for this device";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "execution failed";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "internal error";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
    default:
      return "unknown error";
  }
}

}  // namespace

StatusOr<const CublasLt*> GetCublasLt() {
  static const Loaded* loaded = Load();
  if (!loaded->problem.empty()) {
    return Error(ErrorKind::kRuntime, "matmul on CUDA needs cuBLASLt (", kSoname,
                 "): install the CUDA Toolkit 13 (libcublas-13-0) or `pip install nvidia-cublas`; ",
                 loaded->problem);
  }
  return &loaded->functions;
}

Status LtStatus(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  const ErrorKind kind = status == CUBLAS_STATUS_ALLOC_FAILED    ? ErrorKind::kOutOfMemory
                         : status == CUBLAS_STATUS_NOT_SUPPORTED ? ErrorKind::kNotImplemented
                                                                 : ErrorKind::kRuntime;
  return Error(kind, "cuBLASLt: ", what, " failed: ", NameOf(status), " (",
               static_cast<int>(status), ")");
}

}  // namespace oneflow_lite::cuda
