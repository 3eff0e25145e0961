// SPDX-License-Identifier: Apache-2.0
//
// Products of bfloat16 through oneDNN, each on the thread that asks for it. oneDNN compiles a
// kernel for each shape; those of the last shapes are kept here and in oneDNN, whose look-up takes
// 5 us.
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>

#include "oneflow_lite/core/address_space.h"
#include "primitive/cpu/bfloat16_product.h"

namespace oneflow_lite {
namespace {

using dnnl::memory;

const dnnl::engine& Cpu() {
  static const auto* cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *cpu;
}

constexpr auto kBfloat16 = memory::data_type::bf16;
memory::desc Describe(memory::dims dims, memory::dims strides, memory::data_type type = kBfloat16) {
  return {dims, type, strides};
}

// Matrices of rows x cols, of which one serves for all where its stride is 0.
memory::desc Operand(int64_t batch, int64_t stride, int64_t rows, int64_t cols, bool transposed,
                     int64_t leading, memory::data_type type = kBfloat16) {
  const int64_t down = transposed ? 1 : leading, across = transposed ? leading : 1;
  if (batch == 1) return Describe({rows, cols}, {down, across}, type);
  if (stride == 0) return Describe({1, rows, cols}, {rows * cols, down, across}, type);
  return Describe({batch, rows, cols}, {stride, down, across}, type);
}

struct Operands {
  memory::desc a, b, bias, c;

  explicit Operands(const MatmulShape& s)
      : a(Operand(s.batch, s.batch_stride_a, s.m, s.k, s.transpose_a, s.lda)),
        b(Operand(s.batch, s.batch_stride_b, s.k, s.n, s.transpose_b, s.ldb)),
        c(Operand(s.batch, s.m * s.c_stride(), s.m, s.n, false, s.c_stride(),
                  s.wide ? memory::data_type::f32 : kBfloat16)) {
    if (!s.add_bias) return;
    bias = s.batch == 1 ? Describe({1, s.n}, {s.n, 1}) : Describe({1, 1, s.n}, {s.n, s.n, 1});
  }
};

// Memory that a thread keeps from product to product.
class Scratch {
 public:
  ~Scratch() { std::free(memory_); }
  void* OfBytes(size_t bytes) {
    if (bytes > bytes_) {
      std::free(memory_);
      bytes_ = 0;
      memory_ = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
      if (!memory_) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return memory_;
  }

 private:
  static constexpr size_t kLine = 64;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

// What `call` gives; what it throws, as a Status.
template <class F>
auto Caught(F call) -> StatusOr<decltype(call())> {
  try {
    return call();
  } catch (const dnnl::error& e) {
    const bool memory = e.status == dnnl_out_of_memory;
    return Error(memory ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime,
                 memory ? "out of memory: " : "", "oneDNN: ", e.what());
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::kOutOfMemory, "out of memory: oneDNN: no room for a product");
  }
}

class OneDnnProduct final : public Bfloat16Product {
 public:
  explicit OneDnnProduct(const MatmulShape& s)
      : operands_(s), description_(Description(s, operands_)), matmul_(description_) {}

  Status Run(const void* a, const void* b, const void* bias, void* c) const override {
    thread_local Scratch scratch;
    const auto run = [&] {
      const auto at = [](const memory::desc& what, const void* where) {
        return memory(what, Cpu(), const_cast<void*>(where));
      };
      const memory::desc needed = description_.scratchpad_desc();
      std::unordered_map<int, memory> places = {
          {DNNL_ARG_SRC, at(operands_.a, a)},
          {DNNL_ARG_WEIGHTS, at(operands_.b, b)},
          {DNNL_ARG_DST, at(operands_.c, c)},
          {DNNL_ARG_SCRATCHPAD, at(needed, scratch.OfBytes(needed.get_size()))}};
      if (bias) places.emplace(DNNL_ARG_BIAS, at(operands_.bias, bias));
      dnnl::stream stream(Cpu());
      matmul_.execute(stream, places);
      return true;
    };
    return Caught(run).status();
  }

 private:
  static dnnl::matmul::primitive_desc Description(const MatmulShape& s, const Operands& o) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops after;
      after.append_sum(1.0f);
      attributes.set_post_ops(after);
    }
#if DNNL_VERSION_MAJOR >= 3
    if (s.add_bias) return {Cpu(), o.a, o.b, o.bias, o.c, attributes};
    return {Cpu(), o.a, o.b, o.c, attributes};
#else
    if (s.add_bias) return {dnnl::matmul::desc(o.a, o.b, o.bias, o.c), attributes, Cpu()};
    return {dnnl::matmul::desc(o.a, o.b, o.c), attributes, Cpu()};
#endif
  }

  Operands operands_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul matmul_;
};

// The products of the last shapes: each shape has one slot, which it shares with some others.
class Kept {
 public:
  Kept() { dnnl::set_primitive_cache_capacity(kSlots); }

  StatusOr<std::shared_ptr<const Bfloat16Product>> Find(const MatmulShape& shape) {
    Slot& slot = slots_[HashOf(shape) % kSlots];
    {
      const std::lock_guard lock(mutex_);
      if (slot.product && slot.shape == shape) return slot.product;
    }
    OFL_ASSIGN_OR_RETURN(auto made, Make(shape));
    const std::lock_guard lock(mutex_);
    slot = {shape, made};
    return made;
  }

 private:
  using Product = std::shared_ptr<const Bfloat16Product>;
  struct Slot {
    MatmulShape shape;
    Product product;
  };
  static constexpr int kSlots = 256;
  // oneDNN 2.6 ends the process where it gets no memory for a kernel. One takes 1.5 MB.
  static constexpr size_t kRoom = size_t{16} << 20;

  static uint64_t HashOf(const MatmulShape& s) {
    uint64_t hash = (s.transpose_a ? 1 : 0) + (s.transpose_b ? 2 : 0) + (s.add_bias ? 4 : 0) +
                    (s.accumulate ? 8 : 0) + (s.wide ? 16 : 0);
    for (const int64_t part :
         {s.batch, s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.batch_stride_a, s.batch_stride_b}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
    return hash;
  }

  StatusOr<Product> Make(const MatmulShape& shape) {
    const auto make = [&]() -> Product { return std::make_shared<OneDnnProduct>(shape); };
    if (!AddressSpaceIsLimited()) return Caught(make);
    const TakingRoom alone;
    if (!HasRoom(kRoom)) Forget();
    if (HasRoom(kRoom)) return Caught(make);
    return Error(ErrorKind::kOutOfMemory, "out of memory: oneDNN needs ", kRoom,
                 " bytes of address space for products of a shape that it has not had");
  }

  void Forget() {
    const std::lock_guard lock(mutex_);
    slots_.fill({});
    dnnl::set_primitive_cache_capacity(0);
    dnnl::set_primitive_cache_capacity(kSlots);
  }

  std::mutex mutex_;
  std::array<Slot, kSlots> slots_;
};

StatusOr<std::shared_ptr<const Bfloat16Product>> Find(const MatmulShape& shape) {
  static auto* kept = new Kept;
  return kept->Find(shape);
}

const bool registered = (RegisterBfloat16Products(&Find), true);

}  // namespace
}  // namespace oneflow_lite
