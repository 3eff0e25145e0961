// SPDX-License-Identifier: Apache-2.0
//
// Plain passes: of one 16-bit float and nothing else, whose elements follow each other.
#pragma once

#include "primitive/cuda/elementwise/compute.cuh"
#include "primitive/cuda/elementwise/io.cuh"

namespace oneflow_lite {
namespace cuda {

// Elements of a 16-bit float (`upper`: bfloat16, the upper half of a float), of which `left` or
// more than that are there.
template <int kWords>
OFL_HOST_DEVICE void LoadPlain(const char* p, int left, uint32_t (&raw)[kWords]) {
  if (left >= 2 * kWords) return LoadAccess<4 * kWords>(p, raw);
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    uint32_t low = 0, high = 0;
    if (2 * k < left) LoadAccess<2>(p + 4 * k, &low);
    if (2 * k + 1 < left) LoadAccess<2>(p + 4 * k + 2, &high);
    raw[k] = low | high << 16;
  }
}
template <int kWords>
OFL_HOST_DEVICE void WidenPlain(bool upper, const uint32_t (&raw)[kWords], float (&x)[2 * kWords]) {
  if (upper) {
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      const uint32_t low = raw[k] << 16, high = raw[k] & 0xffff0000u;
      memcpy(&x[2 * k], &low, sizeof(low));
      memcpy(&x[2 * k + 1], &high, sizeof(high));
    }
  } else {
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      __half2 pair;
      memcpy(&pair, &raw[k], sizeof(pair));
      x[2 * k] = __low2float(pair);
      x[2 * k + 1] = __high2float(pair);
    }
  }
}
// A number that was given by value, again and again.
template <int kPack>
OFL_HOST_DEVICE void FillPlain(const uint64_t& given, float (&x)[kPack]) {
  float value;
  memcpy(&value, &given, sizeof(value));
#pragma unroll
  for (float& v : x) v = value;
}
// The elements [from, to) of a pack of results, which is whole where these are all.
template <class T, int kPack>
OFL_HOST_DEVICE void StorePlainOf(char* p, int from, int to, const T (&y)[kPack]) {
  if (to - from >= kPack) {
    uint32_t w[kPack * sizeof(T) / 4];
    memcpy(w, y, sizeof(w));
    return StoreAccess<kPack* static_cast<int>(sizeof(T))>(p, w);
  }
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    if (e >= from && e < to) reinterpret_cast<T*>(p)[e] = y[e];
  }
}
template <int kPack>
OFL_HOST_DEVICE void StorePlain(bool, char* p, int from, int to, const bool (&y)[kPack]) {
  StorePlainOf(p, from, to, y);
}
template <int kPack>
OFL_HOST_DEVICE void StorePlain(bool upper, char* p, int from, int to, const float (&y)[kPack]) {
  uint16_t v[kPack];
  const auto narrow = [&](auto tag) {
    using Pair = typename decltype(tag)::type;
#pragma unroll
    for (int e = 0; e < kPack; e += 2) {
      Pair pair;
      if constexpr (std::is_same_v<Pair, __half2>) {
        pair = __floats2half2_rn(y[e], y[e + 1]);
      } else {
        pair = __floats2bfloat162_rn(y[e], y[e + 1]);
      }
      memcpy(&v[e], &pair, sizeof(pair));
    }
  };
  if (upper) {
    narrow(TypeTag<__nv_bfloat162>{});
  } else {
    narrow(TypeTag<__half2>{});
  }
  StorePlainOf(p, from, to, v);
}

// Whether a function may have plain passes: of floats, with results that are floats or bool.
template <int N, class C, class Op>
constexpr bool MayBePlain() {
  if constexpr (std::is_same_v<C, float>) {
    using R = Computed<Op, float, N>;
    return std::is_same_v<R, float> || std::is_same_v<R, bool>;
  }
  return false;
}
template <int N, class C, class Op>
inline constexpr bool kMayBePlain = MayBePlain<N, C, Op>();

// What one thread does of a plain pass. The dtype has two values here and the geometry one, so that
// around the function there are 5 instructions for each element, and not 11 (sm_90, one input).
template <int N, class Op>
OFL_HOST_DEVICE void RunPlain(const Pass<N>& pass, const Op& op, uint32_t block, uint32_t thread) {
  constexpr int kPack = kPassPack<float>;
  const uint32_t first = (block * kPassThreads + thread) * kPack;
  const int left = pass.numel - static_cast<int>(first);
  if (left <= 0) return;
  const auto is_value = [&](int i) { return N > 1 && pass.form[i] == Form::kValue; };
  uint32_t raw[N][kPack / 2];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (!is_value(i)) LoadPlain(pass.in[i] + first * 2, left, raw[i]);
  }
  const bool upper = pass.plain == static_cast<uint32_t>(DType::kBFloat16);
  float x[N][kPack];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (!is_value(i)) {
      WidenPlain(upper, raw[i], x[i]);
    } else {
      FillPlain(pass.value[i], x[i]);
    }
  }
  Computed<Op, float, N> y[kPack];
  ComputeForm<kHasNarrow<Op, float>>(op, x, y);
  StorePlain(upper, pass.out + first * (sizeof(y[0]) == 1 ? 1 : 2), 0, left, y);
}

}  // namespace cuda
}  // namespace oneflow_lite
