// SPDX-License-Identifier: Apache-2.0
//
// One expression per function over contiguous chunks of the compute type, which the compiler
// vectorises; the table in FindBinary names them. Broadcast, strided and 16-bit operands are
// brought into that form chunk by chunk. Arithmetic takes floats as they lie: binary_dense.cpp.
#include "primitive/binary.h"

#include <cmath>
#include <limits>

#include "oneflow_lite/core/elementwise_order.h"
#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/binary-inl.h"
#include "primitive/cpu/gelu-inl.h"
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_ONCE_
namespace oneflow_lite {
// a to the power of b by squaring, wrapping around.
template <class T>
T Power(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? T(1) : a == -1 ? a : T(0);
  }
  auto result = Raw(T(1)), square = Raw(a);
  for (auto rest = Raw(b); rest > 0; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// Null where there is no code for the compute type.
BinaryLoop FindBinary(BinaryOp op, DType dtype) {
#define OFL_FN(expression) [](auto a, auto b) { return expression; }
  switch (op) {
    case BinaryOp::kAdd:
      return All(dtype, OFL_FN(Raw(a) + Raw(b)));
    case BinaryOp::kSub:
      return Numbers(dtype, OFL_FN(Raw(a) - Raw(b)));
    case BinaryOp::kMul:
      return All(dtype, OFL_FN(Raw(a) * Raw(b)));
    case BinaryOp::kDiv:
      return Floats(dtype, OFL_FN(a / b));
    case BinaryOp::kEq:
      return All(dtype, OFL_FN(a == b));
    case BinaryOp::kNe:
      return All(dtype, OFL_FN(a != b));
    case BinaryOp::kLt:
      return All(dtype, OFL_FN(a < b));
    case BinaryOp::kLe:
      return All(dtype, OFL_FN(a <= b));
    case BinaryOp::kGt:
      return All(dtype, OFL_FN(a > b));
    case BinaryOp::kGe:
      return All(dtype, OFL_FN(a >= b));
    case BinaryOp::kReluBackward:
      return Floats(dtype, OFL_FN(b <= 0 ? decltype(a)(0) : a));
    case BinaryOp::kGeluBackward:
      return Vectors(dtype, [](auto d, auto a, auto b)
                                OFL_SIMD_LAMBDA { return hn::Mul(a, GeluSlope(d, b)); });
    case BinaryOp::kGeluTanhBackward:
      return Vectors(dtype, [](auto d, auto a, auto b)
                                OFL_SIMD_LAMBDA { return hn::Mul(a, GeluTanhSlope(d, b)); });
    case BinaryOp::kMaximum:
      return All(dtype, OFL_FN(a > b || a != a ? a : b));
    case BinaryOp::kMinimum:
      return All(dtype, OFL_FN(a < b || a != a ? a : b));
    case BinaryOp::kPrelu:
      return Floats(dtype, OFL_FN(a > 0 ? a : a * b));
    case BinaryOp::kPow:
      return Integers(dtype, OFL_FN(Power(a, b)));
    case BinaryOp::kAnd:
      return Bits(dtype, OFL_FN(static_cast<decltype(a)>(a & b)));
    case BinaryOp::kOr:
      return Bits(dtype, OFL_FN(static_cast<decltype(a)>(a | b)));
    case BinaryOp::kXor:
      return Bits(dtype, OFL_FN(static_cast<decltype(a)>(a ^ b)));
    default:
      return nullptr;
  }
#undef OFL_FN
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindBinary);

// Where a row of the innermost dim begins in each operand.
class RowStarts {
 public:
  RowStarts(const Elementwise<3>& g, int64_t row) : g_(g) {
    for (int d = g.ndim - 2; d >= 0; --d) {
      index_[d] = row % g.dims[d];
      row /= g.dims[d];
      for (int k = 0; k < 3; ++k) starts_[k] += index_[d] * g.strides[k][d];
    }
  }
  int64_t at(int operand) const { return starts_[operand]; }
  // Rows from here on that lie stride(operand) apart.
  int64_t left() const { return g_.ndim < 2 ? 1 : g_.dims[g_.ndim - 2] - index_[g_.ndim - 2]; }
  int64_t stride(int operand) const { return g_.ndim < 2 ? 0 : g_.strides[operand][g_.ndim - 2]; }
  // n <= left() rows on.
  void Next(int64_t n) {
    for (int d = g_.ndim - 2; d >= 0; --d, n = 1) {
      for (int k = 0; k < 3; ++k) starts_[k] += n * g_.strides[k][d];
      if ((index_[d] += n) < g_.dims[d]) return;
      for (int k = 0; k < 3; ++k) starts_[k] -= g_.dims[d] * g_.strides[k][d];
      index_[d] = 0;
    }
  }

 private:
  const Elementwise<3>& g_;
  int64_t index_[kMaxDims] = {};
  int64_t starts_[3] = {};
};

class CpuBinary final : public Binary {
 public:
  CpuBinary(const Spec& spec, BinaryLoop loop)
      : loop_(loop),
        dense_(FindDenseBinary(spec.op, spec.dtype)),
        powers_(spec.op == BinaryOp::kPow),
        dtype_(spec.dtype),
        item_(static_cast<int64_t>(SizeOf(spec.dtype))),
        pass_(TypesOf(spec, ComputeType(spec.dtype))),
        dense_pass_(TypesOf(spec, spec.dtype)),
        as_it_lies_{spec.a.value_or(spec.dtype) == spec.dtype,
                    spec.b.value_or(spec.dtype) == spec.dtype} {}

  Status Launch(Stream&, const Elementwise<3>& g, const Operand& a, const Operand& b,
                void* out) const override {
    if (dense_ && (!powers_ || (a.data && !b.data && IsShortPower(b.number)))) {
      LaunchDense(g, a, b, out);
    } else {
      pass_.Run(g, {{{a.data, &a.number}, {b.data, &b.number}}}, out,
                [&](int64_t n, const auto& in, void* y) { loop_(n, in[0], in[1], y); });
    }
    return OkStatus();
  }

 private:
  static ChunkedTypes<2> TypesOf(const Spec& spec, DType loop) {
    const bool truth = IsComparison(spec.op);
    return {.in = {spec.a.value_or(spec.dtype), spec.b.value_or(spec.dtype)},
            .common = spec.dtype,
            .loop = loop,
            .result = truth ? DType::kBool : loop,
            .out = truth ? DType::kBool : spec.dtype};
  }

  void LaunchDense(const Elementwise<3>& given, const Operand& a, const Operand& b,
                   void* out) const {
    const Elementwise<3> g = OrderedBy(given, 2);
    const DenseOperand u = DenseNumber(dtype_, a.number), v = DenseNumber(dtype_, b.number);
    if (LiesInRows(g, a, b)) return LaunchRows(g, {a.data, u.number}, {b.data, v.number}, out);
    dense_pass_.Run(g, {{{a.data}, {b.data}}}, out, [&](int64_t n, const auto& in, void* y) {
      dense_(1, n, {a.data ? in[0] : nullptr, u.number}, {b.data ? in[1] : nullptr, v.number}, y,
             0);
    });
  }

  // Whether all elements in memory lie in one row, in the dtype, or in long rows for each of which
  // an operand may have a single element. Of others several share a chunk.
  bool LiesInRows(const Elementwise<3>& g, const Operand& a, const Operand& b) const {
    constexpr int64_t kLong = 64;  // bytes
    if ((a.data && !as_it_lies_[0]) || (b.data && !as_it_lies_[1])) return false;
    if (g.ndim == 0) return true;
    const int last = g.ndim - 1;
    if (g.ndim >= 2 && g.dims[last] * item_ < kLong) return false;
    const auto row = [&](int i) {
      return g.strides[i][last] == 1 || (g.ndim >= 2 && g.strides[i][last] == 0);
    };
    return g.strides[2][last] == 1 && (!a.data || row(0)) && (!b.data || row(1));
  }
  void LaunchRows(const Elementwise<3>& g, const DenseOperand& a, const DenseOperand& b,
                  void* out) const {
    const int64_t cols = g.ndim == 0 ? 1 : g.dims[g.ndim - 1];
    const auto in_rows = [&](const DenseOperand& o, int k, const RowStarts& row, int64_t from) {
      if (!o.data) return o;
      const int64_t stride = g.ndim == 0 ? 1 : g.strides[k][g.ndim - 1];
      const char* p = static_cast<const char*>(o.data) + (row.at(k) + from * stride) * item_;
      return DenseOperand{p, 0, row.stride(k), stride == 0};
    };
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      RowStarts row(g, begin / cols);
      int64_t from = begin % cols;
      for (int64_t left = end - begin, rows, n; left > 0; left -= rows * n, from = 0) {
        rows = from == 0 && left >= cols ? std::min(row.left(), left / cols) : 1;
        n = std::min(cols - from, left);
        dense_(rows, n, in_rows(a, 0, row, from), in_rows(b, 1, row, from),
               static_cast<char*>(out) + (row.at(2) + from) * item_, row.stride(2));
        row.Next(rows);
      }
    });
  }

  BinaryLoop loop_;
  DenseBinaryLoop dense_;
  bool powers_;
  DType dtype_;
  int64_t item_;
  ChunkedPass<2> pass_, dense_pass_;
  bool as_it_lies_[2];
};

StatusOr<std::unique_ptr<Binary>> NewBinary(const Binary::Spec& spec) {
  BinaryLoop loop = HWY_DYNAMIC_DISPATCH(FindBinary)(spec.op, ComputeType(spec.dtype));
  if (!loop) loop = FindDivision(spec.op, spec.dtype);
  if (!loop) loop = FindBinaryMath(spec.op, spec.dtype);
  if (!loop) return NoPrimitiveFor(Binary::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuBinary>(spec, loop);
}

const bool registered = RegisterPrimitive<Binary>(DeviceType::kCPU, &NewBinary);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
