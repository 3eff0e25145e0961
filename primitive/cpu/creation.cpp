// SPDX-License-Identifier: Apache-2.0
#include "primitive/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/philox.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

class CpuFill final : public Fill {
 public:
  explicit CpuFill(const Spec& spec) : dtype_(spec.dtype), item_(SizeOf(spec.dtype)) {}

  Status Launch(Stream&, const Elementwise<1>& g, Scalar value, void* y) const override {
    ChunkBuffer repeated;
    const int64_t n = std::min(g.numel, kChunk);
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      const T element = CastScalar<T>(value);
      CopyStrided(sizeof(T), n, reinterpret_cast<const char*>(&element), 0, repeated.bytes, 1);
    });
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      StridedCursor cursor(g, 0, begin);
      for (int64_t i = begin; i < end;) {
        const int64_t count = std::min({kChunk, end - i, cursor.run()});
        char* to = static_cast<char*>(y) + cursor.offset() * static_cast<int64_t>(item_);
        CopyStrided(item_, count, repeated.bytes, 1, to, cursor.stride());
        cursor.Advance(count);
        i += count;
      }
    });
    return OkStatus();
  }

 private:
  DType dtype_;
  size_t item_;
};

template <class T>
void FillSequence(int64_t begin, int64_t end, Scalar start, Scalar step, T* y) {
  if constexpr (std::is_integral_v<T>) {
    const uint64_t first = static_cast<uint64_t>(CastScalar<int64_t>(start));
    const uint64_t each = static_cast<uint64_t>(CastScalar<int64_t>(step));
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(first + static_cast<uint64_t>(i) * each);
    }
  } else {
    const double first = start.to<double>(), each = step.to<double>();
    for (int64_t i = begin; i < end; ++i) {
      const double v = first + static_cast<double>(i) * each;
      y[i] = static_cast<T>(static_cast<ComputeOf<T>>(v));
    }
  }
}

class CpuArange final : public Arange {
 public:
  explicit CpuArange(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, int64_t n, Scalar start, Scalar step, void* y) const override {
    ParallelFor(n, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      VisitAll(dtype_,
               [&]<class T>(Tag<T>) { FillSequence(begin, end, start, step, static_cast<T*>(y)); });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

// The uniforms of one Philox counter: four floats, or two doubles.
template <class C>
struct Uniforms {
  static constexpr int64_t kCount = sizeof(C) == 8 ? 2 : 4;
  C v[kCount];
  explicit Uniforms(const PhiloxResult& r) {
    for (int64_t i = 0; i < kCount; ++i) {
      if constexpr (sizeof(C) == 8) {
        v[i] = UniformDouble(r.v[2 * i], r.v[2 * i + 1]);
      } else {
        v[i] = UniformFloat(r.v[i]);
      }
    }
  }
  // Box and Muller's transform of each pair.
  void ToNormal() {
    for (int64_t i = 0; i < kCount; i += 2) {
      const C radius = std::sqrt(C(-2) * std::log(C(1) - v[i]));
      const C angle = C(2) * std::numbers::pi_v<C> * v[i + 1];
      v[i] = radius * std::cos(angle);
      v[i + 1] = radius * std::sin(angle);
    }
  }
};

// Elements of the counters [begin, end); element i of the first lies at i * kCount.
template <class T, bool kNormal>
void FillRandom(int64_t begin, int64_t end, int64_t n, uint64_t seed, uint64_t offset, T* y) {
  using C = ComputeOf<T>;
  constexpr int64_t kCount = Uniforms<C>::kCount;
  for (int64_t k = begin; k < end; ++k) {
    Uniforms<C> u(Philox(seed, offset + static_cast<uint64_t>(k)));
    if constexpr (kNormal) u.ToNormal();
    for (int64_t i = k * kCount; i < std::min(n, (k + 1) * kCount); ++i) {
      T value = static_cast<T>(u.v[i - k * kCount]);
      if constexpr (sizeof(T) == 2 && !kNormal) {  // a uniform below 1 may round to it
        if (static_cast<float>(value) >= 1.0f) value = T(0.0f);
      }
      y[i] = value;
    }
  }
}

void FillBits(int64_t begin, int64_t end, int64_t n, uint64_t seed, uint64_t offset, int64_t* y) {
  for (int64_t k = begin; k < end; ++k) {
    const PhiloxResult r = Philox(seed, offset + static_cast<uint64_t>(k));
    for (int64_t i = k * 4; i < std::min(n, k * 4 + 4); ++i) y[i] = r.v[i - k * 4];
  }
}

class CpuRandom final : public Random {
 public:
  explicit CpuRandom(const Spec& spec) : spec_(spec) {}

  Status Launch(Stream&, int64_t n, const PhiloxState& state, void* y) const override {
    uint64_t seed = state.seed, offset = state.offset;
    if (state.shift) seed += state.shift[0], offset += state.shift[1];
    const int64_t counters = static_cast<int64_t>(CountersFor(spec_.dtype, n));
    ParallelFor(counters, kGrain, [&](int64_t begin, int64_t end) {
      if (spec_.distribution == Distribution::kBits) {
        FillBits(begin, end, n, seed, offset, static_cast<int64_t*>(y));
        return;
      }
      VisitFloating(spec_.dtype, [&]<class T>(Tag<T>) {
        const auto fill = spec_.distribution == Distribution::kNormal ? &FillRandom<T, true>
                                                                      : &FillRandom<T, false>;
        fill(begin, end, n, seed, offset, static_cast<T*>(y));
      });
    });
    return OkStatus();
  }

 private:
  static constexpr int64_t kGrain = 1024;  // counters: some 10 us of work
  Spec spec_;
};

StatusOr<std::unique_ptr<Fill>> NewFill(const Fill::Spec& spec) {
  return std::make_unique<CpuFill>(spec);
}
StatusOr<std::unique_ptr<Arange>> NewArange(const Arange::Spec& spec) {
  if (spec.dtype == DType::kBool) {
    return NoPrimitiveFor(Arange::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuArange>(spec);
}
StatusOr<std::unique_ptr<Random>> NewRandom(const Random::Spec& spec) {
  const bool bits = spec.distribution == Distribution::kBits;
  if (bits ? spec.dtype != DType::kInt64 : !IsFloating(spec.dtype)) {
    return NoPrimitiveFor(Random::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuRandom>(spec);
}

const bool registered = RegisterPrimitive<Fill>(DeviceType::kCPU, &NewFill) &&
                        RegisterPrimitive<Arange>(DeviceType::kCPU, &NewArange) &&
                        RegisterPrimitive<Random>(DeviceType::kCPU, &NewRandom);

}  // namespace
}  // namespace oneflow_lite
