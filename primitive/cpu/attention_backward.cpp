// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on the CPU. A thread takes a head of k and v (or a part of its keys,
// where there are fewer heads than threads) and works out its weights again, tile by tile, from
// the log-sum-exp that the forward pass left (Dao et al., "FlashAttention", 2022, algorithm 4):
//   p = exp(s - lse), dv += p^T dout, dp = dout v^T, ds = p (dp - delta), dq += ds k, dk += ds^T q
// with delta = sum(dout out). Dropout's factors apply to p in dv and to dp. A large lse has
// lost the digits that tell near scores apart: for such rows it is worked out again, in two
// numbers.
#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/attention.h"
#include "primitive/cpu/attention_parts.h"
#include "primitive/cpu/attention_tiles.h"
#include "primitive/cpu/blas.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kQueries = 128, kKeys = 256;  // of a tile; its scores and dp are 256 KB

// How the work is divided: heads of k and v, each in so many parts of its keys.
struct Division {
  int64_t tiles, splits;

  explicit Division(const AttentionShape& s) {
    const int64_t heads = std::max<int64_t>(1, s.batch * s.kv_heads);
    tiles = (s.keys + kKeys - 1) / kKeys;
    splits = std::clamp<int64_t>((s.parts + heads - 1) / heads, 1, std::max<int64_t>(1, tiles));
  }
};

template <class C>
struct BackwardRoom {
  C *scores, *dp, *row, *dk, *dv, *q, *dout, *k, *v;

  BackwardRoom(const AttentionShape& s, bool converts, TileRoom* room) {
    const int64_t queries = std::min(kQueries, s.queries), keys = std::min(kKeys, s.keys);
    scores = room->Take<C>(queries * keys);
    dp = room->Take<C>(queries * keys);
    row = room->Take<C>(AttentionTiles<C>::MaskRoom(keys));
    dk = room->Take<C>(keys * s.head_dim);
    dv = room->Take<C>(std::max<int64_t>(1, keys) * s.value_dim);
    q = room->Take<C>(converts ? queries * s.head_dim : 0);
    dout = room->Take<C>(converts ? queries * s.value_dim : 0);
    k = room->Take<C>(converts ? keys * s.head_dim : 0);
    v = room->Take<C>(converts ? keys * s.value_dim : 0);
  }
};

// Beyond, the rounding of a float32 is more than 2e-6 of a weight, that of a float64 than 1e-12.
template <class C>
constexpr double kLargeLse = sizeof(C) == 4 ? 32 : 8192;

// What the passes share: delta and lse as the sum of two numbers, and the sums of dq where the
// elements are narrower than C or several threads add to one head: [splits, batch, head, query,
// element].
template <class C>
struct BackwardShared {
  C *delta, *base, *rest, *dq;

  BackwardShared(const AttentionShape& s, bool converts, TileRoom* room) {
    const int64_t rows = s.batch * s.heads * s.queries, splits = Division(s).splits;
    delta = room->Take<C>(rows);
    base = room->Take<C>(rows);
    rest = room->Take<C>(rows);
    dq = converts || splits > 1 ? room->Take<C>(splits * rows * s.head_dim) : nullptr;
  }
};

template <class C>
class BackwardPass {
 public:
  BackwardPass(const AttentionShape& shape, const Attention::Spec& spec, const AttentionInputs& in,
               const BackwardShared<C>& shared, void* dq, void* dk, void* dv)
      : s_(shape), tiles_(shape, spec), in_(in), shared_(shared), dq_(dq), dk_(dk), dv_(dv) {
    if (s_.dropout > 0) {
      seed_ = static_cast<const uint64_t*>(in.rng)[0];
      offset_ = static_cast<const uint64_t*>(in.rng)[1];
    }
  }

  // Of each head.
  static int64_t Blocks(const AttentionShape& s) { return (s.queries + kQueries - 1) / kQueries; }

  // delta, base and rest of a block of queries: number `task` of those of all heads.
  void Prepare(int64_t task, BackwardRoom<C>& room) const {
    constexpr C kInfinity = std::numeric_limits<C>::infinity();
    const int64_t blocks = Blocks(s_);
    const int64_t first = task % blocks * kQueries, head = task / blocks;
    const int64_t b = head / s_.heads, h = head % s_.heads;
    const int64_t m = std::min(kQueries, s_.queries - first);
    bool large = false;
    for (int64_t query = first; query < first + m; ++query) {
      const int64_t row = head * s_.queries + query;
      int64_t ld = 0;
      const C* y = tiles_.Read(in_.out, b * s_.out.batch + h * s_.out.head + query * s_.out.token,
                               1, s_.value_dim, 0, room.dv, &ld);
      const C* dy =
          tiles_.Read(in_.dout, b * s_.dout.batch + h * s_.dout.head + query * s_.dout.token, 1,
                      s_.value_dim, 0, room.dout, &ld);
      shared_.delta[row] = static_cast<C>(tiles_.rows().dot(s_.value_dim, y, dy));
      const C lse = static_cast<const C*>(in_.lse)[row];
      // One that saw nothing: all its weights are 0.
      shared_.base[row] = lse == -kInfinity ? kInfinity : lse;
      shared_.rest[row] = 0;
      large = large || (std::abs(lse) > kLargeLse<C> && std::abs(lse) < kInfinity);
    }
    if (large) Normalize(b, h, first, m, room);
  }

  // Task of Division: part `split` of the keys of a head of k and v.
  void Run(int64_t task, const Division& division, BackwardRoom<C>& room) const {
    const int64_t split = task % division.splits, head = task / division.splits;
    const int64_t b = head / s_.kv_heads, kv = head % s_.kv_heads;
    for (int64_t h = kv * s_.group(); h < (kv + 1) * s_.group(); ++h) ClearQueries(b, h, split);
    // With a causal mask later tiles are seen by fewer queries.
    for (int64_t i = 0; i * division.splits < division.tiles; ++i) {
      const int64_t tile = ThereAndBack(i, split, division.splits);
      if (tile < division.tiles) KeyTile(b, kv, split, tile * kKeys, room);
    }
  }

  // The sums of dq of the rows [begin, end) of [batch, head, query], rounded.
  void WriteQueries(int64_t begin, int64_t end) const {
    const int64_t d = s_.head_dim, rows = s_.batch * s_.heads * s_.queries;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / (s_.heads * s_.queries), h = row / s_.queries % s_.heads;
      C* sum = shared_.dq + row * d;
      for (int64_t split = 1; split < Division(s_).splits; ++split) {
        tiles_.rows().add(d, sum + split * rows * d, sum);
      }
      tiles_.Write(sum, d, dq_, b * s_.dq.batch + h * s_.dq.head + row % s_.queries * s_.dq.token);
    }
  }

 private:
  // Where the sums of dq of a head begin, and how far its rows are apart.
  C* Queries(int64_t b, int64_t h, int64_t split, int64_t* ld) const {
    if (!shared_.dq) {
      *ld = s_.dq.token;
      return static_cast<C*>(dq_) + b * s_.dq.batch + h * s_.dq.head;
    }
    *ld = s_.head_dim;
    const int64_t heads = s_.batch * s_.heads;
    return shared_.dq + (split * heads + b * s_.heads + h) * s_.queries * s_.head_dim;
  }
  void ClearQueries(int64_t b, int64_t h, int64_t split) const {
    int64_t ld = 0;
    C* dq = Queries(b, h, split, &ld);
    for (int64_t i = 0; i < s_.queries; ++i) std::fill_n(dq + i * ld, s_.head_dim, C(0));
  }

  void KeyTile(int64_t b, int64_t kv, int64_t split, int64_t key, BackwardRoom<C>& room) const {
    const int64_t n = std::min(kKeys, s_.keys - key), d = s_.head_dim, e = s_.value_dim;
    int64_t ldk = 0, ldv = 0;
    const C* k = tiles_.Read(in_.k, b * s_.k.batch + kv * s_.k.head + key * s_.k.token, n, d,
                             s_.k.token, room.k, &ldk);
    const C* v = tiles_.Read(in_.v, b * s_.v.batch + kv * s_.v.head + key * s_.v.token, n, e,
                             s_.v.token, room.v, &ldv);
    std::fill_n(room.dk, n * d, C(0));
    std::fill_n(room.dv, n * e, C(0));
    for (int64_t h = kv * s_.group(); h < (kv + 1) * s_.group(); ++h) {
      for (int64_t first = 0; first < s_.queries; first += kQueries) {
        const int64_t m = std::min(kQueries, s_.queries - first);
        const int64_t seen = std::min(n, s_.Visible(first + m - 1) - key);
        if (seen > 0) Tile(b, h, split, first, m, key, seen, k, ldk, v, ldv, room);
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      const int64_t token = key + j;
      tiles_.Write(room.dk + j * d, d, dk_,
                   b * s_.dk.batch + kv * s_.dk.head + token * s_.dk.token);
      tiles_.Write(room.dv + j * e, e, dv_,
                   b * s_.dv.batch + kv * s_.dv.head + token * s_.dv.token);
    }
  }

  void Tile(int64_t b, int64_t h, int64_t split, int64_t first, int64_t m, int64_t key, int64_t n,
            const C* k, int64_t ldk, const C* v, int64_t ldv, BackwardRoom<C>& room) const {
    const int64_t d = s_.head_dim, e = s_.value_dim;
    int64_t ldq = 0, ldy = 0, lddq = 0;
    const C* q = tiles_.Read(in_.q, b * s_.q.batch + h * s_.q.head + first * s_.q.token, m, d,
                             s_.q.token, room.q, &ldq);
    const C* dout =
        tiles_.Read(in_.dout, b * s_.dout.batch + h * s_.dout.head + first * s_.dout.token, m, e,
                    s_.dout.token, room.dout, &ldy);
    Scores(b, h, first, m, key, n, q, ldq, k, ldk, room);
    TileProduct{false, true, m, n, e}.Run(C(1), dout, ldy, v, ldv, C(0), room.dp, n);
    for (int64_t i = 0; i < m; ++i) Row(b, h, first + i, key, n, i * n, room);
    TileProduct{true, false, n, e, m}.Run(C(1), room.scores, n, dout, ldy, C(1), room.dv, e);
    TileProduct{true, false, n, d, m}.Run(C(1), room.dp, n, q, ldq, C(1), room.dk, d);
    C* dq = Queries(b, h, split, &lddq) + first * (shared_.dq ? d : s_.dq.token);
    TileProduct{false, false, m, d, n}.Run(C(1), room.dp, n, k, ldk, C(1), dq, lddq);
  }

  // The scores of m queries and n keys, masked; beyond what a query sees they are not looked at.
  void Scores(int64_t b, int64_t h, int64_t first, int64_t m, int64_t key, int64_t n, const C* q,
              int64_t ldq, const C* k, int64_t ldk, BackwardRoom<C>& room) const {
    TileProduct{false, true, m, n, s_.head_dim}.Run(static_cast<C>(s_.scale), q, ldq, k, ldk, C(0),
                                                    room.scores, n);
    if (!s_.masked) return;
    for (int64_t i = 0; i < m; ++i) {
      tiles_.Mask(in_.mask, b, h, first + i, key, Seen(first + i, key, n), room.row,
                  room.scores + i * n);
    }
  }
  int64_t Seen(int64_t query, int64_t key, int64_t n) const {
    return std::clamp<int64_t>(s_.Visible(query) - key, 0, n);
  }

  // base and rest of a block from its scores: the maximum, and the logarithm of the sum beside it.
  void Normalize(int64_t b, int64_t h, int64_t first, int64_t m, BackwardRoom<C>& room) const {
    constexpr C kLowest = -std::numeric_limits<C>::infinity();
    const int64_t row = (b * s_.heads + h) * s_.queries + first, kv = h / s_.group();
    C max[kQueries];
    double sum[kQueries] = {};
    std::fill_n(max, m, kLowest);
    int64_t ldq = 0, ldk = 0;
    const C* q = tiles_.Read(in_.q, b * s_.q.batch + h * s_.q.head + first * s_.q.token, m,
                             s_.head_dim, s_.q.token, room.q, &ldq);
    const int64_t seen = s_.Visible(first + m - 1);
    for (int64_t key = 0; key < seen; key += kKeys) {
      const int64_t n = std::min(kKeys, seen - key);
      const C* k = tiles_.Read(in_.k, b * s_.k.batch + kv * s_.k.head + key * s_.k.token, n,
                               s_.head_dim, s_.k.token, room.k, &ldk);
      Scores(b, h, first, m, key, n, q, ldq, k, ldk, room);
      for (int64_t i = 0; i < m; ++i) {
        C factor = 1;
        const double more = tiles_.rows().exponentiate(Seen(first + i, key, n), room.scores + i * n,
                                                       &max[i], &factor);
        sum[i] = sum[i] * static_cast<double>(factor) + more;
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      if (!(std::abs(shared_.base[row + i]) < -kLowest)) continue;
      shared_.base[row + i] = max[i];
      shared_.rest[row + i] = static_cast<C>(std::log(sum[i]));
    }
  }

  // Scores become weights, with dropout, and dp becomes the gradient of the product q k^T.
  void Row(int64_t b, int64_t h, int64_t query, int64_t key, int64_t n, int64_t at,
           BackwardRoom<C>& room) const {
    const AttentionRows<C>& rows = tiles_.rows();
    const int64_t row = (b * s_.heads + h) * s_.queries + query;
    const int64_t visible = Seen(query, key, n);
    C *p = room.scores + at, *ds = room.dp + at;
    const C delta = shared_.delta[row], scale = static_cast<C>(s_.scale);
    if (s_.dropout > 0) {
      tiles_.DropoutFactors(seed_, offset_, row * s_.keys + key, visible, room.row);
      rows.multiply(visible, room.row, ds);
    }
    rows.differentiate(visible, shared_.base[row], shared_.rest[row], delta, scale, p, ds);
    if (s_.dropout > 0) rows.multiply(visible, room.row, p);
    std::fill(p + visible, p + n, C(0));
    std::fill(ds + visible, ds + n, C(0));
  }

  const AttentionShape& s_;
  const AttentionTiles<C> tiles_;
  const AttentionInputs& in_;
  const BackwardShared<C>& shared_;
  uint64_t seed_ = 0, offset_ = 0;
  void *const dq_, *const dk_, *const dv_;
};

template <class C>
class CpuAttentionBackward final : public AttentionBackward {
 public:
  explicit CpuAttentionBackward(const Spec& spec)
      : spec_(spec), converts_(ComputeType(spec.dtype) != spec.dtype) {}

  size_t WorkspaceBytes(const Stream&, const AttentionShape& shape) const override {
    TileRoom memory;
    BackwardShared<C>(shape, converts_, &memory);
    return static_cast<size_t>(memory.used() + BytesPerPart(shape) * shape.parts);
  }

  Status Launch(Stream&, const AttentionShape& shape, const AttentionInputs& in, void* dq, void* dk,
                void* dv, void* workspace) const override {
    OFL_RETURN_IF_ERROR(CheckTileSizes(kName, shape));
    TileRoom memory(workspace);
    const BackwardShared<C> shared(shape, converts_, &memory);
    char* const rooms = static_cast<char*>(workspace) + memory.used();
    const BackwardPass<C> pass(shape, spec_, in, shared, dq, dk, dv);
    const Division division(shape);
    const int64_t rows = shape.batch * shape.heads * shape.queries;
    const BlasUse use;
    OFL_RETURN_IF_ERROR(use.status());
    InParts(shape, rooms, shape.batch * shape.heads, BackwardPass<C>::Blocks(shape),
            [&](int64_t task, BackwardRoom<C>& room) { pass.Prepare(task, room); });
    InParts(shape, rooms, shape.batch * shape.kv_heads, division.splits,
            [&](int64_t task, BackwardRoom<C>& room) { pass.Run(task, division, room); });
    if (shared.dq) {
      ParallelFor(rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, shape.head_dim)),
                  [&](int64_t begin, int64_t end) { pass.WriteQueries(begin, end); });
    }
    return OkStatus();
  }

 private:
  // f(task, room) for all tasks of all heads.
  template <class F>
  void InParts(const AttentionShape& shape, char* rooms, int64_t heads, int64_t tasks_of_each,
               F f) const {
    const int64_t bytes = BytesPerPart(shape),
                  parts = std::min<int64_t>(shape.parts, heads * tasks_of_each);
    ParallelProducts(parts, 1, [&](int64_t begin, int64_t end) {
      SetBlasThreads(1);
      for (int64_t part = begin; part < end; ++part) {
        TileRoom memory(rooms + part * bytes);
        BackwardRoom<C> room(shape, converts_, &memory);
        ForTasksOf(part, parts, heads, tasks_of_each, [&](int64_t task) { f(task, room); });
      }
    });
  }
  int64_t BytesPerPart(const AttentionShape& shape) const {
    TileRoom memory;
    BackwardRoom<C>(shape, converts_, &memory);
    return memory.used();
  }

  const Spec spec_;
  const bool converts_;
};

StatusOr<std::unique_ptr<AttentionBackward>> NewBackward(const AttentionBackward::Spec& spec) {
  if (!IsFloating(spec.dtype) || !IsAttentionMask(spec.mask_dtype, spec.dtype)) {
    return NoPrimitiveFor(AttentionBackward::kName, DeviceType::kCPU, spec.dtype);
  }
  if (spec.dtype == DType::kFloat64) return std::make_unique<CpuAttentionBackward<double>>(spec);
  return std::make_unique<CpuAttentionBackward<float>>(spec);
}

const bool registered = RegisterPrimitive<AttentionBackward>(DeviceType::kCPU, &NewBackward);

}  // namespace
}  // namespace oneflow_lite
