// SPDX-License-Identifier: Apache-2.0
//
// Factorizations through cuSOLVER, matrix after matrix on the stream. As in LAPACK a matrix of ours
// is its transpose there: symmetric ones and triangles go as they are, others are transposed into
// the workspace, which each matrix uses after the one before it.
#include "primitive/linalg.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "oneflow_lite/core/error.h"
#include "primitive/cuda/host.h"
#include "primitive/cuda/linalg/cusolver.h"
#include "primitive/cuda/linalg/launch.h"
#include "primitive/cuda/linalg/tasks.h"

namespace oneflow_lite {
namespace {

using cuda::SolverStatus;

// A handle may serve one thread at a time, and lives forever.
struct Handles {
  cusolverDnHandle_t solver = nullptr;
  cublasHandle_t blas = nullptr;
};
std::mutex& HandleMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
// Those of a device, working on the stream. Precondition: the device is current, the mutex held.
StatusOr<Handles> HandlesOn(const cuda::CuSolver& library, const Stream& stream) {
  static auto* all = new std::map<int, Handles>;
  Handles& h = (*all)[stream.device().index];
  if (!h.solver) OFL_RETURN_IF_ERROR(SolverStatus(library.Create(&h.solver), "initialisation"));
  if (!h.blas) OFL_RETURN_IF_ERROR(SolverStatus(library.BlasCreate(&h.blas), "initialisation"));
  OFL_RETURN_IF_ERROR(
      SolverStatus(library.SetStream(h.solver, NativeStream(stream)), "choice of a stream"));
  OFL_RETURN_IF_ERROR(
      SolverStatus(library.BlasSetStream(h.blas, NativeStream(stream)), "choice of a stream"));
  return h;
}

template <class T>
Status RunTask(const cuda::LinalgRun<T>& run) {
  switch (run.p.task) {
    case LinalgTask::kLu:
      return cuda::RunLu(run);
    case LinalgTask::kPermutation:
      return cuda::RunPermutation(run);
    case LinalgTask::kSolve:
      return cuda::RunSolve(run);
    case LinalgTask::kLuSolve:
      return cuda::RunLuSolve(run);
    case LinalgTask::kInverse:
      return cuda::RunInverse(run);
    case LinalgTask::kDeterminant:
    case LinalgTask::kLogDeterminant:
      return cuda::RunDeterminant(run);
    case LinalgTask::kCholesky:
      return cuda::RunCholesky(run);
    case LinalgTask::kTriangularSolve:
      return cuda::RunTriangularSolve(run);
    case LinalgTask::kQr:
      return cuda::RunQr(run);
    case LinalgTask::kEigen:
      return cuda::RunEigen(run);
    case LinalgTask::kSvd:
      return cuda::RunSvd(run);
    case LinalgTask::kPseudoInverse:
      return cuda::RunPseudoInverse(run);
    case LinalgTask::kLeastSquares:
      break;
  }
  return Error(ErrorKind::kNotImplemented,
               "lstsq() on cuda: there is none of LAPACK's drivers; linalg.lstsq() goes by QR");
}

class CudaLinalg final : public Linalg {
 public:
  explicit CudaLinalg(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, const LinalgProblem& p) const override {
    if (std::max({p.m, p.n, p.k}) > std::numeric_limits<int>::max()) {
      return Error(ErrorKind::kNotImplemented, "linalg on cuda: matrices of ", p.m, " x ", p.n,
                   " are more than cuSOLVER can take");
    }
    return dtype_ == DType::kFloat64 ? Bytes<double>(stream, p) : Bytes<float>(stream, p);
  }

  Status Launch(Stream& stream, const LinalgProblem& p, const LinalgBuffers& buffers,
                void* workspace) const override {
    return dtype_ == DType::kFloat64 ? LaunchAs<double>(stream, p, buffers, workspace)
                                     : LaunchAs<float>(stream, p, buffers, workspace);
  }

 private:
  template <class T>
  static StatusOr<size_t> Bytes(const Stream& stream, const LinalgProblem& p) {
    OFL_ASSIGN_OR_RETURN(const cuda::CuSolver* library, cuda::GetCuSolver());
    std::lock_guard lock(HandleMutex());
    DeviceGuard guard(stream.device().index);
    OFL_ASSIGN_OR_RETURN(const Handles h, HandlesOn(*library, stream));
    OFL_ASSIGN_OR_RETURN(const cuda::LinalgSpace space,
                         cuda::SpaceOf<T>(cuda::FunctionsOf<T>(*library), h.solver, p));
    return space.bytes;
  }

  template <class T>
  static Status LaunchAs(Stream& stream, const LinalgProblem& p, const LinalgBuffers& buffers,
                         void* workspace) {
    OFL_ASSIGN_OR_RETURN(const cuda::CuSolver* library, cuda::GetCuSolver());
    std::lock_guard lock(HandleMutex());
    DeviceGuard guard(stream.device().index);
    OFL_ASSIGN_OR_RETURN(const Handles h, HandlesOn(*library, stream));
    const cuda::SolverFunctions<T>& f = cuda::FunctionsOf<T>(*library);
    OFL_ASSIGN_OR_RETURN(const cuda::LinalgSpace space, cuda::SpaceOf<T>(f, h.solver, p));
    return RunTask<T>({p, buffers, f, h.solver, h.blas, NativeStream(stream), space,
                       static_cast<char*>(workspace)});
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Linalg>> NewLinalg(const Linalg::Spec& spec) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64) {
    return NoPrimitiveFor(Linalg::kName, DeviceType::kCUDA, spec.dtype);
  }
  OFL_RETURN_IF_ERROR(cuda::GetCuSolver().status());
  return std::make_unique<CudaLinalg>(spec.dtype);
}

const bool registered = RegisterPrimitive<Linalg>(DeviceType::kCUDA, &NewLinalg);

}  // namespace
}  // namespace oneflow_lite
