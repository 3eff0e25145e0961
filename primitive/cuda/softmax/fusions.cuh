// SPDX-License-Identifier: Apache-2.0
//
// Ready-made Load and Store functors for LaunchSoftmax and LaunchSoftmaxBackward. They wrap each
// other, and DirectLoad and DirectStore in the end; what they hold is what they do:
//
//   // softmax(x / temperature + bias), followed by dropout
//   ScaledLoad<DirectLoad<__half>> scaled{{x, cols}, 1 / temperature};
//   BiasedLoad<decltype(scaled), __half> load{scaled, bias, where};
//   DropoutStore<DirectStore<__half>> store{{y, cols}, dropout, cols};
//   LaunchSoftmax<false>(load, store, rows, cols, limits, stream);
//
//   forward        backward
//   ScaledLoad     ScaledStore of the same scale around dx; a temperature is the scale 1 / t
//   BiasedLoad     nothing; the bias' gradient is dx before any scale, summed where it broadcasts
//   MaskedLoad     nothing: y is 0 where the mask hides
//   CausalLoad     CausalLoad around y and dy, with 0 in place of -inf
//   DropoutStore   DropoutLoad around dy, and around y with rate 0: y is the result before dropout,
//                  which a PairStore keeps beside the one after it
//   ResidualStore  nothing: the residual's gradient is dy
//
// Your own functor is as short as these; rows/io.cuh says what is asked of it.
#pragma once

#include "oneflow_lite/core/philox.h"
#include "primitive/cuda/rows/io.cuh"
#include "primitive/cuda/rows/masks.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// What a Load gives, in the compute type.
template <class Load>
using ComputeTypeOfLoad = ComputeType<typename Load::Element>;

// scale * x
template <class Load_>
struct ScaledLoad {
  using Element = ComputeTypeOfLoad<Load_>;
  Load_ load;
  Element scale;

  template <int N>
  OFL_DEVICE Pack<Element, N> Load(int64_t row, int64_t col) const {
    auto v = ConvertPack<Element>(load.template Load<N>(row, col));
    return v *= scale;
  }
};

// x + bias, the bias of type B broadcast over rows as `where` says: a bias per column, an additive
// mask.
template <class Load_, class B, class Index = uint32_t>
struct BiasedLoad {
  using Element = ComputeTypeOfLoad<Load_>;
  Load_ load;
  const B* bias;
  RowBroadcast<Index> where;

  template <int N>
  OFL_DEVICE Pack<Element, N> Load(int64_t row, int64_t col) const {
    auto v = ConvertPack<Element>(load.template Load<N>(row, col));
    return v += ConvertPack<Element>(LoadBroadcast<N>(bias, where, row, col));
  }
};

// x where `keep` is true, else -inf.
template <class Load_, class Index = uint32_t>
struct MaskedLoad {
  using Element = ComputeTypeOfLoad<Load_>;
  Load_ load;
  const bool* keep;
  RowBroadcast<Index> where;

  template <int N>
  OFL_DEVICE Pack<Element, N> Load(int64_t row, int64_t col) const {
    auto v = ConvertPack<Element>(load.template Load<N>(row, col));
    const auto k = LoadBroadcast<N>(keep, where, row, col);
#pragma unroll
    for (int i = 0; i < N; ++i) v.v[i] = k.v[i] ? v.v[i] : MinusInfinity<Element>();
    return v;
  }
};

// x up to the diagonal that ends in the lower right corner of each matrix, and `hidden` beyond it,
// where nothing is read: -inf before softmax, 0 for y and dy.
template <class Load_, class Index = uint32_t>
struct CausalLoad {
  using Element = typename Load_::Element;
  Load_ load;
  CausalRows<Index> causal;
  Element hidden;

  template <int N>
  OFL_DEVICE Pack<Element, N> Load(int64_t row, int64_t col) const {
    const int seen = VisibleOf<N>(causal.Visible(row), col);
    Pack<Element, N> v;
    if (seen > 0) v = load.template Load<N>(row, col);
#pragma unroll
    for (int i = 0; i < N; ++i) v.v[i] = i < seen ? v.v[i] : hidden;
    return v;
  }
};

// scale * y
template <class Store_>
struct ScaledStore {
  using Element = typename Store_::Element;
  using C = ComputeType<Element>;
  Store_ store;
  C scale;

  OFL_DEVICE int Head(int64_t row) const { return store.Head(row); }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, Pack<C, N> v) const {
    v *= scale;
    store.template Store<N>(row, col, v);
  }
};

// y + residual, read by a Load.
template <class Store_, class Residual>
struct ResidualStore {
  using Element = typename Store_::Element;
  using C = ComputeType<Element>;
  Store_ store;
  Residual residual;

  OFL_DEVICE int Head(int64_t row) const { return store.Head(row); }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, Pack<C, N> v) const {
    v += ConvertPack<C>(residual.template Load<N>(row, col));
    store.template Store<N>(row, col, v);
  }
};

// The same values to two places; `first` decides where packs begin.
template <class First, class Second>
struct PairStore {
  using Element = typename First::Element;
  First first;
  Second second;

  OFL_DEVICE int Head(int64_t row) const { return first.Head(row); }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Pack<ComputeType<Element>, N>& v) const {
    first.template Store<N>(row, col, v);
    second.template Store<N>(row, col, v);
  }
};

// Which elements dropout keeps: those whose number in [0, 1) is not below the rate. The number of
// element i is UniformFloat of integer i % 4 of Philox(seed, offset + i / 4), so that forward and
// backward, and any program with a Philox, CPU or GPU, agree on it. `device_offset`, where not
// null, is added to the offset: a captured graph draws anew at each replay.
struct Dropout {
  float rate = 0;  // in [0, 1); 0 keeps all
  uint64_t seed = 0, offset = 0;
  const uint64_t* device_offset = nullptr;

  // 1 / (1 - rate) for the elements [index, index + N) that are kept, else 0.
  template <int N>
  OFL_DEVICE Pack<float, N> Factors(int64_t index) const {
    constexpr int kCounters = (N + 6) / 4;  // that N elements in a row can touch
    const uint64_t counter = offset + (device_offset ? *device_offset : 0) + index / 4;
    uint32_t bits[4 * kCounters];
#pragma unroll
    for (int c = 0; c < kCounters; ++c) {
      const PhiloxResult r = Philox(seed, counter + c);
#pragma unroll
      for (int k = 0; k < 4; ++k) bits[4 * c + k] = r.v[k];
    }
    Pack<float, N> factors;
    const int shift = static_cast<int>(index % 4);
#pragma unroll
    for (int i = 0; i < N; ++i) {  // bits[i + shift], without an array in memory
      uint32_t b = bits[i];
#pragma unroll
      for (int s = 1; s < 4; ++s) b = shift == s ? bits[i + s] : b;
      factors.v[i] = UniformFloat(b) >= rate ? 1 / (1 - rate) : 0.0f;
    }
    return factors;
  }
};

// dropout(x), e.g. of dy in backward. Rate 0 changes nothing.
template <class Load_>
struct DropoutLoad {
  using Element = ComputeTypeOfLoad<Load_>;
  Load_ load;
  Dropout dropout;
  int64_t cols;  // elements are numbered row * cols + col

  template <int N>
  OFL_DEVICE Pack<Element, N> Load(int64_t row, int64_t col) const {
    auto v = ConvertPack<Element>(load.template Load<N>(row, col));
    if (dropout.rate == 0) return v;
    return v *= ConvertPack<Element>(dropout.Factors<N>(row * cols + col));
  }
};

// dropout(y)
template <class Store_>
struct DropoutStore {
  using Element = typename Store_::Element;
  using C = ComputeType<Element>;
  Store_ store;
  Dropout dropout;
  int64_t cols;

  OFL_DEVICE int Head(int64_t row) const { return store.Head(row); }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, Pack<C, N> v) const {
    v *= ConvertPack<C>(dropout.Factors<N>(row * cols + col));
    store.template Store<N>(row, col, v);
  }
};

}  // namespace oneflow_lite::cuda
