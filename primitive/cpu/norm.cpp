// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm. A row is read once for its moments about a first guess of its mean
// (layer_norm; about 0 for rms_norm), and from the cache for the result. Where the guess lay far
// from the mean, the moments are taken again about the better one: var = mean(d^2) - mean(d)^2 with
// d = x - centre loses digits only where mean(d)^2 is large beside it.
#include "primitive/cpu/norm.h"

#include <algorithm>
#include <cmath>

#include "primitive/cpu/convert.h"
#include "primitive/cpu/row_plan.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/norm.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/norm-inl.h"

#ifndef OFL_PRIMITIVE_CPU_NORM_ONCE_
#define OFL_PRIMITIVE_CPU_NORM_ONCE_
namespace oneflow_lite {

// A row, or a part of one: its mean is centre + shift, m2 the sum of (x - mean)^2. `centre` is a
// number of the compute type. rms_norm: both are 0, and m2 the sum of x^2.
struct RowMoments {
  double centre;
  double shift;
  double m2;
};

// x_hat = (x - centre - shift) * rstd
struct RowScale {
  double centre;
  double shift;
  double rstd;
};

inline RowScale ScaleOf(const RowMoments& m, int64_t n, double eps) {
  return {m.centre, m.shift, 1 / std::sqrt(m.m2 / static_cast<double>(n) + eps)};
}

// Weight and bias in `args` are in the compute type; null is absent.
struct NormTask {
  NormShape shape;
  LayerNorm::Args args;
};

// Each for columns [begin, begin + n) of one row.
struct NormKernels {
  void (*add)(const NormTask& task, int64_t row, int64_t begin, int64_t n);  // of the residual
  RowMoments (*moments)(const NormTask& task, int64_t row, int64_t begin, int64_t n);
  // stream_write stores y past the caches, and flush() must follow the last one.
  void (*write)(const NormTask& task, int64_t row, RowScale scale, int64_t begin, int64_t n);
  void (*stream_write)(const NormTask& task, int64_t row, RowScale scale, int64_t begin, int64_t n);
  void (*flush)();
};

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, bool kCentred>
HWY_INLINE RowMoments MomentsAbout(const T* x, const T* next, size_t n, ComputeOf<T> centre) {
  const TagOf<T> d;
  const auto c = hn::Set(d, centre);
  constexpr int kSums = kCentred ? 2 : 1;
  double total[kSums];
  SumRow(d, n, total, [&](size_t i, size_t count, auto slot, auto& s) OFL_SIMD_LAMBDA {
    hwy::Prefetch(next + i);
    auto v = LoadUpTo(d, x + i, count, c);
    if constexpr (kCentred) {
      v = hn::Sub(v, c);
      s.of[1][slot] = hn::Add(s.of[1][slot], v);
    }
    s.of[0][slot] = hn::MulAdd(v, v, s.of[0][slot]);
  });
  if constexpr (!kCentred) return {0, 0, total[0]};
  const double shift = total[kSums - 1] / static_cast<double>(n);
  return {centre, shift, std::max(0.0, total[0] - total[kSums - 1] * shift)};
}

template <class T>
void AddResidual(const NormTask& t, int64_t row, int64_t begin, int64_t n) {
  const TagOf<T> d;
  const auto zero = hn::Zero(d);
  const int64_t cols = t.shape.cols;
  const T* x = RowOf<T>(t.args.x, row, t.shape.stride()) + begin;
  const T* residual = RowOf<T>(t.args.residual, row, cols) + begin;
  T* sum = RowOf<T>(t.args.sum, row, cols) + begin;
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto a = LoadUpTo(d, x + i, count, zero), b = LoadUpTo(d, residual + i, count, zero);
    StoreUpTo(hn::Add(a, b), d, sum + i, count);
  });
}

// What is normalised: x, or the rounded sum.
template <class T>
const T* Normalised(const NormTask& t, int64_t row) {
  return t.args.residual ? RowOf<T>(t.args.sum, row, t.shape.cols)
                         : RowOf<T>(t.args.x, row, t.shape.stride());
}

// The first guess is the mean of four elements: it misses by half a standard deviation. Twice the
// variance costs m2 three of its last bits, and is exceeded by one row in 200 of normal numbers.
// While a row is worked on in the cache, the lines of the next are asked for one by one.
template <class T, bool kCentred>
RowMoments Moments(const NormTask& t, int64_t row, int64_t begin, int64_t n) {
  using C = ComputeOf<T>;
  const T* x = Normalised<T>(t, row) + begin;
  const T* next = RowOf<T>(t.args.x, row + 1, t.shape.stride()) + begin;
  C centre = 0;
  for (int k = 0; kCentred && k < 4; ++k) centre += C(0.25) * static_cast<C>(x[k * n / 4]);
  for (bool again = false;; again = true) {
    const RowMoments m = MomentsAbout<T, kCentred>(x, next, n, centre);
    const bool far = m.shift * m.shift * static_cast<double>(n) > 2 * m.m2;
    if (again || !far) return m;
    centre = static_cast<C>(m.centre + m.shift);
  }
}

template <class T, bool kCentred, bool kStream>
void Write(const NormTask& t, int64_t row, RowScale scale, int64_t begin, int64_t n) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, C(1));
  const auto centre = hn::Set(d, static_cast<C>(scale.centre));
  const auto shift = hn::Set(d, static_cast<C>(scale.shift));
  const auto rstd = hn::Set(d, static_cast<C>(scale.rstd));
  const T* x = Normalised<T>(t, row) + begin;
  const C* weight = t.args.weight ? static_cast<const C*>(t.args.weight) + begin : nullptr;
  const C* bias = t.args.bias ? static_cast<const C*>(t.args.bias) + begin : nullptr;
  T* y = RowOf<T>(t.args.y, row, t.shape.cols) + begin;
  const auto normalised = [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    auto v = LoadUpTo(d, x + i, count, zero);
    if constexpr (kCentred) v = hn::Sub(hn::Sub(v, centre), shift);
    v = hn::Mul(v, rstd);
    const auto w = weight ? LoadUpTo(d, weight + i, count, one) : one;
    if constexpr (!kCentred) return hn::Mul(v, w);
    return hn::MulAdd(v, w, bias ? LoadUpTo(d, bias + i, count, zero) : zero);
  };
  if constexpr (kStream) {
    Generate<true>(d, n, y, normalised);
  } else {  // four vectors per turn: 12 % faster in the cache
    ForVectors(d, n, [&](size_t i, size_t count, auto) OFL_SIMD_LAMBDA {
      StoreUpTo(normalised(i, count), d, y + i, count);
    });
  }
  if (begin > 0) return;
  if (t.args.mean) static_cast<C*>(t.args.mean)[row] = static_cast<C>(scale.centre + scale.shift);
  if (t.args.rstd) static_cast<C*>(t.args.rstd)[row] = static_cast<C>(scale.rstd);
}

void Flush() { hwy::FlushStream(); }

template <class T, bool kCentred>
constexpr NormKernels kKernels = {&AddResidual<T>, &Moments<T, kCentred>,
                                  &Write<T, kCentred, false>, &Write<T, kCentred, true>, &Flush};

}  // namespace

const NormKernels* GetNormKernels(DType dtype, bool centred) {
  return VisitFloating(
      dtype, [&]<class T>(Tag<T>) { return centred ? &kKernels<T, true> : &kKernels<T, false>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(GetNormKernels);

// Moments of two parts merged (Chan, Golub and LeVeque, 1979).
struct Merged {
  double count = 0, mean = 0, m2 = 0;

  void Add(const RowMoments& part, double n) {
    const double delta = part.centre + part.shift - mean;
    const double total = count + n;
    mean += delta * n / total;
    m2 += part.m2 + delta * delta * count * n / total;
    count = total;
  }
};

}  // namespace

Status CheckNormSpec(const char* primitive, const NormSpec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(primitive, DeviceType::kCPU, spec.dtype);
  if (spec.weight_dtype != spec.dtype && spec.weight_dtype != DType::kFloat32) {
    return NoPrimitiveFor(primitive, DeviceType::kCPU, spec.weight_dtype);
  }
  return OkStatus();
}

NormForward::NormForward(const NormSpec& spec, bool centred)
    : spec_(spec), kernels_(HWY_DYNAMIC_DISPATCH(GetNormKernels)(spec.dtype, centred)) {}

size_t NormForward::WorkspaceBytes(const NormShape& shape) const {
  const DType compute = ComputeType(spec_.dtype);
  return spec_.weight_dtype == compute ? 0 : 2 * shape.cols * SizeOf(compute);
}

Status NormForward::Launch(const NormShape& shape, LayerNorm::Args args, void* workspace) const {
  const DType compute = ComputeType(spec_.dtype);
  if (spec_.weight_dtype != compute) {
    const ConvertFunction convert = FindConvert(spec_.weight_dtype, compute);
    char* wide = static_cast<char*>(workspace);
    for (const void** p : {&args.weight, &args.bias}) {
      if (*p) convert(shape.cols, *p, wide), *p = wide;
      wide += shape.cols * SizeOf(compute);
    }
  }
  if (SplitsRows(shape.rows, shape.cols)) {
    for (int64_t row = 0; row < shape.rows; ++row) SplitRow(shape, args, row);
    return OkStatus();
  }
  const int64_t tensors = args.residual ? 4 : 2;
  const bool stream =
      args.x != args.y && StreamsOutput(tensors * shape.rows * shape.cols * SizeOf(spec_.dtype));
  const NormTask task{shape, args};
  const auto write = stream ? kernels_->stream_write : kernels_->write;
  ParallelFor(shape.rows, RowGrain(shape.cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (args.residual) kernels_->add(task, row, 0, shape.cols);
      const RowMoments m = kernels_->moments(task, row, 0, shape.cols);
      write(task, row, ScaleOf(m, shape.cols, shape.eps), 0, shape.cols);
    }
    if (stream) kernels_->flush();
  });
  return OkStatus();
}

// One long row on all threads: the moments of its parts, merged in order, then the results.
void NormForward::SplitRow(const NormShape& shape, const LayerNorm::Args& args, int64_t row) const {
  const NormTask task{shape, args};
  const RowParts parts(shape.cols);
  RowMoments moments[RowParts::kMax];
  ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (args.residual) kernels_->add(task, row, parts.Begin(i), parts.Size(i));
      moments[i] = kernels_->moments(task, row, parts.Begin(i), parts.Size(i));
    }
  });
  Merged all;
  for (int i = 0; i < parts.count; ++i) all.Add(moments[i], static_cast<double>(parts.Size(i)));
  // rms_norm's parts have no mean, which merges as 0.
  const double centre =
      spec_.dtype == DType::kFloat64 ? all.mean : static_cast<double>(static_cast<float>(all.mean));
  const RowScale scale = ScaleOf({centre, all.mean - centre, all.m2}, shape.cols, shape.eps);
  ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels_->write(task, row, scale, parts.Begin(i), parts.Size(i));
    }
  });
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
