// SPDX-License-Identifier: Apache-2.0
//
// From the lists of ops/multi_tensor.cpp to what the primitive takes.
#include "primitive/multi_tensor.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

constexpr int kAlone = 3;  // lr_tensor, scale, found_inf

// Null where the tensor is absent.
template <class T>
T* DataOf(const Tensor& t) {
  return t.defined() ? static_cast<T*>(t.data()) : nullptr;
}

// `lists`: a letter for each list of the op: p, g, a, b, c as in primitive/multi_tensor.h, m the
// masters, s the steps, f the flags.
struct Row {
  const char* name;
  MultiTensorOp op;
  const char* lists;
};
constexpr Row kRows[] = {
    {"sgd_", MultiTensorOp::kSgd, "pgam"},
    {"rmsprop_", MultiTensorOp::kRmsprop, "pgabcms"},
    {"adadelta_", MultiTensorOp::kAdadelta, "pgabms"},
    {"adagrad_", MultiTensorOp::kAdagrad, "pgams"},
    {"lion_", MultiTensorOp::kLion, "pgam"},
    {"multi_lerp_", MultiTensorOp::kLerp, "pg"},
    {"multi_scale_", MultiTensorOp::kScale, "p"},
    {"multi_clamp_", MultiTensorOp::kClamp, "p"},
    {"multi_fill_", MultiTensorOp::kFill, "p"},
    {"multi_unscale_", MultiTensorOp::kUnscale, "pf"},
    {"update_scale_", MultiTensorOp::kUpdateScale, "pga"},
};

class MultiTensorKernel final : public PrimitiveKernel<MultiTensor> {
 public:
  MultiTensorKernel(std::unique_ptr<MultiTensor> primitive, const char* lists)
      : PrimitiveKernel(std::move(primitive)), lists_(lists) {}

  Status Launch(KernelContext& c) const override {
    const int lists = static_cast<int>(lists_.size());
    const int count = (c.num_inputs() - kAlone) / lists;
    absl::InlinedVector<MultiTensors, 16> tensors(count);
    for (int l = 0; l < lists; ++l) {
      for (int i = 0; i < count; ++i) Put(c.input(kAlone + l * count + i), lists_[l], &tensors[i]);
    }
    return primitive_->Launch(c.stream(), ProblemOf(c), tensors);
  }

 private:
  static void Put(const Tensor& t, char list, MultiTensors* to) {
    switch (list) {
      case 'm':
        to->master = DataOf<void>(t);
        break;
      case 's':
        to->step = DataOf<double>(t);
        break;
      case 'f':
        to->flag = DataOf<float>(t);
        break;
      default:
        to->data[list == 'p'   ? kSlotP
                 : list == 'g' ? kSlotG
                               : kSlotA + (list - 'a')] = DataOf<void>(t);
        if (list == 'p') to->numel = t.numel();
    }
  }

  // The attributes: numbers and flags in their order, and the step.
  static MultiTensorProblem ProblemOf(const KernelContext& c) {
    MultiTensorProblem p;
    int numbers = 0, flags = 0;
    for (size_t i = 0; i < c.attrs().size(); ++i) {
      const AttrValue& value = c.attrs()[static_cast<int>(i)];
      if (const double* number = std::get_if<double>(&value)) p.numbers[numbers++] = *number;
      if (const bool* flag = std::get_if<bool>(&value)) p.flags[flags++] = *flag;
      if (const int64_t* step = std::get_if<int64_t>(&value)) p.step = *step;
    }
    p.device_lr = DataOf<double>(c.input(0));
    p.scale = DataOf<float>(c.input(1));
    p.found_inf = DataOf<float>(c.input(2));
    return p;
  }

  const std::string lists_;
};

bool RegisterRows() {
  for (const Row& row : kRows) {
    OFL_CHECK(internal::AppendKernel(
        {.op = row.name,
         .bind = [row](const BindContext& c) -> StatusOr<std::unique_ptr<BoundKernel>> {
           const MultiTensor::Spec spec{.op = row.op, .dtype = c.inputs[kAlone]};
           OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<MultiTensorFactory>(c.device, spec));
           return std::make_unique<MultiTensorKernel>(std::move(primitive), row.lists);
         }},
        __FILE__, __LINE__));
  }
  return true;
}
const bool rows_registered = RegisterRows();

class MultiNormKernel final : public PrimitiveKernel<TensorNorms> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    absl::InlinedVector<NormedTensor, 16> tensors(c.num_inputs());
    for (int i = 0; i < c.num_inputs(); ++i) {
      tensors[i] = {.data = c.input(i).data(), .numel = c.input(i).numel()};
    }
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(primitive_->WorkspaceBytes(tensors)));
    return primitive_->Launch(c.stream(), c.attr<double>(0), tensors, c.output(0).data(),
                              workspace);
  }
};

OFL_REGISTER_KERNEL({.op = "multi_norm", .bind = BindByInput<MultiNormKernel>});

}  // namespace
}  // namespace oneflow_lite
