// SPDX-License-Identifier: Apache-2.0
//
// Collectives over an ordered list of ranks: Gloo on the CPU, NCCL on CUDA.
//
//   OFL_ASSIGN_OR_RETURN(auto all, GetCommunicator(DeviceType::kCPU, {{0, 1, 2, 3}}));
//   OFL_RETURN_IF_ERROR(all->AllReduce(stream, x, x, n, DType::kFloat32));
//
// All members call the same collectives in the same order with arguments that agree. A member that
// fails, does not come, or asks for another thing gives a RuntimeError at the others: at the latest
// after the world's time-out, at once and with both sides' arguments under OFL_CHECK_COLLECTIVES=1.
// After an error the communicator is of no further use: each later call repeats that error.
//
// Pointers are to the device's memory, counts are of elements, dense. Work on CUDA is ordered by
// the stream; on the CPU it has ended when the call returns. A pointer of which 0 elements are read
// or written may be null. Ranges of input and output must not overlap, except where said.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "oneflow_lite/core/world.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

// How elements of several ranks become one. Integers wrap; bool: sum and max are "or", product and
// min are "and". NaN wins over numbers in max and min on the CPU. kMean is of floats only: the CPU
// divides the sum by the number of members and then rounds; NCCL multiplies each member's elements
// by its reciprocal, both rounded to the dtype, and then sums.
enum class CollectiveReduce : uint8_t { kSum, kProd, kMax, kMin, kMean };
// "sum"
OFL_API const char* Name(CollectiveReduce reduce);

using Counts = absl::Span<const int64_t>;

class OFL_API Communicator {
 public:
  static constexpr char kName[] = "collective";
  // The members, and the place of this process among them.
  struct Spec {
    DeviceType device_type;
    std::vector<int> ranks;
    int rank;
    int lane = 0;
  };
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  DeviceType device_type() const { return device_type_; }
  // The members by their ranks in the world. `rank`, `root`, `to`, `from` and the places in Counts
  // are positions in this list.
  absl::Span<const int> ranks() const { return ranks_; }
  int rank() const { return rank_; }
  int lane() const { return lane_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  // out = the reduction of all in; out may be in. The dtype in which it is summed: at least float32
  // for the 16-bit floats on the CPU, rounded once; the given one on CUDA, unless reduce_dtype asks
  // for kFloat32 there. All members get the same bits.
  Status AllReduce(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                   CollectiveReduce reduce = CollectiveReduce::kSum,
                   std::optional<DType> reduce_dtype = {});
  // The same of several ranges, each in place; one collective, and on CUDA one launch.
  struct Range {
    void* data;
    int64_t count;
  };
  Status AllReduceRanges(Stream& stream, absl::Span<const Range> ranges, DType dtype,
                         CollectiveReduce reduce = CollectiveReduce::kSum);
  // out = counts[0] elements of member 0, then counts[1] of member 1, ...; `in` has counts[rank()]
  // and may be their place in out.
  Status AllGather(Stream& stream, const void* in, void* out, Counts counts, DType dtype);
  // out = the counts[rank()] elements that are this member's part of the reduction of all in, each
  // of which has the sum of counts, in the order of members. out may be that part of `in`.
  Status ReduceScatter(Stream& stream, const void* in, void* out, Counts counts, DType dtype,
                       CollectiveReduce reduce = CollectiveReduce::kSum,
                       std::optional<DType> reduce_dtype = {});
  // The next send_counts[i] elements of `in` go to member i, the next recv_counts[i] of out come
  // from it.
  Status AllToAll(Stream& stream, const void* in, Counts send_counts, void* out, Counts recv_counts,
                  DType dtype);
  // out = `in` of member `root`; `in` is read there alone, and may be out.
  Status Broadcast(Stream& stream, const void* in, void* out, int64_t count, DType dtype, int root);
  // Outside a group, Send may wait for the other side's Recv. To oneself: in one group only.
  Status Send(Stream& stream, const void* in, int64_t count, DType dtype, int to);
  Status Recv(Stream& stream, void* out, int64_t count, DType dtype, int from);
  // Between these, Send and Recv (nothing else) are noted; GroupEnd lets them go at once, so that
  // opposing sends cannot wait for each other. All go on one stream. Those between the same two
  // members arrive in the order in which they were noted. Groups do not nest. A group is that of
  // the thread that began it: what others call meanwhile goes at once.
  Status GroupBegin();
  Status GroupEnd();
  // In place of GroupEnd: what was noted is forgotten, and nothing is sent.
  void GroupDrop();
  // Returns when all members have called it and, on CUDA, their streams have reached it.
  Status Barrier(Stream& stream);

 protected:
  explicit Communicator(Spec spec)
      : device_type_(spec.device_type),
        ranks_(std::move(spec.ranks)),
        rank_(spec.rank),
        lane_(spec.lane),
        sent_(ranks_.size()),
        received_(ranks_.size()) {}

  // One message; `number` counts those from its sender to its receiver.
  struct Transfer {
    bool send;
    void* data;
    int64_t count;
    DType dtype;
    int peer;
    int64_t number;
  };
  // Whether the engine reduces a dtype; an error for what it has no sum of.
  virtual Status CheckReducible(DType) const { return OkStatus(); }
  // What an engine does; the arguments have been checked, one call runs at a time. A time-out is
  // absl::DeadlineExceededError, a lost or ended connection absl::UnavailableError.
  virtual Status DoAllReduce(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                             CollectiveReduce reduce, DType reduce_dtype) = 0;
  // No range is empty.
  virtual Status DoAllReduceRanges(Stream& stream, absl::Span<const Range> ranges, DType dtype,
                                   CollectiveReduce reduce);
  virtual Status DoAllGather(Stream& stream, const void* in, void* out, Counts counts,
                             DType dtype) = 0;
  virtual Status DoReduceScatter(Stream& stream, const void* in, void* out, Counts counts,
                                 DType dtype, CollectiveReduce reduce, DType reduce_dtype) = 0;
  virtual Status DoAllToAll(Stream& stream, const void* in, Counts send_counts, void* out,
                            Counts recv_counts, DType dtype) = 0;
  virtual Status DoBroadcast(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                             int root) = 0;
  virtual Status DoTransfers(Stream& stream, absl::Span<const Transfer> transfers) = 0;
  virtual Status DoBarrier(Stream& stream) = 0;
  // After a call that went well: where it has only been given to a device, an engine sees to it
  // that GiveUp is called if it does not end in time.
  virtual Status Given(Stream&, const char* /*op*/, int64_t /*number*/) { return OkStatus(); }

  // The device did not do the call in time: all are told what each rank is doing, and the engine is
  // ended. What waited for the device goes on with memory that nobody wrote, so that the process
  // ends too, some seconds later, unless a call here has given the error by then.
  void GiveUp(const char* op, int64_t number);
  // The call that runs, as errors name it.
  const char* op() const { return op_; }
  int64_t number() const { return number_; }

 private:
  friend class LiveCommunicators;
  // Ends what waits in another thread: for anybody, or for the member `left` alone, which is gone.
  virtual void Abort(std::optional<int> left) = 0;

  struct Call;
  template <class F>
  Status Run(Stream& stream, const Call& call, F&& engine);
  // A forked child has the parent's connections, but is no rank: an error there.
  Status CheckProcess() const;
  Status CheckStream(const char* op, const Stream& stream) const;
  Status CheckCounts(const char* op, Counts counts) const;
  Status CheckReduce(const char* op, DType dtype, CollectiveReduce reduce,
                     std::optional<DType> reduce_dtype) const;
  Status CheckPeer(const char* op, const char* argument, int peer) const;
  Status CheckAgreement(const Call& call);
  Status CheckTransfers(absl::Span<const Transfer> transfers);
  Status Note(Stream& stream, Transfer transfer);
  Status RunTransfers(Stream& stream, std::vector<Transfer> transfers);
  Status CopyToOneself(Stream& stream, std::vector<Transfer>* transfers) const;
  Status Failure();
  Status Explain(const std::string& doing, const Status& s) const;
  std::string DescribeOthers() const;
  std::string DescribeLoss(absl::string_view own) const;
  std::string Members() const;
  std::string KeyInStore() const;

  bool InGroup() const { return group_of_ == std::this_thread::get_id(); }

  const DeviceType device_type_;
  const std::vector<int> ranks_;
  const int rank_;
  const int lane_;
  std::mutex mutex_;
  int64_t sequence_ = 0;  // collectives so far
  const char* op_ = "";   // of the call that runs
  int64_t number_ = 0;
  std::vector<int64_t> sent_, received_;  // messages so far, by member
  Status failed_;
  std::mutex late_mutex_;
  Status late_;                     // what GiveUp has told, on a thread of its own
  std::atomic<bool> given_{false};  // whether a call has failed with it
  std::thread::id group_of_;        // the thread whose group is open; none: there is none
  Stream* group_stream_ = nullptr;
  std::vector<Transfer> group_;
};
using CommunicatorFactory = PrimitiveFactory<Communicator>;

// The communicator of a device type over `ranks`, distinct ranks of the world of which this process
// is one; it is made at the first call and kept until the process ends. All members make the first
// call for a list in the same order; who is not a member does not call. On CUDA, it belongs to the
// current device at the first call. A list of one needs no engine.
// `lane`: collectives of one lane need not come in the same order on all members as those of
// another lane, so that threads may communicate side by side; each lane has connections of its own.
// ValueError for ranks that cannot be; RuntimeError where members do not meet within the time-out,
// or the engine's library is not there.
OFL_API StatusOr<std::shared_ptr<Communicator>> GetCommunicator(DeviceType device_type,
                                                                absl::Span<const int> ranks,
                                                                int lane = 0);

}  // namespace oneflow_lite
