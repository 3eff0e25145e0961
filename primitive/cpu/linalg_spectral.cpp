// SPDX-License-Identifier: Apache-2.0
//
// QR, eigenvalues, singular values, and least squares.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "primitive/cpu/lapack.h"
#include "primitive/cpu/linalg_tasks.h"

namespace oneflow_lite {
namespace {

int AsInt(int64_t n) { return static_cast<int>(n); }
int Ld(int64_t n) { return static_cast<int>(std::max<int64_t>(n, 1)); }

template <class T>
bool AllFinite(const T* a, int64_t n) {
  return std::all_of(a, a + n, [](T v) { return std::isfinite(v); });
}

template <class T>
void Identity(int64_t n, T* x) {
  std::fill_n(x, n * n, T(0));
  for (int64_t i = 0; i < n; ++i) x[i * n + i] = 1;
}

// The singular values of a [m, n], and the first `vectors` columns of U and rows of V^T: none, r or
// all. LAPACK sees the transpose, so that V^T and U change places. Overwrites a.
template <class T>
int SingularValues(char vectors, int64_t m, int64_t n, T* a, T* u, T* s, T* vt,
                   const LinalgSizes& sizes, T* work, int* ints) {
  if (!AllFinite(a, m * n)) return -4;  // LAPACK might not end
  const int64_t columns = vectors == 'A' ? m : std::min(m, n);
  return lapack::Gesdd(vectors, AsInt(n), AsInt(m), a, Ld(n), s, vt, Ld(n), u, Ld(columns), work,
                       sizes.work, ints);
}

template <class T>
int LeastSquares(const LinalgProblem& p, T* a, T* b, T* s, int* rank, int* ints, T* work,
                 int lwork) {
  const int m = AsInt(p.m), n = AsInt(p.n), k = AsInt(p.k), ldb = Ld(std::max(p.m, p.n));
  const T rcond = static_cast<T>(p.rcond);
  switch (p.driver) {
    case LeastSquaresDriver::kGels:
      return lapack::Gels(m, n, k, a, Ld(m), b, ldb, work, lwork);
    case LeastSquaresDriver::kGelsy:
      return lapack::Gelsy(m, n, k, a, Ld(m), b, ldb, ints, rcond, rank, work, lwork);
    case LeastSquaresDriver::kGelsd:
      return lapack::Gelsd(m, n, k, a, Ld(m), b, ldb, s, rcond, rank, work, lwork, ints);
    case LeastSquaresDriver::kGelss:
      return lapack::Gelss(m, n, k, a, Ld(m), b, ldb, s, rcond, rank, work, lwork);
  }
  return 0;
}

}  // namespace

template <class T>
LinalgSizes SizesOf(const LinalgProblem& p) {
  const int m = AsInt(p.m), n = AsInt(p.n), r = std::min(m, n);
  T best[1] = {0}, other[1] = {0};
  int ints[1] = {0}, rank = 0;
  LinalgSizes sizes;
  if (r == 0 && p.task != LinalgTask::kQr) return sizes;
  switch (p.task) {
    case LinalgTask::kInverse:
      lapack::Getri<T>(n, other, Ld(n), ints, best, -1);
      break;
    case LinalgTask::kQr: {
      const int columns = p.full ? m : r;
      lapack::Orgqr<T>(m, columns, r, nullptr, Ld(m), nullptr, other, -1);
      lapack::Geqrf<T>(m, n, nullptr, Ld(m), nullptr, best, -1);
      best[0] = std::max(best[0], other[0]);
      break;
    }
    case LinalgTask::kEigen:
      lapack::Syevd<T>(p.vectors ? 'V' : 'N', 'L', n, nullptr, Ld(n), nullptr, best, -1, ints, -1);
      sizes.ints = ints[0];
      break;
    case LinalgTask::kSvd:
    case LinalgTask::kPseudoInverse: {
      const char vectors = p.full ? 'A' : 'S';
      lapack::Gesdd<T>(p.vectors ? vectors : 'N', n, m, nullptr, Ld(n), nullptr, nullptr, Ld(n),
                       nullptr, Ld(p.full ? m : r), best, -1, ints);
      sizes.ints = 8 * r;
      break;
    }
    case LinalgTask::kLeastSquares:
      LeastSquares<T>(p, nullptr, nullptr, nullptr, &rank, ints, best, -1);
      // The first int is how many kGelsd wants; kGelsy has one for each column.
      sizes.ints = std::max({ints[0], n, 1});
      break;
    default:
      return sizes;
  }
  // A size beyond 2^24 may be rounded down in float.
  sizes.work = static_cast<int>(std::min<double>(
      std::ceil(static_cast<double>(best[0]) * (1 + 1e-6)) + 1, std::numeric_limits<int>::max()));
  return sizes;
}

template <class T>
void RunQr(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o,
           Scratch& scratch) {
  const int64_t m = p.m, n = p.n, r = std::min(m, n), q = p.full ? m : r;
  T* columns = scratch.Take<T>(m * std::max(n, q));
  T* tau = scratch.Take<T>(std::max<int64_t>(r, 1));
  T* work = scratch.Take<T>(sizes.work);
  if (scratch.measures()) return;
  TransposeTo(m, n, o.a, columns);
  if (r > 0) lapack::Geqrf(AsInt(m), AsInt(n), columns, Ld(m), tau, work, sizes.work);
  for (int64_t i = 0; i < q; ++i) {
    for (int64_t j = 0; j < n; ++j) o.y[i * n + j] = j >= i ? columns[j * m + i] : T(0);
  }
  if (!p.vectors || m == 0) return;
  lapack::Orgqr(AsInt(m), AsInt(q), AsInt(r), columns, Ld(m), tau, work, sizes.work);
  TransposeTo(q, m, columns, o.x);
}

template <class T>
void RunEigen(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o,
              Scratch& scratch) {
  const int64_t n = p.n;
  T* columns = scratch.Take<T>(n * n);
  T* work = scratch.Take<T>(sizes.work);
  int* ints = scratch.Take<int>(sizes.ints);
  if (scratch.measures()) return;
  std::copy_n(o.a, n * n, columns);
  *o.info = AllFinite(columns, n * n) ? 0 : -5;
  if (*o.info == 0 && n > 0) {
    *o.info = lapack::Syevd(p.vectors ? 'V' : 'N', p.upper ? 'L' : 'U', AsInt(n), columns, Ld(n),
                            o.s, work, sizes.work, ints, sizes.ints);
  }
  if (*o.info != 0) std::fill_n(o.s, n, std::numeric_limits<T>::quiet_NaN());
  if (p.vectors) TransposeTo(n, n, columns, o.x);
}

template <class T>
void RunSvd(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o,
            Scratch& scratch) {
  const int64_t r = std::min(p.m, p.n);
  T* a = scratch.Take<T>(p.m * p.n);
  T* work = scratch.Take<T>(sizes.work);
  int* ints = scratch.Take<int>(sizes.ints);
  if (scratch.measures()) return;
  *o.info = 0;
  if (r == 0) {
    if (p.vectors && p.full) {
      Identity(p.m, o.x);
      Identity(p.n, o.y);
    }
    return;
  }
  std::copy_n(o.a, p.m * p.n, a);
  const char vectors = p.full ? 'A' : 'S';
  *o.info =
      SingularValues(p.vectors ? vectors : 'N', p.m, p.n, a, o.x, o.s, o.y, sizes, work, ints);
  if (*o.info == 0) return;
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  std::fill_n(o.s, r, kNan);
  if (!p.vectors) return;
  std::fill_n(o.x, p.m * (p.full ? p.m : r), kNan);
  std::fill_n(o.y, p.n * (p.full ? p.n : r), kNan);
}

template <class T>
void RunLeastSquares(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o,
                     Scratch& scratch) {
  const int64_t m = p.m, n = p.n, k = p.k, rows = std::max(m, n), r = std::min(m, n);
  T* a = scratch.Take<T>(m * n);
  T* b = scratch.Take<T>(rows * k);
  T* work = scratch.Take<T>(sizes.work);
  int* ints = scratch.Take<int>(sizes.ints);
  if (scratch.measures()) return;
  *o.info = 0;
  *o.places = 0;
  if (r == 0 || k == 0) {
    std::fill_n(o.x, n * k, T(0));
    if (r == 0) return;
  }
  TransposeTo(m, n, o.a, a);
  std::fill_n(ints, sizes.ints, 0);
  std::fill_n(b, rows * k, T(0));
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t i = 0; i < m; ++i) b[j * rows + i] = o.b[i * k + j];
  }
  int rank = AsInt(r);  // of kGels, which takes for granted that it is whole
  *o.info = AllFinite(a, m * n) ? LeastSquares(p, a, b, o.s, &rank, ints, work, sizes.work) : -4;
  *o.places = rank;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) o.x[i * k + j] = b[j * rows + i];
  }
}

// V diag(1 / s) U^T over the singular values above max(atol, rtol * the largest).
template <class T>
void RunPseudoInverse(const LinalgProblem& p, const LinalgSizes& sizes, const OneMatrix<T>& o,
                      Scratch& scratch) {
  const int64_t m = p.m, n = p.n, r = std::min(m, n);
  T* a = scratch.Take<T>(m * n);
  T* u = scratch.Take<T>(m * r);
  T* vt = scratch.Take<T>(r * n);
  T* s = scratch.Take<T>(r);
  T* work = scratch.Take<T>(sizes.work);
  int* ints = scratch.Take<int>(sizes.ints);
  if (scratch.measures()) return;
  *o.info = 0;
  if (r == 0) return;
  std::copy_n(o.a, m * n, a);
  *o.info = SingularValues('S', m, n, a, u, s, vt, sizes, work, ints);
  if (*o.info != 0) return void(std::fill_n(o.x, n * m, std::numeric_limits<T>::quiet_NaN()));
  const T least = std::max(o.b[0], o.b[1] * s[0]);
  for (int64_t i = 0; i < r; ++i) {
    const T factor = s[i] > least ? 1 / s[i] : T(0);
    for (int64_t j = 0; j < n; ++j) vt[i * n + j] *= factor;
  }
  const int rows = AsInt(n), cols = AsInt(m), inner = AsInt(r);
  if constexpr (sizeof(T) == 4) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasTrans, rows, cols, inner, 1, vt, rows, u, inner, 0,
                o.x, cols);
  } else {
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, rows, cols, inner, 1, vt, rows, u, inner, 0,
                o.x, cols);
  }
}

template LinalgSizes SizesOf<float>(const LinalgProblem&);
template LinalgSizes SizesOf<double>(const LinalgProblem&);
#define OFL_INSTANCE(name, T) \
  template void name(const LinalgProblem&, const LinalgSizes&, const OneMatrix<T>&, Scratch&)
#define OFL_INSTANCES(name)  \
  OFL_INSTANCE(name, float); \
  OFL_INSTANCE(name, double)
OFL_INSTANCES(RunQr);
OFL_INSTANCES(RunEigen);
OFL_INSTANCES(RunSvd);
OFL_INSTANCES(RunLeastSquares);
OFL_INSTANCES(RunPseudoInverse);

}  // namespace oneflow_lite
