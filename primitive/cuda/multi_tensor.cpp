// SPDX-License-Identifier: Apache-2.0
#include "primitive/multi_tensor.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/optimizers/launch.h"

namespace oneflow_lite {
namespace {

class CudaMultiTensor final : public MultiTensor {
 public:
  explicit CudaMultiTensor(cuda::MultiTensorLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, const MultiTensorProblem& problem,
                absl::Span<const MultiTensors> tensors) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(problem, tensors.data(), static_cast<int64_t>(tensors.size()), s);
    });
  }

 private:
  cuda::MultiTensorLauncher launcher_;
};

StatusOr<std::unique_ptr<MultiTensor>> NewMultiTensor(const MultiTensor::Spec& spec) {
  const cuda::MultiTensorLauncher launcher = cuda::FindMultiTensor(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(MultiTensor::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaMultiTensor>(launcher);
}

class CudaTensorNorms final : public TensorNorms {
 public:
  explicit CudaTensorNorms(const cuda::TensorNormsLaunchers& launchers) : launchers_(launchers) {}
  size_t WorkspaceBytes(absl::Span<const NormedTensor> tensors) const override {
    return static_cast<size_t>(
               launchers_.parts(tensors.data(), static_cast<int64_t>(tensors.size()))) *
           sizeof(double);
  }
  Status Launch(Stream& stream, double p, absl::Span<const NormedTensor> tensors, void* norms,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.launch(p, tensors.data(), static_cast<int64_t>(tensors.size()), norms,
                               static_cast<double*>(workspace), s);
    });
  }

 private:
  cuda::TensorNormsLaunchers launchers_;
};

StatusOr<std::unique_ptr<TensorNorms>> NewTensorNorms(const TensorNorms::Spec& spec) {
  const cuda::TensorNormsLaunchers launchers = cuda::FindTensorNorms(spec.dtype);
  if (!launchers.launch) return NoPrimitiveFor(TensorNorms::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaTensorNorms>(launchers);
}

const bool registered = RegisterPrimitive<MultiTensor>(DeviceType::kCUDA, &NewMultiTensor) &&
                        RegisterPrimitive<TensorNorms>(DeviceType::kCUDA, &NewTensorNorms);

}  // namespace
}  // namespace oneflow_lite
