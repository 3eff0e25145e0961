// SPDX-License-Identifier: Apache-2.0
//
// The launchers of sorts and selections. Rows lie one after the other; all pointers are device
// memory, workspaces are aligned to 256 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/ordered_keys.h"
#include "primitive/rank_kinds.h"

namespace oneflow_lite {
namespace cuda {

// Rows of keys, read from elements: row r of x itself, or the elements `from` names in a row of
// source_cols.
struct KeyRows {
  KeyCode code;
  int64_t rows, cols;
  const void* x;
  const int64_t* from = nullptr;  // rows x cols places in a row of x
  int64_t source_cols = 0;        // where from is given

  OFL_KEY_FUNCTION int64_t ElementOf(int64_t row, int64_t i) const {
    return from ? row * source_cols + from[row * cols + i] : row * cols + i;
  }
  OFL_KEY_FUNCTION int64_t PlaceOf(int64_t row, int64_t i) const {
    return from ? from[row * cols + i] : i;
  }
};

// Bytes rounded up so that what follows is aligned.
constexpr size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Longer rows cannot be sorted on chip.
inline constexpr int64_t kShortRow = 4096;
// short.cu: the first `take` of each row in order, or where `ranks` is given those, and then
// the number of each row's elements that are no NaN. values, places and numbers may be null.
struct ShortSortRun {
  KeyRows keys;
  int64_t take;
  void* values;
  int64_t* places;
  bool by_rank;
  Ranks ranks;
  int64_t* numbers;
};
cudaError_t LaunchShortSort(const ShortSortRun& run, cudaStream_t stream);

// long.cu: rows of any length.
cudaError_t LongSortBytes(const KeyRows& keys, size_t* bytes);
cudaError_t LaunchLongSort(const KeyRows& keys, void* workspace, void* values, int64_t* places,
                           cudaStream_t stream);
// The ranks of rows whose values and places in order are given.
cudaError_t LaunchPickRanks(const KeyRows& sorted, const Ranks& ranks, const int64_t* order,
                            void* values, int64_t* places, int64_t* numbers, cudaStream_t stream);

// unique.cu: the different elements of a line in order, and how many they are. Of the zeros the
// first one counts, each NaN is different from all others, and NaNs come last. `values` has room
// for all n elements.
cudaError_t UniqueBytes(DType dtype, int64_t n, size_t* bytes);
cudaError_t LaunchUnique(DType dtype, int64_t n, const void* x, void* workspace, void* values,
                         int64_t* count, cudaStream_t stream);

// rank_select.cu: of each row the elements of `ranks`, or the k first, in the order of their
// places.
struct RankRun {
  KeyRows keys;
  bool first;  // the ones before rank k - 1 and itself, instead of ranks
  int64_t k;
  Ranks ranks;
  void* values;  // may be null, as numbers may; of ranks
  int64_t* places;
  int64_t* numbers;
};
size_t SelectBytes(const RankRun& run, const DeviceLimits& limits);
cudaError_t LaunchSelect(const RankRun& run, const DeviceLimits& limits, void* workspace,
                         cudaStream_t stream);

// searches.cu
struct SearchRun {
  KeyCode code;
  int64_t rows, cols, numel;
  bool right, out_int32;
  const void *sorted, *x;
  void* places;
};
cudaError_t LaunchSearch(const SearchRun& run, cudaStream_t stream);
cudaError_t LaunchLongestRun(const KeyRows& sorted, int64_t* places, cudaStream_t stream);

// rows.cu: the numbers of rows in the order of their elements, by comparisons.
cudaError_t SortRowsBytes(const KeyRows& keys, size_t* bytes);
cudaError_t LaunchSortRows(const KeyRows& keys, void* workspace, size_t bytes, int64_t* order,
                           cudaStream_t stream);
// The same of elements, for rows that are too long for a radix sort.
cudaError_t LongestSortBytes(const KeyRows& keys, size_t* bytes);
cudaError_t LaunchLongestSort(const KeyRows& keys, void* workspace, size_t bytes, void* values,
                              int64_t* places, cudaStream_t stream);

}  // namespace cuda
}  // namespace oneflow_lite
