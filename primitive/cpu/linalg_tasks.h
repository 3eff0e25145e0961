// SPDX-License-Identifier: Apache-2.0
//
// What primitive/linalg.h's tasks do to one matrix, by LAPACK. The sizes that LAPACK wants for its
// workspace are asked for once per launch; a task takes its memory from a Scratch, which also
// measures: a task that is given no memory says how much it needs, and does nothing else.
//
//   Scratch measure;
//   RunQr<float>(p, sizes, {}, measure);   // measure.used()
#pragma once

#include <cstddef>
#include <cstdint>

#include "primitive/linalg.h"

namespace oneflow_lite {

class Scratch {
 public:
  Scratch() = default;  // measures
  explicit Scratch(char* memory) : memory_(memory), measures_(false) {}

  template <class T>
  T* Take(int64_t n) {
    T* taken = measures_ ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += (static_cast<size_t>(n) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return taken;
  }
  bool measures() const { return measures_; }
  size_t used() const { return used_; }

 private:
  static constexpr size_t kAlignment = 64;

  char* memory_ = nullptr;
  size_t used_ = 0;
  bool measures_ = true;
};

// Of LAPACK's workspaces: elements of T, and ints.
struct LinalgSizes {
  int work = 0, ints = 0;
};
template <class T>
LinalgSizes SizesOf(const LinalgProblem& p);

// One matrix's part of LinalgBuffers.
template <class T>
struct OneMatrix {
  const T *a = nullptr, *b = nullptr;
  T *x = nullptr, *y = nullptr, *z = nullptr, *s = nullptr;
  int32_t *pivots = nullptr, *info = nullptr;
  int64_t* places = nullptr;
};

#define OFL_LINALG_TASK(name)                                                        \
  template <class T>                                                                 \
  void name(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o, \
            Scratch& scratch)

OFL_LINALG_TASK(RunLu);
OFL_LINALG_TASK(RunPermutation);
OFL_LINALG_TASK(RunSolve);
OFL_LINALG_TASK(RunLuSolve);
OFL_LINALG_TASK(RunInverse);
OFL_LINALG_TASK(RunDeterminant);
OFL_LINALG_TASK(RunCholesky);
OFL_LINALG_TASK(RunTriangularSolve);
OFL_LINALG_TASK(RunQr);
OFL_LINALG_TASK(RunEigen);
OFL_LINALG_TASK(RunSvd);
OFL_LINALG_TASK(RunLeastSquares);
OFL_LINALG_TASK(RunPseudoInverse);
#undef OFL_LINALG_TASK

// to[c][r] = from[r][c]; both dense.
template <class T>
void TransposeTo(int64_t rows, int64_t cols, const T* from, T* to) {
  constexpr int64_t kTile = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const int64_t r1 = r0 + kTile < rows ? r0 + kTile : rows;
    for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
      const int64_t c1 = c0 + kTile < cols ? c0 + kTile : cols;
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) to[c * rows + r] = from[r * cols + c];
      }
    }
  }
}

}  // namespace oneflow_lite
