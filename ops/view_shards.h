// SPDX-License-Identifier: Apache-2.0
//
// How views whose dims become others run on shards, and the gradients of views that leave elements
// out.
#pragma once

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// view(in, shape): a dim that stays may be split; so may the first of dims that become others,
// where its parts are as long as those of the first that they become.
SbpSignatures ViewSignatures(const SbpContext& c);

// as_strided_backward(grad, base_shape, shape, strides, offset): a dim of which the view has all
// elements may be split.
SbpSignatures PutBackSignatures(const SbpContext& c);
// The geometry within a shard of the base.
Status PutBackInShard(PhysicalContext& c);

}  // namespace oneflow_lite
