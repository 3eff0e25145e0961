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

template <class T>
struct ArangeRun {
  ArangeArguments arguments;
  T* y;

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<T, N> p;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (std::is_integral_v<T>) {
        p.v[k] = ConvertTo<T>(arguments.int_start + (i + k) * arguments.int_step);
      } else {
        p.v[k] = ConvertTo<T>(arguments.start + static_cast<double>(i + k) * arguments.step);
      }
    }
    StorePack<N>(y + i, p);
  }
};

template <class T>
cudaError_t LaunchArange(int64_t n, const ArangeArguments& arguments, void* y,
                         cudaStream_t stream) {
  return ForPacks<kPackSize<T>>(n, ArangeRun<T>{arguments, static_cast<T*>(y)}, stream);
}

template <class T>
struct LinspaceRun {
  LinspaceArguments arguments;
  T* y;

  // Rounded after the product, too, as on the CPU: the fraction of an integer depends on it.
  __device__ double At(int64_t i) const {
    const bool near = i < arguments.half;
    const auto steps = static_cast<double>(near ? i : i - arguments.last);
    return __dadd_rn(near ? arguments.start : arguments.end, __dmul_rn(steps, arguments.step));
  }
  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<T, N> p;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (std::is_integral_v<T>) {
        p.v[k] = static_cast<T>(static_cast<int64_t>(At(i + k)));
      } else {
        p.v[k] = ConvertTo<T>(At(i + k));
      }
    }
    StorePack<N>(y + i, p);
  }
};

template <class T>
cudaError_t LaunchLinspace(int64_t n, const LinspaceArguments& arguments, void* y,
                           cudaStream_t stream) {
  return ForPacks<kPackSize<T>>(n, LinspaceRun<T>{arguments, static_cast<T*>(y)}, stream);
}

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
    return &LaunchArange<typename decltype(tag)::type>;
  });
}

LinspaceLauncher FindLinspace(DType dtype) {
  return VisitDeviceNumeric<LinspaceLauncher>(dtype, [](auto tag) -> LinspaceLauncher {
    return &LaunchLinspace<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
