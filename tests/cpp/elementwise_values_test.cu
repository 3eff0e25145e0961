// SPDX-License-Identifier: Apache-2.0
//
// What a thread of the elementwise kernels does, run on the host: loads at every alignment,
// conversions between every pair of dtypes, heads, tails and crossings, in place. Needs no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "primitive/cuda/elementwise_pass.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

struct Sum {
  template <class C>
  __host__ __device__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Less {
  template <class C>
  __host__ __device__ bool operator()(C a, C b) const {
    return a < b;
  }
};
struct Twice {
  template <class C>
  __host__ __device__ C operator()(C a) const {
    return a + a;
  }
};

template <class To>
struct Whole {
  template <class C>
  __host__ __device__ To operator()(C a) const {
    return static_cast<To>(a);
  }
};

}  // namespace

template <class To>
inline constexpr bool kChangesType<Whole<To>> = true;

namespace {

int BytesOf(DType t) {
  const int bytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return bytes[static_cast<int>(t)];
}

// Memory of one operand, which begins `past` elements behind a boundary; guards of 32 bytes.
struct Array {
  Array(DType dtype, int64_t n, int past) : dtype(dtype), past(past) {
    bytes.resize(static_cast<size_t>((n + past) * BytesOf(dtype) + 128), '\x5a');
  }
  char* data() {
    const auto base = (reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 32 * 32;
    return reinterpret_cast<char*>(base) + past * BytesOf(dtype);
  }
  double Get(int64_t i) { return LoadOne<double>(dtype, data() + i * BytesOf(dtype)); }
  void Set(int64_t i, double v) {
    char* p = data() + i * BytesOf(dtype);
    if (dtype == DType::kFloat64) return StoreOne(dtype, p, v);
    if (dtype == DType::kInt64) return StoreOne(dtype, p, static_cast<int64_t>(v));
    if (dtype >= DType::kFloat16) return StoreOne(dtype, p, static_cast<float>(v));
    StoreOne(dtype, p, static_cast<int32_t>(v));
  }
  DType dtype;
  int past;
  std::vector<char> bytes;
};

// A dense pass over n elements as PlanPass plans it.
template <int N, class C>
Pass<N> DensePass(Array* const (&in)[N], Array& out, int64_t n, DType shared) {
  Pass<N> p;
  const int bytes = BytesOf(out.dtype), pack = kPassPack<C>;
  p.out = out.data();
  p.numel = p.length = n;
  while ((1 << p.size_log2) < bytes) ++p.size_log2;
  p.align = static_cast<uint8_t>((pack * bytes < 16 ? pack * bytes : 16) / bytes);
  p.past = static_cast<int>(reinterpret_cast<uintptr_t>(p.out) >> p.size_log2) & (p.align - 1);
  p.units = static_cast<uint32_t>((n + p.past + pack - 1) / pack);
  p.ndim = 1;
  p.halved = bytes == static_cast<int>(sizeof(C));
  p.dims[0] = static_cast<uint32_t>(n);
  p.dtype[N] = out.dtype;
  p.step[N] = bytes;
  for (int i = 0; i < N; ++i) {
    p.in[i] = in[i]->data();
    p.dtype[i] = in[i]->dtype;
    p.bytes[i] = static_cast<uint8_t>(BytesOf(in[i]->dtype));
    p.step[i] = p.bytes[i];
    p.form[i] = Form::kPacked;
    p.held[i] = p.bytes[i] > sizeof(C) ? shared : in[i]->dtype;
    p.round[i] = p.held[i];
  }
  return p;
}
template <class Op, class C, int N>
void RunOnHost(const Pass<N>& p) {
  for (uint32_t block = 0; block < PassBlocks(p); ++block) {
    for (uint32_t t = 0; t < kPassThreads; ++t) RunPass<N, C>(p, Op{}, block, t);
  }
}
double Value(DType t, int64_t i) {
  const int64_t v = i * 37 % 101;
  if (t == DType::kBool) return static_cast<double>(v % 2);
  return static_cast<double>(t == DType::kUInt8 ? v : v - 50);
}

template <class C>
void CheckSums(DType shared, const std::vector<DType>& inputs, const std::vector<DType>& outputs) {
  for (const DType a_type : inputs) {
    for (const DType b_type : inputs) {
      for (const DType out_type : outputs) {
        for (const int64_t n : {1, 7, 67, 300}) {
          const int shift = static_cast<int>(n + static_cast<int>(a_type)) % 16;
          Array a(a_type, n, shift), b(b_type, n, 16 - shift), out(out_type, n, shift / 2);
          for (int64_t i = 0; i < n; ++i)
            a.Set(i, Value(a_type, i)), b.Set(i, Value(b_type, i + 5));
          const std::vector<char> before = out.bytes;
          RunOnHost<Sum, C>(DensePass<2, C>({&a, &b}, out, n, shared));
          for (int64_t i = 0; i < n; ++i) {
            const double want = a.Get(i) + b.Get(i);
            ASSERT_EQ(out.Get(i), out_type == DType::kBool ? want != 0 : want)
                << Array(out_type, 0, 0).past << static_cast<int>(a_type) << " "
                << static_cast<int>(b_type) << " " << static_cast<int>(out_type) << ", " << i
                << " of " << n;
          }
          const int64_t from = out.data() - out.bytes.data(), bytes = n * BytesOf(out_type);
          for (int64_t i = 0; i < static_cast<int64_t>(before.size()); ++i) {
            if (i < from || i >= from + bytes) ASSERT_EQ(out.bytes[i], before[i]);
          }
        }
      }
    }
  }
}

const std::vector<DType> kIntegers = {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32,
                                      DType::kInt64};
const std::vector<DType> kAll = {DType::kBool,    DType::kUInt8,  DType::kInt8,    DType::kInt16,
                                 DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBFloat16,
                                 DType::kFloat32, DType::kFloat64};

TEST(ElementwiseValues, EveryPairOfDTypesInEveryComputeType) {
  CheckSums<float>(DType::kFloat32, kAll, {DType::kFloat16, DType::kBFloat16, DType::kFloat32});
  CheckSums<double>(DType::kFloat64, kAll, {DType::kFloat64});
  CheckSums<int32_t>(DType::kInt32, kIntegers,
                     {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32});
  CheckSums<uint32_t>(DType::kInt32, kIntegers, {DType::kInt8, DType::kInt32});
  CheckSums<int64_t>(DType::kInt64, kIntegers, {DType::kInt64});
}

TEST(ElementwiseValues, EveryAlignmentOfEveryOperand) {
  for (const DType t : {DType::kInt8, DType::kFloat16, DType::kFloat32}) {
    const DType out_type = t == DType::kInt8 ? DType::kFloat32 : t;
    for (int past = 0; past < 17; ++past) {
      for (int past_out = 0; past_out < 17; ++past_out) {
        for (const int64_t n : {16, 33, 5000}) {
          if (n == 5000 && past_out > 1) continue;
          Array x(t, n, past), y(out_type, n, past_out);
          for (int64_t i = 0; i < n; ++i) x.Set(i, Value(t, i));
          Pass<1> p = DensePass<1, float>({&x}, y, n, DType::kFloat32);
          if (past == 0 && past_out == 0 && t == out_type) p.plain_blocks = n / 4096;
          RunOnHost<Twice, float>(p);
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(y.Get(i), 2 * x.Get(i)) << past << " " << past_out << " " << i;
          }
        }
      }
    }
  }
}

TEST(ElementwiseValues, InPlaceComparisonsNumbersAndRounding) {
  const int64_t n = 5003;
  Array x(DType::kFloat16, n, 3), y(DType::kFloat32, n, 5), less(DType::kBool, n, 1);
  for (int64_t i = 0; i < n; ++i) {
    x.Set(i, Value(x.dtype, i)), y.Set(i, Value(y.dtype, i * i) + 0.25);
  }
  RunOnHost<Less, float>(DensePass<2, float>({&x, &y}, less, n, DType::kFloat32));
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(less.Get(i), x.Get(i) < y.Get(i)) << i;

  std::vector<double> want;
  for (int64_t i = 0; i < n; ++i) want.push_back(x.Get(i) + 2.5);
  Pass<2> p = DensePass<2, float>({&x, &y}, x, n, DType::kFloat32);
  const float number = 2.5f;
  memcpy(&p.value[1], &number, sizeof(number));
  p.form[1] = Form::kValue, p.held[1] = p.round[1] = DType::kFloat32;
  RunOnHost<Sum, float>(p);  // in place
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x.Get(i), want[i]) << i;

  Array whole(DType::kInt32, n, 0), zero(DType::kFloat16, n, 0), sum(DType::kFloat32, n, 0);
  for (int64_t i = 0; i < n; ++i) whole.Set(i, 2049), zero.Set(i, 0);
  p = DensePass<2, float>({&whole, &zero}, sum, n, DType::kFloat32);
  p.round[0] = DType::kFloat16;
  RunOnHost<Sum, float>(p);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sum.Get(i), 2048) << i;
}

TEST(ElementwiseValues, ResultsOfAnotherType) {
  const int64_t n = 1003;
  for (const DType to : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    for (const int past : {0, 1, 3}) {
      Array x(DType::kFloat16, n, 5), y(to, n, past);
      for (int64_t i = 0; i < n; ++i) x.Set(i, Value(x.dtype, i) / 2);
      const Pass<1> p = DensePass<1, float>({&x}, y, n, DType::kFloat32);
      if (to == DType::kBool) RunOnHost<Whole<bool>, float>(p);
      if (to == DType::kInt64) RunOnHost<Whole<int64_t>, float>(p);
      if (to > DType::kBool && to < DType::kInt64) RunOnHost<Whole<int32_t>, float>(p);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y.Get(i), to == DType::kBool ? x.Get(i) != 0 : std::trunc(x.Get(i))) << i;
      }
    }
  }
}

TEST(ElementwiseValues, RowsThatAreRepeatedOrApart) {
  // x[37, 13] in rows 20 apart, plus a row of numbers per row of x: crossings in a dense output.
  const int64_t rows = 37, cols = 13, apart = 20;
  Array x(DType::kFloat16, rows * apart, 1), b(DType::kFloat32, rows, 2);
  Array y(DType::kFloat32, rows * cols, 3);
  for (int64_t i = 0; i < rows * apart; ++i) x.Set(i, Value(x.dtype, i));
  for (int64_t i = 0; i < rows; ++i) b.Set(i, Value(b.dtype, i + 7));
  Pass<2> p = DensePass<2, float>({&x, &b}, y, rows * cols, DType::kFloat32);
  p.length = cols;
  p.step[1] = 0;
  p.form[1] = Form::kNumber;
  p.ndim = 2;
  p.dims[0] = cols, p.dims[1] = rows;
  p.shift[0] = 4, p.multiplier[0] = static_cast<uint32_t>((uint64_t{1} << 32) * 3 / 13 + 1);
  p.strides[0][1] = apart * 2, p.strides[1][1] = 4, p.strides[2][1] = cols * 4;
  RunOnHost<Sum, float>(p);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(y.Get(r * cols + c), x.Get(r * apart + c) + b.Get(r)) << r << " " << c;
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite
