// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/strided.h"
#include "primitive/reduce.h"
#include "primitive/reduce_grad_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/reduce_grad.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_REDUCE_GRAD_ONCE_
#define OFL_PRIMITIVE_CPU_REDUCE_GRAD_ONCE_
namespace oneflow_lite {
// A chunk's n elements, of slices of their own or, where `same`, of the one slice dy[0], extra[0].
template <class C>
struct ReduceGradChunk {
  int64_t n;
  bool same;
  const C *dy, *x, *extra;
};
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// dy exp(x - extra), as ReduceGradOf has it.
template <class C>
void ExpSlopes(const ReduceGradChunk<C>& c, C* out) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d), all_dy = hn::Set(d, c.dy[0]), all_extra = hn::Set(d, c.extra[0]);
  ForEachVector(d, static_cast<size_t>(c.n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto dy = c.same ? all_dy : LoadUpTo(d, c.dy + i, count, zero);
    const auto extra = c.same ? all_extra : LoadUpTo(d, c.extra + i, count, zero);
    const auto x = LoadUpTo(d, c.x + i, count, zero);
    StoreUpTo(hn::Mul(dy, ExpOf(d, hn::Sub(x, extra))), d, out + i, count);
  });
}

}  // namespace

void FloatExpSlopes(const ReduceGradChunk<float>& c, float* out) { ExpSlopes(c, out); }
void DoubleExpSlopes(const ReduceGradChunk<double>& c, double* out) { ExpSlopes(c, out); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatExpSlopes);
HWY_EXPORT(DoubleExpSlopes);

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
      if (spec_.op == ReduceGradKind::kLogSumExp) {
        Exponentials({n, rows, dy, x, extra}, result);
      } else {
        VisitReduceGrad(spec_.op, [&](auto op) {
          for (int64_t i = 0; i < n; ++i) {
            const int64_t s = rows ? 0 : i;
            result[i] = ReduceGradOf<decltype(op)::value>(
                dy[s], x[i], o.y ? y[s] : C(0), extra ? extra[s] : C(0), zeros ? zeros[s] : 0,
                static_cast<C>(parameter));
          }
        });
      }
      store_(n, result, static_cast<char*>(dx) + (r * run + begin) * item_);
    }
  }

  static void Exponentials(const ReduceGradChunk<C>& c, C* out) {
    if constexpr (std::is_same_v<C, float>) {
      HWY_DYNAMIC_DISPATCH(FloatExpSlopes)(c, out);
    } else {
      HWY_DYNAMIC_DISPATCH(DoubleExpSlopes)(c, out);
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
#endif  // HWY_ONCE
