// SPDX-License-Identifier: Apache-2.0
#include "functional/rearrange.h"

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/cat.h"
#include "functional/compact.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/index_rows.h"
#include "functional/reduce.h"
#include "functional/remap.h"
#include "functional/select.h"
#include "functional/shapes.h"
#include "functional/stacks.h"
#include "functional/view.h"
#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

// src in a part of a copy of x, which `part` gives as a view.
template <class F>
StatusOr<Tensor> Written(const char* name, const Tensor& x, const Tensor& src, const F& part) {
  if (!x.defined()) return NotDefined(name, "input");
  if (!src.defined()) return NotDefined(name, "src");
  if (src.device() != x.device())
    return DeviceMismatch(name, "input", x.device(), "src", src.device());
  OFL_ASSIGN_OR_RETURN(Tensor y, Clone(x));
  const StatusOr<Tensor> view = part(y);
  if (!view.ok()) return Renamed(name, view.status());
  if (view->shape() != src.shape()) {
    return ShapeMismatch(name, "src", src.shape(), view->shape().ToString());
  }
  OFL_RETURN_IF_ERROR(CopyInto(*view, src).status());
  return y;
}

}  // namespace

StatusOr<Tensor> SelectScatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  return Written("select_scatter", x, src, [&](const Tensor& y) { return Select(y, dim, index); });
}
StatusOr<Tensor> SliceScatter(const Tensor& x, const Tensor& src, int64_t dim,
                              std::optional<int64_t> start, std::optional<int64_t> end,
                              int64_t step) {
  return Written("slice_scatter", x, src,
                 [&](const Tensor& y) { return Slice(y, dim, start, end, step); });
}
StatusOr<Tensor> DiagonalScatter(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1,
                                 int64_t dim2) {
  return Written("diagonal_scatter", x, src,
                 [&](const Tensor& y) { return Diagonal(y, offset, dim1, dim2); });
}

StatusOr<Tensor> Put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) {
  constexpr char kName[] = "put";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!index.defined()) return NotDefined(kName, "index");
  if (!source.defined()) return NotDefined(kName, "source");
  if (source.dtype() != x.dtype()) {
    return DTypeMismatch(kName, "source", source.dtype(), Name(x.dtype()));
  }
  if (index.numel() != source.numel()) {
    return ShapeMismatch(kName, "source", source.shape(),
                         absl::StrCat(index.numel(), " elements, one for each place"));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor line, Reshape(x, {-1}));
  OFL_ASSIGN_OR_RETURN(const Tensor places, Reshape(index, {-1}));
  OFL_ASSIGN_OR_RETURN(const Tensor values, Reshape(source, {-1}));
  StatusOr<Tensor> y =
      accumulate ? IndexAdd(line, 0, places, values) : IndexCopy(line, 0, places, values);
  return y.ok() ? Reshape(*y, x.shape().dims()) : Renamed(kName, y.status());
}

StatusOr<Tensor> SumToSize(const Tensor& x, absl::Span<const int64_t> size) {
  constexpr char kName[] = "sum_to_size";
  if (!x.defined()) return NotDefined(kName, "input");
  const Dims wanted(size.begin(), size.end());
  const size_t n = wanted.size(), m = static_cast<size_t>(x.ndim());
  bool fits = n <= m;
  for (size_t i = 0; fits && i < n; ++i) {
    const int64_t own = x.shape()[static_cast<int>(m - n + i)];
    fits = wanted[i] == own || wanted[i] == 1;
  }
  if (!fits) {
    return ShapeMismatch(kName, "input", x.shape(),
                         absl::StrCat("one that ", Shape(wanted).ToString(), " broadcasts to"));
  }
  return SumToShape(x, Shape(wanted));
}

namespace {

constexpr int64_t kMostFactor = 1 << 15;  // its square is a size that fits

// x [..., c, h, w] with a factor that divides what it must.
Status CheckPixels(const char* name, const Tensor& x, int64_t r, bool shuffle) {
  if (!x.defined()) return NotDefined(name, "input");
  if (r < 1 || r > kMostFactor) {
    return BadValue(name, "the factor", absl::StrCat(r), absl::StrCat("from 1 to ", kMostFactor));
  }
  bool fits = x.ndim() >= 3;
  if (fits) {
    const int d = x.ndim();
    const int64_t c = x.shape()[d - 3], h = x.shape()[d - 2], w = x.shape()[d - 1];
    fits = shuffle ? c % (r * r) == 0 : h % r == 0 && w % r == 0;
  }
  if (fits) return OkStatus();
  return ShapeMismatch(
      name, "input", x.shape(),
      shuffle ? absl::StrCat("[..., channels, h, w] with a multiple of ", r * r, " channels")
              : absl::StrCat("[..., channels, h, w], h and w multiples of ", r));
}

// x seen as `shape` behind its first dims, with those dims permuted, as `result`.
StatusOr<Tensor> Redealt(const Tensor& x, int kept, const Dims& shape, const Dims& order,
                         const Dims& result) {
  Dims seen(x.shape().dims().begin(), x.shape().dims().begin() + kept), to = seen, dims;
  seen.insert(seen.end(), shape.begin(), shape.end());
  to.insert(to.end(), result.begin(), result.end());
  for (int d = 0; d < kept; ++d) dims.push_back(d);
  for (const int64_t d : order) dims.push_back(kept + d);
  OFL_ASSIGN_OR_RETURN(const Tensor apart, Reshape(x, seen));
  OFL_ASSIGN_OR_RETURN(const Tensor turned, Permute(apart, dims));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Reshape(turned, to));
  return Contiguous(y);
}

}  // namespace

StatusOr<Tensor> PixelShuffle(const Tensor& x, int64_t r) {
  OFL_RETURN_IF_ERROR(CheckPixels("pixel_shuffle", x, r, /*shuffle=*/true));
  const int d = x.ndim();
  const int64_t c = x.shape()[d - 3] / (r * r), h = x.shape()[d - 2], w = x.shape()[d - 1];
  return Redealt(x, d - 3, {c, r, r, h, w}, {0, 3, 1, 4, 2}, {c, h * r, w * r});
}
StatusOr<Tensor> PixelUnshuffle(const Tensor& x, int64_t r) {
  OFL_RETURN_IF_ERROR(CheckPixels("pixel_unshuffle", x, r, /*shuffle=*/false));
  const int d = x.ndim();
  const int64_t c = x.shape()[d - 3], h = x.shape()[d - 2] / r, w = x.shape()[d - 1] / r;
  return Redealt(x, d - 3, {c, h, r, w, r}, {0, 2, 4, 1, 3}, {c * r * r, h, w});
}
StatusOr<Tensor> ChannelShuffle(const Tensor& x, int64_t groups) {
  constexpr char kName[] = "channel_shuffle";
  if (!x.defined()) return NotDefined(kName, "input");
  if (groups < 1 || x.ndim() < 3 || x.shape()[1] % groups != 0) {
    return ShapeMismatch(
        kName, "input", x.shape(),
        absl::StrCat("[n, channels, ...] with channels that make ", groups, " groups"));
  }
  const int64_t channels = x.shape()[1];
  int64_t rest = 1;
  for (int d = 2; d < x.ndim(); ++d) rest *= x.shape()[d];
  const Dims& dims = x.shape().dims();
  const Dims result(dims.begin() + 1, dims.end());
  return Redealt(x, 1, {groups, channels / groups, rest}, {1, 0, 2}, result);
}

StatusOr<Tensor> Combinations(const Tensor& x, int64_t r, bool with_replacement) {
  constexpr char kName[] = "combinations";
  if (!x.defined()) return NotDefined(kName, "input");
  if (x.ndim() != 1) return ShapeMismatch(kName, "input", x.shape(), "1 dim");
  if (r < 0 || r > kMaxDims) {  // a grid of r dims is made
    return BadValue(kName, "r", absl::StrCat(r), absl::StrCat("from 0 to ", kMaxDims));
  }
  if (r == 0) return Zeros({0}, x.dtype(), x.device());
  const int64_t n = x.numel();
  OFL_ASSIGN_OR_RETURN(const Tensor line, Arange(Scalar(n)));
  const TensorList lines(static_cast<size_t>(r), line);
  OFL_ASSIGN_OR_RETURN(const TensorList grids, Meshgrid(lines));
  OFL_ASSIGN_OR_RETURN(const Tensor grid, Stack(grids, -1));
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Reshape(grid, {-1, r}));
  if (r > 1) {
    OFL_ASSIGN_OR_RETURN(const Tensor left, Narrow(rows, 1, 0, r - 1));
    OFL_ASSIGN_OR_RETURN(const Tensor right, Narrow(rows, 1, 1, r - 1));
    OFL_ASSIGN_OR_RETURN(const Tensor steps, with_replacement ? Le(left, right) : Lt(left, right));
    OFL_ASSIGN_OR_RETURN(const Tensor rising, All(steps, Dims{1}));
    OFL_ASSIGN_OR_RETURN(const Tensor places, Argwhere(rising));
    OFL_ASSIGN_OR_RETURN(const Tensor chosen, Reshape(places, {-1}));
    OFL_ASSIGN_OR_RETURN(const Tensor taken, IndexSelect(rows, 0, chosen));
    OFL_ASSIGN_OR_RETURN(const Tensor there, To(taken, x.device(), {}));
    return Take(x, there);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor there, To(rows, x.device(), {}));
  return Take(x, there);
}

StatusOr<TensorList> UnravelIndex(const Tensor& indices, absl::Span<const int64_t> shape) {
  constexpr char kName[] = "unravel_index";
  if (!indices.defined()) return NotDefined(kName, "indices");
  if (!IsIntegral(indices.dtype()) || indices.dtype() == DType::kBool) {
    return DTypeMismatch(kName, "indices", indices.dtype(), "an integer dtype");
  }
  for (const int64_t size : shape) {
    if (size < 0) return BadValue(kName, "a size of shape", absl::StrCat(size), "at least 0");
  }
  TensorList places(shape.size());
  OFL_ASSIGN_OR_RETURN(Tensor rest, Cast(indices, DType::kInt64));
  for (size_t d = shape.size(); d-- > 0;) {
    OFL_ASSIGN_OR_RETURN(places[d], Remainder(rest, Scalar(shape[d])));
    OFL_ASSIGN_OR_RETURN(rest, FloorDivide(rest, Scalar(shape[d])));
  }
  return places;
}

StatusOr<Tensor> NonzeroStatic(const Tensor& x, int64_t size, int64_t fill_value) {
  constexpr char kName[] = "nonzero_static";
  if (size < 0) return BadValue(kName, "size", absl::StrCat(size), "at least 0");
  StatusOr<Tensor> all = Argwhere(x);
  if (!all.ok()) return Renamed(kName, all.status());
  const int64_t count = all->shape()[0];
  if (count >= size) return Narrow(*all, 0, 0, size);
  return Pad(*all, {0, 0, 0, size - count}, "constant", Scalar(fill_value));
}

StatusOr<Tensor> PutInto(const Tensor& self, const Tensor& index, const Tensor& source,
                         bool accumulate) {
  StatusOr<Tensor> y = Put(self, index, source, accumulate);
  return y.ok() ? CopyInto(self, *y) : Renamed("put_", y.status());
}
StatusOr<Tensor> ConstantPadNd(const Tensor& x, absl::Span<const int64_t> pad, Scalar value) {
  StatusOr<Tensor> y = Pad(x, pad, "constant", value);
  return y.ok() ? y : Renamed("constant_pad_nd", y.status());
}

OFL_REGISTER_FUNCTION("select_scatter(Tensor input, Tensor src, int dim, int index) -> Tensor",
                      SelectScatter, kMethod, "input with src where select(dim, index) looks.");
OFL_REGISTER_FUNCTION(
    "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, "
    "int step=1) -> Tensor",
    SliceScatter, kMethod, "input with src where the slice start:end:step of dim looks.");
OFL_REGISTER_FUNCTION(
    "diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    DiagonalScatter, kMethod, "input with src where diagonal(offset, dim1, dim2) looks.");
OFL_REGISTER_FUNCTION(
    "put(Tensor input, Tensor index, Tensor source, bool accumulate=False) -> Tensor", Put, kMethod,
    "input with the elements of source at the places of its flat form, added with accumulate.");
OFL_REGISTER_FUNCTION(
    "put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", PutInto,
    kMethodOnly, "put, in place.");
OFL_REGISTER_FUNCTION("sum_to_size(Tensor input, int[] size) -> Tensor", SumToSize, kMethodOnly,
                      "Summed to a shape that broadcasts to the tensor's.");
OFL_REGISTER_FUNCTION("pixel_shuffle(Tensor input, int upscale_factor) -> Tensor", PixelShuffle,
                      kFunction, "[..., c r^2, h, w] as [..., c, h r, w r].");
OFL_REGISTER_FUNCTION("pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
                      PixelUnshuffle, kFunction, "[..., c, h r, w r] as [..., c r^2, h, w].");
OFL_REGISTER_FUNCTION("channel_shuffle(Tensor input, int groups) -> Tensor", ChannelShuffle,
                      kFunction, "The channels, dim 1, dealt out to so many groups.");
OFL_REGISTER_FUNCTION("combinations(Tensor input, int r=2, bool with_replacement=False) -> Tensor",
                      Combinations, kFunction,
                      "All ways to take r elements of a 1-D tensor, in their order: [ways, r].");
OFL_REGISTER_FUNCTION("unravel_index(Tensor indices, int[] shape) -> Tensor[]", UnravelIndex,
                      kFunction, "The coordinates of flat places in a tensor of that shape.");
OFL_REGISTER_FUNCTION("nonzero_static(Tensor input, *, int size, int fill_value=-1) -> Tensor",
                      NonzeroStatic, kMethod,
                      "The first `size` rows of argwhere, followed by rows of fill_value.");
OFL_REGISTER_FUNCTION("constant_pad_nd(Tensor input, int[] pad, Scalar value=0) -> Tensor",
                      ConstantPadNd, kFunction, "nn.functional.pad with a number.");
OFL_REGISTER_ALIAS("unsafe_chunk", "chunk");

}  // namespace oneflow_lite::functional
