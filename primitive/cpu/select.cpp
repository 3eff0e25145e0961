// SPDX-License-Identifier: Apache-2.0
#include "primitive/select.h"

#include <algorithm>

#include "oneflow_lite/core/elementwise_order.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/chunk_conversion.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

using SelectLoop = void (*)(int64_t n, const void* condition, const void* a, const void* b,
                            void* out);

// T is an unsigned integer as wide as the elements: a mask in place of a branch vectorises.
template <class T>
void Loop(int64_t n, const void* condition_data, const void* a_data, const void* b_data,
          void* out_data) {
  const auto* condition = static_cast<const uint8_t*>(condition_data);
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* out = static_cast<T*>(out_data);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T mask = static_cast<T>(T(0) - T(condition[i] != 0));
    out[i] = static_cast<T>((a[i] & mask) | (b[i] & static_cast<T>(~mask)));
  }
}

SelectLoop FindLoop(size_t item) {
  switch (item) {
    case 1:
      return &Loop<uint8_t>;
    case 2:
      return &Loop<uint16_t>;
    case 4:
      return &Loop<uint32_t>;
    default:
      return &Loop<uint64_t>;
  }
}

class CpuSelect final : public Select {
 public:
  explicit CpuSelect(DType dtype) : item_(SizeOf(dtype)), loop_(FindLoop(item_)) {}

  Status Launch(Stream&, const Elementwise<4>& given, const Operand& condition, const Operand& a,
                const Operand& b, void* out) const override {
    const Elementwise<4> g = OrderedBy(given, 3);
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      StridedReader in_condition(g, 0, 1, DataOf(condition), begin);
      StridedReader in_a(g, 1, item_, DataOf(a), begin), in_b(g, 2, item_, DataOf(b), begin);
      StridedWriter writer(g, 3, item_, out, begin);
      ChunkBuffer conditions, as, bs, result;
      const ChunkLengths lengths(g.ndim == 0 ? 1 : g.dims[g.ndim - 1]);
      for (int64_t i = begin, n; i < end; i += n) {
        n = std::min(lengths.At(i), end - i);
        const void* chunk = in_condition.Read(n, conditions);
        const void* chunk_a = in_a.Read(n, as);
        const void* chunk_b = in_b.Read(n, bs);
        loop_(n, chunk, chunk_a, chunk_b, writer.Start(n, result));
        writer.Finish(n, result);
      }
    });
    return OkStatus();
  }

 private:
  // The lowest bytes come first on every CPU that there are kernels for.
  static const void* DataOf(const Operand& o) { return o.data ? o.data : &o.bits; }

  size_t item_;
  SelectLoop loop_;
};

StatusOr<std::unique_ptr<Select>> NewSelect(const Select::Spec& spec) {
  return std::make_unique<CpuSelect>(spec.dtype);
}

const bool registered = RegisterPrimitive<Select>(DeviceType::kCPU, &NewSelect);

}  // namespace
}  // namespace oneflow_lite
