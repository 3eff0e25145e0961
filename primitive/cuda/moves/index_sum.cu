// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows by their places, and the sort that all joins by places begin with.
#include <cub/device/device_radix_sort.cuh>

#include "primitive/cuda/moves/index_sorted.cuh"
#include "primitive/places.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int64_t kTooMany = (int64_t{1} << 32) - 1;  // the place of rows that go nowhere fits

size_t Rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

int KeyBits(int64_t size) {
  int bits = 1;
  while (bits < 32 && (int64_t{1} << bits) <= size) ++bits;  // `size` itself is a key
  return bits;
}

cudaError_t Sort(void* workspace, size_t* bytes, const uint32_t* keys, uint32_t* sorted_keys,
                 const uint32_t* rows, uint32_t* sorted_rows, const RowsProblem& p,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(workspace, *bytes, keys, sorted_keys, rows, sorted_rows,
                                         p.count, 0, KeyBits(p.size), stream);
}

__global__ void __launch_bounds__(kElementwiseThreads)
    KeysKernel(RowsProblem p, int64_t skipped, const int64_t* index, uint32_t* keys,
               uint32_t* rows) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < p.count; k += step) {
    const int64_t place = FindPlace(index[k], p.size, p.from_end);
    const bool goes = place >= 0 && place != skipped;
    keys[k] = static_cast<uint32_t>(goes ? place : p.size);
    rows[k] = static_cast<uint32_t>(k);
  }
}

template <class T>
cudaError_t LaunchIndexSum(const IndexSumRun& run, cudaStream_t stream) {
  const RowsProblem& p = run.problem;
  if (!run.add) {
    const auto bytes = static_cast<size_t>(p.outer * p.size * p.inner) * sizeof(T);
    const cudaError_t error = cudaMemsetAsync(run.y, 0, bytes, stream);
    if (error != cudaSuccess) return error;
  }
  // A pack of 8 bytes, whose rows then begin at multiples of it.
  constexpr int kPack = sizeof(T) < 8 ? 8 / static_cast<int>(sizeof(T)) : 1;
  return LaunchSorted<T, AddTo, kPack>(run, stream);
}

}  // namespace

// Few where there are few columns to share out.
int64_t RowsPerThread(const RowsProblem& p) {
  const int64_t columns = p.outer * p.inner;
  int64_t rows = 8;
  while (rows < 128 && p.count * columns / (2 * rows) > (int64_t{1} << 18)) rows *= 2;
  return rows;
}

cudaError_t SortedLayoutOf(size_t compute_bytes, const RowsProblem& p, SortedLayout* l) {
  size_t sort = 0;
  const cudaError_t error = Sort(nullptr, &sort, nullptr, nullptr, nullptr, nullptr, p, nullptr);
  if (error != cudaSuccess) return error;
  const size_t list = Rounded(static_cast<size_t>(p.count) * sizeof(uint32_t));
  const int64_t chunks = CeilDiv(p.count, RowsPerThread(p));
  l->keys = 0;
  l->rows = list;
  l->sorted_keys = 2 * list;
  l->sorted_rows = 3 * list;
  l->partial = 4 * list;
  l->sort =
      l->partial + Rounded(static_cast<size_t>(2 * chunks * p.outer * p.inner) * compute_bytes);
  l->total = l->sort + Rounded(sort);
  return cudaSuccess;
}

cudaError_t SortPlaces(const IndexSumRun& run, const SortedLayout& l, cudaStream_t stream) {
  const RowsProblem& p = run.problem;
  if (p.count >= kTooMany || p.size >= kTooMany) return cudaErrorNotSupported;
  char* workspace = static_cast<char*>(run.workspace);
  const auto list = [&](size_t at) { return reinterpret_cast<uint32_t*>(workspace + at); };
  const cudaError_t error =
      Launch(KeysKernel, CeilDiv(p.count, int64_t{kElementwiseThreads}), kElementwiseThreads, 0,
             stream, p, run.skipped, run.index, list(l.keys), list(l.rows));
  if (error != cudaSuccess) return error;
  size_t bytes = l.total - l.sort;
  return Sort(workspace + l.sort, &bytes, list(l.keys), list(l.sorted_keys), list(l.rows),
              list(l.sorted_rows), p, stream);
}

cudaError_t IndexSumWorkspaceBytes(DType dtype, const RowsProblem& p, size_t* bytes) {
  *bytes = 0;
  if (p.count <= 0 || InOneLaunch(p) || p.count >= kTooMany || p.size >= kTooMany)
    return cudaSuccess;
  SortedLayout l;
  const cudaError_t error = SortedLayoutOf(SizeOf(oneflow_lite::ComputeType(dtype)), p, &l);
  if (error == cudaSuccess) *bytes = l.total;
  return error;
}

IndexSumLauncher FindIndexSum(DType dtype) {
  return VisitDeviceNumeric<IndexSumLauncher>(dtype, [](auto tag) -> IndexSumLauncher {
    return &LaunchIndexSum<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
