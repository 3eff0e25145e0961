// SPDX-License-Identifier: Apache-2.0
//
// Factorizations through LAPACK. It has matrices column by column, so one of ours is its transpose
// there: symmetric ones and the singular values' go as they are, with triangles or factors
// exchanged; the others are transposed into the workspace and back.
#include "primitive/linalg.h"

#include <algorithm>
#include <limits>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/blas.h"
#include "primitive/cpu/linalg_tasks.h"
#include "primitive/cpu/stable_parts.h"

namespace oneflow_lite {
namespace {

// Below so many operations a batch is shared out among threads instead of the work within a matrix.
constexpr double kSmallMatrix = 4e6;

template <class T>
using Task = void (*)(const LinalgProblem&, const LinalgSizes&, const OneMatrix<T>&, Scratch&);

template <class T>
Task<T> FindTask(LinalgTask task) {
  switch (task) {
    case LinalgTask::kLu:
      return RunLu<T>;
    case LinalgTask::kPermutation:
      return RunPermutation<T>;
    case LinalgTask::kSolve:
      return RunSolve<T>;
    case LinalgTask::kLuSolve:
      return RunLuSolve<T>;
    case LinalgTask::kInverse:
      return RunInverse<T>;
    case LinalgTask::kDeterminant:
    case LinalgTask::kLogDeterminant:
      return RunDeterminant<T>;
    case LinalgTask::kCholesky:
      return RunCholesky<T>;
    case LinalgTask::kTriangularSolve:
      return RunTriangularSolve<T>;
    case LinalgTask::kQr:
      return RunQr<T>;
    case LinalgTask::kEigen:
      return RunEigen<T>;
    case LinalgTask::kSvd:
      return RunSvd<T>;
    case LinalgTask::kLeastSquares:
      return RunLeastSquares<T>;
    case LinalgTask::kPseudoInverse:
      return RunPseudoInverse<T>;
  }
  return nullptr;
}

// The elements of one matrix's part of each buffer.
struct Strides {
  int64_t a, b, x, y, z = 1, s, pivots, places = 1;
};
Strides StridesOf(const LinalgProblem& p) {
  const int64_t r = std::min(p.m, p.n), square = p.n * p.n;
  switch (p.task) {
    case LinalgTask::kLu:
      return {.a = p.m * p.n, .b = 0, .x = p.m * p.n, .y = 0, .s = 0, .pivots = r};
    case LinalgTask::kPermutation:
      return {.a = 0, .b = 0, .x = 0, .y = 0, .s = 0, .pivots = p.k, .places = p.m};
    case LinalgTask::kSolve:
    case LinalgTask::kLuSolve:
    case LinalgTask::kTriangularSolve:
      return {.a = square, .b = p.n * p.k, .x = p.n * p.k, .y = square, .s = 0, .pivots = p.n};
    case LinalgTask::kQr: {
      const int64_t q = p.full ? p.m : r;
      return {.a = p.m * p.n, .b = 0, .x = p.m * q, .y = q * p.n, .s = 0, .pivots = 0};
    }
    case LinalgTask::kSvd:
      return {.a = p.m * p.n,
              .b = 0,
              .x = p.m * (p.full ? p.m : r),
              .y = p.n * (p.full ? p.n : r),
              .s = r,
              .pivots = 0};
    case LinalgTask::kLeastSquares:
      return {.a = p.m * p.n, .b = p.m * p.k, .x = p.n * p.k, .y = 0, .s = r, .pivots = 0};
    case LinalgTask::kPseudoInverse:
      return {.a = p.m * p.n, .b = 2, .x = p.n * p.m, .y = 0, .s = 0, .pivots = 0};
    default:  // of square matrices
      return {.a = square,
              .b = 0,
              .x = square,
              .y = 0,
              .s = p.task == LinalgTask::kEigen ? p.n : 1,
              .pivots = p.n};
  }
}

template <class T>
OneMatrix<T> MatrixAt(const LinalgBuffers& b, const Strides& s, int64_t i) {
  const auto at = [i](auto* p, int64_t stride) { return p ? p + i * stride : nullptr; };
  return {.a = at(static_cast<const T*>(b.a), s.a),
          .b = at(static_cast<const T*>(b.b), s.b),
          .x = at(static_cast<T*>(b.x), s.x),
          .y = at(static_cast<T*>(b.y), s.y),
          .z = at(static_cast<T*>(b.z), s.z),
          .s = at(static_cast<T*>(b.s), s.s),
          .pivots = at(b.pivots, s.pivots),
          .info = at(b.info, 1),
          .places = at(b.places, s.places)};
}

double Operations(const LinalgProblem& p) {
  return static_cast<double>(std::max(p.m, p.n)) * static_cast<double>(p.n) *
         static_cast<double>(std::max({p.m, p.n, p.k}));
}
// How many parts of a batch are worked on at once, each with a workspace of its own.
int64_t PartsOf(const LinalgProblem& p) {
  if (Operations(p) > kSmallMatrix || InSerialRegion()) return 1;
  const double enough = kSmallMatrix / 64 / std::max(Operations(p), 1.0);
  const auto matrices = static_cast<int64_t>(std::clamp(enough, 1.0, 1e9));  // of one part
  return cpu::StableParts(p.batch, matrices);
}

template <class T>
size_t ScratchBytes(const LinalgProblem& p, const LinalgSizes& sizes) {
  Scratch measure;
  FindTask<T>(p.task)(p, sizes, {}, measure);
  return measure.used();
}

template <class T>
void LaunchAll(const LinalgProblem& p, const LinalgBuffers& buffers, void* workspace) {
  const LinalgSizes sizes = SizesOf<T>(p);
  const Strides strides = StridesOf(p);
  const int64_t parts = PartsOf(p);
  const size_t bytes = ScratchBytes<T>(p, sizes);
  const auto run_part = [&](int64_t part) {
    SetBlasThreads(NumThreads());
    for (int64_t i = part * p.batch / parts; i < (part + 1) * p.batch / parts; ++i) {
      Scratch scratch(static_cast<char*>(workspace) + static_cast<size_t>(part) * bytes);
      FindTask<T>(p.task)(p, sizes, MatrixAt<T>(buffers, strides, i), scratch);
    }
  };
  if (parts == 1) return run_part(0);
  ParallelProducts(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) run_part(part);
  });
}

class CpuLinalg final : public Linalg {
 public:
  explicit CpuLinalg(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, const LinalgProblem& p) const override {
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const int64_t largest = std::max({p.m, p.n, p.k}), r = std::min(p.m, p.n);
    // These tell the size of their workspace, some times the matrix, as an int.
    const bool in_squares = p.task == LinalgTask::kEigen || p.task == LinalgTask::kSvd ||
                            p.task == LinalgTask::kLeastSquares ||
                            p.task == LinalgTask::kPseudoInverse;
    if (largest > kMost / 64 || (in_squares && r > 0 && largest > kMost / 8 / r)) {
      return Error(ErrorKind::kNotImplemented, "linalg on cpu: matrices of ", p.m, " x ", p.n,
                   " are more than LAPACK can take");
    }
    const BlasUse use;
    const size_t bytes = dtype_ == DType::kFloat64 ? ScratchBytes<double>(p, SizesOf<double>(p))
                                                   : ScratchBytes<float>(p, SizesOf<float>(p));
    return bytes * static_cast<size_t>(PartsOf(p));
  }

  Status Launch(Stream&, const LinalgProblem& p, const LinalgBuffers& buffers,
                void* workspace) const override {
    const BlasUse use;
    OFL_RETURN_IF_ERROR(use.status());
    if (dtype_ == DType::kFloat64) {
      LaunchAll<double>(p, buffers, workspace);
    } else {
      LaunchAll<float>(p, buffers, workspace);
    }
    return OkStatus();
  }

 private:
  DType dtype_;
};

StatusOr<std::unique_ptr<Linalg>> NewLinalg(const Linalg::Spec& spec) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64) {
    return NoPrimitiveFor(Linalg::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuLinalg>(spec.dtype);
}

const bool registered = RegisterPrimitive<Linalg>(DeviceType::kCPU, &NewLinalg);

}  // namespace
}  // namespace oneflow_lite
