// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/matmul/cublaslt.h"

#include <string>

#include "primitive/library.h"

namespace oneflow_lite::cuda {
namespace {

constexpr char kSoname[] = "libcublasLt.so.13";

struct Loaded {
  CublasLt functions = {};
  std::string problem;  // empty where all went well
};

Loaded* Load() {
  auto* loaded = new Loaded;
  Library library({kSoname});
  CublasLt& f = loaded->functions;
  library.Find("cublasLtCreate", f.Create);
  library.Find("cublasLtMatmul", f.Matmul);
  library.Find("cublasLtMatmulDescCreate", f.MatmulDescCreate);
  library.Find("cublasLtMatmulDescDestroy", f.MatmulDescDestroy);
  library.Find("cublasLtMatmulDescSetAttribute", f.MatmulDescSetAttribute);
  library.Find("cublasLtMatrixLayoutCreate", f.MatrixLayoutCreate);
  library.Find("cublasLtMatrixLayoutDestroy", f.MatrixLayoutDestroy);
  library.Find("cublasLtMatrixLayoutSetAttribute", f.MatrixLayoutSetAttribute);
  library.Find("cublasLtMatmulPreferenceCreate", f.MatmulPreferenceCreate);
  library.Find("cublasLtMatmulPreferenceDestroy", f.MatmulPreferenceDestroy);
  library.Find("cublasLtMatmulPreferenceSetAttribute", f.MatmulPreferenceSetAttribute);
  library.Find("cublasLtMatmulAlgoGetHeuristic", f.MatmulAlgoGetHeuristic);
  loaded->problem = library.problem();
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
