// SPDX-License-Identifier: Apache-2.0
//
// attention, attention_packed and their gradients: tells the device's primitive where the heads of
// each tensor lie. Those of a packed one are parts of it.
#include "primitive/attention.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/deterministic.h"
#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int kScale = 0, kCausal = 1, kDropout = 2, kSeed = 3, kOffset = 4;
constexpr int kHeads = 5, kKvHeads = 6;

// 16-bit elements on CUDA go in packs of 16 bytes.
int64_t PackOf(const Tensor& t) {
  return t.device().type == DeviceType::kCUDA && SizeOf(t.dtype()) == 2 ? 8 : 1;
}

// Whether a head's elements lie in a row, its tokens apart, and all begin at a pack.
bool LiesInHeads(const Tensor& t) {
  const Shape& shape = t.shape();
  const Dims& strides = t.strides();
  const int64_t d = shape[3], pack = PackOf(t);
  if (d > 1 && strides[3] != 1) return false;
  if (shape[1] > 1 && strides[1] < std::max<int64_t>(1, d)) return false;
  for (int i = 0; i < 3; ++i) {
    if (shape[i] > 1 && (strides[i] < 0 || strides[i] % pack != 0)) return false;
  }
  return reinterpret_cast<uintptr_t>(t.data()) % (pack * SizeOf(t.dtype())) == 0;
}

// A dim of size 1 has the stride that it would have in a tensor without gaps, so that like calls
// look alike.
AttentionShape::Strides StridesOf(const Tensor& t) {
  const Shape& shape = t.shape();
  const Dims& strides = t.strides();
  AttentionShape::Strides s;
  s.head = shape[2] > 1 ? strides[2] : shape[3];
  s.token = shape[1] > 1 ? strides[1] : shape[2] * shape[3];
  s.batch = shape[0] > 1 ? strides[0] : shape[1] * s.token;
  return s;
}

// A part of a packed tensor: `heads` heads from head `first` on.
const void* HeadsFrom(const Tensor& t, int64_t first) {
  const int64_t stride = StridesOf(t).head;
  return static_cast<const char*>(t.data()) +
         first * stride * static_cast<int64_t>(SizeOf(t.dtype()));
}

void SetMask(const Tensor& mask, AttentionShape* s) {
  if (!mask.defined()) return;
  s->masked = true;
  for (int d = 0; d < 4; ++d) s->mask_strides[d] = mask.shape()[d] > 1 ? mask.strides()[d] : 0;
  s->mask_batches = mask.shape()[0];
  s->mask_heads = mask.shape()[1];
}

// Whether all begin at a multiple of 16 bytes.
bool AreAligned(std::initializer_list<const void*> pointers) {
  uintptr_t all = 0;
  for (const void* p : pointers) all |= reinterpret_cast<uintptr_t>(p);
  return all % 16 == 0;
}

// What one thread should have to do, in operations: some 10 us.
constexpr int64_t kWorkPerThread = 1 << 18;

void SetOptions(const KernelContext& c, AttentionShape* s) {
  s->scale = c.attr<double>(kScale);
  s->causal = static_cast<Causal>(c.attr<int64_t>(kCausal));
  s->dropout = c.attr<double>(kDropout);
  s->deterministic = DeterministicAlgorithms();
  const int64_t work = 2 * s->scores() * (s->head_dim + s->value_dim);
  s->parts = ParallelRanges(work, kWorkPerThread);
}

template <bool kPacked>
AttentionShape ShapeOf(const KernelContext& c, int first, const Tensor& out, const Tensor& mask) {
  const Tensor& q = c.input(first);
  AttentionShape s;
  s.batch = q.shape()[0];
  s.queries = q.shape()[1];
  s.head_dim = q.shape()[3];
  s.value_dim = out.shape()[3];
  s.q = StridesOf(q);
  if constexpr (kPacked) {
    s.heads = c.attr<int64_t>(kHeads);
    s.kv_heads = c.attr<int64_t>(kKvHeads);
    s.keys = s.queries;
    s.k = s.v = s.q;
  } else {
    const Tensor& k = c.input(first + 1);
    s.heads = q.shape()[2];
    s.kv_heads = k.shape()[2];
    s.keys = k.shape()[1];
    s.k = StridesOf(k);
    s.v = StridesOf(c.input(first + 2));
  }
  s.out = StridesOf(out);
  SetMask(mask, &s);
  SetOptions(c, &s);
  return s;
}

template <bool kPacked>
void SetOperands(const KernelContext& c, int first, AttentionInputs* in) {
  const Tensor& q = c.input(first);
  in->q = q.data();
  if constexpr (kPacked) {
    const int64_t heads = c.attr<int64_t>(kHeads);
    in->k = HeadsFrom(q, heads);
    in->v = HeadsFrom(q, heads + c.attr<int64_t>(kKvHeads));
  } else {
    in->k = c.input(first + 1).data();
    in->v = c.input(first + 2).data();
  }
}

template <bool kPacked>
class AttentionKernel final : public PrimitiveKernel<Attention> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &mask = c.input(kPacked ? 1 : 3), &out = c.output(0);
    AttentionShape shape = ShapeOf<kPacked>(c, 0, out, mask);
    AttentionInputs in{.mask = mask.defined() ? mask.data() : nullptr};
    SetOperands<kPacked>(c, 0, &in);
    shape.aligned = AreAligned({in.q, in.k, in.v, out.data()});
    OFL_ASSIGN_OR_RETURN(const uint64_t* shift, c.stream().RandomShift());
    const PhiloxState random{.seed = static_cast<uint64_t>(c.attr<int64_t>(kSeed)),
                             .offset = static_cast<uint64_t>(c.attr<int64_t>(kOffset)),
                             .shift = shift};
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, in, random, out.data(), c.output(1).data(),
                              c.output(2).data(), workspace);
  }
  bool takes_strides(int i, const Tensor& input, const Attrs&) const override {
    return i >= (kPacked ? 1 : 3) || LiesInHeads(input);
  }
};

template <bool kPacked>
class AttentionBackwardKernel final : public PrimitiveKernel<AttentionBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  static constexpr int kSaved = kPacked ? 2 : 4;  // out, lse, rng, mask

  Status Launch(KernelContext& c) const override {
    const Tensor &dout = c.input(0), &out = c.input(kSaved), &rng = c.input(kSaved + 2);
    const Tensor& mask = c.input(kSaved + 3);
    AttentionShape shape = ShapeOf<kPacked>(c, 1, out, mask);
    shape.dout = StridesOf(dout);
    AttentionInputs in{.mask = mask.defined() ? mask.data() : nullptr,
                       .dout = dout.data(),
                       .out = out.data(),
                       .lse = c.input(kSaved + 1).data(),
                       .rng = rng.defined() ? rng.data() : nullptr};
    SetOperands<kPacked>(c, 1, &in);
    shape.aligned = AreAligned({in.q, in.k, in.v, in.out});
    const void *dq = c.output(0).data(), *dk = nullptr, *dv = nullptr;
    shape.dq = StridesOf(c.output(0));
    if constexpr (kPacked) {
      shape.dk = shape.dv = shape.dq;
      dk = HeadsFrom(c.output(0), shape.heads);
      dv = HeadsFrom(c.output(0), shape.heads + shape.kv_heads);
    } else {
      shape.dk = StridesOf(c.output(1));
      shape.dv = StridesOf(c.output(2));
      dk = c.output(1).data();
      dv = c.output(2).data();
    }
    shape.gradients_aligned = AreAligned({in.dout, dq, dk, dv});
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, in, const_cast<void*>(dq), const_cast<void*>(dk),
                              const_cast<void*>(dv), workspace);
  }
  // dout, the operands and out; lse and rng come dense.
  bool takes_strides(int i, const Tensor& input, const Attrs&) const override {
    return i == kSaved + 3 || (i <= kSaved && LiesInHeads(input));
  }
};

template <class Kernel, int kMask, int kFirst>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  return BindKernel<Kernel>(c, {.dtype = c.inputs[kFirst], .mask_dtype = c.inputs[kMask]});
}

OFL_REGISTER_KERNEL({.op = "attention",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1111,
                     .bind = Bind<AttentionKernel<false>, 3, 0>});
OFL_REGISTER_KERNEL({.op = "attention_packed",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = Bind<AttentionKernel<true>, 1, 0>});
OFL_REGISTER_KERNEL({.op = "attention_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b10011111,
                     .bind = Bind<AttentionBackwardKernel<false>, 7, 1>});
OFL_REGISTER_KERNEL({.op = "attention_packed_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b100111,
                     .bind = Bind<AttentionBackwardKernel<true>, 5, 1>});

}  // namespace
}  // namespace oneflow_lite
