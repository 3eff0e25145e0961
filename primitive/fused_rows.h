// SPDX-License-Identifier: Apache-2.0
//
// Row kernels compiled at run time (flow.fuse). What is computed is in the source that the caller
// generates; here is what that needs around it: which kernel of the family serves so many rows,
// loading the compiled one, launching it.
//
//   plan = Plan(stream, rows, cols, traits, 16);   the caller compiles plan.kernel
//   kernel = Load(stream, plan, compiled);         null: no room for such clusters, so Plan with 8
//   Launch(stream, plan, kernel, rows, cols, words, operands, workspace);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "primitive/kernel_cache.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

// What of an algorithm the choice of a kernel depends on; see primitive/cuda/row_policy.h.
struct FusedRowsTraits {
  int pack = 4;                   // elements in 16 bytes of output
  int bytes_per_pack = 16;        // of all inputs, as they are kept on chip
  int statistics_bytes = 8;       // of a part of a row
  bool is_double = false;         // whether it computes in float64
  bool shares_registers = false;  // whether a cluster's blocks may hold a row in registers: all but
                                  // layer_norm's
  bool is_lean = false;           // whether a thread holds as many packs as of a plain row
  bool is_single = false;         // whether what a row has of its own is one input of y's type
  bool is_whole = false;          // whether every row of every matrix is whole packs of 16 bytes
  bool is_odd = false;            // whole, but for the ends of rows (fused/wide.cuh)
  bool is_norm = false;           // layer_norm or rms_norm
  bool is_log = false;            // log_softmax
  bool stores_costly = false;     // whether what comes behind the row is costly to compute
  int common_bytes = 0;           // of operands that serve all rows, per pack in shared memory
  int late_bytes = 0;             // of those that are read behind the row, where not among them
  std::vector<int> operands;      // bytes of an element of each matrix that serves all rows
};

// Where the workspace holds the copies of an operand that serves all rows.
struct FusedRowsCopies {
  int element_bytes;
  size_t offset;
};

struct FusedRowsPlan {
  std::string kernel;  // with A for the algorithm: "RowGroupKernel<4, 1, A>"
  bool whole = false;  // A is a WholeRow, else a FusedRow
  int64_t blocks = 0;
  int threads = 0, cluster = 1;
  size_t shared = 0;  // bytes
  bool grid = false;  // all blocks meet at a barrier
  int parts = 1;      // grid: blocks per row
  int64_t kept = 0;   // grid, and shared by a cluster: packs that a block keeps
  size_t workspace_bytes = 0;
  // The kernel reads its operands there (fused/copies.cuh): all of the traits', or none.
  std::vector<FusedRowsCopies> copies;
  int pack = 0;  // as in the traits
};

class FusedRows {
 public:
  static constexpr char kName[] = "fused_rows";
  struct Spec {};
  virtual ~FusedRows() = default;

  // rows, cols > 0. most_clustered: blocks in a cluster at most, 16 or 8.
  virtual FusedRowsPlan Plan(const Stream& stream, int64_t rows, int64_t cols,
                             const FusedRowsTraits& traits, int most_clustered) const = 0;
  // The compiled kernel, ready for the plan on the stream's device; it stays loaded. Null where the
  // device cannot place the plan's clusters.
  virtual StatusOr<const void*> Load(const Stream& stream, const FusedRowsPlan& plan,
                                     const CompiledKernel& compiled) const = 0;
  // words: the algorithm's struct, in words of 8 bytes, with the copies' addresses for those of the
  // operands, which are given for each of plan.copies. The workspace is aligned to 128 bytes.
  virtual Status Launch(Stream& stream, const FusedRowsPlan& plan, const void* kernel, int64_t rows,
                        int64_t cols, absl::Span<const uint64_t> words,
                        absl::Span<const void* const> operands, void* workspace) const = 0;
};
using FusedRowsFactory = PrimitiveFactory<FusedRows>;

}  // namespace oneflow_lite
