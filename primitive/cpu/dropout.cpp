// SPDX-License-Identifier: Apache-2.0
//
// Plain loops, compiled once per instruction set. No product is contracted with a sum, so that all
// sets give the same bits.
#include "primitive/dropout.h"

#include <algorithm>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/random_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/dropout.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/highway.h"
#include "primitive/cpu/philox_block-inl.h"

#ifndef OFL_PRIMITIVE_CPU_DROPOUT_ONCE_
#define OFL_PRIMITIVE_CPU_DROPOUT_ONCE_
namespace oneflow_lite {
// What is done to n elements; `drawn` is the seed and the offset.
struct DropoutPass {
  DType dtype;
  int64_t n;
  const uint64_t* drawn;
  const DropoutNumbers& numbers;
  double kept, dropped;
  const void* x;
  void* y;
};
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kDraws = 4 * kPhiloxLanes;  // of a block
constexpr int64_t kGrain = 16384;             // elements

template <class T>
struct Terms {
  using C = ComputeOf<T>;
  C scale, kept;
  T dropped;
  T operator()(T x, bool keep) const {
    const T y = static_cast<T>(Stretched(static_cast<C>(x), scale, kept));
    return keep ? y : dropped;
  }
};

// Draws [begin, end), from a multiple of kDraws on, a block at a time: f(draw, count, keep).
template <class F>
void ForDraws(int64_t begin, int64_t end, uint64_t seed, uint64_t offset, uint32_t threshold,
              F&& f) {
  for (int64_t k = begin; k < end; k += kDraws) {
    const PhiloxBlock bits(seed, offset + static_cast<uint64_t>(k / 4));
    uint8_t keep[kDraws];
    for (int lane = 0; lane < kPhiloxLanes; ++lane) {
      for (int w = 0; w < 4; ++w) keep[4 * lane + w] = bits.words[w][lane] >> 8 >= threshold;
    }
    f(k, std::min(kDraws, end - k), keep);
  }
}

template <class T>
void Run(int64_t n, uint64_t seed, uint64_t offset, uint32_t threshold, int64_t inner,
         const Terms<T>& terms, const T* x, T* y) {
  const int64_t draws = (n + inner - 1) / inner, blocks = (draws + kDraws - 1) / kDraws;
  const int64_t grain = std::max<int64_t>(1, kGrain / (kDraws * inner));
  ParallelFor(blocks, grain, [&](int64_t first, int64_t last) {
    ForDraws(first * kDraws, std::min(draws, last * kDraws), seed, offset, threshold,
             [&](int64_t at, int64_t count, const uint8_t* keep) {
               if (inner == 1) {
                 for (int64_t i = 0; i < count; ++i) y[at + i] = terms(x[at + i], keep[i]);
                 return;
               }
               for (int64_t i = 0; i < count; ++i) {
                 const int64_t end = std::min(n, (at + i + 1) * inner);
                 for (int64_t j = (at + i) * inner; j < end; ++j) y[j] = terms(x[j], keep[i]);
               }
             });
  });
}

// The same of a part of a larger tensor, a run at a time.
template <class T>
void RunPart(int64_t n, uint64_t seed, uint64_t offset, uint32_t threshold,
             const DropoutNumbers& numbers, const Terms<T>& terms, const T* x, T* y) {
  const int64_t run = numbers.run == 0 ? n : numbers.run, inner = numbers.inner;
  ParallelFor(n / run, std::max<int64_t>(1, kGrain / run), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t here = r * run, place = numbers.PlaceOf(here);
      const int64_t from = place / inner / kDraws * kDraws, to = (place + run - 1) / inner + 1;
      ForDraws(from, to, seed, offset, threshold,
               [&](int64_t at, int64_t count, const uint8_t* keep) {
                 const int64_t begin = std::max(at * inner, place);
                 const int64_t end = std::min((at + count) * inner, place + run);
                 for (int64_t p = begin; p < end; ++p) {
                   const int64_t i = here + p - place;
                   y[i] = terms(x[i], keep[p / inner - at]);
                 }
               });
    }
  });
}

}  // namespace

void Drop(const DropoutPass& pass) {
  const DropoutNumbers& numbers = pass.numbers;
  VisitFloating(pass.dtype, [&]<class T>(Tag<T>) {
    using C = ComputeOf<T>;
    const Terms<T> terms{static_cast<C>(numbers.scale), static_cast<C>(pass.kept),
                         static_cast<T>(static_cast<C>(pass.dropped))};
    const T* x = static_cast<const T*>(pass.x);
    T* y = static_cast<T*>(pass.y);
    const uint64_t seed = pass.drawn[0], offset = pass.drawn[1];
    const uint32_t threshold = UniformThreshold(numbers.p);
    if (numbers.run == 0 && numbers.start == 0) {
      Run(pass.n, seed, offset, threshold, numbers.inner, terms, x, y);
    } else if (pass.n > 0) {
      RunPart(pass.n, seed, offset, threshold, numbers, terms, x, y);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(Drop);

class CpuDropout final : public Dropout {
 public:
  explicit CpuDropout(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, int64_t n, const PhiloxState& state, const DropoutNumbers& numbers,
                const void* x, void* y, uint64_t* drawn) const override {
    drawn[0] = state.seed + (state.shift ? state.shift[0] : 0);
    drawn[1] = state.offset + (state.shift ? state.shift[1] : 0);
    return Both(n, numbers, numbers.kept, numbers.dropped, drawn, x, y);
  }
  Status LaunchBackward(Stream&, int64_t n, const DropoutNumbers& numbers, const void* dy,
                        const uint64_t* drawn, void* dx) const override {
    return Both(n, numbers, 0, 0, drawn, dy, dx);
  }

 private:
  Status Both(int64_t n, const DropoutNumbers& numbers, double kept, double dropped,
              const uint64_t* drawn, const void* x, void* y) const {
    HWY_DYNAMIC_DISPATCH(Drop)({dtype_, n, drawn, numbers, kept, dropped, x, y});
    return OkStatus();
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Dropout>> NewDropout(const Dropout::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(Dropout::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuDropout>(spec.dtype);
}

const bool registered = RegisterPrimitive<Dropout>(DeviceType::kCPU, &NewDropout);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
