// SPDX-License-Identifier: Apache-2.0
//
// A block per row of scores; a thread looks at the same keys in each pass over the row, so that no
// barrier is needed between the passes but those of the reductions.
#include "oneflow_lite/core/philox.h"
#include "primitive/cuda/attention/launch.h"
#include "primitive/cuda/chip/convert.cuh"
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// How many keys, from the first one, query i sees.
__device__ __forceinline__ int64_t Visible(int causal, int64_t i, int64_t queries, int64_t keys) {
  if (causal == 0) return keys;
  const int64_t seen = i + 1 + (causal == 1 ? 0 : keys - queries);
  return seen < 0 ? 0 : seen < keys ? seen : keys;
}

// What the mask adds: minus infinity where one of bool is false.
template <class C>
__device__ __forceinline__ C MaskAt(const AttentionMask& mask, int64_t at) {
  switch (mask.type) {
    case MaskType::kBool:
      return static_cast<const bool*>(mask.data)[at] ? C(0) : -static_cast<C>(INFINITY);
    case MaskType::kFloat16:
      return ConvertTo<C>(static_cast<const __half*>(mask.data)[at]);
    case MaskType::kBFloat16:
      return ConvertTo<C>(static_cast<const __nv_bfloat16*>(mask.data)[at]);
    case MaskType::kFloat32:
      return ConvertTo<C>(static_cast<const float*>(mask.data)[at]);
    case MaskType::kFloat64:
      return ConvertTo<C>(static_cast<const double*>(mask.data)[at]);
    default:
      return C(0);
  }
}

// A score with the mask's element; a bool one hides even a NaN.
template <class C>
__device__ __forceinline__ C Masked(const AttentionMask& mask, int64_t at, C score) {
  if (mask.type == MaskType::kNone) return score;
  const C added = MaskAt<C>(mask, at);
  return mask.type == MaskType::kBool && added != C(0) ? added : score + added;
}

// A row of the scores by its number, and where it is in the whole.
struct Row {
  int64_t query, batch, head, whole;

  __device__ __forceinline__ Row(const AttentionScores& s, int64_t row) {
    query = row % s.queries;
    row /= s.queries;
    const int64_t member = row % s.group;
    row /= s.group;
    batch = s.first_batch + row / s.kv_heads;
    head = (s.first_kv_head + row % s.kv_heads) * s.group + member;
    whole = (batch * s.heads + head) * s.queries + query;
  }
  __device__ __forceinline__ int64_t MaskOffset(const AttentionMask& mask) const {
    return batch * mask.strides[0] + head * mask.strides[1] + query * mask.strides[2];
  }
};

// What a weight is multiplied by: 0 where it is dropped.
template <class C>
__device__ __forceinline__ C Factor(const AttentionScores& s, int64_t row, int64_t key) {
  if (s.dropout == 0) return C(1);
  const uint64_t element = static_cast<uint64_t>(row) * static_cast<uint64_t>(s.keys) + key;
  const PhiloxResult r = Philox(s.rng[0], s.rng[1] + element / 4);
  const int word = static_cast<int>(element % 4);
  const uint32_t low = word & 1 ? r.v[1] : r.v[0], high = word & 1 ? r.v[3] : r.v[2];
  const bool kept = UniformFloat(word & 2 ? high : low) >= static_cast<float>(s.dropout);
  return kept ? static_cast<C>(1 / (1 - s.dropout)) : C(0);
}

template <class C>
__global__ void __launch_bounds__(kThreads)
    WeightsKernel(AttentionScores s, int64_t rows, C* scores, C* lse) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const C lowest = -static_cast<C>(INFINITY);
  for (int64_t number = blockIdx.x; number < rows; number += gridDim.x) {
    const Row row(s, number);
    const int64_t visible = Visible(s.causal, row.query, s.queries, s.keys);
    const int64_t mask = row.MaskOffset(s.mask);
    C* e = scores + number * s.keys;
    C largest = lowest;
    for (int64_t j = threadIdx.x; j < visible; j += kThreads) {
      const C v = Masked(s.mask, mask + j * s.mask.strides[3], e[j] * static_cast<C>(s.scale));
      e[j] = v;
      largest = Larger{}(largest, v);
    }
    largest = block.Reduce(largest, Larger{}, lowest);
    const C base = largest == lowest ? C(0) : largest;
    C sum = 0;
    for (int64_t j = threadIdx.x; j < visible; j += kThreads) {
      const C p = exp(e[j] - base);
      e[j] = p;
      sum += p;
    }
    sum = block.Reduce(sum, Plus{}, C(0));
    const C inverse = sum == C(0) ? C(0) : C(1) / sum;
    for (int64_t j = threadIdx.x; j < s.keys; j += kThreads) {
      e[j] = j < visible ? e[j] * inverse * Factor<C>(s, row.whole, j) : C(0);
    }
    if (threadIdx.x == 0) lse[row.whole] = sum == C(0) ? lowest : base + log(sum);
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads)
    SlopesKernel(AttentionScores s, int64_t rows, const C* lse, C* scores, C* products) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const C lowest = -static_cast<C>(INFINITY);
  for (int64_t number = blockIdx.x; number < rows; number += gridDim.x) {
    const Row row(s, number);
    const int64_t visible = Visible(s.causal, row.query, s.queries, s.keys);
    const int64_t mask = row.MaskOffset(s.mask);
    C *e = scores + number * s.keys, *g = products + number * s.keys;
    C largest = lowest;
    for (int64_t j = threadIdx.x; j < visible; j += kThreads) {
      const C v = Masked(s.mask, mask + j * s.mask.strides[3], e[j] * static_cast<C>(s.scale));
      e[j] = v;
      largest = Larger{}(largest, v);
    }
    // A large one has lost the digits that tell near scores apart: it is worked out again, as the
    // sum of two numbers.
    const C given = lse[row.whole], large = sizeof(C) == 4 ? C(32) : C(8192);
    C base = given, rest = 0;
    if (fabs(given) > large && fabs(given) < C(INFINITY)) {
      base = block.Reduce(largest, Larger{}, lowest);
      for (int64_t j = threadIdx.x; j < visible; j += kThreads) rest += exp(e[j] - base);
      rest = log(block.Reduce(rest, Plus{}, C(0)));
    }
    C delta = 0;
    for (int64_t j = threadIdx.x; j < visible; j += kThreads) {
      const C p = given == lowest ? C(0) : exp(e[j] - base - rest);
      const C slope = g[j] * Factor<C>(s, row.whole, j);
      e[j] = p;
      g[j] = slope;
      delta += p * slope;
    }
    delta = block.Reduce(delta, Plus{}, C(0));
    for (int64_t j = threadIdx.x; j < s.keys; j += kThreads) {
      const bool seen = j < visible;
      g[j] = seen ? e[j] * (g[j] - delta) * static_cast<C>(s.scale) : C(0);
      e[j] = seen ? e[j] * Factor<C>(s, row.whole, j) : C(0);
    }
  }
}

__global__ void SeedKernel(uint64_t seed, uint64_t offset, const uint64_t* shift, uint64_t* rng) {
  rng[0] = seed + (shift ? shift[0] : 0);
  rng[1] = offset + (shift ? shift[1] : 0);
}

__global__ void LengthsKernel(int64_t n, int queries, int keys, int* out) {
  for (int64_t i = threadIdx.x + int64_t{blockIdx.x} * blockDim.x; i < 2 * n;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = i < n ? queries : keys;
  }
}

// Far below any score, and finite after a product with log2(e).
template <class T>
__device__ __forceinline__ float LowestBias() {
  return std::is_same_v<T, __half> ? -65504.0f / 2 : -1e38f;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    BiasKernel(AttentionBias b, int64_t rows, T* bias, uint8_t* alive) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t query = row % b.rows, head = row / b.rows % b.heads;
    const int64_t batch = row / b.rows / b.heads;
    const int64_t at =
        batch * b.mask.strides[0] + head * b.mask.strides[1] + query * b.mask.strides[2];
    const int64_t visible =
        query < b.queries ? Visible(b.causal, query, b.queries, b.keys) : int64_t{0};
    int left = 0;
    for (int64_t j = threadIdx.x; j < visible; j += kThreads) {
      // Not "above": a NaN is left as well.
      left |= !(MaskAt<float>(b.mask, at + j * b.mask.strides[3]) == -INFINITY);
    }
    left = block.Reduce(left, Plus{}, 0);
    T* to = bias + row * b.row_stride;
    for (int64_t j = threadIdx.x; j < b.row_stride; j += kThreads) {
      float v = left && j < b.keys ? MaskAt<float>(b.mask, at + j * b.mask.strides[3]) : 0.0f;
      if (v < LowestBias<T>()) v = LowestBias<T>();
      to[j] = ConvertTo<T>(v);
    }
    if (threadIdx.x == 0) alive[row] = left != 0;
  }
}

// A warp per row.
__global__ void __launch_bounds__(kThreads)
    DeadKernel(AttentionDead d, int64_t rows, const uint8_t* alive, uint16_t* out, float* lse) {
  const int lane = threadIdx.x % kWarp;
  for (int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; row < rows;
       row += int64_t{gridDim.x} * kWarps) {
    const int64_t query = row % d.queries, head = row / d.queries % d.heads;
    const int64_t batch = row / d.queries / d.heads;
    const int64_t mask_batch = d.mask_batches == 1 ? 0 : batch;
    const int64_t mask_head = d.mask_heads == 1 ? 0 : head;
    if (alive[(mask_batch * d.mask_heads + mask_head) * d.mask_rows + query]) continue;
    uint16_t* y = out + batch * d.batch_stride + head * d.head_stride + query * d.token_stride;
    for (int64_t i = lane; i < d.dim; i += kWarp) y[i] = 0;
    if (lane == 0) lse[row] = -INFINITY;
  }
}

__global__ void LseKernel(int64_t n, const float* from, float* to) {
  for (int64_t i = threadIdx.x + int64_t{blockIdx.x} * blockDim.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    to[i] = from[i] == -INFINITY ? INFINITY : from[i];
  }
}

int64_t BlocksFor(int64_t n) { return (n + kThreads - 1) / kThreads; }

}  // namespace

cudaError_t LaunchAttentionWeights(DType dtype, const AttentionScores& s, void* scores, void* lse,
                                   cudaStream_t stream) {
  const int64_t rows = s.rows();
  if (rows == 0) return cudaSuccess;
  if (dtype == DType::kFloat64) {
    return Launch(WeightsKernel<double>, rows, kThreads, 0, stream, s, rows,
                  static_cast<double*>(scores), static_cast<double*>(lse));
  }
  return Launch(WeightsKernel<float>, rows, kThreads, 0, stream, s, rows,
                static_cast<float*>(scores), static_cast<float*>(lse));
}

cudaError_t LaunchAttentionSlopes(DType dtype, const AttentionScores& s, const void* lse,
                                  void* scores, void* products, cudaStream_t stream) {
  const int64_t rows = s.rows();
  if (rows == 0) return cudaSuccess;
  if (dtype == DType::kFloat64) {
    return Launch(SlopesKernel<double>, rows, kThreads, 0, stream, s, rows,
                  static_cast<const double*>(lse), static_cast<double*>(scores),
                  static_cast<double*>(products));
  }
  return Launch(SlopesKernel<float>, rows, kThreads, 0, stream, s, rows,
                static_cast<const float*>(lse), static_cast<float*>(scores),
                static_cast<float*>(products));
}

cudaError_t LaunchAttentionSeed(uint64_t seed, uint64_t offset, const uint64_t* shift,
                                uint64_t* rng, cudaStream_t stream) {
  return Launch(SeedKernel, 1, 1, 0, stream, seed, offset, shift, rng);
}

cudaError_t LaunchAttentionLengths(int64_t n, int queries, int keys, int* out,
                                   cudaStream_t stream) {
  return Launch(LengthsKernel, BlocksFor(2 * n), kThreads, 0, stream, n, queries, keys, out);
}

cudaError_t LaunchAttentionBias(DType dtype, const AttentionBias& b, void* bias, uint8_t* alive,
                                cudaStream_t stream) {
  const int64_t rows = b.batches * b.heads * b.rows;
  if (rows == 0) return cudaSuccess;
  if (dtype == DType::kFloat16) {
    return Launch(BiasKernel<__half>, rows, kThreads, 0, stream, b, rows,
                  static_cast<__half*>(bias), alive);
  }
  return Launch(BiasKernel<__nv_bfloat16>, rows, kThreads, 0, stream, b, rows,
                static_cast<__nv_bfloat16*>(bias), alive);
}

cudaError_t LaunchAttentionDead(const AttentionDead& d, const uint8_t* alive, void* out, float* lse,
                                cudaStream_t stream) {
  const int64_t rows = d.batch * d.heads * d.queries;
  if (rows == 0) return cudaSuccess;
  return Launch(DeadKernel, (rows + kWarps - 1) / kWarps, kThreads, 0, stream, d, rows, alive,
                static_cast<uint16_t*>(out), lse);
}

cudaError_t LaunchAttentionLse(int64_t n, const float* from, float* to, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  return Launch(LseKernel, BlocksFor(n), kThreads, 0, stream, n, from, to);
}

}  // namespace cuda
}  // namespace oneflow_lite
