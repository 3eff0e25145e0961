// SPDX-License-Identifier: Apache-2.0
//
// One of two elements, by a condition: in packs where everything that is not one number is dense.
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Elements, or where data is null `value` for all of them.
template <class T>
struct Source {
  const T* data;
  T value;

  template <int N>
  __device__ Pack<T, N> Load(int64_t i) const {
    Pack<T, N> pack;
    if (data) return LoadPack<N>(data + i);
#pragma unroll
    for (int k = 0; k < N; ++k) pack.v[k] = value;
    return pack;
  }
  __device__ T At(int64_t offset) const { return data ? data[offset] : value; }
};

template <class T>
Source<T> SourceOf(const SelectOperand& o) {
  return {static_cast<const T*>(o.data), static_cast<T>(o.bits)};
}

// T is an unsigned integer as wide as the elements.
template <class T>
struct SelectRun {
  Source<uint8_t> condition;
  Source<T> a, b;
  T* out;

  template <int N>
  __device__ void Run(int64_t i) const {
    const auto chosen = condition.template Load<N>(i);
    const auto x = a.template Load<N>(i), y = b.template Load<N>(i);
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.v[k] = chosen.v[k] ? x.v[k] : y.v[k];
    StorePack<N>(out + i, result);
  }

  // Offsets of condition, a, b, out.
  __device__ void At(const int64_t (&offset)[4]) const {
    out[offset[3]] = condition.At(offset[0]) ? a.At(offset[1]) : b.At(offset[2]);
  }
};

template <class T>
cudaError_t LaunchSelect(const Strided<4>& g, const SelectOperand& condition,
                         const SelectOperand& a, const SelectOperand& b, void* out,
                         cudaStream_t stream) {
  const SelectRun<T> run{SourceOf<uint8_t>(condition), SourceOf<T>(a), SourceOf<T>(b),
                         static_cast<T*>(out)};
  const auto dense = [&](int i, const void* data) {
    return !data || g.ndim == 0 || (g.ndim == 1 && g.strides[i][0] == 1);
  };
  if (dense(0, condition.data) && dense(1, a.data) && dense(2, b.data) && dense(3, out)) {
    return ForPacks<kPackSize<T>>(g.numel, run, stream);
  }
  return ForElements(g, run, stream);
}

}  // namespace

SelectLauncher FindSelect(DType dtype) {
  switch (SizeOf(dtype)) {
    case 1:
      return &LaunchSelect<uint8_t>;
    case 2:
      return &LaunchSelect<uint16_t>;
    case 4:
      return &LaunchSelect<uint32_t>;
    default:
      return &LaunchSelect<uint64_t>;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
