// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/matmul/plan.h"

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/launches.h"

namespace oneflow_lite::cuda {
namespace {

cudaDataType DataType(DType t) {
  switch (t) {
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kFloat64:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

template <class T>
Status SetAttribute(const CublasLt& lt, cublasLtMatmulDesc_t desc,
                    cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return LtStatus(lt.MatmulDescSetAttribute(desc, attribute, &value, sizeof(value)), "descriptor");
}

}  // namespace

MatmulPlan::~MatmulPlan() {
  const auto lt = GetCublasLt();
  if (!lt.ok()) return;
  for (cublasLtMatrixLayout_t layout : {left_, right_, out_}) {
    if (layout) (*lt)->MatrixLayoutDestroy(layout);
  }
  if (desc_) (*lt)->MatmulDescDestroy(desc_);
}

Status MatmulPlan::Make(const CublasLt& lt, cublasLtHandle_t handle, DType dtype,
                        const MatmulShape& s, uint32_t alignment, size_t max_workspace) {
  dtype_ = dtype;
  shape_ = s;
  const bool wide = dtype == DType::kFloat64;
  // COMPUTE_32F is float32 throughout: TF32 would have to be asked for.
  OFL_RETURN_IF_ERROR(
      LtStatus(lt.MatmulDescCreate(&desc_, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                   wide ? CUDA_R_64F : CUDA_R_32F),
               "descriptor"));
  const cublasOperation_t left = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  OFL_RETURN_IF_ERROR(SetAttribute(lt, desc_, CUBLASLT_MATMUL_DESC_TRANSA, left));
  OFL_RETURN_IF_ERROR(SetAttribute(lt, desc_, CUBLASLT_MATMUL_DESC_TRANSB, right));
  if (s.add_bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    OFL_RETURN_IF_ERROR(SetAttribute(lt, desc_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  }
  // A row-major r x c matrix is a column-major c x r one.
  OFL_RETURN_IF_ERROR(MakeLayout(lt, dtype, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k,
                                 s.ldb, s.batch_stride_b, &left_));
  OFL_RETURN_IF_ERROR(MakeLayout(lt, dtype, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m,
                                 s.lda, s.batch_stride_a, &right_));
  OFL_RETURN_IF_ERROR(
      MakeLayout(lt, result_dtype(), s.n, s.m, s.c_stride(), s.m * s.c_stride(), &out_));
  return FindAlgorithms(lt, handle, alignment, max_workspace);
}

Status MatmulPlan::MakeLayout(const CublasLt& lt, DType dtype, int64_t rows, int64_t cols,
                              int64_t ld, int64_t batch_stride,
                              cublasLtMatrixLayout_t* layout) const {
  OFL_RETURN_IF_ERROR(
      LtStatus(lt.MatrixLayoutCreate(layout, DataType(dtype), static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(cols), std::max(ld, rows)),
               "layout"));
  if (shape_.batch == 1) return OkStatus();
  if (shape_.batch > INT32_MAX) {
    return Error(ErrorKind::kNotImplemented, "matmul: batch ", shape_.batch);
  }
  const int32_t count = static_cast<int32_t>(shape_.batch);
  OFL_RETURN_IF_ERROR(
      LtStatus(lt.MatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof(count)),
               "layout"));
  return LtStatus(lt.MatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                              &batch_stride, sizeof(batch_stride)),
                  "layout");
}

Status MatmulPlan::FindAlgorithms(const CublasLt& lt, cublasLtHandle_t handle, uint32_t alignment,
                                  size_t max_workspace) {
  cublasLtMatmulPreference_t preference = nullptr;
  OFL_RETURN_IF_ERROR(LtStatus(lt.MatmulPreferenceCreate(&preference), "preference"));
  cublasStatus_t status = lt.MatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &max_workspace, sizeof(max_workspace));
  // Where the inner dim is shared out, parts of a sum stay in the compute type: by default the
  // library may round them to the result's.
  const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &reduction, sizeof(reduction));
  }
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    if (status != CUBLAS_STATUS_SUCCESS) break;
    status = lt.MatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment));
  }
  cublasLtMatmulHeuristicResult_t results[kMostAlgorithms] = {};
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.MatmulAlgoGetHeuristic(handle, desc_, left_, right_, out_, out_, preference,
                                       kMostAlgorithms, results, &found);
  }
  lt.MatmulPreferenceDestroy(preference);
  for (int i = 0; i < found; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms_.push_back({results[i].algo, results[i].workspaceSize});
    workspace_ = std::max(workspace_, results[i].workspaceSize);
  }
  if (status == CUBLAS_STATUS_SUCCESS && algorithms_.empty()) status = CUBLAS_STATUS_NOT_SUPPORTED;
  return LtStatus(status, "choice of an algorithm");
}

Status MatmulPlan::Run(const CublasLt& lt, cublasLtHandle_t handle,
                       const MatmulAlgorithm& algorithm, const void* a, const void* b,
                       const void* bias, void* c, void* workspace, cudaStream_t stream) const {
  const float alpha = 1, beta = shape_.accumulate ? 1 : 0;
  const double alpha64 = 1, beta64 = shape_.accumulate ? 1 : 0;
  const bool wide = dtype_ == DType::kFloat64;
  if (bias) {
    OFL_RETURN_IF_ERROR(SetAttribute(lt, desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  }
  const LaunchScope launch("cublasLtMatmul");
  return LtStatus(
      lt.Matmul(handle, desc_, wide ? static_cast<const void*>(&alpha64) : &alpha, b, left_, a,
                right_, wide ? static_cast<const void*>(&beta64) : &beta, c, out_, c, out_,
                &algorithm.algorithm, workspace, algorithm.workspace, stream),
      "matmul");
}

}  // namespace oneflow_lite::cuda
