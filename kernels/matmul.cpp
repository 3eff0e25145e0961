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

// Rows as they are stored: those of the matrix, or its columns.
int64_t StoredRows(const Tensor& t, const Layout& l) {
  return t.shape()[t.ndim() - (l.transposed ? 1 : 2)];
}
int64_t StoredCols(const Tensor& t, const Layout& l) {
  return t.shape()[t.ndim() - (l.transposed ? 2 : 1)];
}

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

// Stored as `like` is, each row at a multiple of `multiple` elements.
Layout Packed(const Tensor& t, const Layout& like, int64_t multiple) {
  const int64_t cols = std::max<int64_t>(StoredCols(t, like), 1);
  const int64_t leading = (cols + multiple - 1) / multiple * multiple;
  return {like.transposed, leading, StoredRows(t, like) * leading};
}

Dims StridesOf(const Tensor& t, const Layout& l) {
  Dims strides{l.transposed ? 1 : l.leading, l.transposed ? l.leading : 1};
  if (t.ndim() == 3) strides.insert(strides.begin(), l.batch_stride);
  return strides;
}

// An operand or the result: where it lies, and where BLAS finds it. The two differ where BLAS could
// not reach it in place, or would be slow there.
struct Place {
  Layout layout;
  bool aside = false;
  size_t bytes = 0;  // of the copy
};

// What BLAS is asked for: c = a b, or a b^T; plus a bias over the rows of a, or c.
struct Operands {
  Tensor a, b, bias;
  bool transposes_b = false;
  bool accumulate = false;
};

class MatmulKernel : public BoundKernel {
 public:
  MatmulKernel(std::unique_ptr<Matmul> matmul, std::unique_ptr<Copy> copy,
               std::unique_ptr<Copy> wide_copy)
      : matmul_(std::move(matmul)), copy_(std::move(copy)), wide_copy_(std::move(wide_copy)) {}

  Status Launch(KernelContext& c) const override { return Run(c, {c.input(0), c.input(1), {}}); }

 protected:
  Status Run(KernelContext& c, const Operands& o) const {
    const Tensor& out = c.output(0);
    const int n = o.a.ndim();
    MatmulShape shape{.batch = n == 3 ? o.a.shape()[0] : 1,
                      .m = o.a.shape()[n - 2],
                      .n = o.b.shape()[o.transposes_b ? n - 2 : n - 1],
                      .k = o.a.shape()[n - 1]};
    const bool as_it_is = n == out.ndim() || (out.ndim() > 1 && out.numel() < kLarge);
    const Tensor flat = as_it_is ? out : Rows(out, shape);
    const Place a = PlaceOf(o.a, shape.n), b = PlaceOf(o.b, shape.m), to = PlaceOf(flat, shape.k);
    shape.transpose_a = a.layout.transposed;
    shape.transpose_b = b.layout.transposed != o.transposes_b;
    shape.lda = a.layout.leading;
    shape.ldb = b.layout.leading;
    shape.ldc = to.layout.leading;
    shape.batch_stride_a = a.layout.batch_stride;
    shape.batch_stride_b = b.layout.batch_stride;
    shape.accumulate = o.accumulate;
    shape.wide = out.dtype() != o.a.dtype();
    shape.add_bias = o.bias.defined() && matmul_->AddsBias() && shape.k > 0 && !o.accumulate;

    const size_t own = Aligned(matmul_->WorkspaceBytes(c.stream(), shape));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(own + a.bytes + b.bytes + to.bytes));
    char* scratch = static_cast<char*>(workspace) + own;
    OFL_ASSIGN_OR_RETURN(const void* pa, Readable(c, o.a, a, scratch));
    OFL_ASSIGN_OR_RETURN(const void* pb, Readable(c, o.b, b, scratch + a.bytes));
    void* pc = to.aside ? scratch + a.bytes + b.bytes : flat.data();
    if (o.bias.defined() && !shape.add_bias) {
      OFL_RETURN_IF_ERROR(SpreadBias(c, o.bias, shape, pc));
      shape.accumulate = true;
    } else if (o.accumulate && to.aside) {
      OFL_RETURN_IF_ERROR(
          Move(c, flat, flat.data(), flat.strides(), pc, StridesOf(flat, to.layout)));
    }
    const void* bias = shape.add_bias ? o.bias.data() : nullptr;
    OFL_RETURN_IF_ERROR(matmul_->Launch(c.stream(), shape, pa, pb, bias, pc, workspace));
    if (!to.aside) return OkStatus();
    return Move(c, flat, pc, StridesOf(flat, to.layout), flat.data(), flat.strides());
  }

 private:
  // A copy moves an element there and back; a product whose rows begin anywhere takes as much
  // longer as that where it uses each element so often.
  static constexpr int64_t kLarge = 1 << 20, kReused = 256;

  static size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

  // [..., n] as [m, n].
  static Tensor Rows(const Tensor& t, const MatmulShape& s) {
    const Shape rows{s.m, s.n};
    return t.WithGeometry(rows, ContiguousStrides(rows), t.offset());
  }

  // `reuse`: how often each element is read or added to.
  Place PlaceOf(const Tensor& t, int64_t reuse) const {
    const std::optional<Layout> found = LayoutOf(t);
    const int64_t multiple = matmul_->RowMultiple();
    const bool slow = found && found->leading % multiple != 0 && StoredRows(t, *found) > 1 &&
                      t.numel() >= kLarge && reuse >= kReused;
    if (found && !slow) return {*found};
    const Layout packed = Packed(t, found.value_or(Layout{}), multiple);
    const int64_t batch = t.ndim() == 3 ? t.shape()[0] : 1;
    return {packed, true,
            Aligned(static_cast<size_t>(batch * packed.batch_stride) * SizeOf(t.dtype()))};
  }

  Status Move(KernelContext& c, const Tensor& t, const void* from,
              absl::Span<const int64_t> from_strides, void* to,
              absl::Span<const int64_t> to_strides) const {
    if (t.numel() == 0) return OkStatus();
    const Copy& copy = t.dtype() == c.input(0).dtype() ? *copy_ : *wide_copy_;
    return copy.Launch(c.stream(), MakeElementwise<2>(t.shape(), {from_strides, to_strides}), from,
                       to);
  }

  StatusOr<const void*> Readable(KernelContext& c, const Tensor& t, const Place& place,
                                 void* scratch) const {
    if (!place.aside || t.numel() == 0) return t.data();
    OFL_RETURN_IF_ERROR(Move(c, t, t.data(), t.strides(), scratch, StridesOf(t, place.layout)));
    return scratch;
  }

  // The bias into every row of the result.
  Status SpreadBias(KernelContext& c, const Tensor& bias, const MatmulShape& s, void* to) const {
    if (s.m == 0 || s.n == 0) return OkStatus();
    const Dims from = {0, 1}, rows = {s.c_stride(), 1};
    return copy_->Launch(c.stream(), MakeElementwise<2>(Shape{s.m, s.n}, {from, rows}), bias.data(),
                         to);
  }

  std::unique_ptr<Matmul> matmul_;
  std::unique_ptr<Copy> copy_, wide_copy_;  // of the operands' dtype; of a wide result's
};

// self (+)= a b + bias, of matrices.
class MatmulIntoKernel final : public MatmulKernel {
 public:
  using MatmulKernel::MatmulKernel;
  bool takes_strides(int i, const Tensor& input, const Attrs&) const override {
    const std::optional<Layout> layout = LayoutOf(input);
    return i != 0 || (layout && !layout->transposed);
  }
  Status Launch(KernelContext& c) const override {
    return Run(c, {c.input(1), c.input(2), c.input(3), false, c.attr<bool>(0)});
  }
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
  const DType narrow = c.inputs[0], wide = ComputeType(narrow);
  OFL_ASSIGN_OR_RETURN(auto copy,
                       NewPrimitive<CopyFactory>(c.device, {.from = narrow, .to = narrow}));
  OFL_ASSIGN_OR_RETURN(auto wide_copy,
                       NewPrimitive<CopyFactory>(c.device, {.from = wide, .to = wide}));
  return std::make_unique<Kernel>(std::move(matmul), std::move(copy), std::move(wide_copy));
}

OFL_REGISTER_KERNEL({.op = "matmul",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = BindMatmul<MatmulKernel>});
OFL_REGISTER_KERNEL({.op = "matmul_into_",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b111,
                     .bind = BindMatmul<MatmulIntoKernel>});
OFL_REGISTER_KERNEL({.op = "linear",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = BindMatmul<LinearKernel>});

}  // namespace
}  // namespace oneflow_lite
