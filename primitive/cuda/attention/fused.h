// SPDX-License-Identifier: Apache-2.0
//
// Attention by cuDNN's kernels: whether they serve a call, what they want besides (a mask as
// numbers, lengths, padding), and the launch.
#pragma once

#include "primitive/attention.h"
#include "primitive/copy.h"
#include "primitive/cuda/attention/cudnn.h"

namespace oneflow_lite::cuda {

class FusedAttention {
 public:
  // Where cuDNN cannot be used at all, the calls say why.
  static StatusOr<FusedAttention> Make(const Attention::Spec& spec);

  // NotImplementedError where cuDNN does not serve the call; another error ends it.
  StatusOr<size_t> WorkspaceBytes(const Stream& stream, const AttentionShape& shape,
                                  bool backward) const;
  Status Forward(Stream& stream, const AttentionShape& shape, const AttentionInputs& in, void* out,
                 void* lse, void* workspace) const;
  Status Backward(Stream& stream, const AttentionShape& shape, const AttentionInputs& in, void* dq,
                  void* dk, void* dv, void* workspace) const;

 private:
  struct Prepared;
  struct Buffers;

  Status CheckServes(const AttentionShape& shape, bool backward) const;
  StatusOr<Prepared> Prepare(const Stream& stream, const AttentionShape& shape,
                             bool backward) const;
  Status PrepareMask(Stream& stream, const AttentionShape& shape, const Prepared& p,
                     const AttentionInputs& in, const Buffers& b) const;
  Status CopyHeads(Stream& stream, const AttentionShape& s, int64_t heads, int64_t tokens,
                   int64_t dim, const AttentionShape::Strides& from_strides, const void* from,
                   const AttentionShape::Strides& to_strides, void* to) const;
  Status Pad(Stream& stream, const AttentionShape& s, int64_t heads, int64_t tokens, int64_t dim,
             const AttentionShape::Strides& from_strides, const void* from,
             const AttentionShape::Strides& to_strides, void* to, int64_t to_bytes) const;

  Attention::Spec spec_;
  std::unique_ptr<Copy> copy_, copy_float_;
};

}  // namespace oneflow_lite::cuda
