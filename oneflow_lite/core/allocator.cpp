// SPDX-License-Identifier: Apache-2.0
//
// The CPU's backend: a caching allocator in front of aligned system memory. Freed blocks are kept
// in size classes, so that a training step reuses warm pages instead of faulting in fresh ones.
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "oneflow_lite/core/address_space.h"
#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {
namespace {

constexpr size_t kAlignment = 64;           // one cache line, one AVX-512 vector
constexpr size_t kMaxCached = 512 << 20;    // bytes kept at most
constexpr size_t kPaged = 4;                // blocks of so many pages start at a page
constexpr size_t kHugePageBytes = 4 << 20;  // blocks that ask for huge pages
constexpr size_t kApart = 28672;            // bytes behind such a block, which no one uses
constexpr int kStepsPerDoubling = 4;        // size classes: at most 25 % of a block is unused

// Size classes: multiples of a quarter of the power of two below.
struct SizeClass {
  int index;
  size_t bytes;
};
SizeClass ClassOf(size_t nbytes) {
  nbytes = std::max<size_t>(nbytes, 256);
  const int exponent = std::bit_width(nbytes - 1) - 1;  // 2^exponent < nbytes <= 2^(exponent + 1)
  const size_t step = (size_t{1} << exponent) / kStepsPerDoubling;
  const size_t base = size_t{1} << exponent;
  const size_t k = (nbytes - base + step - 1) / step;
  return {exponent * kStepsPerDoubling + static_cast<int>(k) - 1, base + k * step};
}

// nbytes of memory, null where there is none. A block of some pages starts at a page: a load waits
// for an earlier store whose address is the same modulo 4096, and glibc lays a block of whole pages
// 64 bytes behind the last one, modulo 4096, so that a result's stores met the next loads of its
// operand (layer_norm of 1024 x 4096 float16 took twice as long). A large block asks for pages of 2
// MB, which the system may refuse: fewer faults at the first touch, fewer misses of the address
// translation ever after (softmax of 16384 x 4096 float32 moves 35 instead of 28 GB/s).
//
// Zen finds a line in the first cache by eight bits, bit 12 + i of its address xor bit 27 - i for
// the lowest three of them, and takes two lines with the same bits for one. Large blocks lie their
// size, kApart and two pages apart. With two pages alone blocks of 64 MB, 2^26 + 2^13 bytes, had
// the same bits: the gradient of softmax took up to 1.4 times as long (docs/lab/35).
void* FromSystem(size_t nbytes) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const TakingMemory beside_others;
  void* p = nullptr;
  const bool huge = nbytes >= kHugePageBytes;
  const size_t alignment = nbytes >= kPaged * page ? page : kAlignment;
  if (posix_memalign(&p, alignment, nbytes + (huge ? kApart : 0)) != 0) return nullptr;
  if (huge) madvise(p, nbytes, MADV_HUGEPAGE);
  return p;
}

class CpuDeviceBackend final : public DeviceBackend {
 public:
  CpuDeviceBackend() {
    properties_.name = "cpu";
    properties_.multiprocessors =
        static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    stream_ = MakeRef<Stream>(Device{}, &properties_);
  }

  int DeviceCount() override { return 1; }
  const DeviceProperties& Properties(int) override { return properties_; }

  StatusOr<void*> Allocate(size_t nbytes, Stream&) override {
    if (nbytes > largest_) return OutOfMemory(nbytes);
    const SizeClass size = ClassOf(nbytes);
    {
      std::lock_guard lock(mutex_);
      auto& list = free_[size.index];
      if (!list.empty()) {
        void* p = list.back();
        list.pop_back();
        cached_ -= size.bytes;
        Count(size.bytes);
        return p;
      }
    }
    void* p = FromSystem(size.bytes);
    if (!p) {
      EmptyCache(0);
      p = FromSystem(size.bytes);
    }
    if (!p) return OutOfMemory(nbytes);
    std::lock_guard lock(mutex_);
    Count(size.bytes);
    return p;
  }

  // What is freed now is likelier to be asked for again than what has been waiting: where both do
  // not fit, the latter goes.
  void Free(void* data, size_t nbytes, Device) override {
    const SizeClass size = ClassOf(nbytes);
    std::unique_lock lock(mutex_);
    allocated_ -= size.bytes;
    if (size.bytes > kMaxCached) {
      lock.unlock();
      std::free(data);
      return;
    }
    if (cached_ + size.bytes > kMaxCached) {
      lock.unlock();
      EmptyCache(0);
      lock.lock();
    }
    free_[size.index].push_back(data);
    cached_ += size.bytes;
  }

  Status RecordStream(void*, Stream&) override { return OkStatus(); }

  void EmptyCache(int) override {
    std::array<std::vector<void*>, kNumClasses> blocks;
    {
      std::lock_guard lock(mutex_);
      std::swap(blocks, free_);
      cached_ = 0;
    }
    for (auto& list : blocks) {
      for (void* p : list) std::free(p);
    }
  }

  MemoryStats Stats(int) override {
    std::lock_guard lock(mutex_);
    return {allocated_, allocated_ + cached_, peak_};
  }
  void ResetPeak(int) override {
    std::lock_guard lock(mutex_);
    peak_ = allocated_;
  }

  Status CopyOnDevice(void* dst, const void* src, size_t nbytes, Stream&) override {
    std::memcpy(dst, src, nbytes);
    return OkStatus();
  }
  Status CopyFromHost(void* dst, const void* src, size_t nbytes, Stream& s) override {
    return CopyOnDevice(dst, src, nbytes, s);
  }
  Status CopyToHost(void* dst, const void* src, size_t nbytes, Stream& s) override {
    return CopyOnDevice(dst, src, nbytes, s);
  }

  Ref<Stream> DefaultStream(int) override { return stream_; }
  StatusOr<Ref<Stream>> NewStream(int) override { return stream_; }
  StatusOr<Ref<Stream>> ExternalStream(int, void*) override { return stream_; }
  StatusOr<Ref<Event>> NewEvent(int, bool) override { return NoSuch("events"); }
  StatusOr<Ref<Graph>> NewGraph(int) override { return NoSuch("graphs"); }
  Status Synchronize(int) override { return OkStatus(); }

 private:
  static constexpr int kNumClasses = 64 * kStepsPerDoubling;

  // With the mutex held, and only for memory that was had: a refusal leaves no trace.
  void Count(size_t nbytes) {
    allocated_ += nbytes;
    peak_ = std::max(peak_, allocated_);
  }

  static Status OutOfMemory(size_t nbytes) {
    return Error(ErrorKind::kOutOfMemory, "out of memory on cpu: ", nbytes,
                 " bytes were asked for");
  }
  static Status NoSuch(const char* what) {
    return Error(ErrorKind::kNotImplemented, "the cpu runs synchronously and has no ", what);
  }

  // A system that overcommits hands out addresses for any size and ends the process that uses them.
  // Memory may grow while the machine runs, but not to this.
  static size_t ImpossibleSize() {
    struct sysinfo info = {};
    if (sysinfo(&info) != 0) return size_t{1} << 46;
    return (size_t{info.totalram} + info.totalswap) * info.mem_unit * 16;
  }

  const size_t largest_ = ImpossibleSize();
  DeviceProperties properties_;
  Ref<Stream> stream_;
  std::mutex mutex_;
  std::array<std::vector<void*>, kNumClasses> free_;
  size_t allocated_ = 0, cached_ = 0, peak_ = 0;
};

}  // namespace

DeviceBackend* CpuBackend() {
  static auto* backend = new CpuDeviceBackend;  // outlives every tensor, also static ones
  return backend;
}

}  // namespace oneflow_lite
