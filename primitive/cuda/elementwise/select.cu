// SPDX-License-Identifier: Apache-2.0
//
// What moves elements without looking at them: one of two by a condition, and copies.
#include "primitive/cuda/elementwise/find.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

struct Choose {
  template <class C>
  __device__ C operator()(C condition, C a, C b) const {
    return condition != C(0) ? a : b;
  }
};
struct Move {
  template <class C>
  __device__ C operator()(C x) const {
    return x;
  }
};

}  // namespace

PassLauncher<3> FindSelect(DType moved) { return FindFor<kIntegers, 3, NoNumbers, Choose>(moved); }
PassLauncher<1> FindMove(DType moved) { return FindFor<kIntegers, 1, NoNumbers, Move>(moved); }

}  // namespace cuda
}  // namespace oneflow_lite
