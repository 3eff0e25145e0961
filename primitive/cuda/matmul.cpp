// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through cuBLASLt. It is column-major, so the row-major c = op(a) op(b) is
// computed as its transpose, with b as the left operand. What a problem needs (descriptors and the
// algorithm the library's heuristic prefers) is made once and kept.
#include "primitive/matmul.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "primitive/cuda/cublaslt.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

using cuda::CublasLt;
using cuda::LtStatus;

constexpr size_t kMaxWorkspace = 32 << 20;  // what NVIDIA recommends for Hopper; rarely all used
constexpr uint32_t kAligned = 16;           // bytes

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

// One cuBLASLt handle per device, made at first use, kept forever.
StatusOr<cublasLtHandle_t> HandleOf(const CublasLt& lt, int device) {
  static auto* mutex = new std::mutex;
  static auto* handles = new std::vector<cublasLtHandle_t>;
  std::lock_guard lock(*mutex);
  if (handles->size() <= static_cast<size_t>(device)) handles->resize(device + 1, nullptr);
  cublasLtHandle_t& handle = (*handles)[device];
  if (!handle) {
    DeviceGuard guard(device);
    OFL_RETURN_IF_ERROR(LtStatus(lt.Create(&handle), "initialisation"));
  }
  return handle;
}

// A problem ready to run; lives as long as the primitive's cache.
struct Plan {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace = 0;
};

class CudaMatmul final : public Matmul {
 public:
  explicit CudaMatmul(DType dtype) : dtype_(dtype) {}
  ~CudaMatmul() override {
    for (auto& [key, plan] : plans_) Destroy(plan);
  }

  size_t WorkspaceBytes(const Stream& stream, const MatmulShape& shape) const override {
    if (IsEmpty(shape)) return 0;
    // Launch reports what went wrong.
    const auto plan = FindPlan(stream.device().index, shape, kAligned, kMaxWorkspace);
    return plan.ok() ? (*plan)->workspace : 0;
  }

  Status Launch(Stream& stream, const MatmulShape& shape, const void* a, const void* b, void* c,
                void* workspace) const override {
    const int device = stream.device().index;
    if (IsEmpty(shape)) {
      const size_t bytes = static_cast<size_t>(shape.batch * shape.m * shape.n) * SizeOf(dtype_);
      if (bytes == 0) return OkStatus();
      return cuda::RunOn(stream, kName,
                         [&](cudaStream_t s) { return cudaMemsetAsync(c, 0, bytes, s); });
    }
    OFL_ASSIGN_OR_RETURN(const CublasLt* lt, cuda::GetCublasLt());
    OFL_ASSIGN_OR_RETURN(cublasLtHandle_t handle, HandleOf(*lt, device));
    OFL_ASSIGN_OR_RETURN(const Plan* plan, FindPlan(device, shape, kAligned, kMaxWorkspace));
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
                                reinterpret_cast<uintptr_t>(c);
    if (addresses % kAligned != 0) {
      // Another algorithm, within the workspace that WorkspaceBytes asked for.
      OFL_ASSIGN_OR_RETURN(
          plan, FindPlan(device, shape, static_cast<uint32_t>(SizeOf(dtype_)), plan->workspace));
    }
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    const bool wide = dtype_ == DType::kFloat64;
    const void* alpha = wide ? static_cast<const void*>(&one64) : &one;
    const void* beta = wide ? static_cast<const void*>(&zero64) : &zero;
    DeviceGuard guard(device);
    return LtStatus(
        lt->Matmul(handle, plan->desc, alpha, b, plan->left, a, plan->right, beta, c, plan->out, c,
                   plan->out, &plan->algorithm, workspace, plan->workspace, NativeStream(stream)),
        kName);
  }

 private:
  using Key = std::tuple<int, int64_t, int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t,
                         int64_t, int64_t, uint32_t>;

  static bool IsEmpty(const MatmulShape& s) {
    return s.batch <= 0 || s.m <= 0 || s.n <= 0 || s.k <= 0;
  }

  StatusOr<const Plan*> FindPlan(int device, const MatmulShape& s, uint32_t alignment,
                                 size_t max_workspace) const {
    const Key key{device,           s.batch,       s.m,   s.n,   s.k,
                  s.transpose_a,    s.transpose_b, s.lda, s.ldb, s.batch_stride_a,
                  s.batch_stride_b, alignment};
    std::lock_guard lock(mutex_);
    if (const auto it = plans_.find(key); it != plans_.end()) return &it->second;
    OFL_ASSIGN_OR_RETURN(const CublasLt* lt, cuda::GetCublasLt());
    OFL_ASSIGN_OR_RETURN(cublasLtHandle_t handle, HandleOf(*lt, device));
    DeviceGuard guard(device);
    Plan plan;
    if (Status status = MakePlan(*lt, handle, s, alignment, max_workspace, &plan); !status.ok()) {
      Destroy(plan);
      return status;
    }
    return &plans_.emplace(key, plan).first->second;
  }

  Status MakePlan(const CublasLt& lt, cublasLtHandle_t handle, const MatmulShape& s,
                  uint32_t alignment, size_t max_workspace, Plan* plan) const {
    const bool wide = dtype_ == DType::kFloat64;
    // COMPUTE_32F is float32 throughout: TF32 would have to be asked for.
    OFL_RETURN_IF_ERROR(
        LtStatus(lt.MatmulDescCreate(&plan->desc, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                     wide ? CUDA_R_64F : CUDA_R_32F),
                 "descriptor"));
    const cublasOperation_t left = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    OFL_RETURN_IF_ERROR(LtStatus(
        lt.MatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)),
        "descriptor"));
    OFL_RETURN_IF_ERROR(LtStatus(
        lt.MatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right)),
        "descriptor"));
    // A row-major r x c matrix is a column-major c x r one.
    OFL_RETURN_IF_ERROR(NewLayout(lt, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k, s.ldb,
                                  s.batch, s.batch_stride_b, &plan->left));
    OFL_RETURN_IF_ERROR(NewLayout(lt, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m, s.lda,
                                  s.batch, s.batch_stride_a, &plan->right));
    OFL_RETURN_IF_ERROR(NewLayout(lt, s.n, s.m, s.n, s.batch, s.m * s.n, &plan->out));
    return ChooseAlgorithm(lt, handle, alignment, max_workspace, plan);
  }

  Status NewLayout(const CublasLt& lt, int64_t rows, int64_t cols, int64_t ld, int64_t batch,
                   int64_t batch_stride, cublasLtMatrixLayout_t* layout) const {
    OFL_RETURN_IF_ERROR(
        LtStatus(lt.MatrixLayoutCreate(layout, DataType(dtype_), static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(cols), std::max(ld, rows)),
                 "layout"));
    if (batch == 1) return OkStatus();
    if (batch > INT32_MAX) return Error(ErrorKind::kNotImplemented, "matmul: batch ", batch);
    const int32_t count = static_cast<int32_t>(batch);
    OFL_RETURN_IF_ERROR(
        LtStatus(lt.MatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                             sizeof(count)),
                 "layout"));
    return LtStatus(
        lt.MatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                    &batch_stride, sizeof(batch_stride)),
        "layout");
  }

  Status ChooseAlgorithm(const CublasLt& lt, cublasLtHandle_t handle, uint32_t alignment,
                         size_t max_workspace, Plan* plan) const {
    cublasLtMatmulPreference_t preference = nullptr;
    OFL_RETURN_IF_ERROR(LtStatus(lt.MatmulPreferenceCreate(&preference), "preference"));
    cublasStatus_t status =
        lt.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                        &max_workspace, sizeof(max_workspace));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      if (status != CUBLAS_STATUS_SUCCESS) break;
      status =
          lt.MatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment));
    }
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = lt.MatmulAlgoGetHeuristic(handle, plan->desc, plan->left, plan->right, plan->out,
                                         plan->out, preference, 1, &best, &found);
    }
    lt.MatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    OFL_RETURN_IF_ERROR(LtStatus(status, "choice of an algorithm"));
    plan->algorithm = best.algo;
    plan->workspace = best.workspaceSize;
    return OkStatus();
  }

  static void Destroy(Plan& plan) {
    const auto lt = cuda::GetCublasLt();
    if (!lt.ok()) return;
    for (cublasLtMatrixLayout_t layout : {plan.left, plan.right, plan.out}) {
      if (layout) (*lt)->MatrixLayoutDestroy(layout);
    }
    if (plan.desc) (*lt)->MatmulDescDestroy(plan.desc);
  }

  DType dtype_;
  mutable std::mutex mutex_;
  mutable std::map<Key, Plan> plans_;  // addresses of elements stay valid
};

StatusOr<std::unique_ptr<Matmul>> NewMatmul(const Matmul::Spec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(Matmul::kName, DeviceType::kCUDA, spec.dtype);
  OFL_RETURN_IF_ERROR(cuda::GetCublasLt().status());
  return std::make_unique<CudaMatmul>(spec.dtype);
}

const bool registered = RegisterPrimitive<Matmul>(DeviceType::kCUDA, &NewMatmul);

}  // namespace
}  // namespace oneflow_lite
