// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through cuBLASLt. What a problem needs is made once and kept; of large products
// the library's proposals are timed at the first launch, and the fastest stays. Whoever multiplies
// finds the same plans, so that a product has the same bits from all of them.
#include "primitive/matmul.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "oneflow_lite/core/cuda/allocator.h"
#include "oneflow_lite/core/deterministic.h"
#include "oneflow_lite/core/recent_table.h"
#include "primitive/cuda/host.h"
#include "primitive/cuda/matmul/plan.h"

namespace oneflow_lite {
namespace {

using cuda::CublasLt;
using cuda::LtStatus;
using cuda::MatmulPlan;

constexpr size_t kMaxWorkspace = 32 << 20;  // what NVIDIA recommends for Hopper; rarely all used
constexpr uint32_t kAligned = 16;           // bytes
// Products are timed from so many operations on: below, the launch is what takes time. A program
// with ever new lengths would time for ever, so a process chooses for so many shapes and no more.
// Their plans stay; of all others, some KB each that are made alike each time, so many do.
constexpr double kTimedFlops = 1e9;
constexpr int kChosenPlans = 512;
constexpr size_t kMostPlans = 2048;
constexpr int64_t kSplitFrom = 64;  // each size of a product whose uneven ends are split off
constexpr int kTimedRuns = 3;       // of which the fastest counts

// One cuBLASLt handle per device, made at first use, kept forever.
StatusOr<cublasLtHandle_t> HandleOf(const CublasLt& lt, int device) {
  static auto* mutex = new std::mutex;
  static auto* handles = new std::vector<cublasLtHandle_t>;
  std::lock_guard lock(*mutex);
  if (handles->size() <= static_cast<size_t>(device)) handles->resize(device + 1, nullptr);
  cublasLtHandle_t& handle = (*handles)[device];
  if (!handle) {
    DeviceGuard guard(device);
    OFL_RETURN_IF_ERROR(LtStatus(lt.Create(&handle), "initialisation"));
  }
  return handle;
}

bool IsLarge(const MatmulShape& s) {
  return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) *
             static_cast<double>(s.k) >=
         kTimedFlops;
}

// The process's plans. A key tells products of most programs apart by its first fields.
using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, DType, bool, bool, int64_t, int64_t,
                       int64_t, int64_t, int64_t, bool, bool, bool, uint32_t, int>;
struct Plans {
  std::mutex mutex;  // of the table
  RecentTable<Key, std::shared_ptr<MatmulPlan>> table{kMostPlans};
  std::atomic<int> chosen = 0;
};
Plans& ThePlans() {
  static auto* plans = new Plans;
  return *plans;
}

// Milliseconds between two points of a stream.
class Stopwatch {
 public:
  Stopwatch() {
    made_ = cudaEventCreate(&begin_);
    if (made_ == cudaSuccess) made_ = cudaEventCreate(&end_);
    if (made_ != cudaSuccess) cudaGetLastError();
  }
  ~Stopwatch() {
    if (begin_) cudaEventDestroy(begin_);
    if (end_) cudaEventDestroy(end_);
  }
  // Whether there was memory for it.
  bool ok() const { return made_ == cudaSuccess; }
  Status Begin(cudaStream_t stream) { return Timed(cudaEventRecord(begin_, stream)); }
  StatusOr<float> End(cudaStream_t stream) {
    OFL_RETURN_IF_ERROR(Timed(cudaEventRecord(end_, stream)));
    OFL_RETURN_IF_ERROR(Timed(cudaEventSynchronize(end_)));
    float found = 0;
    OFL_RETURN_IF_ERROR(Timed(cudaEventElapsedTime(&found, begin_, end_)));
    return found;
  }

 private:
  static Status Timed(cudaError_t error) { return CudaStatus(error, "timing of matmul"); }

  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaError_t made_ = cudaSuccess;
};

// A launch's operands and where it runs.
struct Operands {
  const void *a, *b, *bias;
  void *c, *workspace;
  cudaStream_t stream;
};

class CudaMatmul final : public Matmul {
 public:
  explicit CudaMatmul(DType dtype) : dtype_(dtype) {}

  size_t WorkspaceBytes(const Stream& stream, const MatmulShape& shape) const override {
    if (IsEmpty(shape)) return 0;
    size_t most = 0;
    for (const Part& part : PartsOf(shape)) {  // Launch reports what went wrong
      const auto plan = FindPlan(stream.device().index, part.shape, kAligned, kMaxWorkspace);
      if (plan.ok()) most = std::max(most, (*plan)->workspace());
    }
    return most;
  }

  bool AddsBias() const override { return dtype_ != DType::kFloat64; }

  int64_t RowMultiple() const override { return static_cast<int64_t>(kAligned / SizeOf(dtype_)); }

  Status Launch(Stream& stream, const MatmulShape& shape, const void* a, const void* b,
                const void* bias, void* c, void* workspace) const override {
    if (IsEmpty(shape)) return shape.accumulate ? OkStatus() : Clear(stream, shape, c);
    const auto item = static_cast<int64_t>(SizeOf(dtype_));
    const auto item_of_c = static_cast<int64_t>(SizeOfC(shape));
    for (const Part& part : PartsOf(shape)) {
      const auto at = [&](const void* p, int64_t offset) {
        return p ? static_cast<const char*>(p) + offset * item : nullptr;
      };
      const Operands o{at(a, part.a),
                       at(b, part.b),
                       part.shape.add_bias ? at(bias, part.n) : nullptr,
                       static_cast<char*>(c) + part.c * item_of_c,
                       workspace,
                       NativeStream(stream)};
      OFL_RETURN_IF_ERROR(LaunchPart(stream, part.shape, o));
    }
    return OkStatus();
  }

 private:
  // A part of a product, and where its operands begin: elements of a, b, c, and columns of c.
  struct Part {
    MatmulShape shape;
    int64_t a = 0, b = 0, c = 0, n = 0;
  };
  using Parts = absl::InlinedVector<Part, 4>;

  // The whole; or, of a large product of 16 bits, first what its sizes have beyond multiples of 16
  // bytes, by thin products, then the rest: the library has its fast kernels for such sizes alone.
  // What the inner dim has beyond comes first, so that the sum is rounded at its own size but once.
  Parts PartsOf(const MatmulShape& whole) const {
    Parts parts;
    Part rest{whole};
    MatmulShape& s = rest.shape;
    const int64_t multiple = RowMultiple();
    const bool rows_aligned =
        s.lda % multiple == 0 && s.ldb % multiple == 0 && s.c_stride() % multiple == 0;
    const bool small = std::min({s.m, s.n, s.k}) < kSplitFrom || !IsLarge(s);
    if (SizeOf(dtype_) == 2 && rows_aligned && s.batch == 1 && !small) {
      s.ldc = s.c_stride();
      if (const int64_t beyond = s.k % multiple; beyond != 0) {
        const int64_t k = s.k - beyond;
        Part part = rest;
        part.shape.k = beyond;
        part.a = s.transpose_a ? k * s.lda : k;
        part.b = s.transpose_b ? k : k * s.ldb;
        parts.push_back(part);
        s.k = k;
        s.add_bias = false;
        s.accumulate = true;
      }
      if (const int64_t beyond = s.n % multiple; beyond != 0) {
        const int64_t n = s.n - beyond;
        Part part = rest;
        part.shape.n = beyond;
        part.b = s.transpose_b ? n * s.ldb : n;
        part.c = part.n = n;
        parts.push_back(part);
        s.n = n;
      }
      if (const int64_t beyond = s.m % multiple; beyond != 0) {
        const int64_t m = s.m - beyond;
        Part part = rest;
        part.shape.m = beyond;
        part.a = s.transpose_a ? m : m * s.lda;
        part.c = m * s.c_stride();
        parts.push_back(part);
        s.m = m;
      }
    }
    parts.push_back(rest);
    return parts;
  }

  Status LaunchPart(Stream& stream, const MatmulShape& shape, const Operands& o) const {
    const int device = stream.device().index;
    OFL_ASSIGN_OR_RETURN(const CublasLt* lt, cuda::GetCublasLt());
    OFL_ASSIGN_OR_RETURN(cublasLtHandle_t handle, HandleOf(*lt, device));
    OFL_ASSIGN_OR_RETURN(auto plan, FindPlan(device, shape, kAligned, kMaxWorkspace));
    const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
    if ((address(o.a) | address(o.b) | address(o.c) | address(o.bias)) % kAligned != 0) {
      // Other algorithms, within the workspace that WorkspaceBytes asked for.
      OFL_ASSIGN_OR_RETURN(
          plan, FindPlan(device, shape, static_cast<uint32_t>(SizeOf(dtype_)), plan->workspace()));
    }
    DeviceGuard guard(device);
    std::lock_guard lock(plan->mutex());  // launches of other shapes go on
    if (!plan->settled() && IsLarge(shape) && !DeterministicAlgorithms() &&
        ThePlans().chosen < kChosenPlans) {
      Choose(*lt, handle, shape, o, stream, plan.get());
    }
    return plan->Run(*lt, handle, plan->best(), o.a, o.b, o.bias, o.c, o.workspace, o.stream);
  }

  // Bytes of an element of the result.
  size_t SizeOfC(const MatmulShape& s) const {
    return SizeOf(s.wide ? ComputeType(dtype_) : dtype_);
  }

  static bool IsEmpty(const MatmulShape& s) {
    return s.batch <= 0 || s.m <= 0 || s.n <= 0 || s.k <= 0;
  }

  // Zeros, of an empty sum.
  Status Clear(Stream& stream, const MatmulShape& s, void* c) const {
    if (s.batch <= 0 || s.m <= 0 || s.n <= 0) return OkStatus();
    const size_t row = static_cast<size_t>(s.n) * SizeOfC(s);
    const size_t pitch = static_cast<size_t>(s.c_stride()) * SizeOfC(s);
    return cuda::RunOn(stream, kName, [&](cudaStream_t native) {
      return cudaMemset2DAsync(c, pitch, 0, row, static_cast<size_t>(s.batch * s.m), native);
    });
  }

  // Made at the first call.
  StatusOr<std::shared_ptr<MatmulPlan>> FindPlan(int device, const MatmulShape& s,
                                                 uint32_t alignment, size_t max_workspace) const {
    const Key key{s.n,
                  s.m,
                  s.k,
                  s.batch,
                  dtype_,
                  s.transpose_a,
                  s.transpose_b,
                  s.lda,
                  s.ldb,
                  s.batch_stride_a,
                  s.batch_stride_b,
                  s.c_stride(),
                  s.add_bias,
                  s.accumulate,
                  s.wide,
                  alignment,
                  device};
    Plans& plans = ThePlans();
    std::lock_guard lock(plans.mutex);
    if (const auto* found = plans.table.Find(key)) return *found;
    OFL_ASSIGN_OR_RETURN(const CublasLt* lt, cuda::GetCublasLt());
    OFL_ASSIGN_OR_RETURN(cublasLtHandle_t handle, HandleOf(*lt, device));
    DeviceGuard guard(device);
    auto plan = std::make_shared<MatmulPlan>();
    OFL_RETURN_IF_ERROR(plan->Make(*lt, handle, dtype_, s, alignment, max_workspace));
    return *plans.table.Add(key, std::move(plan), [](const auto& p) { return p->chosen(); });
  }

  // The caller holds the plan's mutex. The fastest algorithm stays, and where none can be timed the
  // heuristic's first one, with which this call goes on: another would have other bits.
  static void Choose(const CublasLt& lt, cublasLtHandle_t handle, const MatmulShape& s,
                     const Operands& o, const Stream& stream, MatmulPlan* plan) {
    size_t best = 0;
    if (!stream.capturing()) best = FastestOf(lt, handle, s, o, stream.device().index, *plan);
    plan->Settle(best);
    ++ThePlans().chosen;
  }

  // Runs each algorithm on the operands, into scratch. One that does not run is passed over. 0
  // where there is no memory.
  static size_t FastestOf(const CublasLt& lt, cublasLtHandle_t handle, const MatmulShape& s,
                          const Operands& o, int device, const MatmulPlan& plan) {
    const size_t bytes =
        static_cast<size_t>(s.batch * s.m * s.c_stride()) * SizeOf(plan.result_dtype());
    CudaAllocator& allocator = GetCudaAllocator(device);
    Stopwatch watch;
    const StatusOr<void*> scratch = allocator.Allocate(bytes, o.stream);
    if (!scratch.ok()) return 0;
    size_t best = plan.algorithms().size();
    float least = 0;
    for (size_t i = 0; i < plan.algorithms().size() && watch.ok(); ++i) {
      float fastest = 0;
      bool runs = true;
      for (int run = 0; run <= kTimedRuns && runs; ++run) {  // the first one warms up
        runs = watch.Begin(o.stream).ok() && plan.Run(lt, handle, plan.algorithms()[i], o.a, o.b,
                                                      o.bias, *scratch, o.workspace, o.stream)
                                                 .ok();
        const StatusOr<float> taken = watch.End(o.stream);
        runs = runs && taken.ok();
        if (runs && (run == 1 || (run > 1 && *taken < fastest))) fastest = *taken;
      }
      if (!runs || (best < plan.algorithms().size() && fastest >= least)) continue;
      best = i;
      least = fastest;
    }
    allocator.Free(*scratch);
    return best < plan.algorithms().size() ? best : 0;
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Matmul>> NewMatmul(const Matmul::Spec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(Matmul::kName, DeviceType::kCUDA, spec.dtype);
  OFL_RETURN_IF_ERROR(cuda::GetCublasLt().status());
  return std::make_unique<CudaMatmul>(spec.dtype);
}

const bool registered = RegisterPrimitive<Matmul>(DeviceType::kCUDA, &NewMatmul);

}  // namespace
}  // namespace oneflow_lite
