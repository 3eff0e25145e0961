// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_elements.h"

#include <map>
#include <mutex>

#include "primitive/cuda/fused/rows_launch.h"
#include "primitive/cuda/host.h"
#include "primitive/fused_elements_source.h"
#include "primitive/nvrtc.h"

namespace oneflow_lite {
namespace {

constexpr int kThreads = 256;  // kFusedThreads

// What a kernel is kept by: the device, and the layout of the call.
std::string KeyOf(int device, const FusedLayout& l) {
  std::string key = absl::StrCat(device, " ", l.dims, " ", l.pack, " ", l.unroll, " ", l.is_long);
  for (const auto* forms : {&l.inputs, &l.outputs}) {
    for (const FusedOperandForm form : *forms)
      key += static_cast<char>('a' + static_cast<int>(form));
  }
  return key;
}

class CudaFusedElements final : public FusedElements {
 public:
  explicit CudaFusedElements(std::shared_ptr<const TypedExpression> e) : e_(std::move(e)) {}

  Status Launch(Stream& stream, absl::Span<const int64_t> shape, absl::Span<const Input> inputs,
                absl::Span<const Output> outputs) const override {
    const FusedGeometry g = MergeFusedDims(shape, inputs, outputs);
    if (g.numel == 0) return OkStatus();
    const FusedLayout layout = LayoutOf(*e_, g, inputs);
    OFL_ASSIGN_OR_RETURN(const void* kernel, KernelOf(stream, layout));
    std::vector<uint64_t> words = WordsOf(*e_, layout, g, inputs, outputs);
    const cuda::FusedRowsLaunch launch{
        .kernel = kernel,
        .blocks = cuda::CeilDiv(g.numel, int64_t{kThreads} * layout.pack * layout.unroll),
        .threads = kThreads,
        .cluster = 1,
        .shared = 0,
        .cooperative = false};
    void* arguments[] = {words.data()};
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return cuda::LaunchFusedRows(launch, arguments, s); });
  }

 private:
  // The kernel for a layout, compiled and loaded when it is first wanted; it stays loaded.
  StatusOr<const void*> KernelOf(const Stream& stream, const FusedLayout& layout) const {
    const std::string key = KeyOf(stream.device().index, layout);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
    }
    const FusedSource source = SourceOf(*e_, layout);
    OFL_ASSIGN_OR_RETURN(const auto compiled, CompileCuda(source.text, source.kernel,
                                                          stream.properties().compute_capability));
    const void* kernel = nullptr;
    OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t) {
      return cuda::LoadFusedRows(compiled->image.data(), compiled->name.c_str(), &kernel);
    }));
    const std::lock_guard lock(mutex_);
    return kernels_[key] = kernel;
  }

  std::shared_ptr<const TypedExpression> e_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, const void*> kernels_;
};

StatusOr<std::unique_ptr<FusedElements>> NewFusedElements(const FusedElements::Spec& spec) {
  return std::make_unique<CudaFusedElements>(spec.expression);
}

const bool registered = RegisterPrimitive<FusedElements>(DeviceType::kCUDA, &NewFusedElements);

}  // namespace
}  // namespace oneflow_lite
