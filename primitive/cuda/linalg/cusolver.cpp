// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/linalg/cusolver.h"

#include <string>

#include "primitive/library.h"

namespace oneflow_lite::cuda {
namespace {

struct Loaded {
  CuSolver functions = {};
  std::string problem;  // empty where all went well
};

// The names with the letter of the dtype in the place of '?'.
template <class T>
void FindAll(char letter, Library& solver, Library& blas, SolverFunctions<T>& f) {
  const auto find = [letter](Library& library, std::string name, auto& function) {
    name[name.find('?')] = letter;
    library.Find(name.c_str(), function);
  };
  find(solver, "cusolverDn?getrf_bufferSize", f.GetrfSize);
  find(solver, "cusolverDn?getrf", f.Getrf);
  find(solver, "cusolverDn?getrs", f.Getrs);
  find(solver, "cusolverDn?potrf_bufferSize", f.PotrfSize);
  find(solver, "cusolverDn?potrf", f.Potrf);
  find(solver, "cusolverDn?geqrf_bufferSize", f.GeqrfSize);
  find(solver, "cusolverDn?geqrf", f.Geqrf);
  find(solver, "cusolverDn?orgqr_bufferSize", f.OrgqrSize);
  find(solver, "cusolverDn?orgqr", f.Orgqr);
  find(solver, "cusolverDn?syevd_bufferSize", f.SyevdSize);
  find(solver, "cusolverDn?syevd", f.Syevd);
  find(solver, "cusolverDn?gesvd_bufferSize", f.GesvdSize);
  find(solver, "cusolverDn?gesvd", f.Gesvd);
  find(blas, "cublas?trsm_v2", f.Trsm);
  find(blas, "cublas?gemm_v2", f.Gemm);
}

Loaded* Load() {
  auto* loaded = new Loaded;
  // cuSOLVER needs cuBLAS, which comes first so that it is found wherever it lies.
  Library blas({"libcublas.so.13"}), solver({"libcusolver.so.12"});
  CuSolver& f = loaded->functions;
  solver.Find("cusolverDnCreate", f.Create);
  solver.Find("cusolverDnSetStream", f.SetStream);
  blas.Find("cublasCreate_v2", f.BlasCreate);
  blas.Find("cublasSetStream_v2", f.BlasSetStream);
  FindAll('S', solver, blas, f.single);
  FindAll('D', solver, blas, f.twice);
  loaded->problem = blas.problem().empty() ? solver.problem() : blas.problem();
  return loaded;
}

}  // namespace

StatusOr<const CuSolver*> GetCuSolver() {
  static const Loaded* loaded = Load();
  if (!loaded->problem.empty()) {
    return Error(
        ErrorKind::kRuntime,
        "linear algebra on CUDA needs cuSOLVER (libcusolver.so.12) and cuBLAS: install the "
        "CUDA Toolkit 13 (libcusolver-13-0) or `pip install nvidia-cusolver`; ",
        loaded->problem);
  }
  return &loaded->functions;
}

Status SolverStatus(cusolverStatus_t status, const char* what) {
  if (status == CUSOLVER_STATUS_SUCCESS) return OkStatus();
  const ErrorKind kind = status == CUSOLVER_STATUS_ALLOC_FAILED    ? ErrorKind::kOutOfMemory
                         : status == CUSOLVER_STATUS_NOT_SUPPORTED ? ErrorKind::kNotImplemented
                                                                   : ErrorKind::kRuntime;
  return Error(kind, "cuSOLVER: ", what, " failed with code ", static_cast<int>(status));
}

Status SolverStatus(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  const ErrorKind kind =
      status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime;
  return Error(kind, "cuBLAS: ", what, " failed with code ", static_cast<int>(status));
}

}  // namespace oneflow_lite::cuda
