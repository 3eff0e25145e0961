// SPDX-License-Identifier: Apache-2.0
//
// Sorting along rows. NaN counts as the largest; equal elements keep their order, so that the
// result is the same on every device.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

class Sort {
 public:
  static constexpr char kName[] = "sort";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~Sort() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows,
                                          int64_t cols) const = 0;
  // Rows lie one after the other; `indices` are places within the row. The workspace has the bytes
  // asked for above.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, bool descending, const void* x,
                        void* values, int64_t* indices, void* workspace) const = 0;
};
using SortFactory = PrimitiveFactory<Sort>;

// The different elements of a line, in order. Of the zeros the first one counts; each NaN differs
// from all others and may get any bits of a NaN.
class UniqueValues {
 public:
  static constexpr char kName[] = "unique_values";
  using Spec = Sort::Spec;
  virtual ~UniqueValues() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t n) const = 0;
  // Both `values`, of which those behind the first *count mean nothing, and x are of n elements.
  virtual Status Launch(Stream& stream, int64_t n, const void* x, void* values, int64_t* count,
                        void* workspace) const = 0;
};
using UniqueValuesFactory = PrimitiveFactory<UniqueValues>;

// The k first elements of each row in that order, without the rest of it.
class TopK {
 public:
  static constexpr char kName[] = "topk";
  using Spec = Sort::Spec;
  struct Problem {
    int64_t rows, cols, k;  // 1 <= k <= cols
    bool largest;           // the order is descending
  };
  virtual ~TopK() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, const Problem& problem) const = 0;
  // rows x k values and places within the row.
  virtual Status Launch(Stream& stream, const Problem& problem, const void* x, void* values,
                        int64_t* indices, void* workspace) const = 0;
};
using TopKFactory = PrimitiveFactory<TopK>;

// The numbers of the rows of a matrix in the order of their elements, compared one after the other;
// equal rows keep their order.
class SortRows {
 public:
  static constexpr char kName[] = "sort_rows";
  using Spec = Sort::Spec;
  virtual ~SortRows() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows,
                                          int64_t cols) const = 0;
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, const void* x, int64_t* order,
                        void* workspace) const = 0;
};
using SortRowsFactory = PrimitiveFactory<SortRows>;

// Of sorted rows, the last place of the longest run of equal elements, of several such runs of the
// first; NaN equals NaN.
class LongestRun {
 public:
  static constexpr char kName[] = "longest_run";
  using Spec = Sort::Spec;
  virtual ~LongestRun() = default;
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, const void* sorted,
                        int64_t* places) const = 0;
};
using LongestRunFactory = PrimitiveFactory<LongestRun>;

// How many elements of a sorted row lie before each x: those below it, and where `right` those that
// equal it.
class SearchSorted {
 public:
  static constexpr char kName[] = "searchsorted";
  using Spec = Sort::Spec;
  struct Problem {
    int64_t rows, cols;  // of the sorted ones: one row for all, or one for each row of x
    int64_t numel;       // of x, the rows of which are of one length
    bool right;
    bool out_int32;  // places are int32 instead of int64
  };
  virtual ~SearchSorted() = default;
  virtual Status Launch(Stream& stream, const Problem& problem, const void* sorted, const void* x,
                        void* places) const = 0;
};
using SearchSortedFactory = PrimitiveFactory<SearchSorted>;

}  // namespace oneflow_lite
