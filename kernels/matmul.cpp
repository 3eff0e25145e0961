// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: finds how each operand lies in memory (rows, or transposed) and copies one only
// where it lies in neither way.
#include "primitive/matmul.h"

#include "oneflow_lite/framework/kernel_registry.h"
#include "primitive/copy.h"

namespace oneflow_lite {
namespace {

struct Layout {
  bool transposed = false;
  int64_t leading = 0;  // elements between stored rows
  int64_t batch_stride = 0;
};

// How BLAS can read t's matrices in place, if it can.
std::optional<Layout> LayoutOf(const Tensor& t) {
  const int n = t.ndim();
  const int64_t rows = t.shape()[n - 2], cols = t.shape()[n - 1];
  const int64_t row_stride = t.strides()[n - 2], col_stride = t.strides()[n - 1];
  Layout layout;
  if (n == 3 && t.shape()[0] > 1) layout.batch_stride = t.strides()[0];
  if ((col_stride == 1 || cols == 1) && (row_stride >= cols || rows == 1)) {
    layout.leading = rows == 1 ? std::max<int64_t>(cols, 1) : row_stride;
    return layout;
  }
  if ((row_stride == 1 || rows == 1) && (col_stride >= rows || cols == 1)) {
    layout.transposed = true;
    layout.leading = cols == 1 ? std::max<int64_t>(rows, 1) : col_stride;
    return layout;
  }
  return std::nullopt;
}

// What BLAS is asked for: c = a b, or a b^T + bias over the rows of a.
struct Operands {
  Tensor a, b, bias;
  bool transposes_b = false;
};

class MatmulKernel : public BoundKernel {
 public:
  MatmulKernel(std::unique_ptr<Matmul> matmul, std::unique_ptr<Copy> copy)
      : matmul_(std::move(matmul)), copy_(std::move(copy)) {}

  Status Launch(KernelContext& c) const override { return Run(c, {c.input(0), c.input(1), {}}); }

 protected:
  Status Run(KernelContext& c, const Operands& o) const {
    const Tensor &a = o.a, &b = o.b;
    const Tensor& out = c.output(0);
    const std::optional<Layout> layout_a = LayoutOf(a), layout_b = LayoutOf(b);
    const int n = a.ndim();
    MatmulShape shape{.batch = n == 3 ? a.shape()[0] : 1,
                      .m = a.shape()[n - 2],
                      .n = b.shape()[o.transposes_b ? n - 2 : n - 1],
                      .k = a.shape()[n - 1]};
    const Layout la = layout_a.value_or(Dense(a)), lb = layout_b.value_or(Dense(b));
    shape.transpose_a = la.transposed;
    shape.transpose_b = lb.transposed != o.transposes_b;
    shape.lda = la.leading;
    shape.ldb = lb.leading;
    shape.batch_stride_a = la.batch_stride;
    shape.batch_stride_b = lb.batch_stride;
    shape.add_bias = o.bias.defined() && matmul_->AddsBias() && shape.k > 0;
    if (o.bias.defined() && !shape.add_bias) {
      OFL_RETURN_IF_ERROR(SpreadBias(c, o.bias));
      shape.accumulate = true;
    }

    const size_t own = Aligned(matmul_->WorkspaceBytes(c.stream(), shape));
    const size_t copy_a = layout_a ? 0 : Aligned(a.nbytes()), copy_b = layout_b ? 0 : b.nbytes();
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(own + copy_a + copy_b));
    char* scratch = static_cast<char*>(workspace) + own;
    OFL_ASSIGN_OR_RETURN(const void* pa, Readable(c, a, layout_a.has_value(), scratch));
    OFL_ASSIGN_OR_RETURN(const void* pb, Readable(c, b, layout_b.has_value(), scratch + copy_a));
    const void* bias = shape.add_bias ? o.bias.data() : nullptr;
    return matmul_->Launch(c.stream(), shape, pa, pb, bias, out.data(), workspace);
  }

 private:
  static size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

  static Layout Dense(const Tensor& t) {
    const int n = t.ndim();
    const int64_t cols = t.shape()[n - 1];
    return {false, std::max<int64_t>(cols, 1), t.shape()[n - 2] * cols};
  }

  StatusOr<const void*> Readable(KernelContext& c, const Tensor& t, bool in_place,
                                 void* scratch) const {
    if (in_place || t.numel() == 0) return t.data();
    const auto g = MakeElementwise<2>(t.shape(), {t.strides(), ContiguousStrides(t.shape())});
    OFL_RETURN_IF_ERROR(copy_->Launch(c.stream(), g, t.data(), scratch));
    return scratch;
  }

  // The bias into every row of the output.
  Status SpreadBias(KernelContext& c, const Tensor& bias) const {
    const Tensor& out = c.output(0);
    if (out.numel() == 0) return OkStatus();
    const Shape shape{out.numel() / bias.numel(), bias.numel()};
    const Dims from = {0, 1}, to = ContiguousStrides(shape);
    const auto g = MakeElementwise<2>(shape, {from, to});
    return copy_->Launch(c.stream(), g, bias.data(), out.data());
  }

  std::unique_ptr<Matmul> matmul_;
  std::unique_ptr<Copy> copy_;
};

// x [..., in] by weight [out, in]: the leading dims of x are rows.
class LinearKernel final : public MatmulKernel {
 public:
  using MatmulKernel::MatmulKernel;
  bool takes_strides(int i, const Tensor& input, const Attrs&) const override {
    return i != 0 || input.ndim() == 2;
  }

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &weight = c.input(1);
    if (x.ndim() == 2) return Run(c, {x, weight, c.input(2), true});
    const Shape rows{c.output(0).numel() / weight.shape()[0], weight.shape()[1]};
    const Tensor flat = x.WithGeometry(rows, ContiguousStrides(rows), x.offset());
    return Run(c, {flat, weight, c.input(2), true});
  }
};

template <class Kernel>
StatusOr<std::unique_ptr<BoundKernel>> BindMatmul(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto matmul, NewPrimitive<MatmulFactory>(c.device, {.dtype = c.inputs[0]}));
  OFL_ASSIGN_OR_RETURN(
      auto copy, NewPrimitive<CopyFactory>(c.device, {.from = c.inputs[0], .to = c.inputs[0]}));
  return std::make_unique<Kernel>(std::move(matmul), std::move(copy));
}

OFL_REGISTER_KERNEL({.op = "matmul",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = BindMatmul<MatmulKernel>});
OFL_REGISTER_KERNEL({.op = "linear",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = BindMatmul<LinearKernel>});

}  // namespace
}  // namespace oneflow_lite
