// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through OpenBLAS (its OpenMP flavour, which shares our threads). A product is cut
// into a rectangle of results for each thread, and the BLAS works on each with one thread. The
// 16-bit floats are widened into the workspace and the product is rounded once, unless the CPU has
// instructions for products of bfloat16.
#include "primitive/matmul.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/bfloat16_product.h"
#include "primitive/cpu/blas.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/gemv.h"
#include "primitive/cpu/matmul_parts.h"
#include "primitive/cpu/strided.h"

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

// A product of at most kTinyProduct terms. Sums of kAcross columns stay in registers; b is copied
// where its rows lie across, or end within such a block.
template <int64_t kAcross, class C>
void TinyProduct(const MatmulShape& s, const C* a, int64_t lda, const C* b, int64_t ldb, bool adds,
                 C* c, int64_t ldc) {
  const int64_t a_row = s.transpose_a ? 1 : lda, a_col = s.transpose_a ? lda : 1;
  const int64_t b_row = s.transpose_b ? 1 : ldb, b_col = s.transpose_b ? ldb : 1;
  const int64_t width = (s.n + kAcross - 1) / kAcross * kAcross;
  C copy[kTinyProduct * kAcross];
  if (b_col != 1 || width != s.n) {
    for (int64_t l = 0; l < s.k; ++l) {
      for (int64_t j = 0; j < width; ++j) {
        copy[l * width + j] = j < s.n ? b[l * b_row + j * b_col] : C(0);
      }
    }
    b = copy, ldb = width;
  }
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; j += kAcross) {
      const int64_t across = std::min(kAcross, s.n - j);
      C sums[kAcross] = {};
      if (adds) std::copy_n(c + i * ldc + j, across, sums);
      for (int64_t l = 0; l < s.k; ++l) {
        const C factor = a[i * a_row + l * a_col];
        for (int64_t r = 0; r < kAcross; ++r) sums[r] += factor * b[l * ldb + j + r];
      }
      std::copy_n(sums, across, c + i * ldc + j);
    }
  }
}

template <class C>
void TinyProduct(const MatmulShape& s, const C* a, int64_t lda, const C* b, int64_t ldb, bool adds,
                 C* c, int64_t ldc) {
  s.n <= 4 ? TinyProduct<4>(s, a, lda, b, ldb, adds, c, ldc)
           : TinyProduct<8>(s, a, lda, b, ldb, adds, c, ldc);
}

// One product on one thread; C is float or double. adds: to what c has.
template <class C>
void PartProduct(const MatmulShape& s, const C* a, int64_t lda, const C* b, int64_t ldb, bool adds,
                 C* c, int64_t ldc) {
  if (s.m * s.n * s.k <= kTinyProduct) return TinyProduct(s, a, lda, b, ldb, adds, c, ldc);
  // The BLAS refuses a leading dimension below the row's length, even of a single row.
  Gemm(s, a, static_cast<blasint>(std::max({lda, StoredA(s).cols, int64_t{1}})), b,
       static_cast<blasint>(std::max({ldb, StoredB(s).cols, int64_t{1}})), C(adds ? 1 : 0), c,
       std::max(ldc, s.n));
}

// One product on all threads. A thread calls start(part) before its part, and finish(part) after
// it: what another core wrote is dear to read.
template <class C>
void Product(const MatmulShape& s, const C* a, int64_t lda, const C* b, int64_t ldb, bool adds,
             C* c, int64_t ldc, absl::FunctionRef<void(const MatmulPart&)> start,
             absl::FunctionRef<void(const MatmulPart&)> finish) {
  const MatmulParts parts(s.m, s.n, s.k, InSerialRegion() ? 1 : NumThreads());
  ParallelProducts(parts.count(), 1, [&](int64_t begin, int64_t end) {
    if (s.m * s.n * s.k > kTinyProduct) SetBlasThreads(1);
    for (int64_t i = begin; i < end; ++i) {
      const MatmulPart part = parts[i];
      MatmulShape piece = s;
      piece.m = part.rows, piece.n = part.cols;
      start(part);
      PartProduct(piece, a + part.row * (s.transpose_a ? 1 : lda), lda,
                  b + part.col * (s.transpose_b ? ldb : 1), ldb, adds,
                  c + part.row * ldc + part.col, ldc);
      finish(part);
    }
  });
}

// Whether each product is one of a matrix and a vector, and long enough to be shared out by itself.
bool IsVectorProduct(const MatmulShape& s) {
  constexpr int64_t kLeastInBatch = 16384;
  const int64_t work = s.m * s.n * s.k;
  return (s.m == 1 || s.n == 1) && work > (s.batch == 1 ? kTinyProduct : kLeastInBatch);
}

// Whether each product is one of two vectors that lie densely.
bool AreDots(const MatmulShape& s) {
  constexpr int64_t kLeast = 8;  // elements, below which a plain loop is as fast
  const bool dense = (!s.transpose_a || s.lda == 1) && (s.transpose_b || s.ldb == 1);
  return s.m == 1 && s.n == 1 && s.k >= kLeast && dense && !s.add_bias;
}

// A product of a matrix and a vector: where they lie, in elements.
struct VectorProduct {
  const char *matrix, *vector;
  int64_t ld, vector_stride, length, result_stride;
  bool by_rows;  // an element of the result is of a stored row

  VectorProduct(const MatmulShape& s, const char* a, const char* b) {
    const bool row = s.m == 1 && (s.n > 1 || s.transpose_a);  // times b; else a times a column
    matrix = row ? b : a;
    vector = row ? a : b;
    ld = row ? s.ldb : s.lda;
    vector_stride = row ? (s.transpose_a ? s.lda : 1) : (s.transpose_b ? 1 : s.ldb);
    length = row ? s.n : s.m;
    result_stride = row ? 1 : s.c_stride();
    by_rows = (row ? s.transpose_b : !s.transpose_a) || (length == 1 && ld == 1);
  }
};

class CpuMatmul final : public Matmul {
 public:
  explicit CpuMatmul(const Spec& spec)
      : dtype_(spec.dtype),
        item_(static_cast<int64_t>(SizeOf(dtype_))),
        gemv_(FindGemv(dtype_)),
        to_compute_(FindConvert(dtype_, ComputeType(dtype_))),
        from_compute_(FindConvert(ComputeType(dtype_), dtype_)),
        as_computed_(FindConvert(ComputeType(dtype_), ComputeType(dtype_))) {
    if (ComputeType(dtype_) == dtype_) return;
    widen_ = to_compute_;
  }

  size_t WorkspaceBytes(const Stream&, const MatmulShape& s) const override {
    if (IsVectorProduct(s)) {
      return static_cast<size_t>(s.k + s.m * s.n) * SizeOf(ComputeType(dtype_));
    }
    if (!widen_ || TakesInstructions(s)) return 0;
    return static_cast<size_t>(s.m * s.k + s.k * s.n + s.m * s.n) * sizeof(float);
  }

  bool AddsBias() const override { return widen_ != nullptr; }

  Status Launch(Stream&, const MatmulShape& s, const void* a, const void* b, const void* bias,
                void* c, void* workspace) const override {
    if (s.batch <= 0 || s.m <= 0 || s.n <= 0 || (s.k <= 0 && s.accumulate)) return OkStatus();
    if (s.k <= 0) {
      for (int64_t r = 0; r < s.batch * s.m; ++r) {
        std::memset(static_cast<char*>(c) + r * s.c_stride() * ItemOfC(s), 0,
                    static_cast<size_t>(s.n * ItemOfC(s)));
      }
      return OkStatus();
    }
    constexpr int64_t kMost = std::numeric_limits<blasint>::max();
    if (std::max({s.m, s.n, s.k, s.lda, s.ldb, s.ldc}) > kMost) {
      return Error(ErrorKind::kNotImplemented, "matmul() on cpu: a dimension beyond ", kMost,
                   " is more than the BLAS can take");
    }
    if (IsVectorProduct(s)) {
      for (int64_t i = 0; i < s.batch; ++i) {
        LaunchVector(s, static_cast<const char*>(a) + i * s.batch_stride_a * item_,
                     static_cast<const char*>(b) + i * s.batch_stride_b * item_,
                     s.add_bias ? static_cast<const char*>(bias) : nullptr,
                     static_cast<char*>(c) + i * s.m * s.c_stride() * ItemOfC(s), workspace);
      }
      return OkStatus();
    }
    if (AreDots(s)) {
      LaunchDots(s, static_cast<const char*>(a), static_cast<const char*>(b),
                 static_cast<char*>(c));
      return OkStatus();
    }
    const BlasUse use;
    OFL_RETURN_IF_ERROR(use.status());
    if (TakesInstructions(s)) {
      return MultiplyBfloat16(s, a, b, s.add_bias ? bias : nullptr, c);
    } else if (widen_) {
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
  bool TakesInstructions(const MatmulShape& s) const {
    return dtype_ == DType::kBFloat16 && TakesBfloat16Product(s);
  }

  int64_t ItemOfC(const MatmulShape& s) const {
    return s.wide ? static_cast<int64_t>(SizeOf(ComputeType(dtype_))) : item_;
  }
  // From c to the compute type, and back.
  ConvertFunction FromC(const MatmulShape& s) const { return s.wide ? as_computed_ : to_compute_; }
  ConvertFunction ToC(const MatmulShape& s) const { return s.wide ? as_computed_ : from_compute_; }

  // n elements `stride` apart into n of the compute type.
  void Gather(int64_t n, const char* from, int64_t stride, char* to) const {
    const auto wide = static_cast<int64_t>(SizeOf(ComputeType(dtype_)));
    if (stride == 1) return to_compute_(n, from, to);
    for (int64_t i = 0; i < n; ++i) to_compute_(1, from + i * stride * item_, to + i * wide);
  }
  // The same from c, and the other way.
  void GatherC(const MatmulShape& s, int64_t n, const char* from, int64_t stride, char* to) const {
    const auto wide = static_cast<int64_t>(SizeOf(ComputeType(dtype_)));
    if (stride == 1) return FromC(s)(n, from, to);
    for (int64_t i = 0; i < n; ++i) FromC(s)(1, from + i * stride * ItemOfC(s), to + i * wide);
  }
  void SpreadC(const MatmulShape& s, int64_t n, const char* from, char* to, int64_t stride) const {
    const auto wide = static_cast<int64_t>(SizeOf(ComputeType(dtype_)));
    if (stride == 1) return ToC(s)(n, from, to);
    for (int64_t i = 0; i < n; ++i) ToC(s)(1, from + i * wide, to + i * stride * ItemOfC(s));
  }

  void LaunchVector(const MatmulShape& s, const char* a, const char* b, const char* bias, char* c,
                    void* workspace) const {
    const VectorProduct p(s, a, b);
    const auto wide = static_cast<int64_t>(SizeOf(ComputeType(dtype_)));
    char* gathered = static_cast<char*>(workspace);
    const bool lies_there = !widen_ && p.vector_stride == 1;
    const bool is_dot = p.length == 1 && p.by_rows;
    const char* vector = lies_there ? p.vector : gathered;
    if (!lies_there && !is_dot) Gather(s.k, p.vector, p.vector_stride, gathered);
    char* result = gathered + s.k * wide;
    if (bias) {
      Gather(p.length, bias, s.n == 1 ? 0 : 1, result);
    } else if (s.accumulate) {
      GatherC(s, p.length, c, p.result_stride, result);
    } else {
      std::memset(result, 0, static_cast<size_t>(p.length * wide));
    }
    if (is_dot) {
      LongDot(s.k, p, result);
    } else {
      constexpr int64_t kGrain = 65536;  // elements of the matrix a thread is worth starting for
      ParallelFor(p.length, std::max<int64_t>(1, kGrain / s.k), [&](int64_t begin, int64_t end) {
        char* to = result + begin * wide;
        if (p.by_rows) {
          gemv_.rows(end - begin, s.k, p.matrix + begin * p.ld * item_, p.ld, vector, to);
        } else {
          gemv_.columns(s.k, end - begin, p.matrix + begin * item_, p.ld, vector, to);
        }
      });
    }
    SpreadC(s, p.length, result, c, p.result_stride);
  }

  // Adds the products of k elements to the result, in parts that depend on k alone. Elements that
  // lie apart are gathered a block at a time.
  void LongDot(int64_t k, const VectorProduct& p, char* result) const {
    constexpr int64_t kPart = 32768, kMost = 256, kBlock = 512;
    const int64_t part = std::max(kPart, (k + kMost - 1) / kMost), parts = (k + part - 1) / part;
    const bool dense = p.vector_stride == 1;
    const int64_t block = dense ? part : kBlock;
    double sums[kMost];  // or a float in the place of each
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      alignas(64) char gathered[kBlock * sizeof(double)];
      for (int64_t i = begin; i < end; ++i) {
        sums[i] = 0;
        const int64_t last = std::min(k, (i + 1) * part);
        for (int64_t j = i * part; j < last; j += block) {
          const int64_t n = std::min(block, last - j);
          const char* vector = p.vector + j * p.vector_stride * item_;
          if (!dense) {
            CopyStrided(static_cast<size_t>(item_), n, vector, p.vector_stride, gathered, 1);
          }
          gemv_.dot(n, p.matrix + j * item_, dense ? vector : gathered, sums + i);
        }
      }
    });
    const auto add = [&]<class C>(Tag<C>) {
      const auto at = [](const void* from) {
        C value;
        std::memcpy(&value, from, sizeof(C));
        return value;
      };
      C sum = at(result);
      for (int64_t i = 0; i < parts; ++i) sum += at(sums + i);
      std::memcpy(result, &sum, sizeof(C));
    };
    dtype_ == DType::kFloat64 ? add(Tag<double>()) : add(Tag<float>());
  }

  void LaunchDots(const MatmulShape& s, const char* a, const char* b, char* c) const {
    constexpr int64_t kGrain = 65536;
    ParallelFor(s.batch, std::max<int64_t>(1, kGrain / s.k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        char* to = c + i * s.c_stride() * ItemOfC(s);
        double sum = 0;  // or a float
        if (s.accumulate) FromC(s)(1, to, &sum);
        gemv_.dot(s.k, b + i * s.batch_stride_b * item_, a + i * s.batch_stride_a * item_, &sum);
        ToC(s)(1, &sum, to);
      }
    });
  }

  template <class C>
  static void LaunchBatch(const MatmulShape& s, const C* a, const C* b, C* c) {
    const auto nothing = [](const MatmulPart&) {};
    const auto products = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Product(s, a + i * s.batch_stride_a, s.lda, b + i * s.batch_stride_b, s.ldb, s.accumulate,
                c + i * s.m * s.c_stride(), s.c_stride(), nothing, nothing);
      }
    };
    const int64_t work = s.m * s.n * s.k;
    if (work <= kTinyProduct) {
      ParallelFor(s.batch, kSmallProduct / 8 / work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          TinyProduct(s, a + i * s.batch_stride_a, s.lda, b + i * s.batch_stride_b, s.ldb,
                      s.accumulate, c + i * s.m * s.c_stride(), s.c_stride());
        }
      });
    } else if (s.batch > 1 && work <= kSmallProduct) {
      ParallelProducts(s.batch, std::max<int64_t>(1, kSmallProduct / 8 / work), products);
    } else {
      products(0, s.batch);
    }
  }

  // Rows of an operand, `ld` apart, as a dense float matrix.
  void Widen(const char* p, Stored size, int64_t ld, float* wide) const {
    const int64_t row_bytes = ld * item_;
    const int64_t grain = std::max<int64_t>(1, 32768 / size.cols);
    ParallelFor(size.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        widen_(size.cols, p + r * row_bytes, wide + r * size.cols);
    });
  }

  // What a part of the product is added to: the bias in every row, or c.
  void WidenPart(const MatmulShape& s, const MatmulPart& p, const char* bias, const char* c,
                 float* wide_c) const {
    float* first = wide_c + p.row * s.n + p.col;
    if (bias) widen_(p.cols, bias + p.col * item_, first);
    for (int64_t r = bias ? 1 : 0; r < p.rows; ++r) {
      if (bias) {
        std::copy_n(first, p.cols, first + r * s.n);
      } else {
        FromC(s)(p.cols, c + ((p.row + r) * s.c_stride() + p.col) * ItemOfC(s), first + r * s.n);
      }
    }
  }

  void NarrowPart(const MatmulShape& s, const MatmulPart& p, const float* wide_c, char* c) const {
    const bool whole = p.cols == s.n && s.c_stride() == s.n;
    const int64_t rows = whole ? 1 : p.rows, cols = whole ? p.rows * p.cols : p.cols;
    for (int64_t r = p.row; r < p.row + rows; ++r) {
      ToC(s)(cols, wide_c + r * s.n + p.col, c + (r * s.c_stride() + p.col) * ItemOfC(s));
    }
  }

  void LaunchWidened(const MatmulShape& s, const char* a, const char* b, const char* bias, char* c,
                     float* workspace) const {
    constexpr int64_t kOnStack = 4096;  // floats, as much as a thread has for small products
    const int64_t work = s.m * s.n * s.k;
    if (s.batch == 1 || s.m * s.k + s.k * s.n + s.m * s.n > kOnStack) {
      return WidenedProducts(s, 0, s.batch, a, b, bias, c, workspace);
    }
    const int64_t grain = std::max<int64_t>(1, kSmallProduct / 8 / work);
    ParallelProducts(s.batch, grain, [&](int64_t begin, int64_t end) {
      alignas(64) float wide[kOnStack];
      WidenedProducts(s, begin, end, a, b, bias, c, wide);
    });
  }

  // Those of a batch from `begin` to `end`.
  void WidenedProducts(const MatmulShape& s, int64_t begin, int64_t end, const char* a,
                       const char* b, const char* bias, char* c, float* workspace) const {
    float* wide_a = workspace;
    float* wide_b = wide_a + s.m * s.k;
    float* wide_c = wide_b + s.k * s.n;
    for (int64_t i = begin; i < end; ++i) {
      if (i == begin || s.batch_stride_a != 0) {
        Widen(a + i * s.batch_stride_a * item_, StoredA(s), s.lda, wide_a);
      }
      if (i == begin || s.batch_stride_b != 0) {
        Widen(b + i * s.batch_stride_b * item_, StoredB(s), s.ldb, wide_b);
      }
      char* out = c + i * s.m * s.c_stride() * ItemOfC(s);
      const bool adds = bias || s.accumulate;
      const auto start = [&](const MatmulPart& p) {
        if (adds) WidenPart(s, p, bias, out, wide_c);
      };
      const auto finish = [&](const MatmulPart& p) { NarrowPart(s, p, wide_c, out); };
      Product(s, wide_a, StoredA(s).cols, wide_b, StoredB(s).cols, adds, wide_c, s.n, start,
              finish);
    }
  }

  DType dtype_;
  int64_t item_;
  GemvLoops gemv_;
  ConvertFunction to_compute_, from_compute_, as_computed_;
  ConvertFunction widen_ = nullptr;  // for the 16-bit floats
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
