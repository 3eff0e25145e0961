// SPDX-License-Identifier: Apache-2.0
//
// LU and Cholesky factorizations, and what they solve.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "primitive/cpu/lapack.h"
#include "primitive/cpu/linalg_tasks.h"

namespace oneflow_lite {
namespace {

using lapack::Getrf;

int AsInt(int64_t n) { return static_cast<int>(n); }
// A leading dimension, which LAPACK wants to be 1 at least.
int Ld(int64_t n) { return static_cast<int>(std::max<int64_t>(n, 1)); }

// The factors of a in `columns`, column by column; gives LAPACK's info.
template <class T>
int Factored(int64_t m, int64_t n, const T* a, T* columns, int32_t* pivots) {
  TransposeTo(m, n, a, columns);
  return Getrf(AsInt(m), AsInt(n), columns, Ld(m), pivots);
}

}  // namespace

template <class T>
void RunLu(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o, Scratch& scratch) {
  T* columns = scratch.Take<T>(p.m * p.n);
  if (scratch.measures()) return;
  *o.info = Factored(p.m, p.n, o.a, columns, o.pivots);
  TransposeTo(p.n, p.m, columns, o.x);
}

template <class T>
void RunPermutation(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o,
                    Scratch& scratch) {
  if (scratch.measures()) return;
  std::iota(o.places, o.places + p.m, int64_t{0});
  for (int64_t i = 0; i < p.k; ++i) {
    const int64_t other = int64_t{o.pivots[i]} - 1;  // pivots count from 1
    if (other >= 0 && other < p.m) std::swap(o.places[i], o.places[other]);
  }
}

template <class T>
void RunSolve(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o, Scratch& scratch) {
  T* columns = scratch.Take<T>(p.n * p.n);
  T* b = scratch.Take<T>(p.n * p.k);
  if (scratch.measures()) return;
  *o.info = Factored(p.n, p.n, o.a, columns, o.pivots);
  TransposeTo(p.n, p.k, o.b, b);
  lapack::Getrs('N', AsInt(p.n), AsInt(p.k), columns, Ld(p.n), o.pivots, b, Ld(p.n));
  TransposeTo(p.k, p.n, b, o.x);
  TransposeTo(p.n, p.n, columns, o.y);
}

template <class T>
void RunLuSolve(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o,
                Scratch& scratch) {
  T* columns = scratch.Take<T>(p.n * p.n);
  T* b = scratch.Take<T>(p.n * p.k);
  int* pivots = scratch.Take<int>(p.n);
  if (scratch.measures()) return;
  TransposeTo(p.n, p.n, o.a, columns);
  TransposeTo(p.n, p.k, o.b, b);
  // Whatever a caller passes, LAPACK must not exchange rows that are not there.
  for (int64_t i = 0; i < p.n; ++i) pivots[i] = std::clamp(o.pivots[i], 1, AsInt(p.n));
  lapack::Getrs(p.transpose ? 'T' : 'N', AsInt(p.n), AsInt(p.k), columns, Ld(p.n), pivots, b,
                Ld(p.n));
  TransposeTo(p.k, p.n, b, o.x);
}

// The inverse of the transpose is the transpose of the inverse.
template <class T>
void RunInverse(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o,
                Scratch& scratch) {
  int* pivots = scratch.Take<int>(p.n);
  T* work = scratch.Take<T>(sizes.work);
  if (scratch.measures()) return;
  *o.info = 0;
  if (p.n == 0) return;
  std::copy_n(o.a, p.n * p.n, o.x);
  *o.info = Getrf(AsInt(p.n), AsInt(p.n), o.x, Ld(p.n), pivots);
  if (*o.info == 0) {
    *o.info = lapack::Getri(AsInt(p.n), o.x, Ld(p.n), pivots, work, sizes.work);
  }
  if (*o.info > 0) std::fill_n(o.x, p.n * p.n, std::numeric_limits<T>::quiet_NaN());
}

template <class T>
void RunDeterminant(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o,
                    Scratch& scratch) {
  T* columns = scratch.Take<T>(p.n * p.n);
  if (scratch.measures()) return;
  Factored(p.n, p.n, o.a, columns, o.pivots);
  T sign = 1, product = 1;
  double logarithm = 0;
  for (int64_t i = 0; i < p.n; ++i) {
    const T u = columns[i * p.n + i];
    if (o.pivots[i] != i + 1) sign = -sign;
    product *= u;
    logarithm += std::log(std::fabs(static_cast<double>(u)));
    if (p.task == LinalgTask::kLogDeterminant) sign *= u > 0 ? T(1) : u < 0 ? T(-1) : u;
  }
  *o.s = p.task == LinalgTask::kDeterminant ? sign * product : static_cast<T>(logarithm);
  if (p.task == LinalgTask::kLogDeterminant) *o.z = sign == 0 ? T(0) : sign;
  TransposeTo(p.n, p.n, columns, o.x);
}

template <class T>
void RunCholesky(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o,
                 Scratch& scratch) {
  if (scratch.measures()) return;
  for (int64_t i = 0; i < p.n; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      o.x[i * p.n + j] = (p.upper ? j >= i : j <= i) ? o.a[i * p.n + j] : T(0);
    }
  }
  *o.info = lapack::Potrf(p.upper ? 'L' : 'U', AsInt(p.n), o.x, Ld(p.n));
}

template <class T>
void RunTriangularSolve(const LinalgProblem& p, const LinalgSizes&, const OneMatrix<T>& o,
                        Scratch& scratch) {
  if (scratch.measures() || p.n * p.k == 0) return;
  std::copy_n(o.b, p.n * p.k, o.x);
  const CBLAS_UPLO triangle = p.upper ? CblasUpper : CblasLower;
  const CBLAS_DIAG diagonal = p.unit ? CblasUnit : CblasNonUnit;
  const int n = AsInt(p.n), k = AsInt(p.k);
  if constexpr (sizeof(T) == 4) {
    cblas_strsm(CblasRowMajor, CblasLeft, triangle, CblasNoTrans, diagonal, n, k, 1, o.a, n, o.x,
                k);
  } else {
    cblas_dtrsm(CblasRowMajor, CblasLeft, triangle, CblasNoTrans, diagonal, n, k, 1, o.a, n, o.x,
                k);
  }
}

#define OFL_INSTANCE(name, T) \
  template void name(const LinalgProblem&, const LinalgSizes&, const OneMatrix<T>&, Scratch&)
#define OFL_INSTANCES(name)  \
  OFL_INSTANCE(name, float); \
  OFL_INSTANCE(name, double)
OFL_INSTANCES(RunLu);
OFL_INSTANCES(RunPermutation);
OFL_INSTANCES(RunSolve);
OFL_INSTANCES(RunLuSolve);
OFL_INSTANCES(RunInverse);
OFL_INSTANCES(RunDeterminant);
OFL_INSTANCES(RunCholesky);
OFL_INSTANCES(RunTriangularSolve);

}  // namespace oneflow_lite
