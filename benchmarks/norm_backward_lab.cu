// SPDX-License-Identifier: Apache-2.0
//
// A lab for the norms' backward, apart from the build: values against float64 on the device, and
// times beside a stream of the same bytes (docs/performance.md, Method).
//
//   nvcc -std=c++17 -O3 -arch=native -I. benchmarks/norm_backward_lab.cu -o norm_backward_lab
//   ./norm_backward_lab check [half|bfloat16|float|double] [layer|rms]   exit code 1: a bound
//   broken
//   ./norm_backward_lab time [half|bfloat16|float|double] [layer|rms] [rows cols]
#include "benchmarks/norm_lab.cuh"

namespace {

// -- Reference: float64, a block per row, then a block per column ------------------------------

struct RowFacts {
  double mean, rstd, g, gx;
};

// x_hat of an element, from the row's exact statistics or from the output.
template <class T>
__device__ double ReferenceXHat(const NormBackward<T>& a, const RowFacts& f, int64_t r, int64_t c) {
  const double x = ConvertTo<double>(a.x[r * a.x_stride + c]);
  if (!a.from_output) return (x - f.mean) * f.rstd;
  double w = WeightAt<T>(a.weight, a.float_weight, c, 1);
  if (fabs(w) < 1e-5) w = w < 0 ? -1e-5 : 1e-5;
  return (x - WeightAt<T>(a.bias, a.float_weight, c, 0)) / w;
}

// Also the mean and rstd that the forward would have stored.
template <class T, bool kCentre>
__global__ void RowFactsKernel(NormBackward<T> a, double eps, RowFacts* facts, ComputeType<T>* mean,
                               ComputeType<T>* rstd, bool keep_rstd) {
  for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    RowFacts f{0, 0, 0, 0};
    double sum = 0;
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
      sum += ConvertTo<double>(a.x[r * a.x_stride + c]);
    }
    f.mean = kCentre ? BlockSum(sum) / a.cols : 0;
    sum = 0;
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
      const double d = ConvertTo<double>(a.x[r * a.x_stride + c]) - f.mean;
      sum += d * d;
    }
    f.rstd = 1 / sqrt(BlockSum(sum) / a.cols + eps);
    if (keep_rstd) f.rstd = rstd[r];
    double g = 0, gx = 0;
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
      const double grad =
          ConvertTo<double>(a.dy[r * a.cols + c]) * WeightAt<T>(a.weight, a.float_weight, c, 1);
      g += grad;
      gx += grad * ReferenceXHat(a, f, r, c);
    }
    f.g = kCentre ? BlockSum(g) / a.cols : 0;
    f.gx = BlockSum(gx) / a.cols;
    if (threadIdx.x == 0) {
      facts[r] = f;
      if (!keep_rstd) {
        mean[r] = static_cast<ComputeType<T>>(f.mean);
        rstd[r] = static_cast<ComputeType<T>>(f.rstd);
      }
    }
    __syncthreads();
  }
}

// The largest error of dx by its bound.
template <class T, bool kCentre>
__global__ void CheckDxKernel(NormBackward<T> a, const RowFacts* facts, double unit,
                              double* worst) {
  const int64_t n = a.rows * a.cols;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t r = i / a.cols, c = i % a.cols;
    const RowFacts f = facts[r];
    const double x_hat = ReferenceXHat(a, f, r, c);
    const double g = ConvertTo<double>(a.dy[i]) * WeightAt<T>(a.weight, a.float_weight, c, 1);
    double dx = f.rstd * (g - f.g - x_hat * f.gx);
    // Rounding is relative to the terms, of which dx may be a small difference.
    const double terms = f.rstd * (fabs(g) + fabs(f.g) + fabs(x_hat * f.gx));
    if (a.dsum) dx += ConvertTo<double>(a.dsum[i]);
    const double bound = Rounding<T>(dx) + unit * fmax(1.0, fmax(terms, fabs(dx)));
    RaiseTo(worst, fabs(ConvertTo<double>(a.dx[i]) - dx) / bound);
  }
}
template <class T, bool kCentre>
__global__ void CheckWeightKernel(NormBackward<T> a, const RowFacts* facts, double unit,
                                  double* worst) {
  for (int64_t c = blockIdx.x; c < a.cols; c += gridDim.x) {
    double dw = 0, dw_terms = 0, db = 0, db_terms = 0;
    for (int64_t r = threadIdx.x; r < a.rows; r += blockDim.x) {
      const double dy = ConvertTo<double>(a.dy[r * a.cols + c]);
      const double term = a.x ? dy * ReferenceXHat(a, facts[r], r, c) : 0;
      dw += term;
      dw_terms += fabs(term);
      db += dy;
      db_terms += fabs(dy);
    }
    dw = BlockSum(dw), dw_terms = BlockSum(dw_terms);
    db = BlockSum(db), db_terms = BlockSum(db_terms);
    if (threadIdx.x == 0) {
      const bool rounds = !a.float_weight;
      // Half may have no such value.
      if (a.dweight && !(std::is_same_v<T, __half> && rounds && fabs(dw) > 60000)) {
        RaiseTo(worst, fabs(WeightAt<T>(a.dweight, a.float_weight, c, 0) - dw) /
                           (unit * (dw_terms + 0.1 * db_terms) + (rounds ? Rounding<T>(dw) : 0)));
      }
      if (a.dbias) {
        RaiseTo(worst + 1, fabs(WeightAt<T>(a.dbias, a.float_weight, c, 0) - db) /
                               (unit * (db_terms + 1e-3) + (rounds ? Rounding<T>(db) : 0)));
      }
    }
    __syncthreads();
  }
}

// -- Checks ----------------------------------------------------------------------------------

struct Case {
  int64_t rows, cols, x_pad = 0;
  int x_offset = 0, dy_offset = 0;
  double mean = 0, spread = 1;
  bool weight = true, bias = true, float_weight = false, from_output = false, dsum = false;
  bool in_place = false;
  double weight_spread = 0.5;
  int wanted = 7;  // bits: dx, dweight, dbias
};

template <class T, bool kCentre>
bool Check(const Case& k, bool print = false) {
  using C = ComputeType<T>;
  const int64_t stride = k.cols + k.x_pad, n = k.rows * k.cols;
  Array<T> x(k.rows * stride, k.x_offset), dy(n, k.dy_offset), dx(n, k.dy_offset), dsum(n), copy(n);
  Array<float> weight(k.cols, 1), bias(k.cols, 1), dweight(k.cols, 1), dbias(k.cols, 1);
  Array<C> mean(k.rows), rstd(k.rows);
  Array<RowFacts> facts(k.rows);
  Array<double> worst(3), doubles(2 * k.cols), gradients(2 * k.cols);
  Fill(x.data, x.n, 1, k.mean, k.spread);
  Fill(dy.data, n, 2, 0, 1);
  Fill(dsum.data, n, 3, 0, 1);
  CHECK(cudaMemcpy(copy.data, dy.data, n * sizeof(T), cudaMemcpyDeviceToDevice));
  // Weights of T, float32, or (T = double) double.
  const bool is_float = k.float_weight && sizeof(T) == 2;
  void* w = weight.data;
  void* b = bias.data;
  void* dw = dweight.data;
  void* db = dbias.data;
  if (sizeof(T) == 8) {
    w = doubles.data, b = doubles.data + k.cols;
    dw = gradients.data, db = gradients.data + k.cols;
  }
  if (is_float) {
    Fill(static_cast<float*>(w), k.cols, 4, 1, k.weight_spread);
    Fill(static_cast<float*>(b), k.cols, 5, 0, 0.5);
    Fill(static_cast<float*>(dw), k.cols, 6, -777, 0);
    Fill(static_cast<float*>(db), k.cols, 6, -777, 0);
  } else {
    Fill(static_cast<T*>(w), k.cols, 4, 1, k.weight_spread);
    Fill(static_cast<T*>(b), k.cols, 5, 0, 0.5);
    Fill(static_cast<T*>(dw), k.cols, 6, -777, 0);
    Fill(static_cast<T*>(db), k.cols, 6, -777, 0);
  }
  Fill(dx.data, n, 7, -777, 0);
  NormBackward<T> a;
  a.rows = k.rows, a.cols = k.cols, a.x_stride = stride;
  a.x = x.data, a.dy = dy.data, a.from_output = k.from_output;
  if (k.dsum) a.dsum = dsum.data;
  if (k.weight) a.weight = w;
  if (k.bias && kCentre) a.bias = b;
  a.float_weight = is_float;
  const double unit = sizeof(T) == 8 ? (k.mean > 0 ? 1e-8 : 1e-13) : k.from_output ? 1e-4 : 4e-6;
  if (k.from_output) Fill(rstd.data, k.rows, 8, 1.5, 0.2);
  RowFactsKernel<T, kCentre>
      <<<1024, 256>>>(a, 1e-5, facts.data, mean.data, rstd.data, k.from_output);
  a.mean = k.from_output || !kCentre ? nullptr : mean.data;
  a.rstd = rstd.data;
  if (k.wanted & 1) a.dx = k.in_place ? dy.data : dx.data;
  if (k.wanted & 2) a.dweight = dw;
  if ((k.wanted & 4) && kCentre) a.dbias = db;
  const size_t bytes = NormBackwardWorkspaceBytes<T, kCentre>(k.rows, k.cols, limits);
  Array<char> workspace(static_cast<int64_t>(bytes));
  CHECK(cudaMemset(workspace.data, 0xff, bytes));
  CHECK(LaunchNormBackward<kCentre>(a, limits, nullptr, workspace.data));
  CHECK(cudaDeviceSynchronize());
  std::vector<char> bits;
  const int64_t out_bytes = n * static_cast<int64_t>(sizeof(T));
  if (a.dx && n < 4000000) {
    bits.resize(out_bytes);
    CHECK(cudaMemcpy(bits.data(), a.dx, out_bytes, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaMemset(worst.data, 0, 24));
  NormBackward<T> reference = a;
  reference.dy = k.in_place ? copy.data : dy.data;
  if (a.dx) {
    CheckDxKernel<T, kCentre><<<2048, 256>>>(reference, facts.data, unit, worst.data);
  }
  CheckWeightKernel<T, kCentre><<<2048, 256>>>(
      reference, facts.data, sizeof(T) == 8 ? (k.mean > 0 ? 1e-8 : 1e-13) : 1e-5, worst.data + 1);
  CHECK(cudaDeviceSynchronize());
  const std::vector<double> found = worst.Host();
  // Once more: the same bits.
  bool same = true;
  if (!k.in_place) {
    const auto before_w = dweight.Host();
    CHECK(LaunchNormBackward<kCentre>(a, limits, nullptr, workspace.data));
    CHECK(cudaDeviceSynchronize());
    const auto after_w = dweight.Host();
    same = std::memcmp(before_w.data(), after_w.data(), before_w.size() * 4) == 0;
    if (!bits.empty()) {
      std::vector<char> again(out_bytes);
      CHECK(cudaMemcpy(again.data(), a.dx, out_bytes, cudaMemcpyDeviceToHost));
      same = same && again == bits;
    }
  }
  const bool good = found[0] <= 1 && found[1] <= 1 && found[2] <= 1 && same;
  if (!good || print) {
    std::printf(
        "%s %s %s %lld x %lld pad %lld offsets %d %d mean %g spread %g float %d output %d "
        "dsum %d wanted %d in place %d: dx %.3g dweight %.3g dbias %.3g of the bound%s\n",
        good ? "ok  " : "FAIL", NameOf<T>(), kCentre ? "layer" : "rms",
        static_cast<long long>(k.rows), static_cast<long long>(k.cols),
        static_cast<long long>(k.x_pad), k.x_offset, k.dy_offset, k.mean, k.spread, k.float_weight,
        k.from_output, k.dsum, k.wanted, k.in_place, found[0], found[1], found[2],
        same ? "" : ", OTHER BITS");
  }
  return good;
}

template <class T, bool kCentre>
int CheckAll() {
  constexpr int64_t N = kPackSize<T>;
  std::vector<Case> cases;
  const auto add = [&](int64_t rows, int64_t cols) -> Case& {
    cases.push_back({rows, cols});
    return cases.back();
  };
  for (int64_t cols = 1; cols <= 40; ++cols) add(700, cols);
  // The boundaries of norm_policy.h, in packs; 16384: eight blocks of a cluster are full.
  for (int64_t packs :
       {1, 2, 4, 8, 16, 32, 64, 96, 128, 512, 1024, 2048, 4096, 8192, 16384, 20000}) {
    for (int64_t d : {int64_t{-1}, int64_t{0}, int64_t{1}, N - 1}) {
      add(packs > 4000 ? 40 : 300, packs * N + d);
    }
  }
  for (int64_t rows : {1, 2, 7, 8, 9, 131, 132, 133, 1000}) {
    for (int64_t cols : {64, 1000, 8192, 20001, 262144}) {
      if (rows * cols < 20000000) add(rows, cols);
    }
  }
  add(100000, 256);
  add(1, 3000001);
  add(3, 3000000);
  for (int64_t cols : {5, 33, 257, 1000, 1024, 8192, 20001, 140000, 400000}) {
    const int64_t rows = cols > 100000 ? 20 : 200;
    Case odd{rows, cols};
    odd.x_offset = odd.dy_offset = 1;
    cases.push_back(odd);
    odd.dy_offset = 0;
    cases.push_back(odd);
    Case padded{rows, cols, 16};
    cases.push_back(padded);
    padded.x_pad = 3;
    cases.push_back(padded);
    Case offset{rows, cols};
    offset.mean = 1e4, offset.spread = 1e-3;
    if (sizeof(T) >= 4) cases.push_back(offset);
    for (int wanted = 1; wanted < 8; ++wanted) {
      Case subset{rows, cols};
      subset.wanted = wanted;
      cases.push_back(subset);
      subset.from_output = true;
      cases.push_back(subset);
    }
    for (int bits = 0; bits < 16; ++bits) {
      Case mixed{rows, cols};
      mixed.float_weight = bits & 1, mixed.from_output = bits & 2, mixed.weight = bits & 4;
      mixed.bias = bits & 8, mixed.dsum = bits & 1;
      cases.push_back(mixed);
    }
    Case in_place{rows, cols};
    in_place.in_place = true;
    cases.push_back(in_place);
    in_place.dy_offset = 1;
    cases.push_back(in_place);
  }
  int failures = 0;
  for (const Case& k : cases) failures += !Check<T, kCentre>(k);
  std::printf("%-8s %-5s %zu cases, %d failures\n", NameOf<T>(), kCentre ? "layer" : "rms",
              cases.size(), failures);
  return failures;
}

// -- Times -----------------------------------------------------------------------------------

template <class T, bool kCentre>
void Time(Timer& timer, int64_t rows, int64_t cols, int64_t x_pad = 0) {
  using C = ComputeType<T>;
  const int64_t n = rows * cols;
  Array<T> x(rows * (cols + x_pad)), dy(n), dx(n), weight(2 * cols), dweight(2 * cols);
  Array<C> mean(rows), rstd(rows);
  Fill(x.data, x.n, 1, 0, 1);
  Fill(dy.data, n, 2, 0, 1);
  Fill(weight.data, weight.n, 3, 1, 0.1);
  Fill(mean.data, rows, 4, 0, 0.01);
  Fill(rstd.data, rows, 5, 1, 0.01);
  NormBackward<T> a;
  a.rows = rows, a.cols = cols, a.x_stride = cols + x_pad;
  a.x = x.data, a.dy = dy.data, a.dx = dx.data;
  a.weight = weight.data, a.dweight = dweight.data;
  a.bias = weight.data + cols;
  if (kCentre) a.dbias = dweight.data + cols, a.mean = mean.data;
  a.rstd = rstd.data;
  Array<char> workspace(NormBackwardWorkspaceBytes<T, kCentre>(rows, cols, limits));
  std::vector<double> ours, only_dx, streams;
  NormBackward<T> b = a;
  b.dweight = b.dbias = nullptr;
  const int64_t words = n * static_cast<int64_t>(sizeof(T)) / 16;
  const auto stream_blocks = static_cast<unsigned>((words + 1023) / 1024);
  for (int i = 0; i < 24; ++i) {
    const double t0 =
        timer.Once([&] { CHECK(LaunchNormBackward<kCentre>(a, limits, nullptr, workspace.data)); });
    const double t1 =
        timer.Once([&] { CHECK(LaunchNormBackward<kCentre>(b, limits, nullptr, workspace.data)); });
    const double t2 = timer.Once([&] {
      StreamKernel<<<stream_blocks, 512>>>(reinterpret_cast<const uint4*>(x.data),
                                           reinterpret_cast<const uint4*>(dy.data),
                                           reinterpret_cast<uint4*>(dx.data), words);
    });
    if (i >= 3) ours.push_back(t0), only_dx.push_back(t1), streams.push_back(t2);
  }
  const double bytes = 3.0 * n * sizeof(T), all = bytes + (kCentre ? 2.0 : 1.0) * rows * sizeof(C);
  const double t = Median(ours), td = Median(only_dx), ts = Median(streams);
  const double share = all / t / (bytes / ts);
  std::printf(
      "%-8s %-5s %8lld x %-8lld %9.1f us %6.0f GB/s  share %.3f   dx alone %6.0f GB/s "
      "%.3f   stream %6.0f GB/s %9.1f us\n",
      NameOf<T>(), kCentre ? "layer" : "rms", static_cast<long long>(rows),
      static_cast<long long>(cols), t, all / t * 1e-3, share, all / td * 1e-3,
      all / td / (bytes / ts), bytes / ts * 1e-3, ts);
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
  Time<T, kCentre>(timer, 1 << 20, 64);
  Time<T, kCentre>(timer, 4096, 4096);
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
