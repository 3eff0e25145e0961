// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/bfloat16_product.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "absl/container/inlined_vector.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/blas.h"
#include "primitive/cpu/matmul_parts.h"
#include "primitive/library.h"

namespace oneflow_lite {
namespace {

Bfloat16ProductFinder finder = nullptr;

// Multiplications in all, at least: they take 10 us by way of float32. A kernel for a new shape is
// compiled in 0.15 to 0.4 ms, which programs whose shapes change pay each time.
constexpr int64_t kLeastWork = 1 << 19;

bool CpuHasInstructions() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

// Beside this library, unless OFL_ONEDNN_LIBRARY names another place.
std::string OneDnnPath() {
  if (const char* path = std::getenv("OFL_ONEDNN_LIBRARY"); path && *path) return path;
  return PackageFolder() + "/lib/liboneflow_lite_onednn.so";
}

bool Open() {
  if (!CpuHasInstructions() || !dlopen(OneDnnPath().c_str(), RTLD_NOW | RTLD_LOCAL)) return false;
  WatchEndOfProcess();  // before oneDNN's own end
  return finder != nullptr;
}

bool IsOpen() {
  static const bool open = Open();
  return open;
}

// What one thread multiplies: its shape, and where its operands begin, in elements.
struct Piece {
  MatmulShape shape;
  int64_t a, b, bias, c;
};

// A product cut for threads: by its batch where that is long enough, else each into rectangles.
class Pieces {
 public:
  explicit Pieces(const MatmulShape& s)
      : shape_(s),
        threads_(InSerialRegion() ? 1 : NumThreads()),
        by_batch_(s.batch > 1 && s.batch >= threads_),
        parts_(s.m, s.n, s.k, by_batch_ ? 1 : threads_),
        ranges_(std::min(threads_, s.batch * s.m * s.n * s.k / MatmulParts::kLeastWork)) {}

  int64_t count() const { return by_batch_ ? ranges_ : shape_.batch * parts_.count(); }

  Piece operator[](int64_t i) const {
    const MatmulShape& s = shape_;
    Piece piece{s, 0, 0, 0, 0};
    int64_t first = 0;  // of the batch
    if (by_batch_) {
      first = s.batch * i / ranges_;
      piece.shape.batch = s.batch * (i + 1) / ranges_ - first;
    } else {
      const MatmulPart part = parts_[i % parts_.count()];
      first = i / parts_.count();
      piece.shape.batch = 1;
      piece.shape.m = part.rows, piece.shape.n = part.cols;
      piece.shape.ldc = s.c_stride();
      piece.a = part.row * (s.transpose_a ? 1 : s.lda);
      piece.b = part.col * (s.transpose_b ? s.ldb : 1);
      piece.bias = part.col;
      piece.c = part.row * s.c_stride() + part.col;
    }
    piece.a += first * s.batch_stride_a;
    piece.b += first * s.batch_stride_b;
    piece.c += first * s.m * s.c_stride();
    if (piece.shape.batch == 1) piece.shape.batch_stride_a = piece.shape.batch_stride_b = 0;
    return piece;
  }

 private:
  MatmulShape shape_;
  int64_t threads_;
  bool by_batch_;
  MatmulParts parts_;
  int64_t ranges_;
};

const void* Element(const void* p, int64_t i, size_t item = sizeof(uint16_t)) {
  return static_cast<const char*>(p) + i * static_cast<int64_t>(item);
}

}  // namespace

bool TakesBfloat16Product(const MatmulShape& s) {
  return std::min(s.m, s.n) > 1 && s.batch * s.m * s.n * s.k >= kLeastWork && !InTeam() && IsOpen();
}

Status MultiplyBfloat16(const MatmulShape& s, const void* a, const void* b, const void* bias,
                        void* c) {
  const Pieces pieces(s);
  absl::InlinedVector<std::shared_ptr<const Bfloat16Product>, 8> products;
  SetBlasThreads(1);  // OpenMP's, which oneDNN takes over into the kernel: here, not in a team
  for (int64_t i = 0; i < pieces.count(); ++i) {
    const MatmulShape shape = pieces[i].shape;
    if (i > 0 && shape == pieces[i - 1].shape) {
      products.push_back(products.back());
      continue;
    }
    OFL_ASSIGN_OR_RETURN(auto product, finder(shape));
    products.push_back(std::move(product));
  }
  std::atomic<bool> failed{false};
  Status error = OkStatus();
  ParallelFor(pieces.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece p = pieces[i];
      const Status status =
          products[i]->Run(Element(a, p.a), Element(b, p.b), bias ? Element(bias, p.bias) : nullptr,
                           const_cast<void*>(Element(c, p.c, s.wide ? sizeof(float) : 2)));
      if (!status.ok() && !failed.exchange(true)) error = status;
    }
  });
  return error;
}

void RegisterBfloat16Products(Bfloat16ProductFinder find) { finder = find; }

}  // namespace oneflow_lite
