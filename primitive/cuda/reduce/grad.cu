// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reduce/grad_launch.h"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/reduce_grad_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// Packs of neighbours of x; the slice is found once per pack.
template <ReduceGradKind kOp, class T>
struct Grad {
  using C = ComputeType<T>;
  ReduceProblem p;
  const T *dy, *x, *y;
  const C* extra;
  const int64_t* zeros;
  T* dx;
  C parameter;

  __device__ __forceinline__ C At(C v, int64_t slice) const {
    return ReduceGradOf<kOp>(ConvertTo<C>(dy[slice]), v, y ? ConvertTo<C>(y[slice]) : C(0),
                             extra ? extra[slice] : C(0), zeros ? zeros[slice] : 0, parameter);
  }

  template <int N>
  __device__ __forceinline__ void Run(int64_t i) const {
    const Pack<T, N> from = LoadPack<N>(x + i);
    Pack<T, N> to;
    // i as outer, place in the axis, column
    int64_t outer, column;
    if (p.outer * p.axis * p.inner < (int64_t{1} << 31)) {
      const uint32_t row = static_cast<uint32_t>(i) / static_cast<uint32_t>(p.inner);
      column = static_cast<uint32_t>(i) - row * static_cast<uint32_t>(p.inner);
      outer = row / static_cast<uint32_t>(p.axis);
    } else {
      const int64_t row = i / p.inner;
      column = i - row * p.inner;
      outer = row / p.axis;
    }
    int64_t left = (outer + 1) * p.axis * p.inner - i;  // to the end of this outer
#pragma unroll
    for (int k = 0; k < N; ++k) {
      to.v[k] = ConvertTo<T>(At(ConvertTo<C>(from.v[k]), outer * p.inner + column));
      if (++column == p.inner) column = 0;
      if (--left == 0) {
        ++outer;
        left = p.axis * p.inner;
      }
    }
    StorePack<N>(dx + i, to);
  }
};

template <ReduceGradKind kOp, class T>
cudaError_t LaunchGrad(const ReduceGradRun& run, cudaStream_t stream) {
  using C = ComputeType<T>;
  const Grad<kOp, T> grad{run.problem,
                          static_cast<const T*>(run.dy),
                          static_cast<const T*>(run.x),
                          static_cast<const T*>(run.y),
                          static_cast<const C*>(run.extra),
                          run.zeros,
                          static_cast<T*>(run.dx),
                          static_cast<C>(run.parameter)};
  const ReduceProblem& p = run.problem;
  return ForPacks<kPackSize<T>>(p.outer * p.axis * p.inner, grad, stream);
}

template <ReduceGradKind kOp>
struct GradFinder {
  template <class T>
  ReduceGradLauncher operator()(Tag<T>) const {
    return &LaunchGrad<kOp, T>;
  }
};
struct GradVisitor {
  DType dtype;
  template <ReduceGradKind kOp>
  ReduceGradLauncher operator()(ReduceGradTag<kOp>) const {
    return VisitDeviceFloating<ReduceGradLauncher>(dtype, GradFinder<kOp>{});
  }
};

}  // namespace

ReduceGradLauncher FindReduceGrad(ReduceGradKind op, DType dtype) {
  return VisitReduceGrad(op, GradVisitor{dtype});
}

}  // namespace cuda
}  // namespace oneflow_lite
