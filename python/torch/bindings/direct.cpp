// SPDX-License-Identifier: Apache-2.0
//
// Forwards for tensors of Python, past PyTorch's dispatcher: what python/torch/direct/module.c
// calls. Tensors go through PyTorch's stable functions for them, which releases before 2.14 lack.
//
// A function gives 0 and new references to its results, or another number where the call is one for
// the dispatcher: a device, layout or shape that the kernels do not serve, or an error, which the
// operator then words.
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
int (*is_cast)() = nullptr;         // whether autocast is on
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
  AtenTensorHandle handle;
  if (torch_tensor_from_pyobject(object, &handle) != AOTI_TORCH_SUCCESS) throw NotHere();
  return Tensor(handle);
}
OptionalTensor MaybeFromPython(void* object) {
  return object ? OptionalTensor(FromPython(object)) : OptionalTensor();
}
void* ToPython(const Tensor& t) {
  void* object;
  if (torch_tensor_to_pyobject(t.get(), nullptr, &object) != AOTI_TORCH_SUCCESS) throw NotHere();
  return object;
}

// What the dispatcher looks at for the kernels: other devices, tensors without memory. Rows of one
// element and others that lie apart may be views of complex numbers, whose sign is a flag.
void CheckPlain(const Tensor& t, const TensorInfo& x) {
  int32_t device;
  if (aoti_torch_get_device_type(t.get(), &device) != AOTI_TORCH_SUCCESS ||
      (device != aoti_torch_device_type_cpu() && device != aoti_torch_device_type_cuda()) ||
      !x.known || (SizeOf(x.dtype) == 2 && is_cast()) || !x.data || x.ndim == 0 ||
      x.sizes[x.ndim - 1] < 2 || !IsContiguous(x)) {
    throw NotHere();
  }
}

void CheckColumn(const OptionalTensor& t, int64_t cols) {
  if (!t) return;
  const TensorInfo column(*t);
  CheckPlain(*t, column);
  if (column.ndim != 1 || column.sizes[0] != cols) throw NotHere();
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

OFL_DIRECT ofl_direct_open(void* (*release)(), void (*take)(void*), int (*autocast)()) {
  lock = {release, take};
  is_cast = autocast;
  return torch_tensor_from_pyobject && torch_tensor_to_pyobject ? 0 : 1;
}

OFL_DIRECT ofl_direct_softmax(void* x, int64_t dim, int log, int invariant, void** y) {
  return Guarded([&] {
    const Tensor input = FromPython(x);
    const TensorInfo info(input);
    CheckPlain(input, info);
    Tensor result = [&] {
      const Unlocked unlocked(info.numel() >= kMuch);
      return SoftmaxOf(input, info, dim, log, false, invariant);
    }();
    *y = ToPython(result);
  });
}

// Over the last dim, of `cols` elements. eps: NaN stands for PyTorch's of rms_norm. The statistics
// of `out`, mean and rstd, are made where they are asked for.
OFL_DIRECT ofl_direct_norm(void* x, void* weight, void* bias, int64_t cols, double eps, int centre,
                           int invariant, int statistics, void** out) {
  return Guarded([&] {
    const Tensor input = FromPython(x);
    const OptionalTensor w = MaybeFromPython(weight), b = MaybeFromPython(bias);
    const TensorInfo info(input);
    CheckPlain(input, info);
    if (info.sizes[info.ndim - 1] != cols) throw NotHere();
    CheckColumn(w, cols);
    CheckColumn(b, cols);
    if (eps != eps) {
      eps = info.dtype == oneflow_lite::DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                        : std::numeric_limits<float>::epsilon();
    }
    OptionalTensor found[3];
    {
      const Unlocked unlocked(info.numel() >= kMuch);
      if (!statistics) {
        found[0] = centre ? LayerNormInference(input, w, b, 1, eps, invariant)
                          : RmsNormInference(input, w, 1, eps, invariant);
      } else if (centre) {
        std::tie(found[0], found[1], found[2]) = LayerNormForward(input, w, b, 1, eps, invariant);
      } else {
        std::tie(found[0], found[1]) = RmsNormForward(input, w, 1, eps, invariant);
      }
    }
    for (int i = 0; i < 3; ++i) out[i] = found[i] ? ToPython(*found[i]) : nullptr;
  });
}
