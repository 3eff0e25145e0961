// SPDX-License-Identifier: Apache-2.0
#include "functional/index.h"

#include <algorithm>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/device_traits.h"
#include "functional/index_rows.h"
#include "functional/select.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// A tensor without dims is one with a dim of size 1.
StatusOr<Tensor> WithDims(const Tensor& t) {
  return t.ndim() == 0 ? Unsqueeze(t, 0) : StatusOr<Tensor>(t);
}

// Places of any integer dtype as those of int64 that the ops take; no places may be of any dtype.
StatusOr<Tensor> PlacesOf(const char* name, const char* argument, const Tensor& index) {
  if (!index.defined()) return NotDefined(name, argument);
  if (index.dtype() == DType::kInt64) return index;
  if (IsIntegral(index.dtype()) || index.numel() == 0) return Cast(index, DType::kInt64);
  return DTypeMismatch(name, argument, index.dtype(), "an integer dtype");
}

// Whether the op takes the index beside x: it has as many dims, and none larger but the axis.
bool Fits(const Tensor& x, int64_t axis, const Tensor& index) {
  bool fits = index.ndim() == x.ndim();
  for (int d = 0; fits && d < x.ndim(); ++d) fits = d == axis || index.shape()[d] <= x.shape()[d];
  return fits;
}
// Whether src has an element for each of the index.
bool Serves(const Tensor& src, const Tensor& index) {
  bool serves = src.ndim() == index.ndim();
  for (int d = 0; serves && d < src.ndim(); ++d) serves = src.shape()[d] >= index.shape()[d];
  return serves;
}

// src as the op wants it: of self's dtype, of the index's shape.
StatusOr<Tensor> SourceFor(const char* name, const Tensor& self, const Tensor& index,
                           const Operand& src) {
  if (!std::holds_alternative<Tensor>(src)) {
    OFL_ASSIGN_OR_RETURN(Tensor number, ToTensor(name, src, self.dtype()));
    // Written on the device, since a copy there takes longer; of a global tensor the number must be
    // global too, to be expanded.
    if (GlobalOf(self) || self.device() != number.device()) {
      const GlobalScope scope(absl::MakeConstSpan(&self, 1));
      OFL_ASSIGN_OR_RETURN(number, Full({}, std::get<Scalar>(src), self.dtype(), self.device()));
    }
    return Expand(number, index.shape());
  }
  OFL_ASSIGN_OR_RETURN(Tensor t, WithDims(std::get<Tensor>(src)));
  if (!Serves(t, index)) {
    return ShapeMismatch(name, "src", t.shape(),
                         absl::StrCat("at least ", index.shape().ToString(), ", the index's"));
  }
  for (int d = 0; d < t.ndim(); ++d) {
    if (t.shape()[d] == index.shape()[d]) continue;
    OFL_ASSIGN_OR_RETURN(t, Slice(t, d, 0, index.shape()[d]));
  }
  return t;
}

// Nothing of t, in a shape without elements: a view, which autograd follows.
StatusOr<Tensor> NothingOf(const Tensor& t, const Shape& shape) {
  OFL_ASSIGN_OR_RETURN(Tensor none, WithDims(t));
  OFL_ASSIGN_OR_RETURN(none, Slice(none, 0, 0, 0));
  return Reshape(none, shape);
}

StatusOr<Tensor> CallScatter(const char* name, const OpExpr& op, const Tensor& self, int64_t dim,
                             const Tensor& index, const Operand& src, bool from_end) {
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, dim, self));
  OFL_ASSIGN_OR_RETURN(Tensor places, PlacesOf(name, "index", index));
  OFL_ASSIGN_OR_RETURN(places, WithDims(places));
  OFL_ASSIGN_OR_RETURN(const Tensor line, WithDims(self));
  const Tensor* given = std::get_if<Tensor>(&src);
  if (given && !given->defined()) return NotDefined(name, "src");
  Operand source = src;
  if (places.numel() == 0 && !(Fits(line, axis, places) && (!given || Serves(*given, places)))) {
    Shape nothing = line.shape();  // nothing goes anywhere, whatever the index's dims
    nothing[static_cast<int>(axis)] = 0;
    OFL_ASSIGN_OR_RETURN(places, NothingOf(places, nothing));
    if (given) {
      OFL_ASSIGN_OR_RETURN(source, NothingOf(*given, nothing));
    }
  }
  OFL_ASSIGN_OR_RETURN(Tensor from, SourceFor(name, self, places, source));
  OFL_ASSIGN_OR_RETURN(places, ApartFrom(self, places));
  OFL_ASSIGN_OR_RETURN(from, ApartFrom(self, from));
  if (self.ndim() > 0 && self.shape()[static_cast<int>(axis)] == 0 && places.numel() > 0) {
    return Error(ErrorKind::kIndex, name, "(): index is not empty, but dim ", axis,
                 " of size 0 has no place");
  }
  if (self.ndim() > 0) return Call(op, {self, places, from}, {axis, from_end});
  OFL_RETURN_IF_ERROR(Call(op, {line, places, from}, {axis, from_end}).status());
  return self;
}

// Whether the index says the same for all that lies beside each other in the other dims: then
// whole slices are meant.
bool IsOfSlices(const Tensor& x, int64_t axis, const Tensor& index) {
  if (index.ndim() != x.ndim() || index.numel() == 0 || GlobalOf(index) || GlobalOf(x))
    return false;
  int64_t others = 1;
  for (int d = 0; d < index.ndim(); ++d) {
    if (d == axis) continue;
    const int64_t n = index.shape()[d];
    if (n > x.shape()[d] || (n > 1 && index.strides()[d] != 0)) return false;
    others *= n;
  }
  return others > 1;
}
StatusOr<Tensor> GatherSlices(const Tensor& x, int64_t axis, const Tensor& index, bool from_end) {
  Tensor from = x, line = index;
  for (int d = 0; d < index.ndim(); ++d) {
    if (d == axis) continue;
    OFL_ASSIGN_OR_RETURN(from, Narrow(from, d, 0, index.shape()[d]));
    OFL_ASSIGN_OR_RETURN(line, Narrow(line, d, 0, 1));
  }
  OFL_ASSIGN_OR_RETURN(line, Reshape(line, {-1}));
  return SelectPlaces(from, axis, line, from_end);
}

const OpExpr& ScatterOpExpr(const char* name) {
  return OpBuilder(name)
      .Input("self")
      .Input("index")
      .Input("src")
      .Output("out")
      .Attr("dim")
      .Attr("from_end")
      .Get();
}

// Whether a sum of 16-bit floats is taken in a copy of self in float32, to be rounded once.
bool SumsInCopy(const Tensor& self, int64_t dim, const Tensor& index) {
  if (ComputeType(self.dtype()) == self.dtype()) return false;
  const StatusOr<int64_t> wrapped = WrapDim("scatter_add_", dim, self);
  if (!wrapped.ok() || index.ndim() != self.ndim() || self.ndim() == 0) return true;
  const int axis = static_cast<int>(*wrapped);
  return !AddsInFloat32(self, index.shape()[axis], self.shape()[axis]);
}

}  // namespace

StatusOr<Tensor> ApartFrom(const Tensor& self, const Tensor& t) {
  return t.storage()->Overlaps(*self.storage()) ? Clone(t) : StatusOr<Tensor>(t);
}

StatusOr<Tensor> Gather(const Tensor& x, int64_t dim, const Tensor& index) {
  return GatherPlaces(x, dim, index, false);
}
StatusOr<Tensor> GatherPlaces(const Tensor& x, int64_t dim, const Tensor& index, bool from_end) {
  static const OpExpr& op = OpBuilder("gather")
                                .Input("in")
                                .Input("index")
                                .Output("out")
                                .Attr("dim")
                                .Attr("from_end")
                                .Get();
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("gather", dim, x));
  OFL_ASSIGN_OR_RETURN(Tensor from, WithDims(x));
  OFL_ASSIGN_OR_RETURN(Tensor places, PlacesOf("gather", "index", index));
  OFL_ASSIGN_OR_RETURN(places, WithDims(places));
  if (places.numel() == 0 && !Fits(from, axis, places)) return NothingOf(x, index.shape());
  if (IsOfSlices(from, axis, places)) {
    StatusOr<Tensor> y = GatherSlices(from, axis, places, from_end);
    return y.ok() ? y : Renamed("gather", y.status());
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, {from, places}, {axis, from_end}));
  return y.shape() == index.shape() ? StatusOr<Tensor>(y) : Reshape(y, index.shape());
}

StatusOr<Tensor> ScatterInto(const Tensor& self, int64_t dim, const Tensor& index,
                             const Operand& src) {
  return ScatterPlaces(self, dim, index, src, false);
}
StatusOr<Tensor> ScatterPlaces(const Tensor& self, int64_t dim, const Tensor& index,
                               const Operand& src, bool from_end) {
  static const OpExpr& op = ScatterOpExpr("scatter_");
  return CallScatter("scatter_", op, self, dim, index, src, from_end);
}
StatusOr<Tensor> ScatterAddInto(const Tensor& self, int64_t dim, const Tensor& index,
                                const Tensor& src) {
  return ScatterAddPlaces(self, dim, index, src, false);
}
StatusOr<Tensor> ScatterAddPlaces(const Tensor& self, int64_t dim, const Tensor& index,
                                  const Tensor& src, bool from_end) {
  static const OpExpr& op = ScatterOpExpr("scatter_add_");
  if (self.dtype() == DType::kBool && src.dtype() == DType::kBool) {
    // The sum of truths is whether one holds.
    OFL_ASSIGN_OR_RETURN(const Tensor count, Cast(self, DType::kInt64));
    OFL_ASSIGN_OR_RETURN(const Tensor holds, Cast(src, DType::kInt64));
    OFL_RETURN_IF_ERROR(
        CallScatter("scatter_add_", op, count, dim, index, holds, from_end).status());
    return CopyInto(self, count);
  }
  if (src.dtype() != self.dtype()) {
    return DTypeMismatch("scatter_add_", "src", src.dtype(), Name(self.dtype()));
  }
  // The 16-bit floats are summed in float32 and rounded once.
  if (SumsInCopy(self, dim, index)) {
    OFL_ASSIGN_OR_RETURN(const Tensor sum, Cast(self, ComputeType(self.dtype())));
    OFL_RETURN_IF_ERROR(AddPlacesWide(sum, dim, index, src, from_end).status());
    return CopyInto(self, sum);
  }
  return CallScatter("scatter_add_", op, self, dim, index, src, from_end);
}
StatusOr<Tensor> AddPlacesWide(const Tensor& sum, int64_t dim, const Tensor& index,
                               const Tensor& src, bool from_end) {
  static const OpExpr& op = ScatterOpExpr("scatter_add_");
  Tensor from = src;
  const Dims& dims = index.shape().dims();
  if (!WidensAsItAdds(src) &&
      (dims.empty() || index.numel() == *std::max_element(dims.begin(), dims.end()))) {
    // A line may be sorted by its places, in one dtype.
    OFL_ASSIGN_OR_RETURN(from, Cast(src, sum.dtype()));
  }
  return CallScatter("scatter_add_", op, sum, dim, index, from, from_end);
}

StatusOr<Tensor> ScatterJoinInto(const Tensor& self, int64_t dim, const Tensor& index,
                                 const Tensor& src, absl::string_view join) {
  static const OpExpr& mul = ScatterOpExpr("scatter_mul_");
  static const OpExpr& max = ScatterOpExpr("scatter_max_");
  static const OpExpr& min = ScatterOpExpr("scatter_min_");
  const OpExpr& op = join == "prod" ? mul : join == "amax" ? max : min;
  return CallScatter(op.def().name.c_str(), op, self, dim, index, src, /*from_end=*/false);
}

StatusOr<Tensor> Scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src) {
  OFL_ASSIGN_OR_RETURN(Tensor y, Clone(x));
  return ScatterInto(y, dim, index, src);
}

StatusOr<Tensor> ScatterAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  if (src.dtype() != x.dtype()) {
    return DTypeMismatch("scatter_add", "src", src.dtype(), Name(x.dtype()));
  }
  const DType wide = ComputeType(x.dtype());
  if (!SumsInCopy(x, dim, index)) {
    OFL_ASSIGN_OR_RETURN(const Tensor y, Clone(x));
    return ScatterAddInto(y, dim, index, src);
  }
  OFL_ASSIGN_OR_RETURN(Tensor sum, Cast(x, wide));
  OFL_ASSIGN_OR_RETURN(sum, AddPlacesWide(sum, dim, index, src, false));
  return Cast(sum, x.dtype());
}

OFL_REGISTER_FUNCTION("gather(Tensor input, int dim, Tensor index) -> Tensor", Gather, kMethod,
                      "The elements at the places that index (integers) gives along dim.\n"
                      "A place out of range is an IndexError on the CPU. On CUDA, which cannot "
                      "stop, it gives\nNaN, or 0 where the dtype has no NaN.");
OFL_REGISTER_FUNCTION(
    "scatter(Tensor input, int dim, Tensor index, Operand src) -> Tensor", Scatter, kMethod,
    "input with src, a tensor or a number, at the places that index (integers) gives "
    "along dim.\nA place out of range is an IndexError on the CPU; on CUDA nothing goes there.");
OFL_REGISTER_FUNCTION("scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
                      ScatterAdd, kMethod,
                      "input with src added at the places that index (integers) gives along dim.");
OFL_REGISTER_FUNCTION(
    "scatter_(Tensor(a!) self, int dim, Tensor index, Operand src) -> Tensor", ScatterInto,
    kMethodOnly, "Writes src, a tensor or a number, to the places that index gives along dim.");
OFL_REGISTER_FUNCTION("scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor",
                      ScatterAddInto, kMethodOnly,
                      "Adds src at the places that index gives along dim, in place.");

}  // namespace oneflow_lite::functional
