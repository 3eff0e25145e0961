// SPDX-License-Identifier: Apache-2.0
#include "functional/remap.h"

#include <algorithm>

#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

Dims ListOf(absl::Span<const int64_t> list) { return Dims(list.begin(), list.end()); }

// What goes round is what negative widths leave.
StatusOr<Tensor> CutForCircular(const Tensor& x, Dims* widths) {
  Tensor y = x;
  for (int d = 0; d < x.ndim(); ++d) {
    int64_t &before = (*widths)[2 * d], &after = (*widths)[2 * d + 1];
    if (before >= 0 && after >= 0) continue;
    const int64_t size = x.shape()[d], start = -std::min<int64_t>(0, before);
    const int64_t left = size - start + std::min<int64_t>(0, after);
    if (left < 0) {
      return Error(ErrorKind::kValue, "pad(): ", before, " and ", after, " cut more than dim ", d,
                   " of size ", size, " has");
    }
    OFL_ASSIGN_OR_RETURN(y, Narrow(y, d, start, left));
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  return y;
}

}  // namespace

StatusOr<Tensor> PadDims(const Tensor& x, absl::Span<const int64_t> widths, absl::string_view mode,
                         const Scalar& value) {
  static const OpExpr& op =
      OpBuilder("pad").Input("in").Output("out").Attr("widths").Attr("mode").Attr("value").Get();
  return Call(op, {x}, {ListOf(widths), std::string(mode), value});
}

StatusOr<Tensor> PadBackward(const Tensor& dy, absl::Span<const int64_t> widths,
                             absl::string_view mode) {
  static const OpExpr& op =
      OpBuilder("pad_backward").Input("dy").Output("dx").Attr("widths").Attr("mode").Get();
  return Call(op, {dy}, {ListOf(widths), std::string(mode)});
}

StatusOr<Tensor> Pad(const Tensor& x, absl::Span<const int64_t> pad, absl::string_view mode,
                     std::optional<Scalar> value) {
  if (!x.defined()) return NotDefined("pad", "input");
  if (pad.size() % 2 != 0 || pad.size() > 2 * static_cast<size_t>(x.ndim())) {
    return Error(ErrorKind::kValue, "pad(): ", ToString(pad), " are not at most ", x.ndim(),
                 " pairs");
  }
  Dims widths(2 * x.ndim(), 0);
  for (size_t i = 0; i < pad.size(); i += 2) {
    const size_t d = widths.size() - 2 - i;
    widths[d] = pad[i];
    widths[d + 1] = pad[i + 1];
  }
  Tensor from = x;
  if (mode == "circular") {
    OFL_ASSIGN_OR_RETURN(from, CutForCircular(x, &widths));
  }
  return PadDims(from, widths, mode, value.value_or(Scalar(0)));
}

StatusOr<Tensor> RollAlong(const Tensor& x, absl::Span<const int64_t> shifts,
                           absl::Span<const int64_t> dims) {
  static const OpExpr& op =
      OpBuilder("roll").Input("in").Output("out").Attr("shifts").Attr("dims").Get();
  return Call(op, {x}, {ListOf(shifts), ListOf(dims)});
}

OFL_REGISTER_FUNCTION(
    "pad(Tensor input, int[] pad, str mode='constant', Scalar? value=None) -> Tensor", Pad,
    kFunction,
    "Something put before and after: pad has a pair per dim, from the last one on; a negative\n"
    "width cuts. mode is \"constant\" for value (0 where absent), \"reflect\" for what lies "
    "behind\n"
    "the edge, mirrored at it, \"replicate\" for the edge itself, \"circular\" for the other end.");

}  // namespace oneflow_lite::functional
