// SPDX-License-Identifier: Apache-2.0
//
// reduce, argmax, matmul and nll_loss against float64 references on the host.
#include <sys/wait.h>
#include <unistd.h>

#include "oneflow_lite/core/parallel.h"
#include "primitive/matmul.h"
#include "primitive/nll_loss.h"
#include "primitive/reduce.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

// Around chunks, vectors, parts of a long axis, and the two ways of cutting columns.
constexpr AxisSplit kShapes[] = {
    {1, 1, 1},     {5, 33, 1},    {3, 1000, 1},  {700, 10, 1},   {2, 1025, 1}, {1, 200003, 1},
    {3, 4097, 1},  {2, 33, 3},    {1, 4096, 10}, {1, 1000, 257}, {2, 7, 1025}, {4, 1, 9},
    {1, 70001, 3}, {3, 300, 128}, {0, 5, 1},     {2, 5, 0},
};

class ReduceTest : public PrimitiveTest {
 protected:
  HostArray Run(const Reduce::Spec& spec, const AxisSplit& shape, const HostArray& x) {
    auto reduce = New<ReduceFactory>(spec);
    Buffer in(*this, x, 1), out(*this, spec.out, shape.outer * shape.inner, 1);
    Workspace workspace(*this, reduce->WorkspaceBytes(*stream_, DenseShape(shape)));
    EXPECT_TRUE(reduce
                    ->Launch(*stream_, DenseShape(shape), 0, in.data(), out.data(), nullptr,
                             workspace.data())
                    .ok());
    return out.Read();
  }
  std::vector<int64_t> RunArgMax(const AxisSplit& shape, const HostArray& x) {
    auto argmax = New<ReduceFactory>({ReduceKind::kArgMax, x.dtype, x.dtype});
    Buffer in(*this, x, 1), out(*this, DType::kInt64, shape.outer * shape.inner);
    Workspace workspace(*this, argmax->WorkspaceBytes(*stream_, DenseShape(shape)));
    EXPECT_TRUE(argmax
                    ->Launch(*stream_, DenseShape(shape), 0, in.data(), nullptr, out.data(),
                             workspace.data())
                    .ok());
    const HostArray index = out.Read();
    std::vector<int64_t> list(index.size());
    for (int64_t i = 0; i < index.size(); ++i) list[i] = index.Int(i);
    return list;
  }
};

// Calls f(output index, first element, stride).
template <class F>
void ForSlices(const AxisSplit& s, F f) {
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) {
      f(o * s.inner + i, o * s.axis * s.inner + i, s.inner);
    }
  }
}

TEST_P(ReduceTest, SumAndMeanOfFloats) {
  for (const DType dtype : kFloatingTypes) {
    for (const AxisSplit& shape : kShapes) {
      Numbers numbers(1);
      // A mean away from 0, which a plain float32 sum would lose digits over.
      const HostArray x =
          numbers.NormalArray(dtype, shape.outer * shape.axis * shape.inner, 1, 0.3);
      std::vector<double> sum(shape.outer * shape.inner), size(sum.size()), mean(sum.size());
      ForSlices(shape, [&](int64_t out, int64_t first, int64_t stride) {
        for (int64_t a = 0; a < shape.axis; ++a) {
          sum[out] += x.Float(first + a * stride);
          size[out] += std::abs(x.Float(first + a * stride));
        }
        mean[out] = sum[out] / static_cast<double>(shape.axis);
      });
      const double unit = dtype == DType::kFloat64 ? 1e-14 : 1e-6;
      const HostArray got = Run({ReduceKind::kSum, dtype, dtype}, shape, x);
      ExpectNear(
          got, sum, [&](int64_t i) { return unit * size[i] + StepOf(dtype, sum[i]); }, "sum");
      EXPECT_TRUE(Run({ReduceKind::kSum, dtype, dtype}, shape, x) == got) << "not the same bits";
      ExpectNear(
          Run({ReduceKind::kMean, dtype, dtype}, shape, x), mean,
          [&](int64_t i) {
            return unit * size[i] / static_cast<double>(shape.axis) + StepOf(dtype, mean[i]);
          },
          "mean");
    }
  }
}

TEST_P(ReduceTest, SumOfIntegers) {
  for (const DType dtype : kAllTypes) {
    if (IsFloating(dtype)) continue;
    for (const AxisSplit& shape : kShapes) {
      Numbers numbers(2);
      const HostArray x = numbers.AnyArray(dtype, shape.outer * shape.axis * shape.inner);
      HostArray want(DType::kInt64, shape.outer * shape.inner);
      ForSlices(shape, [&](int64_t out, int64_t first, int64_t stride) {
        int64_t sum = 0;
        for (int64_t a = 0; a < shape.axis; ++a) sum += x.Int(first + a * stride);
        want.SetInt(out, sum);
      });
      EXPECT_TRUE(Run({ReduceKind::kSum, dtype, DType::kInt64}, shape, x) == want) << Name(dtype);
    }
  }
}

TEST_P(ReduceTest, MaxAndArgMax) {
  for (const DType dtype : kAllTypes) {
    for (const AxisSplit& shape : kShapes) {
      Numbers numbers(3);
      HostArray x = numbers.AnyArray(dtype, shape.outer * shape.axis * shape.inner);
      if (IsFloating(dtype) && shape.outer > 1 && shape.axis > 4) {
        for (int64_t i = 0; i < shape.inner; ++i) {  // two NaNs in every slice of the first row
          x.Set((shape.axis / 2) * shape.inner + i, kNan);
          x.Set((shape.axis - 1) * shape.inner + i, kNan);
        }
      }
      HostArray want(dtype, shape.outer * shape.inner);
      std::vector<int64_t> index(want.size());
      ForSlices(shape, [&](int64_t out, int64_t first, int64_t stride) {
        int64_t best = 0;
        for (int64_t a = 1; a < shape.axis; ++a) {
          const double v = x.Float(first + a * stride), m = x.Float(first + best * stride);
          if (v > m || (std::isnan(v) && !std::isnan(m))) best = a;
        }
        index[out] = best;
        want.Set(out, x.Float(first + best * stride));
      });
      std::vector<double> values(want.size());
      for (int64_t i = 0; i < want.size(); ++i) values[i] = want.Float(i);
      ExpectNear(
          Run({ReduceKind::kMax, dtype, dtype}, shape, x), values, [](int64_t) { return 0.0; },
          "max");
      EXPECT_EQ(RunArgMax(shape, x), index)
          << Name(dtype) << " " << shape.outer << " " << shape.axis << " " << shape.inner;
    }
  }
}

TEST_P(ReduceTest, EmptyAxisAndInfinities) {
  const HostArray none(DType::kFloat32, 0);
  const AxisSplit empty{3, 0, 1}, columns{1, 0, 4};
  ExpectNear(
      Run({ReduceKind::kSum}, empty, none), {0, 0, 0}, [](int64_t) { return 0.0; }, "sum");
  ExpectNear(
      Run({ReduceKind::kMean}, columns, none), {kNan, kNan, kNan, kNan},
      [](int64_t) { return 0.0; }, "mean");
  HostArray x(DType::kFloat32, 40);
  for (int64_t i = 0; i < 40; ++i) x.Set(i, -kInf);
  ExpectNear(
      Run({ReduceKind::kMax}, {1, 40, 1}, x), {-kInf}, [](int64_t) { return 0.0; }, "max");
  EXPECT_EQ(RunArgMax({1, 40, 1}, x), std::vector<int64_t>{0});
}

// ---- matmul ----

class MatmulTest : public PrimitiveTest {
 protected:
  // pad: elements between the end of a stored row and the next.
  void Check(DType dtype, MatmulShape s, int64_t pad, bool share_b) {
    const int64_t rows_a = s.transpose_a ? s.k : s.m, rows_b = s.transpose_b ? s.n : s.k;
    s.lda = (s.transpose_a ? s.m : s.k) + pad;
    s.ldb = (s.transpose_b ? s.k : s.n) + pad;
    s.batch_stride_a = rows_a * s.lda;
    s.batch_stride_b = share_b ? 0 : rows_b * s.ldb;
    Numbers numbers(4);
    const HostArray a = numbers.NormalArray(dtype, s.batch * rows_a * s.lda);
    const HostArray b = numbers.NormalArray(dtype, (share_b ? 1 : s.batch) * rows_b * s.ldb);
    const std::vector<double> xs = a.Floats(), ys = b.Floats();
    std::vector<double> want(s.batch * s.m * s.n), size(want.size());
    for (int64_t i = 0; i < static_cast<int64_t>(want.size()); ++i) {
      const int64_t batch = i / (s.m * s.n), row = i / s.n % s.m, col = i % s.n;
      const int64_t step_a = s.transpose_a ? s.lda : 1, step_b = s.transpose_b ? 1 : s.ldb;
      const double* x = xs.data() + batch * s.batch_stride_a + row * (s.transpose_a ? 1 : s.lda);
      const double* y = ys.data() + batch * s.batch_stride_b + col * (s.transpose_b ? s.ldb : 1);
      double sum = 0, terms = 0;
      for (int64_t l = 0; l < s.k; ++l) {
        const double product = x[l * step_a] * y[l * step_b];
        sum += product;
        terms += std::abs(product);
      }
      want[i] = sum, size[i] = terms;
    }
    auto matmul = New<MatmulFactory>({dtype});
    Buffer in_a(*this, a, 1), in_b(*this, b, 1), out(*this, dtype, want.size(), 1);
    Workspace workspace(*this, matmul->WorkspaceBytes(*stream_, s));
    const Status status = matmul->Launch(*stream_, s, in_a.data(), in_b.data(), nullptr, out.data(),
                                         workspace.data());
    ASSERT_TRUE(status.ok()) << status;
    const double unit = dtype == DType::kFloat64 ? 1e-14 : 2e-6;
    ExpectNear(
        out.Read(), want, [&](int64_t i) { return unit * size[i] + StepOf(dtype, want[i]); },
        "matmul " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
            std::to_string(s.k));
  }
};

TEST_P(MatmulTest, ShapesTransposesAndBatches) {
  struct Size {
    int64_t batch, m, n, k;
  };
  for (const DType dtype : kFloatingTypes) {
    for (const Size& s :
         {Size{1, 1, 1, 1}, Size{1, 3, 5, 7}, Size{1, 64, 10, 128}, Size{1, 129, 65, 33},
          Size{3, 20, 30, 17}, Size{5, 1, 8, 4}, Size{1, 1, 100, 300}, Size{2, 100, 1, 64},
          Size{1, 4, 4, 0}, Size{0, 4, 4, 4}, Size{2, 0, 3, 4}}) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          const MatmulShape shape{.batch = s.batch,
                                  .m = s.m,
                                  .n = s.n,
                                  .k = s.k,
                                  .transpose_a = transpose_a,
                                  .transpose_b = transpose_b};
          Check(dtype, shape, 0, false);
          Check(dtype, shape, 8, true);
        }
      }
    }
  }
}

TEST_P(MatmulTest, AddsABiasOrToWhatIsThere) {
  for (const DType dtype : kFloatingTypes) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 5, 7}, {65, 129, 40}, {1, 300, 64}}) {
      Numbers numbers(5);
      const HostArray a = numbers.NormalArray(dtype, m * k), b = numbers.NormalArray(dtype, k * n);
      const HostArray bias = numbers.NormalArray(dtype, n), c = numbers.NormalArray(dtype, m * n);
      auto matmul = New<MatmulFactory>({dtype});
      for (const bool accumulate : {false, true}) {
        if (!accumulate && !matmul->AddsBias()) continue;
        const MatmulShape s{.m = m,
                            .n = n,
                            .k = k,
                            .lda = k,
                            .ldb = n,
                            .add_bias = !accumulate,
                            .accumulate = accumulate};
        std::vector<double> want(m * n), size(m * n);
        for (int64_t i = 0; i < m * n; ++i) {
          want[i] = accumulate ? c.Float(i) : bias.Float(i % n);
          size[i] = std::abs(want[i]);
          for (int64_t l = 0; l < k; ++l) {
            const double term = a.Float(i / n * k + l) * b.Float(l * n + i % n);
            want[i] += term;
            size[i] += std::abs(term);
          }
        }
        Buffer in_a(*this, a), in_b(*this, b), in_bias(*this, bias), out(*this, c);
        Workspace workspace(*this, matmul->WorkspaceBytes(*stream_, s));
        const Status status = matmul->Launch(*stream_, s, in_a.data(), in_b.data(), in_bias.data(),
                                             out.data(), workspace.data());
        ASSERT_TRUE(status.ok()) << status;
        const double unit = dtype == DType::kFloat64 ? 1e-14 : 2e-6;
        ExpectNear(
            out.Read(), want, [&](int64_t i) { return unit * size[i] + StepOf(dtype, want[i]); },
            accumulate ? "accumulate" : "bias");
      }
    }
  }
}

// Rows of the result apart, as of logits whose vocabulary is no multiple of 16 bytes: what lies
// between them stays.
TEST_P(MatmulTest, RowsOfTheResultApart) {
  constexpr int64_t kM = 37, kN = 50, kLd = 56;
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t k : {0, 3, 70}) {
      for (const bool accumulate : {false, true}) {
        const MatmulShape s{.batch = 2,
                            .m = kM,
                            .n = kN,
                            .k = k,
                            .transpose_b = true,
                            .lda = std::max<int64_t>(k, 1),
                            .ldb = std::max<int64_t>(k, 1),
                            .ldc = kLd,
                            .batch_stride_a = kM * k,
                            .accumulate = accumulate};
        Numbers numbers(7);
        const HostArray a = numbers.NormalArray(dtype, 2 * kM * k + 1);
        const HostArray b = numbers.NormalArray(dtype, kN * k + 1);
        const HostArray c = numbers.NormalArray(dtype, 2 * kM * kLd);
        std::vector<double> want(2 * kM * kLd), size(want.size());
        for (int64_t i = 0; i < static_cast<int64_t>(want.size()); ++i) {
          const int64_t row = i / kLd, col = i % kLd;
          want[i] = col >= kN || accumulate ? c.Float(i) : 0;
          size[i] = std::abs(want[i]);
          for (int64_t l = 0; col < kN && l < k; ++l) {
            const double term = a.Float(row * k + l) * b.Float(col * k + l);
            want[i] += term;
            size[i] += std::abs(term);
          }
        }
        auto matmul = New<MatmulFactory>({dtype});
        Buffer in_a(*this, a), in_b(*this, b), out(*this, c);
        Workspace workspace(*this, matmul->WorkspaceBytes(*stream_, s));
        const Status status = matmul->Launch(*stream_, s, in_a.data(), in_b.data(), nullptr,
                                             out.data(), workspace.data());
        ASSERT_TRUE(status.ok()) << status;
        const double unit = dtype == DType::kFloat64 ? 1e-14 : 2e-6;
        ExpectNear(
            out.Read(), want,
            [&](int64_t i) { return i % kLd >= kN ? 0 : unit * size[i] + StepOf(dtype, want[i]); },
            "rows apart");
      }
    }
  }
}

// Products that are timed give what others do, wherever their operands begin.
TEST_P(MatmulTest, LargeProducts) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    const MatmulShape shape{.m = 1024, .n = 700, .k = 768};
    Check(dtype, shape, 0, false);
    Check(dtype, shape, 8, false);
  }
}

// An OpenMP region in a child that was forked after threads had been started would hang.
TEST_P(MatmulTest, WorksInAForkedChild) {
  if (GetParam() != DeviceType::kCPU) GTEST_SKIP() << "CUDA does not survive a fork";
  const int threads = NumThreads();
  SetNumThreads(2);
  const MatmulShape shape{.m = 300, .n = 300, .k = 300};
  Check(DType::kFloat32, shape, 0, false);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Check(DType::kFloat32, shape, 0, false);
    const HostArray x = Numbers(1).NormalArray(DType::kFloat32, 300000);
    Buffer in(*this, x), out(*this, DType::kFloat32, 1);
    const bool ok = New<ReduceFactory>({})
                        ->Launch(*stream_, DenseShape({1, 300000, 1}), 0, in.data(), out.data(),
                                 nullptr, nullptr)
                        .ok();
    _exit(ok && !HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  SetNumThreads(threads);
}

// ---- nll_loss ----

class NllLossTest : public PrimitiveTest {
 protected:
  struct Result {
    Status status;
    HostArray loss, row_weight;
  };
  Result Run(DType dtype, const NllLossShape& s, const HostArray& logp, const HostArray& target,
             const HostArray* weight) {
    auto nll = New<NllLossFactory>({dtype});
    const int64_t rows = s.outer * s.inner;
    Buffer in(*this, logp, 1), t(*this, target), w(*this, weight ? *weight : logp);
    Buffer loss(*this, dtype, rows, 1), row_weight(*this, dtype, rows, 1);
    const Status status = nll->Launch(*stream_, s, in.data(), static_cast<const int64_t*>(t.data()),
                                      weight ? w.data() : nullptr, loss.data(), row_weight.data());
    return {status, loss.Read(), row_weight.Read()};
  }
};

TEST_P(NllLossTest, LossAndGradient) {
  for (const DType dtype : kFloatingTypes) {
    for (const NllLossShape& s : {NllLossShape{7, 10, 1}, NllLossShape{1000, 33, 1},
                                  NllLossShape{3, 5, 41}, NllLossShape{0, 5, 1}}) {
      for (const bool weighted : {false, true}) {
        Numbers numbers(5);
        const int64_t rows = s.outer * s.inner, slab = s.classes * s.inner;
        const HostArray logp = numbers.NormalArray(dtype, rows * s.classes);
        const HostArray weight = numbers.NormalArray(dtype, s.classes, 0.3, 1);
        const HostArray dloss = numbers.NormalArray(dtype, rows);
        HostArray target(DType::kInt64, rows);
        for (int64_t i = 0; i < rows; ++i) {
          target.SetInt(i, i % 5 == 3 ? s.ignore_index : numbers.Int(0, s.classes - 1));
        }
        std::vector<double> loss(rows), w(rows), dlogp(rows * s.classes);
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t t = target.Int(i);
          if (t == s.ignore_index) continue;
          const int64_t at = i / s.inner * slab + t * s.inner + i % s.inner;
          w[i] = weighted ? weight.Float(t) : 1;
          loss[i] = -w[i] * logp.Float(at);
          dlogp[at] = -w[i] * dloss.Float(i);
        }
        const Result r = Run(dtype, s, logp, target, weighted ? &weight : nullptr);
        ASSERT_TRUE(r.status.ok()) << r.status;
        const auto step = [&](const std::vector<double>& want) {
          return [&, dtype](int64_t i) { return StepOf(dtype, want[i]); };
        };
        ExpectNear(r.loss, loss, step(loss), "loss");
        ExpectNear(r.row_weight, w, step(w), "row_weight");

        Buffer dl(*this, dloss, 1), t(*this, target), rw(*this, r.row_weight, 1);
        Buffer dx(*this, dtype, rows * s.classes, 1);
        ASSERT_TRUE(New<NllLossBackwardFactory>({dtype})
                        ->Launch(*stream_, s, dl.data(), static_cast<const int64_t*>(t.data()),
                                 rw.data(), dx.data())
                        .ok());
        ExpectNear(dx.Read(), dlogp, step(dlogp), "dlogp");
      }
    }
  }
}

TEST_P(NllLossTest, TargetOutOfRange) {
  for (const int64_t bad : {int64_t{4}, int64_t{-1}, int64_t{1} << 40}) {
    const NllLossShape s{3, 4, 1};
    const HostArray logp = Numbers(6).NormalArray(DType::kFloat32, 12);
    HostArray target(DType::kInt64, 3);
    target.SetInt(1, bad);
    const Result r = Run(DType::kFloat32, s, logp, target, nullptr);
    if (GetParam() == DeviceType::kCPU) {
      ASSERT_FALSE(r.status.ok());
      EXPECT_EQ(KindOf(r.status), ErrorKind::kIndex);
      EXPECT_NE(std::string(r.status.message()).find(std::to_string(bad)), std::string::npos);
    } else {
      ASSERT_TRUE(r.status.ok());
      EXPECT_TRUE(std::isnan(r.loss.Float(1)) && std::isnan(r.row_weight.Float(1)));
      EXPECT_FALSE(std::isnan(r.loss.Float(0)) || std::isnan(r.loss.Float(2)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ReduceTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(, MatmulTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(, NllLossTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
