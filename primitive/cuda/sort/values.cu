// SPDX-License-Identifier: Apache-2.0
//
// The elements of a long line in order, without their places: CUB's radix sort of keys alone, which
// moves a third to a half of the bytes. A key does not tell a zero's sign: the first zero's place
// is found beside the keys, and all zeros are given its bits.
#include <cub/device/device_radix_sort.cuh>

#include "primitive/cuda/sort/ordered_rows.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;
// Elements of a thread, read before one is waited for, and of a block.
template <class Key>
constexpr int kEach = sizeof(Key) < 8 ? 8 : 4;
template <class Key>
constexpr uint32_t kTile = kThreads* kEach<Key>;
constexpr unsigned kNone = ~0u;

// A null temp asks for its size.
template <class Key>
cudaError_t SortKeys(void* temp, size_t* bytes, cub::DoubleBuffer<Key>& keys, int64_t n, int bits,
                     cudaStream_t stream) {
  return cub::DeviceRadixSort::SortKeys(temp, *bytes, keys, static_cast<int>(n), 0, bits, stream);
}

// Where things lie in the workspace.
template <class Key>
struct Memory {
  Key* keys[2];
  unsigned* first_zero;
  void* temp;
  size_t temp_bytes = 0, bytes = 0;

  cudaError_t LayOut(void* workspace, int64_t n) {
    cub::DoubleBuffer<Key> none(nullptr, nullptr);
    const cudaError_t error =
        SortKeys(nullptr, &temp_bytes, none, n, 8 * static_cast<int>(sizeof(Key)), nullptr);
    if (error != cudaSuccess) return error;
    char* at = static_cast<char*>(workspace);
    const size_t list = Aligned(static_cast<size_t>(n) * sizeof(Key));
    for (int i = 0; i < 2; ++i) keys[i] = reinterpret_cast<Key*>(at + i * list);
    first_zero = reinterpret_cast<unsigned*>(at + 2 * list);
    temp = at + 2 * list + Aligned(sizeof(unsigned));
    bytes = 2 * list + Aligned(sizeof(unsigned)) + Aligned(temp_bytes);
    return cudaSuccess;
  }
};

template <class Key>
__global__ void __launch_bounds__(kThreads)
    EncodeKernel(KeyCode code, const void* x, uint32_t n, Key* keys, unsigned* first_zero) {
  const uint32_t step = gridDim.x * kTile<Key>;
  const Key zero = code.template Encode<Key>(Key{0});
  unsigned first = kNone;
  for (uint32_t begin = blockIdx.x * kTile<Key> + threadIdx.x; begin < n; begin += step) {
    int64_t from[kEach<Key>];
    Key raw[kEach<Key>];
#pragma unroll
    for (int k = 0; k < kEach<Key>; ++k) {
      const uint32_t i = begin + k * kThreads;
      from[k] = i < n ? int64_t{i} : -1;
    }
    LoadBits(code.bits, x, from, raw);
#pragma unroll
    for (int k = 0; k < kEach<Key>; ++k) {
      if (from[k] < 0) break;
      const Key key = code.template Encode<Key>(raw[k]);
      keys[from[k]] = key;
      const auto i = static_cast<unsigned>(from[k]);
      if (key == zero && i < first) first = i;
    }
  }
  if (!code.is_float) return;
  first = __reduce_min_sync(0xffffffffu, first);
  // Most warps come after one that has found an earlier zero.
  if (threadIdx.x % 32 == 0 && first < *static_cast<volatile unsigned*>(first_zero)) {
    atomicMin(first_zero, first);
  }
}

template <class Key>
__global__ void __launch_bounds__(kThreads)
    DecodeKernel(KeyCode code, const void* x, uint32_t n, const Key* keys,
                 const unsigned* first_zero, void* values) {
  const uint32_t step = gridDim.x * kTile<Key>;
  const Key zero = code.template Encode<Key>(Key{0});
  const bool has_zero = code.is_float && *first_zero != kNone;
  for (uint32_t begin = blockIdx.x * kTile<Key> + threadIdx.x; begin < n; begin += step) {
    Key key[kEach<Key>];
#pragma unroll
    for (int k = 0; k < kEach<Key>; ++k) {
      const uint32_t i = begin + k * kThreads;
      key[k] = i < n ? keys[i] : Key{0};
    }
#pragma unroll
    for (int k = 0; k < kEach<Key>; ++k) {
      const uint32_t i = begin + k * kThreads;
      if (i >= n) break;
      if (has_zero && key[k] == zero) {
        CopyElement(code.bits, x, *first_zero, values, i);
      } else {
        StoreBits(code.bits, code.Decode(key[k]), values, i);
      }
    }
  }
}

template <class Key>
int64_t BlocksFor(int64_t n) {
  constexpr int64_t kOfBlock = kTile<Key>;
  const int64_t blocks = (n + kOfBlock - 1) / kOfBlock;
  return blocks < (1 << 20) ? blocks : 1 << 20;
}

template <class Key>
cudaError_t SortLine(const KeyRows& in, void* workspace, void* values, cudaStream_t stream) {
  const int64_t n = in.cols;
  const auto count = static_cast<uint32_t>(n);
  Memory<Key> memory;
  cudaError_t error = memory.LayOut(workspace, n);
  if (error != cudaSuccess) return error;
  cub::DoubleBuffer<Key> keys(memory.keys[0], memory.keys[1]);
  error = cudaMemsetAsync(memory.first_zero, 0xff, sizeof(unsigned), stream);
  if (error != cudaSuccess) return error;
  error = Launch(EncodeKernel<Key>, BlocksFor<Key>(n), kThreads, 0, stream, in.code, in.x, count,
                 keys.Current(), memory.first_zero);
  if (error != cudaSuccess) return error;
  error = SortKeys(memory.temp, &memory.temp_bytes, keys, n, in.code.bits, stream);
  if (error != cudaSuccess) return error;
  const Key* sorted = keys.Current();
  const unsigned* first_zero = memory.first_zero;
  return Launch(DecodeKernel<Key>, BlocksFor<Key>(n), kThreads, 0, stream, in.code, in.x, count,
                sorted, first_zero, values);
}

template <class Key>
cudaError_t BytesOf(int64_t n, size_t* bytes) {
  Memory<Key> memory;
  const cudaError_t error = memory.LayOut(nullptr, n);
  *bytes = error == cudaSuccess ? memory.bytes : 0;
  return error;
}

}  // namespace

cudaError_t SortValuesBytes(const KeyRows& keys, size_t* bytes) {
  if (keys.code.bits <= 16) return BytesOf<uint16_t>(keys.cols, bytes);
  return keys.code.bits == 32 ? BytesOf<uint32_t>(keys.cols, bytes)
                              : BytesOf<uint64_t>(keys.cols, bytes);
}

cudaError_t LaunchSortValues(const KeyRows& keys, void* workspace, void* values,
                             cudaStream_t stream) {
  if (keys.cols >= (int64_t{1} << 31)) return cudaErrorInvalidValue;
  if (keys.code.bits <= 16) return SortLine<uint16_t>(keys, workspace, values, stream);
  return keys.code.bits == 32 ? SortLine<uint32_t>(keys, workspace, values, stream)
                              : SortLine<uint64_t>(keys, workspace, values, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
