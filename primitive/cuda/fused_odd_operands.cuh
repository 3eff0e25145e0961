// SPDX-License-Identifier: Apache-2.0
//
// Where the packs of an odd row are (fused_odd.cuh), and how a warp's part of what serves all rows,
// which lies otherwise than they, gets to them in shared memory.
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/fused_plan.h"
#include "primitive/cuda/fused_row.cuh"

namespace oneflow_lite {
namespace cuda {

// What a lane has of a row that `parts` warps share: every 32nd pack of its warp's, and maybe a
// column outside packs. Lanes have all kPacks packs but the last one. kAlone: the warps are a
// block.
template <int N_, int kPacks_, bool kAlone_>
struct OddPlaces {
  static constexpr int N = N_, kPacks = kPacks_;
  static constexpr bool kAlone = kAlone_;
  int head;    // column of the row's first pack
  int first;   // of the warp's
  int packs;   // the warp's
  int lane;    // the place of the lane's first one
  int extras;  // columns outside packs of this warp's lanes
  int extra;   // the lane's own, or -1

  __device__ __forceinline__ OddPlaces(int boundary, int cols, int part, int parts, int lane)
      : head(boundary + N), lane(lane) {
    const int all = (cols - head) / N - 1, begin = all * part / parts;
    first = head + begin * N;
    packs = all * (part + 1) / parts - begin;
    extras = part == 0 ? cols - all * N : 0;
    extra = lane >= extras ? -1 : lane < head ? lane : lane + all * N;
  }
  __device__ __forceinline__ bool Has(int k) const {
    return k + 1 < kPacks || lane + k * kWarp < packs;
  }
  __device__ __forceinline__ int Column(int k) const { return first + (lane + k * kWarp) * N; }
  // Makes the compiler work out columns anew from here on, rather than keep them.
  __device__ __forceinline__ void Forget() {
    asm volatile("" : "+r"(first), "+r"(lane), "+r"(extra));
  }
  // Columns of this warp's lanes.
  template <int kLanes>
  __device__ __forceinline__ int Count() const {
    static_assert(kLanes == kWarp, "");
    return packs * N + extras;
  }
};

// Copies of operands' rows from a warp's first pack on, in which each lane finds its packs whole.
// Units of 16 bytes, or of a smaller pack, are copied as they lie in the operand, where packs begin
// inside them. Once all have arrived packs are moved to where their units begin, once a row: by how
// much is another in each, and packs shifted wherever they are read cost more.
template <class Places>
struct SharedRows {
  static constexpr int kAlignment = kFusedSharedAlignment;
  const Places& places;
  char* at;

  // How one operand lies, in bytes; smaller packs than 8 are read where they are.
  template <int N, class T>
  struct Layout {
    static constexpr int kPack = N * static_cast<int>(sizeof(T)), kOfWarp = kWarp * kPack;
    static constexpr bool kCopied = kPack >= 8, kOfWords = sizeof(T) % 4 == 0;
    static constexpr int kUnit = kPack < kPackBytes ? kPack : kPackBytes;
    static constexpr int kUnits = kPack / kUnit;  // of a pack
    // With what is before the first unit, and the unit behind the last pack.
    static constexpr int kAll = kCopied ? Places::kPacks * kOfWarp + kAlignment : 0;
    using Unit = typename WordOf<kUnit>::type;

    const char* from;  // the unit in which the first pack begins
    int lead, past;    // bytes before it from a multiple of kAlignment, and before the pack in it

    __device__ __forceinline__ Layout(const T* row, const Places& places) {
      const auto first = reinterpret_cast<uintptr_t>(row + places.first);
      // The same for all warps, which shows here.
      past = static_cast<int>(reinterpret_cast<uintptr_t>(row + places.head) % kUnit);
      lead = static_cast<int>(first % kAlignment) - past;
      from = reinterpret_cast<const char*>(first) - past;
    }
  };
  template <int N, class T>
  static constexpr int kBytes = Layout<N, T>::kAll;

  // By all lanes; moves on to the next operand, as do the other two.
  template <int N, class T>
  __device__ __forceinline__ void Copy(const T* row) {
    using L = Layout<N, T>;
    if constexpr (!L::kCopied) return;
    const L layout(row, places);
    // From multiples of kAlignment on to such ones, or copies would read more. Rows in blocks find
    // the last one's operands in the L1: half at 4097 columns 1.01 of the bare softmax's time, past
    // the L1 1.07. Where clusters exchange they empty it: at 50257 1.06, past it 1.01.
    const int mine = places.lane - layout.lead / L::kUnit, last = places.packs * L::kUnits;
    const char* from = layout.from + mine * L::kUnit;
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(at)) + places.lane * L::kUnit;
    constexpr int kSteps = Places::kPacks * L::kUnits, kSure = kSteps - L::kUnits;
#pragma unroll
    for (int i = 0; i <= kSteps; ++i) {
      const int step = i * kWarp;
      if ((i == 0 && mine < 0) || (i + 1 > kSure && mine + step > last)) continue;
      CopyUnitAsync<L::kUnit, Places::kAlone>(to + step * L::kUnit, from + step * L::kUnit);
    }
    at += L::kAll;
  }
  // By all lanes, once what they copied is there: Read serves from here on.
  template <int N, class T>
  __device__ __forceinline__ void Place(const T* row) {
    using L = Layout<N, T>;
    if constexpr (L::kCopied) {
      const L layout(row, places);
      if (layout.past > 0) Move<L, L::kOfWords ? 1 : 0>(Slot(layout, 0), layout.past);
    }
    at += L::kAll;
  }
  // The lane's pack k.
  template <int N, class T>
  __device__ __forceinline__ StowedPack<T, N> Read(const T* row, int k) {
    using L = Layout<N, T>;
    StowedPack<T, N> pack;
    if constexpr (!L::kCopied) {
      pack = StowedPack<T, N>::Of(LoadEach<N>(row + places.Column(k)));
    } else {
      typename L::Unit units[L::kUnits];
      memcpy(units, __builtin_assume_aligned(Slot(L(row, places), k), L::kUnit), sizeof(units));
      memcpy(&pack.held, units, sizeof(units));
    }
    at += L::kAll;
    return pack;
  }

 private:
  template <class L>
  __device__ __forceinline__ char* Slot(const L& layout, int k) const {
    return at + layout.lead + places.lane * L::kPack + k * L::kOfWarp;
  }
  // Packs that begin `past` bytes behind units: kWords words and less than another. The unit behind
  // the last lane's pack k is the first lane's pack k + 1, which is still where it was.
  template <class L, int kWords>
  static __device__ __forceinline__ void Move(char* slot, unsigned past) {
    if constexpr (4 * kWords < L::kUnit) {
      if (past / 4 != kWords) return Move<L, kWords + 1>(slot, past);
      const unsigned bits = past * 8 % 32;
#pragma unroll
      for (int k = 0; k < Places::kPacks; ++k) {
        auto* at_pack = static_cast<char*>(__builtin_assume_aligned(slot, L::kUnit));
        typename L::Unit units[L::kUnits + 1];
        memcpy(units, at_pack, sizeof(units));
        uint32_t words[sizeof(units) / 4];
        memcpy(words, units, sizeof(units));
        __syncwarp();
#pragma unroll
        for (int i = 0; i < L::kPack / 4; ++i) {
          const uint32_t low = words[kWords + i];
          words[i] = L::kOfWords ? low : __funnelshift_r(low, words[kWords + i + 1], bits);
        }
        memcpy(at_pack, words, L::kPack);
        slot += L::kOfWarp;
      }
    }
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
