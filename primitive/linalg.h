// SPDX-License-Identifier: Apache-2.0
//
// Factorizations of batches of matrices, through LAPACK on the CPU and cuSOLVER on CUDA.
//
//   const LinalgProblem p = {.task = LinalgTask::kCholesky, .batch = 2, .m = 3, .n = 3};
//   OFL_ASSIGN_OR_RETURN(const size_t bytes, linalg->WorkspaceBytes(stream, p));
//   OFL_RETURN_IF_ERROR(linalg->Launch(stream, p, {.a = a, .x = l, .info = info}, workspace));
//
// All matrices are dense and row by row, a batch of them one after another. Inputs stay as they
// are; outputs do not overlap them. `info` has an int32 for each matrix: 0, or what LAPACK says.
// With r = min(m, n):
//
// | task                | reads                         | writes                                  |
// |---------------------|-------------------------------|-----------------------------------------|
// | kLu                 | a [m, n]                      | x = L and U [m, n], pivots [r], info    |
// | kPermutation        | pivots [k]                    | rows int64 [m]: a[rows[i]] = (L U)[i]   |
// | kSolve              | a [n, n], b [n, k]            | x [n, k], y = L and U, pivots, info     |
// | kLuSolve            | a = L and U, pivots, b [n, k] | x [n, k]; of a transposed: transpose    |
// | kInverse            | a [n, n]                      | x [n, n], info                          |
// | kDeterminant        | a [n, n]                      | s [1], x = L and U, pivots              |
// | kLogDeterminant     | a [n, n]                      | z = sign [1], s = log|det| [1], x, pivots
// | | kCholesky           | a [n, n], one triangle        | x [n, n], the other triangle 0, info |
// | kTriangularSolve    | a [n, n], one triangle, b [n, k] | x [n, k]                             |
// | kQr                 | a [m, n]                      | x = Q [m, q], y = R [q, n]              |
// | kEigen              | a [n, n], one triangle        | s [n] ascending, x = vectors, info      |
// | kSvd                | a [m, n]                      | s [r] descending, x = U, y = V^T, info  |
// | kLeastSquares       | a [m, n], b [m, k]            | x [n, k], rank int64, s [r], info       |
// | kPseudoInverse      | a [m, n], b = atol and rtol   | x [n, m], info                          |
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

enum class LinalgTask : uint8_t {
  kLu,
  kPermutation,
  kSolve,
  kLuSolve,
  kInverse,
  kDeterminant,
  kLogDeterminant,
  kCholesky,
  kTriangularSolve,
  kQr,
  kEigen,
  kSvd,
  kLeastSquares,
  kPseudoInverse,
};

// LAPACK's ways to least squares.
enum class LeastSquaresDriver : uint8_t { kGels, kGelsy, kGelsd, kGelss };

struct LinalgProblem {
  LinalgTask task = LinalgTask::kLu;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose = false;  // kLuSolve: of the transposed matrix
  bool upper = false;      // which triangle kCholesky, kTriangularSolve and kEigen read
  bool unit = false;       // kTriangularSolve: the diagonal counts as 1
  bool full = false;       // kQr: q = m, else r; kSvd: U [m, m] and V [n, n], else r columns
  bool vectors = true;     // kQr, kEigen, kSvd: false: x, and y of kSvd, are not written
  // kLeastSquares. Singular values below rcond times the largest count as 0.
  LeastSquaresDriver driver = LeastSquaresDriver::kGelsy;
  double rcond = 0;
};

struct LinalgBuffers {
  const void *a = nullptr, *b = nullptr;
  void *x = nullptr, *y = nullptr, *z = nullptr, *s = nullptr;
  int32_t *pivots = nullptr, *info = nullptr;
  int64_t* places = nullptr;  // the rows of kPermutation, the rank of kLeastSquares
};

class Linalg {
 public:
  static constexpr char kName[] = "linalg";
  struct Spec {
    DType dtype = DType::kFloat32;  // or float64
  };
  virtual ~Linalg() = default;
  // NotImplementedError where a size is more than the library can take, or there is no such task.
  virtual StatusOr<size_t> WorkspaceBytes(const Stream& stream, const LinalgProblem& p) const = 0;
  virtual Status Launch(Stream& stream, const LinalgProblem& p, const LinalgBuffers& buffers,
                        void* workspace) const = 0;
};
using LinalgFactory = PrimitiveFactory<Linalg>;

}  // namespace oneflow_lite
