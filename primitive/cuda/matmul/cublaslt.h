// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt, opened by name at first use: linking it would cost every program 0.4 s at start.
//
//   OFL_ASSIGN_OR_RETURN(const CublasLt* lt, GetCublasLt());
//   OFL_RETURN_IF_ERROR(LtStatus(lt->Matmul(...), "matmul"));
#pragma once

#include <cublasLt.h>

#include "oneflow_lite/core/status.h"

namespace oneflow_lite::cuda {

// The functions we call, under their names without the prefix.
struct CublasLt {
  decltype(&cublasLtCreate) Create;
  decltype(&cublasLtMatmul) Matmul;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) MatrixLayoutSetAttribute;
  decltype(&cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate;
  decltype(&cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic;
};

// Opens the library once; a RuntimeError says what to install where it is not found.
StatusOr<const CublasLt*> GetCublasLt();

// OK, or a RuntimeError that names `what` was tried.
Status LtStatus(cublasStatus_t status, const char* what);

}  // namespace oneflow_lite::cuda
