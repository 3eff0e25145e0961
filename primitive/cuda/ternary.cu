// SPDX-License-Identifier: Apache-2.0
//
// Functions of three operands: in packs where everything that is not one number is dense. The table
// in FindTernary names the function objects.
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/ternary_functions.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Elements, or where data is null `value` for all of them.
template <class T>
struct TernarySource {
  const T* data;
  ComputeType<T> value;

  template <int N>
  __device__ Pack<ComputeType<T>, N> Load(int64_t i) const {
    Pack<ComputeType<T>, N> wide;
    if (data) {
      const Pack<T, N> pack = LoadPack<N>(data + i);
#pragma unroll
      for (int k = 0; k < N; ++k) wide.v[k] = ConvertTo<ComputeType<T>>(pack.v[k]);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) wide.v[k] = value;
    }
    return wide;
  }
  __device__ ComputeType<T> At(int64_t offset) const {
    return data ? ConvertTo<ComputeType<T>>(data[offset]) : value;
  }
};

template <class T>
TernarySource<T> SourceOf(const TernaryOperand& o) {
  TernarySource<T> source{static_cast<const T*>(o.data), {}};
  memcpy(&source.value, &o.bits, sizeof(source.value));
  return source;
}

template <class T, class Out, class Op>
struct TernaryRun {
  TernarySource<T> a, b, c;
  Out* out;
  TernaryNumbers numbers;

  template <int N>
  __device__ void Run(int64_t i) const {
    const auto x = a.template Load<N>(i), y = b.template Load<N>(i), z = c.template Load<N>(i);
    Pack<Out, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      result.v[k] = ConvertTo<Out>(Op{}(x.v[k], y.v[k], z.v[k], numbers));
    }
    StorePack<N>(out + i, result);
  }

  // Offsets of a, b, c, out.
  __device__ void At(const int64_t (&offset)[4]) const {
    out[offset[3]] =
        ConvertTo<Out>(Op{}(a.At(offset[0]), b.At(offset[1]), c.At(offset[2]), numbers));
  }
};

template <class T, class Out, class Op>
cudaError_t LaunchTernary(const Strided<4>& g, const TernaryOperand (&operands)[3],
                          const TernaryNumbers& numbers, void* out, cudaStream_t stream) {
  const TernaryRun<T, Out, Op> run{SourceOf<T>(operands[0]), SourceOf<T>(operands[1]),
                                   SourceOf<T>(operands[2]), static_cast<Out*>(out), numbers};
  bool dense = g.ndim <= 1;
  for (int i = 0; i < 4; ++i) {
    const bool is_number = i < 3 && !operands[i].data;
    dense = dense && (is_number || g.ndim == 0 || g.strides[i][0] == 1);
  }
  if (dense) return ForPacks<kPackSize<T>>(g.numel, run, stream);
  return ForElements(g, run, stream);
}

template <class Op, bool kBool>
struct TernaryFinder {
  template <class T>
  TernaryLauncher operator()(Tag<T>) const {
    return &LaunchTernary<T, std::conditional_t<kBool, bool, T>, Op>;
  }
};
template <class Op>
TernaryLauncher TernaryFloats(DType t) {
  return VisitDeviceFloating<TernaryLauncher>(t, TernaryFinder<Op, false>{});
}
template <class Op, bool kBool = false>
TernaryLauncher TernaryNumeric(DType t) {
  return VisitDeviceNumeric<TernaryLauncher>(t, TernaryFinder<Op, kBool>{});
}

}  // namespace

TernaryLauncher FindTernary(TernaryOp op, DType t) {
  switch (op) {
    case TernaryOp::kLerp:
      return TernaryFloats<Lerp>(t);
    case TernaryOp::kAddCMul:
      return TernaryNumeric<AddCMul>(t);
    case TernaryOp::kAddCDiv:
      return TernaryFloats<AddCDiv>(t);
    case TernaryOp::kMulDiv:
      return TernaryFloats<MulDiv>(t);
    case TernaryOp::kClamp:
      if (t == DType::kBool) t = DType::kUInt8;
      return TernaryNumeric<Clamp>(t);
    case TernaryOp::kClampPart:
      return TernaryNumeric<ClampPart, /*kBool=*/true>(t);
    case TernaryOp::kIsClose:
      if (t == DType::kBool) t = DType::kUInt8;
      return TernaryNumeric<IsClose, /*kBool=*/true>(t);
    case TernaryOp::kPowSlopeA:
      return TernaryFloats<PowSlopeA>(t);
    case TernaryOp::kPowSlopeB:
      return TernaryFloats<PowSlopeB>(t);
    case TernaryOp::kMaximumSlope:
      return TernaryFloats<ChosenSlope<1, false>>(t);
    case TernaryOp::kMinimumSlope:
      return TernaryFloats<ChosenSlope<-1, false>>(t);
    case TernaryOp::kFmaxSlope:
      return TernaryFloats<ChosenSlope<1, true>>(t);
    case TernaryOp::kFminSlope:
      return TernaryFloats<ChosenSlope<-1, true>>(t);
    case TernaryOp::kFmodSlopeB:
      return TernaryFloats<FmodSlopeB>(t);
    case TernaryOp::kAtan2SlopeA:
      return TernaryFloats<Atan2SlopeA>(t);
    case TernaryOp::kLogAddExpSlope:
      return TernaryFloats<LogAddExpSlope>(t);
    case TernaryOp::kXLogYSlopeA:
      return TernaryFloats<XLogYSlopeA>(t);
    case TernaryOp::kXLogYSlopeB:
      return TernaryFloats<XLogYSlopeB>(t);
    case TernaryOp::kCopySignSlope:
      return TernaryFloats<CopySignSlope>(t);
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
