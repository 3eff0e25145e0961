// SPDX-License-Identifier: Apache-2.0
#include "primitive/select.h"

#include "primitive/cuda/elementwise/host.h"

namespace oneflow_lite {
namespace {

class CudaSelect final : public Select {
 public:
  explicit CudaSelect(DType moved)
      : pass_({{DType::kBool, moved, moved}, moved, moved}, cuda::FindSelect(moved)) {}

  Status Launch(Stream& stream, const Elementwise<4>& g, const Operand& condition, const Operand& a,
                const Operand& b, void* out) const override {
    const auto of = [](const Operand& o) { return cuda::PassInput{o.data, o.bits}; };
    return pass_.Run(stream, kName, g, {{of(condition), of(a), of(b)}}, out);
  }

 private:
  cuda::CudaPass<3> pass_;
};

StatusOr<std::unique_ptr<Select>> NewSelect(const Select::Spec& spec) {
  return std::make_unique<CudaSelect>(cuda::MovedAs(static_cast<int>(SizeOf(spec.dtype))));
}

const bool registered = RegisterPrimitive<Select>(DeviceType::kCUDA, &NewSelect);

}  // namespace
}  // namespace oneflow_lite
