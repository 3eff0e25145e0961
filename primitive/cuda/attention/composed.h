// SPDX-License-Identifier: Apache-2.0
//
// Attention as products of the matmul primitive around rows of scores, in float32 (float64 for
// float64): for any dtype, mask and shape, and the same bits each time. As many heads go at once as
// fit into kMostScores.
#pragma once

#include <memory>

#include "primitive/attention.h"
#include "primitive/copy.h"
#include "primitive/cuda/attention/launch.h"
#include "primitive/matmul.h"

namespace oneflow_lite::cuda {

// The element type of a mask, as the kernels are told.
MaskType MaskTypeOf(DType dtype);

class ComposedAttention {
 public:
  static StatusOr<ComposedAttention> Make(const Attention::Spec& spec);

  size_t WorkspaceBytes(const Stream& stream, const AttentionShape& shape, bool backward) const;
  Status Forward(Stream& stream, const AttentionShape& shape, const AttentionInputs& in, void* out,
                 void* lse, void* workspace) const;
  Status Backward(Stream& stream, const AttentionShape& shape, const AttentionInputs& in, void* dq,
                  void* dk, void* dv, void* workspace) const;

 private:
  static constexpr int64_t kMostScores = int64_t{256} << 20;  // bytes, of one head at least

  // The batches and the heads of k and v that go at once.
  struct Part {
    int64_t first_batch = 0, batches = 0, first_head = 0, heads = 0;
  };
  struct Buffers;

  int64_t wide_bytes() const { return static_cast<int64_t>(SizeOf(wide_)); }
  Part LargestPart(const AttentionShape& s, bool backward) const;
  template <class F>
  Status ForParts(const AttentionShape& s, bool backward, F f) const;
  Status Read(Stream& stream, const AttentionShape& s, const Part& part, int64_t members,
              const AttentionShape::Strides& strides, int64_t tokens, int64_t dim, const void* from,
              void* to) const;
  Status Write(Stream& stream, const AttentionShape& s, const Part& part, int64_t members,
               const AttentionShape::Strides& strides, int64_t tokens, int64_t dim,
               const void* from, void* to) const;
  AttentionScores ScoresOf(const AttentionShape& s, const Part& part,
                           const AttentionInputs& in) const;

  DType dtype_ = DType::kFloat32, wide_ = DType::kFloat32, mask_dtype_ = DType::kBool;
  std::unique_ptr<Matmul> matmul_;
  std::unique_ptr<Copy> widen_, narrow_;
};

}  // namespace oneflow_lite::cuda
