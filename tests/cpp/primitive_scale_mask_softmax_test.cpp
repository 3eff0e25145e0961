// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask), forward and backward, against float64: every kind of mask in every
// geometry, causal matrices of any form, and widths around the dispatch boundaries.
#include "primitive/scale_mask_softmax.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

// Around vectors and packs, what lanes, blocks and clusters hold in registers, of rows that are
// whole packs and of others, and rows that are read twice.
constexpr int64_t kWidths[] = {
    1,    2,    7,    8,    9,    31,   32,    33,    64,    65,    127,   128,   129,   137,  257,
    265,  385,  512,  521,  641,  777,  1000,  1024,  1032,  1281,  1289,  2047,  2048,  2056, 4096,
    4097, 5121, 5129, 8192, 8200, 8201, 10250, 16384, 16392, 33000, 65536, 81921, 131080};

struct Problem {
  int64_t batch, heads;
  ScaleMaskSoftmaxShape shape;
  DType dtype;
  bool has_mask = false;
  DType mask_dtype = DType::kBool;
  int64_t mask_size = 0;

  std::string Describe() const {
    return std::to_string(batch) + " x " + std::to_string(heads) + " x " +
           std::to_string(shape.queries) + " x " + std::to_string(shape.cols) +
           (shape.causal ? " causal" : "") + (shape.zero_masked_rows ? " zero" : "") +
           (has_mask ? std::string(" mask ") + Name(mask_dtype) : "");
  }
};

Problem MakeProblem(DType dtype, int64_t batch, int64_t heads, int64_t queries, int64_t cols) {
  Problem p{batch, heads, {}, dtype};
  p.shape.rows = batch * heads * queries;
  p.shape.cols = cols;
  p.shape.queries = queries;
  p.shape.scale = 0.625;
  return p;
}

// Bit 0 of `form` gives the mask batches of its own, bit 1 heads, bit 2 queries, bit 3 columns.
void AddMask(Problem& p, int form, DType dtype) {
  p.has_mask = true;
  p.mask_dtype = dtype;
  const int64_t b = form & 1 ? p.batch : 1, h = form & 2 ? p.heads : 1;
  const int64_t q = form & 4 ? p.shape.queries : 1, k = form & 8 ? p.shape.cols : 1;
  p.mask_size = b * h * q * k;
  MaskGeometry& m = p.shape.mask;
  m.dims[0] = p.batch;
  m.dims[1] = p.heads;
  m.dims[2] = p.shape.queries;
  m.strides[0] = form & 1 ? h * q * k : 0;
  m.strides[1] = form & 2 ? q * k : 0;
  m.strides[2] = form & 4 ? k : 0;
  m.col_stride = form & 8 ? 1 : 0;
}

std::vector<double> Reference(const Problem& p, const HostArray& x, const HostArray& mask) {
  const ScaleMaskSoftmaxShape& s = p.shape;
  std::vector<double> y(s.rows * s.cols);
  for (int64_t r = 0; r < s.rows; ++r) {
    double max = -kInf;
    double* row = y.data() + r * s.cols;
    for (int64_t c = 0; c < s.cols; ++c) {
      row[c] = x.Float(r * s.cols + c) * s.scale;
      bool hidden = c >= s.Visible(r);
      if (p.has_mask) {
        const int64_t at = s.mask.Offset(r) + c * s.mask.col_stride;
        const double m = mask.dtype == DType::kBool ? (mask.Int(at) ? 0 : -kInf) : mask.Float(at);
        if (m == -kInf) hidden = true;
        if (!hidden) row[c] += m;
      }
      if (hidden) row[c] = -kInf;
      max = std::max(max, row[c]);
    }
    long double sum = 0;
    for (int64_t c = 0; c < s.cols; ++c) sum += std::exp(row[c] - max);
    for (int64_t c = 0; c < s.cols; ++c) {
      row[c] = max == -kInf ? (s.zero_masked_rows ? 0 : kNan)
                            : static_cast<double>(std::exp(row[c] - max) / sum);
    }
  }
  return y;
}

double Tolerance(DType dtype, double want) {
  if (dtype == DType::kFloat64) return 1e-13 * want + 1e-15;
  return std::max(4e-6 * want, 1e-7) + (SizeOf(dtype) == 2 ? StepOf(dtype, want) : 0);
}

class ScaleMaskSoftmaxTest : public PrimitiveTest {
 protected:
  HostArray Forward(const Problem& p, const HostArray& x, const HostArray& mask, int64_t offset) {
    auto primitive = New<ScaleMaskSoftmaxFactory>({p.dtype, p.mask_dtype});
    Buffer in(*this, x, offset), m(*this, mask), out(*this, p.dtype, x.size(), offset);
    Workspace workspace(*this, primitive->WorkspaceBytes(*stream_, p.shape));
    const Status status =
        primitive->Launch(*stream_, p.shape, in.data(), p.has_mask ? m.data() : nullptr, out.data(),
                          workspace.data());
    EXPECT_TRUE(status.ok()) << status << " " << p.Describe();
    return out.Read();
  }

  HostArray Backward(const Problem& p, const HostArray& y, const HostArray& dy, int64_t offset) {
    auto primitive = New<ScaleMaskSoftmaxBackwardFactory>({p.dtype});
    Buffer in(*this, y, offset), grad(*this, dy, offset), out(*this, p.dtype, y.size(), offset);
    Workspace workspace(*this, primitive->WorkspaceBytes(*stream_, p.shape));
    const Status status =
        primitive->Launch(*stream_, p.shape, in.data(), grad.data(), out.data(), workspace.data());
    EXPECT_TRUE(status.ok()) << status << " " << p.Describe();
    return out.Read();
  }

  // dx from the very y that came out; what causality hides is NaN in dy and must not be seen.
  void CheckBackward(const Problem& p, const HostArray& y, int64_t offset, Numbers& numbers) {
    const ScaleMaskSoftmaxShape& s = p.shape;
    HostArray dy = numbers.NormalArray(p.dtype, y.size());
    std::vector<double> want(y.size()), size(y.size());
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t first = r * s.cols, seen = s.Visible(r);
      double sum = 0, absolute = 0;
      for (int64_t c = 0; c < seen; ++c) {
        sum += y.Float(first + c) * dy.Float(first + c);
        absolute += std::abs(y.Float(first + c) * dy.Float(first + c));
      }
      for (int64_t c = 0; c < s.cols; ++c) {
        const double v = y.Float(first + c), g = dy.Float(first + c);
        want[first + c] = c < seen ? s.scale * v * (g - sum) : 0;
        size[first + c] = c < seen ? v * (std::abs(g) + absolute) : 0;
        if (c >= seen) dy.Set(first + c, kNan);
      }
    }
    const auto tolerance = [&](int64_t i) {
      if (p.dtype == DType::kFloat64) return 1e-13 * size[i];
      return 4e-6 * size[i] + (SizeOf(p.dtype) == 2 ? StepOf(p.dtype, want[i]) : 1e-12);
    };
    ExpectNear(Backward(p, y, dy, offset), want, tolerance, p.Describe() + " backward");
  }

  void Check(const Problem& p, int64_t offset) {
    if (LeftOut(p.dtype, p.shape.rows * p.shape.cols)) return;
    Numbers numbers(static_cast<uint32_t>(p.shape.cols + p.shape.rows));
    const HostArray x = numbers.NormalArray(p.dtype, p.shape.rows * p.shape.cols, 3);
    HostArray mask(p.mask_dtype, p.mask_size);
    for (int64_t i = 0; i < p.mask_size; ++i) {
      const bool hides = numbers.Int(0, 3) == 0;
      if (p.mask_dtype == DType::kBool) {
        mask.SetInt(i, !hides);
      } else {
        mask.Set(i, hides ? -kInf : numbers.Normal());
      }
    }
    const HostArray y = Forward(p, x, mask, offset);
    const std::vector<double> want = Reference(p, x, mask);
    ExpectNear(
        y, want, [&](int64_t i) { return Tolerance(p.dtype, want[i]); }, p.Describe());
    CheckBackward(p, y, offset, numbers);
  }
};

TEST_P(ScaleMaskSoftmaxTest, EveryWidth) {
  for (const int64_t cols : kWidths) {
    for (const DType dtype : kFloatingTypes) {
      Problem p = MakeProblem(dtype, 1, 2, cols > 5000 ? 2 : 5, cols);
      p.shape.zero_masked_rows = cols % 2 == 0;
      Check(p, 0);
      p.shape.causal = true;
      Check(p, cols % 3);
      AddMask(p, 12, DType::kBool);
      Check(p, 0);
      p.shape.causal = false;
      AddMask(p, 8, dtype);
      Check(p, cols % 2);
      if (SizeOf(dtype) > 2) continue;
      AddMask(p, 12, DType::kFloat32);
      Check(p, 0);
    }
  }
}

TEST_P(ScaleMaskSoftmaxTest, EveryGeometryOfMask) {
  for (int form = 0; form < 16; ++form) {
    for (const int64_t cols : {6, 64, 1000, 2048, 4096}) {
      for (const bool zero : {false, true}) {
        Problem p = MakeProblem(DType::kFloat16, 3, 2, 5, cols);
        p.shape.zero_masked_rows = zero;
        for (const DType mask : {DType::kBool, DType::kFloat16, DType::kFloat32}) {
          AddMask(p, form, mask);
          p.shape.causal = form % 3 == 0;
          Check(p, 0);
        }
        Problem wide = MakeProblem(DType::kFloat32, 3, 2, 5, cols);
        wide.shape.zero_masked_rows = zero;
        AddMask(wide, form, form % 2 ? DType::kBool : DType::kFloat32);
        Check(wide, 1);
      }
    }
  }
}

// Matrices take turns where the mask that they share is large.
TEST_P(ScaleMaskSoftmaxTest, LargeSharedMasks) {
  for (const auto& [queries, cols] : {std::pair<int64_t, int64_t>{1600, 1024}, {1537, 1027}}) {
    Problem own = MakeProblem(DType::kFloat32, 2, 2, queries, cols);
    AddMask(own, 13, DType::kFloat32);
    Check(own, 0);
    Problem p = MakeProblem(DType::kFloat16, 1, 2, queries, cols);
    p.shape.causal = true;
    AddMask(p, 12, DType::kFloat32);
    Check(p, 0);
  }
}

TEST_P(ScaleMaskSoftmaxTest, CausalMatricesOfAnyForm) {
  for (const auto& [queries, cols] : {std::pair<int64_t, int64_t>{1, 1},
                                      {1, 40},
                                      {40, 1},
                                      {7, 7},
                                      {33, 65},
                                      {65, 33},
                                      {128, 128},
                                      {300, 256},
                                      {130, 1000},
                                      {70, 4096}}) {
    for (const bool zero : {false, true}) {
      for (const DType dtype : kFloatingTypes) {
        Problem p = MakeProblem(dtype, 2, 3, queries, cols);
        p.shape.causal = true;
        p.shape.zero_masked_rows = zero;
        Check(p, 0);
      }
    }
  }
}

// Scales that are not above 0 have kernels of their own on a GPU, for narrow rows and for wide
// ones.
TEST_P(ScaleMaskSoftmaxTest, ScalesThatAreNotPositive) {
  for (const double scale : {-0.5, 0.0}) {
    for (const int64_t cols : {1, 8, 100, 2048, 2056, 4097}) {
      for (const DType dtype : kFloatingTypes) {
        Problem p = MakeProblem(dtype, 1, 2, 5, cols);
        p.shape.scale = scale;
        p.shape.causal = true;
        Check(p, cols % 3);
        AddMask(p, 12, DType::kBool);
        p.shape.zero_masked_rows = true;
        Check(p, 0);
        p.shape.causal = false;
        AddMask(p, 8, dtype);
        Check(p, cols % 2);
      }
    }
  }
}

TEST_P(ScaleMaskSoftmaxTest, NaNAndInfinityStayInTheirRow) {
  for (const int64_t cols : {8, 100, 3000}) {
    Problem p = MakeProblem(DType::kFloat32, 1, 1, 4, cols);
    p.shape.zero_masked_rows = true;
    AddMask(p, 12, DType::kBool);
    HostArray x = Numbers(5).NormalArray(p.dtype, 4 * cols), mask(DType::kBool, 4 * cols);
    for (int64_t i = 0; i < mask.size(); ++i) mask.SetInt(i, 1);
    x.Set(3, kNan);         // row 0: NaN
    x.Set(cols + 3, kNan);  // row 1: hidden by the mask
    mask.SetInt(cols + 3, 0);
    for (int64_t c = 0; c < cols; ++c) {
      x.Set(2 * cols + c, c == 2 ? kInf : -kInf);  // row 2: NaN
      x.Set(3 * cols + c, -kInf);                  // row 3: nothing is left, so 0
    }
    const HostArray y = Forward(p, x, mask, 0);
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_TRUE(std::isnan(y.Float(c))) << cols << " " << c;
      ASSERT_TRUE(std::isfinite(y.Float(cols + c))) << cols << " " << c;
      ASSERT_TRUE(std::isnan(y.Float(2 * cols + c))) << cols << " " << c;
      ASSERT_EQ(y.Float(3 * cols + c), 0) << cols << " " << c;
    }
    EXPECT_EQ(y.Float(cols + 3), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, ScaleMaskSoftmaxTest,
                         testing::Values(DeviceType::kCPU, DeviceType::kCUDA), DeviceName);

}  // namespace
}  // namespace oneflow_lite
