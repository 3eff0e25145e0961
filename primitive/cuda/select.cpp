// SPDX-License-Identifier: Apache-2.0
#include "primitive/select.h"

#include "oneflow_lite/core/elementwise_order.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaSelect final : public Select {
 public:
  explicit CudaSelect(cuda::SelectLauncher launcher) : launcher_(launcher) {}

  Status Launch(Stream& stream, const Elementwise<4>& g, const Operand& condition, const Operand& a,
                const Operand& b, void* out) const override {
    const auto of = [](const Operand& o) { return cuda::SelectOperand{o.data, o.bits}; };
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(cuda::ToStrided(OrderedBy(g, 3)), of(condition), of(a), of(b), out, s);
    });
  }

 private:
  cuda::SelectLauncher launcher_;
};

StatusOr<std::unique_ptr<Select>> NewSelect(const Select::Spec& spec) {
  return std::make_unique<CudaSelect>(cuda::FindSelect(spec.dtype));
}

const bool registered = RegisterPrimitive<Select>(DeviceType::kCUDA, &NewSelect);

}  // namespace
}  // namespace oneflow_lite
