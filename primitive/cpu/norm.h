// SPDX-License-Identifier: Apache-2.0
//
// The CPU's layer_norm and rms_norm are one algorithm: rms_norm centres on 0 and has no bias. The
// two primitives (layer_norm.cpp, rms_norm.cpp) put their arguments into LayerNorm's.
#pragma once

#include "primitive/layer_norm.h"
#include "primitive/norm.h"
#include "primitive/rms_norm.h"

namespace oneflow_lite {

struct NormKernels;          // norm.cpp
struct NormBackwardKernels;  // norm_backward.h

class NormForward {
 public:
  // `centred`: layer_norm.
  NormForward(const NormSpec& spec, bool centred);
  size_t WorkspaceBytes(const NormShape& shape) const;
  Status Launch(const NormShape& shape, LayerNorm::Args args, void* workspace) const;

 private:
  void SplitRow(const NormShape& shape, const LayerNorm::Args& args, int64_t row) const;

  NormSpec spec_;
  const NormKernels* kernels_;
};

class NormBackward {
 public:
  NormBackward(const NormSpec& spec, bool centred);
  size_t WorkspaceBytes(const NormShape& shape) const;
  Status Launch(const NormShape& shape, const LayerNormBackward::Args& args, void* workspace) const;

 private:
  NormSpec spec_;
  const NormBackwardKernels &from_x_, &from_y_;
};

// Why there is no primitive for a spec; OK where there is one.
Status CheckNormSpec(const char* primitive, const NormSpec& spec);

// RmsNorm's arguments among LayerNorm's.
inline LayerNorm::Args ToLayerNorm(const LayerNorm::Args& a) { return a; }
inline LayerNormBackward::Args ToLayerNorm(const LayerNormBackward::Args& a) { return a; }
inline LayerNorm::Args ToLayerNorm(const RmsNorm::Args& a) {
  return {
      .x = a.x, .residual = a.residual, .weight = a.weight, .y = a.y, .sum = a.sum, .rstd = a.rstd};
}
inline LayerNormBackward::Args ToLayerNorm(const RmsNormBackward::Args& a) {
  return {.x = a.x,
          .y = a.y,
          .dy = a.dy,
          .weight = a.weight,
          .rstd = a.rstd,
          .dsum = a.dsum,
          .dx = a.dx,
          .dweight = a.dweight};
}

// P is one of the four primitives; Algorithm NormForward or NormBackward.
template <class P, class Algorithm, bool kCentred>
class CpuNorm final : public P {
 public:
  explicit CpuNorm(const NormSpec& spec) : algorithm_(spec, kCentred) {}

  size_t WorkspaceBytes(const Stream&, const NormShape& shape) const override {
    return algorithm_.WorkspaceBytes(shape);
  }
  Status Launch(Stream&, const NormShape& shape, const typename P::Args& args,
                void* workspace) const override {
    if (shape.rows <= 0 || shape.cols <= 0) return OkStatus();
    return algorithm_.Launch(shape, ToLayerNorm(args), workspace);
  }
  static StatusOr<std::unique_ptr<P>> New(const NormSpec& spec) {
    OFL_RETURN_IF_ERROR(CheckNormSpec(P::kName, spec));
    return std::make_unique<CpuNorm>(spec);
  }

 private:
  Algorithm algorithm_;
};

}  // namespace oneflow_lite
