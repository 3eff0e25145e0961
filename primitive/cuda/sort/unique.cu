// SPDX-License-Identifier: Apache-2.0
//
// The different elements of a line, in order: CUB's radix sort of the elements themselves, without
// their places, and its selection of those that differ from the one before. Both zeros are equal to
// the sort, which is stable: the first zero of the line comes first. NaNs with a sign come before
// all numbers there. The selection reads from the first number on, and those NaNs last.
#include <cstddef>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <iterator>
#include <type_traits>

#include "primitive/cuda/sort/launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int64_t kMostInt = (int64_t{1} << 31) - 1;

template <size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<2> {
  using Type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};

// n elements of a sorted line from place *first on, and then those before it.
template <class T>
struct FromFirst {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = ptrdiff_t;
  using pointer = const T*;
  using reference = T;

  const T* sorted;
  const int64_t* first;
  int64_t n;
  int64_t at;

  __host__ __device__ FromFirst operator+(difference_type i) const {
    return {sorted, first, n, at + i};
  }
  __device__ T operator[](difference_type i) const {
    const int64_t place = at + i + __ldg(first);
    return sorted[place < n ? place : place - n];
  }
  __device__ T operator*() const { return (*this)[0]; }
};

// The first place whose bits are at most those of minus infinity: behind the NaNs with a sign. One
// warp asks at 32 places at once.
template <class U>
__global__ void __launch_bounds__(32)
    FirstNumberKernel(U minus_infinity, int64_t n, const U* sorted, int64_t* first) {
  int64_t low = 0, high = n;  // such NaNs lie before low, and none from high on
  while (low < high) {
    const int64_t step = (high - low + 31) / 32, place = low + threadIdx.x * step;
    const bool is_nan = place < high && sorted[place] > minus_infinity;
    const int nans = __popc(__ballot_sync(0xffffffffu, is_nan));
    if (nans == 0) break;
    const int64_t end = low + nans * step;
    low = end - step + 1;
    if (end < high) high = end;
  }
  if (threadIdx.x == 0) *first = low;
}

// A null temp asks for its size.
template <class T>
cudaError_t SortLine(void* temp, size_t* bytes, const T* x, T* sorted, int64_t n,
                     cudaStream_t stream) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  if (n > kMostInt) {
    return cub::DeviceRadixSort::SortKeys(temp, *bytes, x, sorted, n, 0, kBits, stream);
  }
  return cub::DeviceRadixSort::SortKeys(temp, *bytes, x, sorted, static_cast<int>(n), 0, kBits,
                                        stream);
}

template <class T>
constexpr bool kIsFloat = !std::is_integral<T>::value;

// The same; `count` is how many elements were selected.
template <class T>
cudaError_t SelectDifferent(void* temp, size_t* bytes, const T* sorted, const int64_t* first,
                            int64_t n, T* values, int64_t* count, cudaStream_t stream) {
  if constexpr (kIsFloat<T>) {
    const FromFirst<T> in{sorted, first, n, 0};
    return cub::DeviceSelect::Unique(temp, *bytes, in, values, count, n, stream);
  } else {
    return cub::DeviceSelect::Unique(temp, *bytes, sorted, values, count, n, stream);
  }
}

// Where things lie in the workspace.
template <class T>
struct Memory {
  T* sorted;
  int64_t* first;  // of floats, the place of the first number in `sorted`
  void* temp;
  size_t sort_bytes = 0, select_bytes = 0, bytes = 0;

  cudaError_t LayOut(void* workspace, int64_t n) {
    cudaError_t error = SortLine<T>(nullptr, &sort_bytes, nullptr, nullptr, n, nullptr);
    if (error != cudaSuccess) return error;
    error =
        SelectDifferent<T>(nullptr, &select_bytes, nullptr, nullptr, n, nullptr, nullptr, nullptr);
    if (error != cudaSuccess) return error;
    char* at = static_cast<char*>(workspace);
    const size_t line = Aligned(static_cast<size_t>(n) * sizeof(T));
    sorted = reinterpret_cast<T*>(at);
    first = reinterpret_cast<int64_t*>(at + line);
    temp = at + line + Aligned(sizeof(int64_t));
    const size_t temp_bytes = sort_bytes > select_bytes ? sort_bytes : select_bytes;
    bytes = line + Aligned(sizeof(int64_t)) + Aligned(temp_bytes);
    return cudaSuccess;
  }
};

template <class T>
cudaError_t UniqueLine(const KeyCode& code, int64_t n, const T* x, void* workspace, T* values,
                       int64_t* count, cudaStream_t stream) {
  Memory<T> memory;
  cudaError_t error = memory.LayOut(workspace, n);
  if (error != cudaSuccess) return error;
  error = SortLine(memory.temp, &memory.sort_bytes, x, memory.sorted, n, stream);
  if (error != cudaSuccess) return error;
  if constexpr (kIsFloat<T>) {
    using U = typename UnsignedOf<sizeof(T)>::Type;
    const auto minus_infinity = static_cast<U>(code.Sign<U>() | static_cast<U>(code.infinity));
    error = Launch(FirstNumberKernel<U>, 1, 32, 0, stream, minus_infinity, n,
                   reinterpret_cast<const U*>(memory.sorted), memory.first);
    if (error != cudaSuccess) return error;
  }
  return SelectDifferent<T>(memory.temp, &memory.select_bytes, memory.sorted, memory.first, n,
                            values, count, stream);
}

}  // namespace

cudaError_t UniqueBytes(DType dtype, int64_t n, size_t* bytes) {
  return VisitDeviceAll<cudaError_t>(dtype, [&](auto tag) {
    Memory<typename decltype(tag)::type> memory;
    const cudaError_t error = memory.LayOut(nullptr, n);
    *bytes = error == cudaSuccess ? memory.bytes : 0;
    return error;
  });
}

cudaError_t LaunchUnique(DType dtype, int64_t n, const void* x, void* workspace, void* values,
                         int64_t* count, cudaStream_t stream) {
  return VisitDeviceAll<cudaError_t>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return UniqueLine(KeyCodeOf(dtype, false), n, static_cast<const T*>(x), workspace,
                      static_cast<T*>(values), count, stream);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
