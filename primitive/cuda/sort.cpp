// SPDX-License-Identifier: Apache-2.0
//
// Which way rows are sorted: on chip where they are short, else by a radix sort, else by
// comparisons.
#include "primitive/sort.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/sort/launch.h"

namespace oneflow_lite {
namespace {

using cuda::Aligned;
using cuda::KeyRows;

constexpr int64_t kLongestRow = (int64_t{1} << 31) - 1;  // that the radix sort takes

cudaError_t SortBytes(const KeyRows& keys, size_t* bytes) {
  *bytes = 0;
  if (keys.cols <= cuda::kShortRow) return cudaSuccess;
  return keys.cols <= kLongestRow ? cuda::LongSortBytes(keys, bytes)
                                  : cuda::LongestSortBytes(keys, bytes);
}

cudaError_t LaunchSort(const KeyRows& keys, void* workspace, void* values, int64_t* places,
                       cudaStream_t stream) {
  if (keys.cols <= cuda::kShortRow) {
    cuda::ShortSortRun run{};
    run.keys = keys;
    run.take = keys.cols;
    run.values = values;
    run.places = places;
    return cuda::LaunchShortSort(run, stream);
  }
  if (keys.cols <= kLongestRow) {
    return cuda::LaunchLongSort(keys, workspace, values, places, stream);
  }
  size_t bytes = 0;
  const cudaError_t error = cuda::LongestSortBytes(keys, &bytes);
  if (error != cudaSuccess) return error;
  return cuda::LaunchLongestSort(keys, workspace, bytes, values, places, stream);
}

class CudaSort final : public Sort {
 public:
  explicit CudaSort(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows, int64_t cols) const override {
    size_t bytes = 0;
    OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t) {
      return SortBytes({KeyCodeOf(dtype_, false), rows, cols, nullptr}, &bytes);
    }));
    return bytes;
  }
  Status Launch(Stream& stream, int64_t rows, int64_t cols, bool descending, const void* x,
                void* values, int64_t* indices, void* workspace) const override {
    const KeyRows keys{KeyCodeOf(dtype_, descending), rows, cols, x};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return LaunchSort(keys, workspace, values, indices, s);
    });
  }

 private:
  DType dtype_;
};

class CudaUniqueValues final : public UniqueValues {
 public:
  explicit CudaUniqueValues(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t n) const override {
    size_t bytes = 0;
    OFL_RETURN_IF_ERROR(cuda::RunOn(
        stream, kName, [&](cudaStream_t) { return cuda::UniqueBytes(dtype_, n, &bytes); }));
    return bytes;
  }
  Status Launch(Stream& stream, int64_t n, const void* x, void* values, int64_t* count,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchUnique(dtype_, n, x, workspace, values, count, s);
    });
  }

 private:
  DType dtype_;
};

// Up to here a row's sort on chip is not slower than the selection and a sort of what it finds.
constexpr int64_t kSortedForTopK = 1024;

class CudaTopK final : public TopK {
 public:
  explicit CudaTopK(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, const Problem& p) const override {
    size_t bytes = 0;
    OFL_RETURN_IF_ERROR(cuda::RunOn(
        stream, kName, [&](cudaStream_t) { return PartBytes(p, cuda::LimitsOf(stream), &bytes); }));
    return bytes + FoundBytes(p);
  }
  Status Launch(Stream& stream, const Problem& p, const void* x, void* values, int64_t* indices,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return Run(p, x, values, indices, workspace, cuda::LimitsOf(stream), s);
    });
  }

 private:
  KeyRows KeysOf(const Problem& p, const void* x) const {
    return {KeyCodeOf(dtype_, p.largest), p.rows, p.cols, x};
  }
  // The places found, in their order, which are then sorted.
  static KeyRows FoundOf(const Problem& p, KeyRows keys, const int64_t* found) {
    keys.from = found;
    keys.source_cols = p.cols;
    keys.cols = p.k;
    return keys;
  }
  static size_t FoundBytes(const Problem& p) {
    if (p.cols <= kSortedForTopK || p.k == p.cols) return 0;
    return Aligned(static_cast<size_t>(p.rows * p.k) * sizeof(int64_t));
  }
  // Of the selection or of the sort after it.
  cudaError_t PartBytes(const Problem& p, const cuda::DeviceLimits& limits, size_t* bytes) const {
    *bytes = 0;
    if (p.cols <= kSortedForTopK) return cudaSuccess;
    const KeyRows keys = KeysOf(p, nullptr);
    if (p.k == p.cols) return SortBytes(keys, bytes);
    size_t sort = 0;
    const cudaError_t error = SortBytes(FoundOf(p, keys, nullptr), &sort);
    *bytes = std::max(sort, cuda::SelectBytes(SelectionOf(p, keys, nullptr), limits));
    return error;
  }
  static cuda::RankRun SelectionOf(const Problem& p, const KeyRows& keys, int64_t* found) {
    cuda::RankRun run{};
    run.keys = keys;
    run.first = true;
    run.k = p.k;
    run.places = found;
    return run;
  }
  cudaError_t Run(const Problem& p, const void* x, void* values, int64_t* indices, void* workspace,
                  const cuda::DeviceLimits& limits, cudaStream_t stream) const {
    const KeyRows keys = KeysOf(p, x);
    if (p.cols <= kSortedForTopK) {
      cuda::ShortSortRun run{};
      run.keys = keys;
      run.take = p.k;
      run.values = values;
      run.places = indices;
      return cuda::LaunchShortSort(run, stream);
    }
    if (p.k == p.cols) return LaunchSort(keys, workspace, values, indices, stream);
    auto* found = static_cast<int64_t*>(workspace);
    void* rest = static_cast<char*>(workspace) + FoundBytes(p);
    const cudaError_t error = cuda::LaunchSelect(SelectionOf(p, keys, found), limits, rest, stream);
    if (error != cudaSuccess) return error;
    return LaunchSort(FoundOf(p, keys, found), rest, values, indices, stream);
  }

  DType dtype_;
};

class CudaSortRows final : public SortRows {
 public:
  explicit CudaSortRows(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows, int64_t cols) const override {
    size_t bytes = 0;
    OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t) {
      return cuda::SortRowsBytes({KeyCodeOf(dtype_, false), rows, cols, nullptr}, &bytes);
    }));
    return bytes;
  }
  Status Launch(Stream& stream, int64_t rows, int64_t cols, const void* x, int64_t* order,
                void* workspace) const override {
    OFL_ASSIGN_OR_RETURN(const size_t bytes, WorkspaceBytes(stream, rows, cols));
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchSortRows({KeyCodeOf(dtype_, false), rows, cols, x}, workspace, bytes,
                                  order, s);
    });
  }

 private:
  DType dtype_;
};

class CudaLongestRun final : public LongestRun {
 public:
  explicit CudaLongestRun(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream& stream, int64_t rows, int64_t cols, const void* sorted,
                int64_t* places) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchLongestRun({KeyCodeOf(dtype_, false), rows, cols, sorted}, places, s);
    });
  }

 private:
  DType dtype_;
};

class CudaSearchSorted final : public SearchSorted {
 public:
  explicit CudaSearchSorted(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream& stream, const Problem& p, const void* sorted, const void* x,
                void* places) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchSearch({KeyCodeOf(dtype_, false), p.rows, p.cols, p.numel, p.right,
                                 p.out_int32, sorted, x, places},
                                s);
    });
  }

 private:
  DType dtype_;
};

template <class P, class C>
StatusOr<std::unique_ptr<P>> New(const typename P::Spec& spec) {
  return std::make_unique<C>(spec.dtype);
}

constexpr DeviceType kDevice = DeviceType::kCUDA;
const bool sort_registered = RegisterPrimitive<Sort>(kDevice, &New<Sort, CudaSort>);
const bool unique_registered =
    RegisterPrimitive<UniqueValues>(kDevice, &New<UniqueValues, CudaUniqueValues>);
const bool topk_registered = RegisterPrimitive<TopK>(kDevice, &New<TopK, CudaTopK>);
const bool rows_registered = RegisterPrimitive<SortRows>(kDevice, &New<SortRows, CudaSortRows>);
const bool run_registered =
    RegisterPrimitive<LongestRun>(kDevice, &New<LongestRun, CudaLongestRun>);
const bool search_registered =
    RegisterPrimitive<SearchSorted>(kDevice, &New<SearchSorted, CudaSearchSorted>);

}  // namespace
}  // namespace oneflow_lite
