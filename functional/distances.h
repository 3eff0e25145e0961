// SPDX-License-Identifier: Apache-2.0
//
// Distances of rows: between all pairs of two matrices, or of one.
//
//   OFL_ASSIGN_OR_RETURN(Tensor d, functional::Cdist(x1, x2));  // [m, n] of [m, d] and [n, d]
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// The p-norm of the distance between each two rows of x [n, m], i < j: n (n - 1) / 2 of them.
OFL_API StatusOr<Tensor> Pdist(const Tensor& x, double p = 2);
// The p-norms of the differences of all pairs of rows of x1 [..., m, d] and x2 [..., n, d]. Whether
// Euclidean ones of float32 and float64 come from a product of matrices, |a|^2 + |b|^2 - 2 a b,
// which loses the digits that rows near each other share, says compute_mode:
// "use_mm_for_euclid_dist_if_necessary" or "", where m or n is above 25; "use_mm_for_euclid_dist";
// "donot_use_mm_for_euclid_dist". ShapeError for rows of different lengths, ValueError for another
// mode and for p below 0.
OFL_API StatusOr<Tensor> Cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                               absl::string_view compute_mode = "");

}  // namespace oneflow_lite::functional
