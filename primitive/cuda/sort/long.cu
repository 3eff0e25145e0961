// SPDX-License-Identifier: Apache-2.0
//
// Long rows by CUB's radix sort of keys with 32-bit places. Several rows are sorted at once: above
// an element's key stands the number of its row. Where both do not fit in 64 bits, a second sort by
// the row, which keeps the order, follows the one by the key.
#include <cub/device/device_radix_sort.cuh>

#include "primitive/cuda/sort/ordered_rows.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;                      // elements of a thread, read before one is waited for
constexpr int64_t kChunk = int64_t{1} << 30;  // elements sorted at once, but for one row

int BitsFor(int64_t values) {
  int bits = 0;
  while (bits < 32 && (int64_t{1} << bits) < values) ++bits;
  return bits;
}

struct Plan {
  int64_t rows;  // at once
  int row_bits;
  int key_bytes;  // 2, 4 or 8
  bool twice;     // a second sort by the row
  int64_t numel() const { return rows * cols; }
  int64_t cols;
};

Plan PlanOf(const KeyRows& keys) {
  Plan plan{};
  plan.cols = keys.cols;
  plan.rows = keys.cols >= kChunk ? 1 : kChunk / keys.cols;
  if (plan.rows > keys.rows) plan.rows = keys.rows;
  plan.row_bits = BitsFor(plan.rows);
  const int bits = keys.code.bits + plan.row_bits;
  plan.key_bytes = bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
  plan.twice = bits > 64;
  return plan;
}

// A null temp asks for its size.
template <class Key>
cudaError_t SortPairs(void* temp, size_t* bytes, cub::DoubleBuffer<Key>& keys,
                      cub::DoubleBuffer<uint32_t>& places, int64_t n, int bits,
                      cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(temp, *bytes, keys, places, static_cast<int>(n), 0, bits,
                                         stream);
}

template <class Key>
cudaError_t TempBytes(int64_t n, size_t* bytes) {
  cub::DoubleBuffer<Key> keys(nullptr, nullptr);
  cub::DoubleBuffer<uint32_t> places(nullptr, nullptr);
  return SortPairs(nullptr, bytes, keys, places, n, 8 * static_cast<int>(sizeof(Key)), nullptr);
}

// Where things lie in the workspace.
struct Memory {
  char *keys[2], *places[2], *temp;
  size_t temp_bytes, bytes;
};

cudaError_t LayOut(const Plan& plan, void* workspace, Memory* memory) {
  const int64_t n = plan.numel();
  size_t temp = 0, by_row = 0;
  cudaError_t error = plan.key_bytes == 2   ? TempBytes<uint16_t>(n, &temp)
                      : plan.key_bytes == 4 ? TempBytes<uint32_t>(n, &temp)
                                            : TempBytes<uint64_t>(n, &temp);
  if (error == cudaSuccess && plan.twice) error = TempBytes<uint32_t>(n, &by_row);
  if (error != cudaSuccess) return error;
  memory->temp_bytes = temp > by_row ? temp : by_row;
  const size_t count = static_cast<size_t>(n);
  const size_t key_bytes = Aligned(count * static_cast<size_t>(plan.key_bytes)),
               place_bytes = Aligned(count * 4);
  char* at = static_cast<char*>(workspace);
  for (int i = 0; i < 2; ++i) memory->keys[i] = at + i * key_bytes;
  for (int i = 0; i < 2; ++i) memory->places[i] = at + 2 * key_bytes + i * place_bytes;
  memory->temp = at + 2 * (key_bytes + place_bytes);
  memory->bytes = 2 * (key_bytes + place_bytes) + Aligned(memory->temp_bytes);
  return cudaSuccess;
}

// Keys of the rows from `first_row` on, and their numbers.
template <class Key>
__global__ void __launch_bounds__(kThreads) KeysKernel(KeyRows in, int64_t first_row, uint32_t n,
                                                       bool with_row, Key* keys, uint32_t* places) {
  const uint32_t step = gridDim.x * (kThreads * kEach), cols = static_cast<uint32_t>(in.cols);
  for (uint32_t begin = blockIdx.x * (kThreads * kEach) + threadIdx.x; begin < n; begin += step) {
    uint32_t rows[kEach];
    int64_t from[kEach];
    Key raw[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t i = begin + k * kThreads;
      rows[k] = i / cols;
      from[k] = i < n ? in.ElementOf(first_row + rows[k], i - rows[k] * cols) : -1;
    }
    LoadBits(in.code.bits, in.x, from, raw);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t i = begin + k * kThreads;
      if (i >= n) break;
      Key key = in.code.template Encode<Key>(raw[k]);
      if (with_row && rows[k] > 0) key |= static_cast<Key>(rows[k]) << in.code.bits;
      keys[i] = key;
      places[i] = i;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    RowsKernel(uint32_t n, uint32_t cols, const uint32_t* places, uint32_t* rows) {
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    rows[i] = places[i] / cols;
  }
}

// From keys and numbers in order to elements and places. An element is read again where its key
// does not tell its bits, or where there are no keys.
template <class Key>
__global__ void __launch_bounds__(kThreads)
    FinishKernel(KeyRows in, int64_t first_row, uint32_t n, const Key* keys, const uint32_t* places,
                 void* values, int64_t* indices) {
  const uint32_t step = gridDim.x * (kThreads * kEach), cols = static_cast<uint32_t>(in.cols);
  for (uint32_t begin = blockIdx.x * (kThreads * kEach) + threadIdx.x; begin < n; begin += step) {
    Key key[kEach];
    uint32_t place[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t i = begin + k * kThreads;
      key[k] = keys && i < n ? keys[i] : Key{0};
      place[k] = i < n ? places[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t i = begin + k * kThreads, in_chunk = i / cols;
      if (i >= n) break;
      const int64_t row = first_row + in_chunk, to = first_row * in.cols + i;
      const int64_t local = place[k] - in_chunk * cols;
      indices[to] = in.PlaceOf(row, local);
      const Key element = key[k] & in.code.template Most<Key>();
      if (keys && in.code.IsOneElement(element)) {
        StoreBits(in.code.bits, in.code.Decode(element), values, to);
      } else {
        CopyElement(in.code.bits, in.x, in.ElementOf(row, local), values, to);
      }
    }
  }
}

int64_t BlocksFor(int64_t n, int each = 1) {
  const int64_t of_block = int64_t{kThreads} * each, blocks = (n + of_block - 1) / of_block;
  return blocks < (1 << 20) ? blocks : 1 << 20;
}

template <class Key>
cudaError_t SortChunk(const KeyRows& in, const Plan& plan, const Memory& memory, int64_t first_row,
                      int64_t rows, void* values, int64_t* indices, cudaStream_t stream) {
  const int64_t n = rows * in.cols;
  const auto count = static_cast<uint32_t>(n);
  size_t temp_bytes = memory.temp_bytes;
  cub::DoubleBuffer<Key> keys(reinterpret_cast<Key*>(memory.keys[0]),
                              reinterpret_cast<Key*>(memory.keys[1]));
  cub::DoubleBuffer<uint32_t> places(reinterpret_cast<uint32_t*>(memory.places[0]),
                                     reinterpret_cast<uint32_t*>(memory.places[1]));
  cudaError_t error = Launch(KeysKernel<Key>, BlocksFor(n, kEach), kThreads, 0, stream, in,
                             first_row, count, !plan.twice, keys.Current(), places.Current());
  if (error != cudaSuccess) return error;
  const int bits = in.code.bits + (plan.twice ? 0 : plan.row_bits);
  error = SortPairs(memory.temp, &temp_bytes, keys, places, n, bits, stream);
  if (error != cudaSuccess) return error;
  const Key* in_order = keys.Current();
  if (plan.twice) {
    in_order = nullptr;
    cub::DoubleBuffer<uint32_t> by_row(reinterpret_cast<uint32_t*>(memory.keys[0]),
                                       reinterpret_cast<uint32_t*>(memory.keys[1]));
    error = Launch(RowsKernel, BlocksFor(n), kThreads, 0, stream, count,
                   static_cast<uint32_t>(in.cols), places.Current(), by_row.Current());
    if (error != cudaSuccess) return error;
    temp_bytes = memory.temp_bytes;
    error = SortPairs(memory.temp, &temp_bytes, by_row, places, n, plan.row_bits, stream);
    if (error != cudaSuccess) return error;
  }
  return Launch(FinishKernel<Key>, BlocksFor(n, kEach), kThreads, 0, stream, in, first_row, count,
                in_order, places.Current(), values, indices);
}

__global__ void __launch_bounds__(kThreads)
    PickKernel(KeyRows in, Ranks ranks, const int64_t* order, void* values, int64_t* places,
               int64_t* numbers) {
  const int64_t wanted = ranks.per_row(), n = in.rows * wanted;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t row = i / wanted, task = i - row * wanted, start = row * in.cols;
    int64_t low = 0, high = in.cols;  // the first NaN
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (in.code.IsNan(KeyAt<uint64_t>(in.code, in.x, start + middle))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const int64_t from = start + ranks.At(task, in.cols, low);
    places[i] = order[from];
    if (values) CopyElement(in.code.bits, in.x, from, values, i);
    if (numbers && task == 0) numbers[row] = low;
  }
}

}  // namespace

cudaError_t LongSortBytes(const KeyRows& keys, size_t* bytes) {
  Memory memory;
  const cudaError_t error = LayOut(PlanOf(keys), nullptr, &memory);
  *bytes = error == cudaSuccess ? memory.bytes : 0;
  return error;
}

cudaError_t LaunchLongSort(const KeyRows& keys, void* workspace, void* values, int64_t* places,
                           cudaStream_t stream) {
  if (keys.cols >= (int64_t{1} << 31)) return cudaErrorInvalidValue;
  const Plan plan = PlanOf(keys);
  Memory memory;
  cudaError_t error = LayOut(plan, workspace, &memory);
  for (int64_t row = 0; error == cudaSuccess && row < keys.rows; row += plan.rows) {
    const int64_t rows = keys.rows - row < plan.rows ? keys.rows - row : plan.rows;
    const auto sort = plan.key_bytes == 2   ? SortChunk<uint16_t>
                      : plan.key_bytes == 4 ? SortChunk<uint32_t>
                                            : SortChunk<uint64_t>;
    error = sort(keys, plan, memory, row, rows, values, places, stream);
  }
  return error;
}

cudaError_t LaunchPickRanks(const KeyRows& sorted, const Ranks& ranks, const int64_t* order,
                            void* values, int64_t* places, int64_t* numbers, cudaStream_t stream) {
  const int64_t n = sorted.rows * ranks.per_row();
  if (n <= 0) return cudaSuccess;
  return Launch(PickKernel, BlocksFor(n), kThreads, 0, stream, sorted, ranks, order, values, places,
                numbers);
}

}  // namespace cuda
}  // namespace oneflow_lite
