// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through OpenBLAS (its OpenMP flavour, which shares our threads). A product is cut
// into a rectangle of results for each thread, and the BLAS works on each with one thread. The
// 16-bit floats are widened into the workspace and the product is rounded once.
#include "primitive/matmul.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/blas.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/matmul_parts.h"

namespace oneflow_lite {
namespace {

// Below, a plain loop beats the BLAS's set-up (some 300 ns); below the second, a batch is shared
// out among threads instead of the work within one product.
constexpr int64_t kTinyProduct = 512;
constexpr int64_t kSmallProduct = 128 * 128 * 128;

void Gemm(const MatmulShape& s, const float* a, blasint lda, const float* b, blasint ldb,
          float beta, float* c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, s.transpose_a ? CblasTrans : CblasNoTrans,
              s.transpose_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(s.m),
              static_cast<blasint>(s.n), static_cast<blasint>(s.k), 1.0f, a, lda, b, ldb, beta, c,
              static_cast<blasint>(ldc));
}
void Gemm(const MatmulShape& s, const double* a, blasint lda, const double* b, blasint ldb,
          double beta, double* c, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, s.transpose_a ? CblasTrans : CblasNoTrans,
              s.transpose_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(s.m),
              static_cast<blasint>(s.n), static_cast<blasint>(s.k), 1.0, a, lda, b, ldb, beta, c,
              static_cast<blasint>(ldc));
}

// Stored rows and columns of an operand.
struct Stored {
  int64_t rows, cols;
};
Stored StoredA(const MatmulShape& s) { return s.transpose_a ? Stored{s.k, s.m} : Stored{s.m, s.k}; }
Stored StoredB(const MatmulShape& s) { return s.transpose_b ? Stored{s.n, s.k} : Stored{s.k, s.n}; }

// One product on one thread; C is float or double. adds: to what c has.
template <class C>
void PartProduct(const MatmulShape& s, const C* a, int64_t lda, const C* b, int64_t ldb, bool adds,
                 C* c, int64_t ldc) {
  if (s.m * s.n * s.k > kTinyProduct) {
    // The BLAS refuses a leading dimension below the row's length, even of a single row.
    Gemm(s, a, static_cast<blasint>(std::max({lda, StoredA(s).cols, int64_t{1}})), b,
         static_cast<blasint>(std::max({ldb, StoredB(s).cols, int64_t{1}})), C(adds ? 1 : 0), c,
         std::max(ldc, s.n));
    return;
  }
  const int64_t a_row = s.transpose_a ? 1 : lda, a_col = s.transpose_a ? lda : 1;
  const int64_t b_row = s.transpose_b ? 1 : ldb, b_col = s.transpose_b ? ldb : 1;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      C sum = adds ? c[i * ldc + j] : C(0);
      for (int64_t l = 0; l < s.k; ++l) {
        sum += a[i * a_row + l * a_col] * b[l * b_row + j * b_col];
      }
      c[i * ldc + j] = sum;
    }
  }
}

// One product on all threads.
template <class C>
void Product(const MatmulShape& s, const C* a, int64_t lda, const C* b, int64_t ldb, bool adds,
             C* c, int64_t ldc) {
  const MatmulParts parts(s.m, s.n, s.k, InSerialRegion() ? 1 : NumThreads());
  ParallelFor(parts.count(), 1, [&](int64_t begin, int64_t end) {
    if (s.m * s.n * s.k > kTinyProduct) SetBlasThreads(1);
    for (int64_t i = begin; i < end; ++i) {
      const MatmulPart part = parts[i];
      MatmulShape piece = s;
      piece.m = part.rows, piece.n = part.cols;
      PartProduct(piece, a + part.row * (s.transpose_a ? 1 : lda), lda,
                  b + part.col * (s.transpose_b ? ldb : 1), ldb, adds,
                  c + part.row * ldc + part.col, ldc);
    }
  });
}

class CpuMatmul final : public Matmul {
 public:
  explicit CpuMatmul(const Spec& spec) : dtype_(spec.dtype) {
    if (ComputeType(dtype_) == dtype_) return;
    widen_ = FindConvert(dtype_, DType::kFloat32);
    narrow_ = FindConvert(DType::kFloat32, dtype_);
  }

  size_t WorkspaceBytes(const Stream&, const MatmulShape& s) const override {
    if (!widen_) return 0;
    return static_cast<size_t>(s.m * s.k + s.k * s.n + s.m * s.n) * sizeof(float);
  }

  bool AddsBias() const override { return widen_ != nullptr; }

  Status Launch(Stream&, const MatmulShape& s, const void* a, const void* b, const void* bias,
                void* c, void* workspace) const override {
    if (s.batch <= 0 || s.m <= 0 || s.n <= 0 || (s.k <= 0 && s.accumulate)) return OkStatus();
    if (s.k <= 0) {
      const auto item = static_cast<int64_t>(SizeOf(dtype_));
      for (int64_t r = 0; r < s.batch * s.m; ++r) {
        std::memset(static_cast<char*>(c) + r * s.c_stride() * item, 0,
                    static_cast<size_t>(s.n * item));
      }
      return OkStatus();
    }
    constexpr int64_t kMost = std::numeric_limits<blasint>::max();
    if (std::max({s.m, s.n, s.k, s.lda, s.ldb, s.ldc}) > kMost) {
      return Error(ErrorKind::kNotImplemented, "matmul() on cpu: a dimension beyond ", kMost,
                   " is more than the BLAS can take");
    }
    const BlasUse use;
    if (widen_) {
      LaunchWidened(s, static_cast<const char*>(a), static_cast<const char*>(b),
                    s.add_bias ? static_cast<const char*>(bias) : nullptr, static_cast<char*>(c),
                    static_cast<float*>(workspace));
    } else if (dtype_ == DType::kFloat64) {
      LaunchBatch(s, static_cast<const double*>(a), static_cast<const double*>(b),
                  static_cast<double*>(c));
    } else {
      LaunchBatch(s, static_cast<const float*>(a), static_cast<const float*>(b),
                  static_cast<float*>(c));
    }
    return OkStatus();
  }

 private:
  template <class C>
  static void LaunchBatch(const MatmulShape& s, const C* a, const C* b, C* c) {
    const auto products = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Product(s, a + i * s.batch_stride_a, s.lda, b + i * s.batch_stride_b, s.ldb, s.accumulate,
                c + i * s.m * s.c_stride(), s.c_stride());
      }
    };
    const int64_t work = s.m * s.n * s.k;
    if (s.batch > 1 && work <= kSmallProduct) {
      ParallelFor(s.batch, std::max<int64_t>(1, kSmallProduct / 8 / work), products);
    } else {
      products(0, s.batch);
    }
  }

  // Rows of an operand, `ld` apart, as a dense float matrix.
  void Widen(const char* p, Stored size, int64_t ld, float* wide) const {
    const int64_t row_bytes = ld * static_cast<int64_t>(SizeOf(dtype_));
    const int64_t grain = std::max<int64_t>(1, 32768 / size.cols);
    ParallelFor(size.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        widen_(size.cols, p + r * row_bytes, wide + r * size.cols);
    });
  }

  // What the product is added to: the bias in every row, or c.
  void WidenStart(const MatmulShape& s, const char* bias, const char* c, float* wide_c) const {
    if (!bias) return Widen(c, {s.m, s.n}, s.c_stride(), wide_c);
    widen_(s.n, bias, wide_c);
    ParallelFor(s.m - 1, std::max<int64_t>(1, 32768 / s.n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin + 1; r <= end; ++r) std::copy_n(wide_c, s.n, wide_c + r * s.n);
    });
  }

  void Narrow(const MatmulShape& s, const float* wide, char* out) const {
    const int64_t item = static_cast<int64_t>(SizeOf(dtype_));
    if (s.c_stride() == s.n) {
      return ParallelFor(s.m * s.n, 32768, [&](int64_t begin, int64_t end) {
        narrow_(end - begin, wide + begin, out + begin * item);
      });
    }
    ParallelFor(s.m, std::max<int64_t>(1, 32768 / s.n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        narrow_(s.n, wide + r * s.n, out + r * s.c_stride() * item);
      }
    });
  }

  void LaunchWidened(const MatmulShape& s, const char* a, const char* b, const char* bias, char* c,
                     float* workspace) const {
    const int64_t item = static_cast<int64_t>(SizeOf(dtype_));
    float* wide_a = workspace;
    float* wide_b = wide_a + s.m * s.k;
    float* wide_c = wide_b + s.k * s.n;
    for (int64_t i = 0; i < s.batch; ++i) {
      if (i == 0 || s.batch_stride_a != 0) {
        Widen(a + i * s.batch_stride_a * item, StoredA(s), s.lda, wide_a);
      }
      if (i == 0 || s.batch_stride_b != 0) {
        Widen(b + i * s.batch_stride_b * item, StoredB(s), s.ldb, wide_b);
      }
      char* out = c + i * s.m * s.c_stride() * item;
      const bool adds = bias || s.accumulate;
      if (adds) WidenStart(s, bias, out, wide_c);
      Product(s, wide_a, StoredA(s).cols, wide_b, StoredB(s).cols, adds, wide_c, s.n);
      Narrow(s, wide_c, out);
    }
  }

  DType dtype_;
  ConvertFunction widen_ = nullptr, narrow_ = nullptr;  // for the 16-bit floats
};

StatusOr<std::unique_ptr<Matmul>> NewMatmul(const Matmul::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(Matmul::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuMatmul>(spec);
}

const bool registered = RegisterPrimitive<Matmul>(DeviceType::kCPU, &NewMatmul);

}  // namespace
}  // namespace oneflow_lite
