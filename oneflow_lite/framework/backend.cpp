// SPDX-License-Identifier: Apache-2.0
//
// The end of the dispatch chain: infer, allocate, and launch the kernel (local), or stop after
// inference (meta).
#include <utility>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/argument_name.h"
#include "oneflow_lite/framework/destination.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"

namespace oneflow_lite {
namespace {

using Specs = absl::InlinedVector<TensorSpec, 4>;
using OutputSpecs = absl::InlinedVector<TensorSpec, 2>;

// Of the Destination of this thread; null: there is none, or an op has taken it.
[[gnu::tls_model("initial-exec")]] thread_local const Tensor* destination = nullptr;

bool IsScalarOperand(const OpDef& def, const Tensor& t) {
  return def.scalar_operands && t.ndim() == 0 && t.device().type == DeviceType::kCPU;
}

// The device that the op's Device attribute names, else the one of the inputs. `global`: the call
// is one of the global mode, which has a device per shard.
StatusOr<Device> ResolveDevice(const OpCall& call, bool* global) {
  const OpDef& def = call.op.def();
  const Tensor* first = nullptr;
  size_t first_index = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (!t.defined()) {
      if (i < def.inputs.size() && def.inputs[i].kind == InputDef::Kind::kOptional) continue;
      const ListDef* list = def.ListOf(i, call.inputs.size());
      if (list && list->optional) continue;
      return NotDefined(def.name, ArgumentName(def, i));
    }
    if (t.impl()->global_spec) {
      *global = true;
      return t.device();
    }
    if (t.ndim() > kMaxDims) {
      return Error(ErrorKind::kShape, def.name, "(): ", ArgumentName(def, i), " has ", t.ndim(),
                   " dims, but at most ", kMaxDims, " are supported");
    }
    if (def.device_attr >= 0) continue;
    if (!first) {
      first = &t;
      first_index = i;
    } else if (t.device() != first->device()) {
      if (IsScalarOperand(def, t)) continue;
      if (def.mutates() || !IsScalarOperand(def, *first)) {  // a mutated tensor stays where it is
        return DeviceMismatch(def.name, ArgumentName(def, first_index), first->device(),
                              ArgumentName(def, i), t.device());
      }
      first = &t;
      first_index = i;
    } else if (IsScalarOperand(def, *first) && !IsScalarOperand(def, t)) {
      first = &t;  // it says where the others must be
      first_index = i;
    }
  }
  if (def.device_attr >= 0) {
    const Device device = call.attrs.get<Device>(def.device_attr);
    const GlobalScope::Target* scope = call.inputs.empty() ? GlobalScope::Current() : nullptr;
    *global = scope && scope->placement->type() == device.type;
    return device;
  }
  if (first) return first->device();
  return Device{};
}

Status MakeView(OpCall& call) {
  const Tensor& base = call.inputs[0];
  OFL_ASSIGN_OR_RETURN(Geometry g, call.op.def().view(base, call.attrs));
  call.outputs->push_back(base.WithGeometry(std::move(g.shape), std::move(g.strides), g.offset));
  return OkStatus();
}

// An output that lies as the inputs do, where the op's kernels can write such ones.
Tensor LaidOutLikeInputs(const OpCall& call, Tensor out) {
  const auto dense = [](const Tensor& t) { return !t.defined() || t.is_contiguous(); };
  if (std::all_of(call.inputs.begin(), call.inputs.end(), dense)) return out;
  if (!internal::KeepsLayout(call.op.def().name)) return out;
  Dims strides = StridesLike(call.inputs, out.shape());
  return strides.empty() ? out : out.WithGeometry(out.shape(), std::move(strides), 0);
}

bool FitsDestination(const TensorSpec& spec, Device device) {
  return spec.shape == destination->shape() && spec.dtype == destination->dtype() &&
         device == destination->device();
}

Status AllocateOutputs(OpCall& call, Device device) {
  const OpDef& def = call.op.def();
  Specs inputs;
  inputs.reserve(call.inputs.size());
  for (const Tensor& t : call.inputs) inputs.push_back(SpecOf(t, device));
  OutputSpecs outputs(def.outputs.size());
  InferContext context(def.name, inputs, call.attrs, &outputs);
  OFL_RETURN_IF_ERROR(def.infer(context));
  size_t i = 0;
  if (def.mutates()) {
    if (outputs[0].shape != call.inputs[0].shape() || outputs[0].dtype != call.inputs[0].dtype()) {
      return Error(ErrorKind::kShape, def.name, "(): the result of shape ",
                   outputs[0].shape.ToString(), " (", Name(outputs[0].dtype),
                   ") cannot be written into ", Describe(call.inputs[0]));
    }
    call.outputs->push_back(call.inputs[0]);
    i = 1;
  } else if (call.overwrites && outputs[0].shape == call.inputs[0].shape() &&
             outputs[0].dtype == call.inputs[0].dtype()) {
    call.outputs->push_back(call.inputs[0]);
    i = 1;
  }
  const Device where = def.makes_outputs ? Device{DeviceType::kMeta, 0} : device;
  for (; i < outputs.size(); ++i) {
    if (!IsDType(outputs[i].dtype)) return CheckDType(def.name, outputs[i].dtype);
    if (destination && outputs.size() == 1 && FitsDestination(outputs[i], where)) {
      call.outputs->push_back(*std::exchange(destination, nullptr));
      call.outputs->back().storage()->BumpVersion();
      continue;
    }
    OFL_ASSIGN_OR_RETURN(Tensor out, Tensor::Empty(outputs[i].shape, outputs[i].dtype, where));
    call.outputs->push_back(LaidOutLikeInputs(call, std::move(out)));
  }
  return OkStatus();
}

StatusOr<Tensor> MakeContiguous(const Tensor& x) {
  static const OpExpr& cast = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
  TensorList outputs;
  const Attrs attrs{x.dtype()};
  OpCall call{cast, absl::MakeConstSpan(&x, 1), attrs, &outputs};
  OFL_RETURN_IF_ERROR(internal::DispatchBackend(call));
  return std::move(outputs[0]);
}

Status CopyInto(const Tensor& dst, const Tensor& src) {
  static const OpExpr& copy = OpBuilder("copy_").Input("self").Input("src").Output("out").Get();
  TensorList outputs;
  const Tensor inputs[] = {dst, src};
  const Attrs attrs;
  OpCall call{copy, inputs, attrs, &outputs};
  return internal::DispatchBackend(call);
}

// Whether an op that writes `self` may not read `t` meanwhile: the same memory in another order.
bool Overlaps(const Tensor& self, const Tensor& t) {
  return t.storage()->Overlaps(*self.storage()) &&
         !(t.data() == self.data() && t.strides() == self.strides() && t.shape() == self.shape());
}

Status CheckWritable(const OpDef& def, const Tensor& self) {
  for (int d = 0; d < self.ndim(); ++d) {
    if (self.strides()[d] == 0 && self.shape()[d] > 1) {
      return Error(ErrorKind::kRuntime, def.name, "(): ", Describe(self),
                   " has several elements in ",
                   "one place (expand) and cannot be written; clone it first");
    }
  }
  return OkStatus();
}

Status GaveUnasked(const OpDef& def) {
  return Error(
      ErrorKind::kRuntime, def.name, "(): the kernel gave an output (set_output) that ",
      def.makes_outputs ? "the op has not" : "is there: the op does not say makes_outputs");
}

inline Status Launch(const OpDef& def, const BoundKernel& kernel, KernelContext& context) {
  Status s = kernel.Launch(context);
  if (context.misplaced() && s.ok()) return GaveUnasked(def);
  return s;
}

// Runs a kernel that makes its outputs, and holds them against what infer said.
Status LaunchMaking(OpCall& call, const BoundKernel& kernel, absl::Span<const Tensor> inputs,
                    Stream& stream) {
  const OpDef& def = call.op.def();
  TensorList made(call.outputs->size());
  KernelContext context(inputs, *call.outputs, call.attrs, stream, &made);
  OFL_RETURN_IF_ERROR(Launch(def, kernel, context));
  for (size_t i = 0; i < made.size(); ++i) {
    const Tensor& want = (*call.outputs)[i];
    const bool shape_known = !def.data_dependent_shape;
    if (!made[i].defined() || made[i].dtype() != want.dtype() ||
        made[i].device() != stream.device() || GlobalOf(made[i]) ||
        (shape_known && made[i].shape() != want.shape())) {
      return Error(ErrorKind::kRuntime, def.name, "(): infer (", def.file, ":", def.line,
                   ") promised a tensor of shape ", want.shape().ToString(), " (",
                   Name(want.dtype()), ", ", stream.device().ToString(), ") as output ",
                   def.outputs[i], ", but the kernel gave ", Describe(made[i]),
                   made[i].defined() && GlobalOf(made[i]) ? " " + PlaceOf(made[i]) : "");
    }
  }
  *call.outputs = std::move(made);
  return OkStatus();
}

// Whether the first output is the first input, changed in place.
bool WritesInput(const OpCall& call) {
  return call.op.def().mutates() || (call.overwrites && (*call.outputs)[0].IsSame(call.inputs[0]));
}

// Launches with inputs made contiguous where the kernel wants that; a mutated tensor of other
// strides is computed aside and copied back.
Status LaunchKernel(OpCall& call, Device device) {
  const OpDef& def = call.op.def();
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  OFL_ASSIGN_OR_RETURN(const OpExpr::CachedKernel* kernel,
                       call.op.Kernel(device.type, call.inputs, *call.outputs));
  if (WritesInput(call)) OFL_RETURN_IF_ERROR(CheckWritable(def, call.inputs[0]));
  uint64_t copies = 0;  // bit i: input i is to be copied
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (!t.defined()) continue;
    const auto strided = [&, i = static_cast<int>(i)] {
      return i < 32 && (kernel->kernel->strided_inputs >> i & 1) &&
             kernel->bound->takes_strides(i, t, call.attrs);
    };
    const bool overlaps = def.mutates() && i > 0 && Overlaps(call.inputs[0], t);
    if ((!t.is_contiguous() && !strided()) || overlaps) copies |= Bit(static_cast<int>(i & 63));
  }
  if (copies == 0 && def.makes_outputs) {
    return LaunchMaking(call, *kernel->bound, call.inputs, *stream);
  }
  if (copies == 0) {
    KernelContext context(call.inputs, *call.outputs, call.attrs, *stream);
    return Launch(def, *kernel->bound, context);
  }
  absl::InlinedVector<Tensor, 4> inputs(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(copies >> (i & 63) & 1) || !inputs[i].defined()) continue;
    OFL_ASSIGN_OR_RETURN(inputs[i], MakeContiguous(inputs[i]));
  }
  if (def.makes_outputs) return LaunchMaking(call, *kernel->bound, inputs, *stream);
  TensorList outputs = *call.outputs;
  const bool aside = def.mutates() && (copies & Bit(0));
  if (aside) outputs[0] = inputs[0];
  KernelContext context(inputs, outputs, call.attrs, *stream);
  OFL_RETURN_IF_ERROR(Launch(def, *kernel->bound, context));
  return aside ? CopyInto((*call.outputs)[0], outputs[0]) : OkStatus();
}

// Launches an op over lists. Tensors of other strides are computed aside, and copied back where the
// op changes them.
Status LaunchOverLists(OpCall& call, Device device) {
  const OpDef& def = call.op.def();
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  OFL_ASSIGN_OR_RETURN(const OpExpr::CachedKernel* kernel,
                       call.op.Kernel(device.type, call.inputs, *call.outputs));
  TensorList inputs(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    if (def.MutatesInput(i, inputs.size())) OFL_RETURN_IF_ERROR(CheckWritable(def, inputs[i]));
    if (!inputs[i].is_contiguous()) {
      OFL_ASSIGN_OR_RETURN(inputs[i], MakeContiguous(inputs[i]));
    }
  }
  KernelContext context(inputs, *call.outputs, call.attrs, *stream);
  OFL_RETURN_IF_ERROR(Launch(def, *kernel->bound, context));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !def.MutatesInput(i, inputs.size())) continue;
    if (inputs[i].data() != call.inputs[i].data())
      OFL_RETURN_IF_ERROR(CopyInto(call.inputs[i], inputs[i]));
    call.inputs[i].storage()->BumpVersion();
  }
  return OkStatus();
}

}  // namespace

internal::Destination::Destination(const Tensor& out)
    : before_(std::exchange(destination, AnyMode() ? nullptr : &out)) {}
internal::Destination::~Destination() { destination = before_; }

Status internal::DispatchBackend(OpCall& call) {
  const OpDef& def = call.op.def();
  bool global = false;
  OFL_ASSIGN_OR_RETURN(Device device, ResolveDevice(call, &global));
  if (global) return DispatchGlobal(call);
  if (def.views()) return MakeView(call);
  OFL_RETURN_IF_ERROR(AllocateOutputs(call, device));
  if (!def.lists.empty()) {
    return device.type == DeviceType::kMeta ? OkStatus() : LaunchOverLists(call, device);
  }
  bool empty = !def.makes_outputs;
  for (const Tensor& t : *call.outputs) empty = empty && t.numel() == 0;
  if (device.type != DeviceType::kMeta && !empty) {
    const Tensor* const wanted = std::exchange(destination, nullptr);
    const Status s = LaunchKernel(call, device);
    destination = wanted;
    if (!s.ok()) return s;
  }
  if (WritesInput(call)) call.inputs[0].storage()->BumpVersion();
  return OkStatus();
}

}  // namespace oneflow_lite
