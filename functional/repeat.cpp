// SPDX-License-Identifier: Apache-2.0
#include "functional/repeat.h"

#include <algorithm>

#include "functional/argument_names.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/everywhere.h"
#include "functional/host_value.h"
#include "functional/index.h"
#include "functional/remap.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

constexpr char kIntegers[] = "one of uint8, int8, int16, int32, int64";

// Dense memory of its own: an expanded view may pass for another shape without a copy.
StatusOr<Tensor> Copied(const Tensor& view) {
  return view.is_contiguous() ? Clone(view) : Contiguous(view);
}

Status CheckCounts(const Tensor& repeats) {
  if (!repeats.defined()) return NotDefined("repeat_interleave", "repeats");
  if (IsIntegral(repeats.dtype()) && repeats.dtype() != DType::kBool) return OkStatus();
  return UnsupportedDType("repeat_interleave", "repeats", repeats.dtype(), kIntegers);
}

Status CheckNotNegative(int64_t repeats) {
  if (repeats >= 0) return OkStatus();
  return Error(ErrorKind::kValue, "repeat_interleave(): repeats is ", repeats,
               ", but it must not be negative");
}

}  // namespace

StatusOr<Tensor> Repeat(const Tensor& x, absl::Span<const int64_t> repeats) {
  const int count = static_cast<int>(repeats.size()), extra = count - x.ndim();
  if (extra < 0) {
    return Error(ErrorKind::kValue, "repeat(): ", count, " sizes for a tensor of ", x.ndim(),
                 " dims");
  }
  Dims pairs, wide, joined;
  for (int d = 0; d < count; ++d) {
    const int64_t size = d < extra ? 1 : x.shape()[d - extra];
    if (repeats[d] < 0) {
      return Error(ErrorKind::kValue, "repeat(): sizes are ", ToString(repeats),
                   ", but they must not be negative");
    }
    pairs.insert(pairs.end(), {1, size});
    wide.insert(wide.end(), {repeats[d], size});
    joined.push_back(0);
    if (__builtin_mul_overflow(repeats[d], size, &joined.back())) joined.back() = INT64_MAX;
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, Reshape(x, pairs));
  OFL_ASSIGN_OR_RETURN(y, Expand(y, wide));
  OFL_ASSIGN_OR_RETURN(y, Copied(y));
  return Reshape(y, joined);
}

StatusOr<Tensor> Tile(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims times(dims.begin(), dims.end());
  if (static_cast<int>(times.size()) < x.ndim()) {
    times.insert(times.begin(), x.ndim() - times.size(), 1);
  }
  StatusOr<Tensor> y = Repeat(x, times);
  return y.ok() ? y : WithArgument(Renamed("tile", y.status()), "sizes", "dims");
}

StatusOr<Tensor> RepeatInterleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  OFL_RETURN_IF_ERROR(CheckNotNegative(repeats));
  OFL_ASSIGN_OR_RETURN(Tensor from, dim && x.ndim() > 0 ? StatusOr<Tensor>(x) : Reshape(x, {-1}));
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("repeat_interleave", dim.value_or(0), from));
  Dims wide = from.shape().dims(), joined = wide;
  wide.insert(wide.begin() + axis + 1, repeats);
  if (__builtin_mul_overflow(joined[axis], repeats, &joined[axis])) joined[axis] = INT64_MAX;
  OFL_ASSIGN_OR_RETURN(Tensor y, Unsqueeze(from, axis + 1));
  OFL_ASSIGN_OR_RETURN(y, Expand(y, wide));
  OFL_ASSIGN_OR_RETURN(y, Copied(y));
  return Reshape(y, joined);
}

StatusOr<Tensor> RepeatedPlaces(const Tensor& repeats) {
  constexpr char kName[] = "repeat_interleave";
  OFL_RETURN_IF_ERROR(CheckCounts(repeats));
  if (repeats.ndim() != 1) return ShapeMismatch(kName, "repeats", repeats.shape(), "1 dim");
  OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(repeats, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(const Tensor counts, ReadBack(kName, wide));
  const int64_t n = counts.numel();
  const int64_t* count = static_cast<const int64_t*>(counts.data());
  int64_t total = 0;
  if (n > 0) OFL_RETURN_IF_ERROR(CheckNotNegative(*std::min_element(count, count + n)));
  for (int64_t i = 0; i < n; ++i) {
    if (__builtin_add_overflow(total, count[i], &total)) total = INT64_MAX;
  }
  OFL_ASSIGN_OR_RETURN(const Tensor places, Tensor::Empty(Shape{total}, DType::kInt64, Device{}));
  int64_t* place = static_cast<int64_t*>(places.data());
  for (int64_t i = 0; i < n; ++i) place = std::fill_n(place, count[i], i);
  OFL_ASSIGN_OR_RETURN(const Tensor there, To(places, repeats.device(), {}));
  const GlobalScope like(absl::MakeConstSpan(&repeats, 1));
  return Everywhere(there);
}

StatusOr<Tensor> RepeatInterleave(const Tensor& x, const Tensor& repeats,
                                  std::optional<int64_t> dim) {
  constexpr char kName[] = "repeat_interleave";
  OFL_RETURN_IF_ERROR(CheckCounts(repeats));
  if (repeats.numel() == 1) {
    OFL_ASSIGN_OR_RETURN(const int64_t all, ValueOf<int64_t>(kName, repeats));
    return RepeatInterleave(x, all, dim);
  }
  OFL_ASSIGN_OR_RETURN(Tensor from, dim && x.ndim() > 0 ? StatusOr<Tensor>(x) : Reshape(x, {-1}));
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(kName, dim.value_or(0), from));
  const Shape expected{from.shape()[static_cast<int>(axis)]};
  if (repeats.shape() != expected) {
    return ShapeMismatch(kName, "repeats", repeats.shape(), expected.ToString());
  }
  OFL_ASSIGN_OR_RETURN(const Tensor places, RepeatedPlaces(repeats));
  return IndexSelect(from, axis, places);
}

StatusOr<Tensor> Flip(const Tensor& x, absl::Span<const int64_t> dims) {
  OFL_ASSIGN_OR_RETURN(const Dims wrapped, WrapDims("flip", x, dims));
  if (x.ndim() == 0) return Clone(x);
  static const OpExpr& op = OpBuilder("flip").Input("in").Output("out").Attr("dims").Get();
  return Call(op, {x}, {wrapped});
}

StatusOr<Tensor> Fliplr(const Tensor& x) {
  if (x.ndim() < 2) return ShapeMismatch("fliplr", "input", x.shape(), "at least 2 dims");
  return Flip(x, {1});
}
StatusOr<Tensor> Flipud(const Tensor& x) {
  if (x.ndim() < 1) return ShapeMismatch("flipud", "input", x.shape(), "at least 1 dim");
  return Flip(x, {0});
}

StatusOr<Tensor> Rot90(const Tensor& x, int64_t k, absl::Span<const int64_t> dims) {
  if (dims.size() != 2) {
    return Error(ErrorKind::kValue, "rot90(): dims are ", ToString(dims), ", but they must be two");
  }
  OFL_ASSIGN_OR_RETURN(const Dims plane, WrapDims("rot90", x, dims));
  switch (k & 3) {
    case 0:
      return Clone(x);
    case 2:
      return Flip(x, plane);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor y, Flip(x, {plane[k & 2 ? 0 : 1]}));
  return Transpose(y, plane[0], plane[1]);
}

StatusOr<Tensor> Roll(const Tensor& x, absl::Span<const int64_t> shifts, std::optional<Dims> dims) {
  if (!dims) {
    int64_t sum = 0;
    const int64_t n = std::max<int64_t>(1, x.numel());
    for (const int64_t s : shifts) sum = (sum + s % n) % n;
    OFL_ASSIGN_OR_RETURN(Tensor y, Reshape(x, {-1}));
    OFL_ASSIGN_OR_RETURN(y, Roll(y, {sum}, Dims{0}));
    return Reshape(y, x.shape());
  }
  if (shifts.size() != dims->size()) {
    return Error(ErrorKind::kValue, "roll(): ", shifts.size(), " shifts for ", dims->size(),
                 " dims");
  }
  Dims wrapped;
  for (const int64_t dim : *dims) {
    OFL_ASSIGN_OR_RETURN(const int64_t d, WrapDim("roll", dim, x));
    wrapped.push_back(d);
  }
  return x.ndim() == 0 ? Clone(x) : RollAlong(x, shifts, wrapped);
}

namespace {

// output_size is taken for PyTorch's sake: the size is counted.
using OutputSize = std::optional<int64_t>;
StatusOr<Tensor> RepeatBy(const Tensor& x, int64_t repeats, std::optional<int64_t> dim,
                          OutputSize) {
  return RepeatInterleave(x, repeats, dim);
}
StatusOr<Tensor> RepeatByTensor(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                                OutputSize) {
  return RepeatInterleave(x, repeats, dim);
}
StatusOr<Tensor> RepeatPlaces(const Tensor& repeats, OutputSize) { return RepeatedPlaces(repeats); }

}  // namespace

OFL_REGISTER_FUNCTION("repeat(Tensor self, int[] sizes) -> Tensor", Repeat, kMethodOnly,
                      "The tensor so many times along each dim; dims in front are new.");
OFL_REGISTER_FUNCTION("tile(Tensor input, int[] dims) -> Tensor", Tile, kMethod,
                      "repeat, where missing sizes in front are 1.");
OFL_REGISTER_ADAPTER(
    "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? output_size=None) -> "
    "Tensor",
    RepeatBy, RepeatInterleave, kMethod,
    "Each element so many times in a row, along a dim or of the flat tensor; with a 1-D tensor of\n"
    "integers, each as often as its number says. Of the numbers alone, their places so repeated.\n"
    "output_size is taken for PyTorch's sake: the size is counted.");
OFL_REGISTER_ADAPTER(
    "repeat_interleave.tensor(Tensor input, Tensor repeats, int? dim=None, *, "
    "int? output_size=None) -> Tensor",
    RepeatByTensor, RepeatInterleave, kMethod, "");
OFL_REGISTER_ADAPTER("repeat_interleave.places(Tensor input, *, int? output_size=None) -> Tensor",
                     RepeatPlaces, RepeatedPlaces, kMethod, "");
OFL_REGISTER_FUNCTION("flip(Tensor input, int[] dims) -> Tensor", Flip, kMethod,
                      "The order of the elements along the dims turned round.");
OFL_REGISTER_FUNCTION("fliplr(Tensor input) -> Tensor", Fliplr, kMethod,
                      "The order along dim 1 turned round.");
OFL_REGISTER_FUNCTION("flipud(Tensor input) -> Tensor", Flipud, kMethod,
                      "The order along dim 0 turned round.");
OFL_REGISTER_FUNCTION(
    "rot90(Tensor input, int k=1, int[] dims=[0 1]) -> Tensor", Rot90, kMethod,
    "Turned by k right angles in the plane of two dims, from the first towards the second.");
OFL_REGISTER_FUNCTION(
    "roll(Tensor input, int[] shifts, int[]? dims=None) -> Tensor", Roll, kMethod,
    "The elements moved along dims (or in the flat tensor), round from the end to the start.");

}  // namespace oneflow_lite::functional
