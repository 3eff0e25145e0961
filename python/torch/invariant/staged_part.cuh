// SPDX-License-Identifier: Apache-2.0
//
// A warp's part of a row in shared memory, in the words in which it lies in memory, of which bulk
// copies bring those that lie in the row whole. What is added up is read by packs that are counted
// from the row's own first column on. What is written begins where aligned words of the output do,
// or, where an operand follows the columns, goes by own packs through an image (own_image.cuh) in
// the place of what was read.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/rows/load.cuh"
#include "python/torch/invariant/own_image.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Whether an algorithm writes rows: unless it says kWrites = false.
template <class A, class = void>
struct Writes : std::true_type {};
template <class A>
struct Writes<A, std::void_t<decltype(A::kWrites)>> : std::bool_constant<A::kWrites> {};

// Whether an algorithm that stores into an image writes a part itself, by StorePart(row, part,
// total), because it asks for Operands of columns before it needs them.
template <class A, class = void>
struct HasOperands : std::false_type {};
template <class A>
struct HasOperands<A, std::void_t<typename A::template Operands<float>>> : std::true_type {};

// Whether its values lie in shared memory from the time on when a part is gathered, so that there
// is one exponential for each: where they are not larger than what was read.
template <class A>
inline constexpr bool kKeepsValues = HasImage<A>::value && !HasOperands<A>::value &&
                                     sizeof(typename A::Element) == sizeof(typename A::C);

template <class T, int N>
__device__ __forceinline__ uint4 WordOfPack(const Pack<T, N>& pack) {
  uint4 word;
  static_assert(sizeof(pack) == sizeof(word));
  memcpy(&word, &pack, sizeof(word));
  return word;
}

// A warp's part of a row on chip: `count` own packs, the first of which begins at column col. The
// word of memory in which pack p of input i begins is at words[i] + p * 16; the pack begins past[i]
// bytes into it.
template <class A>
struct StagedPart {
  using T = typename A::Element;
  static constexpr int N = A::kPack, kInputs = A::kInputs;
  char* words[kInputs];
  unsigned past[kInputs];
  int64_t col;
  int count;

  __host__ __device__ static constexpr int Bytes(int share) {
    return kInputs * (share + 1) * kPackBytes;
  }
  __device__ __forceinline__ StagedPart(int cols, int first, int share, char* memory)
      : col(int64_t{first} * N) {
    const int left = cols / N - first;
    count = left < 0 ? 0 : left < share ? left : share;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) words[i] = memory + i * (share + 1) * kPackBytes;
  }
  // By all lanes of a warp, whose barrier this is: AwaitBlock(0) waits for the copies. Of words
  // that reach over the row's ends the elements in the row are loaded one by one.
  __device__ __forceinline__ void Load(const A& a, int64_t row, int cols,
                                       const ClusterBarrier& barrier) {
    const int lane = threadIdx.x % kWarp;
    const int64_t bytes = (cols - col) * static_cast<int64_t>(sizeof(T));
    const uint4* from[kInputs];
    int begin[kInputs], end[kInputs], total = 0;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      const WordFrame frame = a.Frame(i, row, col);
      const int skip = static_cast<int>(frame.past);
      past[i] = frame.past;
      from[i] = frame.words;
      begin[i] = col == 0 && skip > 0 ? 1 : 0;
      end[i] = count;
      if (skip > 0 && count > 0 && int64_t{count + 1} * kPackBytes - skip <= bytes) ++end[i];
      if (end[i] < begin[i]) end[i] = begin[i];
      total += (end[i] - begin[i]) * kPackBytes;
    }
    if (lane == 0) {
      barrier.Init();
      PublishToCopies();
      barrier.Expect(total);
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
        if (end[i] == begin[i]) continue;
        CopyBulk(barrier, words[i] + begin[i] * kPackBytes, from[i] + begin[i],
                 (end[i] - begin[i]) * kPackBytes);
      }
    }
    if (count > 0) {
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
        const int skip = static_cast<int>(past[i] / sizeof(T));
        const int word = lane < N ? 0 : count, at = word * N + lane % N - skip;
        const bool wanted = lane < 2 * N && (lane < N ? begin[i] > 0 : skip > 0 && end[i] <= count);
        if (wanted && at >= 0 && col + at < cols) {
          *reinterpret_cast<T*>(words[i] + past[i] + at * static_cast<int>(sizeof(T))) =
              a.template Load<Access::kAny, 1>(row, col + at).input[i].v[0];
        }
      }
    }
    __syncwarp();
  }
  // The element `at` columns behind the part's first.
  __device__ __forceinline__ typename A::template Raw<1> Single(int at) const {
    typename A::template Raw<1> raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      raw.input[i].v[0] =
          *reinterpret_cast<const T*>(words[i] + past[i] + at * static_cast<int>(sizeof(T)));
    }
    return raw;
  }
  // Own packs in the place of the words in which they began.
  template <class E>
  __device__ __forceinline__ void PutOwn(int p, const Pack<E, N>& pack) const {
    *reinterpret_cast<uint4*>(words[0] + p * kPackBytes) = WordOfPack(pack);
  }
  template <class P = Pack<T, N>>
  __device__ __forceinline__ P Own(int p) const {
    return LoadSkipped<-1, T>(words[0] + p * kPackBytes, 0).Get();
  }
  // Calls f(get), where get(p) is the raw pack that begins `columns` columns behind own pack p: by
  // code for the shift, where all inputs have the same.
  template <class F>
  __device__ __forceinline__ void Visit(int columns, F&& f) const {
    unsigned shift[kInputs];
    const char* from[kInputs];
    bool same = true;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      const unsigned at = past[i] + static_cast<unsigned>(columns * static_cast<int>(sizeof(T)));
      shift[i] = at % kPackBytes;
      from[i] = words[i] + at / kPackBytes * kPackBytes;
      same = same && shift[i] == shift[0];
    }
    if (same) {
      const auto by = [&](auto skip) {
        f([&](int p) {
          typename A::template Raw<N> raw;
#pragma unroll
          for (int i = 0; i < kInputs; ++i) {
            raw.input[i] =
                LoadSkipped<decltype(skip)::value, T>(from[i] + p * kPackBytes, shift[0]).Get();
          }
          return raw;
        });
      };
      if (shift[0] == 0) by(std::integral_constant<int, -1>());
      VisitWordShift<T>(shift[0], by);
    } else {
      f([&](int p) {
        typename A::template Raw<N> raw;
#pragma unroll
        for (int i = 0; i < kInputs; ++i) {
          raw.input[i] = ShiftedPackOnChip<T, N>(from[i] + p * kPackBytes, shift[i]);
        }
        return raw;
      });
    }
  }
};

// What is written where aligned words of the output begin.
template <class A>
__device__ __forceinline__ void WriteStaged(const A& a, int64_t row, const StagedPart<A>& part,
                                            const typename A::Total& total) {
  constexpr int N = A::kPack;
  const int lane = threadIdx.x % kWarp, elements = part.count * N;
  const int boundary = a.Head(row), head = boundary < elements ? boundary : elements;
  const int packs = (elements - head) / N, singles = elements - packs * N;
  part.Visit(head, [&](const auto& get) {
#pragma unroll 2
    for (int p = lane; p < packs; p += kWarp) {
      a.template StoreRaw<N>(row, part.col + head + p * N, get(p), total);
    }
  });
  if (lane < singles) {
    const int at = lane < head ? lane : packs * N + lane;
    a.template StoreRaw<1>(row, part.col + at, part.Single(at), total);
  }
}
// ... and by own packs, which lie where GatherStaged has put them.
template <class A>
__device__ __forceinline__ void WriteThroughImage(const A& every, int64_t row,
                                                  const StagedPart<A>& part,
                                                  const typename A::Total& total) {
  using T = typename A::Output;
  static_assert(sizeof(T) == sizeof(typename A::Element) && A::kInputs == 1);
  const int lane = threadIdx.x % kWarp;
  A a = every;
  a.store.image = static_cast<uint32_t>(__cvta_generic_to_shared(part.words[0])) -
                  static_cast<uint32_t>(part.col * static_cast<int64_t>(sizeof(T)));
  if constexpr (HasOperands<A>::value) {
    a.StorePart(row, part, total);
  } else {
#pragma unroll 2
    for (int p = lane; p < part.count; p += kWarp) {
      const int64_t col = part.col + p * A::kPack;
      if constexpr (kKeepsValues<A>) {
        a.template Store<A::kPack>(row, col, part.Own(p), total);
      } else {
        a.template StoreRaw<A::kPack>(row, col, {{part.Own(p)}}, total);
      }
    }
  }
  __syncwarp();
  CopyImage<0>(part.words[0], part.count * A::kPack,
               every.store.y + row * every.store.row_stride + part.col, lane, kWarp);
}

// What is asked for ahead of own packs, which an algorithm changes before they are put in the place
// of words.
struct NothingAsked {};
template <class A>
__device__ __forceinline__ auto AskFor(const A& a, int64_t col) {
  if constexpr (Offers<A, RowOffers::kPrepares>) {
    return a.template Ask<A::kPack>(col);
  } else {
    return NothingAsked{};
  }
}
// For a warp's own packs, some at a time.
template <class A>
struct AskedPacks {
  static constexpr int kAtOnce = 2;
  decltype(AskFor(std::declval<const A&>(), 0)) of[kAtOnce];

  __device__ __forceinline__ void Ask(const A& a, const StagedPart<A>& part, int begin) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int p = begin + k * kWarp;
      if (p < part.count) of[k] = AskFor(a, part.col + p * A::kPack);
    }
  }
};
// Calls put(p, raw) with the warp's own packs, when the words in which they begin are free.
template <class A, class F>
__device__ __forceinline__ void ForOwn(const A& a, const StagedPart<A>& part, AskedPacks<A> next,
                                       const F& put) {
  constexpr int N = A::kPack, kAtOnce = AskedPacks<A>::kAtOnce;
  const int lane = threadIdx.x % kWarp;
  part.Visit(0, [&](const auto& get) {
    for (int begin = lane; begin - lane < part.count; begin += kAtOnce * kWarp) {
      const AskedPacks<A> asked = next;
      next.Ask(a, part, begin + kAtOnce * kWarp);
      typename A::template Raw<N> raw[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int p = begin + k * kWarp;
        if (p >= part.count) continue;
        raw[k] = get(p);
        if constexpr (Offers<A, RowOffers::kPrepares>) {
          raw[k] = a.template Prepared<N>(raw[k], part.col + p * N, asked.of[k]);
        }
      }
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int p = begin + k * kWarp;
        if (p < part.count) put(p, raw[k]);
      }
    }
  });
}

// What the warp's own packs come to. Those of an algorithm that stores into an image take the place
// of the words in which they began.
template <class A>
__device__ __forceinline__ void GatherStaged(const A& a, const StagedPart<A>& part,
                                             const AskedPacks<A>& asked,
                                             const typename A::Total& total,
                                             typename A::Statistics& statistics) {
  constexpr int N = A::kPack;
  const int lane = threadIdx.x % kWarp;
  if constexpr (HasImage<A>::value) {
    ForOwn(a, part, asked, [&](int p, const auto& raw) {
      part.PutOwn(p, raw.input[0]);
      a.Add(raw, part.col + p * N, total, statistics);
    });
  } else {
    part.Visit(0, [&](const auto& get) {
#pragma unroll 2
      for (int p = lane; p < part.count; p += kWarp) {
        a.Add(get(p), part.col + p * N, total, statistics);
      }
    });
  }
}
// The same in the rounds of rows in registers, a maximum and a sum, of an algorithm whose values
// take the place of own packs. `extra`: a column outside packs, where it is `seen`.
template <class A>
__device__ __forceinline__ typename A::Statistics GatherValues(
    const A& a, const StagedPart<A>& part, const AskedPacks<A>& asked,
    typename A::template Value<1>& extra, bool seen, typename A::Total& total) {
  using Value = typename A::template Value<A::kPack>;
  constexpr int N = A::kPack;
  static_assert(A::kRounds == 2 && A::kMaxima == 1);
  LaneGroup<kWarp> warp;
  auto max = a.template Visit<0, 1>(extra, seen, total);
  ForOwn(a, part, asked, [&](int p, const auto& raw) {
    Value value = a.template Open<N>(raw, true, part.col + p * N, total);
    max = Larger{}(max, a.template Visit<0, N>(value, true, total));
    part.PutOwn(p, value);
  });
  a.template Finish<0>(warp.Reduce(max, Larger{}, max), total);
  auto sum = a.template Visit<1, 1>(extra, seen, total);
#pragma unroll 2
  for (int p = threadIdx.x % kWarp; p < part.count; p += kWarp) {
    Value value = part.template Own<Value>(p);
    sum += a.template Visit<1, N>(value, true, total);
    part.PutOwn(p, value);
  }
  a.template Finish<1>(warp.Reduce(sum, Plus{}, sum), total);
  return A::Gathered(total);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
