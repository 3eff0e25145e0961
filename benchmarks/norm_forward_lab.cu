// SPDX-License-Identifier: Apache-2.0
//
// A lab for the norms' forward, apart from the build: values against float64 on the device, and
// times beside a stream of the same bytes (docs/performance.md, Method).
//
//   nvcc -std=c++17 -O3 -arch=native -I. benchmarks/norm_forward_lab.cu -o norm_forward_lab
//   ./norm_forward_lab check [half|bfloat16|float|double] [layer|rms]   exit code 1: a bound broken
//   ./norm_forward_lab time [half|bfloat16|float|double] [layer|rms] [rows cols]
#include "benchmarks/norm_lab.cuh"

namespace {

// The largest errors by their bounds: of y, of mean, of rstd; a block per row.
template <class T, bool kCentre>
__global__ void CheckRowsKernel(NormForward<T> a, const T* x, const T* residual, double unit,
                                double* worst) {
  for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const auto s = [&](int64_t c) {
      const double v = ConvertTo<double>(x[r * a.x_stride + c]);
      if (!residual) return v;
      const double sum = v + ConvertTo<double>(residual[r * a.cols + c]);
      return ConvertTo<double>(ConvertTo<T>(static_cast<ComputeType<T>>(sum)));
    };
    double sum = 0;
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) sum += s(c);
    const double mean = kCentre ? BlockSum(sum) / a.cols : 0;
    sum = 0;
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) sum += (s(c) - mean) * (s(c) - mean);
    const double rstd = 1 / sqrt(BlockSum(sum) / a.cols + a.eps);
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
      const double w = WeightAt<T>(a.weight, a.float_weight, c, 1);
      const double b = WeightAt<T>(a.bias, a.float_weight, c, 0);
      const double y = (s(c) - mean) * rstd * w + b;
      const double terms = fabs((s(c) - mean) * rstd * w) + fabs(w) + fabs(b);
      RaiseTo(worst, fabs(ConvertTo<double>(a.y[r * a.cols + c]) - y) /
                         (Rounding<T>(y) + unit * fmax(1.0, terms)));
      if (residual && a.sum && ConvertTo<double>(a.sum[r * a.cols + c]) != s(c)) {
        RaiseTo(worst, HUGE_VAL);
      }
    }
    if (threadIdx.x == 0) {
      if (a.mean) RaiseTo(worst + 1, fabs(a.mean[r] - mean) / (unit * (fabs(mean) + 1 / rstd)));
      if (a.rstd) RaiseTo(worst + 2, fabs(a.rstd[r] / rstd - 1) / unit);
    }
    __syncthreads();
  }
}

struct Case {
  int64_t rows, cols, x_pad = 0;
  int x_offset = 0, y_offset = 0;
  double mean = 0, spread = 1;
  bool outlier = false, residual = false, alias = false, workspace = true;
  bool weight = true, bias = true, float_weight = false;
};

template <class T>
__global__ void PutOutliersKernel(T* x, int64_t rows, int64_t stride) {
  const int64_t r = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (r < rows) x[r * stride] = ConvertTo<T>(1e4);
}

// By teams, whatever the policy says; false where they cannot.
template <bool kCentre, class T>
bool LaunchTeams(const NormForward<T>& a) {
  const NormTraits traits = internal::ForwardTraits(a);
  const int64_t packs = PacksOfRow(a.cols, traits);
  NormPlan plan;
  if (packs <= NormPolicy::kFewPacks ||
      !PlanOnChip(a.rows, packs, traits, limits, internal::ForwardClusters<kCentre, T>(limits),
                  &plan)) {
    return false;
  }
  AlignUnits(a.rows, a.cols, traits, &plan);
  CHECK(internal::LaunchForwardTeams<kCentre>(plan, a, limits, nullptr));
  return true;
}

template <class T, bool kCentre>
bool Check(const Case& k) {
  using C = ComputeType<T>;
  const int64_t stride = k.cols + k.x_pad, n = k.rows * k.cols;
  Array<T> x(k.rows * stride, k.x_offset), y(n, k.y_offset), residual(n, k.y_offset),
      sum(n, k.y_offset), copy(n);
  Array<double> weights(2 * k.cols + 2), worst(3);
  Array<C> mean(k.rows), rstd(k.rows);
  Fill(x.data, x.n, 1, k.mean, k.spread);
  if (k.outlier) PutOutliersKernel<<<(k.rows + 255) / 256, 256>>>(x.data, k.rows, stride);
  Fill(residual.data, n, 2, 0, k.spread);
  Fill(y.data, n, 3, -777, 0);
  Fill(sum.data, n, 3, -777, 0);
  Fill(mean.data, k.rows, 3, -777, 0);
  Fill(rstd.data, k.rows, 3, -777, 0);
  CHECK(cudaMemcpy(copy.data, residual.data, n * sizeof(T), cudaMemcpyDeviceToDevice));
  NormForward<T> a;
  a.rows = k.rows, a.cols = k.cols, a.x_stride = stride, a.eps = 1e-12;
  a.x = x.data, a.y = y.data, a.mean = kCentre ? mean.data : nullptr, a.rstd = rstd.data;
  a.float_weight = k.float_weight && sizeof(T) == 2;
  const auto fill = [&](auto* p) {
    Fill(p, 2 * k.cols + 1, 4, 1, 0.5);
    if (k.weight) a.weight = p;
    if (k.bias && kCentre) a.bias = p + k.cols + 1;
  };
  if (a.float_weight) {
    fill(reinterpret_cast<float*>(weights.data));
  } else {
    fill(reinterpret_cast<T*>(weights.data));
  }
  if (k.residual) {
    a.residual = residual.data;
    a.sum = k.alias ? residual.data : sum.data;
  }
  const size_t bytes = NormWorkspaceBytes<T, kCentre>(k.rows, k.cols, limits);
  Array<char> workspace(static_cast<int64_t>(bytes));
  // Without workspace: by teams, where they serve.
  if (k.workspace) {
    CHECK(internal::LaunchForwardRows<kCentre>(a, limits, nullptr, workspace.data));
  } else if (!LaunchTeams<kCentre>(a)) {
    CHECK(internal::LaunchForwardRows<kCentre>(a, limits, nullptr, nullptr));
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemset(worst.data, 0, 24));
  // Where the mean is far above the spread, float64 itself has so many digits less.
  const double unit = sizeof(T) < 8 ? 4e-6 : k.mean > 0 ? 1e-8 : 1e-13;
  CheckRowsKernel<T, kCentre><<<1024, 256>>>(a, x.data, k.residual ? copy.data : nullptr,
                                             k.outlier ? 10 * unit : unit, worst.data);
  CHECK(cudaDeviceSynchronize());
  const std::vector<double> found = worst.Host();
  const bool good = found[0] <= 1 && found[1] <= 1 && found[2] <= 1;
  if (!good) {
    std::printf(
        "FAIL %s %s %lld x %lld pad %lld offsets %d %d mean %g spread %g outlier %d residual "
        "%d %d float %d workspace %d: y %.3g mean %.3g rstd %.3g of the bound\n",
        NameOf<T>(), kCentre ? "layer" : "rms", static_cast<long long>(k.rows),
        static_cast<long long>(k.cols), static_cast<long long>(k.x_pad), k.x_offset, k.y_offset,
        k.mean, k.spread, k.outlier, k.residual, k.alias, k.float_weight, k.workspace, found[0],
        found[1], found[2]);
  }
  return good;
}

template <class T, bool kCentre>
int CheckAll() {
  constexpr int64_t N = kPackSize<T>;
  std::vector<Case> cases;
  for (int64_t cols = 1; cols <= 40; ++cols) {
    cases.push_back({300, cols});
    cases.back().workspace = cols % 2 == 0;
  }
  for (int64_t packs : {4, 8, 16, 32, 64, 128, 256, 1024, 2048, 4096, 8192, 14400, 16384, 30000}) {
    for (int64_t d : {int64_t{-1}, int64_t{0}, int64_t{1}, N - 1}) {
      for (const bool workspace : {false, true}) {
        Case k{packs > 4000 ? 200 : 500, packs * N + d};
        k.workspace = workspace;
        cases.push_back(k);
        k.rows = 3;
        cases.push_back(k);
      }
    }
  }
  cases.push_back({1, 3000001});
  cases.push_back({2, 16000000});
  for (int64_t cols : {5, 33, 257, 1000, 1024, 8192, 20001, 140000, 400000, 1200000}) {
    const int64_t rows = cols > 100000 ? 7 : 200;
    for (int bits = 0; bits < 16; ++bits) {
      Case k{rows, cols};
      k.residual = bits & 1, k.alias = bits & 2, k.float_weight = bits & 4, k.weight = bits & 8;
      k.bias = bits & 1;
      cases.push_back(k);
      k.x_offset = 1;
      cases.push_back(k);
      k.y_offset = 1;
      cases.push_back(k);
      k.workspace = false;
      cases.push_back(k);
      k.x_pad = bits;
      cases.push_back(k);
      k.x_offset = k.y_offset = k.x_pad = 0;
      cases.push_back(k);
    }
    Case offset{rows, cols};
    offset.mean = 1e4, offset.spread = 1e-3;
    if (sizeof(T) >= 4) cases.push_back(offset);
    offset.workspace = false;
    if (sizeof(T) >= 4) cases.push_back(offset);
    Case outlier{rows, cols};
    outlier.outlier = true;
    cases.push_back(outlier);
  }
  int failures = 0;
  for (const Case& k : cases) failures += !Check<T, kCentre>(k);
  std::printf("%-8s %-5s forward %zu cases, %d failures\n", NameOf<T>(), kCentre ? "layer" : "rms",
              cases.size(), failures);
  return failures;
}

template <class T, bool kCentre>
void Time(Timer& timer, int64_t rows, int64_t cols) {
  using C = ComputeType<T>;
  const int64_t n = rows * cols;
  Array<T> x(n), y(n), residual(n), sum(n), weight(2 * cols);
  Array<C> mean(rows), rstd(rows);
  Fill(x.data, n, 1, 0, 1);
  Fill(residual.data, n, 2, 0, 1);
  Fill(weight.data, weight.n, 3, 1, 0.1);
  NormForward<T> a;
  a.rows = rows, a.cols = cols, a.x_stride = cols, a.eps = 1e-5;
  a.x = x.data, a.y = y.data, a.weight = weight.data, a.rstd = rstd.data;
  if (kCentre) a.bias = weight.data + cols, a.mean = mean.data;
  NormForward<T> b = a;
  b.residual = residual.data, b.sum = sum.data;
  Array<char> workspace(NormWorkspaceBytes<T, kCentre>(rows, cols, limits));
  std::vector<double> times[5];
  const size_t bytes = n * sizeof(T);
  for (int i = 0; i < 24; ++i) {
    const double t[] = {
        timer.Once([&] {
          CHECK(internal::LaunchForwardRows<kCentre>(a, limits, nullptr, workspace.data));
        }),
        timer.Once([&] { LaunchTeams<kCentre>(a); }), timer.Once([&] {
          CHECK(internal::LaunchForwardRows<kCentre>(b, limits, nullptr, workspace.data));
        }),
        timer.Once([&] { LaunchTeams<kCentre>(b); }), timer.Once([&] {
          CHECK(cudaMemcpyAsync(y.data, x.data, bytes, cudaMemcpyDeviceToDevice, nullptr));
        })};
    for (int j = 0; j < 5 && i >= 3; ++j) times[j].push_back(t[j]);
  }
  double t[5];
  for (int j = 0; j < 5; ++j) t[j] = Median(times[j]);
  const double all = (2.0 * bytes + (kCentre ? 2.0 : 1.0) * rows * sizeof(C)) / (2.0 * bytes);
  std::printf(
      "%-8s %-5s %8lld x %-8lld rows %8.1f us %.3f  teams %8.1f us %.3f   residual rows "
      "%8.1f us %.3f  teams %8.1f us %.3f   copy %8.1f us %5.0f GB/s\n",
      NameOf<T>(), kCentre ? "layer" : "rms", static_cast<long long>(rows),
      static_cast<long long>(cols), t[0], all * t[4] / t[0], t[1], all * t[4] / t[1], t[2],
      2 * t[4] / t[2], t[3], 2 * t[4] / t[3], t[4], 2e-3 * bytes / t[4]);
  std::fflush(stdout);
}

template <class T, bool kCentre>
void TimeAll(Timer& timer) {
  const int64_t most = int64_t{49152} * 16384 / (sizeof(T) > 2 ? 2 : 1);
  for (int64_t cols :
       {32,     64,     128, 256,  512,  1024,  2048,   4096, 8192, 16384, 32768, 65536,
        131072, 262144, 33,  1000, 4097, 50257, 128256, 768,  5120, 7168,  12288}) {
    Time<T, kCentre>(timer, std::min<int64_t>(49152, most / cols), cols);
  }
  Time<T, kCentre>(timer, 1 << 20, 128);
  Time<T, kCentre>(timer, 2048, 768);
  Time<T, kCentre>(timer, 128, 128256);
  Time<T, kCentre>(timer, 16, 262144);
  Time<T, kCentre>(timer, 1, 16777216);
}

}  // namespace

int main(int argc, char** argv) {
  const auto arg = [&](int i) { return std::string(argc > i ? argv[i] : ""); };
  CHECK(QueryDeviceLimits(0, &limits));
  CHECK(cudaSetDevice(0));
  if (arg(1) == "check") {
    const int failures = ForTypes(arg(2), arg(3), [](auto t, auto centre) {
      return CheckAll<decltype(t), decltype(centre)::value>();
    });
    return failures > 0;
  }
  if (arg(1) != "time") return 2;
  Timer timer;
  ForTypes(arg(2), arg(3), [&](auto t, auto centre) {
    using T = decltype(t);
    constexpr bool kCentre = decltype(centre)::value;
    if (argc > 5) {
      Time<T, kCentre>(timer, std::atoll(argv[4]), std::atoll(argv[5]));
    } else {
      TimeAll<T, kCentre>(timer);
    }
    return 0;
  });
  return 0;
}
