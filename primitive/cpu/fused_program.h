// SPDX-License-Identifier: Apache-2.0
//
// An expression as a list of the other CPU primitives' loops over a block of elements that stays in
// the first caches: each element goes through memory once, however long the expression.
#pragma once

#include <memory>
#include <vector>

#include "primitive/binary.h"
#include "primitive/copy.h"
#include "primitive/creation.h"
#include "primitive/fused_elements.h"
#include "primitive/select.h"
#include "primitive/unary.h"

namespace oneflow_lite::cpu {

// An operand of an instruction: a value of the block, or a number.
struct FusedOperand {
  int value = -1;  // negative: a number
  int input = -1;  // of which input the number is; negative: `number`
  Scalar number;
};

struct FusedInstruction {
  std::unique_ptr<Unary> unary;
  std::unique_ptr<Binary> binary;
  std::unique_ptr<Select> select;
  std::unique_ptr<Copy> copy;
  std::unique_ptr<Fill> fill;
  FusedOperand operands[3];
  DType dtype = DType::kFloat32;  // of the operands
  int result = 0;                 // a value
};

struct FusedValue {
  DType dtype = DType::kFloat32;
  int input = -1;     // the elements of this input, read as they are; not computed
  int output = -1;    // computed straight into this output, where that is dense
  int last_use = -1;  // the instruction after which its place is free; kAlways: at the end
  int place = 0;
};

struct FusedProgram {
  static constexpr int kAlways = 1 << 30;

  std::vector<FusedInstruction> instructions;
  std::vector<FusedValue> values;
  std::vector<int> outputs;                   // the value of each
  std::vector<std::unique_ptr<Copy>> copies;  // from the value to the output's dtype
  // From an input's dtype to its value's, where the input is not dense or of another dtype.
  std::vector<std::unique_ptr<Copy>> reads;  // by value; null for what is computed
  int places = 0;                            // blocks of memory that hold values
};

StatusOr<FusedProgram> MakeFusedProgram(const TypedExpression& e);

}  // namespace oneflow_lite::cpu
