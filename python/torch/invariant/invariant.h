// SPDX-License-Identifier: Apache-2.0
//
// What invariant=True asks for: the results of a row depend on neither the number of rows nor the
// row's place among them.
//
// On the CPU rows are launched by parts, so that no kernel sees how many there are (EachRows). On
// CUDA rows of whole packs of 16 bytes have the kernels that all rows have, by plans that know no
// number of rows (CurrentStream), once they are aligned (NeedsCopy). How the threads of those
// kernels share other rows follows from where a row begins, so these have kernels of their own, in
// which it follows from a row's own first column: the primitives Invariant<P>. The gradients of
// norms up to 256 packs wide go column by column by default, too, and have that kernel.
#pragma once

#include <algorithm>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/row_plan.h"
#include "python/torch/bindings/launch.h"

namespace oneflow_lite::torch_ops {

// "invariant softmax" beside "softmax".
template <class P>
struct InvariantName {
  static constexpr char kPrefix[] = "invariant ";
  char text[sizeof(kPrefix) + sizeof(P::kName)] = {};
  constexpr InvariantName() {
    char* to = text;
    for (const char* from = kPrefix; *from; ++from) *to++ = *from;
    for (const char* from = P::kName; *from; ++from) *to++ = *from;
  }
};

// P for rows of any width and alignment; CUDA has them.
template <class P>
class Invariant : public P {
  static constexpr InvariantName<P> kText{};

 public:
  static constexpr const char* kName = kText.text;
};

// Whether rows of so many columns are whole packs.
inline bool IsWhole(DType dtype, int64_t cols) { return cols * SizeOf(dtype) % 16 == 0; }

// The primitive for x's rows. `always`: whole packs are Invariant<P>'s, too.
template <class P>
const P& RowPrimitive(bool invariant, const Device& device, const typename P::Spec& spec,
                      int64_t cols, int variant = 0, bool always = false) {
  if (invariant && device.type == DeviceType::kCUDA && (always || !IsWhole(spec.dtype, cols))) {
    return Primitive<Invariant<P>>(device.type, spec, variant);
  }
  return Primitive<P>(device.type, spec, variant);
}

// Whether every row of x begins at a multiple of 16 bytes, `stride` elements behind the one before.
inline bool BeginsAligned(const TensorInfo& x, int64_t stride) {
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && stride * SizeOf(x.dtype) % 16 == 0;
}
// Whether an invariant launch of rows of `cols` columns needs x's rows otherwise: CopyOf's.
inline bool NeedsCopy(bool invariant, const TensorInfo& x, int64_t cols, int64_t stride) {
  return invariant && x.device.type == DeviceType::kCUDA && IsWhole(x.dtype, cols) &&
         !BeginsAligned(x, stride);
}
// A dense tensor of such rows, copied where that is so.
inline Tensor Aligned(bool invariant, const Tensor& dense, int64_t cols) {
  return NeedsCopy(invariant, TensorInfo(dense), cols, cols) ? CopyOf(dense) : dense;
}

// While it lives, this thread's launches are not shared out among threads.
class SerialRegion {
 public:
  SerialRegion();
  ~SerialRegion();

 private:
  bool before_;
};

// Calls launch(first, count) for parts of the rows. Of an invariant launch on the CPU none is so
// large that its output is stored past the caches, unless a row is; `alone`: each row by itself.
template <class F>
void EachRows(bool invariant, const TensorInfo& x, int64_t rows, int64_t cols, const F& launch,
              bool alone = false) {
  if (!invariant || x.device.type == DeviceType::kCUDA) {
    launch(int64_t{0}, rows);
    return;
  }
  const int64_t bytes = std::max<int64_t>(1, cols * static_cast<int64_t>(SizeOf(x.dtype)));
  const int64_t part = alone ? 1 : std::max<int64_t>(1, (int64_t{8} << 20) / bytes);
  ParallelFor(rows, RowGrain(std::max<int64_t>(1, cols)), [&](int64_t begin, int64_t end) {
    const SerialRegion serial;
    for (int64_t row = begin; row < end; row += part) launch(row, std::min(part, end - row));
  });
}

// p, that many bytes further; null stays null.
inline const void* Further(const void* p, int64_t bytes) {
  return p ? static_cast<const char*>(p) + bytes : nullptr;
}
inline void* Further(void* p, int64_t bytes) { return p ? static_cast<char*>(p) + bytes : nullptr; }

}  // namespace oneflow_lite::torch_ops
