// SPDX-License-Identifier: Apache-2.0
//
// CUDA's collectives: NCCL's, on the caller's stream. Uneven parts go as groups of sends, of which
// NCCL makes one launch.
#include "primitive/collective.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/collective_watch.h"
#include "oneflow_lite/core/cuda/graph.h"
#include "oneflow_lite/core/cuda/stream.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/store.h"
#include "oneflow_lite/core/world.h"
#include "primitive/copy.h"
#include "primitive/cuda/host.h"
#include "primitive/cuda/nccl.h"

namespace oneflow_lite::cuda {
namespace {

// Moves need no more than the size of an element; NCCL has no type of 16-bit integers.
NcclType TypeToMove(DType dtype, int64_t* count) {
  if (dtype == DType::kInt16) *count *= 2;
  switch (dtype) {
    case DType::kInt32:
      return NcclType::kInt32;
    case DType::kInt64:
      return NcclType::kInt64;
    case DType::kFloat16:
      return NcclType::kFloat16;
    case DType::kBFloat16:
      return NcclType::kBfloat16;
    case DType::kFloat32:
      return NcclType::kFloat32;
    case DType::kFloat64:
      return NcclType::kFloat64;
    case DType::kInt8:
      return NcclType::kInt8;
    default:
      return NcclType::kUint8;
  }
}

// bool is 0 or 1: "or" is its maximum, "and" its minimum.
NcclOp OpOf(DType dtype, CollectiveReduce reduce) {
  const bool is_bool = dtype == DType::kBool;
  switch (reduce) {
    case CollectiveReduce::kSum:
      return is_bool ? NcclOp::kMax : NcclOp::kSum;
    case CollectiveReduce::kProd:
      return is_bool ? NcclOp::kMin : NcclOp::kProd;
    case CollectiveReduce::kMax:
      return NcclOp::kMax;
    case CollectiveReduce::kMean:
      return NcclOp::kAvg;
    default:
      return NcclOp::kMin;
  }
}

int64_t Bytes(int64_t count, DType dtype) { return count * static_cast<int64_t>(SizeOf(dtype)); }
const char* At(const void* base, int64_t element, DType dtype) {
  return static_cast<const char*>(base) + Bytes(element, dtype);
}
char* At(void* base, int64_t element, DType dtype) {
  return static_cast<char*>(base) + Bytes(element, dtype);
}
bool AreEven(Counts counts) {
  for (const int64_t n : counts) {
    if (n != counts[0]) return false;
  }
  return true;
}

// Memory in the order of a stream.
class Temporary {
 public:
  static StatusOr<Temporary> Allocate(int64_t nbytes, Stream& stream) {
    Temporary t;
    OFL_ASSIGN_OR_RETURN(t.backend_, GetBackend(DeviceType::kCUDA));
    t.nbytes_ = static_cast<size_t>(nbytes);
    t.device_ = stream.device();
    OFL_ASSIGN_OR_RETURN(t.data_, t.backend_->Allocate(t.nbytes_, stream));
    return t;
  }
  Temporary(Temporary&& o) noexcept
      : backend_(o.backend_),
        data_(std::exchange(o.data_, nullptr)),
        nbytes_(o.nbytes_),
        device_(o.device_) {}
  ~Temporary() {
    if (data_) backend_->Free(data_, nbytes_, device_);
  }
  void* data() const { return data_; }

 private:
  Temporary() = default;
  DeviceBackend* backend_ = nullptr;
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  Device device_;
};

Elementwise<2> Dense(int64_t count) {
  Elementwise<2> g;
  g.ndim = 1;
  g.numel = g.dims[0] = count;
  g.strides[0][0] = g.strides[1][0] = 1;
  return g;
}

Status Cast(Stream& stream, const void* in, DType from, void* out, DType to, int64_t count) {
  if (count == 0) return OkStatus();
  OFL_ASSIGN_OR_RETURN(const auto copy, NewPrimitive<CopyFactory>(DeviceType::kCUDA, {from, to}));
  return copy->Launch(stream, Dense(count), in, out);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Spec spec, const Nccl* nccl, ncclComm_t comm, int device)
      : Communicator(std::move(spec)), nccl_(*nccl), comm_(comm), device_(device) {}
  // Kept until the process ends, when the driver takes all back.

 private:
  // One call of NCCL's, by which the communicator must still be there.
  class Inside {
   public:
    explicit Inside(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Inside() { --count_; }

   private:
    std::atomic<int>& count_;
  };
  static Status Ended() { return absl::UnavailableError("the communicator was ended"); }
  // f(cudaStream_t) gives a result of NCCL; it runs with the device current.
  template <class F>
  Status On(const Stream& stream, const char* what, F&& f) {
    if (stream.device().index != device_) {
      return Error(ErrorKind::kValue, what, "(): a stream of ", stream.device().ToString(),
                   " for a communicator of cuda:", device_);
    }
    const Inside inside(inside_);
    if (aborted_.load()) return Ended();
    // It may wait for the other members, to connect to them, or for room behind work that never
    // ends.
    OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
    const auto watched = CollectiveWatch::Get().Call(
        world->timeout, [this, op = this->op(), number = number()] { GiveUp(op, number); });
    DeviceGuard guard(device_);
    return NcclStatus(f(NativeStream(stream)), aborted_.load() ? nullptr : comm_, what);
  }
  // The same within one group.
  template <class F>
  Status Grouped(const Stream& stream, const char* what, F&& f) {
    return On(stream, what, [&](cudaStream_t s) {
      if (const NcclResult r = nccl_.GroupStart(); r != NcclResult::kSuccess) return r;
      const NcclResult inner = f(s);
      const NcclResult outer = nccl_.GroupEnd();
      return inner == NcclResult::kSuccess ? outer : inner;
    });
  }
  Status CopyHere(Stream& stream, const void* in, void* out, int64_t count, DType dtype) {
    if (in == out || count == 0) return OkStatus();
    DeviceGuard guard(device_);
    return CudaStatus(cudaMemcpyAsync(out, in, static_cast<size_t>(Bytes(count, dtype)),
                                      cudaMemcpyDeviceToDevice, NativeStream(stream)),
                      "a copy of a collective");
  }

  Status CheckReducible(DType dtype) const override {
    if (dtype != DType::kInt16) return OkStatus();
    return Error(ErrorKind::kNotImplemented, "NCCL does not reduce int16; convert to int32 before");
  }

  Status DoAllReduce(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                     CollectiveReduce reduce, DType reduce_dtype) override {
    if (reduce_dtype != dtype) {
      OFL_ASSIGN_OR_RETURN(const Temporary wide,
                           Temporary::Allocate(Bytes(count, reduce_dtype), stream));
      OFL_RETURN_IF_ERROR(Cast(stream, in, dtype, wide.data(), reduce_dtype, count));
      OFL_RETURN_IF_ERROR(
          DoAllReduce(stream, wide.data(), wide.data(), count, reduce_dtype, reduce, reduce_dtype));
      return Cast(stream, wide.data(), reduce_dtype, out, dtype, count);
    }
    return On(stream, "all_reduce", [&](cudaStream_t s) {
      const NcclType type = TypeToMove(dtype, &count);
      return nccl_.AllReduce(in, out, static_cast<size_t>(count), type, OpOf(dtype, reduce), comm_,
                             s);
    });
  }

  Status DoAllReduceRanges(Stream& stream, absl::Span<const Range> ranges, DType dtype,
                           CollectiveReduce reduce) override {
    return Grouped(stream, "all_reduce", [&](cudaStream_t s) {
      NcclResult result = NcclResult::kSuccess;
      for (const Range& r : ranges) {
        int64_t count = r.count;
        const NcclType type = TypeToMove(dtype, &count);
        result = nccl_.AllReduce(r.data, r.data, static_cast<size_t>(count), type,
                                 OpOf(dtype, reduce), comm_, s);
        if (result != NcclResult::kSuccess) break;
      }
      return result;
    });
  }

  Status DoReduceScatter(Stream& stream, const void* in, void* out, Counts counts, DType dtype,
                         CollectiveReduce reduce, DType reduce_dtype) override {
    if (reduce_dtype != dtype) {
      int64_t all = 0;
      for (const int64_t n : counts) all += n;
      const int64_t mine = counts[static_cast<size_t>(rank())];
      OFL_ASSIGN_OR_RETURN(const Temporary wide,
                           Temporary::Allocate(Bytes(all, reduce_dtype), stream));
      OFL_ASSIGN_OR_RETURN(
          const Temporary part,
          Temporary::Allocate(Bytes(std::max<int64_t>(mine, 1), reduce_dtype), stream));
      OFL_RETURN_IF_ERROR(Cast(stream, in, dtype, wide.data(), reduce_dtype, all));
      OFL_RETURN_IF_ERROR(DoReduceScatter(stream, wide.data(), part.data(), counts, reduce_dtype,
                                          reduce, reduce_dtype));
      return Cast(stream, part.data(), reduce_dtype, out, dtype, mine);
    }
    const NcclOp op = OpOf(dtype, reduce);
    if (AreEven(counts)) {
      return On(stream, "reduce_scatter", [&](cudaStream_t s) {
        int64_t count = counts[0];
        const NcclType type = TypeToMove(dtype, &count);
        return nccl_.ReduceScatter(in, out, static_cast<size_t>(count), type, op, comm_, s);
      });
    }
    return Grouped(stream, "reduce_scatter", [&](cudaStream_t s) {
      NcclResult result = NcclResult::kSuccess;
      int64_t begin = 0;
      for (int i = 0; i < size() && result == NcclResult::kSuccess; ++i) {
        int64_t count = counts[static_cast<size_t>(i)];
        const char* theirs = At(in, begin, dtype);
        begin += count;
        if (count == 0) continue;
        const NcclType type = TypeToMove(dtype, &count);
        result = nccl_.Reduce(theirs, out, static_cast<size_t>(count), type, op, i, comm_, s);
      }
      return result;
    });
  }

  Status DoAllGather(Stream& stream, const void* in, void* out, Counts counts,
                     DType dtype) override {
    if (AreEven(counts)) {
      return On(stream, "all_gather", [&](cudaStream_t s) {
        int64_t count = counts[0];
        const NcclType type = TypeToMove(dtype, &count);
        return nccl_.AllGather(in, out, static_cast<size_t>(count), type, comm_, s);
      });
    }
    const int64_t mine = counts[static_cast<size_t>(rank())];
    std::vector<Transfer> transfers;
    int64_t begin = 0;
    for (int i = 0; i < size(); ++i) {
      const int64_t n = counts[static_cast<size_t>(i)];
      char* theirs = At(out, begin, dtype);
      begin += n;
      if (i == rank()) {
        OFL_RETURN_IF_ERROR(CopyHere(stream, in, theirs, n, dtype));
        continue;
      }
      transfers.push_back({true, const_cast<void*>(in), mine, dtype, i, 0});
      transfers.push_back({false, theirs, n, dtype, i, 0});
    }
    return Move(stream, "all_gather", transfers);
  }

  Status DoAllToAll(Stream& stream, const void* in, Counts send_counts, void* out,
                    Counts recv_counts, DType dtype) override {
    std::vector<Transfer> transfers;
    int64_t sent = 0, received = 0;
    for (int i = 0; i < size(); ++i) {
      const int64_t to = send_counts[static_cast<size_t>(i)];
      const int64_t from = recv_counts[static_cast<size_t>(i)];
      const char* theirs = At(in, sent, dtype);
      char* mine = At(out, received, dtype);
      sent += to;
      received += from;
      if (i == rank()) {
        OFL_RETURN_IF_ERROR(CopyHere(stream, theirs, mine, to, dtype));
        continue;
      }
      transfers.push_back({true, const_cast<char*>(theirs), to, dtype, i, 0});
      transfers.push_back({false, mine, from, dtype, i, 0});
    }
    return Move(stream, "all_to_all", transfers);
  }

  Status DoBroadcast(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                     int root) override {
    return On(stream, "broadcast", [&](cudaStream_t s) {
      const NcclType type = TypeToMove(dtype, &count);
      // Who is not the root has nothing to read; NCCL looks at the pointer all the same.
      const void* from = rank() == root ? in : out;
      return nccl_.Broadcast(from, out, static_cast<size_t>(count), type, root, comm_, s);
    });
  }

  Status DoTransfers(Stream& stream, absl::Span<const Transfer> transfers) override {
    return Move(stream, "send and recv", transfers);
  }
  // Messages between the same two members arrive in their order.
  Status Move(Stream& stream, const char* what, absl::Span<const Transfer> transfers) {
    return Grouped(stream, what, [&](cudaStream_t s) {
      NcclResult result = NcclResult::kSuccess;
      for (const Transfer& t : transfers) {
        int64_t count = t.count;
        if (count == 0 || result != NcclResult::kSuccess) continue;
        const NcclType type = TypeToMove(t.dtype, &count);
        const auto n = static_cast<size_t>(count);
        result = t.send ? nccl_.Send(t.data, n, type, t.peer, comm_, s)
                        : nccl_.Recv(t.data, n, type, t.peer, comm_, s);
      }
      return result;
    });
  }

  Status DoBarrier(Stream& stream) override {
    OFL_ASSIGN_OR_RETURN(const Temporary token, Temporary::Allocate(4, stream));
    DeviceGuard guard(device_);
    OFL_RETURN_IF_ERROR(
        CudaStatus(cudaMemsetAsync(token.data(), 0, 4, NativeStream(stream)), "barrier"));
    OFL_RETURN_IF_ERROR(DoAllReduce(stream, token.data(), token.data(), 1, DType::kInt32,
                                    CollectiveReduce::kSum, DType::kInt32));
    OFL_RETURN_IF_ERROR(Watch(stream, "barrier", number()));
    OFL_RETURN_IF_ERROR(stream.Synchronize());
    return aborted_.load() ? Ended() : OkStatus();
  }

  // A captured call is watched behind each replay: there is nothing to ask of the capture.
  Status Given(Stream& stream, const char* op, int64_t number) override {
    if (!stream.capturing()) return Watch(stream, op, number);
    return AfterReplays(stream, this,
                        [this, op, number](Stream& s) { return Watch(s, op, number); });
  }
  Status Watch(Stream& stream, const char* op, int64_t number) {
    OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
    OFL_ASSIGN_OR_RETURN(Ref<Event> end, NewCudaEvent(stream.device(), /*timing=*/false));
    OFL_RETURN_IF_ERROR(end->Record(stream));
    CollectiveWatch::Get().Add(stream.native(), std::move(end), world->timeout,
                               [this, op, number] { GiveUp(op, number); });
    return OkStatus();
  }

  // NCCL ends its kernels, and with them whoever waits for the stream. One that left has done its
  // part: what is enqueued for it cannot be told apart, and ends by the failure of another.
  void Abort(std::optional<int> left) override {
    if (left || aborted_.exchange(true)) return;
    FailAtExit(true);  // a program that has no more calls to make would take what nobody wrote
    ExitAtOnce();      // NCCL may be in the midst of it when the program ends
    // Whoever tells of the failure does not wait for NCCL, which may wait for the device.
    CollectiveWatch::Beside([this] { End(); });
  }
  void End() {
    // A call that waits for room behind work that never ends cannot be ended, for NCCL would free
    // what it uses; then the process ends without it.
    constexpr std::chrono::milliseconds kLook{10};
    for (int looks = 0; inside_.load() > 0; ++looks) {
      if (looks == 100) return;
      std::this_thread::sleep_for(kLook);
    }
    DeviceGuard guard(device_);
    nccl_.CommAbort(comm_);
  }

  const Nccl& nccl_;
  const ncclComm_t comm_;
  const int device_;
  std::atomic<bool> aborted_{false};
  std::atomic<int> inside_{0};
};

// The id that the first member makes. All have come when it is there, so that none waits in NCCL,
// which knows no time-out, for another that is not.
StatusOr<ncclUniqueId> AgreeOnId(const Communicator::Spec& spec, const Nccl& nccl) {
  OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
  ncclUniqueId id{};
  if (spec.rank == 0) {
    OFL_RETURN_IF_ERROR(NcclStatus(nccl.GetUniqueId(&id), nullptr, "unique id"));
  }
  const std::string key = absl::StrCat("nccl/", absl::StrJoin(spec.ranks, ","), "/", spec.lane);
  std::vector<int> absent;
  const auto all = world->store->Gather(key, spec.rank, static_cast<int>(spec.ranks.size()),
                                        absl::string_view(id.internal, sizeof id.internal),
                                        world->timeout, &absent, spec.ranks);
  if (!all.ok()) {
    for (int& place : absent) place = spec.ranks[static_cast<size_t>(place)];
    if (absent.empty()) return all.status();
    return Error(ErrorKind::kRuntime, absent.size() == 1 ? "rank " : "ranks ",
                 absl::StrJoin(absent, ", "), " did not come within ",
                 static_cast<double>(world->timeout.count()) / 1000, " s");
  }
  const std::string& bytes = (*all)[0];
  if (bytes.size() != sizeof id.internal) {
    return Error(ErrorKind::kRuntime, "NCCL's id has ", bytes.size(), " bytes");
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

// NCCL waits for a member that has ended meanwhile, and knows no time-out.
void EndUnconnected(const Communicator::Spec& spec) {
  const std::string message = absl::StrCat("the ranks [", absl::StrJoin(spec.ranks, ", "),
                                           "] were not connected by NCCL within the time-out");
  ReportFailure(message);
  std::fprintf(stderr, "oneflow_lite: %s\n", message.c_str());
  std::fflush(stderr);
  _exit(1);
}

StatusOr<std::unique_ptr<Communicator>> NewNccl(const Communicator::Spec& spec) {
  const Device here{DeviceType::kCUDA, static_cast<int16_t>(CurrentDeviceIndex(DeviceType::kCUDA))};
  OFL_ASSIGN_OR_RETURN(const Stream* stream, CurrentStream(here));
  if (stream->capturing()) {
    return Error(ErrorKind::kRuntime,
                 "a graph is being captured, in which ranks cannot be connected; call a collective "
                 "of these ranks before the capture");
  }
  OFL_ASSIGN_OR_RETURN(const Nccl* nccl, GetNccl());
  OFL_ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnId(spec, *nccl));
  const int device = here.index;
  OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
  DeviceGuard guard(device);
  ncclComm_t comm = nullptr;
  {
    const auto watched =
        CollectiveWatch::Get().Call(world->timeout, [spec] { EndUnconnected(spec); });
    OFL_RETURN_IF_ERROR(
        NcclStatus(nccl->CommInitRank(&comm, static_cast<int>(spec.ranks.size()), id, spec.rank),
                   nullptr, "communicator"));
  }
  LeaveBeforeOthers();  // the exit handlers of CUDA and NCCL
  return std::make_unique<NcclCommunicator>(spec, nccl, comm, device);
}

const bool registered = RegisterPrimitive<Communicator>(DeviceType::kCUDA, &NewNccl);

}  // namespace
}  // namespace oneflow_lite::cuda
