// SPDX-License-Identifier: Apache-2.0
//
// Operators for tensors of Python, past PyTorch's dispatcher: what python/torch/direct/module.c
// calls. Tensors go through PyTorch's stable functions for them. Releases before 2.14 lack these:
// there module.c gives a handle of a tensor, and what PyTorch's own bindings call makes an object
// of one.
//
// A function gives 0 and new references to its results, or another number where the call is one for
// the dispatcher: a device, layout or shape that the kernels do not serve, or an error, which the
// operator then words.
#include <dlfcn.h>

#include <limits>

#include "python/torch/bindings/operators.h"

extern "C" {
// Of torch/csrc/stable/c/shim.h, where a later release is built for.
__attribute__((weak)) AOTITorchError torch_tensor_from_pyobject(void* object,
                                                                AtenTensorHandle* ret);
__attribute__((weak)) AOTITorchError torch_tensor_to_pyobject(AtenTensorHandle tensor, void* type,
                                                              void** ret);
}

namespace oneflow_lite::torch_ops {
namespace {

// Python's lock: given away while much is computed.
struct Lock {
  void* (*release)() = nullptr;
  void (*take)(void*) = nullptr;
} lock;
int (*is_cast)() = nullptr;  // whether autocast is on
// Before 2.14: a handle, which is the caller's, of a tensor of Python; and a new reference to the
// tensor of Python for a handle. Null with an error of Python.
void* (*to_handle)(void* object) = nullptr;
void* (*to_object)(AtenTensorHandle tensor) = nullptr;
constexpr int64_t kMuch = 1 << 13;  // elements; releasing the lock costs as much as a few hundred

class Unlocked {
 public:
  explicit Unlocked(bool much) : state_(much ? lock.release() : nullptr) {}
  ~Unlocked() {
    if (state_) lock.take(state_);
  }
  Unlocked(const Unlocked&) = delete;

 private:
  void* state_;
};

// A call for the dispatcher.
struct NotHere {};

Tensor FromPython(void* object) {
  AtenTensorHandle handle = nullptr;
  if (!torch_tensor_from_pyobject) {
    handle = static_cast<AtenTensorHandle>(to_handle(object));
    if (!handle) throw NotHere();
  } else if (torch_tensor_from_pyobject(object, &handle) != AOTI_TORCH_SUCCESS) {
    throw NotHere();
  }
  return Tensor(handle);
}
OptionalTensor MaybeFromPython(void* object) {
  return object ? OptionalTensor(FromPython(object)) : OptionalTensor();
}
void* ToPython(const Tensor& t) {
  void* object = nullptr;
  if (torch_tensor_to_pyobject) {
    if (torch_tensor_to_pyobject(t.get(), nullptr, &object) != AOTI_TORCH_SUCCESS) throw NotHere();
    return object;
  }
  object = to_object(t.get());
  if (!object) throw NotHere();
  return object;
}
void* MaybeToPython(const OptionalTensor& t) { return t ? ToPython(*t) : nullptr; }

// What the dispatcher looks at for the kernels: other devices, tensors without memory. Operators
// check for themselves what is read beside their input.
void CheckHere(const TensorInfo& x) {
  if (!x.placed || !x.known || !x.data) throw NotHere();
}
// Rows of one element and others that lie apart may be views of complex numbers, whose sign is a
// flag.
void CheckPlain(const TensorInfo& x) {
  CheckHere(x);
  if ((SizeOf(x.dtype) == 2 && is_cast()) || x.ndim == 0 || x.sizes[x.ndim - 1] < 2 ||
      !IsContiguous(x)) {
    throw NotHere();
  }
}
void CheckColumn(const std::optional<TensorInfo>& column, int64_t cols) {
  if (!column) return;
  CheckPlain(*column);
  if (column->ndim != 1 || column->sizes[0] != cols) throw NotHere();
}

ScalarType TypeOf(oneflow_lite::DType dtype) {
  switch (dtype) {
    case oneflow_lite::DType::kFloat16:
      return ScalarType::Half;
    case oneflow_lite::DType::kBFloat16:
      return ScalarType::BFloat16;
    case oneflow_lite::DType::kFloat64:
      return ScalarType::Double;
    default:
      return ScalarType::Float;
  }
}

template <class F>
int Guarded(F&& f) {
  try {
    f();
    return 0;
  } catch (...) {
    return 1;
  }
}

}  // namespace
}  // namespace oneflow_lite::torch_ops

using namespace oneflow_lite::torch_ops;  // what follows has names of C

#define OFL_DIRECT extern "C" __attribute__((visibility("default"))) int

// handle_of: see to_handle; null where PyTorch has stable functions.
OFL_DIRECT ofl_direct_open(void* (*release)(), void (*take)(void*), int (*autocast)(),
                           void* (*handle_of)(void*)) {
  lock = {release, take};
  is_cast = autocast;
  if (torch_tensor_from_pyobject && torch_tensor_to_pyobject) return 0;
  to_handle = handle_of;
  void* const library = dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD);
  // THPVariable_Wrap(const at::TensorBase&); a handle is the address of a tensor.
  void* const wrap = library ? dlsym(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE") : nullptr;
  to_object = reinterpret_cast<decltype(to_object)>(wrap);
  return to_handle && to_object ? 0 : 1;
}

OFL_DIRECT ofl_direct_softmax(void* x, int64_t dim, int log, int invariant, void** y) {
  return Guarded([&] {
    const Tensor input = FromPython(x);
    const TensorInfo info(input);
    CheckPlain(info);
    Tensor result = [&] {
      const Unlocked unlocked(info.numel() >= kMuch);
      return SoftmaxOf(input, info, dim, log, false, invariant);
    }();
    *y = ToPython(result);
  });
}

OFL_DIRECT ofl_direct_softmax_backward(void* dy, void* y, int64_t dim, int log, int invariant,
                                       void** dx) {
  return Guarded([&] {
    const Tensor gradient = FromPython(dy), output = FromPython(y);
    const TensorInfo of_gradient(gradient), of_output(output);
    CheckPlain(of_gradient);
    CheckPlain(of_output);
    Tensor result = [&] {
      const Unlocked unlocked(of_output.numel() >= kMuch);
      return SoftmaxGradientOf(gradient, of_gradient, output, of_output, dim, log, invariant);
    }();
    *dx = ToPython(result);
  });
}

// Over the last dim, of `cols` elements. eps: NaN stands for PyTorch's of rms_norm. The statistics
// of `out`, mean and rstd, are made where they are asked for.
OFL_DIRECT ofl_direct_norm(void* x, void* weight, void* bias, int64_t cols, double eps, int centre,
                           int invariant, int statistics, void** out) {
  return Guarded([&] {
    const Tensor tensor = FromPython(x);
    const OptionalTensor w = MaybeFromPython(weight), b = MaybeFromPython(bias);
    const NormInput input(tensor, Address(w), Address(b));
    const TensorInfo& info = input.of_x;
    CheckPlain(info);
    if (info.sizes[info.ndim - 1] != cols) throw NotHere();
    CheckColumn(input.of_weight, cols);
    CheckColumn(input.of_bias, cols);
    if (eps != eps) {
      eps = info.dtype == oneflow_lite::DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                        : std::numeric_limits<float>::epsilon();
    }
    const NormOutputs found = [&] {
      const Unlocked unlocked(info.numel() >= kMuch);
      return NormOf(input, centre, 1, eps, invariant, statistics);
    }();
    *out++ = ToPython(found.y);
    if (found.mean) *out++ = ToPython(*found.mean);
    if (found.rstd) *out++ = ToPython(*found.rstd);
  });
}

// given: dy, x, mean, rstd, weight, bias, of which layer_norm alone has a mean and may have a bias.
// The gradients of x, weight and bias, where they are needed.
OFL_DIRECT ofl_direct_norm_backward(void* const* given, int centre, int invariant, const int* needs,
                                    void** out) {
  return Guarded([&] {
    const Tensor dy = FromPython(given[0]), x = FromPython(given[1]), rstd = FromPython(given[3]);
    const OptionalTensor mean = MaybeFromPython(given[2]);
    const OptionalTensor w = MaybeFromPython(given[4]), b = MaybeFromPython(given[5]);
    const NormInput input(x, Address(w), Address(b));
    const TensorInfo gradient(dy), &info = input.of_x;
    CheckPlain(info);
    CheckPlain(gradient);
    const int64_t cols = info.sizes[info.ndim - 1];
    CheckColumn(input.of_weight, cols);
    CheckColumn(input.of_bias, cols);
    if ((centre && !mean) || (needs[1] && !w) || (needs[2] && !b)) throw NotHere();
    const NormGradients found = [&] {
      const Unlocked unlocked(info.numel() >= kMuch);
      return NormGradientsOf(input, centre, dy, gradient, Address(mean), rstd, 1,
                             {needs[0] != 0, needs[1] != 0, needs[2] != 0}, invariant);
    }();
    out[0] = MaybeToPython(found.dx);
    out[1] = MaybeToPython(found.dweight);
    out[2] = MaybeToPython(found.dbias);
  });
}

// reduction: 'n'one, 's'um or 'm'ean, of rows that one block adds up. wide: the loss is in the
// compute type, else in x's. out: the loss; where asked for, what backward needs, and the weight of
// a row in a mean.
OFL_DIRECT ofl_direct_loss(void* x, void* target, int64_t ignore_index, char reduction,
                           double smoothing, int wide, int invariant, int statistics, void** out) {
  return Guarded([&] {
    const Tensor logits = FromPython(x);
    const OptionalTensor targets = FromPython(target), none;
    const TensorInfo info(logits);
    CheckPlain(info);
    constexpr int64_t kRowsOfOneBlock = 1 << 16;
    const oneflow_lite::DType compute = oneflow_lite::ComputeType(info.dtype);
    const oneflow_lite::DType result = wide ? compute : info.dtype;
    const bool reduces = reduction != 'n';
    if (reduces ? info.sizes[0] > kRowsOfOneBlock : result != compute) throw NotHere();
    OptionalTensor value, stats, weight;
    {
      const Unlocked unlocked(info.numel() >= kMuch);
      std::tie(value, stats) =
          CrossEntropyForward(logits, *targets, ignore_index, smoothing, invariant);
      if (reduces) {
        const OptionalTensor& counted = reduction == 'm' ? targets : none;
        std::tie(value, weight) = ReduceLossOf(*value, counted, ignore_index, TypeOf(result));
      }
    }
    out[0] = ToPython(*value);
    if (!statistics) return;
    out[1] = ToPython(*stats);
    if (reduction == 'm') out[2] = ToPython(*weight);
  });
}

// dloss: one number, or one for each row.
OFL_DIRECT ofl_direct_loss_backward(void* x, void* target, void* stats, void* dloss,
                                    int64_t ignore_index, double smoothing, void** dx) {
  return Guarded([&] {
    const Tensor logits = FromPython(x), targets = FromPython(target);
    const Tensor numbers = FromPython(stats), gradient = FromPython(dloss);
    const TensorInfo info(logits);
    CheckPlain(info);
    Tensor result = [&] {
      const Unlocked unlocked(info.numel() >= kMuch);
      return CrossEntropyGradient(logits, targets, numbers, gradient, ignore_index, smoothing);
    }();
    *dx = ToPython(result);
  });
}
