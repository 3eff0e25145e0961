// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward over rows of up to 2048 columns that are no whole packs, or lie anyhow:
// column by column. A team, lanes of a warp or a few warps, visits row after row, each asked for
// before the one before it is worked on; a thread's columns are the same in all rows.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/backward/policy.h"
#include "primitive/cuda/norms/backward/sums.cuh"
#include "primitive/cuda/norms/backward/team.cuh"
#include "primitive/cuda/norms/math.cuh"

namespace oneflow_lite::cuda {

template <class T>
struct NormColumnsGrid {
  using C = ComputeType<T>;
  int team;  // threads that have a row
  C share;   // 1 / cols
  C* parts;  // [blocks][kinds] rows of PartPitch
};

// kLanes: neighbouring threads whose columns lie side by side, those of a team of several warps by
// warps.
template <class T, int kLanes, int kColumns, bool kCentre, bool kFromOutput>
class NormColumnsTeam {
  using C = ComputeType<T>;
  // x_hat is known with the row's sums.
  static constexpr bool kLate = kRecentre<T, kCentre> && !kFromOutput;
  static constexpr int kKinds = kCentre ? 2 : 1, kSums = kNormSumCount<T, kCentre>;
  using Exchange = TeamSums<C, kSums>;
  // An element as it waits: 16 bits in a register of their own, without a conversion.
  static constexpr bool kNarrow = sizeof(T) == 2;
  using Word = std::conditional_t<kNarrow, uint32_t, T>;
  using Memory = std::conditional_t<kNarrow, uint16_t, T>;

 public:
  // shared: of NormColumnsPlan::shared bytes.
  OFL_DEVICE NormColumnsTeam(const NormBackward<T>& a, const NormColumnsGrid<T>& grid, char* shared)
      : a_(a),
        grid_(grid),
        shared_(shared),
        team_(threadIdx.x / grid.team),
        rank_(threadIdx.x % grid.team),
        col_(rank_ / kLanes * (kLanes * kColumns) + rank_ % kLanes),
        cols_(static_cast<int>(a.cols)),
        sums_(shared + team_ * Exchange::kBytes, rank_, grid.team / kWarp) {}

  OFL_DEVICE void Run() {
    AllowNextKernel();
    const int teams = static_cast<int>(blockDim.x) / grid_.team;
    const int64_t row = int64_t{blockIdx.x} * teams + team_;
    const int step = static_cast<int>(gridDim.x) * teams;
    int turns = row < a_.rows ? static_cast<int>((a_.rows - row + step - 1) / step) : 0;
    const int mine = turns;
    if (kLanes < kWarp) turns = __shfl_sync(0xffffffffu, turns, 0);  // the warp's first has most
    x_ = a_.x + row * a_.x_stride + col_;
    dy_ = a_.dy + row * a_.cols + col_;
    out_ = row * a_.cols + col_;
    row_ = row;
    Input next;
    Load(next, mine > 0, step);
    KeepWeights();
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
      const Input now = next;
      Load(next, turn + 1 < mine, step);
      Visit(now, turn < mine);
      out_ += step * a_.cols;
    }
    if (a_.dweight || a_.dbias) StoreParts();
  }

 private:
  struct Input {
    Word x[kColumns], dy[kColumns];
    C rstd, mean;
  };
  static OFL_DEVICE C Widen(const Word& word) {
    if constexpr (kNarrow) {
      const auto low = static_cast<uint16_t>(word);
      T element;
      memcpy(&element, &low, sizeof(element));
      return ConvertTo<C>(element);
    } else {
      return word;
    }
  }
  OFL_DEVICE bool Has(int k) const { return col_ + k * kLanes < cols_; }
  // Zeros where there is no row, or column.
  OFL_DEVICE void Load(Input& in, bool there, int step) {
    Unroll<kColumns>([&](int k) {
      in.x[k] = in.dy[k] = 0;
      if (there && Has(k)) {
        in.x[k] = reinterpret_cast<const Memory*>(x_)[k * kLanes];
        in.dy[k] = reinterpret_cast<const Memory*>(dy_)[k * kLanes];
      }
    });
    in.rstd = in.mean = 0;
    // Where the caller has none, nothing that depends on it is wanted.
    if (there && a_.rstd) in.rstd = a_.rstd[row_];
    if (kCentre && there && a_.mean) in.mean = a_.mean[row_];
    Unroll<kColumns>([&](int k) { PinRegister(in.x[k]), PinRegister(in.dy[k]); });
    x_ += step * a_.x_stride, dy_ += step * a_.cols;
    row_ += step;
  }
  OFL_DEVICE void KeepWeights() {
    Unroll<kColumns>([&](int k) {
      weight_[k] = WeightOf(a_.weight, k, C(1));
      if (kFromOutput) bias_[k] = WeightOf(a_.bias, k, C(0));
    });
  }
  OFL_DEVICE Pack<C, 1> WeightOf(const void* from, int k, C missing) const {
    return LoadWeights<C, 1, T>(from, a_.float_weight, col_ + k * kLanes, 0, Has(k) ? 1 : 0,
                                missing);
  }

  OFL_DEVICE void Visit(const Input& in, bool active) {
    C v[kColumns], g[kColumns];  // x_hat and dy * weight; kLate: x - mean and dy
    C sums[kSums] = {};
    Unroll<kColumns>([&](int k) {
      Pack<C, 1> value{Widen(in.x[k])};
      ToValues<kCentre, kFromOutput>(value, weight_[k], bias_[kFromOutput ? k : 0], in.mean);
      v[k] = value.v[0];
      g[k] = Widen(in.dy[k]);
      if (!kLate && !kFromOutput) v[k] *= in.rstd;
      const C dy = g[k], product = dy * weight_[k].v[0];
      sums[0] += product * v[k];
      if constexpr (kCentre) {
        sums[1] += product;
        dbias_[k] += dy;
      }
      if constexpr (kLate) {
        if (Has(k)) sums[2] += v[k];
      } else {
        dweight_[k] += dy * v[k];
        g[k] = product;
      }
    });
    NormSums<T, kCentre> all;
    SumOfTeam(sums);
    memcpy(&all, sums, sizeof(sums));  // in that order
    // What is not late is x_hat itself already.
    const NormGradient<T, kCentre, !kLate> gradient(all, in.rstd, grid_.share);
    Unroll<kColumns>([&](int k) {
      const C x_hat = gradient.XHat(v[k]);
      if (kLate) dweight_[k] += g[k] * x_hat;
      v[k] = gradient.Dx(kLate ? g[k] * weight_[k].v[0] : g[k], x_hat);
    });
    if (!active || !a_.dx) return;
    if (a_.dsum) {
      Unroll<kColumns>([&](int k) {
        if (Has(k)) v[k] += ConvertTo<C>(a_.dsum[out_ + k * kLanes]);
      });
    }
    T* const dx = a_.dx + out_;
    Unroll<kColumns>([&](int k) {
      if (Has(k)) dx[k * kLanes] = ConvertTo<T>(v[k]);
    });
  }
  OFL_DEVICE void SumOfTeam(C (&sums)[kSums]) {
    if constexpr (kLanes < kWarp) {
      Unroll(sums, [&](C& sum) { sum = ReduceLanes<kLanes>(sum, Plus{}); });
    } else {
      sums_.Post(sums);
      if (grid_.team > kWarp) NamedBarrier(team_ + 1, grid_.team);
      sums_.Total(sums);
    }
  }

  // Added up over the block's teams, in a fixed order.
  OFL_DEVICE void StoreParts() {
#pragma unroll
    for (int mask = kWarp / 2; mask >= kLanes; mask /= 2) {
      Unroll<kColumns>([&](int k) {
        dweight_[k] += ShuffleXor(dweight_[k], mask);
        if (kCentre) dbias_[k] += ShuffleXor(dbias_[k], mask);
      });
    }
    __syncthreads();  // the teams' sums are in the same memory
    const int per_region = grid_.team < kWarp ? kWarp : grid_.team;  // threads
    const int regions = static_cast<int>(blockDim.x) / per_region, size = kKinds * cols_;
    C* const memory = reinterpret_cast<C*>(shared_);
    C* const mine = memory + static_cast<int>(threadIdx.x) / per_region * size + col_;
    if (kLanes == kWarp || threadIdx.x % kWarp < kLanes) {
      Unroll<kColumns>([&](int k) {
        if (!Has(k)) return;
        mine[k * kLanes] = dweight_[k];
        if (kCentre) mine[cols_ + k * kLanes] = dbias_[k];
      });
    }
    __syncthreads();
    C* const parts = grid_.parts + int64_t{blockIdx.x} * kKinds * PartPitch<C>(cols_);
#pragma unroll 1
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      C sum = memory[i];
#pragma unroll 4
      for (int r = 1; r < regions; ++r) sum += memory[r * size + i];
      const int kind = i < cols_ ? 0 : 1;
      if (kind == 0 ? a_.dweight : a_.dbias) {
        parts[kind * PartPitch<C>(cols_) + i - kind * cols_] = sum;
      }
    }
  }

  const NormBackward<T>& a_;
  const NormColumnsGrid<T>& grid_;
  char* const shared_;
  const int team_, rank_, col_, cols_;
  Exchange sums_;
  const T *x_, *dy_;  // of the next row to ask for
  int64_t row_;       // the same
  int64_t out_;       // of the row at work
  Pack<C, 1> weight_[kColumns], bias_[kFromOutput ? kColumns : 1];
  C dweight_[kColumns] = {}, dbias_[kColumns] = {};
};

// kLanes: NormColumnsPolicy::kFewLanes or a warp.
template <class T, int kLanes, bool kCentre, bool kFromOutput>
__global__ void __launch_bounds__(NormColumnsPolicy::kThreads, NormColumnsPolicy::kBlocks)
    NormColumnsKernel(const __grid_constant__ NormBackward<T> a,
                      const __grid_constant__ NormColumnsGrid<T> grid) {
  extern __shared__ __align__(16) char columns_memory[];
  const auto run = [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    NormColumnsTeam<T, kLanes, kColumns, kCentre, kFromOutput>(a, grid, columns_memory).Run();
  };
  // Columns that no thread has would take as long as others.
  using P = NormColumnsPolicy;
  constexpr int kMost = sizeof(T) == 8 ? P::kDoubleColumns : P::kColumns;
  if (kLanes < kWarp && a.cols <= kLanes * kMost / 4) {
    run(std::integral_constant<int, kMost / 4>{});
  } else if (a.cols <= kLanes * kMost / 2) {
    run(std::integral_constant<int, kMost / 2>{});
  } else {
    run(std::integral_constant<int, kMost>{});
  }
}

namespace internal {

template <bool kCentre, class T>
cudaError_t LaunchNormColumns(const NormColumnsPlan& plan, const NormBackward<T>& a,
                              const LaunchSite& site) {
  using C = ComputeType<T>;
  constexpr int kFew = NormColumnsPolicy::kFewLanes;
  const NormColumnsGrid<T> grid{plan.team, static_cast<C>(1.0 / static_cast<double>(a.cols)),
                                static_cast<C*>(site.workspace)};
  const cudaError_t error = VisitBool(a.from_output, [&](auto from_output) {
    constexpr bool kFromOutput = decltype(from_output)::value;
    const auto kernel = plan.team == kFew ? &NormColumnsKernel<T, kFew, kCentre, kFromOutput>
                                          : &NormColumnsKernel<T, kWarp, kCentre, kFromOutput>;
    return Launch(kernel, plan.units, plan.threads, static_cast<size_t>(plan.shared), site.stream,
                  a, grid);
  });
  if (error != cudaSuccess) return error;
  return ReduceParts<kCentre>(a, grid.parts, plan.units, 1, site);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
