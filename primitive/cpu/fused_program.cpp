// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/fused_program.h"

#include <algorithm>
#include <map>
#include <optional>

namespace oneflow_lite::cpu {
namespace {

constexpr DeviceType kCPU = DeviceType::kCPU;
using F = ElementFn;

std::optional<UnaryOp> UnaryOf(ElementFn fn) {
  using U = UnaryOp;
  static const auto* ops = new std::map<F, U>{{F::kNeg, U::kNeg},
                                              {F::kAbs, U::kAbs},
                                              {F::kRelu, U::kRelu},
                                              {F::kSign, U::kSign},
                                              {F::kSquare, U::kSquare},
                                              {F::kFloor, U::kFloor},
                                              {F::kCeil, U::kCeil},
                                              {F::kTrunc, U::kTrunc},
                                              {F::kRound, U::kRound},
                                              {F::kBitwiseNot, U::kBitwiseNot},
                                              {F::kIsNan, U::kIsNan},
                                              {F::kIsInf, U::kIsInf},
                                              {F::kIsFinite, U::kIsFinite},
                                              {F::kIsSigned, U::kIsSigned},
                                              {F::kExp, U::kExp},
                                              {F::kExp2, U::kExp2},
                                              {F::kExpm1, U::kExpm1},
                                              {F::kLog, U::kLog},
                                              {F::kLog1p, U::kLog1p},
                                              {F::kLog2, U::kLog2},
                                              {F::kLog10, U::kLog10},
                                              {F::kSqrt, U::kSqrt},
                                              {F::kRsqrt, U::kRsqrt},
                                              {F::kReciprocal, U::kReciprocal},
                                              {F::kSigmoid, U::kSigmoid},
                                              {F::kSin, U::kSin},
                                              {F::kCos, U::kCos},
                                              {F::kTan, U::kTan},
                                              {F::kAsin, U::kAsin},
                                              {F::kAcos, U::kAcos},
                                              {F::kAtan, U::kAtan},
                                              {F::kSinh, U::kSinh},
                                              {F::kCosh, U::kCosh},
                                              {F::kTanh, U::kTanh},
                                              {F::kAsinh, U::kAsinh},
                                              {F::kAcosh, U::kAcosh},
                                              {F::kAtanh, U::kAtanh},
                                              {F::kErf, U::kErf},
                                              {F::kErfc, U::kErfc},
                                              {F::kErfinv, U::kErfinv},
                                              {F::kGelu, U::kGelu},
                                              {F::kGeluTanh, U::kGeluTanh},
                                              {F::kLogicalNot, U::kLogicalNot}};
  const auto found = ops->find(fn);
  return found == ops->end() ? std::nullopt : std::optional(found->second);
}

std::optional<BinaryOp> BinaryOf(ElementFn fn) {
  using B = BinaryOp;
  static const auto* ops = new std::map<F, B>{{F::kAdd, B::kAdd},
                                              {F::kSub, B::kSub},
                                              {F::kMul, B::kMul},
                                              {F::kMaximum, B::kMaximum},
                                              {F::kMinimum, B::kMinimum},
                                              {F::kFmod, B::kFmod},
                                              {F::kRemainder, B::kRemainder},
                                              {F::kFloorDivide, B::kFloorDivide},
                                              {F::kPow, B::kPow},
                                              {F::kDiv, B::kDiv},
                                              {F::kAtan2, B::kAtan2},
                                              {F::kHypot, B::kHypot},
                                              {F::kCopySign, B::kCopySign},
                                              {F::kXLogY, B::kXLogY},
                                              {F::kLogAddExp, B::kLogAddExp},
                                              {F::kFmax, B::kFmax},
                                              {F::kFmin, B::kFmin},
                                              {F::kGeluSlope, B::kGeluBackward},
                                              {F::kGeluTanhSlope, B::kGeluTanhBackward},
                                              {F::kEq, B::kEq},
                                              {F::kNe, B::kNe},
                                              {F::kLt, B::kLt},
                                              {F::kLe, B::kLe},
                                              {F::kGt, B::kGt},
                                              {F::kGe, B::kGe},
                                              {F::kLogicalAnd, B::kLogicalAnd},
                                              {F::kLogicalOr, B::kLogicalOr},
                                              {F::kLogicalXor, B::kLogicalXor},
                                              {F::kAnd, B::kAnd},
                                              {F::kOr, B::kOr},
                                              {F::kXor, B::kXor}};
  const auto found = ops->find(fn);
  return found == ops->end() ? std::nullopt : std::optional(found->second);
}

// Whether integers are what the function makes of them.
bool KeepsIntegers(ElementFn fn) {
  return fn == F::kFloor || fn == F::kCeil || fn == F::kTrunc || fn == F::kRound;
}

class Builder {
 public:
  Builder(const TypedExpression& e, FusedProgram* program) : e_(e), p_(*program) {}

  Status Run() {
    for (size_t i = 0; i < e_.expression.steps().size(); ++i) {
      OFL_ASSIGN_OR_RETURN(FusedOperand found, Step(static_cast<int>(i)));
      steps_.push_back(found);
    }
    for (size_t j = 0; j < e_.outputs.size(); ++j) OFL_RETURN_IF_ERROR(Output(j));
    Place();
    return OkStatus();
  }

 private:
  int NewValue(DType dtype) {
    p_.values.push_back({.dtype = dtype});
    p_.reads.push_back(nullptr);
    return static_cast<int>(p_.values.size()) - 1;
  }

  static FusedOperand ValueOf(int value) {
    FusedOperand o;
    o.value = value;
    return o;
  }

  template <class P>
  static StatusOr<std::unique_ptr<P>> New(const typename P::Spec& spec) {
    return NewPrimitive<PrimitiveFactory<P>>(kCPU, spec);
  }

  void Push(FusedInstruction instruction) {
    for (const FusedOperand& o : instruction.operands) {
      if (o.value < 0) continue;
      int& last = p_.values[o.value].last_use;
      last = std::max(last, static_cast<int>(p_.instructions.size()));
    }
    p_.instructions.push_back(std::move(instruction));
  }

  StatusOr<FusedOperand> Step(int i) {
    const Expression::Step& step = e_.expression.steps()[i];
    FusedOperand found;
    if (step.fn == F::kConstant) {
      found.number = step.number;
      return found;
    }
    if (step.fn == F::kInput) {
      if (e_.inputs[step.input].strength == ElementType::kNumber) {
        found.input = step.input;
        return found;
      }
      const DType from = e_.inputs[step.input].dtype;
      found.value = NewValue(ComputeType(from));
      p_.values[found.value].input = step.input;
      OFL_ASSIGN_OR_RETURN(p_.reads[found.value],
                           New<Copy>({.from = from, .to = ComputeType(from)}));
      return found;
    }
    if (step.fn == F::kCast) return Cast(step, i);
    return Apply(step, i);
  }

  StatusOr<FusedOperand> Cast(const Expression::Step& step, int i) {
    OFL_ASSIGN_OR_RETURN(FusedOperand x, As(step.args[0], e_.taken[i]));
    OFL_ASSIGN_OR_RETURN(x, Held(x, e_.taken[i]));
    OFL_ASSIGN_OR_RETURN(x, Converted(x, e_.taken[i], step.dtype));
    return Converted(x, step.dtype, ComputeType(step.dtype));
  }

  StatusOr<FusedOperand> Converted(const FusedOperand& x, DType from, DType to) {
    if (from == to) return x;
    FusedInstruction copy;
    OFL_ASSIGN_OR_RETURN(copy.copy, New<Copy>({.from = from, .to = to}));
    copy.operands[0] = x;
    copy.dtype = from;
    copy.result = NewValue(to);
    Push(std::move(copy));
    return ValueOf(p_.instructions.back().result);
  }

  // A step's value in another dtype; a number as it is.
  StatusOr<FusedOperand> As(int step, DType dtype) {
    const FusedOperand& x = steps_[step];
    if (x.value < 0 || p_.values[x.value].dtype == dtype) return x;
    const auto [found, is_new] = converted_.try_emplace({x.value, dtype}, FusedOperand{});
    if (is_new) {
      OFL_ASSIGN_OR_RETURN(found->second, Converted(x, p_.values[x.value].dtype, dtype));
    }
    return found->second;
  }

  // A number as a value.
  StatusOr<FusedOperand> Held(const FusedOperand& x, DType dtype) {
    if (x.value >= 0) return x;
    FusedInstruction fill;
    OFL_ASSIGN_OR_RETURN(fill.fill, New<Fill>({.dtype = dtype}));
    fill.operands[0] = x;
    fill.dtype = dtype;
    fill.result = NewValue(dtype);
    Push(std::move(fill));
    return ValueOf(p_.instructions.back().result);
  }

  StatusOr<FusedOperand> Apply(const Expression::Step& step, int i) {
    const DType taken = e_.taken[i];
    FusedInstruction next;
    next.dtype = taken;
    const int arity = step.arity();
    for (int k = 0; k < arity; ++k) {
      const DType dtype = step.fn == F::kWhere && k == 0 ? DType::kBool : taken;
      OFL_ASSIGN_OR_RETURN(next.operands[k], As(step.args[k], dtype));
    }
    if (arity == 1 && KeepsIntegers(step.fn) && !IsFloating(taken)) {
      return Held(next.operands[0], taken);
    }
    if (step.fn == F::kWhere) {
      OFL_ASSIGN_OR_RETURN(next.operands[0], Held(next.operands[0], DType::kBool));
      OFL_ASSIGN_OR_RETURN(next.select, New<Select>({.dtype = taken}));
    } else if (arity == 1) {
      OFL_ASSIGN_OR_RETURN(next.operands[0], Held(next.operands[0], taken));
      OFL_ASSIGN_OR_RETURN(next.unary, New<Unary>({.op = *UnaryOf(step.fn), .dtype = taken}));
    } else {
      if (next.operands[0].value < 0 && next.operands[1].value < 0) {
        OFL_ASSIGN_OR_RETURN(next.operands[0], Held(next.operands[0], taken));
      }
      OFL_ASSIGN_OR_RETURN(next.binary, New<Binary>({.op = *BinaryOf(step.fn), .dtype = taken}));
    }
    next.result = NewValue(e_.types[i].computed());
    Push(std::move(next));
    return ValueOf(p_.instructions.back().result);
  }

  Status Output(size_t j) {
    const int step = e_.expression.outputs()[j];
    OFL_ASSIGN_OR_RETURN(const FusedOperand x, Held(steps_[step], e_.types[step].computed()));
    FusedValue& value = p_.values[x.value];
    value.last_use = FusedProgram::kAlways;
    if (value.input < 0 && value.output < 0 && value.dtype == e_.outputs[j]) {
      value.output = static_cast<int>(j);
    }
    p_.outputs.push_back(x.value);
    p_.copies.emplace_back();
    OFL_ASSIGN_OR_RETURN(p_.copies.back(), New<Copy>({.from = value.dtype, .to = e_.outputs[j]}));
    return OkStatus();
  }

  // A value takes a place where it is made, and leaves it after its last use.
  void Place() {
    std::vector<int> free;
    const auto take = [&](FusedValue& v) {
      if (free.empty()) free.push_back(p_.places++);
      v.place = free.back();
      free.pop_back();
    };
    for (FusedValue& v : p_.values) {
      if (v.input >= 0) take(v);  // read before the first instruction
    }
    for (size_t i = 0; i < p_.instructions.size(); ++i) {
      take(p_.values[p_.instructions[i].result]);
      for (size_t v = 0; v < p_.values.size(); ++v) {
        if (p_.values[v].last_use == static_cast<int>(i)) free.push_back(p_.values[v].place);
      }
    }
  }

  const TypedExpression& e_;
  FusedProgram& p_;
  std::vector<FusedOperand> steps_;
  std::map<std::pair<int, DType>, FusedOperand> converted_;
};

}  // namespace

StatusOr<FusedProgram> MakeFusedProgram(const TypedExpression& e) {
  FusedProgram program;
  OFL_RETURN_IF_ERROR(Builder(e, &program).Run());
  return program;
}

}  // namespace oneflow_lite::cpu
