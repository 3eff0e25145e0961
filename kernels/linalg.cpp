// SPDX-License-Identifier: Apache-2.0
//
// The ops of linear algebra: each names its problem and its buffers to the one primitive.
#include "primitive/linalg.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

using Describe = void (*)(KernelContext& c, LinalgProblem* p, LinalgBuffers* b);

template <Describe kDescribe>
class LinalgKernel final : public PrimitiveKernel<Linalg> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    LinalgProblem p;
    LinalgBuffers b;
    kDescribe(c, &p, &b);
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), p));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), p, b, workspace);
  }
};

// The matrices in input i, and how many there are.
LinalgProblem Of(LinalgTask task, const KernelContext& c, int i = 0) {
  const Shape& shape = c.input(i).shape();
  LinalgProblem p = {.task = task, .m = shape[shape.ndim() - 2], .n = shape[shape.ndim() - 1]};
  for (int d = 0; d < shape.ndim() - 2; ++d) p.batch *= shape[d];
  return p;
}
int64_t LastDim(const Tensor& t) { return t.shape()[t.ndim() - 1]; }
int32_t* Ints(const Tensor& t) { return t.data<int32_t>(); }

void LuFactor(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kLu, c);
  *b = {.a = c.input(0).data(),
        .x = c.output(0).data(),
        .pivots = Ints(c.output(1)),
        .info = Ints(c.output(2))};
}

void LuPermutation(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  const Tensor& pivots = c.input(0);
  p->task = LinalgTask::kPermutation;
  p->m = c.attr<int64_t>(0);
  p->k = LastDim(pivots);
  p->batch = p->m > 0 ? c.output(0).numel() / p->m : 0;
  *b = {.pivots = Ints(pivots), .places = c.output(0).data<int64_t>()};
}

void LuSolve(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kLuSolve, c);
  p->k = LastDim(c.input(2));
  p->transpose = c.attr<bool>(0);
  *b = {.a = c.input(0).data(),
        .b = c.input(2).data(),
        .x = c.output(0).data(),
        .pivots = Ints(c.input(1))};
}

void Solve(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kSolve, c);
  p->k = LastDim(c.input(1));
  *b = {.a = c.input(0).data(),
        .b = c.input(1).data(),
        .x = c.output(0).data(),
        .y = c.output(1).data(),
        .pivots = Ints(c.output(2)),
        .info = Ints(c.output(3))};
}

void Inverse(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kInverse, c);
  *b = {.a = c.input(0).data(), .x = c.output(0).data(), .info = Ints(c.output(1))};
}

void Determinant(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kDeterminant, c);
  *b = {.a = c.input(0).data(),
        .x = c.output(1).data(),
        .s = c.output(0).data(),
        .pivots = Ints(c.output(2))};
}

void LogDeterminant(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kLogDeterminant, c);
  *b = {.a = c.input(0).data(),
        .x = c.output(2).data(),
        .z = c.output(0).data(),
        .s = c.output(1).data(),
        .pivots = Ints(c.output(3))};
}

void Cholesky(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kCholesky, c);
  p->upper = c.attr<bool>(0);
  *b = {.a = c.input(0).data(), .x = c.output(0).data(), .info = Ints(c.output(1))};
}

void SolveTriangular(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kTriangularSolve, c);
  p->k = LastDim(c.input(1));
  p->upper = c.attr<bool>(0);
  p->unit = c.attr<bool>(1);
  *b = {.a = c.input(0).data(), .b = c.input(1).data(), .x = c.output(0).data()};
}

void Qr(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kQr, c);
  p->full = c.attr<std::string>(0) == "complete";
  p->vectors = c.attr<std::string>(0) != "r";
  *b = {.a = c.input(0).data(), .x = c.output(0).data(), .y = c.output(1).data()};
}

void Eigh(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kEigen, c);
  p->upper = c.attr<bool>(0);
  p->vectors = c.attr<bool>(1);
  *b = {.a = c.input(0).data(),
        .x = c.output(1).data(),
        .s = c.output(0).data(),
        .info = Ints(c.output(2))};
}

void Svd(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kSvd, c);
  p->full = c.attr<bool>(0);
  p->vectors = c.attr<bool>(1);
  *b = {.a = c.input(0).data(),
        .x = c.output(0).data(),
        .y = c.output(2).data(),
        .s = c.output(1).data(),
        .info = Ints(c.output(3))};
}

void LeastSquares(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kLeastSquares, c);
  p->k = LastDim(c.input(1));
  p->rcond = c.attr<double>(0);
  const std::string& driver = c.attr<std::string>(1);
  p->driver = driver == "gels"    ? LeastSquaresDriver::kGels
              : driver == "gelsd" ? LeastSquaresDriver::kGelsd
              : driver == "gelss" ? LeastSquaresDriver::kGelss
                                  : LeastSquaresDriver::kGelsy;
  *b = {.a = c.input(0).data(),
        .b = c.input(1).data(),
        .x = c.output(0).data(),
        .s = c.output(2).data(),
        .info = Ints(c.output(3)),
        .places = c.output(1).data<int64_t>()};
}

void PseudoInverse(KernelContext& c, LinalgProblem* p, LinalgBuffers* b) {
  *p = Of(LinalgTask::kPseudoInverse, c);
  *b = {.a = c.input(0).data(),
        .b = c.input(1).data(),
        .x = c.output(0).data(),
        .info = Ints(c.output(1))};
}

constexpr DTypeSet kWide = SetOf(DType::kFloat32) | SetOf(DType::kFloat64);

#define OFL_LINALG_KERNEL(name, describe) \
  OFL_REGISTER_KERNEL({.op = name, .dtypes = kWide, .bind = BindByInput<LinalgKernel<describe>>})
OFL_LINALG_KERNEL("lu_factor", LuFactor);
OFL_LINALG_KERNEL("lu_solve", LuSolve);
OFL_LINALG_KERNEL("solve", Solve);
OFL_LINALG_KERNEL("inv", Inverse);
OFL_LINALG_KERNEL("det", Determinant);
OFL_LINALG_KERNEL("slogdet", LogDeterminant);
OFL_LINALG_KERNEL("cholesky", Cholesky);
OFL_LINALG_KERNEL("solve_triangular", SolveTriangular);
OFL_LINALG_KERNEL("qr", Qr);
OFL_LINALG_KERNEL("eigh", Eigh);
OFL_LINALG_KERNEL("svd", Svd);
OFL_LINALG_KERNEL("lstsq", LeastSquares);
OFL_LINALG_KERNEL("pinv", PseudoInverse);

StatusOr<std::unique_ptr<BoundKernel>> BindPermutation(const BindContext& c) {
  return BindKernel<LinalgKernel<LuPermutation>>(c, {});
}
OFL_REGISTER_KERNEL({.op = "lu_permutation",
                     .dtypes = SetOf(DType::kInt32),
                     .bind = BindPermutation});

}  // namespace
}  // namespace oneflow_lite
