// SPDX-License-Identifier: Apache-2.0
//
// Between local tensors and global ones; autograd follows.
//
//   OFL_ASSIGN_OR_RETURN(Tensor x, LocalToGlobal(shard, p, {Sbp::Split(0)}, {}));
//   OFL_ASSIGN_OR_RETURN(Tensor whole, Boxed(x, p, {Sbp::Broadcast()}, {}));
//   OFL_ASSIGN_OR_RETURN(Tensor mine, ToLocal(whole));
#pragma once

#include <optional>

#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {

// The tensor of which x is this process's shard: split along a dim (the parts as even as can be,
// the first ones larger), the whole, or a term of the sum. Shares x's memory. Every rank of the
// world calls it, those that are not of the placement too, with any tensor. ShapeError or
// DTypeError on all ranks where the shards do not go together. The gradient comes back by
// `grad_sbp`, by default as x went, a term of a sum gets the whole one.
OFL_API StatusOr<Tensor> LocalToGlobal(const Tensor& x, PlacementRef placement, NdSbp sbp,
                                       std::optional<NdSbp> grad_sbp = {});
// The same of shards of a whole whose shape is known; nobody is asked. ShapeError where x is not
// the shard of this rank. The gradient comes back as x went.
OFL_API StatusOr<Tensor> FromShard(const Tensor& x, const Shape& shape, PlacementRef placement,
                                   NdSbp sbp);
// A global tensor in another SBP or on another placement; all ranks of both call it. The gradient
// goes back as it comes, or moved to `grad_sbp`.
OFL_API StatusOr<Tensor> Boxed(const Tensor& x, PlacementRef placement, NdSbp sbp,
                               std::optional<NdSbp> grad_sbp = {});
// One of the two. x of a process outside the placement may be anything.
OFL_API StatusOr<Tensor> ToGlobal(const Tensor& x, PlacementRef placement, NdSbp sbp,
                                  std::optional<NdSbp> grad_sbp = {});
// This process's shard, whose memory it shares; of no elements where the process takes no part. The
// gradient is taken to be a shard by `grad_sbp`, by default as the tensor is; the whole gradient
// where that is a partial sum.
OFL_API StatusOr<Tensor> ToLocal(const Tensor& x, std::optional<NdSbp> grad_sbp = {});

}  // namespace oneflow_lite::functional
