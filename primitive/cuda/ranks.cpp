// SPDX-License-Identifier: Apache-2.0
//
// Short rows are sorted on chip. Of long ones few elements are selected, many taken from a sort.
#include "primitive/ranks.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/sort/launch.h"

namespace oneflow_lite {
namespace {

using cuda::Aligned;
using cuda::KeyRows;

constexpr int64_t kSortedRow = 1024;  // up to here the sort is not slower than a selection
constexpr int64_t kManyRanks = 8;     // from here on one sort is faster than a selection for each
constexpr int64_t kLongestRow = (int64_t{1} << 31) - 1;  // that the radix sort takes

bool IsSorted(const KeyRows& keys, const Ranks& ranks) {
  return keys.cols <= kSortedRow || (keys.cols <= cuda::kShortRow && ranks.per_row() >= kManyRanks);
}
bool IsSortedInMemory(const KeyRows& keys, const Ranks& ranks) {
  return keys.cols > cuda::kShortRow && keys.cols <= kLongestRow && ranks.per_row() >= kManyRanks;
}

// Of a whole sort: the elements, their places, and what it needs itself.
struct SortedBytes {
  size_t values, places, sort = 0;
  explicit SortedBytes(const KeyRows& keys)
      : values(Aligned(static_cast<size_t>(keys.rows * keys.cols) * keys.code.bits / 8)),
        places(Aligned(static_cast<size_t>(keys.rows * keys.cols) * sizeof(int64_t))) {}
};

class CudaRankSelect final : public RankSelect {
 public:
  explicit CudaRankSelect(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows, int64_t cols,
                                  const Ranks& ranks) const override {
    const KeyRows keys{KeyCodeOf(dtype_, false), rows, cols, nullptr};
    if (IsSorted(keys, ranks)) return size_t{0};
    if (!IsSortedInMemory(keys, ranks)) {
      return cuda::SelectBytes(SelectionOf(keys, ranks), cuda::LimitsOf(stream));
    }
    SortedBytes bytes(keys);
    OFL_RETURN_IF_ERROR(cuda::RunOn(
        stream, kName, [&](cudaStream_t) { return cuda::LongSortBytes(keys, &bytes.sort); }));
    return bytes.values + bytes.places + bytes.sort;
  }

  Status Launch(Stream& stream, int64_t rows, int64_t cols, const Ranks& ranks, const void* x,
                void* values, int64_t* places, int64_t* numbers, void* workspace) const override {
    const KeyRows keys{KeyCodeOf(dtype_, false), rows, cols, x};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) -> cudaError_t {
      if (IsSorted(keys, ranks)) {
        return cuda::LaunchShortSort({keys, 0, values, places, true, ranks, numbers}, s);
      }
      if (IsSortedInMemory(keys, ranks)) {
        return FromSort(keys, ranks, values, places, numbers, static_cast<char*>(workspace), s);
      }
      cuda::RankRun run = SelectionOf(keys, ranks);
      run.values = values;
      run.places = places;
      run.numbers = numbers;
      return cuda::LaunchSelect(run, cuda::LimitsOf(stream), workspace, s);
    });
  }

 private:
  static cuda::RankRun SelectionOf(const KeyRows& keys, const Ranks& ranks) {
    cuda::RankRun run{};
    run.keys = keys;
    run.ranks = ranks;
    return run;
  }

  static cudaError_t FromSort(const KeyRows& keys, const Ranks& ranks, void* values,
                              int64_t* places, int64_t* numbers, char* workspace,
                              cudaStream_t stream) {
    const SortedBytes bytes(keys);
    auto* order = reinterpret_cast<int64_t*>(workspace + bytes.values);
    const cudaError_t error = cuda::LaunchLongSort(keys, workspace + bytes.values + bytes.places,
                                                   workspace, order, stream);
    if (error != cudaSuccess) return error;
    KeyRows sorted = keys;
    sorted.x = workspace;
    return cuda::LaunchPickRanks(sorted, ranks, order, values, places, numbers, stream);
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<RankSelect>> NewRankSelect(const RankSelect::Spec& spec) {
  return std::make_unique<CudaRankSelect>(spec.dtype);
}

const bool registered = RegisterPrimitive<RankSelect>(DeviceType::kCUDA, &NewRankSelect);

}  // namespace
}  // namespace oneflow_lite
