// SPDX-License-Identifier: Apache-2.0
//
// Elements by their rank in a row, found by selection: the k-th smallest, medians, and those around
// quantiles. NaN counts as the largest; of equal elements the first in the row comes first.
#pragma once

#include "primitive/primitive.h"
#include "primitive/rank_kinds.h"

namespace oneflow_lite {

class RankSelect {
 public:
  static constexpr char kName[] = "rank_select";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~RankSelect() = default;
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows, int64_t cols,
                                          const Ranks& ranks) const = 0;
  // rows x ranks.per_row() values and places within the row, and the number of elements of each row
  // that are no NaN; values and numbers may be null. cols >= 1.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, const Ranks& ranks,
                        const void* x, void* values, int64_t* places, int64_t* numbers,
                        void* workspace) const = 0;
};
using RankSelectFactory = PrimitiveFactory<RankSelect>;

}  // namespace oneflow_lite
