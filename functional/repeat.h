// SPDX-License-Identifier: Apache-2.0
//
// Elements repeated, turned round and moved round: copies.
//
//   OFL_ASSIGN_OR_RETURN(Tensor heads, functional::RepeatInterleave(kv, 4, 1));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// The tensor so many times along each dim; dims in front are new. ValueError for too few numbers or
// a negative one. In Tile missing numbers in front are 1.
OFL_API StatusOr<Tensor> Repeat(const Tensor& x, absl::Span<const int64_t> repeats);
OFL_API StatusOr<Tensor> Tile(const Tensor& x, absl::Span<const int64_t> dims);
// Each element so many times in a row, along a dim or of the flat tensor; with a 1-D tensor of
// integers, each as often as its number says (to read them waits for the device).
OFL_API StatusOr<Tensor> RepeatInterleave(const Tensor& x, int64_t repeats,
                                          std::optional<int64_t> dim = {});
OFL_API StatusOr<Tensor> RepeatInterleave(const Tensor& x, const Tensor& repeats,
                                          std::optional<int64_t> dim = {});
// The places of a 1-D tensor of integers, each as often as its number says.
OFL_API StatusOr<Tensor> RepeatedPlaces(const Tensor& repeats);

// The order of the elements along the dims turned round; along dim 1, along dim 0.
OFL_API StatusOr<Tensor> Flip(const Tensor& x, absl::Span<const int64_t> dims);
OFL_API StatusOr<Tensor> Fliplr(const Tensor& x);
OFL_API StatusOr<Tensor> Flipud(const Tensor& x);
// Turned by k right angles in the plane of two dims, from the first towards the second.
OFL_API StatusOr<Tensor> Rot90(const Tensor& x, int64_t k = 1,
                               absl::Span<const int64_t> dims = {0, 1});
// The elements moved along dims (or in the flat tensor), round from the end to the start.
OFL_API StatusOr<Tensor> Roll(const Tensor& x, absl::Span<const int64_t> shifts,
                              std::optional<Dims> dims = {});

}  // namespace oneflow_lite::functional
