// SPDX-License-Identifier: Apache-2.0
//
// Padding; repeat.h has flip and roll, triangle.h has tril and triu, which are such moves too.
//
//   OFL_ASSIGN_OR_RETURN(Tensor wide, functional::Pad(image, {1, 1, 1, 1}, "reflect"));
#pragma once

#include <optional>

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// `pad` has a pair per dim, from the last one on: how much is put before and after it; a negative
// width cuts. mode: "constant" for value (0 where absent), "reflect" for what lies behind the edge,
// mirrored at it, "replicate" for the edge itself, "circular" for the other end. ValueError for
// another mode, for what are not pairs, for more than there is to cut, to mirror or to go round.
OFL_API StatusOr<Tensor> Pad(const Tensor& x, absl::Span<const int64_t> pad,
                             absl::string_view mode = "constant", std::optional<Scalar> value = {});
// The same with a pair for each dim, from the first one on.
OFL_API StatusOr<Tensor> PadDims(const Tensor& x, absl::Span<const int64_t> widths,
                                 absl::string_view mode, const Scalar& value);
// The gradient of PadDims with another mode than "constant".
OFL_API StatusOr<Tensor> PadBackward(const Tensor& dy, absl::Span<const int64_t> widths,
                                     absl::string_view mode);
// Roll (repeat.h) along dims >= 0, one for each shift.
OFL_API StatusOr<Tensor> RollAlong(const Tensor& x, absl::Span<const int64_t> shifts,
                                   absl::Span<const int64_t> dims);

}  // namespace oneflow_lite::functional
