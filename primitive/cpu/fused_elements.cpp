// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_elements.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/fused_program.h"

namespace oneflow_lite {
namespace {

using cpu::FusedInstruction;
using cpu::FusedOperand;
using cpu::FusedProgram;
using cpu::FusedValue;

constexpr int64_t kBlock = 2048;        // elements, of up to 8 bytes
constexpr int64_t kGrain = 1 << 15;     // elements that one thread should have at least
constexpr int64_t kPlace = 8 * kBlock;  // bytes

// Blocks of a geometry: `step` of dim `dim` with all of the dims within.
struct Tiles {
  int dim = 0;
  int64_t inner = 1, step = 1, along = 1, count = 1;
};

Tiles Cut(const FusedGeometry& g) {
  Tiles t;
  t.dim = static_cast<int>(g.dims.size()) - 1;
  while (t.dim > 0 && t.inner * g.dims[t.dim] <= kBlock) t.inner *= g.dims[t.dim--];
  const int64_t size = t.dim < 0 ? 1 : g.dims[t.dim];
  t.dim = std::max(t.dim, 0);
  t.step = std::min(size, std::max<int64_t>(1, kBlock / t.inner));
  t.along = (size + t.step - 1) / t.step;
  t.count = t.along;
  for (int d = 0; d < t.dim; ++d) t.count *= g.dims[d];
  return t;
}

Scalar NumberOf(const FusedOperand& o, absl::Span<const FusedElements::Input> inputs) {
  return o.input < 0 ? o.number : inputs[o.input].number;
}

// The bits of a number as an element of the dtype, for Select.
uint64_t BitsOf(const Scalar& number, DType dtype) {
  return VisitAll(dtype, [&]<class T>(Tag<T>) {
    const T value = number.to<T>();
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  });
}

Elementwise<1> Row(int64_t n) {
  const int64_t one = 1;
  return MakeElementwise<1>(absl::MakeConstSpan(&n, 1), {absl::MakeConstSpan(&one, 1)});
}
template <int N>
Elementwise<N> Rows(int64_t n, const std::array<int64_t, N>& strides) {
  std::array<absl::Span<const int64_t>, N> spans;
  for (int i = 0; i < N; ++i) spans[i] = absl::MakeConstSpan(&strides[i], 1);
  return MakeElementwise<N>(absl::MakeConstSpan(&n, 1), spans);
}

// One call: what is the same for all its blocks.
class Run {
 public:
  Run(const FusedProgram& program, const TypedExpression& e, Stream& stream, const FusedGeometry& g,
      absl::Span<const FusedElements::Input> inputs,
      absl::Span<const FusedElements::Output> outputs)
      : p_(program),
        e_(e),
        stream_(stream),
        g_(g),
        tiles_(Cut(g)),
        inputs_(inputs),
        outputs_(outputs) {
    for (const auto& strides : g.strides) dense_.push_back(IsDense(strides));
  }

  int64_t tiles() const { return tiles_.count; }

  Status Tile(int64_t tile, char* places) const {
    Block b;
    b.start = tile % tiles_.along * tiles_.step;
    const int64_t size = g_.dims.empty() ? 1 : g_.dims[tiles_.dim];
    b.rows = std::min(tiles_.step, size - b.start);
    b.n = b.rows * tiles_.inner;
    b.outer = tile / tiles_.along;
    b.values.resize(p_.values.size());
    for (size_t v = 0; v < p_.values.size(); ++v) {
      OFL_RETURN_IF_ERROR(Locate(p_.values[v], v, places, &b));
    }
    for (const FusedInstruction& i : p_.instructions) OFL_RETURN_IF_ERROR(Execute(i, b));
    for (size_t j = 0; j < p_.outputs.size(); ++j) OFL_RETURN_IF_ERROR(Write(j, b));
    return OkStatus();
  }

 private:
  struct Block {
    int64_t outer, start, rows, n;
    absl::InlinedVector<void*, 32> values;
  };

  bool IsDense(const std::vector<int64_t>& strides) const {
    int64_t stride = 1;
    for (int d = static_cast<int>(g_.dims.size()) - 1; d >= tiles_.dim; --d) {
      if (strides[d] != stride) return false;
      stride *= g_.dims[d];
    }
    return true;
  }

  int64_t Offset(const std::vector<int64_t>& strides, const Block& b) const {
    if (g_.dims.empty()) return 0;
    int64_t offset = b.start * strides[tiles_.dim], outer = b.outer;
    for (int d = tiles_.dim - 1; d >= 0; --d) {
      offset += outer % g_.dims[d] * strides[d];
      outer /= g_.dims[d];
    }
    return offset;
  }

  // The block's dims, with the strides of an operand and those of a dense block.
  Elementwise<2> Geometry(const std::vector<int64_t>& strides, const Block& b, bool reads) const {
    Dims dims, own, dense;
    for (size_t d = tiles_.dim; d < g_.dims.size(); ++d) {
      dims.push_back(dims.empty() ? b.rows : g_.dims[d]);
      own.push_back(strides[d]);
    }
    dense.resize(dims.size());
    int64_t stride = 1;
    for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) dense[d] = stride;
    return reads ? MakeElementwise<2>(dims, {own, dense}) : MakeElementwise<2>(dims, {dense, own});
  }

  Status Locate(const FusedValue& value, size_t v, char* places, Block* b) const {
    b->values[v] = places + value.place * kPlace;
    if (value.output >= 0) {
      const size_t j = inputs_.size() + static_cast<size_t>(value.output);
      if (dense_[j]) b->values[v] = OutputAt(static_cast<size_t>(value.output), *b);
    }
    if (value.input < 0) return OkStatus();
    const FusedElements::Input& in = inputs_[value.input];
    const DType dtype = e_.inputs[value.input].dtype;
    if (!in.data) {
      return VisitAll(value.dtype, [&]<class T>(Tag<T>) {
        std::fill_n(static_cast<T*>(b->values[v]), b->n, in.number.to<T>());
        return OkStatus();
      });
    }
    const auto& strides = g_.strides[value.input];
    auto* start = static_cast<const char*>(in.data) + Offset(strides, *b) * SizeOf(dtype);
    if (dtype == value.dtype && dense_[value.input]) {
      b->values[v] = const_cast<char*>(start);
      return OkStatus();
    }
    return p_.reads[v]->Launch(stream_, Geometry(strides, *b, true), start, b->values[v]);
  }

  void* OutputAt(size_t j, const Block& b) const {
    const auto& strides = g_.strides[inputs_.size() + j];
    return static_cast<char*>(outputs_[j].data) + Offset(strides, b) * SizeOf(e_.outputs[j]);
  }

  Status Write(size_t j, const Block& b) const {
    void *from = b.values[p_.outputs[j]], *to = OutputAt(j, b);
    if (from == to) return OkStatus();
    return p_.copies[j]->Launch(stream_, Geometry(g_.strides[inputs_.size() + j], b, false), from,
                                to);
  }

  Status Execute(const FusedInstruction& i, const Block& b) const {
    void* out = b.values[i.result];
    const auto at = [&](int k) {
      return i.operands[k].value < 0 ? nullptr : b.values[i.operands[k].value];
    };
    if (i.unary) return i.unary->Launch(stream_, Rows<2>(b.n, {1, 1}), at(0), out);
    if (i.copy) return i.copy->Launch(stream_, Rows<2>(b.n, {1, 1}), at(0), out);
    if (i.fill) return i.fill->Launch(stream_, Row(b.n), NumberOf(i.operands[0], inputs_), out);
    if (i.select) {
      Select::Operand chosen[2];
      for (int k = 0; k < 2; ++k) {
        chosen[k].data = at(k + 1);
        if (!chosen[k].data) chosen[k].bits = BitsOf(NumberOf(i.operands[k + 1], inputs_), i.dtype);
      }
      const auto g = Rows<4>(b.n, {1, chosen[0].data != nullptr, chosen[1].data != nullptr, 1});
      return i.select->Launch(stream_, g, {at(0), 0}, chosen[0], chosen[1], out);
    }
    const auto operand = [&](int k) -> Binary::Operand {
      if (at(k)) return at(k);
      return NumberOf(i.operands[k], inputs_);
    };
    const auto g = Rows<3>(b.n, {at(0) != nullptr, at(1) != nullptr, 1});
    return i.binary->Launch(stream_, g, operand(0), operand(1), out);
  }

  const FusedProgram& p_;
  const TypedExpression& e_;
  Stream& stream_;
  const FusedGeometry& g_;
  const Tiles tiles_;
  absl::Span<const FusedElements::Input> inputs_;
  absl::Span<const FusedElements::Output> outputs_;
  std::vector<char> dense_;  // within a block, of each input and output
};

class CpuFusedElements final : public FusedElements {
 public:
  CpuFusedElements(std::shared_ptr<const TypedExpression> e, FusedProgram program)
      : e_(std::move(e)), program_(std::move(program)) {}

  Status Launch(Stream& stream, absl::Span<const int64_t> shape, absl::Span<const Input> inputs,
                absl::Span<const Output> outputs) const override {
    const FusedGeometry g = MergeFusedDims(shape, inputs, outputs);
    if (g.numel == 0) return OkStatus();
    const Run run(program_, *e_, stream, g, inputs, outputs);
    const int64_t elements = std::max<int64_t>(1, g.numel / run.tiles());
    std::atomic<bool> failed{false};
    Status status;
    std::mutex mutex;
    ParallelFor(
        run.tiles(), std::max<int64_t>(1, kGrain / elements), [&](int64_t from, int64_t to) {
          static thread_local std::vector<char> places;
          places.resize(static_cast<size_t>(program_.places) * kPlace + kAlignment);
          char* start =
              places.data() + kAlignment - reinterpret_cast<uintptr_t>(places.data()) % kAlignment;
          for (int64_t tile = from; tile < to && !failed; ++tile) {
            const Status s = run.Tile(tile, start);
            if (s.ok()) continue;
            const std::lock_guard lock(mutex);
            failed = true;
            status = s;
          }
        });
    return status;
  }

 private:
  static constexpr size_t kAlignment = 64;

  std::shared_ptr<const TypedExpression> e_;
  FusedProgram program_;
};

StatusOr<std::unique_ptr<FusedElements>> NewFusedElements(const FusedElements::Spec& spec) {
  OFL_ASSIGN_OR_RETURN(FusedProgram program, cpu::MakeFusedProgram(*spec.expression));
  return std::make_unique<CpuFusedElements>(spec.expression, std::move(program));
}

const bool registered = RegisterPrimitive<FusedElements>(DeviceType::kCPU, &NewFusedElements);

}  // namespace
}  // namespace oneflow_lite
