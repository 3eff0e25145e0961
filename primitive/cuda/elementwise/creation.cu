// SPDX-License-Identifier: Apache-2.0
//
// Constants and sequences.
#include "primitive/cuda/elementwise/creation_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class Word>
struct FillRun {
  Word value;
  Word* y;

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<Word, N> p;
#pragma unroll
    for (int k = 0; k < N; ++k) p.v[k] = value;
    StorePack<N>(y + i, p);
  }
  __device__ void At(const int64_t (&offset)[1]) const { y[offset[0]] = value; }
};

template <class Word>
cudaError_t LaunchFill(const Strided<1>& g, ScalarBits value, void* y, cudaStream_t stream) {
  const FillRun<Word> run{static_cast<Word>(value), static_cast<Word*>(y)};
  if (g.contiguous) return ForPacks<kPackSize<Word>>(g.numel, run, stream);
  return ForElements(g, run, stream);
}

// The element at each place, which is computed from the place alone.
template <class T, class Sequence>
struct SequenceRun {
  Sequence sequence;
  T* y;

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<T, N> p;
#pragma unroll
    for (int k = 0; k < N; ++k) p.v[k] = sequence.template At<T>(i + k);
    StorePack<N>(y + i, p);
  }
};
template <class T, class Sequence, class Arguments>
cudaError_t LaunchSequence(int64_t n, const Arguments& arguments, void* y, cudaStream_t stream) {
  const SequenceRun<T, Sequence> run{{arguments}, static_cast<T*>(y)};
  return ForPacks<kPackSize<T>>(n, run, stream);
}

struct ArangeSequence {
  ArangeArguments arguments;

  template <class T>
  __device__ T At(int64_t i) const {
    if constexpr (std::is_integral_v<T>) {
      return ConvertTo<T>(arguments.int_start + i * arguments.int_step);
    } else {
      return ConvertTo<T>(arguments.start + static_cast<double>(i) * arguments.step);
    }
  }
};

struct LinspaceSequence {
  LinspaceArguments arguments;

  // Rounded after the product, too, as on the CPU: the fraction of an integer depends on it.
  template <class T>
  __device__ T At(int64_t i) const {
    const bool near = i < arguments.half;
    const auto steps = static_cast<double>(near ? i : i - arguments.last);
    const double value =
        __dadd_rn(near ? arguments.start : arguments.end, __dmul_rn(steps, arguments.step));
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<int64_t>(value));
    } else {
      return ConvertTo<T>(value);
    }
  }
};

}  // namespace

FillLauncher FindFill(DType dtype) {
  switch (SizeOf(dtype)) {
    case 1:
      return &LaunchFill<uint8_t>;
    case 2:
      return &LaunchFill<uint16_t>;
    case 4:
      return &LaunchFill<uint32_t>;
    default:
      return &LaunchFill<uint64_t>;
  }
}

ArangeLauncher FindArange(DType dtype) {
  return VisitDeviceAll<ArangeLauncher>(dtype, [](auto tag) -> ArangeLauncher {
    return &LaunchSequence<typename decltype(tag)::type, ArangeSequence>;
  });
}

LinspaceLauncher FindLinspace(DType dtype) {
  return VisitDeviceNumeric<LinspaceLauncher>(dtype, [](auto tag) -> LinspaceLauncher {
    return &LaunchSequence<typename decltype(tag)::type, LinspaceSequence>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
