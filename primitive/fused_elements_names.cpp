// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_elements_names.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_join.h"

namespace oneflow_lite {
namespace {

using F = ElementFn;

// Function objects of elementwise/fused.cuh, or functions that CUDA overloads.
struct Name {
  F fn;
  const char* text;
};
constexpr Name kNames[] = {{F::kAdd, "Wrapped<Add>{}"},
                           {F::kSub, "Wrapped<Sub>{}"},
                           {F::kMul, "Wrapped<Mul>{}"},
                           {F::kMaximum, "Maximum{}"},
                           {F::kMinimum, "Minimum{}"},
                           {F::kFmod, "Fmod{}"},
                           {F::kRemainder, "Remainder{}"},
                           {F::kFloorDivide, "FloorDivide{}"},
                           {F::kPow, "Pow{}"},
                           {F::kDiv, "Div{}"},
                           {F::kAtan2, "Atan2{}"},
                           {F::kHypot, "Hypot{}"},
                           {F::kCopySign, "CopySign{}"},
                           {F::kXLogY, "XLogY{}"},
                           {F::kLogAddExp, "LogAddExp{}"},
                           {F::kFmax, "Fmax{}"},
                           {F::kFmin, "Fmin{}"},
                           {F::kGeluSlope, "GeluBackward{}"},
                           {F::kGeluTanhSlope, "GeluTanhBackward{}"},
                           {F::kEq, "Eq{}"},
                           {F::kNe, "Ne{}"},
                           {F::kLt, "Lt{}"},
                           {F::kLe, "Le{}"},
                           {F::kLogicalAnd, "LogicalAnd{}"},
                           {F::kLogicalOr, "LogicalOr{}"},
                           {F::kLogicalXor, "LogicalXor{}"},
                           {F::kAnd, "And{}"},
                           {F::kOr, "Or{}"},
                           {F::kXor, "Xor{}"},
                           {F::kNeg, "FusedNeg{}"},
                           {F::kAbs, "FusedAbs{}"},
                           {F::kRelu, "FusedRelu{}"},
                           {F::kSign, "FusedSign{}"},
                           {F::kSquare, "FusedSquare{}"},
                           {F::kFloor, "floor"},
                           {F::kCeil, "ceil"},
                           {F::kTrunc, "trunc"},
                           {F::kRound, "rint"},
                           {F::kBitwiseNot, "FusedBitwiseNot{}"},
                           {F::kIsInf, "FusedIsInf{}"},
                           {F::kIsFinite, "FusedIsFinite{}"},
                           {F::kIsSigned, "FusedIsSigned{}"},
                           {F::kExp, "exp"},
                           {F::kExp2, "exp2"},
                           {F::kExpm1, "expm1"},
                           {F::kLog, "log"},
                           {F::kLog1p, "log1p"},
                           {F::kLog2, "log2"},
                           {F::kLog10, "log10"},
                           {F::kSqrt, "sqrt"},
                           {F::kRsqrt, "rsqrt"},
                           {F::kSigmoid, "FusedSigmoid{}"},
                           {F::kSin, "sin"},
                           {F::kCos, "cos"},
                           {F::kTan, "tan"},
                           {F::kAsin, "asin"},
                           {F::kAcos, "acos"},
                           {F::kAtan, "atan"},
                           {F::kSinh, "sinh"},
                           {F::kCosh, "cosh"},
                           {F::kTanh, "tanh"},
                           {F::kAsinh, "asinh"},
                           {F::kAcosh, "acosh"},
                           {F::kAtanh, "atanh"},
                           {F::kErf, "erf"},
                           {F::kErfc, "erfc"},
                           {F::kErfinv, "erfinv"},
                           {F::kGelu, "FusedGelu{}"},
                           {F::kGeluTanh, "FusedGeluTanh{}"}};

const char* NameOf(ElementFn fn) {
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.fn == fn; });
  return found->text;
}

}  // namespace

std::string FusedCall(ElementFn fn, bool floating, const std::vector<std::string>& args) {
  switch (fn) {
    case F::kGt:
      return absl::StrCat("Lt{}(", args[1], ", ", args[0], ")");
    case F::kGe:
      return absl::StrCat("Le{}(", args[1], ", ", args[0], ")");
    case F::kIsNan:
      return absl::StrCat("Ne{}(", args[0], ", ", args[0], ")");
    case F::kLogicalNot:
      return absl::StrCat("!ConvertTo<bool>(", args[0], ")");
    case F::kReciprocal:
      return absl::StrCat("1 / ", args[0]);
    case F::kFloor:
    case F::kCeil:
    case F::kTrunc:
    case F::kRound:
      if (!floating) return args[0];  // integers are what these make of them
      break;
    default:
      break;
  }
  return absl::StrCat(NameOf(fn), "(", absl::StrJoin(args, ", "), ")");
}

}  // namespace oneflow_lite
