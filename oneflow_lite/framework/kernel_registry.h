// SPDX-License-Identifier: Apache-2.0
//
// Kernels: how an op runs on a kind of device. A kernel registers for one device type or for any;
// binding it to dtypes gives an object that owns its primitive and is cached by the op's OpExpr.
//
//   class SoftmaxKernel : public BoundKernel { ... Status Launch(KernelContext& c) override; };
//   OFL_REGISTER_KERNEL(KernelDef{.op = "softmax", .dtypes = kFloatingSet, .bind = BindSoftmax});
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oneflow_lite/core/stream.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/attr.h"

namespace oneflow_lite {

// A set of dtypes, bit i for the dtype of value i.
using DTypeSet = uint32_t;
constexpr DTypeSet SetOf(DType t) { return DTypeSet{1} << static_cast<int>(t); }
inline constexpr DTypeSet kFloatingSet = SetOf(DType::kFloat16) | SetOf(DType::kBFloat16) |
                                         SetOf(DType::kFloat32) | SetOf(DType::kFloat64);
inline constexpr DTypeSet kAllDTypes = (DTypeSet{1} << kNumDTypes) - 1;
inline constexpr DTypeSet kNumericSet = kAllDTypes & ~SetOf(DType::kBool);

// One launch: tensors, attributes, stream. Tensors are contiguous unless the kernel says it takes
// strides; an absent optional input is undefined. No output is empty.
class OFL_API KernelContext {
 public:
  KernelContext(absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs,
                const Attrs& attrs, Stream& stream, TensorList* made = nullptr)
      : inputs_(inputs), outputs_(outputs), attrs_(attrs), stream_(stream), made_(made) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Tensor& input(int i) const { return inputs_[i]; }
  const Tensor& output(int i) const { return outputs_[i]; }
  const Attrs& attrs() const { return attrs_; }
  template <class T>
  const T& attr(int i) const {
    return attrs_.get<T>(i);
  }
  Stream& stream() const { return stream_; }
  // The kernel of an op that makes its outputs gives them here; they are compared with infer's.
  // What other ops' kernels give, or an output that the op has not, is an error after the launch.
  void set_output(int i, Tensor t) {
    if (made_ && i >= 0 && static_cast<size_t>(i) < made_->size()) {
      (*made_)[i] = std::move(t);
    } else {
      misplaced_ = true;
    }
  }
  bool misplaced() const { return misplaced_; }
  // Scratch memory from the caching allocator, alive until the launch returns (and, on a stream,
  // until the work launched here has run). Null for 0 bytes. One call per launch.
  StatusOr<void*> Workspace(size_t nbytes);

 private:
  absl::Span<const Tensor> inputs_;
  absl::Span<const Tensor> outputs_;
  const Attrs& attrs_;
  Stream& stream_;
  TensorList* made_;
  bool misplaced_ = false;  // whether an output was given that is not wanted
  Ref<Storage> workspace_;
};

// A kernel bound to device type and dtypes. Thread-safe: Launch may run in several threads.
class OFL_API BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  virtual Status Launch(KernelContext& context) const = 0;
  // Whether input i may come with these strides; asked for the inputs in strided_inputs that are
  // not contiguous. Where not, the kernel gets a contiguous copy.
  virtual bool takes_strides(int i, const Tensor& input, const Attrs& attrs) const { return true; }
};

// What a kernel is bound to. The dtype of an absent input is that of input 0.
struct BindContext {
  DeviceType device;
  absl::InlinedVector<DType, 4> inputs;
  absl::InlinedVector<DType, 2> outputs;
};

struct KernelDef {
  std::string op;
  std::optional<DeviceType> device;  // absent: any device that has the primitive
  DTypeSet dtypes = kAllDTypes;      // of the first input, or of the first output where none
  uint32_t strided_inputs = 0;       // bit i: input i (or a mutated output) may have any strides
  std::function<StatusOr<std::unique_ptr<BoundKernel>>(const BindContext&)> bind;
  const char* file = "";
  int line = 0;
};

// RuntimeError where another kernel would match the same op, device and dtype.
OFL_API Status RegisterKernel(KernelDef kernel);
// NotImplementedError that names op, device and dtype and lists what there is.
OFL_API StatusOr<const KernelDef*> FindKernel(absl::string_view op, DeviceType device, DType dtype);
// All kernels of an op, for discovery.
OFL_API std::vector<const KernelDef*> ListKernels(absl::string_view op);
// "float16, float32"
OFL_API std::string ToString(DTypeSet set);

namespace internal {
// Takes back the kernels of an op after its first `keep`, which nobody has called yet.
OFL_API void EraseKernels(absl::string_view op, size_t keep);
OFL_API bool AppendKernel(KernelDef kernel, const char* file, int line);
}  // namespace internal

}  // namespace oneflow_lite

#define OFL_REGISTER_KERNEL(...)                                      \
  static const bool OFL_CONCAT(ofl_kernel_registered_, __COUNTER__) = \
      ::oneflow_lite::internal::AppendKernel(__VA_ARGS__, __FILE__, __LINE__)
