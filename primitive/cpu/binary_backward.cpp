// SPDX-License-Identifier: Apache-2.0
//
// Both gradients of a function of two operands, of which one is summed. Sums are taken in the
// compute type over fixed parts of the shape, and the parts' sums added up in double, so the number
// of threads does not show in the result.
#include "primitive/binary_backward.h"

#include <algorithm>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary_backward.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_BACKWARD_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_BACKWARD_ONCE_
namespace oneflow_lite {
// n elements of the compute type. Columns: each has its b, and its term is added to its sum. Row: b
// is one number; returns the sum of the terms.
template <class C>
struct BackwardLoops {
  void (*columns)(int64_t n, const C* dy, const C* a, const C* b, C* da, C* sums);
  C (*row)(int64_t n, const C* dy, const C* a, C b, C* da);
};
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

struct Mul {
  template <class D, class V>
  static HWY_INLINE V A(D, V dy, V, V b) {
    return hn::Mul(dy, b);
  }
  template <class D, class V>
  static HWY_INLINE V B(D, V dy, V a) {
    return hn::Mul(dy, a);
  }
};
struct Prelu {
  template <class D, class V>
  static HWY_INLINE V A(D d, V dy, V a, V b) {
    return hn::IfThenElse(hn::Gt(a, hn::Zero(d)), dy, hn::Mul(dy, b));
  }
  template <class D, class V>
  static HWY_INLINE V B(D d, V dy, V a) {
    return hn::IfThenZeroElse(hn::Gt(a, hn::Zero(d)), hn::Mul(dy, a));
  }
};

template <class F, class C>
void Columns(int64_t n, const C* dy, const C* a, const C* b, C* da, C* sums) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto g = LoadUpTo(d, dy + i, count, zero), x = LoadUpTo(d, a + i, count, zero);
    const auto sum = LoadUpTo(d, sums + i, count, zero);
    StoreUpTo(F::A(d, g, x, LoadUpTo(d, b + i, count, zero)), d, da + i, count);
    StoreUpTo(hn::Add(sum, F::B(d, g, x)), d, sums + i, count);
  });
}
template <class F, class C>
C Row(int64_t n, const C* dy, const C* a, C b, C* da) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d), factor = hn::Set(d, b);
  auto sum0 = zero, sum1 = zero, sum2 = zero, sum3 = zero;
  ForVectors(d, static_cast<size_t>(n), [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    const auto g = LoadUpTo(d, dy + i, count, zero), x = LoadUpTo(d, a + i, count, zero);
    StoreUpTo(F::A(d, g, x, factor), d, da + i, count);
    const auto term = F::B(d, g, x);
    if constexpr (slot.value == 0) sum0 = hn::Add(sum0, term);
    if constexpr (slot.value == 1) sum1 = hn::Add(sum1, term);
    if constexpr (slot.value == 2) sum2 = hn::Add(sum2, term);
    if constexpr (slot.value == 3) sum3 = hn::Add(sum3, term);
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

template <class C>
BackwardLoops<C> Find(BinaryOp op) {
  if (op == BinaryOp::kMul) return {&Columns<Mul, C>, &Row<Mul, C>};
  return {&Columns<Prelu, C>, &Row<Prelu, C>};
}

}  // namespace

BackwardLoops<float> FloatBackward(BinaryOp op) { return Find<float>(op); }
BackwardLoops<double> DoubleBackward(BinaryOp op) { return Find<double>(op); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatBackward);
HWY_EXPORT(DoubleBackward);

constexpr int64_t kShortRun = 32;    // of equal b, which is spread over columns
constexpr int64_t kChunk = 1024;     // elements between widening and rounding
constexpr int64_t kBlock = 1 << 14;  // of a row, at most
constexpr int64_t kGrain = 1 << 14;  // elements worth a thread

// Rows go in chunks of at most 128, so that float32 sums stay exact. There are at least 64 chunks
// where there are rows enough.
struct Plan {
  explicit Plan(const AxisSplit& s)
      : by_columns(s.inner < kShortRun),
        columns(s.axis * s.inner),
        chunk_rows(std::clamp<int64_t>(s.outer / 64, 16, 128)),
        chunks((s.outer + chunk_rows - 1) / chunk_rows),
        blocks((s.inner + kBlock - 1) / kBlock) {}

  bool by_columns;
  int64_t columns, chunk_rows, chunks, blocks;
};

template <class T>
class Runner {
 public:
  using C = ComputeOf<T>;
  Runner(BinaryOp op, const AxisSplit& shape, const BinaryBackward::Pointers& at, void* workspace)
      : shape_(shape),
        plan_(shape),
        dy_(static_cast<const T*>(at.dy)),
        a_(static_cast<const T*>(at.a)),
        b_(static_cast<const T*>(at.b)),
        da_(static_cast<T*>(at.da)),
        db_(static_cast<T*>(at.db)),
        workspace_(workspace) {
    if constexpr (std::is_same_v<C, double>) {
      loops_ = HWY_DYNAMIC_DISPATCH(DoubleBackward)(op);
    } else {
      loops_ = HWY_DYNAMIC_DISPATCH(FloatBackward)(op);
    }
  }
  static size_t WorkspaceBytes(const AxisSplit& shape) {
    const Plan p(shape);
    if (p.by_columns) return static_cast<size_t>((p.chunks + 1) * p.columns) * sizeof(C);
    return static_cast<size_t>(shape.outer * shape.axis * p.blocks) * sizeof(double);
  }
  void Run() const {
    if (shape_.outer * shape_.axis * shape_.inner == 0) {
      std::fill_n(db_, shape_.axis, T(C(0)));
    } else {
      plan_.by_columns ? ByColumns() : ByRows();
    }
  }

 private:
  // loop(dy, a, da, n) for the elements from `first` on, in the compute type.
  template <class Loop>
  void Pieces(int64_t first, int64_t n, const Loop& loop) const {
    if constexpr (std::is_same_v<T, C>) {
      loop(dy_ + first, a_ + first, da_ + first, int64_t{0}, n);
    } else {
      static const ConvertFunction kWiden = FindConvert(DTypeOf<T>(), DTypeOf<C>());
      static const ConvertFunction kRound = FindConvert(DTypeOf<C>(), DTypeOf<T>());
      C dy[kChunk], a[kChunk], da[kChunk];
      for (int64_t i = 0; i < n; i += kChunk) {
        const int64_t here = std::min(kChunk, n - i);
        kWiden(here, dy_ + first + i, dy);
        kWiden(here, a_ + first + i, a);
        loop(dy, a, da, i, here);
        kRound(here, da, da_ + first + i);
      }
    }
  }

  void ByColumns() const {
    C *wide = static_cast<C*>(workspace_), *sums = wide + plan_.columns;
    for (int64_t i = 0; i < shape_.axis; ++i) {
      std::fill_n(wide + i * shape_.inner, shape_.inner, static_cast<C>(b_[i]));
    }
    const int64_t parts = (plan_.columns + kChunk - 1) / kChunk;
    const int64_t task = plan_.chunk_rows * std::min(kChunk, plan_.columns);
    ParallelFor(plan_.chunks * parts, (kGrain + task - 1) / task, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        ColumnsOfChunk(t / parts, t % parts * kChunk, wide, sums);
    });
    ParallelFor(shape_.axis, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kChunk)
        MergeColumns(i, std::min(end, i + kChunk), sums);
    });
  }
  void ColumnsOfChunk(int64_t chunk, int64_t column, const C* wide, C* sums) const {
    const int64_t n = std::min(kChunk, plan_.columns - column);
    const int64_t end = std::min(shape_.outer, (chunk + 1) * plan_.chunk_rows);
    C* sum = sums + chunk * plan_.columns + column;
    std::fill_n(sum, n, C(0));
    for (int64_t row = chunk * plan_.chunk_rows; row < end; ++row) {
      Pieces(row * plan_.columns + column, n,
             [&](const C* dy, const C* a, C* da, int64_t i, int64_t here) {
               loops_.columns(here, dy, a, wide + column + i, da, sum + i);
             });
    }
  }
  void MergeColumns(int64_t begin, int64_t end, const C* sums) const {
    double total[kChunk] = {};
    for (int64_t k = 0; k < plan_.chunks; ++k) {
      const C* sum = sums + k * plan_.columns + begin * shape_.inner;
      for (int64_t i = 0; i < end - begin; ++i) {
        for (int64_t j = 0; j < shape_.inner; ++j) total[i] += *sum++;
      }
    }
    for (int64_t i = begin; i < end; ++i) db_[i] = T(static_cast<C>(total[i - begin]));
  }

  void ByRows() const {
    auto* sums = static_cast<double*>(workspace_);
    const int64_t blocks = plan_.blocks, rows = shape_.outer * shape_.axis;
    const int64_t task = std::min(kBlock, shape_.inner);
    ParallelFor(rows * blocks, (kGrain + task - 1) / task, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = t / blocks, first = t % blocks * kBlock;
        sums[t] = SumOfBlock(row, first, std::min(kBlock, shape_.inner - first));
      }
    });
    for (int64_t i = 0; i < shape_.axis; ++i) {
      double total = 0;
      for (int64_t o = 0; o < shape_.outer; ++o) {
        const double* sum = sums + (o * shape_.axis + i) * blocks;
        for (int64_t k = 0; k < blocks; ++k) total += sum[k];
      }
      db_[i] = T(static_cast<C>(total));
    }
  }
  double SumOfBlock(int64_t row, int64_t first, int64_t n) const {
    const C b = static_cast<C>(b_[row % shape_.axis]);
    double sum = 0;
    Pieces(row * shape_.inner + first, n,
           [&](const C* dy, const C* a, C* da, int64_t, int64_t here) {
             for (int64_t i = 0; i < here; i += kChunk) {
               sum += loops_.row(std::min(kChunk, here - i), dy + i, a + i, b, da + i);
             }
           });
    return sum;
  }

  AxisSplit shape_;
  Plan plan_;
  const T *dy_, *a_, *b_;
  T *da_, *db_;
  void* workspace_;
  BackwardLoops<C> loops_;
};

class CpuBinaryBackward final : public BinaryBackward {
 public:
  explicit CpuBinaryBackward(const Spec& spec) : spec_(spec) {}
  size_t WorkspaceBytes(const Stream&, const AxisSplit& shape) const override {
    return VisitFloating(spec_.dtype,
                         [&]<class T>(Tag<T>) { return Runner<T>::WorkspaceBytes(shape); });
  }
  Status Launch(Stream&, const AxisSplit& shape, const Pointers& at,
                void* workspace) const override {
    VisitFloating(spec_.dtype,
                  [&]<class T>(Tag<T>) { Runner<T>(spec_.op, shape, at, workspace).Run(); });
    return OkStatus();
  }

 private:
  Spec spec_;
};

StatusOr<std::unique_ptr<BinaryBackward>> New(const BinaryBackward::Spec& spec) {
  if (!IsFloating(spec.dtype) || !HasBinaryBackward(spec.op)) {
    return NoPrimitiveFor(BinaryBackward::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuBinaryBackward>(spec);
}

const bool registered = RegisterPrimitive<BinaryBackward>(DeviceType::kCPU, &New);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
