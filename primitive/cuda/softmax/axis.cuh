// SPDX-License-Identifier: Apache-2.0
//
// softmax over the middle axis of outer x axis x inner, forward and backward, without transposes.
//
//   LaunchSoftmaxAxis<false>(x, y, outer, axis, inner, limits, stream, workspace);
//
// Neither allocates nor synchronises. `workspace` is optional device memory of
// SoftmaxAxisWorkspaceBytes, aligned to 16 bytes, by which few long slabs spread over the device.
// Pointers are aligned to their element at least.
#pragma once

#include "primitive/cuda/axis/slab.cuh"
#include "primitive/cuda/axis/span.cuh"
#include "primitive/cuda/axis/stream.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/softmax/slab.cuh"

namespace oneflow_lite::cuda {

namespace internal {

template <class A>
AxisTraits AxisTraitsOf(int most_blocks) {
  using P = AxisPacks<A>;
  constexpr int kStatBytes = sizeof(typename A::Stat);
  return {A::N, P::kBytes, A::kInputs, P::kHeld, P::kMost, P::kFew, kStatBytes, most_blocks};
}

// The launch of work along the axis of outer x axis x inner.
struct AxisCall : LaunchSite {
  int64_t outer, axis, inner;
};

template <class A>
cudaError_t LaunchAxisStream(const A& a, const AxisPlan& plan, const AxisCall& call) {
  const auto launch = [&](AxisPhase phase) {
    const bool both = phase == AxisPhase::kBoth;
    return LaunchLarge<AxisStreamKernel<A>>(
        {both ? plan.blocks : 1}, plan.tiles * plan.blocks, plan.threads, plan.shared, call, a,
        plan.shape, phase, plan.blocks, static_cast<typename A::Stat*>(call.workspace));
  };
  if (plan.workspace > 0) {
    const cudaError_t error = launch(AxisPhase::kGather);
    return error != cudaSuccess ? error : launch(AxisPhase::kWrite);
  }
  return launch(AxisPhase::kBoth);
}

template <class A>
cudaError_t LaunchAxis(const A& a, const AxisCall& call) {
  const DeviceLimits& limits = call.limits;
  const cudaError_t error = AllowAllShared<AxisSlabKernel<A>>(limits);
  if (error != cudaSuccess) return error;
  const int most =
      MaxClusterBlocks<AxisSlabKernel<A>>(AxisPolicy::kMaxThreads, limits.shared_per_block, limits);
  const AxisPlan plan = ChooseAxisPlan(call.outer, call.axis, call.inner, AxisTraitsOf<A>(most),
                                       call.workspace != nullptr, limits);
  if (plan.streamed) return LaunchAxisStream(a, plan, call);
  return LaunchAs({plan.blocks}, AxisSlabKernel<A>, plan.tiles * plan.blocks, plan.threads,
                  plan.shared, call.stream, a, plan.shape);
}

inline uintptr_t BitsOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// Elements that a thread of a span reads at a time; 1: there is no kernel for words.
template <class T>
inline constexpr int kSpanWord = sizeof(T) == 2 ? 2 : 1;

// Where rows are no whole packs, unless a slice is too large for that. A and Words are the
// algorithm of packs of one element of the compute type, and of words of T.
template <class A, class Words, class T>
cudaError_t LaunchAxisSpan(const SpanPointers<T, A::kInputs>& p, const AxisCall& call) {
  constexpr int kInputs = A::kInputs;
  const DeviceLimits& limits = call.limits;
  constexpr auto held = AxisSpanKernel<A, T, SpanKind::kHeld>;
  constexpr auto read = AxisSpanKernel<A, T, SpanKind::kRead>;
  cudaError_t error = AllowAllShared<held>(limits);
  if (error == cudaSuccess) error = AllowAllShared<read>(limits);
  if (error != cudaSuccess) return error;
  const int parts =
      MaxClusterBlocks<read>(AxisSpanPolicy::kThreads, limits.shared_per_block, limits);
  const bool alike = BitsOf(p.input[kInputs - 1]) % kPackBytes == BitsOf(p.output) % kPackBytes;
  AxisSpanTraits traits{sizeof(T), kInputs, kSpanHeld<kInputs>, 1, sizeof(typename A::Stat), parts};
  if constexpr (Words::N > 1) {
    constexpr uintptr_t kWord = Words::N * sizeof(T);
    if (BitsOf(p.input[0]) % kWord == BitsOf(p.input[kInputs - 1]) % kWord) traits.word = Words::N;
  }
  AxisSpanPlan plan;
  if (!ChooseAxisSpan(&plan, call.outer, call.axis, call.inner, alike, traits, limits)) {
    return kNotServed;
  }
  if constexpr (Words::N > 1) {
    if (plan.kind == SpanKind::kWords) {
      return LaunchLarge<AxisSpanKernel<Words, T, SpanKind::kWords>>(
          {}, plan.blocks, plan.threads, plan.shared, call, Words{}, p, plan.span);
    }
  }
  return LaunchAs({plan.span.parts}, plan.kind == SpanKind::kHeld ? held : read, plan.blocks,
                  plan.threads, plan.shared, call.stream, A{}, p, plan.span);
}

// The pack that is tried after packs of N. 16-bit floats have none of 4: most of what these served
// goes to spans.
template <class T, int N>
inline constexpr int kNextAxisPack = sizeof(T) == 2 && N == kPackSize<T> ? N / 4 : N / 2;

// Calls f(integral_constant N) for the largest of these packs of T that divides inner and at which
// `pointers`, their bits or-ed together, are aligned.
template <class T, int N = kPackSize<T>, class F>
auto VisitAxisPack(int64_t inner, uintptr_t pointers, F&& f) {
  if constexpr (N > 1) {
    if (inner % N != 0 || pointers % (N * sizeof(T)) != 0) {
      return VisitAxisPack<T, kNextAxisPack<T, N>>(inner, pointers, f);
    }
  }
  return f(std::integral_constant<int, N>{});
}

// By spans where rows are no whole packs, else by packs; slab(integral_constant N) is the algorithm
// of packs of N.
template <class A, class Words, class T, class F>
cudaError_t LaunchAxisBy(const SpanPointers<T, A::kInputs>& p, const AxisCall& call,
                         const F& slab) {
  const int64_t inner = call.inner;
  if (call.outer <= 0 || call.axis <= 0 || inner <= 0) return cudaSuccess;
  uintptr_t pointers = BitsOf(p.output);
  for (const T* input : p.input) pointers |= BitsOf(input);
  if (inner % kPackSize<T> != 0 || pointers % kPackBytes != 0) {
    const auto error = LaunchAxisSpan<A, Words, T>(p, call);
    if (error != kNotServed) return error;
  }
  return VisitAxisPack<T>(inner, pointers, [&](auto n) { return LaunchAxis(slab(n), call); });
}

}  // namespace internal

// Bytes of workspace that forward and backward can make use of, at any alignment.
template <class T, int N = kPackSize<T>>
size_t SoftmaxAxisWorkspaceBytes(int64_t outer, int64_t axis, int64_t inner,
                                 const DeviceLimits& limits) {
  // No plan streams so short an axis.
  if (outer <= 0 || inner <= 0 || axis <= AxisPolicy::kNeverStreamed) return 0;
  size_t bytes = 0;
  if constexpr (N > 1) {
    constexpr int kNext = internal::kNextAxisPack<T, N>;
    bytes = SoftmaxAxisWorkspaceBytes<T, kNext>(outer, axis, inner, limits);
  }
  if (inner % N != 0) return bytes;
  const int most = limits.clusters ? 8 : 1;  // what a launch has at least: more need no workspace
  for (const AxisTraits& t : {internal::AxisTraitsOf<SoftmaxSlab<false, T, N>>(most),
                              internal::AxisTraitsOf<SoftmaxBackwardSlab<false, T, N>>(most)}) {
    const size_t needed = ChooseAxisPlan(outer, axis, inner, t, true, limits).workspace;
    if (needed > bytes) bytes = needed;
  }
  return bytes;
}

// x and y may be the same pointer; otherwise they must not overlap.
template <bool kLog, class T>
cudaError_t LaunchSoftmaxAxis(const T* x, T* y, int64_t outer, int64_t axis, int64_t inner,
                              const DeviceLimits& limits, cudaStream_t stream,
                              void* workspace = nullptr) {
  using Span = SoftmaxSlab<kLog, ComputeType<T>, 1>;
  using Words = SoftmaxSlab<kLog, T, internal::kSpanWord<T>>;
  return internal::LaunchAxisBy<Span, Words, T>(
      {{x}, y}, {{limits, stream, workspace}, outer, axis, inner}, [&](auto n) {
        return SoftmaxSlab<kLog, T, decltype(n)::value>{x, y};
      });
}

// y is the forward's output. dx may be dy (or y); otherwise it must not overlap them.
template <bool kLog, class T>
cudaError_t LaunchSoftmaxBackwardAxis(const T* y, const T* dy, T* dx, int64_t outer, int64_t axis,
                                      int64_t inner, const DeviceLimits& limits,
                                      cudaStream_t stream, void* workspace = nullptr) {
  using Span = SoftmaxBackwardSlab<kLog, ComputeType<T>, 1, std::is_same_v<T, float>>;
  using Words = SoftmaxBackwardSlab<kLog, T, internal::kSpanWord<T>>;
  return internal::LaunchAxisBy<Span, Words, T>(
      {{y, dy}, dx}, {{limits, stream, workspace}, outer, axis, inner}, [&](auto n) {
        return SoftmaxBackwardSlab<kLog, T, decltype(n)::value>{y, dy, dx};
      });
}

}  // namespace oneflow_lite::cuda
