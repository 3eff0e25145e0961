// SPDX-License-Identifier: Apache-2.0
//
// flip, roll, pad and its gradient, triangle: one pass each, forward and backward.
#include "functional/remap.h"

#include <algorithm>

#include "functional/repeat.h"
#include "functional/triangle.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/in_place.h"

namespace oneflow_lite {
namespace {

// Dims of input 0, none twice.
Status CheckDims(const InferContext& c, const Dims& dims, bool once) {
  const int64_t ndim = c.shape(0).ndim();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= ndim) {
      return Error(ErrorKind::kIndex, c.op(), "(): dim ", dims[i], " is out of range [0, ",
                   ndim - 1, "] for shape ", c.shape(0).ToString());
    }
    for (size_t j = 0; once && j < i; ++j) {
      if (dims[j] == dims[i]) {
        return BadValue(c.op(), "dims", ToString(dims), "without a dim that occurs twice");
      }
    }
  }
  return OkStatus();
}

// Split on every dim that `moves` says no of.
template <class F>
SbpSignatures SplitUnmoved(const SbpContext& c, F&& moves) {
  SbpSignatures out;
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    if (!moves(d)) out.push_back({{Sbp::Split(d)}, {Sbp::Split(d)}});
  }
  return out;
}
bool Has(const Dims& dims, int d) {
  for (const int64_t i : dims) {
    if (i == d) return true;
  }
  return false;
}
constexpr char kSplitUnmoved[] = "split on any dim that stays as it is";

void DefineFlip(OpDef& op) {
  op.Input("in").Output("out").Attr("dims", AttrType::kInts);
  op.doc = "The order of the elements along dims turned round.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckDims(c, c.attr<Dims>(0), /*once=*/true));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    return SplitUnmoved(c, [&](int d) { return Has(c.attrs.get<Dims>(0), d); });
  };
  op.sbp_text = kSplitUnmoved;
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, functional::Flip(c.grad(0), c.attr<Dims>(0)));
  };
}

void DefineRoll(OpDef& op) {
  op.Input("in").Output("out").Attr("shifts", AttrType::kInts).Attr("dims", AttrType::kInts);
  op.doc = "The elements moved along dims, round from the end to the start.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckDims(c, c.attr<Dims>(1), /*once=*/false));
    if (c.attr<Dims>(0).size() != c.attr<Dims>(1).size()) {
      return Error(ErrorKind::kValue, c.op(), "(): ", c.attr<Dims>(0).size(), " shifts for ",
                   c.attr<Dims>(1).size(), " dims");
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    return SplitUnmoved(c, [&](int d) { return Has(c.attrs.get<Dims>(1), d); });
  };
  op.sbp_text = kSplitUnmoved;
  op.backward = [](GradContext& c) -> Status {
    Dims back = c.attr<Dims>(0);
    // Of the smallest int64 there is no negative; all sizes are far below it.
    for (int64_t& shift : back) shift = -(shift % (int64_t{1} << 62));
    return c.Set(0, functional::RollAlong(c.grad(0), back, c.attr<Dims>(1)));
  };
}

Status CheckPad(const InferContext& c, const Shape& small, const Shape& large) {
  const Dims& widths = c.attr<Dims>(0);
  const std::string& mode = c.attr<std::string>(1);
  if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular") {
    return Error(ErrorKind::kValue, c.op(), "(): mode is \"", mode,
                 "\", but it must be \"constant\", \"reflect\", \"replicate\" or \"circular\"");
  }
  for (int d = 0; d < small.ndim(); ++d) {
    const int64_t size = small[d], before = widths[2 * d], after = widths[2 * d + 1];
    if (size < 0 || large[d] < 0 ||
        std::min<int64_t>(0, before) + std::min<int64_t>(0, after) + size < 0) {
      return Error(ErrorKind::kValue, c.op(), "(): ", before, " and ", after, " cut more than dim ",
                   d, " of size ", size, " has");
    }
    if (mode == "constant" || (before == 0 && after == 0)) continue;
    const int64_t most = mode == "reflect"    ? size - 1
                         : mode == "circular" ? size
                         : size > 0           ? INT64_MAX
                                              : 0;
    if (std::max(before, after) > most) {
      return Error(ErrorKind::kValue, c.op(), "(): mode \"", mode, "\" adds at most ", most,
                   " to a dim of size ", size, ", not ", before, " and ", after);
    }
  }
  return OkStatus();
}

// Input 0's shape with the widths added, or taken away.
StatusOr<Shape> Widened(const InferContext& c, int sign) {
  const Dims& widths = c.attr<Dims>(0);
  Shape shape = c.shape(0);
  if (widths.size() != 2 * static_cast<size_t>(shape.ndim())) {
    return BadValue(c.op(), "widths", ToString(widths), "two for each dim");
  }
  for (int d = 0; d < shape.ndim(); ++d) {
    for (const int64_t width : {widths[2 * d], widths[2 * d + 1]}) {
      if (__builtin_add_overflow(shape[d], sign * width, &shape[d])) shape[d] = INT64_MAX;
    }
  }
  return shape;
}

bool IsPadded(const Dims& widths, int d) { return widths[2 * d] != 0 || widths[2 * d + 1] != 0; }

void AddPadSignatures(OpDef& op) {
  op.sbp = [](const SbpContext& c) {
    return SplitUnmoved(c, [&](int d) { return IsPadded(c.attrs.get<Dims>(0), d); });
  };
  op.sbp_text = kSplitUnmoved;
}

void DefinePad(OpDef& op) {
  op.Input("in").Output("out").Attr("widths", AttrType::kInts);
  op.Attr("mode", AttrType::kString, std::string("constant"));
  op.Attr("value", AttrType::kScalar, Scalar(0));
  op.doc = "Something put before and after each dim; negative widths cut.";
  op.infer = [](InferContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(const Shape out, Widened(c, 1));
    OFL_RETURN_IF_ERROR(CheckPad(c, c.shape(0), out));
    OFL_RETURN_IF_ERROR(CheckFits(c.op(), c.attr<Scalar>(2), c.dtype(0)));
    c.SetOutput(0, out, c.dtype(0));
    return OkStatus();
  };
  AddPadSignatures(op);
  op.backward = [](GradContext& c) -> Status {
    const std::string& mode = c.attr<std::string>(1);
    if (mode != "constant") {
      return c.Set(0, functional::PadBackward(c.grad(0), c.attr<Dims>(0), mode));
    }
    Dims back = c.attr<Dims>(0);
    for (int64_t& width : back) width = -width;
    return c.Set(0, functional::PadDims(c.grad(0), back, mode, Scalar(0)));
  };
}

void DefinePadBackward(OpDef& op) {
  op.Input("dy").Output("dx").Attr("widths", AttrType::kInts).Attr("mode", AttrType::kString);
  op.doc = "The sum of dy over the elements that show each element of pad's input.";
  op.infer = [](InferContext& c) -> Status {
    if (!IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "dy", c.dtype(0), kFloatingDTypes);
    }
    OFL_ASSIGN_OR_RETURN(const Shape small, Widened(c, -1));
    OFL_RETURN_IF_ERROR(CheckPad(c, small, c.shape(0)));
    c.SetOutput(0, small, c.dtype(0));
    return OkStatus();
  };
  AddPadSignatures(op);
  op.backward = [](GradContext& c) -> Status {
    return c.Set(
        0, functional::PadDims(c.grad(0), c.attr<Dims>(0), c.attr<std::string>(1), Scalar(0)));
  };
}

void DefineTriangle(OpDef& op) {
  op.Input("in").Output("out").Attr("diagonal", AttrType::kInt, int64_t{0});
  op.Attr("lower", AttrType::kBool, true);
  op.doc = "Of the last two dims, what lies on a diagonal and below, or above, else 0.";
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(0).ndim() < 2) {
      return ShapeMismatch(c.op(), "input", c.shape(0), "at least 2 dims");
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    const int last = c.inputs[0].ndim() - 2;
    return SplitUnmoved(c, [&](int d) { return d >= last; });
  };
  op.sbp_text = "split on any dim but the last two";
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, c.attr<bool>(1) ? functional::Tril(c.grad(0), c.attr<int64_t>(0))
                                    : functional::Triu(c.grad(0), c.attr<int64_t>(0)));
  };
}

OFL_REGISTER_OP("flip", DefineFlip);
OFL_REGISTER_OP("roll", DefineRoll);
OFL_REGISTER_OP("pad", DefinePad);
OFL_REGISTER_OP("pad_backward", DefinePadBackward);
OFL_REGISTER_OP("triangle", DefineTriangle);
OFL_REGISTER_OP("triangle_", DefineInPlace<DefineTriangle>);

}  // namespace
}  // namespace oneflow_lite
