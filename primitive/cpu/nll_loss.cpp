// SPDX-License-Identifier: Apache-2.0
#include "primitive/nll_loss.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 8192;  // rows, or elements of dlogp: some 10 us of work

class CpuNllLoss final : public NllLoss {
 public:
  explicit CpuNllLoss(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, const NllLossShape& shape, const void* logp, const int64_t* target,
                const void* class_weight, void* loss, void* row_weight) const override {
    const int64_t rows = shape.outer * shape.inner;
    std::atomic<int64_t> bad_row{rows};  // the first whose target is out of range
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      ParallelFor(rows, kGrain, [&](int64_t begin, int64_t end) {
        const int64_t bad = Rows(shape, begin, end, static_cast<const T*>(logp), target,
                                 static_cast<const T*>(class_weight), static_cast<T*>(loss),
                                 static_cast<T*>(row_weight));
        int64_t seen = bad_row.load();
        while (bad >= 0 && bad < seen && !bad_row.compare_exchange_weak(seen, bad)) {
        }
      });
    });
    if (bad_row < rows) {
      return Error(ErrorKind::kIndex, "nll_loss(): target ", target[bad_row],
                   " is out of range [0, ", shape.classes - 1, "] and is not ignore_index (",
                   shape.ignore_index, ")");
    }
    return OkStatus();
  }

 private:
  // The first row with a bad target, or -1. Bad rows get 0, so that nothing stays unwritten.
  template <class T>
  static int64_t Rows(const NllLossShape& shape, int64_t begin, int64_t end, const T* logp,
                      const int64_t* target, const T* class_weight, T* loss, T* row_weight) {
    using C = ComputeOf<T>;
    int64_t bad = -1;
    int64_t i = begin % shape.inner;
    const T* slab = logp + begin / shape.inner * shape.classes * shape.inner;
    const auto next = [&] {
      if (++i < shape.inner) return;
      i = 0;
      slab += shape.classes * shape.inner;
    };
    for (int64_t row = begin; row < end; ++row, next()) {
      const int64_t t = target[row];
      const bool ignored = t == shape.ignore_index;
      const bool inside = t >= 0 && t < shape.classes;
      if (!ignored && !inside && bad < 0) bad = row;
      if (ignored || !inside) {
        loss[row] = row_weight[row] = T(C(0));
        continue;
      }
      const T w = class_weight ? class_weight[t] : T(C(1));
      const C value = static_cast<C>(slab[t * shape.inner + i]);
      row_weight[row] = w;
      loss[row] = T(-static_cast<C>(w) * value);
    }
    return bad;
  }

  DType dtype_;
};

class CpuNllLossBackward final : public NllLossBackward {
 public:
  explicit CpuNllLossBackward(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, const NllLossShape& shape, const void* dloss, const int64_t* target,
                const void* row_weight, void* dlogp) const override {
    const int64_t slab = shape.classes * shape.inner;
    if (slab == 0) return OkStatus();
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      ParallelFor(
          shape.outer, std::max<int64_t>(1, kGrain / slab), [&](int64_t begin, int64_t end) {
            T* dx = static_cast<T*>(dlogp);
            // All bits 0 is 0 in every floating type.
            std::memset(static_cast<void*>(dx + begin * slab), 0,
                        static_cast<size_t>((end - begin) * slab) * sizeof(T));
            for (int64_t row = begin * shape.inner; row < end * shape.inner; ++row) {
              using C = ComputeOf<T>;
              const int64_t t = target[row];
              if (t == shape.ignore_index || t < 0 || t >= shape.classes) continue;
              const C w = static_cast<C>(static_cast<const T*>(row_weight)[row]);
              const C dy = static_cast<C>(static_cast<const T*>(dloss)[row]);
              dx[row / shape.inner * slab + t * shape.inner + row % shape.inner] = T(-w * dy);
            }
          });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

template <class P, class Implementation>
StatusOr<std::unique_ptr<P>> Make(const typename P::Spec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(P::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<Implementation>(spec);
}

const bool registered = RegisterPrimitive<NllLoss>(DeviceType::kCPU, &Make<NllLoss, CpuNllLoss>) &&
                        RegisterPrimitive<NllLossBackward>(
                            DeviceType::kCPU, &Make<NllLossBackward, CpuNllLossBackward>);

}  // namespace
}  // namespace oneflow_lite
