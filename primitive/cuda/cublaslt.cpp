// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace oneflow_lite::cuda {
namespace {

constexpr char kSoname[] = "libcublasLt.so.13";

// By name first, which also finds one that another library has loaded; then where the toolkit and
// the Python package nvidia-cublas put it, the latter beside our own package.
std::vector<std::string> Candidates() {
  std::vector<std::string> paths = {kSoname};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) {
      paths.push_back(std::string(home) + "/lib64/" + kSoname);
    }
  }
  paths.push_back(std::string("/usr/local/cuda/lib64/") + kSoname);
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&GetCublasLt), &self) && self.dli_fname) {
    std::string folder = self.dli_fname;
    for (int level = 0; level < 4; ++level) {
      const size_t slash = folder.rfind('/');
      if (slash == std::string::npos) break;
      folder.resize(slash);
      paths.push_back(folder + "/nvidia/cu13/lib/" + kSoname);
    }
  }
  return paths;
}

struct Loaded {
  CublasLt functions = {};
  std::string problem;  // empty where all went well
};

Loaded* Load() {
  auto* loaded = new Loaded;
  void* library = nullptr;
  for (const std::string& path : Candidates()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    if (loaded->problem.empty()) loaded->problem = dlerror();
  }
  if (!library) return loaded;
  loaded->problem.clear();
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(library, name);
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
