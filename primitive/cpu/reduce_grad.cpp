// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/strided.h"
#include "primitive/reduce.h"
#include "primitive/reduce_grad_math.h"

namespace oneflow_lite {
namespace {

// Chunks of elements whose slice has the same operands (inner = 1), or whose operands lie in a row.
template <class C>
class CpuReduceGrad final : public ReduceGrad {
 public:
  explicit CpuReduceGrad(const Spec& spec)
      : spec_(spec),
        item_(static_cast<int64_t>(SizeOf(spec.dtype))),
        load_(FindConvert(spec.dtype, DTypeOf<C>())),
        store_(FindConvert(DTypeOf<C>(), spec.dtype)) {}

  Status Launch(Stream&, const AxisSplit& shape, double parameter, const Operands& operands,
                void* dx) const override {
    const int64_t run = shape.inner == 1 ? shape.axis : shape.inner;
    const int64_t runs = shape.outer * (shape.inner == 1 ? 1 : shape.axis);
    if (run == 0 || runs == 0) return OkStatus();
    ParallelFor(runs, std::max<int64_t>(1, kElementwiseGrain / run),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) Run(shape, parameter, operands, r, run, dx);
                });
    return OkStatus();
  }

 private:
  void Run(const AxisSplit& shape, double parameter, const Operands& o, int64_t r, int64_t run,
           void* dx) const {
    const bool rows = shape.inner == 1;
    const int64_t of = rows ? r : r / shape.axis * shape.inner;  // the first slice
    for (int64_t begin = 0; begin < run; begin += kChunk) {
      const int64_t n = std::min(kChunk, run - begin), slices = rows ? 1 : n;
      const int64_t slice = of + (rows ? 0 : begin);
      C dy[kChunk], x[kChunk], y[kChunk], result[kChunk];
      Load(o.dy, slice, slices, dy);
      Load(o.x, r * run + begin, n, x);
      if (o.y) Load(o.y, slice, slices, y);
      const C* extra = o.extra ? static_cast<const C*>(o.extra) + slice : nullptr;
      const int64_t* zeros = o.zeros ? o.zeros + slice : nullptr;
      VisitReduceGrad(spec_.op, [&](auto op) {
        for (int64_t i = 0; i < n; ++i) {
          const int64_t s = rows ? 0 : i;
          result[i] = ReduceGradOf<decltype(op)::value>(
              dy[s], x[i], o.y ? y[s] : C(0), extra ? extra[s] : C(0), zeros ? zeros[s] : 0,
              static_cast<C>(parameter));
        }
      });
      store_(n, result, static_cast<char*>(dx) + (r * run + begin) * item_);
    }
  }

  void Load(const void* from, int64_t offset, int64_t n, C* to) const {
    load_(n, static_cast<const char*>(from) + offset * item_, to);
  }

  Spec spec_;
  int64_t item_;
  ConvertFunction load_, store_;
};

StatusOr<std::unique_ptr<ReduceGrad>> NewReduceGrad(const ReduceGrad::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(ReduceGrad::kName, DeviceType::kCPU, spec.dtype);
  }
  if (spec.dtype == DType::kFloat64) return std::make_unique<CpuReduceGrad<double>>(spec);
  return std::make_unique<CpuReduceGrad<float>>(spec);
}

const bool registered = RegisterPrimitive<ReduceGrad>(DeviceType::kCPU, &NewReduceGrad);

}  // namespace
}  // namespace oneflow_lite
