// SPDX-License-Identifier: Apache-2.0
//
// What the tests of softmax share: references in float64, the promised bounds, and a fixture that
// runs both directions between guards.
#pragma once

#include "primitive/softmax.h"
#include "primitive_testing.h"

namespace oneflow_lite {

struct Problem {
  SoftmaxShape shape;
  DType dtype;
  bool log;

  int64_t outer() const { return shape.rows; }
  int64_t size() const { return shape.rows * shape.cols * shape.inner; }
  std::string Describe() const {
    return std::string(log ? "log_softmax" : "softmax") + " of " + std::to_string(shape.rows) +
           " x " + std::to_string(shape.cols) + " x " + std::to_string(shape.inner);
  }
};

// Calls f(indices of one row's elements: first, stride) for each row.
template <class F>
void ForRows(const SoftmaxShape& s, F f) {
  for (int64_t o = 0; o < s.rows; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) f(o * s.cols * s.inner + i, s.inner);
  }
}

inline std::vector<double> Reference(const Problem& p, const HostArray& x) {
  std::vector<double> y(p.size());
  ForRows(p.shape, [&](int64_t first, int64_t stride) {
    double max = -kInf;
    long double sum = 0;
    for (int64_t c = 0; c < p.shape.cols; ++c) max = std::max(max, x.Float(first + c * stride));
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      y[first + c * stride] = x.Float(first + c * stride) - max;
      sum += std::exp(y[first + c * stride]);
    }
    const double log_sum = static_cast<double>(std::log(sum));
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      double& v = y[first + c * stride];
      v = std::isnan(sum) ? kNan : p.log ? v - log_sum : std::exp(v) / static_cast<double>(sum);
    }
  });
  return y;
}

// `size` gets the larger of the two terms whose difference an element is: float32 cannot be more
// exact than those are.
inline std::vector<double> BackwardReference(const Problem& p, const HostArray& y,
                                             const HostArray& dy, std::vector<double>* size) {
  std::vector<double> dx(p.size());
  size->resize(p.size());
  ForRows(p.shape, [&](int64_t first, int64_t stride) {
    long double terms = 0;
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      const int64_t i = first + c * stride;
      terms += p.log ? dy.Float(i) : y.Float(i) * dy.Float(i);
    }
    const double sum = static_cast<double>(terms);
    for (int64_t c = 0; c < p.shape.cols; ++c) {
      const int64_t i = first + c * stride;
      const double factor = p.log ? std::exp(y.Float(i)) : y.Float(i);
      dx[i] = p.log ? dy.Float(i) - factor * sum : factor * (dy.Float(i) - sum);
      (*size)[i] = std::max(std::abs(dx[i]), std::abs(factor * sum));
    }
  });
  return dx;
}

// float32: 4e-6 relative or 1e-7 absolute for softmax, 4e-6 * max(1, |y|) for the others; the
// 16-bit floats one step of theirs more; float64 1e-13.
inline double Tolerance(DType dtype, bool relative, double want) {
  const double size = std::abs(want);
  if (dtype == DType::kFloat64)
    return relative ? 1e-13 * size + 1e-300 : 1e-13 * std::max(1.0, size);
  const double base = relative ? std::max(4e-6 * size, 1e-7) : 4e-6 * std::max(1.0, size);
  return dtype == DType::kFloat32 ? base : base + StepOf(dtype, want);
}

class SoftmaxTest : public PrimitiveTest {
 protected:
  HostArray Forward(const Problem& p, const HostArray& x, int64_t offset, bool in_place = false) {
    auto softmax = New<SoftmaxFactory>({p.dtype, p.log});
    Buffer in(*this, x, offset), out(*this, p.dtype, p.size(), offset);
    Workspace workspace(*this, softmax->WorkspaceBytes(*stream_, p.shape));
    void* memory = with_workspace_ ? workspace.data() : nullptr;
    const Buffer& y = in_place ? in : out;
    const Status s = softmax->Launch(*stream_, p.shape, in.data(), y.data(), memory);
    EXPECT_TRUE(s.ok()) << s << " " << p.Describe();
    return y.Read();
  }

  // y begins `apart` elements later than the others.
  HostArray Backward(const Problem& p, const HostArray& y, const HostArray& dy, int64_t offset,
                     bool in_place = false, int64_t apart = 0) {
    auto backward = New<SoftmaxBackwardFactory>({p.dtype, p.log});
    Buffer in(*this, y, offset + apart), grad(*this, dy, offset),
        out(*this, p.dtype, p.size(), offset);
    Workspace workspace(*this, backward->WorkspaceBytes(*stream_, p.shape));
    void* memory = with_workspace_ ? workspace.data() : nullptr;
    const Buffer& dx = in_place ? grad : out;
    const Status s = backward->Launch(*stream_, p.shape, in.data(), grad.data(), dx.data(), memory);
    EXPECT_TRUE(s.ok()) << s << " " << p.Describe();
    return dx.Read();
  }

  // Forward and backward against the reference, and twice the same bits, in place too.
  void Check(const Problem& p, int64_t offset, uint32_t seed) {
    if (LeftOut(p.dtype, p.size())) return;
    Numbers numbers(seed);
    const HostArray x = numbers.NormalArray(p.dtype, p.size(), 4);
    const HostArray y = Forward(p, x, offset);
    const std::vector<double> want = Reference(p, x);
    ExpectNear(
        y, want, [&](int64_t i) { return Tolerance(p.dtype, !p.log, want[i]); }, p.Describe());
    EXPECT_TRUE(Forward(p, x, offset, true) == y) << p.Describe() << ": in place differs";
    if (!p.log) CheckSums(p, y);

    const HostArray dy = numbers.NormalArray(p.dtype, p.size());
    const HostArray dx = Backward(p, y, dy, offset);
    std::vector<double> size;
    const std::vector<double> want_dx = BackwardReference(p, y, dy, &size);
    ExpectNear(
        dx, want_dx, [&](int64_t i) { return Tolerance(p.dtype, false, size[i]); },
        p.Describe() + " backward");
    EXPECT_TRUE(Backward(p, y, dy, offset, true) == dx) << p.Describe() << ": in place differs";
  }

  // Rows of `cols` with `pad` NaNs behind each.
  static HostArray Spread(const HostArray& x, int64_t cols, int64_t pad) {
    HostArray wide(x.dtype, x.size() / cols * (cols + pad));
    for (int64_t i = 0; i < wide.size(); ++i) {
      const int64_t row = i / (cols + pad), col = i % (cols + pad);
      wide.Set(i, col < cols ? x.Float(row * cols + col) : kNan);
    }
    return wide;
  }

  static HostArray Repeat(const HostArray& block, int64_t copies) {
    HostArray all(block.dtype, block.size() * copies);
    for (int64_t i = 0; i < copies; ++i) {
      std::copy(block.bytes.begin(), block.bytes.end(),
                all.bytes.begin() + i * static_cast<int64_t>(block.bytes.size()));
    }
    return all;
  }

  // The same bits on the CPU; on CUDA the number of rows may choose another kernel.
  static void CheckCopies(const HostArray& all, const HostArray& block, bool relative,
                          const std::string& what) {
    const int64_t copies = all.size() / block.size();
    if (all == Repeat(block, copies)) return;
    ASSERT_EQ(GetParam(), DeviceType::kCUDA) << what << ": not the same bits";
    for (int64_t i = 0; i < all.size(); ++i) {
      const double want = block.Float(i % block.size());
      ASSERT_NEAR(all.Float(i), want, 2 * Tolerance(all.dtype, relative, want)) << what << " " << i;
    }
  }

  static void CheckSums(const Problem& p, const HostArray& y) {
    if (p.shape.cols > 65536) return;
    const double bound = p.dtype == DType::kFloat16    ? 2e-3
                         : p.dtype == DType::kBFloat16 ? 2e-2
                                                       : 1e-5;
    ForRows(p.shape, [&](int64_t first, int64_t stride) {
      double sum = 0;
      for (int64_t c = 0; c < p.shape.cols; ++c) sum += y.Float(first + c * stride);
      EXPECT_NEAR(sum, 1, bound) << p.Describe();
    });
  }

  bool with_workspace_ = true;
};

}  // namespace oneflow_lite
