// SPDX-License-Identifier: Apache-2.0
//
// What a matrix product needs of cuBLASLt, made once for each shape: descriptors, and the
// algorithms that the library's heuristic proposes, best first by its own estimate.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/matmul/cublaslt.h"
#include "primitive/matmul.h"

namespace oneflow_lite::cuda {

struct MatmulAlgorithm {
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace = 0;
};

// The row-major c = op(a) op(b) as its transpose, since cuBLASLt is column-major: b is the left
// operand. Owns its descriptors; neither copied nor moved.
class MatmulPlan {
 public:
  static constexpr int kMostAlgorithms = 8;
  MatmulPlan() = default;
  ~MatmulPlan();
  MatmulPlan(const MatmulPlan&) = delete;

  // Held from the look at the algorithms to the launch: of those that are timed one stays, and the
  // descriptor has the bias' address while it is enqueued.
  std::mutex& mutex() { return mutex_; }

  // alignment: of all operands, in bytes. NotImplementedError where the library has no algorithm.
  Status Make(const CublasLt& lt, cublasLtHandle_t handle, DType dtype, const MatmulShape& shape,
              uint32_t alignment, size_t max_workspace);

  // Of the result: the compute type where the shape says `wide`.
  DType result_dtype() const { return shape_.wide ? ComputeType(dtype_) : dtype_; }
  // The most that any of the algorithms found needs; stays when one is chosen.
  size_t workspace() const { return workspace_; }
  const std::vector<MatmulAlgorithm>& algorithms() const { return algorithms_; }
  const MatmulAlgorithm& best() const { return algorithms_.front(); }
  // Whether there is nothing more to find out: one algorithm, or one that was chosen.
  bool settled() const { return algorithms_.size() == 1; }
  void Settle(size_t i) {
    algorithms_ = {algorithms_[i]};
    chosen_.store(true, std::memory_order_relaxed);
  }
  // Whether Settle has been called: a plan made anew might settle otherwise. Needs no lock.
  bool chosen() const { return chosen_.load(std::memory_order_relaxed); }

  // Enqueues the product; bias: of shape.add_bias, else null.
  Status Run(const CublasLt& lt, cublasLtHandle_t handle, const MatmulAlgorithm& algorithm,
             const void* a, const void* b, const void* bias, void* c, void* workspace,
             cudaStream_t stream) const;

 private:
  Status MakeLayout(const CublasLt& lt, DType dtype, int64_t rows, int64_t cols, int64_t ld,
                    int64_t batch_stride, cublasLtMatrixLayout_t* layout) const;
  Status FindAlgorithms(const CublasLt& lt, cublasLtHandle_t handle, uint32_t alignment,
                        size_t max_workspace);

  std::mutex mutex_;
  DType dtype_ = DType::kFloat32;
  MatmulShape shape_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, out_ = nullptr;
  std::vector<MatmulAlgorithm> algorithms_;
  std::atomic<bool> chosen_ = false;
  size_t workspace_ = 0;
};

}  // namespace oneflow_lite::cuda
