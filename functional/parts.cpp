// SPDX-License-Identifier: Apache-2.0
#include "functional/parts.h"

#include <utility>

#include "functional/cat.h"
#include "functional/creation.h"
#include "functional/remap.h"
#include "functional/view.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {
namespace {

// The history of all parts: one gradient, of the whole.
class PartsNode final : public Node {
 public:
  // `selected`: each part is one element along the dim, which it lacks.
  PartsNode(const Tensor& x, int64_t dim, Dims sizes, bool selected)
      : dtype_(x.dtype()),
        device_(x.device()),
        shape_(x.shape()),
        dim_(dim),
        sizes_(std::move(sizes)),
        selected_(selected) {
    num_outputs = static_cast<uint32_t>(sizes_.size());
  }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    size_t first = 0, count = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].defined() && count++ == 0) first = i;
    }
    if (count == 0) return TensorList{Tensor()};
    OFL_ASSIGN_OR_RETURN(Tensor whole, count == 1 ? Padded(grads[first], first) : Joined(grads));
    return TensorList{std::move(whole)};
  }
  std::string name() const override { return selected_ ? "unbind_backward" : "split_backward"; }

 private:
  StatusOr<Tensor> WithDim(const Tensor& grad) const {
    return selected_ ? Unsqueeze(grad, dim_) : StatusOr<Tensor>(grad);
  }

  // The only gradient there is, between zeros.
  StatusOr<Tensor> Padded(const Tensor& grad, size_t place) const {
    OFL_ASSIGN_OR_RETURN(const Tensor part, WithDim(grad));
    Dims widths(2 * shape_.ndim(), 0);
    int64_t before = 0;
    for (size_t i = 0; i < place; ++i) before += sizes_[i];
    widths[2 * dim_] = before;
    widths[2 * dim_ + 1] = shape_[static_cast<int>(dim_)] - before - sizes_[place];
    return widths == Dims(widths.size(), 0) ? part : PadDims(part, widths, "constant", Scalar(0));
  }

  // Neighbours that got no gradient are one block of zeros.
  StatusOr<Tensor> Joined(absl::Span<const Tensor> grads) const {
    const GlobalScope like(grads);
    TensorList all;
    int64_t missing = 0;
    const auto fill = [&]() -> Status {
      if (missing == 0) return OkStatus();
      Dims gap = shape_.dims();
      gap[dim_] = std::exchange(missing, 0);
      OFL_ASSIGN_OR_RETURN(Tensor zeros, Zeros(gap, dtype_, device_));
      all.push_back(std::move(zeros));
      return OkStatus();
    };
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) {
        missing += sizes_[i];
        continue;
      }
      OFL_RETURN_IF_ERROR(fill());
      OFL_ASSIGN_OR_RETURN(Tensor part, WithDim(grads[i]));
      all.push_back(std::move(part));
    }
    OFL_RETURN_IF_ERROR(fill());
    return Cat(all, dim_);
  }

  const DType dtype_;
  const Device device_;
  const Shape shape_;
  const int64_t dim_;
  const Dims sizes_;
  const bool selected_;
};

// Makes one node the producer of all parts, where x asks for a gradient.
Status Record(const Tensor& x, int64_t dim, Dims sizes, bool selected, const TensorList& parts) {
  if (parts.empty() || !GradEnabled() || !autograd::RequiresGrad(x)) return OkStatus();
  OFL_RETURN_IF_ERROR(autograd::RefreshView(x));
  auto node = MakeRef<PartsNode>(x, dim, std::move(sizes), selected);
  node->edges.push_back(autograd::GradientEdge(x));
  OFL_RETURN_IF_ERROR(autograd::KeepStream(node.get(), x.device()));
  for (size_t i = 0; i < parts.size(); ++i) {
    autograd::SetHistory(parts[i], node, static_cast<uint32_t>(i));
  }
  return OkStatus();
}

}  // namespace

StatusOr<TensorList> CutInParts(const Tensor& x, int64_t dim, absl::Span<const int64_t> sizes) {
  TensorList parts;
  {
    const GradGuard unrecorded(false);
    int64_t start = 0;
    for (const int64_t size : sizes) {
      OFL_ASSIGN_OR_RETURN(Tensor part, Slice(x, dim, start, start + size));
      parts.push_back(std::move(part));
      start += size;
    }
  }
  OFL_RETURN_IF_ERROR(Record(x, dim, Dims(sizes.begin(), sizes.end()), false, parts));
  return parts;
}

StatusOr<TensorList> SelectEach(const Tensor& x, int64_t dim) {
  const int64_t size = x.shape()[static_cast<int>(dim)];
  TensorList parts;
  {
    const GradGuard unrecorded(false);
    for (int64_t i = 0; i < size; ++i) {
      OFL_ASSIGN_OR_RETURN(Tensor part, Select(x, dim, i));
      parts.push_back(std::move(part));
    }
  }
  OFL_RETURN_IF_ERROR(Record(x, dim, Dims(size, 1), true, parts));
  return parts;
}

}  // namespace oneflow_lite::functional
