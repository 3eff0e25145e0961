// SPDX-License-Identifier: Apache-2.0
//
// The CPU's collectives: what each rank has to tell each other goes at once, and sums are formed
// here, in the order of ranks. An all_reduce moves 2 L (p - 1) / p bytes per rank, as a ring does,
// in two steps instead of 2 (p - 1).
#include "primitive/cpu/collective.h"

#include <cstring>

#include "primitive/cpu/gloo/exchange.h"
#include "primitive/cpu/gloo/reduce_parts.h"

namespace oneflow_lite {
namespace {

// Up to so many bytes, all is sent to all in one step. Above, each sums a part, and tells it.
constexpr int64_t kOneStepBytes = 8192;

enum class Kind : uint64_t {
  kReduce,
  kGather,
  kScatter,
  kExchange,
  kBroadcast,
  kBarrier,
  kMessage
};

// Messages of different calls never meet: a wrong order of calls is a time-out, not wrong numbers.
uint64_t Tag(Kind kind, int64_t number, int step, DType dtype, int64_t nbytes) {
  uint64_t h = 0;
  for (const uint64_t part :
       {static_cast<uint64_t>(kind), static_cast<uint64_t>(number), static_cast<uint64_t>(step),
        static_cast<uint64_t>(dtype), static_cast<uint64_t>(nbytes)}) {
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

// A range of elements for each member.
struct Parts {
  std::vector<int64_t> begins, counts;

  // One after another.
  explicit Parts(Counts given) : counts(given.begin(), given.end()) {
    int64_t begin = 0;
    for (const int64_t n : counts) {
      begins.push_back(begin);
      begin += n;
    }
  }
  // As even as can be.
  static Parts Even(int64_t count, int size) {
    std::vector<int64_t> counts(static_cast<size_t>(size), count / size);
    for (int64_t i = 0; i < count % size; ++i) ++counts[static_cast<size_t>(i)];
    return Parts(counts);
  }
  // All for each.
  static Parts Whole(int64_t count, int size) {
    Parts parts(std::vector<int64_t>(static_cast<size_t>(size), count));
    parts.begins.assign(parts.counts.size(), 0);
    return parts;
  }
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(Spec spec, const World& world)
      : Communicator(spec), exchanger_(world, spec.ranks, spec.rank, spec.lane) {}

 private:
  void Abort(std::optional<int> left) override { exchanger_.Abort(left); }

  // The messages of one step, and what stays here.
  class Step {
   public:
    Step(GlooCommunicator& c, Kind kind, int number, DType dtype)
        : c_(c), kind_(kind), number_(number), dtype_(dtype) {}
    void Send(const void* data, int64_t count, int to) {
      Add(true, const_cast<void*>(data), count, to);
    }
    void Recv(void* data, int64_t count, int from) { Add(false, data, count, from); }
    Status Run() { return c_.exchanger_.Run(messages_); }

   private:
    void Add(bool send, void* data, int64_t count, int peer) {
      const int64_t nbytes = count * static_cast<int64_t>(SizeOf(dtype_));
      messages_.push_back(
          {send, data, nbytes, peer, Tag(kind_, c_.calls_, number_, dtype_, nbytes)});
    }
    GlooCommunicator& c_;
    const Kind kind_;
    const int number_;
    const DType dtype_;
    std::vector<Message> messages_;
  };

  static const char* At(const void* base, int64_t element, DType dtype) {
    return static_cast<const char*>(base) + element * static_cast<int64_t>(SizeOf(dtype));
  }
  static char* At(void* base, int64_t element, DType dtype) {
    return static_cast<char*>(base) + element * static_cast<int64_t>(SizeOf(dtype));
  }
  static void Copy(const void* in, void* out, int64_t count, DType dtype) {
    if (in != out && count > 0) {
      std::memcpy(out, in, static_cast<size_t>(count) * SizeOf(dtype));
    }
  }

  Status DoAllReduce(Stream&, const void* in, void* out, int64_t count, DType dtype,
                     CollectiveReduce reduce, DType) override {
    ++calls_;
    if (IsOneStep(count, dtype)) {
      return Reduce(in, out, Parts::Whole(count, size()), dtype, reduce);
    }
    const Parts parts = Parts::Even(count, size());
    char* mine = At(out, parts.begins[static_cast<size_t>(rank())], dtype);
    OFL_RETURN_IF_ERROR(Reduce(in, mine, parts, dtype, reduce));
    return Spread(mine, out, parts, dtype);
  }
  bool IsOneStep(int64_t count, DType dtype) const {
    return size() == 2 || count * static_cast<int64_t>(SizeOf(dtype)) <= kOneStepBytes;
  }

  // out = the reduction of this member's part of all in; out may be that part.
  Status Reduce(const void* in, void* out, const Parts& parts, DType dtype,
                CollectiveReduce reduce) {
    const int64_t count = parts.counts[static_cast<size_t>(rank())];
    const int64_t nbytes = count * static_cast<int64_t>(SizeOf(dtype));
    const std::unique_ptr<char[]> others(new char[static_cast<size_t>(nbytes * (size() - 1))]);
    std::vector<const void*> addends;
    Step step(*this, Kind::kReduce, 0, dtype);
    char* next = others.get();
    for (int i = 0; i < size(); ++i) {
      const char* theirs = At(in, parts.begins[static_cast<size_t>(i)], dtype);
      if (i == rank()) {
        addends.push_back(theirs);
        continue;
      }
      step.Send(theirs, parts.counts[static_cast<size_t>(i)], i);
      step.Recv(next, count, i);
      addends.push_back(next);
      next += nbytes;
    }
    OFL_RETURN_IF_ERROR(step.Run());
    ReduceParts(addends, out, count, dtype, reduce);
    return OkStatus();
  }

  Status DoReduceScatter(Stream&, const void* in, void* out, Counts counts, DType dtype,
                         CollectiveReduce reduce, DType) override {
    ++calls_;
    return Reduce(in, out, Parts(counts), dtype, reduce);
  }

  Status DoAllGather(Stream&, const void* in, void* out, Counts counts, DType dtype) override {
    ++calls_;
    return Spread(in, out, Parts(counts), dtype);
  }
  // out = each member's `in` at its part.
  Status Spread(const void* in, void* out, const Parts& parts, DType dtype) {
    Step step(*this, Kind::kGather, 1, dtype);
    const int64_t mine = parts.counts[static_cast<size_t>(rank())];
    for (int i = 0; i < size(); ++i) {
      const int64_t n = parts.counts[static_cast<size_t>(i)];
      char* theirs = At(out, parts.begins[static_cast<size_t>(i)], dtype);
      if (i == rank()) {
        Copy(in, theirs, n, dtype);
        continue;
      }
      step.Send(in, mine, i);
      step.Recv(theirs, n, i);
    }
    return step.Run();
  }

  Status DoAllToAll(Stream&, const void* in, Counts send_counts, void* out, Counts recv_counts,
                    DType dtype) override {
    ++calls_;
    Step step(*this, Kind::kExchange, 0, dtype);
    int64_t sent = 0, received = 0;
    for (int i = 0; i < size(); ++i) {
      const int64_t to = send_counts[static_cast<size_t>(i)];
      const int64_t from = recv_counts[static_cast<size_t>(i)];
      if (i == rank()) {
        Copy(At(in, sent, dtype), At(out, received, dtype), to, dtype);
      } else {
        step.Send(At(in, sent, dtype), to, i);
        step.Recv(At(out, received, dtype), from, i);
      }
      sent += to;
      received += from;
    }
    return step.Run();
  }

  // The root sends all to all; what is long it deals out, and those who got a part tell it.
  Status DoBroadcast(Stream&, const void* in, void* out, int64_t count, DType dtype,
                     int root) override {
    ++calls_;
    if (rank() == root) Copy(in, out, count, dtype);
    const bool is_one_step = IsOneStep(count, dtype);
    const Parts parts = is_one_step ? Parts::Whole(count, size()) : Parts::Even(count, size());
    const auto part_of = [&](int i) {
      return At(out, parts.begins[static_cast<size_t>(i)], dtype);
    };
    Step step(*this, Kind::kBroadcast, 0, dtype);
    if (rank() == root) {
      for (int i = 0; i < size(); ++i) {
        if (i != root) step.Send(part_of(i), parts.counts[static_cast<size_t>(i)], i);
      }
    } else {
      step.Recv(part_of(rank()), parts.counts[static_cast<size_t>(rank())], root);
    }
    OFL_RETURN_IF_ERROR(step.Run());
    return is_one_step ? OkStatus() : Spread(part_of(rank()), out, parts, dtype);
  }

  Status DoTransfers(Stream&, absl::Span<const Transfer> transfers) override {
    std::vector<Message> messages;
    for (const Transfer& t : transfers) {
      const int64_t nbytes = t.count * static_cast<int64_t>(SizeOf(t.dtype));
      messages.push_back(
          {t.send, t.data, nbytes, t.peer, Tag(Kind::kMessage, t.number, 0, t.dtype, nbytes)});
    }
    return exchanger_.Run(messages);
  }

  // In round d each tells the member 2^d places on what it has heard from those before.
  Status DoBarrier(Stream&) override {
    ++calls_;
    char sent = 0, received = 0;
    for (int distance = 1, round = 0; distance < size(); distance *= 2, ++round) {
      Step step(*this, Kind::kBarrier, round, DType::kUInt8);
      step.Send(&sent, 1, (rank() + distance) % size());
      step.Recv(&received, 1, (rank() - distance + size()) % size());
      OFL_RETURN_IF_ERROR(step.Run());
    }
    return OkStatus();
  }

  Exchanger exchanger_;
  int64_t calls_ = 0;
};

StatusOr<std::unique_ptr<Communicator>> NewGloo(const Communicator::Spec& spec) {
  OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
  try {
    return std::make_unique<GlooCommunicator>(spec, *world);
  } catch (const std::exception& e) {
    return Error(ErrorKind::kRuntime, e.what());
  }
}

const bool registered = (RegisterCpuCollectives(&NewGloo), true);

}  // namespace
}  // namespace oneflow_lite
