// SPDX-License-Identifier: Apache-2.0
//
// A thread has a pack of a row's first half and the same one of the second.
#include "primitive/cuda/elementwise/gated_launch.h"
#include "primitive/cuda/functions/activation.cuh"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostUnits = int64_t{1} << 30;  // of a launch, so that 32 bits count them

// 1 / (1 + exp(-x)) and 1 less it, from the exp that is at most 1.
template <class C>
struct Logistic {
  C s, rest;
  __device__ __forceinline__ explicit Logistic(C x) {
    const C e = ExpOf(-AbsOf(x)), part = OverOf(C(1) + e), small = e * part;
    s = x < C(0) ? small : part;
    rest = x < C(0) ? part : small;
  }
};

struct Glu {
  template <class C>
  static __device__ __forceinline__ C Value(C a, C b) {
    return a * Logistic<C>(b).s;
  }
  template <class C>
  static __device__ __forceinline__ void Slopes(C g, C a, C b, C* da, C* db) {
    const Logistic<C> l(b);
    *da = g * l.s;
    *db = g * a * l.s * l.rest;
  }
};
struct Swiglu {
  template <class C>
  static __device__ __forceinline__ C Value(C a, C b) {
    return SiluOf(a) * b;
  }
  template <class C>
  static __device__ __forceinline__ void Slopes(C g, C given, C b, C* da, C* db) {
    const C a = Within(given, kFar<C>);
    const Logistic<C> l(a);
    *da = g * b * (l.s * Fma(a, l.rest, C(1)));
    *db = g * SiluOf(given);
  }
};

struct GatedUnits {
  int64_t half, first_row;
  Divisor units_of_row;
  uint32_t units;

  // The row of a unit, and where in its halves it begins.
  template <int N>
  __device__ __forceinline__ bool Find(int64_t* row, int64_t* at) const {
    const uint32_t unit = blockIdx.x * kThreads + threadIdx.x;
    if (unit >= units) return false;
    const uint32_t r = units_of_row.Quotient(unit);
    *row = first_row + r;
    *at = int64_t{unit - r * static_cast<uint32_t>(units_of_row.value)} * N;
    return true;
  }
};

template <class Gate, int N, class T>
__global__ void __launch_bounds__(kThreads)
    GatedKernel(const __grid_constant__ GatedUnits u, const T* x, T* y) {
  using C = ComputeType<T>;
  int64_t row, at;
  if (!u.Find<N>(&row, &at)) return;
  const T* p = x + row * 2 * u.half + at;
  const Pack<T, N> a = LoadPack<N>(p), b = LoadPack<N>(p + u.half);
  Pack<T, N> out;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    out.v[k] = ConvertTo<T>(Gate::Value(ConvertTo<C>(a.v[k]), ConvertTo<C>(b.v[k])));
  }
  StorePack(y + row * u.half + at, out);
}

template <class Gate, int N, class T>
__global__ void __launch_bounds__(kThreads)
    GatedBackwardKernel(const __grid_constant__ GatedUnits u, const T* dy, const T* x, T* dx) {
  using C = ComputeType<T>;
  int64_t row, at;
  if (!u.Find<N>(&row, &at)) return;
  const int64_t place = row * 2 * u.half + at;
  Pack<T, N> a = LoadPack<N>(x + place), b = LoadPack<N>(x + place + u.half);
  const Pack<T, N> g = LoadPack<N>(dy + row * u.half + at);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    C da, db;
    Gate::Slopes(ConvertTo<C>(g.v[k]), ConvertTo<C>(a.v[k]), ConvertTo<C>(b.v[k]), &da, &db);
    a.v[k] = ConvertTo<T>(da);
    b.v[k] = ConvertTo<T>(db);
  }
  StorePack(dx + place, a);
  StorePack(dx + place + u.half, b);
}

// Calls launch(units, blocks, offset) for as many rows at a time as 32 bits can count; of longer
// ones, for a part of one row that begins `offset` elements behind where it would.
template <class F>
cudaError_t ForUnits(int64_t rows, int64_t half, int pack, const F& launch) {
  const int64_t units_of_row = half / pack;
  const int64_t rows_at_once = units_of_row < kMostUnits ? kMostUnits / units_of_row : 1;
  GatedUnits u;
  u.half = half;
  for (int64_t first = 0; first < units_of_row; first += kMostUnits) {
    const int64_t left = units_of_row - first, part = left < kMostUnits ? left : kMostUnits;
    u.units_of_row = Divisor(part);
    for (u.first_row = 0; u.first_row < rows; u.first_row += rows_at_once) {
      const int64_t more = rows - u.first_row, count = more < rows_at_once ? more : rows_at_once;
      u.units = static_cast<uint32_t>(count * part);
      const int64_t blocks = CeilDiv(int64_t{u.units}, int64_t{kThreads});
      const cudaError_t error = launch(u, blocks, first * pack);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

template <class T>
bool TakesPacks(int64_t half, std::initializer_list<const void*> all) {
  uintptr_t bits = 0;
  for (const void* p : all) bits |= reinterpret_cast<uintptr_t>(p);
  return bits % kPackBytes == 0 && half % kPackSize<T> == 0;
}

template <class Gate, class T>
cudaError_t Forward(int64_t rows, int64_t half, const void* x, void* y, cudaStream_t stream) {
  if (rows <= 0 || half <= 0) return cudaSuccess;
  constexpr int N = kPackSize<T>;
  const bool packs = TakesPacks<T>(half, {x, y});
  return ForUnits(rows, half, packs ? N : 1, [&](const GatedUnits& u, int64_t blocks, int64_t at) {
    return Launch(packs ? GatedKernel<Gate, N, T> : GatedKernel<Gate, 1, T>, blocks, kThreads, 0,
                  stream, u, static_cast<const T*>(x) + at, static_cast<T*>(y) + at);
  });
}
template <class Gate, class T>
cudaError_t Backward(int64_t rows, int64_t half, const void* dy, const void* x, void* dx,
                     cudaStream_t stream) {
  if (rows <= 0 || half <= 0) return cudaSuccess;
  constexpr int N = kPackSize<T>;
  const bool packs = TakesPacks<T>(half, {dy, x, dx});
  return ForUnits(rows, half, packs ? N : 1, [&](const GatedUnits& u, int64_t blocks, int64_t at) {
    return Launch(packs ? GatedBackwardKernel<Gate, N, T> : GatedBackwardKernel<Gate, 1, T>, blocks,
                  kThreads, 0, stream, u, static_cast<const T*>(dy) + at,
                  static_cast<const T*>(x) + at, static_cast<T*>(dx) + at);
  });
}

}  // namespace

GatedLaunchers FindGated(GateKind kind, DType dtype) {
  return VisitDeviceFloating<GatedLaunchers>(dtype, [&](auto tag) -> GatedLaunchers {
    using T = typename decltype(tag)::type;
    return kind == GateKind::kGlu ? GatedLaunchers{&Forward<Glu, T>, &Backward<Glu, T>}
                                  : GatedLaunchers{&Forward<Swiglu, T>, &Backward<Swiglu, T>};
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
