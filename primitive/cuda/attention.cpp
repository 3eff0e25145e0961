// SPDX-License-Identifier: Apache-2.0
//
// Attention on CUDA: cuDNN's fused kernels for float16 and bfloat16 where they serve the call, else
// products through the matmul primitive around rows of scores in memory.
#include "primitive/attention.h"

#include "primitive/cuda/attention/composed.h"
#include "primitive/cuda/attention/fused.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

using cuda::ComposedAttention;
using cuda::FusedAttention;

// The two of a dtype, and the choice between them.
struct Engines {
  FusedAttention fused;
  ComposedAttention composed;

  // Of cuDNN's launch. NotImplementedError where the composition is to serve, RuntimeError where
  // none can: the gradient must drop what the forward pass dropped, and each draws in its own way.
  StatusOr<size_t> FusedBytes(const Stream& stream, const AttentionShape& shape,
                              bool backward) const {
    if (backward && shape.dropout > 0) {
      OFL_RETURN_IF_ERROR(fused.WorkspaceBytes(stream, shape, /*backward=*/false).status());
      const auto bytes = fused.WorkspaceBytes(stream, shape, backward);
      if (bytes.ok() || KindOf(bytes.status()) != ErrorKind::kNotImplemented) return bytes;
      return Error(ErrorKind::kRuntime,
                   "attention_backward(): cuDNN drew what to drop, but cannot give the gradient: ",
                   std::string(bytes.status().message()));
    }
    return fused.WorkspaceBytes(stream, shape, backward);
  }

  size_t WorkspaceBytes(const Stream& stream, const AttentionShape& shape, bool backward) const {
    const auto bytes = FusedBytes(stream, shape, backward);
    if (bytes.ok()) return *bytes;
    if (KindOf(bytes.status()) != ErrorKind::kNotImplemented) return 0;  // Launch reports it
    return composed.WorkspaceBytes(stream, shape, backward);
  }

  // Calls by_fused or by_composed, and writes down which.
  template <class F, class G>
  Status Choose(const Stream& stream, const AttentionShape& shape, bool backward, F by_fused,
                G by_composed) const {
    const auto bytes = FusedBytes(stream, shape, backward);
    const bool serves = bytes.ok();
    if (!serves && KindOf(bytes.status()) != ErrorKind::kNotImplemented) return bytes.status();
    WithAttentionUse([&](AttentionUse& use) {
      if (serves) {
        ++use.library_calls;
      } else {
        ++use.composed_calls;
        use.composed_for = std::string(bytes.status().message());
      }
    });
    return serves ? by_fused() : by_composed();
  }
};

class CudaAttention final : public Attention {
 public:
  explicit CudaAttention(Engines engines) : engines_(std::move(engines)) {}

  size_t WorkspaceBytes(const Stream& stream, const AttentionShape& shape) const override {
    return engines_.WorkspaceBytes(stream, shape, /*backward=*/false);
  }
  Status Launch(Stream& stream, const AttentionShape& shape, const AttentionInputs& in,
                const PhiloxState& random, void* out, void* lse, void* rng,
                void* workspace) const override {
    if (shape.dropout > 0) {
      OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::LaunchAttentionSeed(random.seed, random.offset, random.shift,
                                         static_cast<uint64_t*>(rng), s);
      }));
    }
    AttentionInputs all = in;
    all.rng = rng;
    return engines_.Choose(
        stream, shape, /*backward=*/false,
        [&] { return engines_.fused.Forward(stream, shape, all, out, lse, workspace); },
        [&] { return engines_.composed.Forward(stream, shape, all, out, lse, workspace); });
  }

 private:
  const Engines engines_;
};

class CudaAttentionBackward final : public AttentionBackward {
 public:
  explicit CudaAttentionBackward(Engines engines) : engines_(std::move(engines)) {}

  size_t WorkspaceBytes(const Stream& stream, const AttentionShape& shape) const override {
    return engines_.WorkspaceBytes(stream, shape, /*backward=*/true);
  }
  Status Launch(Stream& stream, const AttentionShape& shape, const AttentionInputs& in, void* dq,
                void* dk, void* dv, void* workspace) const override {
    return engines_.Choose(
        stream, shape, /*backward=*/true,
        [&] { return engines_.fused.Backward(stream, shape, in, dq, dk, dv, workspace); },
        [&] { return engines_.composed.Backward(stream, shape, in, dq, dk, dv, workspace); });
  }

 private:
  const Engines engines_;
};

template <class Primitive, class Product>
StatusOr<std::unique_ptr<Primitive>> New(const Attention::Spec& spec) {
  const DType mask = spec.mask_dtype, dtype = spec.dtype;
  const bool wide = mask == DType::kFloat32 && SizeOf(dtype) == 2;
  if (!IsFloating(dtype) || (mask != DType::kBool && mask != dtype && !wide)) {
    return NoPrimitiveFor(Primitive::kName, DeviceType::kCUDA, dtype);
  }
  OFL_ASSIGN_OR_RETURN(FusedAttention fused, FusedAttention::Make(spec));
  OFL_ASSIGN_OR_RETURN(ComposedAttention composed, ComposedAttention::Make(spec));
  return std::make_unique<Product>(Engines{std::move(fused), std::move(composed)});
}

const bool registered =
    RegisterPrimitive<Attention>(DeviceType::kCUDA, &New<Attention, CudaAttention>) &&
    RegisterPrimitive<AttentionBackward>(DeviceType::kCUDA,
                                         &New<AttentionBackward, CudaAttentionBackward>);

}  // namespace
}  // namespace oneflow_lite
