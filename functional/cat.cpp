// SPDX-License-Identifier: Apache-2.0
#include "functional/cat.h"

#include <algorithm>

#include "functional/copy.h"
#include "functional/parts.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

Status CheckGiven(const char* name, absl::Span<const Tensor> tensors) {
  if (!tensors.empty()) return OkStatus();
  return BadValue(name, "tensors", "empty", "one tensor or more");
}

StatusOr<int64_t> DimToSplit(const char* name, const Tensor& x, int64_t dim) {
  if (x.ndim() == 0) return ShapeMismatch(name, "input", x.shape(), "at least 1 dim");
  return WrapDim(name, dim, x);
}

constexpr int64_t kMostParts = 1 << 20;

Status CheckParts(const char* name, int64_t parts) {
  if (parts <= kMostParts) return OkStatus();
  return Error(ErrorKind::kValue, name, "(): ", parts, " tensors are more than the ", kMostParts,
               " that one call gives");
}

// As many times `each` as goes, and the rest.
Dims SizesOf(int64_t size, int64_t each) {
  Dims sizes;
  for (int64_t left = size; left > 0; left -= each) sizes.push_back(std::min(each, left));
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

}  // namespace

StatusOr<Tensor> Cat(absl::Span<const Tensor> tensors, int64_t dim) {
  static const OpExpr& op = OpBuilder("cat").Input("tensors").Output("out").Attr("dim").Get();
  OFL_RETURN_IF_ERROR(CheckGiven("cat", tensors));
  DType dtype = tensors[0].dtype();
  for (const Tensor& t : tensors) dtype = PromoteTypes(dtype, t.dtype());
  // Beside tensors of more dims one of shape [0] is left out.
  const bool lines =
      std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.ndim() == 1; });
  TensorList parts;
  for (const Tensor& t : tensors) {
    if (t.ndim() == 0) return ShapeMismatch("cat", "a tensor", t.shape(), "at least 1 dim");
    const bool nothing = t.ndim() == 1 && t.numel() == 0 && t.device() == tensors.back().device();
    if (nothing && !lines) continue;
    OFL_ASSIGN_OR_RETURN(Tensor part, Cast(t, dtype));
    parts.push_back(std::move(part));
  }
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("cat", dim, parts[0]));
  // One call takes as many as there are bits to say which of them need a gradient.
  constexpr size_t kMost = 64;
  while (parts.size() > kMost) {
    TensorList joined;
    for (size_t i = 0; i < parts.size(); i += kMost) {
      OFL_ASSIGN_OR_RETURN(Tensor part,
                           Call(op, absl::MakeConstSpan(parts).subspan(i, kMost), {axis}));
      joined.push_back(std::move(part));
    }
    parts = std::move(joined);
  }
  return Call(op, parts, {axis});
}

StatusOr<Tensor> Stack(absl::Span<const Tensor> tensors, int64_t dim) {
  OFL_RETURN_IF_ERROR(CheckGiven("stack", tensors));
  const int64_t ndim = tensors[0].ndim() + 1;
  TensorList parts;
  for (const Tensor& t : tensors) {
    if (t.shape() != tensors[0].shape()) {
      return ShapeMismatch("stack", "a tensor", t.shape(), tensors[0].shape().ToString());
    }
    OFL_ASSIGN_OR_RETURN(Tensor part, Unsqueeze(t, dim));
    parts.push_back(std::move(part));
  }
  return Cat(parts, dim < 0 ? dim + ndim : dim);
}

StatusOr<TensorList> Split(const Tensor& x, int64_t each, int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, DimToSplit("split", x, dim));
  const int64_t size = x.shape()[static_cast<int>(axis)];
  if (each < 0 || (each == 0 && size > 0)) {
    return BadValue("split", "split_size_or_sections", absl::StrCat(each), "positive");
  }
  OFL_RETURN_IF_ERROR(CheckParts("split", each > 0 ? size / each : 0));
  return CutInParts(x, axis, SizesOf(size, each));
}

StatusOr<TensorList> SplitWithSizes(const Tensor& x, absl::Span<const int64_t> sizes, int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, DimToSplit("split_with_sizes", x, dim));
  const int64_t size = x.shape()[static_cast<int>(axis)];
  int64_t sum = 0;
  bool valid = !sizes.empty();
  for (int64_t s : sizes) {
    valid = valid && s >= 0 && s <= size - sum;
    if (valid) sum += s;
  }
  if (!valid || sum != size) {
    return BadValue("split_with_sizes", "split_sizes", ToString(sizes),
                    absl::StrCat("sizes that add up to ", size));
  }
  return CutInParts(x, axis, sizes);
}

StatusOr<TensorList> Chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, DimToSplit("chunk", x, dim));
  if (chunks <= 0) return BadValue("chunk", "chunks", absl::StrCat(chunks), "positive");
  const int64_t size = x.shape()[static_cast<int>(axis)];
  OFL_RETURN_IF_ERROR(CheckParts("chunk", size > 0 ? std::min(size, chunks) : chunks));
  const int64_t each = size / chunks + (size % chunks != 0);
  return CutInParts(x, axis, size > 0 ? SizesOf(size, each) : Dims(chunks, 0));
}

StatusOr<TensorList> Unbind(const Tensor& x, int64_t dim) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, DimToSplit("unbind", x, dim));
  const int64_t size = x.shape()[static_cast<int>(axis)];
  OFL_RETURN_IF_ERROR(CheckParts("unbind", size));
  return SelectEach(x, axis);
}

OFL_REGISTER_FUNCTION("cat(Tensor[] tensors, int dim=0) -> Tensor", Cat, kFunction,
                      "The tensors after each other along dim.");
OFL_REGISTER_FUNCTION("stack(Tensor[] tensors, int dim=0) -> Tensor", Stack, kFunction,
                      "The tensors, all of one shape, along a new dim.");
OFL_REGISTER_FUNCTION(
    "split(Tensor(a) tensor, int split_size_or_sections, int dim=0) -> Tensor[]", Split, kMethod,
    "Views along a dim: of one size (the last has what is left), or of sizes that add up to it.");
OFL_REGISTER_FUNCTION(
    "split.sizes(Tensor(a) tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]",
    SplitWithSizes, kMethod, "");
OFL_REGISTER_FUNCTION("split_with_sizes(Tensor(a) input, int[] split_sizes, int dim=0) -> Tensor[]",
                      SplitWithSizes, kMethod,
                      "Views of the given sizes along dim, which must add up to it.");
OFL_REGISTER_FUNCTION("chunk(Tensor(a) input, int chunks, int dim=0) -> Tensor[]", Chunk, kMethod,
                      "At most so many views of one size (the last may be smaller).");
OFL_REGISTER_FUNCTION("unbind(Tensor(a) input, int dim=0) -> Tensor[]", Unbind, kMethod,
                      "The views along dim, which goes.");

}  // namespace oneflow_lite::functional
