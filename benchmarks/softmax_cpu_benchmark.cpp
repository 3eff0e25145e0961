// SPDX-License-Identifier: Apache-2.0
//
// Times the CPU's softmax primitives; `bytes_per_second` counts what must move: the inputs read
// once, the output written once.
//
//   softmax_cpu_benchmark --benchmark_filter='Forward/float32/.*rows:4096'
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/softmax.h"

namespace oneflow_lite {
namespace {

struct Buffer {
  explicit Buffer(size_t nbytes) : nbytes(nbytes) {
    DeviceBackend* cpu = GetBackend(DeviceType::kCPU).value();
    data = cpu->Allocate(nbytes, *CurrentStream(Device{}).value()).value();
  }
  ~Buffer() { GetBackend(DeviceType::kCPU).value()->Free(data, nbytes, Device{}); }
  size_t nbytes;
  void* data;
};

// n normal numbers; a short list of them over and over, which is quicker to make.
std::unique_ptr<Buffer> Normal(DType dtype, int64_t n) {
  constexpr int64_t kDistinct = 8191;
  auto buffer = std::make_unique<Buffer>(static_cast<size_t>(n) * SizeOf(dtype));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  VisitFloating(dtype, [&]<class T>(Tag<T>) {
    T* p = static_cast<T*>(buffer->data);
    for (int64_t i = 0; i < n; ++i) {
      p[i] = i < kDistinct ? static_cast<T>(normal(generator)) : p[i - kDistinct];
    }
  });
  return buffer;
}

// Arguments: rows (outer), cols, inner, threads.
void Forward(benchmark::State& state, DType dtype, bool log) {
  const SoftmaxShape shape{state.range(0), state.range(1), state.range(2)};
  SetNumThreads(static_cast<int>(state.range(3)));
  const int64_t n = shape.rows * shape.cols * shape.inner;
  auto x = Normal(dtype, n), y = Normal(dtype, n);
  auto softmax = NewPrimitive<SoftmaxFactory>(DeviceType::kCPU, {dtype, log}).value();
  Stream& stream = *CurrentStream(Device{}).value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(softmax->Launch(stream, shape, x->data, y->data, nullptr).ok());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(x->nbytes + y->nbytes));
}

void Backward(benchmark::State& state, DType dtype, bool log) {
  const SoftmaxShape shape{state.range(0), state.range(1), state.range(2)};
  SetNumThreads(static_cast<int>(state.range(3)));
  const int64_t n = shape.rows * shape.cols * shape.inner;
  auto y = Normal(dtype, n), dy = Normal(dtype, n), dx = Normal(dtype, n);
  auto backward = NewPrimitive<SoftmaxBackwardFactory>(DeviceType::kCPU, {dtype, log}).value();
  Stream& stream = *CurrentStream(Device{}).value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        backward->Launch(stream, shape, y->data, dy->data, dx->data, nullptr).ok());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(3 * y->nbytes));
}

// The limit: a copy of the same bytes.
void CopyBytes(benchmark::State& state) {
  const int64_t n = state.range(0) * state.range(1) * state.range(2);
  SetNumThreads(static_cast<int>(state.range(3)));
  auto x = Normal(DType::kFloat32, n), y = Normal(DType::kFloat32, n);
  for (auto _ : state) {
    ParallelFor(n, 32768, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<float*>(y->data) + begin, static_cast<float*>(x->data) + begin,
                  static_cast<size_t>(end - begin) * sizeof(float));
    });
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n * 8);
}

void Shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "cols", "inner", "threads"})->UseRealTime();
  for (int threads : {1, 2}) {
    b->Args({4, 64, 1, threads});
    b->Args({64, 1024, 1, threads});  // stays in the L2 cache
    b->Args({4096, 1024, 1, threads});
    b->Args({64, 50257, 1, threads});
    b->Args({65536, 1024, 1, threads});  // from and to memory
    b->Args({65536, 33, 1, threads});
    b->Args({64, 1000, 1024, threads});  // the middle axis
  }
}

const bool registered = [] {
  benchmark::RegisterBenchmark("Copy", CopyBytes)->Apply(Shapes);
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    for (bool log : {false, true}) {
      const std::string rest = std::string("/") + Name(dtype) + (log ? "/log" : "/softmax");
      benchmark::RegisterBenchmark(("Forward" + rest).c_str(), Forward, dtype, log)->Apply(Shapes);
      benchmark::RegisterBenchmark(("Backward" + rest).c_str(), Backward, dtype, log)
          ->Apply(Shapes);
    }
  }
  return true;
}();

}  // namespace
}  // namespace oneflow_lite

BENCHMARK_MAIN();
