// SPDX-License-Identifier: Apache-2.0
//
// From an elementwise geometry to launches. Needs no GPU.
//
//   const PassTypes<2> types{{a.dtype(), b.dtype()}, common, common};
//   ForEachPass<2>(types, g, {{{a.data()}, {b.data()}}}, out.data(),
//                  [&](const Pass<2>& pass) { return launcher(pass, stream); });
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "oneflow_lite/core/elementwise_order.h"
#include "primitive/cuda/elementwise_pass.h"

namespace oneflow_lite::cuda {

// `common`: the dtype that the operands are promoted to, in whose compute type the function runs.
template <int N>
struct PassTypes {
  std::array<DType, N> in;
  DType common;
  DType out;
};

// An input: elements, or without data one number, an element of SharedDType(common) in the lowest
// bytes.
struct PassInput {
  const void* data = nullptr;
  uint64_t value = 0;
};
template <int N>
using PassInputs = std::array<PassInput, N>;

// The dtype of the compute type's elements in registers; all integers of up to 4 bytes share one.
constexpr DType SharedDType(DType common) {
  if (IsFloating(common)) return ComputeType(common);
  return common == DType::kInt64 ? DType::kInt64 : DType::kInt32;
}
// The 16-bit float that elements are rounded to before the function, where they are not yet.
constexpr bool NeedsRounding(DType dtype, DType common) {
  const bool exact = dtype == DType::kBool || dtype == DType::kUInt8 || dtype == DType::kInt8;
  return IsFloating(common) && SizeOf(common) == 2 && dtype != common && !exact;
}

// From this many elements on a pass is launched in parts, so that an index has 31 bits.
inline constexpr int64_t kLargestPass = int64_t{1} << 30;
// Dims as long as this are worth reading across: a warp's threads lie along them.
inline constexpr int64_t kShortestAcross = 32;

namespace internal {

inline void SetDivisor(uint32_t divisor, uint32_t* multiplier, uint32_t* shift) {
  *shift = 0;
  while ((uint64_t{1} << *shift) < divisor) ++*shift;
  *multiplier = static_cast<uint32_t>(
      (uint64_t{1} << 32) * ((uint64_t{1} << *shift) - divisor) / divisor + 1);
}

// Appends a dim of the index; `g_dim` is that of g, or -1 for the one along the row.
template <int N>
void AppendDim(Pass<N>& p, const Elementwise<N + 1>& g, const std::array<int64_t, N + 1>& bytes,
               int64_t size, int g_dim) {
  const int d = p.ndim++;
  p.dims[d] = static_cast<uint32_t>(size);
  if (size > 0) SetDivisor(p.dims[d], &p.multiplier[d], &p.shift[d]);
  if (g_dim < 0) {
    p.row_dim = d;
    return;
  }
  for (int m = 0; m <= N; ++m) p.strides[m][d] = g.strides[m][g_dim] * bytes[m];
}

// The dim across which an input that is not dense along the row is, or -1.
template <int N>
int FindAcross(const Pass<N>& p, const Elementwise<N + 1>& g) {
  for (int m = 0; m < N; ++m) {
    if (p.form[m] != Form::kStepped) continue;
    for (int d = g.ndim - 2; d >= 0; --d) {
      if (g.strides[m][d] == 1 && g.dims[d] >= kShortestAcross) return d;
    }
  }
  return -1;
}

template <int N>
bool IsDenseOperand(const Elementwise<N>& g, int operand) {
  int64_t stride = 1;
  for (int d = g.ndim - 1; d >= 0; --d) {
    if (g.strides[operand][d] != stride) return false;
    stride *= g.dims[d];
  }
  return true;
}

// Whether operands are dense, aligned to 16 bytes and of elements of one size, or given by value.
template <int N>
bool IsPlain(const Pass<N>& p, const std::array<int64_t, N + 1>& bytes, DType shared) {
  const bool of_register = bytes[N] == static_cast<int64_t>(SizeOf(shared));
  if (p.ndim > 1 || p.past != 0 || !(of_register || (SizeOf(shared) == 4 && bytes[N] == 2)))
    return false;
  for (int m = 0; m < N; ++m) {
    const bool aligned = reinterpret_cast<uintptr_t>(p.in[m]) % 16 == 0;
    const bool alike = p.form[m] == Form::kPacked && bytes[m] == bytes[N] && aligned;
    if (!alike && p.form[m] != Form::kValue) return false;
  }
  return reinterpret_cast<uintptr_t>(p.out) % 16 == 0;
}

// Units of rows: each begins at the row's last boundary.
template <int N>
void DivideRows(Pass<N>& p, const Elementwise<N + 1>& g, const std::array<int64_t, N + 1>& bytes,
                int across, int pack) {
  const int last = g.ndim - 1;
  for (int d = 0; d < last; ++d) {
    p.own_past = p.own_past || g.strides[N][d] % p.align != 0;
  }
  const int64_t most_past = p.own_past ? p.align - 1 : p.past;
  int64_t units = (p.length + most_past + pack - 1) / pack;
  p.adjacent = across >= 0;
  if (p.adjacent) {
    AppendDim<N>(p, g, bytes, g.dims[across], across);
    units = (units + kPassDepth<N> - 1) / kPassDepth<N>;
  }
  AppendDim<N>(p, g, bytes, units, -1);
  for (int d = last - 1; d >= 0; --d) {
    if (d != across) AppendDim<N>(p, g, bytes, g.dims[d], d);
  }
  p.units = static_cast<uint32_t>(p.length == 0 ? 0 : g.numel / p.length * units);
}

}  // namespace internal

// One launch. Preconditions: g is ordered by the output, not empty, and below kLargestPass unless
// it has one dim.
template <int N>
Pass<N> PlanPass(const PassTypes<N>& types, const Elementwise<N + 1>& g, const PassInputs<N>& in,
                 void* out) {
  Pass<N> p;
  const DType shared = SharedDType(types.common);
  const int pack = 32 / static_cast<int>(SizeOf(shared)), last = g.ndim - 1;
  p.out = static_cast<char*>(out);
  p.numel = g.numel;
  p.length = g.ndim == 0 ? 1 : g.dims[last];
  std::array<int64_t, N + 1> bytes;
  for (int m = 0; m <= N; ++m) {
    p.dtype[m] = m < N ? types.in[m] : types.out;
    bytes[m] = static_cast<int64_t>(SizeOf(p.dtype[m]));
    p.step[m] = g.ndim == 0 ? bytes[m] : g.strides[m][last] * bytes[m];
  }
  for (int m = 0; m < N; ++m) {
    p.in[m] = static_cast<const char*>(in[m].data);
    p.value[m] = in[m].value;
    p.bytes[m] = static_cast<uint8_t>(bytes[m]);
    p.form[m] = !in[m].data             ? Form::kValue
                : p.step[m] == bytes[m] ? Form::kPacked
                : p.step[m] == 0        ? Form::kNumber
                                        : Form::kStepped;
    const bool converted = p.form[m] == Form::kValue || p.form[m] == Form::kNumber ||
                           SizeOf(p.dtype[m]) > SizeOf(shared);
    p.held[m] = converted ? shared : p.dtype[m];
    // A number given by value is as exact as the compute type.
    const bool rounded = in[m].data && NeedsRounding(p.dtype[m], types.common);
    p.round[m] = rounded ? types.common : p.held[m];
  }
  while ((int64_t{1} << p.size_log2) < bytes[N]) ++p.size_log2;
  p.dense_out = p.step[N] == bytes[N];
  if (p.dense_out) {
    p.align = static_cast<uint8_t>(std::min<int64_t>(16, pack * bytes[N]) / bytes[N]);
    p.past = static_cast<int>(reinterpret_cast<uintptr_t>(out) >> p.size_log2) & (p.align - 1);
  }
  const int across = internal::FindAcross<N>(p, g);
  p.flat = across < 0 && internal::IsDenseOperand(g, N);
  if (!p.flat) {
    internal::DivideRows<N>(p, g, bytes, across, pack);
    return p;
  }
  p.units = static_cast<uint32_t>((p.numel + p.past + pack - 1) / pack);
  p.halved = bytes[N] == static_cast<int64_t>(SizeOf(shared));
  if (g.ndim > 0) internal::AppendDim<N>(p, g, bytes, p.length, -1);
  for (int d = last - 1; d >= 0; --d) internal::AppendDim<N>(p, g, bytes, g.dims[d], d);
  if (internal::IsPlain<N>(p, bytes, shared)) {
    p.plain_blocks = static_cast<uint32_t>(p.numel / (pack * kPassThreads * kPassDepth<N>));
  }
  return p;
}

// Calls launch(const Pass<N>&), more than once only for gigantic passes, and gives its error code,
// which is 0 where all is well.
template <int N, class F>
std::invoke_result_t<F, const Pass<N>&> ForEachPass(const PassTypes<N>& types,
                                                    const Elementwise<N + 1>& geometry,
                                                    const PassInputs<N>& in, void* out, F&& launch,
                                                    int64_t largest = kLargestPass) {
  using Error = std::invoke_result_t<F, const Pass<N>&>;
  if (geometry.numel <= 0) return Error{};
  const Elementwise<N + 1> g = OrderedBy(geometry, N);
  // An index of a single dim is not divided: units count.
  if (g.numel < largest || (g.ndim == 1 && g.numel < 4 * largest)) {
    return launch(PlanPass<N>(types, g, in, out));
  }
  Elementwise<N + 1> half = g;
  int d = 0;
  while (g.dims[d] == 1) ++d;
  const int64_t begin[] = {0, g.dims[d] / 2, g.dims[d]};
  for (int part = 0; part < 2; ++part) {
    half.dims[d] = begin[part + 1] - begin[part];
    half.numel = g.numel / g.dims[d] * half.dims[d];
    PassInputs<N> from = in;
    for (int m = 0; m < N; ++m) {
      if (!in[m].data) continue;
      from[m].data = static_cast<const char*>(in[m].data) +
                     begin[part] * g.strides[m][d] * static_cast<int64_t>(SizeOf(types.in[m]));
    }
    char* to = static_cast<char*>(out) +
               begin[part] * g.strides[N][d] * static_cast<int64_t>(SizeOf(types.out));
    const Error error = ForEachPass<N>(types, half, from, to, launch, largest);
    if (error != Error{}) return error;
  }
  return Error{};
}

}  // namespace oneflow_lite::cuda
