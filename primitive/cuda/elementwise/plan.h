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
#include "primitive/cuda/elementwise/pass.h"
#include "primitive/cuda/elementwise/plan_plain.h"

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

// From so many elements, or so many bytes of an operand, on a pass is launched in parts, so that an
// index has 31 bits and an offset 32.
inline constexpr int64_t kLargestPass = int64_t{1} << 30;
inline constexpr int64_t kLargestReach = (int64_t{1} << 32) - 4096;
// Rows of so many units are worth units that are not whole, at their ends.
inline constexpr int64_t kShortestRagged = 16;
// The share of a row, one in so many, that blocks of lines may do nothing for.
inline constexpr int64_t kLeastUnused = 4;
// Rows of so many units are worth blocks of their own, though the last one is not full.
inline constexpr int64_t kShortestStraight = 8 * kPassThreads;

namespace internal {

// The largest access that moves a unit of an operand, in bytes.
inline int64_t AccessOf(int64_t bytes, int pack) { return std::min<int64_t>(16, pack * bytes); }

// Divides rows into units where all operands allow it: they are dense along the row or have one
// number for it, are aligned wherever a unit begins, and no wider than the compute type.
template <int N>
bool DivideIntoUnits(Pass<N>& p, const Elementwise<N + 1>& g,
                     const std::array<int64_t, N + 1>& bytes, int pack) {
  const auto address = [&](int m) { return reinterpret_cast<intptr_t>(m < N ? p.in[m] : p.out); };
  const auto moves = [&](int m) { return m == N || p.form[m] == Form::kPacked; };
  if (int64_t{p.step[N]} != bytes[N] || pack * bytes[N] > 32) return false;
  int finest = N;  // the operand with most elements in an access
  for (int m = 0; m < N; ++m) {
    if (p.form[m] == Form::kStepped || (moves(m) && pack * bytes[m] > 32)) return false;
    if (moves(m) && bytes[m] < bytes[finest]) finest = m;
  }
  const int64_t access = AccessOf(bytes[finest], pack);
  p.past = static_cast<int>(address(finest) % access / bytes[finest]);
  for (int m = 0; m <= N; ++m) {
    if (!moves(m)) continue;
    if ((address(m) - p.past * bytes[m]) % AccessOf(bytes[m], pack) != 0) return false;
    for (int d = 0; d < g.ndim - 1; ++d) {
      if (g.strides[m][d] * bytes[m] % AccessOf(bytes[m], pack) != 0) return false;
    }
  }
  const bool all_whole = p.past == 0 && p.length % pack == 0;
  if (g.ndim > 1 && !all_whole && p.length < kShortestRagged * pack) return false;
  p.walk = Walk::kUnits;
  for (int m = 0; m < N; ++m) p.packed[m] = moves(m) ? static_cast<uint32_t>(bytes[m] * pack) : 0;
  const int64_t units = (p.length + p.past + pack - 1) / pack;
  p.whole_from = p.past != 0;
  p.whole_to = static_cast<uint32_t>((p.length + p.past) / pack);
  p.straight = g.ndim <= 1 || units % kPassThreads == 0 || units >= kShortestStraight;
  p.halved = p.straight && bytes[N] * pack == 32;
  const int64_t of_index = p.straight ? kPassThreads : 1;  // units
  const int64_t in_row = (units + of_index - 1) / of_index, count = p.numel / p.length * in_row;
  AppendDim<N>(p, in_row, [&](int m) { return p.step[m] * pack * of_index; });
  for (int d = g.ndim - 2; d >= 0; --d) {
    AppendDim<N>(p, g.dims[d], [&](int m) { return g.strides[m][d] * bytes[m]; });
  }
  p.units = static_cast<uint32_t>(p.straight ? units : count);
  p.blocks = static_cast<uint32_t>(p.straight ? count : (count + kPassThreads - 1) / kPassThreads);
  if (g.ndim <= 1) p.dense_from = p.whole_from, p.dense_to = p.whole_to / kPassThreads;
  for (int m = 0; m < N; ++m) {
    if (p.in[m]) p.in[m] -= p.past * p.step[m];
  }
  p.out -= p.past * p.step[N];
  return true;
}

// Tiles of rows that lie side by side in the dim `across`.
template <int N>
void DivideIntoTiles(Pass<N>& p, const Elementwise<N + 1>& g,
                     const std::array<int64_t, N + 1>& bytes, int across, int pack) {
  const int64_t cols = kPassThreads / kPassLanes * pack;
  p.walk = Walk::kTiles;
  p.rows = static_cast<int>(g.dims[across]);
  for (int m = 0; m <= N; ++m) {
    p.across[m] = static_cast<uint32_t>(g.strides[m][across] * bytes[m]);
    if (m < N && p.form[m] == Form::kStepped && g.strides[m][across] == 1) p.crossed |= 1u << m;
  }
  AppendDim<N>(p, (p.length + cols - 1) / cols, [&](int m) { return p.step[m] * cols; });
  AppendDim<N>(p, (p.rows + kPassLanes - 1) / kPassLanes,
               [&](int m) { return p.across[m] * kPassLanes; });
  p.blocks = p.dims[0] * p.dims[1];
  for (int d = g.ndim - 2; d >= 0; --d) {
    if (d == across) continue;
    AppendDim<N>(p, g.dims[d], [&](int m) { return g.strides[m][d] * bytes[m]; });
    p.blocks *= static_cast<uint32_t>(g.dims[d]);
  }
}

// Lines where rows are long or nearly fill their blocks; else single elements.
template <int N>
void DivideIntoElements(Pass<N>& p, const Elementwise<N + 1>& g,
                        const std::array<int64_t, N + 1>& bytes, int pack) {
  const int64_t of_block = kPassThreads * pack, in_row = (p.length + of_block - 1) / of_block;
  const bool lines = g.ndim <= 1 || in_row * of_block - p.length <= p.length / kLeastUnused;
  p.walk = lines ? Walk::kLines : Walk::kEach;
  for (int d = g.ndim - 1; d >= 0; --d) {
    const bool along = lines && d == g.ndim - 1;
    AppendDim<N>(p, along ? in_row : g.dims[d],
                 [&](int m) { return g.strides[m][d] * bytes[m] * (along ? of_block : 1); });
  }
  p.blocks = static_cast<uint32_t>(lines ? p.numel / p.length * in_row
                                         : (p.numel + of_block - 1) / of_block);
}

// The dim along which a pass is cut into halves that is too large for one launch, or -1.
template <int N>
int FindDimToCut(const PassTypes<N>& types, const Elementwise<N + 1>& g, const PassInputs<N>& in,
                 int64_t largest) {
  if (g.numel >= largest) {
    int d = 0;
    while (g.dims[d] == 1) ++d;
    return d;
  }
  for (int m = 0; m <= N; ++m) {
    if (m < N && !in[m].data) continue;
    const auto bytes = static_cast<int64_t>(SizeOf(m < N ? types.in[m] : types.out));
    const auto reach = [&](int d) { return (g.dims[d] - 1) * g.strides[m][d] * bytes; };
    int64_t sum = bytes;
    int farthest = 0;
    for (int d = 0; d < g.ndim; ++d) {
      sum += reach(d);
      if (reach(d) > reach(farthest)) farthest = d;
    }
    if (sum > kLargestReach) return farthest;
  }
  return -1;
}

}  // namespace internal

// One launch. Preconditions: g is ordered by the output, not empty, and within kLargestPass and
// kLargestReach.
template <int N>
Pass<N> PlanPass(const PassTypes<N>& types, const Elementwise<N + 1>& g, const PassInputs<N>& in,
                 void* out) {
  Pass<N> p;
  const DType shared = SharedDType(types.common);
  const int pack = 32 / static_cast<int>(SizeOf(shared)), last = g.ndim - 1;
  p.out = static_cast<char*>(out);
  p.numel = static_cast<int>(g.numel);
  p.length = static_cast<int>(g.ndim == 0 ? 1 : g.dims[last]);
  std::array<int64_t, N + 1> bytes;
  for (int m = 0; m <= N; ++m) {
    p.dtype[m] = m < N ? types.in[m] : types.out;
    bytes[m] = static_cast<int64_t>(SizeOf(p.dtype[m]));
    p.step[m] = static_cast<uint32_t>(bytes[m] * (g.ndim == 0 ? 1 : g.strides[m][last]));
  }
  for (int m = 0; m < N; ++m) {
    p.in[m] = static_cast<const char*>(in[m].data);
    p.value[m] = in[m].value;
    p.bytes[m] = static_cast<uint32_t>(bytes[m]);
    p.form[m] = !in[m].data                      ? Form::kValue
                : int64_t{p.step[m]} == bytes[m] ? Form::kPacked
                : p.step[m] == 0                 ? Form::kNumber
                                                 : Form::kStepped;
    const bool converted = p.form[m] == Form::kValue || SizeOf(p.dtype[m]) > SizeOf(shared);
    const DType held = converted ? shared : p.dtype[m];
    // A number given by value is as exact as the compute type.
    const bool rounded = in[m].data && NeedsRounding(p.dtype[m], types.common);
    p.held[m] = static_cast<uint32_t>(held);
    p.round[m] = static_cast<uint32_t>(rounded ? types.common : held);
  }
  p.stored = static_cast<uint32_t>(types.out);
  const auto narrow = [](DType t) { return IsFloating(t) && SizeOf(t) == 2; };
  const bool short_integers = !IsFloating(types.common) && SizeOf(types.common) <= 2;
  p.narrow = short_integers || (narrow(types.common) && narrow(types.out));
  bool alike = narrow(types.common) && (types.out == types.common || types.out == DType::kBool);
  bool dense = g.ndim <= 1;
  for (int i = 0; i < N; ++i) {
    alike = alike && (types.in[i] == types.common || p.form[i] == Form::kValue);
    dense = dense && (p.form[i] == Form::kPacked || p.form[i] == Form::kValue);
  }
  if (alike && internal::DividePlain<N>(p, g, bytes)) {
    p.plain = static_cast<uint32_t>(types.common);
    return p;
  }
  if (!internal::DivideIntoUnits<N>(p, g, bytes, pack)) {
    const int across = internal::FindAcross<N>(p, g);
    if (across >= 0 && int64_t{p.step[N]} == bytes[N] && p.length >= kShortestAcross) {
      internal::DivideIntoTiles<N>(p, g, bytes, across, pack);
    } else {
      internal::DivideIntoElements<N>(p, g, bytes, pack);
    }
  }
  const bool plain = alike && dense && p.walk == Walk::kUnits && p.past == 0;
  p.plain = plain ? static_cast<uint32_t>(types.common) : 0;
  bool single = p.halved != 0 && types.common == DType::kFloat32 && types.out == DType::kFloat32;
  for (int i = 0; i < N; ++i) {
    single = single && types.in[i] == DType::kFloat32 && p.packed[i] == 32;
  }
  p.single = single;
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
  const int d = internal::FindDimToCut<N>(types, g, in, largest);
  if (d < 0) return launch(PlanPass<N>(types, g, in, out));
  Elementwise<N + 1> half = g;
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
