// SPDX-License-Identifier: Apache-2.0
//
// LAPACK's functions that we call, in float and double. libopenblas has them under their Fortran
// names, and no header of its own declares them: matrices lie column by column, every argument is
// an address, and the lengths of character arguments come last. Each wrapper gives INFO. The
// arguments are those of LAPACK Users' Guide (Anderson et al., 1999).
//
//   const int info = lapack::Getrf(m, n, a, lda, pivots);
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

extern "C" {
#define OFL_ARGUMENTS(T) (const int* m, const int* n, T* a, const int* lda, int* pivots, int* info)
void sgetrf_ OFL_ARGUMENTS(float);
void dgetrf_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                         \
  (const char* trans, const int* n, const int* nrhs, const T* a, const int* lda, \
   const int* pivots, T* b, const int* ldb, int* info, size_t)
void sgetrs_ OFL_ARGUMENTS(float);
void dgetrs_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T) \
  (const int* n, T* a, const int* lda, const int* pivots, T* work, const int* lwork, int* info)
void sgetri_ OFL_ARGUMENTS(float);
void dgetri_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T) (const char* uplo, const int* n, T* a, const int* lda, int* info, size_t)
void spotrf_ OFL_ARGUMENTS(float);
void dpotrf_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T) \
  (const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info)
void sgeqrf_ OFL_ARGUMENTS(float);
void dgeqrf_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                  \
  (const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work, \
   const int* lwork, int* info)
void sorgqr_ OFL_ARGUMENTS(float);
void dorgqr_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                  \
  (const char* jobz, const char* uplo, const int* n, T* a, const int* lda, T* w, T* work, \
   const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t)
void ssyevd_ OFL_ARGUMENTS(float);
void dsyevd_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                           \
  (const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu, \
   T* vt, const int* ldvt, T* work, const int* lwork, int* iwork, int* info, size_t)
void sgesdd_ OFL_ARGUMENTS(float);
void dgesdd_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                       \
  (const char* trans, const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, \
   const int* ldb, T* work, const int* lwork, int* info, size_t)
void sgels_ OFL_ARGUMENTS(float);
void dgels_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                    \
  (const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, \
   int* jpvt, const T* rcond, int* rank, T* work, const int* lwork, int* info)
void sgelsy_ OFL_ARGUMENTS(float);
void dgelsy_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                          \
  (const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, T* s, \
   const T* rcond, int* rank, T* work, const int* lwork, int* iwork, int* info)
void sgelsd_ OFL_ARGUMENTS(float);
void dgelsd_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
#define OFL_ARGUMENTS(T)                                                                          \
  (const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, T* s, \
   const T* rcond, int* rank, T* work, const int* lwork, int* info)
void sgelss_ OFL_ARGUMENTS(float);
void dgelss_ OFL_ARGUMENTS(double);
#undef OFL_ARGUMENTS
}

namespace oneflow_lite::lapack {

// Calls the function of T: s... or d...
#define OFL_CALL(T, name, ...)                \
  do {                                        \
    if constexpr (std::is_same_v<T, float>) { \
      s##name##_(__VA_ARGS__);                \
    } else {                                  \
      d##name##_(__VA_ARGS__);                \
    }                                         \
  } while (0)

template <class T>
int Getrf(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  OFL_CALL(T, getrf, &m, &n, a, &lda, pivots, &info);
  return info;
}
template <class T>
int Getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  int info = 0;
  OFL_CALL(T, getrs, &trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);
  return info;
}
template <class T>
int Getri(int n, T* a, int lda, const int* pivots, T* work, int lwork) {
  int info = 0;
  OFL_CALL(T, getri, &n, a, &lda, pivots, work, &lwork, &info);
  return info;
}
// Some libraries let a NaN through, where LAPACK's own names its order.
template <class T>
int Potrf(char uplo, int n, T* a, int lda) {
  int info = 0;
  OFL_CALL(T, potrf, &uplo, &n, a, &lda, &info, 1);
  for (int i = 0; info == 0 && i < n; ++i) {
    const T pivot = a[static_cast<int64_t>(i) * lda + i];
    if (pivot != pivot) info = i + 1;
  }
  return info;
}
template <class T>
int Geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {
  int info = 0;
  OFL_CALL(T, geqrf, &m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}
template <class T>
int Orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork) {
  int info = 0;
  OFL_CALL(T, orgqr, &m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}
template <class T>
int Syevd(char jobz, char uplo, int n, T* a, int lda, T* w, T* work, int lwork, int* iwork,
          int liwork) {
  int info = 0;
  OFL_CALL(T, syevd, &jobz, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info, 1, 1);
  return info;
}
template <class T>
int Gesdd(char jobz, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt, T* work,
          int lwork, int* iwork) {
  int info = 0;
  OFL_CALL(T, gesdd, &jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info, 1);
  return info;
}
template <class T>
int Gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* work, int lwork) {
  int info = 0;
  const char trans = 'N';
  OFL_CALL(T, gels, &trans, &m, &n, &nrhs, a, &lda, b, &ldb, work, &lwork, &info, 1);
  return info;
}
template <class T>
int Gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, T rcond, int* rank,
          T* work, int lwork) {
  int info = 0;
  OFL_CALL(T, gelsy, &m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork, &info);
  return info;
}
template <class T>
int Gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank, T* work,
          int lwork, int* iwork) {
  int info = 0;
  OFL_CALL(T, gelsd, &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, iwork, &info);
  return info;
}
template <class T>
int Gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank, T* work,
          int lwork) {
  int info = 0;
  OFL_CALL(T, gelss, &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, &info);
  return info;
}
#undef OFL_CALL

}  // namespace oneflow_lite::lapack
