// SPDX-License-Identifier: Apache-2.0
//
// Select in the geometries that have code of their own: packs (dense, beside numbers, at any
// offset), elements (broadcast, transposed, padded), chunks of the CPU and their ends.
#include "oneflow_lite/core/elementwise.h"
#include "primitive/select.h"
#include "primitive_geometry.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

struct SelectCase {
  Strides shape, condition, a, b, out;
};

class SelectTest : public PrimitiveTest {
 protected:
  // An operand of which `number` says whether it is given as one.
  Select::Operand OperandOf(const Buffer& buffer, const HostArray& host, bool number) {
    Select::Operand operand;
    if (number) {
      std::memcpy(&operand.bits, host.bytes.data(), SizeOf(host.dtype));
    } else {
      operand.data = buffer.data();
    }
    return operand;
  }

  // Bit i of `numbers`: operand i is a number, and its strides are 0.
  void Check(DType dtype, const SelectCase& c, int numbers, int64_t offset) {
    const auto at_condition = Offsets(c.shape, c.condition), at_a = Offsets(c.shape, c.a),
               at_b = Offsets(c.shape, c.b), at_out = Offsets(c.shape, c.out);
    Numbers random(11);
    const HostArray condition = random.AnyArray(DType::kBool, Extent(at_condition)),
                    a = random.AnyArray(dtype, Extent(at_a)),
                    b = random.AnyArray(dtype, Extent(at_b));
    Buffer in_condition(*this, condition, offset), in_a(*this, a, offset), in_b(*this, b, offset),
        out(*this, dtype, Extent(at_out), offset);
    HostArray want = out.Read();
    for (size_t i = 0; i < at_out.size(); ++i) {
      const bool chosen = condition.Int(at_condition[i]) != 0;
      const HostArray& from = chosen ? a : b;
      const int64_t place = chosen ? at_a[i] : at_b[i];
      const size_t item = SizeOf(dtype);
      std::memcpy(want.bytes.data() + static_cast<size_t>(at_out[i]) * item,
                  from.bytes.data() + static_cast<size_t>(place) * item, item);
    }
    const auto g = MakeElementwise<4>(c.shape, {c.condition, c.a, c.b, c.out});
    ASSERT_TRUE(New<SelectFactory>({dtype})
                    ->Launch(*stream_, g, OperandOf(in_condition, condition, numbers & 1),
                             OperandOf(in_a, a, numbers & 2), OperandOf(in_b, b, numbers & 4),
                             out.data())
                    .ok());
    EXPECT_TRUE(out.Read() == want) << Name(dtype) << ", shape " << ToString(c.shape)
                                    << ", numbers " << numbers << ", offset " << offset;
  }
};

TEST_P(SelectTest, EveryDTypeInEveryGeometry) {
  const SelectCase kCases[] = {
      {{}, {}, {}, {}, {}},
      {{0}, {1}, {1}, {1}, {1}},
      {{1}, {1}, {1}, {1}, {1}},
      {{1037}, {1}, {1}, {1}, {1}},
      {{70001}, {1}, {1}, {1}, {1}},
      {{37, 65}, {0, 1}, {65, 1}, {65, 1}, {65, 1}},   // a row of conditions for all rows
      {{37, 65}, {1, 0}, {1, 37}, {0, 1}, {65, 1}},    // a column of them; a transposed
      {{37, 65}, {65, 1}, {130, 2}, {0, 0}, {70, 1}},  // every other, one element, padded rows
      {{3, 5, 7, 11}, {77, 0, 11, 1}, {385, 11, 55, 1}, {0, 0, 0, 1}, {385, 77, 11, 1}},
      {{2, 600}, {600, 1}, {600, 1}, {0, 1}, {1, 2}},  // out transposed
  };
  for (const DType dtype : kAllTypes) {
    for (const SelectCase& c : kCases) {
      for (const int64_t offset : {0, 1}) Check(dtype, c, 0, offset);
    }
  }
}

TEST_P(SelectTest, NumbersOnAnySide) {
  for (const DType dtype : kAllTypes) {
    for (int numbers = 1; numbers < 8; ++numbers) {
      for (const int64_t n : {1, 5, 513, 70001}) {
        const auto stride = [&](int i) { return Strides{numbers >> i & 1 ? 0 : 1}; };
        Check(dtype, {{n}, stride(0), stride(1), stride(2), {1}}, numbers, 0);
      }
      const auto strides = [&](int i) { return numbers >> i & 1 ? Strides{0, 0} : Strides{1, 37}; };
      Check(dtype, {{37, 65}, strides(0), strides(1), strides(2), {65, 1}}, numbers, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SelectTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
