// SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU: a thread takes a block of queries of one head past the keys it may see,
// tile by tile. A tile's scores are a product of the BLAS; the running maximum and sum of each
// query (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018) let the tile's
// weights go into the result at once, so that memory does not grow with the number of keys.
#include "primitive/attention.h"

#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/attention_parts.h"
#include "primitive/cpu/attention_tiles.h"
#include "primitive/cpu/blas.h"

namespace oneflow_lite {
namespace {

// A block of queries for a long, a middling and a short row of them; a tile's keys.
constexpr int64_t kLongBlock = 256, kBlock = 64, kShortBlock = 32;
constexpr int64_t kKeys = 512;

int64_t BlockOf(int64_t queries) {
  return queries >= 768 ? kLongBlock : queries >= 192 ? kBlock : kShortBlock;
}

// What a thread keeps while it works on a block.
template <class C>
struct ForwardRoom {
  C *scores, *sum_of_values, *max, *row, *q, *k, *v;
  double* sum;

  ForwardRoom(const AttentionShape& s, bool converts, TileRoom* room) {
    const int64_t block = BlockOf(s.queries), keys = std::min(kKeys, s.keys);
    scores = room->Take<C>(block * keys);
    sum_of_values = room->Take<C>(block * s.value_dim);
    max = room->Take<C>(block);
    sum = room->Take<double>(block);
    row = room->Take<C>(AttentionTiles<C>::MaskRoom(keys));
    q = room->Take<C>(converts ? block * s.head_dim : 0);
    k = room->Take<C>(converts ? keys * s.head_dim : 0);
    v = room->Take<C>(converts ? keys * s.value_dim : 0);
  }
};

template <class C>
class ForwardPass {
 public:
  ForwardPass(const AttentionShape& shape, const Attention::Spec& spec, const AttentionInputs& in,
              uint64_t seed, uint64_t offset, void* out, C* lse)
      : s_(shape),
        tiles_(shape, spec),
        in_(in),
        seed_(seed),
        offset_(offset),
        out_(out),
        lse_(lse) {}

  // Of each head.
  static int64_t Blocks(const AttentionShape& s) {
    const int64_t block = BlockOf(s.queries);
    return (s.queries + block - 1) / block;
  }

  // One block of queries: number `task` of those of all heads.
  void Run(int64_t task, ForwardRoom<C>& room) const {
    const int64_t block = BlockOf(s_.queries), blocks = Blocks(s_);
    const int64_t first = task % blocks * block, head = task / blocks;
    const int64_t b = head / s_.heads, h = head % s_.heads;
    const int64_t m = std::min(block, s_.queries - first);
    int64_t ldq = 0;
    const C* q = tiles_.Read(in_.q, b * s_.q.batch + h * s_.q.head + first * s_.q.token, m,
                             s_.head_dim, s_.q.token, room.q, &ldq);
    std::fill_n(room.max, m, -std::numeric_limits<C>::infinity());
    std::fill_n(room.sum, m, 0.0);
    std::fill_n(room.sum_of_values, m * s_.value_dim, C(0));
    const int64_t seen = s_.Visible(first + m - 1);
    for (int64_t key = 0; key < seen; key += kKeys) {
      Tile(b, h, first, m, q, ldq, key, std::min(kKeys, seen - key), room);
    }
    Finish(b, h, first, m, room);
  }

 private:
  void Tile(int64_t b, int64_t h, int64_t first, int64_t m, const C* q, int64_t ldq, int64_t key,
            int64_t n, ForwardRoom<C>& room) const {
    const int64_t kv = h / s_.group();
    int64_t ldk = 0, ldv = 0;
    const C* k = tiles_.Read(in_.k, b * s_.k.batch + kv * s_.k.head + key * s_.k.token, n,
                             s_.head_dim, s_.k.token, room.k, &ldk);
    const C* v = tiles_.Read(in_.v, b * s_.v.batch + kv * s_.v.head + key * s_.v.token, n,
                             s_.value_dim, s_.v.token, room.v, &ldv);
    TileProduct{false, true, m, n, s_.head_dim}.Run(static_cast<C>(s_.scale), q, ldq, k, ldk, C(0),
                                                    room.scores, n);
    const AttentionRows<C>& rows = tiles_.rows();
    for (int64_t i = 0; i < m; ++i) {
      const int64_t query = first + i;
      const int64_t visible = std::clamp<int64_t>(s_.Visible(query) - key, 0, n);
      C* e = room.scores + i * n;
      if (s_.masked) tiles_.Mask(in_.mask, b, h, query, key, visible, room.row, e);
      C factor = 1;
      const double sum = rows.exponentiate(visible, e, &room.max[i], &factor);
      if (factor != 1) rows.scale(s_.value_dim, factor, room.sum_of_values + i * s_.value_dim);
      room.sum[i] = room.sum[i] * static_cast<double>(factor) + sum;
      std::fill(e + visible, e + n, C(0));
      if (s_.dropout > 0) {
        const int64_t at = ((b * s_.heads + h) * s_.queries + query) * s_.keys + key;
        tiles_.DropoutFactors(seed_, offset_, at, visible, room.row);
        rows.multiply(visible, room.row, e);
      }
    }
    TileProduct{false, false, m, s_.value_dim, n}.Run(C(1), room.scores, n, v, ldv, C(1),
                                                      room.sum_of_values, s_.value_dim);
  }

  void Finish(int64_t b, int64_t h, int64_t first, int64_t m, ForwardRoom<C>& room) const {
    constexpr C kLowest = -std::numeric_limits<C>::infinity();
    for (int64_t i = 0; i < m; ++i) {
      C* y = room.sum_of_values + i * s_.value_dim;
      const double sum = room.sum[i];
      const C base = room.max[i] == kLowest ? C(0) : room.max[i];
      lse_[(b * s_.heads + h) * s_.queries + first + i] =
          sum == 0 ? kLowest : base + static_cast<C>(std::log(sum));
      if (sum == 0) {
        std::fill_n(y, s_.value_dim, C(0));
      } else {
        tiles_.rows().scale(s_.value_dim, static_cast<C>(1 / sum), y);
      }
      tiles_.Write(y, s_.value_dim, out_,
                   b * s_.out.batch + h * s_.out.head + (first + i) * s_.out.token);
    }
  }

  const AttentionShape& s_;
  const AttentionTiles<C> tiles_;
  const AttentionInputs& in_;
  const uint64_t seed_, offset_;
  void* const out_;
  C* const lse_;
};

template <class C>
class CpuAttention final : public Attention {
 public:
  explicit CpuAttention(const Spec& spec) : spec_(spec) {}

  size_t WorkspaceBytes(const Stream&, const AttentionShape& shape) const override {
    return static_cast<size_t>(BytesPerPart(shape) * shape.parts);
  }

  Status Launch(Stream&, const AttentionShape& shape, const AttentionInputs& in,
                const PhiloxState& random, void* out, void* lse, void* rng,
                void* workspace) const override {
    OFL_RETURN_IF_ERROR(CheckTileSizes(kName, shape));
    uint64_t seed = random.seed, offset = random.offset;
    if (random.shift) seed += random.shift[0], offset += random.shift[1];
    if (shape.dropout > 0) {
      static_cast<uint64_t*>(rng)[0] = seed;
      static_cast<uint64_t*>(rng)[1] = offset;
    }
    const int64_t heads = shape.batch * shape.heads, blocks = ForwardPass<C>::Blocks(shape);
    const int64_t bytes = BytesPerPart(shape),
                  parts = std::min<int64_t>(shape.parts, heads * blocks);
    const BlasUse use;
    OFL_RETURN_IF_ERROR(use.status());
    const ForwardPass<C> pass(shape, spec_, in, seed, offset, out, static_cast<C*>(lse));
    ParallelProducts(parts, 1, [&](int64_t begin, int64_t end) {
      SetBlasThreads(1);
      for (int64_t part = begin; part < end; ++part) {
        TileRoom memory(static_cast<char*>(workspace) + part * bytes);
        ForwardRoom<C> room(shape, ComputeType(spec_.dtype) != spec_.dtype, &memory);
        ForTasksOf(part, parts, heads, blocks, [&](int64_t task) { pass.Run(task, room); });
      }
    });
    return OkStatus();
  }

 private:
  int64_t BytesPerPart(const AttentionShape& shape) const {
    TileRoom memory;
    ForwardRoom<C>(shape, ComputeType(spec_.dtype) != spec_.dtype, &memory);
    return memory.used();
  }

  const Spec spec_;
};

StatusOr<std::unique_ptr<Attention>> NewAttention(const Attention::Spec& spec) {
  if (!IsFloating(spec.dtype) || !IsAttentionMask(spec.mask_dtype, spec.dtype)) {
    return NoPrimitiveFor(Attention::kName, DeviceType::kCPU, spec.dtype);
  }
  if (spec.dtype == DType::kFloat64) return std::make_unique<CpuAttention<double>>(spec);
  return std::make_unique<CpuAttention<float>>(spec);
}

const bool registered = RegisterPrimitive<Attention>(DeviceType::kCPU, &NewAttention);

}  // namespace
}  // namespace oneflow_lite
