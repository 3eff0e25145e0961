// SPDX-License-Identifier: Apache-2.0
//
// The formulas of primitive/multi_tensor.h. A rule says which values of an element it reads and
// writes, beside p, and what becomes of them; every list is read once and written once, by one
// launch for up to kMaxTensors tensors. A second, small one counts the steps on where the device
// does that.
#include "primitive/cuda/optimizers/launch.h"
#include "primitive/cuda/optimizers/multi_tensor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Only unscale has flags, and it has no masters.
enum { kMasterList = kMultiValues, kFlagList = kMasterList, kStepList, kMultiLists };
using MultiTable = TensorTable<kMultiLists>;

__host__ __device__ constexpr unsigned BitOf(int slot) { return 1u << slot; }

// An element of each list, zero where there is none.
template <class C>
struct Element {
  C v[kMultiValues];
  unsigned has;  // bits of the lists there are
  bool bad = false;
};

struct SgdRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kSgd;
  static constexpr unsigned kReads = BitOf(kSlotG) | BitOf(kSlotA), kWrites = BitOf(kSlotA);
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    C g = e.v[kSlotG] * f.grad + f.decay * e.v[kSlotP];
    if (e.has & BitOf(kSlotA)) {
      const C a = f.first ? g : f.keep * e.v[kSlotA] + f.add * g;
      g = f.nesterov ? g + f.keep * a : a;
      e.v[kSlotA] = a;
    }
    e.v[kSlotP] -= f.rate * g;
  }
};

struct RmspropRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kRmsprop;
  static constexpr unsigned kWrites = BitOf(kSlotA) | BitOf(kSlotB) | BitOf(kSlotC);
  static constexpr unsigned kReads = kWrites | BitOf(kSlotG);
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    const C g = e.v[kSlotG] * f.grad + f.decay * e.v[kSlotP];
    C spread = e.v[kSlotA] = f.keep * e.v[kSlotA] + f.add * g * g;
    if (e.has & BitOf(kSlotB)) {
      const C mean = e.v[kSlotB] += f.add * (g - e.v[kSlotB]);
      spread -= mean * mean;
    }
    C step = g / (sqrt(spread) + f.eps);
    if (e.has & BitOf(kSlotC)) step = e.v[kSlotC] = f.keep2 * e.v[kSlotC] + step;
    e.v[kSlotP] -= f.rate * step;
  }
};

struct AdadeltaRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kAdadelta;
  static constexpr unsigned kWrites = BitOf(kSlotA) | BitOf(kSlotB),
                            kReads = kWrites | BitOf(kSlotG);
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    const C g = e.v[kSlotG] * f.grad + f.decay * e.v[kSlotP];
    const C mean = e.v[kSlotA] = f.keep * e.v[kSlotA] + f.add * g * g;
    const C step = sqrt(e.v[kSlotB] + f.eps) / sqrt(mean + f.eps) * g;
    e.v[kSlotB] = f.keep * e.v[kSlotB] + f.add * step * step;
    e.v[kSlotP] -= f.rate * step;
  }
};

struct AdagradRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kAdagrad;
  static constexpr unsigned kReads = BitOf(kSlotG) | BitOf(kSlotA), kWrites = BitOf(kSlotA);
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    const C g = e.v[kSlotG] * f.grad + f.decay * e.v[kSlotP];
    const C sum = e.v[kSlotA] += g * g;
    e.v[kSlotP] -= f.rate * (g / (sqrt(sum) + f.eps));
  }
};

struct LionRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kLion;
  static constexpr unsigned kReads = BitOf(kSlotG) | BitOf(kSlotA), kWrites = BitOf(kSlotA);
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    const C g = e.v[kSlotG] * f.grad;
    const C way = f.keep2 * e.v[kSlotA] + f.add2 * g;
    const C sign = way > C(0) ? C(1) : way < C(0) ? C(-1) : way;  // NaN stays
    e.v[kSlotP] = e.v[kSlotP] * f.decay - f.rate * sign;
    e.v[kSlotA] = f.keep * e.v[kSlotA] + f.add * g;
  }
};

struct LerpRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kLerp;
  static constexpr unsigned kReads = BitOf(kSlotG), kWrites = 0;
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    const C way = e.v[kSlotG] - e.v[kSlotP];
    e.v[kSlotP] =
        f.rate < C(0.5) ? e.v[kSlotP] + f.rate * way : e.v[kSlotG] - (C(1) - f.rate) * way;
  }
};

struct ScaleRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kScale;
  static constexpr unsigned kReads = 0, kWrites = 0;
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    e.v[kSlotP] *= f.rate;
  }
};

struct ClampRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kClamp;
  static constexpr unsigned kReads = 0, kWrites = 0;
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    C& p = e.v[kSlotP];  // NaN stays
    if (p < f.rate) p = f.rate;
    if (p > f.add) p = f.add;
  }
};

struct FillRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kFill;
  static constexpr unsigned kReads = 0, kWrites = 0;
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    e.v[kSlotP] = f.rate;
  }
};

struct UnscaleRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kUnscale;
  static constexpr unsigned kReads = 0, kWrites = 0;
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    if (!(e.v[kSlotP] - e.v[kSlotP] == C(0))) e.bad = true;
    e.v[kSlotP] *= f.grad;
  }
};

struct UpdateScaleRule {
  static constexpr MultiTensorOp kOp = MultiTensorOp::kUpdateScale;
  static constexpr unsigned kReads = BitOf(kSlotG) | BitOf(kSlotA), kWrites = BitOf(kSlotA);
  template <class C>
  __device__ static void Step(Element<C>& e, const MultiFactors<C>& f) {
    C &p = e.v[kSlotP], &count = e.v[kSlotA];
    if (e.v[kSlotG] > C(0)) {
      p *= f.add;
      count = C(0);
      return;
    }
    count += C(1);
    if (count < f.eps) return;
    const C grown = p * f.rate;
    if (grown - grown == C(0)) p = grown;
    count = C(0);
  }
};

template <class T, class Rule>
struct MultiStep {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<C>;
  MultiTensorProblem n;

  __device__ void Run(const MultiTable& table, int tensor, int64_t begin, int64_t end) const {
    if (n.found_inf && *n.found_inf != 0) return;
    __shared__ MultiFactors<C> factors;
    if (threadIdx.x == 0) {
      const auto* step = static_cast<const double*>(table.data[kStepList][tensor]);
      factors = MultiFactorsOf<C>(Rule::kOp, n, step ? *step + 1 : double(n.step));
    }
    __syncthreads();
    const MultiFactors<C> f = factors;
    bool bad = false;
    for (int64_t i = begin + int64_t{threadIdx.x} * N; i < end; i += kTensorThreads * N) {
      if (i + N <= end) {
        bad |= StepPack<N>(table, tensor, i, f);
      } else {
        for (int64_t j = i; j < end; ++j) bad |= StepPack<1>(table, tensor, j, f);
      }
    }
    if (bad) *static_cast<float*>(table.data[kFlagList][tensor]) = 1;
  }

  template <int M>
  __device__ __forceinline__ bool StepPack(const MultiTable& table, int tensor, int64_t i,
                                           const MultiFactors<C>& f) const {
    constexpr bool kFlags = Rule::kOp == MultiTensorOp::kUnscale;
    T* param = static_cast<T*>(table.data[kSlotP][tensor]) + i;
    C* master = kFlags ? nullptr : static_cast<C*>(table.data[kMasterList][tensor]);
    Pack<C, M> v[kMultiValues] = {};
    unsigned has = 0;
    if constexpr (Rule::kOp != MultiTensorOp::kFill) {
      v[kSlotP] = master ? LoadPack<M>(master + i) : ConvertPack<C>(LoadPack<M>(param));
    }
    if constexpr ((Rule::kReads & BitOf(kSlotG)) != 0) {
      v[kSlotG] =
          ConvertPack<C>(LoadPack<M>(static_cast<const T*>(table.data[kSlotG][tensor]) + i));
    }
#pragma unroll
    for (int s = kSlotA; s < kMultiValues; ++s) {
      if (!(Rule::kReads & BitOf(s)) || !table.data[s][tensor]) continue;
      has |= BitOf(s);
      v[s] = LoadPack<M>(static_cast<const C*>(table.data[s][tensor]) + i);
    }
    bool bad = false;
#pragma unroll
    for (int k = 0; k < M; ++k) {
      Element<C> e;
      e.has = has;
#pragma unroll
      for (int s = 0; s < kMultiValues; ++s) e.v[s] = v[s].v[k];
      Rule::Step(e, f);
#pragma unroll
      for (int s = 0; s < kMultiValues; ++s) v[s].v[k] = e.v[s];
      bad |= e.bad;
    }
#pragma unroll
    for (int s = kSlotA; s < kMultiValues; ++s) {
      if ((Rule::kWrites & BitOf(s)) && (has & BitOf(s))) {
        StorePack<M>(static_cast<C*>(table.data[s][tensor]) + i, v[s]);
      }
    }
    if (master) StorePack<M>(master + i, v[kSlotP]);
    if (!kFlags || n.scale) StorePack<M>(param, ConvertPack<T>(v[kSlotP]));
    return bad;
  }
};

__global__ void CountMultiStepsKernel(const __grid_constant__ MultiTable table,
                                      const float* found_inf) {
  if (found_inf && *found_inf != 0) return;
  for (int i = static_cast<int>(threadIdx.x); i < table.count; i += kTensorThreads) {
    if (table.data[kStepList][i]) *static_cast<double*>(table.data[kStepList][i]) += 1;
  }
}

template <class T, class Rule>
cudaError_t LaunchMulti(const MultiTensorProblem& p, const MultiTensors* tensors, int64_t count,
                        cudaStream_t stream) {
  const MultiStep<T, Rule> step{p};
  MultiTable table;
  for (int64_t i = 0; i < count;) {
    bool counts = false;
    for (table.count = 0; i < count && table.count < kMaxTensors; ++i) {
      const MultiTensors& t = tensors[i];
      const int k = table.count++;
      table.numel[k] = t.numel;
      for (int s = 0; s < kMultiValues; ++s) table.data[s][k] = t.data[s];
      if (Rule::kOp == MultiTensorOp::kUnscale) {
        table.data[kFlagList][k] = t.flag;
      } else {
        table.data[kMasterList][k] = t.master;
      }
      table.data[kStepList][k] = t.step;
      counts = counts || t.step;
    }
    cudaError_t error = ForTensors(table, step, stream);
    if (error == cudaSuccess && counts) {
      error = Launch(CountMultiStepsKernel, 1, kTensorThreads, 0, stream, table, p.found_inf);
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class Rule>
MultiTensorLauncher OfRule(DType dtype) {
  return VisitDeviceFloating<MultiTensorLauncher>(dtype, [](auto tag) -> MultiTensorLauncher {
    return &LaunchMulti<typename decltype(tag)::type, Rule>;
  });
}

}  // namespace

MultiTensorLauncher FindMultiTensor(MultiTensorOp op, DType dtype) {
  switch (op) {
    case MultiTensorOp::kSgd:
      return OfRule<SgdRule>(dtype);
    case MultiTensorOp::kRmsprop:
      return OfRule<RmspropRule>(dtype);
    case MultiTensorOp::kAdadelta:
      return OfRule<AdadeltaRule>(dtype);
    case MultiTensorOp::kAdagrad:
      return OfRule<AdagradRule>(dtype);
    case MultiTensorOp::kLion:
      return OfRule<LionRule>(dtype);
    case MultiTensorOp::kLerp:
      return OfRule<LerpRule>(dtype);
    case MultiTensorOp::kScale:
      return OfRule<ScaleRule>(dtype);
    case MultiTensorOp::kClamp:
      return OfRule<ClampRule>(dtype);
    case MultiTensorOp::kFill:
      return OfRule<FillRule>(dtype);
    case MultiTensorOp::kUnscale:
      return OfRule<UnscaleRule>(dtype);
    case MultiTensorOp::kUpdateScale:
      return OfRule<UpdateScaleRule>(dtype);
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
