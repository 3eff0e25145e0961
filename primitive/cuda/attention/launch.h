// SPDX-License-Identifier: Apache-2.0
//
// The small kernels around attention's products: rows of scores where they are in memory, and what
// cuDNN's kernels want in another form. Launchers neither allocate nor synchronise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {
namespace cuda {

// Element types of a mask.
enum class MaskType : int { kNone, kBool, kFloat16, kBFloat16, kFloat32, kFloat64 };

// A mask against [batch, head, query, key]; a stride is 0 where it is broadcast.
struct AttentionMask {
  MaskType type = MaskType::kNone;
  const void* data = nullptr;
  int64_t strides[4] = {0, 0, 0, 0};
};

// Dense rows of scores: [batches, kv_heads, group, queries] of the whole, from a first batch and a
// first head of k and v on.
struct AttentionScores {
  int64_t batches = 0, kv_heads = 0, group = 1, queries = 0, keys = 0;
  int64_t first_batch = 0, first_kv_head = 0;
  int64_t heads = 0;  // of q, of the whole
  int causal = 0;     // as in primitive/attention.h
  double scale = 1;
  AttentionMask mask;
  double dropout = 0;
  const uint64_t* rng = nullptr;  // seed and offset, where dropout is not 0

  int64_t rows() const { return batches * kv_heads * group * queries; }
};

// dtype is float32 or float64. Products q k^T become weights, with dropout applied; lse of the
// whole gets the rows' entries.
cudaError_t LaunchAttentionWeights(DType dtype, const AttentionScores& s, void* scores, void* lse,
                                   cudaStream_t stream);
// Products q k^T become weights with dropout, products dout v^T the gradient of q k^T.
cudaError_t LaunchAttentionSlopes(DType dtype, const AttentionScores& s, const void* lse,
                                  void* scores, void* products, cudaStream_t stream);

// rng = seed and offset, each with its number of `shift` added where that is not null.
cudaError_t LaunchAttentionSeed(uint64_t seed, uint64_t offset, const uint64_t* shift,
                                uint64_t* rng, cudaStream_t stream);
// out[0 .. n) = queries, out[n .. 2 n) = keys.
cudaError_t LaunchAttentionLengths(int64_t n, int queries, int keys, int* out, cudaStream_t stream);

// The mask as numbers to add, of dtype float16 or bfloat16: [batches, heads, rows, row_stride],
// finite where it hides. alive[row] tells whether the row leaves a key, by the mask and causal;
// a row that leaves none is all 0, and so are those beyond the queries.
struct AttentionBias {
  int64_t batches = 1, heads = 1;  // of the mask itself
  int64_t queries = 0, keys = 0, rows = 0, row_stride = 0;
  int causal = 0;
  AttentionMask mask;
};
cudaError_t LaunchAttentionBias(DType dtype, const AttentionBias& b, void* bias, uint8_t* alive,
                                cudaStream_t stream);

// Where a row is not alive: out is 0 and lse minus infinity. out is [batch, heads, queries, dim] of
// 16-bit elements, with these distances.
struct AttentionDead {
  int64_t batch = 0, heads = 0, queries = 0, dim = 0;
  int64_t batch_stride = 0, head_stride = 0, token_stride = 0;
  int64_t mask_batches = 1, mask_heads = 1, mask_rows = 0;  // of alive
};
cudaError_t LaunchAttentionDead(const AttentionDead& d, const uint8_t* alive, void* out, float* lse,
                                cudaStream_t stream);
// to = from, but infinity where that is minus infinity: all weights of such a row become 0.
cudaError_t LaunchAttentionLse(int64_t n, const float* from, float* to, cudaStream_t stream);

}  // namespace cuda
}  // namespace oneflow_lite
