// SPDX-License-Identifier: Apache-2.0
//
// The wide norms' backward (norms/backward/wide.cuh) by sums that do not depend on where a row
// begins: its packs follow those of dx, but a row's sums are added up by packs that are counted
// from the row's own first column on. A second copy of the weights, in the place of biases, serves
// these.
#pragma once

#include "primitive/cuda/norms/backward/wide.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T, bool kCentre>
class NormOwnWide : public NormWide<T, kCentre, false, NormOwnWide<T, kCentre>> {
  using Base = NormWide<T, kCentre, false, NormOwnWide>;
  using Base::a_, Base::biases_, Base::column_, Base::grid_, Base::kLightPacks, Base::kPacks,
      Base::N, Base::Read, Base::Write, typename Base::C, typename Base::Row, typename Base::Sums,
      typename Base::Values;

 public:
  __device__ __forceinline__ NormOwnWide(const NormBackward<T>& a, const NormWideGrid<T>& grid,
                                         char* shared)
      : Base(a, grid, shared) {}

  __device__ __forceinline__ void FindOwn() {
    const int most = grid_.packs * N, warp = static_cast<int>(threadIdx.x) / kWarp;
    own_.begin = static_cast<int>(blockIdx.x) % grid_.slices * most;
    const int left = Base::Cols() - own_.begin;
    own_.columns = left < 0 ? 0 : left < most ? left : most;
    const int full = own_.columns / (kPacks * kWarp * N);
    own_.light = warp >= full;
    const int before = own_.light ? full * kPacks + (warp - full) * kLightPacks : warp * kPacks;
    own_.place = before * kWarp + static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int pack = (own_.place + k * kWarp) * N, count = own_.columns - pack;
      const int there = count < 0 ? 0 : count < N ? count : N;
      Write(biases_, k,
            LoadWeights<C, N, T>(a_.weight, a_.float_weight, own_.begin + pack, 0, there, C(1)));
    }
  }
  __device__ __forceinline__ Sums SumsOfOwn(const Row& row, C mean) const {
    const auto lead = static_cast<unsigned>(own_.begin - column_) * unsigned{sizeof(T)};
    const unsigned x = row.x % kPackBytes + lead, dy = row.dy % kPackBytes + lead;
    const char* const part =
        this->ring_ + row.stage * 2 * grid_.tensor_bytes + own_.place * kPackBytes;
    const char* const x_at =
        part + (row.x & NormWidePolicy::kLineMask) + x / kPackBytes * kPackBytes;
    const char* const dy_at = part + grid_.tensor_bytes + (row.dy & NormWidePolicy::kLineMask) +
                              dy / kPackBytes * kPackBytes;
    Sums sums;
    const auto add = [&](int k, auto masked) {
      const int count = own_.columns - (own_.place + k * kWarp) * N;
      if (decltype(masked)::value && count <= 0) return;
      const int skip = k * kWarp * kPackBytes;
      const Values w = Read(biases_, k);
      Values v = ConvertPack<C>(ShiftedPackOnChip<T, N>(x_at + skip, x % kPackBytes));
      Values g = ConvertPack<C>(ShiftedPackOnChip<T, N>(dy_at + skip, dy % kPackBytes));
      ToValues<kCentre, false>(v, w, w, mean);
      if (decltype(masked)::value && count < N) {
        ClearOutside(v, 0, count);
        ClearOutside(g, 0, count);
      }
#pragma unroll
      for (int i = 0; i < N; ++i) sums.Add(g.v[i] * w.v[i], v.v[i]);
    };
    if (own_.light) {
#pragma unroll
      for (int k = 0; k < kLightPacks; ++k) add(k, std::true_type());
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) add(k, std::false_type());
    }
    return sums;
  }

  // An element's dx, and what it adds to its column's dweight. Which of EachPack's codes serves a
  // column depends on where rows begin, and the compiler may fuse a product and a sum in one of
  // them only: here it is told which.
  static __device__ __forceinline__ C RoundedAlike(const NormRowFactors<C>& factors, C w, C v, C dy,
                                                   C& dweight) {
    const C scaled = __fmul_rn(dy, factors.rstd);
    dweight = __fmaf_rn(scaled, v, dweight);
    if (kRecentre<T, kCentre>) dweight = __fmaf_rn(dy, factors.offset, dweight);
    const C by_row =
        kCentre ? __fmaf_rn(v, factors.by_v, factors.constant) : __fmul_rn(v, factors.by_v);
    return __fmaf_rn(scaled, w, by_row);
  }

 private:
  // Of this worker.
  struct {
    int begin, columns;  // of the slice
    int place;           // of the worker's first pack, as place_
    bool light;
  } own_;
};

// As NormWideKernel.
template <class T, bool kCentre>
__global__ void __launch_bounds__(NormWidePolicy::kMaxWorkers + NormWidePolicy::kOtherThreads, 1)
    NormOwnWideKernel(const __grid_constant__ NormBackward<T> a,
                      const __grid_constant__ NormWideGrid<T> grid) {
  extern __shared__ __align__(128) char own_memory[];
  NormOwnWide<T, kCentre>(a, grid, own_memory).Run();
}

}  // namespace cuda
}  // namespace oneflow_lite
