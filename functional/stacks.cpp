// SPDX-License-Identifier: Apache-2.0
#include "functional/stacks.h"

#include <algorithm>

#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/host_value.h"
#include "functional/parts.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

template <class F>
StatusOr<Tensor> JoinEach(const char* name, absl::Span<const Tensor> tensors, int64_t dim,
                          const F& shaped) {
  TensorList parts;
  for (const Tensor& t : tensors) {
    if (!t.defined()) return NotDefined(name, "a tensor");
    OFL_ASSIGN_OR_RETURN(Tensor part, shaped(t));
    parts.push_back(std::move(part));
  }
  const int64_t along = !parts.empty() && parts[0].ndim() == 1 ? 0 : dim;
  StatusOr<Tensor> y = Cat(parts, along);
  return y.ok() ? y : Renamed(name, y.status());
}

constexpr int64_t kMostEmpty = 1 << 20;  // sections, of which most are empty: each is a tensor

// What hsplit, vsplit and dsplit share: the dim, and the least number of dims.
struct NamedSplit {
  const char* name;
  int64_t dim;
  int least;
};
constexpr NamedSplit kHsplit = {"hsplit", 1, 1}, kVsplit = {"vsplit", 0, 2},
                     kDsplit = {"dsplit", 2, 3};

StatusOr<int64_t> DimOf(const NamedSplit& s, const Tensor& x) {
  if (x.ndim() < s.least) {
    return ShapeMismatch(s.name, "input", x.shape(),
                         absl::StrCat("at least ", s.least, " dim", s.least > 1 ? "s" : ""));
  }
  return x.ndim() == 1 ? 0 : s.dim;
}

StatusOr<TensorList> SplitEvenly(const NamedSplit& s, const Tensor& x, int64_t sections) {
  OFL_ASSIGN_OR_RETURN(const int64_t dim, DimOf(s, x));
  const int64_t size = x.shape()[static_cast<int>(dim)];
  if (sections < 1 || size % sections != 0) {
    return Error(ErrorKind::kValue, s.name, "(): dim ", dim, " of size ", size, " does not make ",
                 sections, " parts of one size; tensor_split makes unequal ones");
  }
  return TensorSplit(x, sections, dim);
}

}  // namespace

StatusOr<Tensor> Hstack(absl::Span<const Tensor> tensors) {
  return JoinEach("hstack", tensors, 1, Atleast1d);
}
StatusOr<Tensor> Vstack(absl::Span<const Tensor> tensors) {
  return JoinEach("vstack", tensors, 0, Atleast2d);
}
StatusOr<Tensor> Dstack(absl::Span<const Tensor> tensors) {
  return JoinEach("dstack", tensors, 2, Atleast3d);
}
StatusOr<Tensor> ColumnStack(absl::Span<const Tensor> tensors) {
  return JoinEach("column_stack", tensors, 1, [](const Tensor& t) {
    return t.ndim() < 2 ? Reshape(t, {-1, 1}) : StatusOr<Tensor>(t);
  });
}

namespace {

// Whether blocks are written into zeros one by one: where calls are cheap, those that are not
// recorded, none of which is promoted.
bool WritesBlocks(const TensorList& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [&](const Tensor& t) {
    const bool recorded = GradEnabled() && autograd::RequiresGrad(t);
    return CallsAreCheap(t) && t.dtype() == blocks[0].dtype() && !recorded;
  });
}
StatusOr<Tensor> WrittenBlocks(const TensorList& blocks, int64_t cols) {
  int64_t rows = 0;
  for (const Tensor& t : blocks) rows += t.shape()[0];
  OFL_ASSIGN_OR_RETURN(Tensor y, Zeros({rows, cols}, blocks[0].dtype(), blocks[0].device()));
  int64_t row = 0, col = 0;
  for (const Tensor& t : blocks) {
    OFL_ASSIGN_OR_RETURN(const Tensor band, Narrow(y, 0, row, t.shape()[0]));
    OFL_ASSIGN_OR_RETURN(const Tensor place, Narrow(band, 1, col, t.shape()[1]));
    OFL_RETURN_IF_ERROR(CopyInto(place, t).status());
    row += t.shape()[0];
    col += t.shape()[1];
  }
  return y;
}

}  // namespace

StatusOr<Tensor> BlockDiag(absl::Span<const Tensor> tensors) {
  TensorList blocks;
  int64_t cols = 0;
  for (const Tensor& t : tensors) {
    if (!t.defined()) return NotDefined("block_diag", "a tensor");
    if (t.ndim() > 2) {
      return ShapeMismatch("block_diag", absl::StrCat("tensor ", blocks.size()), t.shape(),
                           "at most 2 dims");
    }
    OFL_ASSIGN_OR_RETURN(Tensor block, Atleast2d(t));
    cols += block.shape()[1];
    blocks.push_back(std::move(block));
  }
  if (blocks.empty()) return Zeros({1, 0});
  if (WritesBlocks(blocks)) return WrittenBlocks(blocks, cols);
  TensorList rows;
  int64_t done = 0;
  for (const Tensor& t : blocks) {
    const int64_t before = done, after = cols - done - t.shape()[1];
    done += t.shape()[1];
    OFL_ASSIGN_OR_RETURN(Tensor left, Zeros({t.shape()[0], before}, t.dtype(), t.device()));
    OFL_ASSIGN_OR_RETURN(Tensor right, Zeros({t.shape()[0], after}, t.dtype(), t.device()));
    OFL_ASSIGN_OR_RETURN(Tensor row, Cat({left, t, right}, 1));
    rows.push_back(std::move(row));
  }
  StatusOr<Tensor> y = Cat(rows);
  return y.ok() ? y : Renamed("block_diag", y.status());
}

StatusOr<Tensor> CartesianProd(absl::Span<const Tensor> tensors) {
  if (tensors.size() == 1 && !tensors[0].defined()) return NotDefined("cartesian_prod", "tensors");
  if (tensors.size() == 1) return tensors[0];
  StatusOr<TensorList> grids = Meshgrid(tensors);
  if (!grids.ok()) return Renamed("cartesian_prod", grids.status());
  for (Tensor& grid : *grids) {
    OFL_ASSIGN_OR_RETURN(grid, Reshape(grid, {-1}));
  }
  StatusOr<Tensor> y = Stack(*grids, -1);
  return y.ok() ? y : Renamed("cartesian_prod", y.status());
}

StatusOr<TensorList> TensorSplit(const Tensor& x, int64_t sections, int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("tensor_split", dim, x));
  const int64_t size = x.ndim() > 0 ? x.shape()[static_cast<int>(axis)] : 0;
  const int64_t most = std::max(size, kMostEmpty);
  if (sections < 1 || sections > most) {
    return Error(ErrorKind::kValue, "tensor_split(): ", sections,
                 " sections, but there must be 1 to ", most);
  }
  Dims sizes;
  for (int64_t k = 0; k < sections; ++k) sizes.push_back(size / sections + (k < size % sections));
  if (x.ndim() == 0) return Slice(x, 0, 0, 0).status();  // its error
  return CutInParts(x, axis, sizes);
}

StatusOr<TensorList> TensorSplitAt(const Tensor& x, absl::Span<const int64_t> places, int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("tensor_split", dim, x));
  TensorList parts;
  std::optional<int64_t> start;
  for (size_t k = 0; k <= places.size(); ++k) {
    const std::optional<int64_t> end =
        k < places.size() ? std::optional<int64_t>(places[k]) : std::nullopt;
    OFL_ASSIGN_OR_RETURN(Tensor part, Slice(x, axis, start, end));
    parts.push_back(std::move(part));
    start = end;
  }
  return parts;
}

StatusOr<TensorList> Hsplit(const Tensor& x, int64_t sections) {
  return SplitEvenly(kHsplit, x, sections);
}
StatusOr<TensorList> Vsplit(const Tensor& x, int64_t sections) {
  return SplitEvenly(kVsplit, x, sections);
}
StatusOr<TensorList> Dsplit(const Tensor& x, int64_t sections) {
  return SplitEvenly(kDsplit, x, sections);
}

namespace {

StatusOr<TensorList> SplitAt(const NamedSplit& s, const Tensor& x,
                             absl::Span<const int64_t> places) {
  OFL_ASSIGN_OR_RETURN(const int64_t dim, DimOf(s, x));
  return TensorSplitAt(x, places, dim);
}

}  // namespace

StatusOr<TensorList> HsplitAt(const Tensor& x, absl::Span<const int64_t> places) {
  return SplitAt(kHsplit, x, places);
}
StatusOr<TensorList> VsplitAt(const Tensor& x, absl::Span<const int64_t> places) {
  return SplitAt(kVsplit, x, places);
}
StatusOr<TensorList> DsplitAt(const Tensor& x, absl::Span<const int64_t> places) {
  return SplitAt(kDsplit, x, places);
}

StatusOr<TensorList> TensorSplit(const Tensor& x, const Tensor& cuts, int64_t dim) {
  if (!cuts.defined()) return NotDefined("tensor_split", "indices_or_sections");
  if (cuts.ndim() > 1) {
    return ShapeMismatch("tensor_split", "indices_or_sections", cuts.shape(), "at most 1 dim");
  }
  if (!IsIntegral(cuts.dtype()) || cuts.dtype() == DType::kBool) {
    return DTypeMismatch("tensor_split", "indices_or_sections", cuts.dtype(), "an integer dtype");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor wide, Cast(cuts, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(const Tensor host, ReadBack("tensor_split", wide));
  const int64_t* places = static_cast<const int64_t*>(host.data());
  if (cuts.ndim() == 0) return TensorSplit(x, places[0], dim);
  return TensorSplitAt(x, absl::MakeConstSpan(places, host.numel()), dim);
}

OFL_REGISTER_FUNCTION("hstack(Tensor[] tensors) -> Tensor", Hstack, kFunction,
                      "After each other along dim 1, or dim 0 for tensors of 1 dim.");
OFL_REGISTER_FUNCTION("vstack(Tensor[] tensors) -> Tensor", Vstack, kFunction,
                      "Under each other: along dim 0, tensors of 1 dim as rows.");
OFL_REGISTER_ALIAS("row_stack", "vstack");
OFL_REGISTER_FUNCTION(
    "dstack(Tensor[] tensors) -> Tensor", Dstack, kFunction,
    "Behind each other along dim 2; tensors of fewer dims as [1, n, 1] or [m, n, 1].");
OFL_REGISTER_FUNCTION("column_stack(Tensor[] tensors) -> Tensor", ColumnStack, kFunction,
                      "Beside each other along dim 1, tensors of 1 dim as columns.");
OFL_REGISTER_FUNCTION("block_diag(Tensor... tensors) -> Tensor", BlockDiag, kFunction,
                      "The matrices along the diagonal of one; a tensor of fewer dims is a row.");
OFL_REGISTER_FUNCTION(
    "cartesian_prod(Tensor... tensors) -> Tensor", CartesianProd, kFunction,
    "All combinations of one element of each 1-D tensor: a row each; of one tensor, itself.");
OFL_REGISTER_FUNCTION(
    "tensor_split(Tensor(a) input, int indices_or_sections, int dim=0) -> Tensor[]",
    (Overload<const Tensor&, int64_t, int64_t>(TensorSplit)), kMethod,
    "Views along a dim: so many, the first ones longer by 1 where needed; or cut at places.");
OFL_REGISTER_FUNCTION(
    "tensor_split.places(Tensor(a) input, int[] indices_or_sections, int dim=0) -> Tensor[]",
    TensorSplitAt, kMethod, "");
OFL_REGISTER_FUNCTION(
    "tensor_split.tensor(Tensor(a) input, Tensor indices_or_sections, int dim=0) -> Tensor[]",
    (Overload<const Tensor&, const Tensor&, int64_t>(TensorSplit)), kMethod, "");
#define OFL_NAMED_SPLIT(name, of_int, of_places, doc)                                           \
  OFL_REGISTER_FUNCTION(name "(Tensor(a) input, int indices_or_sections) -> Tensor[]", of_int,  \
                        kMethod, doc);                                                          \
  OFL_REGISTER_FUNCTION(name ".places(Tensor(a) input, int[] indices_or_sections) -> Tensor[]", \
                        of_places, kMethod, "")
OFL_NAMED_SPLIT("hsplit", Hsplit, HsplitAt,
                "As tensor_split along dim 1, or dim 0 of a tensor of 1 dim; parts are of one "
                "size.");
OFL_NAMED_SPLIT("vsplit", Vsplit, VsplitAt,
                "As tensor_split along dim 0, of 2 dims or more; parts are of one size.");
OFL_NAMED_SPLIT("dsplit", Dsplit, DsplitAt,
                "As tensor_split along dim 2, of 3 dims or more; parts are of one size.");
#undef OFL_NAMED_SPLIT

}  // namespace oneflow_lite::functional
