// SPDX-License-Identifier: Apache-2.0
#include "functional/index_rows.h"

#include <algorithm>
#include <numeric>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/index.h"
#include "functional/select.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/places.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// Places of any integer dtype, of at most 1 dim, as a line of int64.
StatusOr<Tensor> LineOf(const char* name, const Tensor& index) {
  if (!index.defined()) return NotDefined(name, "index");
  if (!IsIntegral(index.dtype())) {
    return DTypeMismatch(name, "index", index.dtype(), "an integer dtype");
  }
  if (index.ndim() > 1) {
    return Error(ErrorKind::kIndex, name, "(): index has shape ", index.shape().ToString(),
                 ", expected 1 dim");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor line, Cast(index, DType::kInt64));
  return line.ndim() == 1 ? StatusOr<Tensor>(line) : Reshape(line, {1});
}

// On the CPU places are looked at, so that an error says what the caller gave; elsewhere that would
// wait for them.
Status CheckPlaces(const char* name, const Tensor& places, int64_t dim, int64_t size) {
  if (!IsInHostMemory(places) || !ChecksValues(places)) return OkStatus();
  const GlobalSpec* g = GlobalOf(places);  // each rank looks at its own
  Tensor dense = g ? g->local : places;
  if (!dense.is_contiguous()) {
    OFL_ASSIGN_OR_RETURN(dense, ReadBack(name, dense));
  }
  const int64_t* place = dense.data<int64_t>();
  if (AllWithin(place, dense.numel(), 1, -size, size - 1)) return OkStatus();
  while (*place >= -size && *place < size) ++place;
  return Error(ErrorKind::kIndex, name, "(): index ", *place, " is out of range [", -size, ", ",
               size - 1, "] for dim ", dim, " of size ", size);
}

// The arguments of a call that changes slices, a tensor without dims as one with a dim of size 1.
struct Slices {
  Tensor self, index, src;
  int64_t axis = 0;
};

StatusOr<Slices> SlicesOf(const char* name, const Tensor& self, int64_t dim, const Tensor& index) {
  if (!self.defined()) return NotDefined(name, "input");
  Slices s;
  OFL_ASSIGN_OR_RETURN(s.axis, WrapDim(name, dim, self));
  OFL_ASSIGN_OR_RETURN(s.index, LineOf(name, index));
  if (s.index.device() != self.device()) {
    return DeviceMismatch(name, "input", self.device(), "index", s.index.device());
  }
  s.self = self;
  if (self.ndim() == 0) {
    OFL_ASSIGN_OR_RETURN(s.self, Unsqueeze(self, 0));
  }
  OFL_RETURN_IF_ERROR(CheckPlaces(name, s.index, s.axis, s.self.shape()[static_cast<int>(s.axis)]));
  return s;
}

// With the slices that go there, of self's dtype and one for each place.
StatusOr<Slices> SlicesOf(const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src) {
  OFL_ASSIGN_OR_RETURN(Slices s, SlicesOf(name, self, dim, index));
  if (!src.defined()) return NotDefined(name, "source");
  if (src.dtype() != self.dtype()) {
    return DTypeMismatch(name, "source", src.dtype(), Name(self.dtype()));
  }
  Shape expected = s.self.shape();
  expected[static_cast<int>(s.axis)] = s.index.numel();
  const bool one = src.ndim() == 0 && expected == Shape{1};
  if (src.shape() != expected && !one) {
    return ShapeMismatch(name, "source", src.shape(),
                         self.ndim() == 0 ? "[]" : expected.ToString());
  }
  s.src = src;
  if (one) {
    OFL_ASSIGN_OR_RETURN(s.src, Unsqueeze(src, 0));
  }
  return s;
}

// The dims of t in the order of their memory, as it lies.
Dims OrderOf(const Tensor& t) {
  Dims order(t.ndim());
  std::iota(order.begin(), order.end(), 0);
  const auto step = [&](int64_t d) { return t.strides()[d] == 0 ? INT64_MAX : t.strides()[d]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return step(a) > step(b); });
  return order;
}
Dims Inverse(const Dims& order) {
  Dims back(order.size());
  for (size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<int64_t>(d);
  return back;
}

// Self with its dims in memory's order, if that is dense: the ops of slices want it so.
StatusOr<bool> PutInOrder(Slices* s) {
  if (s->self.is_contiguous()) return true;
  const Dims order = OrderOf(s->self);
  OFL_ASSIGN_OR_RETURN(const Tensor sorted, Permute(s->self, order));
  if (!sorted.is_contiguous()) return false;
  OFL_ASSIGN_OR_RETURN(s->src, Permute(s->src, order));
  s->self = sorted;
  s->axis = Inverse(order)[s->axis];
  return true;
}
// The index once for every element of src, as scatter wants it.
StatusOr<Tensor> Spread(const Slices& s) {
  Dims line(s.src.ndim(), 1);
  line[s.axis] = -1;
  OFL_ASSIGN_OR_RETURN(const Tensor places, Reshape(s.index, line));
  return Expand(places, s.src.shape());
}

// Of which nothing that is read shares memory with self.
StatusOr<Slices> SlicesToWrite(const char* name, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& src) {
  OFL_ASSIGN_OR_RETURN(Slices s, SlicesOf(name, self, dim, index, src));
  OFL_ASSIGN_OR_RETURN(s.index, ApartFrom(s.self, s.index));
  OFL_ASSIGN_OR_RETURN(s.src, ApartFrom(s.self, s.src));
  return s;
}

StatusOr<Tensor> AddInto(const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& src, const Scalar& alpha) {
  static const OpExpr& op = OpBuilder("index_add_")
                                .Input("self")
                                .Input("index")
                                .Input("src")
                                .Output("out")
                                .Attr("dim")
                                .Attr("alpha")
                                .Get();
  OFL_ASSIGN_OR_RETURN(Slices s, SlicesToWrite(name, self, dim, index, src));
  if (self.dtype() == DType::kBool) {  // the sum of truths is whether one holds
    OFL_ASSIGN_OR_RETURN(const Tensor count, Cast(self, DType::kInt64));
    OFL_ASSIGN_OR_RETURN(const Tensor holds, Cast(src, DType::kInt64));
    OFL_RETURN_IF_ERROR(AddInto(name, count, dim, index, holds, alpha).status());
    return CopyInto(self, count);
  }
  if (!IsFloating(self.dtype())) {
    if (alpha.kind() == Scalar::Kind::kFloat) {
      return BadValue(name, "alpha", absl::StrCat(alpha.to<double>()), "an integer for integers");
    }
    OFL_RETURN_IF_ERROR(CheckFits(name, alpha, self.dtype()));
    constexpr int64_t kExact = int64_t{1} << 53;  // what the op's factor, a double, holds
    if (const auto factor = alpha.to<int64_t>(); factor > kExact || factor < -kExact) {
      OFL_ASSIGN_OR_RETURN(const Tensor scaled, Mul(src, alpha));
      return AddInto(name, self, dim, index, scaled, Scalar(1));
    }
  }
  OFL_ASSIGN_OR_RETURN(const bool dense, PutInOrder(&s));
  if (dense) {
    OFL_RETURN_IF_ERROR(Call(op, {s.self, s.index, s.src}, {s.axis, alpha.to<double>()}).status());
    return self;
  }
  OFL_ASSIGN_OR_RETURN(const Tensor scaled, Mul(s.src, alpha));
  OFL_ASSIGN_OR_RETURN(const Tensor places, Spread(s));
  OFL_RETURN_IF_ERROR(ScatterAddPlaces(s.self, s.axis, places, scaled, true).status());
  return self;
}

StatusOr<Tensor> CopySlices(const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& src) {
  static const OpExpr& op = OpBuilder("index_copy_")
                                .Input("self")
                                .Input("index")
                                .Input("src")
                                .Output("out")
                                .Attr("dim")
                                .Get();
  OFL_ASSIGN_OR_RETURN(Slices s, SlicesToWrite(name, self, dim, index, src));
  OFL_ASSIGN_OR_RETURN(const bool dense, PutInOrder(&s));
  if (dense) {
    OFL_RETURN_IF_ERROR(Call(op, {s.self, s.index, s.src}, {s.axis}).status());
    return self;
  }
  OFL_ASSIGN_OR_RETURN(const Tensor places, Spread(s));
  OFL_RETURN_IF_ERROR(ScatterPlaces(s.self, s.axis, places, s.src, true).status());
  return self;
}

// Which slices the places name, as a mask that broadcasts to x.
StatusOr<Tensor> Named(const char* name, const Tensor& x, int64_t dim, const Tensor& index) {
  OFL_ASSIGN_OR_RETURN(const Slices s, SlicesOf(name, x, dim, index));
  const int axis = static_cast<int>(s.axis);
  OFL_ASSIGN_OR_RETURN(const Tensor hit, Zeros({s.self.shape()[axis]}, DType::kBool, x.device()));
  OFL_RETURN_IF_ERROR(ScatterPlaces(hit, 0, s.index, Scalar(true), true).status());
  if (x.ndim() == 0) return Reshape(hit, {});
  Dims shape(x.ndim() - axis, 1);
  shape[0] = -1;
  return Reshape(hit, shape);
}

// Whether slices of a number are written instead of a mask of all being read: they are at most half
// of the dim, and the number has no gradient to be counted once for a place that is named twice.
bool FillsSlices(const Tensor& x, int64_t dim, const Tensor& index, const Operand& value) {
  const Scalar* number = std::get_if<Scalar>(&value);
  if (!number || !x.defined() || !index.defined() || GlobalOf(x)) return false;
  const int64_t axis = dim < 0 ? dim + x.ndim() : dim;
  if (axis < 0 || axis >= x.ndim() || index.numel() > x.shape()[axis] / 2) return false;
  const bool fits = IsFloating(x.dtype()) || (x.dtype() != DType::kBool && !number->is_float());
  return fits && CheckFits("", *number, x.dtype()).ok();
}
StatusOr<Tensor> FillSlices(const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                            const Operand& value) {
  OFL_ASSIGN_OR_RETURN(const Slices s, SlicesOf(name, self, dim, index));
  Shape shape = s.self.shape();
  shape[static_cast<int>(s.axis)] = s.index.numel();
  OFL_ASSIGN_OR_RETURN(Tensor number,
                       Full(Dims{}, std::get<Scalar>(value), self.dtype(), self.device()));
  OFL_ASSIGN_OR_RETURN(number, Expand(number, shape));
  return CopySlices(name, self, dim, s.index, number);
}

}  // namespace

StatusOr<Tensor> IndexAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                          const Scalar& alpha) {
  OFL_ASSIGN_OR_RETURN(const Tensor y, Clone(x));
  return AddInto("index_add", y, dim, index, src, alpha);
}
StatusOr<Tensor> IndexAddInto(const Tensor& self, int64_t dim, const Tensor& index,
                              const Tensor& src, const Scalar& alpha) {
  return AddInto("index_add_", self, dim, index, src, alpha);
}
StatusOr<Tensor> IndexCopy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  OFL_ASSIGN_OR_RETURN(const Tensor y, Clone(x));
  return CopySlices("index_copy", y, dim, index, src);
}
StatusOr<Tensor> IndexCopyInto(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src) {
  return CopySlices("index_copy_", self, dim, index, src);
}
StatusOr<Tensor> IndexFill(const Tensor& x, int64_t dim, const Tensor& index,
                           const Operand& value) {
  if (FillsSlices(x, dim, index, value)) {
    OFL_ASSIGN_OR_RETURN(const Tensor y, Clone(x));
    return FillSlices("index_fill", y, dim, index, value);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor hit, Named("index_fill", x, dim, index));
  return MaskedFill(x, hit, value);
}
StatusOr<Tensor> IndexFillInto(const Tensor& self, int64_t dim, const Tensor& index,
                               const Operand& value) {
  if (FillsSlices(self, dim, index, value))
    return FillSlices("index_fill_", self, dim, index, value);
  OFL_ASSIGN_OR_RETURN(const Tensor hit, Named("index_fill_", self, dim, index));
  OFL_ASSIGN_OR_RETURN(const Tensor filled, MaskedFill(self, hit, value));
  return CopyInto(self, filled);
}

StatusOr<Tensor> IndexSum(const Tensor& x, int64_t dim, const Tensor& index, int64_t size,
                          int64_t skipped, bool from_end) {
  static const OpExpr& op = OpBuilder("index_sum")
                                .Input("in")
                                .Input("index")
                                .Output("out")
                                .Attr("dim")
                                .Attr("size")
                                .Attr("skipped")
                                .Attr("from_end")
                                .Get();
  return Call(op, {x, index}, {dim, size, skipped, from_end});
}

namespace {

// The op on memory in its own order: the dims of x sorted by their strides, and back.
StatusOr<Tensor> SelectInOrder(const Tensor& x, int64_t axis, const Tensor& places, int64_t skipped,
                               bool from_end = false) {
  static const OpExpr& op = OpBuilder("index_select")
                                .Input("in")
                                .Input("index")
                                .Output("out")
                                .Attr("dim")
                                .Attr("skipped")
                                .Attr("from_end")
                                .Get();
  if (x.is_contiguous()) return Call(op, {x, places}, {axis, skipped, from_end});
  const Dims order = OrderOf(x);
  if (std::is_sorted(order.begin(), order.end())) {
    return Call(op, {x, places}, {axis, skipped, from_end});
  }
  const Dims back = Inverse(order);
  OFL_ASSIGN_OR_RETURN(const Tensor sorted, Permute(x, order));
  OFL_ASSIGN_OR_RETURN(const Tensor y, Call(op, {sorted, places}, {back[axis], skipped, from_end}));
  return Permute(y, back);
}

}  // namespace

StatusOr<Tensor> SelectPlaces(const Tensor& x, int64_t dim, const Tensor& index, bool from_end) {
  if (!x.defined()) return NotDefined("index_select", "input");
  if (!index.defined()) return NotDefined("index_select", "index");
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim("index_select", dim, x));
  return SelectInOrder(x, axis, index, -1, from_end);
}

StatusOr<Tensor> IndexSelect(const Tensor& x, int64_t dim, const Tensor& selected) {
  constexpr char kName[] = "index_select";
  if (!x.defined()) return NotDefined(kName, "input");
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(kName, dim, x));
  if (!selected.defined()) return NotDefined(kName, "index");
  if (selected.ndim() > 1) {
    return ShapeMismatch(kName, "index", selected.shape(), "at most 1 dim");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor places, LineOf(kName, selected));
  if (x.ndim() > 0) return SelectInOrder(x, axis, places, -1);
  OFL_ASSIGN_OR_RETURN(const Tensor line, Unsqueeze(x, 0));
  OFL_ASSIGN_OR_RETURN(const Tensor y, SelectInOrder(line, 0, places, -1));
  return Reshape(y, {});
}

StatusOr<Tensor> Embedding(const Tensor& index, const Tensor& weight,
                           std::optional<int64_t> padding_idx) {
  if (!weight.defined()) return NotDefined("embedding", "weight");
  if (!index.defined()) return NotDefined("embedding", "input");
  if (weight.ndim() != 2) return ShapeMismatch("embedding", "weight", weight.shape(), "2 dims");
  const int64_t n = weight.shape()[0];
  if (padding_idx && (*padding_idx < -n || *padding_idx >= n)) {
    return Error(ErrorKind::kIndex, "embedding(): padding_idx ", *padding_idx, " is out of range [",
                 -n, ", ", n - 1, "] for ", n, " rows");
  }
  if (!IsIntegral(index.dtype())) {
    return DTypeMismatch("embedding", "input", index.dtype(), "an integer dtype");
  }
  OFL_ASSIGN_OR_RETURN(Tensor flat, Cast(index, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(flat, Reshape(flat, {-1}));
  const int64_t padding = padding_idx.value_or(-1);
  StatusOr<Tensor> rows =
      SelectInOrder(weight, 0, flat, padding_idx && padding < 0 ? padding + n : padding);
  if (!rows.ok()) return Renamed("embedding", rows.status());
  Dims shape = index.shape().dims();
  shape.push_back(weight.shape()[1]);
  return Reshape(*rows, shape);
}

StatusOr<Tensor> TakeAlongDim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  constexpr char kName[] = "take_along_dim";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!indices.defined()) return NotDefined(kName, "indices");
  if (!IsIntegral(indices.dtype())) {
    return DTypeMismatch(kName, "indices", indices.dtype(), "an integer dtype");
  }
  OFL_ASSIGN_OR_RETURN(Tensor places, Cast(indices, DType::kInt64));
  if (!dim) {
    OFL_ASSIGN_OR_RETURN(const Tensor line, Reshape(x, {-1}));
    OFL_ASSIGN_OR_RETURN(places, Reshape(places, {-1}));
    return TakeAlongDim(line, places, 0);
  }
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(kName, *dim, x));
  if (x.ndim() != places.ndim()) {
    return ShapeMismatch(kName, "indices", places.shape(),
                         absl::StrCat("as many dims as ", x.shape().ToString()));
  }
  if (x.ndim() == 0) {
    OFL_ASSIGN_OR_RETURN(const Tensor line, Unsqueeze(x, 0));
    OFL_ASSIGN_OR_RETURN(places, Unsqueeze(places, 0));
    OFL_ASSIGN_OR_RETURN(const Tensor y, TakeAlongDim(line, places, 0));
    return Reshape(y, {});
  }
  Dims from = x.shape().dims(), to = places.shape().dims();
  for (int d = 0; d < x.ndim(); ++d) {
    if (d == axis || from[d] == to[d]) continue;
    if (from[d] != 1 && to[d] != 1) {
      return Error(ErrorKind::kShape, kName, "(): the shapes ", x.shape().ToString(), " and ",
                   places.shape().ToString(), " do not broadcast but for dim ", axis);
    }
    from[d] = to[d] = from[d] == 1 ? to[d] : from[d];
  }
  const int64_t size = x.shape()[static_cast<int>(axis)];
  OFL_RETURN_IF_ERROR(CheckPlaces(kName, places, axis, size));
  OFL_ASSIGN_OR_RETURN(places, Expand(places, to));
  OFL_ASSIGN_OR_RETURN(const Tensor whole, Expand(x, from));
  return GatherPlaces(whole, axis, places, true);
}

StatusOr<Tensor> Take(const Tensor& x, const Tensor& index) {
  if (!x.defined()) return NotDefined("take", "input");
  if (!index.defined()) return NotDefined("take", "index");
  if (!IsIntegral(index.dtype())) {
    return DTypeMismatch("take", "index", index.dtype(), "an integer dtype");
  }
  OFL_ASSIGN_OR_RETURN(const Tensor line, Reshape(x, {-1}));
  OFL_ASSIGN_OR_RETURN(Tensor places, Cast(index, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(places, Reshape(places, {-1}));
  OFL_RETURN_IF_ERROR(CheckPlaces("take", places, 0, line.numel()));
  OFL_ASSIGN_OR_RETURN(const Tensor y, SelectPlaces(line, 0, places, true));
  return Reshape(y, index.shape());
}

namespace {

// x with a dim replaced by the dims of the index.
Dims ShapeAround(const Tensor& x, int64_t dim, const Shape& index) {
  Dims shape = x.shape().dims();
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, index.dims().begin(), index.dims().end());
  return shape;
}

// Places of a dim as a line, looked at; `source_dim` is the dim in messages.
StatusOr<Tensor> PlacesOfDim(const Tensor& x, int64_t dim, const Tensor& index,
                             int64_t source_dim) {
  constexpr char kName[] = "index";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!index.defined()) return NotDefined(kName, "index");
  if (x.ndim() == 0)
    return Error(ErrorKind::kIndex, kName, "(): a tensor without dims has no places");
  if (dim < 0 || dim >= x.ndim()) return DimOutOfRange(kName, dim, x);
  if (!IsIntegral(index.dtype())) {
    return DTypeMismatch(kName, "index", index.dtype(), "an integer dtype");
  }
  OFL_ASSIGN_OR_RETURN(Tensor places, Cast(index, DType::kInt64));
  if (places.ndim() != 1) {
    OFL_ASSIGN_OR_RETURN(places, Reshape(places, {-1}));
  }
  OFL_RETURN_IF_ERROR(CheckPlaces(kName, places, source_dim, x.shape()[static_cast<int>(dim)]));
  return places;
}

}  // namespace

StatusOr<Tensor> IndexFirst(const Tensor& x, const Tensor& index) {
  return IndexDim(x, 0, index, 0);
}

StatusOr<Tensor> IndexDim(const Tensor& x, int64_t dim, const Tensor& index, int64_t source_dim) {
  OFL_ASSIGN_OR_RETURN(const Tensor places, PlacesOfDim(x, dim, index, source_dim));
  OFL_ASSIGN_OR_RETURN(const Tensor y, SelectPlaces(x, dim, places, true));
  return index.ndim() == 1 ? StatusOr<Tensor>(y) : Reshape(y, ShapeAround(x, dim, index.shape()));
}

StatusOr<Tensor> IndexDimInto(const Tensor& x, int64_t dim, const Tensor& index,
                              const Tensor& value, int64_t source_dim, bool accumulate) {
  Tensor places = index;
  if (!x.defined()) return NotDefined("index", "self");
  if (!value.defined()) return NotDefined("index", "value");
  if (dim < 0 || dim >= x.ndim()) return DimOutOfRange("index", dim, x);
  if (index.ndim() != 1 || source_dim != dim) {  // else what writes looks at them
    OFL_ASSIGN_OR_RETURN(places, PlacesOfDim(x, dim, index, source_dim));
  }
  OFL_ASSIGN_OR_RETURN(Tensor source, ValueFor(value, x, ShapeAround(x, dim, index.shape())));
  if (index.ndim() != 1) {
    OFL_ASSIGN_OR_RETURN(source, Reshape(source, ShapeAround(x, dim, places.shape())));
  }
  return accumulate ? AddInto("index_add_", x, dim, places, source, Scalar(1))
                    : CopySlices("index_copy_", x, dim, places, source);
}

StatusOr<Tensor> ValueFor(const Tensor& value, const Tensor& x, const Dims& shape) {
  OFL_ASSIGN_OR_RETURN(Tensor source, To(value, x.device(), x.dtype()));
  while (source.ndim() > static_cast<int>(shape.size()) && source.shape()[0] == 1) {
    OFL_ASSIGN_OR_RETURN(source, Select(source, 0, 0));
  }
  return source.shape() == Shape(shape) ? StatusOr<Tensor>(source) : Expand(source, shape);
}

OFL_REGISTER_FUNCTION("index_select(Tensor input, int dim, Tensor index) -> Tensor", IndexSelect,
                      kMethod,
                      "The slices along dim at the places of a 1-D index (integers); see "
                      "gather for places\nout of range.");
OFL_REGISTER_FUNCTION(
    "embedding(Tensor input, Tensor weight, int? padding_idx=None) -> Tensor", Embedding, kFunction,
    "The rows of weight [n, d] that input (integers, any shape) names: [*input, d]; the row\n"
    "padding_idx gets no gradient. See gather for places out of range.");
OFL_REGISTER_FUNCTION(
    "index_add(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    IndexAdd, kMethod,
    "input with alpha times the slices of source added at the places of a 1-D index along dim: "
    "one\n"
    "slice for each place, in source's dim too; a place named twice gets both. A negative place\n"
    "counts from the end; one out of range is an IndexError on the CPU, on CUDA nothing goes "
    "there.");
OFL_REGISTER_FUNCTION(
    "index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
    "Tensor",
    IndexAddInto, kMethodOnly, "index_add, in place.");
OFL_REGISTER_FUNCTION(
    "index_copy(Tensor input, int dim, Tensor index, Tensor source) -> Tensor", IndexCopy, kMethod,
    "input with the slices of source at the places of a 1-D index along dim; see index_add.");
OFL_REGISTER_FUNCTION(
    "index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor", IndexCopyInto,
    kMethodOnly, "index_copy, in place.");
OFL_REGISTER_FUNCTION(
    "index_fill(Tensor input, int dim, Tensor index, Operand value) -> Tensor", IndexFill, kMethod,
    "input with a number, or a tensor of 0 dims, in the slices at the places of a 1-D index along\n"
    "dim.");
OFL_REGISTER_FUNCTION(
    "index_fill_(Tensor(a!) self, int dim, Tensor index, Operand value) -> Tensor", IndexFillInto,
    kMethodOnly, "index_fill, in place.");
OFL_REGISTER_FUNCTION(
    "take_along_dim(Tensor input, Tensor indices, int? dim=None) -> Tensor", TakeAlongDim, kMethod,
    "gather, with the other dims broadcast; without a dim from the flat tensor. Negative places\n"
    "count from the end.");
OFL_REGISTER_FUNCTION("take(Tensor input, Tensor index) -> Tensor", Take, kMethod,
                      "The elements of the flat tensor at the places, in the shape of index.");

}  // namespace oneflow_lite::functional
