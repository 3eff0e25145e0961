// SPDX-License-Identifier: Apache-2.0
//
// Losses by chunks that stay in the nearest cache: operands are widened, one loop per loss and
// derivative computes the terms, which are scaled and rounded or added up. A sum adds up fixed
// blocks, whatever the number of threads.
#include "primitive/loss.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/loss_loops.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kChunkSize = 1024;
constexpr int64_t kBlock = 16 * kChunkSize;  // of a sum
constexpr int64_t kLossGrain = 4096;

int64_t BlocksOf(int64_t n) { return (n + kBlock - 1) / kBlock; }

template <LossKind kKind, class C>
void EachTerm(const LossChunk<C>& c, LossOrder order, C* out) {
  const auto run = [&](auto fixed) {
    for (int64_t i = 0; i < c.n; ++i) {
      const LossOperands<C> o{c.x[i], c.t[i], c.p[i * c.p_step], c.a, c.b};
      out[i] = LossTerm<kKind, C>(fixed, o);
    }
  };
  switch (order) {
    case LossOrder::kValue:
      return run(std::integral_constant<LossOrder, LossOrder::kValue>());
    case LossOrder::kX:
      return run(std::integral_constant<LossOrder, LossOrder::kX>());
    default:
      return run(order);
  }
}

template <class C, size_t... I>
LossLoop<C> FindLoop(LossKind kind, LossOrder order, std::index_sequence<I...>) {
  if (const LossLoop<C> loop = FindVectorLoss<C>(kind, order)) return loop;
  constexpr LossLoop<C> kLoops[] = {&EachTerm<static_cast<LossKind>(I), C>...};
  return kLoops[static_cast<size_t>(kind)];
}

template <class C>
double SumOf(const C* v, int64_t n) {
  C lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int k = 0; k < 16; ++k) lanes[k] += v[i + k];
  }
  double sum = 0;
  for (; i < n; ++i) sum += v[i];
  for (const C lane : lanes) sum += lane;
  return sum;
}

class CpuLoss final : public Loss {
 public:
  explicit CpuLoss(const Spec& spec) : dtype_(spec.dtype) {}

  size_t WorkspaceBytes(const Stream&, const LossProblem& problem) const override {
    return problem.summed ? static_cast<size_t>(BlocksOf(problem.n)) * sizeof(double) : 0;
  }
  Status Launch(Stream&, const LossProblem& problem, const LossPointers& at,
                void* workspace) const override {
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      if (problem.summed) {
        *static_cast<T*>(at.y) =
            T(static_cast<ComputeOf<T>>(Sum<T>(problem, at, static_cast<double*>(workspace))));
      } else {
        ParallelFor(problem.n, kLossGrain,
                    [&](int64_t begin, int64_t end) { Elements<T>(problem, at, begin, end); });
      }
    });
    return OkStatus();
  }

 private:
  // One operand's part of a chunk in the compute type: as it lies there, or widened.
  template <class T>
  static const ComputeOf<T>* Widened(const void* data, int64_t first, int64_t n,
                                     ComputeOf<T>* buffer) {
    const T* p = static_cast<const T*>(data) + first;
    if constexpr (std::is_same_v<T, ComputeOf<T>>) {
      return p;
    } else {
      static const ConvertFunction kWiden = FindConvert(DTypeOf<T>(), DTypeOf<ComputeOf<T>>());
      kWiden(n, p, buffer);
      return buffer;
    }
  }

  // The third operand's part of a chunk, which may go round.
  template <class T>
  static const ComputeOf<T>* Third(const LossProblem& problem, const T* p, int64_t first, int64_t n,
                                   ComputeOf<T>* buffer) {
    int64_t from = first % problem.period;
    if (from + n <= problem.period) return Widened<T>(p, from, n, buffer);
    for (int64_t i = 0; i < n; ++i) {
      buffer[i] = static_cast<ComputeOf<T>>(p[from]);
      if (++from == problem.period) from = 0;
    }
    return buffer;
  }

  // The terms of up to kChunkSize elements.
  template <class T>
  static void Terms(const LossProblem& problem, const LossPointers& at, int64_t first, int64_t n,
                    ComputeOf<T>* out) {
    using C = ComputeOf<T>;
    const C one = 1;
    C x[kChunkSize], t[kChunkSize], p[kChunkSize];
    const bool third = at.p != nullptr;
    const LossChunk<C> chunk = {
        n,
        Widened<T>(at.x, first, n, x),
        Widened<T>(at.t, first, n, t),
        third ? Third<T>(problem, static_cast<const T*>(at.p), first, n, p) : &one,
        third ? 1 : 0,
        static_cast<C>(problem.a),
        static_cast<C>(problem.b)};
    FindLoop<C>(problem.kind, problem.order, std::make_index_sequence<kLossKinds>())(
        chunk, problem.order, out);
  }

  template <class T>
  static void Elements(const LossProblem& problem, const LossPointers& at, int64_t begin,
                       int64_t end) {
    using C = ComputeOf<T>;
    C out[kChunkSize], wide[kChunkSize];
    const C scale = static_cast<C>(problem.scale);
    const bool whole = at.dy && !problem.one_dy;
    const C factor =
        at.dy && problem.one_dy ? scale * static_cast<C>(*static_cast<const T*>(at.dy)) : scale;
    for (int64_t i = begin; i < end; i += kChunkSize) {
      const int64_t n = std::min(kChunkSize, end - i);
      T* y = static_cast<T*>(at.y) + i;
      C* scaled = out;
      if constexpr (std::is_same_v<T, C>) scaled = y;
      C* terms = whole ? out : scaled;  // y may be dy
      Terms<T>(problem, at, i, n, terms);
      if (whole || factor != 1) {
        const C* dy = whole ? Widened<T>(at.dy, i, n, wide) : nullptr;
        for (int64_t k = 0; k < n; ++k) scaled[k] = terms[k] * (dy ? factor * dy[k] : factor);
      }
      if constexpr (!std::is_same_v<T, C>) {
        static const ConvertFunction kRound = FindConvert(DTypeOf<C>(), DTypeOf<T>());
        kRound(n, scaled, y);
      }
    }
  }

  template <class T>
  static double Sum(const LossProblem& problem, const LossPointers& at, double* sums) {
    const int64_t blocks = BlocksOf(problem.n);
    ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
      ComputeOf<T> out[kChunkSize];
      for (int64_t block = begin; block < end; ++block) {
        const int64_t last = std::min(problem.n, (block + 1) * kBlock);
        double sum = 0;
        for (int64_t i = block * kBlock; i < last; i += kChunkSize) {
          const int64_t n = std::min(kChunkSize, last - i);
          Terms<T>(problem, at, i, n, out);
          sum += SumOf(out, n);
        }
        sums[block] = sum;
      }
    });
    double sum = 0;
    for (int64_t block = 0; block < blocks; ++block) sum += sums[block];
    return sum * problem.scale;
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Loss>> New(const Loss::Spec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(Loss::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuLoss>(spec);
}

const bool registered = RegisterPrimitive<Loss>(DeviceType::kCPU, &New);

}  // namespace
}  // namespace oneflow_lite
