// SPDX-License-Identifier: Apache-2.0
//
// What meets in one place along a dim, joined there: sums, products, means, extremes.
//
//   OFL_ASSIGN_OR_RETURN(Tensor top, functional::ScatterReduce(x, 0, groups, scores, "amax"));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// x with all elements of src that meet in a place along dim, joined by "sum", "prod", "mean" (of
// integers rounded down), "amax" or "amin"; index and src as in Scatter. include_self: x's element
// is one of those joined; where nothing goes it stays in any case. Winners of equal size share the
// gradient of an extreme.
OFL_API StatusOr<Tensor> ScatterReduce(const Tensor& x, int64_t dim, const Tensor& index,
                                       const Tensor& src, absl::string_view reduce,
                                       bool include_self = true);
// The same of whole slices, for a 1-D index: "prod", "mean", "amax" or "amin".
OFL_API StatusOr<Tensor> IndexReduce(const Tensor& x, int64_t dim, const Tensor& index,
                                     const Tensor& source, absl::string_view reduce,
                                     bool include_self = true);
// Both in place.
OFL_API StatusOr<Tensor> ScatterReduceInto(const Tensor& self, int64_t dim, const Tensor& index,
                                           const Tensor& src, absl::string_view reduce,
                                           bool include_self = true);
OFL_API StatusOr<Tensor> IndexReduceInto(const Tensor& self, int64_t dim, const Tensor& index,
                                         const Tensor& source, absl::string_view reduce,
                                         bool include_self = true);

}  // namespace oneflow_lite::functional
