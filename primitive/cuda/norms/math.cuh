// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of layer_norm and rms_norm compute. Backward, with g = dy * weight, and
// x_hat = v * scale + offset in terms of what is at hand for an element:
//
//                         v                    scale   offset
//   layer_norm            x - mean             rstd    -r * rstd, with r = mean(x - mean)
//   rms_norm              x                    rstd    0
//   memory-efficient      (y - bias) / weight  1       0
//
// r is what the rounding of the stored mean left of the row's centre; it is not small beside the
// row's spread where that is tiny beside the mean.
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite::cuda {

// Rows of x lie x_stride elements apart, all else is dense; pointers are aligned to their element.
// Only x and y are required. With a residual, x + residual is what is normalised, and `sum`
// receives it. weight and bias are float32 where float_weight, else T. mean is not for rms_norm. y
// may be x, sum may be x or residual; otherwise no two may overlap.
template <class T>
struct NormForward {
  using C = ComputeType<T>;
  int64_t rows = 0, cols = 0, x_stride = 0;
  double eps = 0;
  const T* x = nullptr;
  const T* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  bool float_weight = false;
  T* y = nullptr;
  T* sum = nullptr;
  C* mean = nullptr;
  C* rstd = nullptr;
};

// Whether the rounding of a stored mean is corrected. 16-bit elements near a mean lie so far apart
// that its rounding to float32 is nothing beside them.
template <class T, bool kCentre>
inline constexpr bool kRecentre = kCentre && sizeof(T) > 2;

// A backward as its kernels see it. Rows of x lie x_stride elements apart, all else is dense;
// pointers are aligned to their element. Where from_output, x is the forward's output (dense), from
// which x_hat is computed with weight and bias; mean is not used then, nor ever by rms_norm. Only
// the gradients that are not null are computed. dx may be dy.
template <class T>
struct NormBackward {
  using C = ComputeType<T>;
  int64_t rows = 0, cols = 0, x_stride = 0;
  const T* x = nullptr;
  bool from_output = false;
  const T* dy = nullptr;
  const T* dsum = nullptr;  // added to dx
  const void* weight = nullptr;
  const void* bias = nullptr;
  bool float_weight = false;  // weight, bias and their gradients are float32; else T
  const C* mean = nullptr;
  const C* rstd = nullptr;
  T* dx = nullptr;
  void* dweight = nullptr;
  void* dbias = nullptr;

  // Packs follow its boundaries of 16 bytes.
  __host__ __device__ const T* anchor() const { return dx ? dx : dy; }
  // Whether anything depends on the sums over a row. kCentre: layer_norm.
  template <bool kCentre>
  bool needs_sums() const {
    return dx || (kRecentre<T, kCentre> && dweight && !from_output);
  }
};

template <bool kCentre>
inline constexpr int kNormKinds = kCentre ? 2 : 1;  // dweight, dbias

// Sums that are added up together.
template <class C, int kSums>
struct SumOf {
  C v[kSums] = {};

  friend OFL_DEVICE SumOf operator+(const SumOf& a, const SumOf& b) {
    SumOf sum;
#pragma unroll
    for (int i = 0; i < kSums; ++i) sum.v[i] = a.v[i] + b.v[i];
    return sum;
  }
};
template <class C, int kSums>
OFL_DEVICE SumOf<C, kSums> ShuffleXor(SumOf<C, kSums> s, int mask) {
#pragma unroll
  for (C& v : s.v) v = ShuffleXor(v, mask);
  return s;
}

// The sums over a row: of g * v and, for layer_norm, of g and (where kRecentre) v.
template <class T, bool kCentre>
inline constexpr int kNormSumCount = !kCentre                ? 1
                                     : kRecentre<T, kCentre> ? 3
                                                             : 2;
template <class T, bool kCentre>
struct alignas(16) NormSums {
  using C = ComputeType<T>;
  C gv = 0, g = 0, v = 0;

  OFL_DEVICE void Add(C grad, C value) {
    gv += grad * value;
    if (kCentre) g += grad;
    if (kRecentre<T, kCentre>) v += value;
  }
  friend OFL_DEVICE NormSums operator+(const NormSums& a, const NormSums& b) {
    NormSums sum;
    sum.gv = a.gv + b.gv;
    if (kCentre) sum.g = a.g + b.g;
    if (kRecentre<T, kCentre>) sum.v = a.v + b.v;
    return sum;
  }
};
template <class T, bool kCentre>
OFL_DEVICE NormSums<T, kCentre> ShuffleXor(NormSums<T, kCentre> s, int mask) {
  s.gv = ShuffleXor(s.gv, mask);
  if (kCentre) s.g = ShuffleXor(s.g, mask);
  if (kRecentre<T, kCentre>) s.v = ShuffleXor(s.v, mask);
  return s;
}

// What a row's sums make of its elements.
template <class T, bool kCentre, bool kFromOutput>
struct NormGradient {
  using C = ComputeType<T>;
  C scale, offset;             // x_hat = v * scale + offset
  C rstd, by_x_hat, constant;  // dx = g * rstd + x_hat * by_x_hat + constant

  // share: 1 / cols.
  OFL_DEVICE NormGradient(const NormSums<T, kCentre>& sums, C rstd, C share)
      : scale(kFromOutput ? C(1) : rstd), offset(0), rstd(rstd) {
    if (kRecentre<T, kCentre> && !kFromOutput) offset = -(sums.v * share) * rstd;
    // A single column is its own mean: dx is 0, without what rounding would leave.
    if (kCentre && share == C(1)) this->rstd = 0;
    by_x_hat = -this->rstd * ((scale * sums.gv + offset * sums.g) * share);
    constant = kCentre ? -this->rstd * (sums.g * share) : C(0);
  }
  OFL_DEVICE C XHat(C v) const {
    return kFromOutput ? v : kRecentre<T, kCentre> ? v * scale + offset : v * scale;
  }
  OFL_DEVICE C Dx(C g, C x_hat) const {
    return kCentre ? g * rstd + (x_hat * by_x_hat + constant) : g * rstd + x_hat * by_x_hat;
  }
};

// v - mean, of a mean that is rounded: the compiler would take the product that it comes from
// instead, at some columns and not at others, and a row of equal values would not be 0 there.
OFL_DEVICE float Centred(float v, float mean) { return __fsub_rn(v, mean); }
OFL_DEVICE double Centred(double v, double mean) { return __dsub_rn(v, mean); }

OFL_DEVICE float Quotient(float a, float b) { return __fdividef(a, b); }
OFL_DEVICE double Quotient(double a, double b) { return a / b; }

OFL_DEVICE float ReciprocalRoot(float x) { return rsqrtf(x); }
OFL_DEVICE double ReciprocalRoot(double x) { return 1.0 / sqrt(x); }

// kWeightClamp of primitive/norm.h. (NaN becomes a number: what it is to divide is NaN then.)
inline constexpr double kNormWeightClamp = 1e-5;
template <class C>
OFL_DEVICE C ClampWeight(C w) {
  constexpr C kLeast = static_cast<C>(kNormWeightClamp);
  const C size = fabs(w);
  return copysign(size > kLeast ? size : kLeast, w);
}

// v of N elements, in place of x; weight and bias are needed where kFromOutput.
template <bool kCentre, bool kFromOutput, class C, int N>
OFL_DEVICE void ToValues(Pack<C, N>& x, const Pack<C, N>& weight, const Pack<C, N>& bias, C mean) {
  if (kFromOutput) {
#pragma unroll
    for (int i = 0; i < N; ++i) x.v[i] = Quotient(x.v[i] - bias.v[i], ClampWeight(weight.v[i]));
  } else if (kCentre) {
#pragma unroll
    for (C& v : x.v) v -= mean;
  }
}

// N elements from p on, which is aligned to 16 bytes or, where they are fewer, to all of them.
template <int N, class T>
OFL_DEVICE Pack<T, N> LoadWholePack(const T* p) {
  constexpr int kPart = N < kPackSize<T> ? N : kPackSize<T>;
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; i += kPart) {
    const Pack<T, kPart> part = LoadAlignedPack<kPart>(p + i);
    memcpy(&pack.v[i], &part, sizeof(part));
  }
  return pack;
}

// Elements [first, last) of a pack; the others are `missing`, and their memory is not touched.
template <class C, int N, class T>
OFL_DEVICE Pack<C, N> LoadPart(const T* p, int first, int last, C missing) {
  Pack<C, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    pack.v[i] = missing;
    if (i >= first && i < last) pack.v[i] = ConvertTo<C>(p[i]);
  }
  return pack;
}
// The same of a weight or bias, of T or float32, from column `col` on; null: all are `missing`.
template <class C, int N, class W>
OFL_DEVICE Pack<C, N> LoadWeightsOf(const W* weights, int first, int last, C missing) {
  if (first > 0 || last < N || !IsAlignedFor<uint4>(weights)) {
    return LoadPart<C, N>(weights, first, last, missing);
  }
  return ConvertPack<C>(LoadWholePack<N>(weights));
}
template <class C, int N, class T>
OFL_DEVICE Pack<C, N> LoadWeights(const void* weights, bool is_float, int64_t col, int first,
                                  int last, C missing) {
  if (!weights) last = 0;
  if constexpr (!std::is_same_v<T, float>) {
    if (is_float) {
      return LoadWeightsOf<C, N>(static_cast<const float*>(weights) + col, first, last, missing);
    }
  }
  return LoadWeightsOf<C, N>(static_cast<const T*>(weights) + col, first, last, missing);
}

// An element of the gradient of a weight or bias, of T or float32.
template <class T>
OFL_DEVICE void StoreWeightGradient(void* gradient, bool is_float, int64_t col, ComputeType<T> v) {
  if (is_float) {
    static_cast<float*>(gradient)[col] = static_cast<float>(v);
  } else {
    static_cast<T*>(gradient)[col] = ConvertTo<T>(v);
  }
}

// Elements between two rows of parts, which start at multiples of 16 bytes.
template <class C>
__host__ __device__ constexpr int64_t PartPitch(int64_t cols) {
  return (cols + kPackSize<C> - 1) / kPackSize<C> * kPackSize<C>;
}

template <int N, class C>
OFL_DEVICE void ClearOutside(Pack<C, N>& pack, int first, int last) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < first || i >= last) pack.v[i] = 0;
  }
}

// A row as whole packs aligned in memory, of which the first and the last may reach over its ends:
// pack p is the columns from p * N - shift on.
template <int N>
struct PaddedRow {
  int shift;
  int64_t cols;

  template <class T>
  OFL_DEVICE PaddedRow(const T* row, int64_t cols)
      : shift((N - ElementsToBoundary(row)) % N), cols(cols) {}
  OFL_DEVICE int64_t packs() const { return (cols + shift + N - 1) / N; }
  OFL_DEVICE int64_t Column(int64_t p) const { return p * N - shift; }
  // The elements [First, Last) of a pack are the row's.
  OFL_DEVICE static int First(int64_t col) { return col < 0 ? static_cast<int>(-col) : 0; }
  OFL_DEVICE int Last(int64_t col) const {
    return cols - col < N ? static_cast<int>(cols - col) : N;
  }
};

}  // namespace oneflow_lite::cuda
