// SPDX-License-Identifier: Apache-2.0
//
// Distances of pairs of rows: the second matrix is turned into panels of columns, so that a vector
// holds one element of many rows, and a row of the first meets a panel element by element.
#include "primitive/distances.h"

#include <algorithm>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/distances.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_DISTANCES_ONCE_
#define OFL_PRIMITIVE_CPU_DISTANCES_ONCE_
namespace oneflow_lite {

inline constexpr int64_t kPanel = 64;  // rows of b, a multiple of four vectors' lanes
// Where y of one row of a begins, and the first row of b that it has.
struct DistanceRow {
  int64_t start, first;
  DistanceRow(const Distances::Problem& p, int64_t row)
      : start(p.pairs ? row * (2 * p.n - row - 1) / 2 : row * p.n), first(p.pairs ? row + 1 : 0) {}
};
using DistanceLoop = void (*)(const Distances::Problem& p, const void* a, const void* panels,
                              int64_t begin, int64_t end, void* y);

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

using Norm = Distances::Norm;

template <Norm kNorm, class D>
HWY_INLINE hn::Vec<D> Joined(D d, hn::Vec<D> sum, hn::Vec<D> off) {
  if constexpr (kNorm == Norm::kEuclid) return hn::MulAdd(off, off, sum);
  if constexpr (kNorm == Norm::kSum) return hn::Add(sum, hn::Abs(off));
  if constexpr (kNorm == Norm::kCount) {
    const auto one = hn::Set(d, hn::TFromD<D>(1));
    return hn::Add(sum, hn::IfThenZeroElse(hn::Eq(off, hn::Zero(d)), one));
  }
  const auto size = hn::Abs(off);
  return hn::IfThenElse(hn::Or(hn::Gt(size, sum), hn::IsNaN(size)), size, sum);
}

// One row of a and a panel: kPanel distances. Sums of kPart elements are added up, which bounds
// their rounding.
template <Norm kNorm, class T>
HWY_INLINE void MeetPanel(int64_t depth, const T* HWY_RESTRICT row, const T* HWY_RESTRICT panel,
                          T* HWY_RESTRICT y) {
  constexpr int64_t kPart = 128;
  const hn::CappedTag<T, kPanel / 4> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < kPanel; j += 4 * lanes) {
    auto t0 = hn::Zero(d), t1 = t0, t2 = t0, t3 = t0;
    for (int64_t begin = 0; begin < depth; begin += kPart) {
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      for (int64_t k = begin; k < std::min(depth, begin + kPart); ++k) {
        const auto x = hn::Set(d, row[k]);
        const T* p = panel + k * kPanel + j;
        s0 = Joined<kNorm>(d, s0, hn::Sub(x, hn::LoadU(d, p)));
        s1 = Joined<kNorm>(d, s1, hn::Sub(x, hn::LoadU(d, p + lanes)));
        s2 = Joined<kNorm>(d, s2, hn::Sub(x, hn::LoadU(d, p + 2 * lanes)));
        s3 = Joined<kNorm>(d, s3, hn::Sub(x, hn::LoadU(d, p + 3 * lanes)));
      }
      if constexpr (kNorm == Norm::kLargest) {
        t0 = Joined<kNorm>(d, t0, s0), t1 = Joined<kNorm>(d, t1, s1);
        t2 = Joined<kNorm>(d, t2, s2), t3 = Joined<kNorm>(d, t3, s3);
      } else {
        t0 = hn::Add(t0, s0), t1 = hn::Add(t1, s1), t2 = hn::Add(t2, s2), t3 = hn::Add(t3, s3);
      }
    }
    if constexpr (kNorm == Norm::kEuclid) {
      t0 = hn::Sqrt(t0), t1 = hn::Sqrt(t1), t2 = hn::Sqrt(t2), t3 = hn::Sqrt(t3);
    }
    hn::StoreU(t0, d, y + j), hn::StoreU(t1, d, y + j + lanes);
    hn::StoreU(t2, d, y + j + 2 * lanes), hn::StoreU(t3, d, y + j + 3 * lanes);
  }
}

// Rows [begin, end) of all batches.
template <Norm kNorm, class T>
void Rows(const Distances::Problem& p, const void* a, const void* panels, int64_t begin,
          int64_t end, void* y) {
  const int64_t count = (p.n + kPanel - 1) / kPanel;
  while (begin < end) {
    const int64_t batch = begin / p.m, stop = std::min(end, (batch + 1) * p.m);
    const T* of_batch = static_cast<const T*>(panels) + batch * count * kPanel * p.d;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t last = std::min(p.n, (j + 1) * kPanel);
      for (int64_t i = begin; i < stop; ++i) {
        const DistanceRow at(p, i);
        const int64_t first = std::max(j * kPanel, at.first);
        if (first >= last) continue;
        const T* row = static_cast<const T*>(a) + i * p.d;
        T* to = static_cast<T*>(y) + at.start + first - at.first;
        if (last - first == kPanel) {
          MeetPanel<kNorm>(p.d, row, of_batch + j * kPanel * p.d, to);
        } else {
          HWY_ALIGN T all[kPanel];
          MeetPanel<kNorm>(p.d, row, of_batch + j * kPanel * p.d, all);
          std::copy(all + first - j * kPanel, all + last - j * kPanel, to);
        }
      }
    }
    begin = stop;
  }
}

template <class T>
DistanceLoop LoopOf(Norm norm) {
  switch (norm) {
    case Norm::kCount:
      return &Rows<Norm::kCount, T>;
    case Norm::kSum:
      return &Rows<Norm::kSum, T>;
    case Norm::kEuclid:
      return &Rows<Norm::kEuclid, T>;
    case Norm::kLargest:
      return &Rows<Norm::kLargest, T>;
  }
  return nullptr;
}

}  // namespace

DistanceLoop FindDistances(DType dtype, Distances::Norm norm) {
  return dtype == DType::kFloat32 ? LoopOf<float>(norm) : LoopOf<double>(norm);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindDistances);

// Panels of all batches: kPanel rows of b side by side, zeros where there are no more.
template <class T>
void FillPanels(const Distances::Problem& p, const T* b, T* panels) {
  const int64_t count = (p.n + kPanel - 1) / kPanel;
  ParallelFor(p.batch * count, /*grain=*/8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % count * kPanel, rows = std::min(kPanel, p.n - first);
      const T* from = b + (i / count * p.n + first) * p.d;
      T* to = panels + i * kPanel * p.d;
      for (int64_t k = 0; k < p.d; ++k, to += kPanel) {
        for (int64_t r = 0; r < rows; ++r) to[r] = from[r * p.d + k];
        std::fill(to + rows, to + kPanel, T(0));
      }
    }
  });
}

class CpuDistances final : public Distances {
 public:
  explicit CpuDistances(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, const Problem& p) const override {
    const int64_t rows = (p.n + kPanel - 1) / kPanel * kPanel;
    return static_cast<size_t>(p.batch * rows * p.d) * SizeOf(dtype_);
  }
  Status Launch(Stream&, const Problem& p, const void* a, const void* b, void* y,
                void* workspace) const override {
    if (dtype_ == DType::kFloat32) {
      FillPanels(p, static_cast<const float*>(b), static_cast<float*>(workspace));
    } else {
      FillPanels(p, static_cast<const double*>(b), static_cast<double*>(workspace));
    }
    constexpr int64_t kGrain = 65536;  // differences: some 5 us of work
    const DistanceLoop loop = HWY_DYNAMIC_DISPATCH(FindDistances)(dtype_, p.norm);
    ParallelFor(p.batch * p.m, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, p.n * p.d)),
                [&](int64_t begin, int64_t end) { loop(p, a, workspace, begin, end, y); });
    return OkStatus();
  }

 private:
  DType dtype_;
};

StatusOr<std::unique_ptr<Distances>> NewDistances(const Distances::Spec& spec) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64) {
    return NoPrimitiveFor(Distances::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuDistances>(spec.dtype);
}

const bool registered = RegisterPrimitive<Distances>(DeviceType::kCPU, &NewDistances);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
