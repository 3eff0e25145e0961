// SPDX-License-Identifier: Apache-2.0
//
// What a thread of the elementwise kernels does, run on the host: loads at every alignment,
// conversions between every pair of dtypes, heads, tails and crossings, in place. Needs no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "primitive/cuda/elementwise/pass.cuh"
#include "primitive/cuda/functions/math.cuh"

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

// A dense pass over n elements as PlanPass plans it: in units where operands are aligned alike and
// no wider than the compute type, else element by element.
template <int N, class C>
Pass<N> DensePass(Array* const (&in)[N], Array& out, int64_t n, DType shared) {
  Pass<N> p;
  const int bytes = BytesOf(out.dtype), pack = kPassPack<C>;
  p.out = out.data();
  p.numel = p.length = n;
  p.past = out.past % pack;
  bool units = true;
  p.dtype[N] = out.dtype;
  p.step[N] = bytes;
  for (int i = 0; i < N; ++i) {
    p.in[i] = in[i]->data();
    p.dtype[i] = in[i]->dtype;
    p.bytes[i] = static_cast<uint32_t>(BytesOf(in[i]->dtype));
    p.step[i] = p.bytes[i];
    p.form[i] = Form::kPacked;
    p.held[i] = static_cast<uint32_t>(p.bytes[i] > sizeof(C) ? shared : in[i]->dtype);
    p.round[i] = p.held[i];
    units = units && in[i]->past % pack == p.past && p.bytes[i] <= sizeof(C);
  }
  p.stored = static_cast<uint32_t>(out.dtype);
  p.ndim = 1;
  if (!units) {
    const int of_block = kPassThreads * pack;
    p.walk = Walk::kLines;
    for (int m = 0; m <= N; ++m) p.strides[m][0] = p.step[m] * of_block;
    p.blocks = p.dims[0] = static_cast<uint32_t>((n + of_block - 1) / of_block);
    return p;
  }
  p.walk = Walk::kUnits;
  p.straight = 1;
  p.halved = bytes == static_cast<int>(sizeof(C));
  p.units = static_cast<uint32_t>((n + p.past + pack - 1) / pack);
  p.blocks = p.dims[0] = (p.units + kPassThreads - 1) / kPassThreads;
  p.whole_from = p.past != 0;
  p.whole_to = static_cast<uint32_t>((n + p.past) / pack);
  p.dense_from = p.whole_from, p.dense_to = p.whole_to / kPassThreads;
  for (int i = 0; i < N; ++i) p.packed[i] = p.bytes[i] * pack;
  for (int m = 0; m <= N; ++m) p.strides[m][0] = p.step[m] * pack * kPassThreads;
  for (int i = 0; i < N; ++i) p.in[i] -= p.past * p.step[i];
  p.out -= p.past * p.step[N];
  return p;
}
template <class Op, class C, int N>
void RunOnHost(const Pass<N>& p) {
  for (uint32_t block = 0; block < p.blocks; ++block) {
    for (uint32_t t = 0; t < kPassThreads; ++t) {
      if (p.walk == Walk::kUnits) RunUnits<N, C>(p, Op{}, block, t);
      if (p.walk == Walk::kLines) RunLines<N, C>(p, Op{}, block, t);
      if (p.walk == Walk::kEach) RunEach<N, C>(p, Op{}, block, t);
    }
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
          // Every other length in units, where the types allow it.
          const int shift = static_cast<int>(n + static_cast<int>(a_type)) % 8;
          const bool alike = n % 2 == 0 || n == 67;
          Array a(a_type, n, shift), b(b_type, n, alike ? shift : 8 - shift);
          Array out(out_type, n, shift);
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
          if (n == 5000 && past_out > 1 && past_out != past) continue;
          Array x(t, n, past), y(out_type, n, past_out);
          for (int64_t i = 0; i < n; ++i) x.Set(i, Value(t, i));
          RunOnHost<Twice, float>(DensePass<1, float>({&x}, y, n, DType::kFloat32));
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
  p.form[1] = Form::kValue, p.packed[1] = 0, p.held[1] = static_cast<uint32_t>(DType::kFloat32);
  p.round[1] = p.held[1];
  RunOnHost<Sum, float>(p);  // in place
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x.Get(i), want[i]) << i;

  Array whole(DType::kInt32, n, 0), zero(DType::kFloat16, n, 0), sum(DType::kFloat32, n, 0);
  for (int64_t i = 0; i < n; ++i) whole.Set(i, 2049), zero.Set(i, 0);
  p = DensePass<2, float>({&whole, &zero}, sum, n, DType::kFloat32);
  p.round[0] = static_cast<uint32_t>(DType::kFloat16);
  RunOnHost<Sum, float>(p);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sum.Get(i), 2048) << i;
}

// A sum whose second form gives what the first one does not.
struct ShortSum {
  __host__ __device__ float operator()(float, float) const { return -1.0f; }
  __host__ __device__ float Narrow(float a, float b) const { return a + b; }
};
template <class Op>
void RunPlainOnHost(const Pass<2>& p) {
  for (uint32_t block = 0; block < p.blocks; ++block) {
    for (uint32_t t = 0; t < kPassThreads; ++t) RunPlain<2>(p, Op{}, block, t);
  }
}

// All numbers but NaN, in order.
template <class T>
std::vector<float> InOrder(uint16_t infinity) {
  std::vector<float> x;
  for (int bits = infinity; bits > 0; --bits) {
    x.push_back(-NextAfter16<T>::Number(static_cast<uint16_t>(bits)));
  }
  for (int bits = 0; bits <= infinity; ++bits) {
    x.push_back(NextAfter16<T>::Number(static_cast<uint16_t>(bits)));
  }
  return x;
}
template <class T>
void CheckSteps(uint16_t infinity) {
  const NextAfter16<T> next;
  const std::vector<float> x = InOrder<T>(infinity);
  const auto size = static_cast<int>(x.size());
  for (int i = 0; i < size; ++i) {
    for (const int to : {0, i / 2, i - 1, i, i + 1, (i + size) / 2, size - 1}) {
      if (to < 0 || to >= size) continue;
      const int step = (to > i) - (to < i);
      ASSERT_EQ(next(x[i], x[to]), x[i + step]) << x[i] << " to " << x[to];
      if (to == i) ASSERT_EQ(std::signbit(next(x[i], x[to])), std::signbit(x[i]));
    }
    ASSERT_TRUE(std::isnan(next(x[i], NAN)) && std::isnan(next(NAN, x[i])));
  }
  EXPECT_TRUE(std::signbit(next(0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(next(-0.0f, 0.0f)));
  EXPECT_EQ(next(-0.0f, 1.0f), NextAfter16<T>::Number(1));
  EXPECT_EQ(next(-0.0f, -1.0f), -NextAfter16<T>::Number(1));
}
TEST(ElementwiseValues, StepsBetween16BitNumbers) {
  CheckSteps<__half>(0x7c00);
  CheckSteps<__nv_bfloat16>(0x7f80);
}

// Elements, and a number in place of either operand; heads are aligned, tails are not whole.
TEST(ElementwiseValues, PlainPasses) {
  for (const DType t : {DType::kFloat16, DType::kBFloat16}) {
    for (const int n : {1, 2, 7, 8, 9, 15, 16, 2047, 2048, 2049, 5003}) {
      for (const int number : {-1, 0, 1}) {
        Array a(t, n, 0), b(t, n, 0), sum(t, n, 0), less(DType::kBool, n, 0);
        for (int i = 0; i < n; ++i) a.Set(i, Value(t, i)), b.Set(i, Value(t, i + 5) + 0.5);
        const auto pass = [&](Array& out) {
          Pass<2> p = DensePass<2, float>({&a, &b}, out, n, DType::kFloat32);
          p.plain = static_cast<uint32_t>(t);
          if (number < 0) return p;
          const float value = 2.5f;
          memcpy(&p.value[number], &value, sizeof(value));
          p.form[number] = Form::kValue, p.in[number] = nullptr;
          return p;
        };
        const std::vector<char> before = sum.bytes;
        RunPlainOnHost<ShortSum>(pass(sum));
        RunPlainOnHost<Less>(pass(less));
        for (int i = 0; i < n; ++i) {
          const double x = number == 0 ? 2.5 : a.Get(i), y = number == 1 ? 2.5 : b.Get(i);
          ASSERT_EQ(sum.Get(i), x + y) << i << " of " << n;
          ASSERT_EQ(less.Get(i), x < y) << i << " of " << n;
        }
        const int64_t from = sum.data() - sum.bytes.data();
        for (int64_t i = 0; i < static_cast<int64_t>(before.size()); ++i) {
          if (i < from || i >= from + 2 * n) ASSERT_EQ(sum.bytes[i], before[i]);
        }
        RunPlainOnHost<ShortSum>(pass(a));  // in place
        for (int i = 0; i < n; ++i) ASSERT_EQ(a.Get(i), sum.Get(i)) << i << " of " << n;
      }
    }
  }
}

template <class Op>
void RunPlainRowsOnHost(const Pass<2>& p) {
  for (uint32_t block = 0; block < p.blocks; ++block) {
    for (uint32_t t = 0; t < kPlainThreads; ++t) RunPlainRows(p, Op{}, block, t);
  }
}
// What an input of plain rows is: rows that lie apart, one row for all, a number for each or for
// all.
enum Kind { kApart, kRow, kNumber, kValue };
struct PlainRowsCase {
  int rows, cols, most;  // rows of a thread, where packs are whole and none lie apart
  Kind kind[2];
  int apart;  // elements from an input's row to the next, as kApart

  // The pass as PlanPass plans it.
  Pass<2> Plan(Array* const (&in)[2], Array& out) const {
    const int size = BytesOf(out.dtype);
    bool whole = cols % kPlainPack == 0 && out.past % kPlainPack == 0;
    Pass<2> p;
    p.walk = Walk::kPlainRows;
    p.plain = static_cast<uint32_t>(in[0]->dtype);
    p.out = out.data();
    p.length = cols, p.rows = rows;
    p.step[2] = size, p.across[2] = cols * size;
    for (int i = 0; i < 2; ++i) {
      p.in[i] = in[i]->data();
      p.form[i] = kind[i] == kValue    ? Form::kValue
                  : kind[i] == kNumber ? Form::kNumber
                                       : Form::kPacked;
      p.step[i] = p.form[i] == Form::kPacked ? 2 : 0;
      p.across[i] = kind[i] == kApart ? apart * 2 : kind[i] == kNumber ? 2 : 0;
      const float value = 2.5f;
      memcpy(&p.value[i], &value, sizeof(value));
      const bool here = in[i]->past % kPlainPack == 0 && p.across[i] % 16 == 0;
      whole = whole && (here || p.form[i] != Form::kPacked);
    }
    p.whole = whole;
    const bool same = kind[0] != kApart && kind[1] != kApart;
    const int taken = whole && same ? most : 1;
    p.taken = taken;
    const int packs = static_cast<int>(whole ? cols / kPlainPack : MostPlainPacks(cols));
    const int groups = (rows + taken - 1) / taken;
    p.ndim = 2, p.dims[0] = packs, p.dims[1] = groups;
    while ((1 << p.shift[0]) < packs) ++p.shift[0];
    const uint64_t over = (uint64_t{1} << p.shift[0]) - packs;
    p.multiplier[0] = static_cast<uint32_t>((over << 32) / packs + 1);
    for (int m = 0; m < 3; ++m) {
      p.strides[m][0] = p.step[m] * kPlainPack, p.strides[m][1] = p.across[m] * taken;
    }
    p.units = packs * groups;
    p.blocks = (p.units + kPlainThreads - 1) / kPlainThreads;
    return p;
  }
  double At(Array& x, int i, int row, int col) const {
    const int64_t at[] = {int64_t{row} * apart + col, col, row};
    return kind[i] == kValue ? 2.5 : x.Get(at[kind[i]]);
  }
};

void CheckPlainRows(DType t, const PlainRowsCase& c, int past_a, int past_b, int past_out) {
  const int n = c.rows * c.cols;
  Array a(t, c.rows * c.apart, past_a), b(t, c.rows * c.apart, past_b);
  Array sum(t, n, past_out), less(DType::kBool, n, past_out);
  for (int i = 0; i < c.rows * c.apart; ++i) a.Set(i, Value(t, i)), b.Set(i, Value(t, i + 7));
  b.Set(c.cols / 2, std::nan(""));
  const std::vector<char> before = sum.bytes, less_before = less.bytes;
  RunPlainRowsOnHost<ShortSum>(c.Plan({&a, &b}, sum));
  RunPlainRowsOnHost<Less>(c.Plan({&a, &b}, less));
  for (int row = 0; row < c.rows; ++row) {
    for (int col = 0; col < c.cols; ++col) {
      const double x = c.At(a, 0, row, col), y = c.At(b, 1, row, col);
      const double got = sum.Get(row * c.cols + col);
      ASSERT_TRUE(got == x + y || (std::isnan(got) && std::isnan(x + y)))
          << got << " at " << row << ", " << col << " of " << c.rows << " x " << c.cols;
      ASSERT_EQ(less.Get(row * c.cols + col), x < y) << row << ", " << col;
    }
  }
  const auto untouched = [](Array& out, const std::vector<char>& old, int64_t bytes) {
    const int64_t from = out.data() - out.bytes.data();
    bool same = true;
    for (int64_t i = 0; i < static_cast<int64_t>(old.size()); ++i) {
      same = same && (out.bytes[i] == old[i] || (i >= from && i < from + bytes));
    }
    return same;
  };
  EXPECT_TRUE(untouched(sum, before, 2 * n) && untouched(less, less_before, n));
}
TEST(ElementwiseValues, PlainRows) {
  for (const DType t : {DType::kFloat16, DType::kBFloat16}) {
    for (const Kind a : {kApart, kRow, kNumber}) {
      for (const Kind b : {kApart, kRow, kNumber, kValue}) {
        for (const int cols : {8, 32, 33, 40, 47, 64, 70}) {
          for (const int taken : {1, 4}) {
            const PlainRowsCase even{11, cols, taken, {a, b}, 72}, odd{7, cols, taken, {a, b}, 73};
            CheckPlainRows(t, even, 0, 0, 0);
            CheckPlainRows(t, even, 1, 0, 0);
            CheckPlainRows(t, odd, 0, 3, 0);
            CheckPlainRows(t, odd, 7, 2, 5);
          }
        }
      }
    }
  }
}

// a > b is b < a: of a number, of elements of other dtypes, of a number of each row, in units and
// in lines.
TEST(ElementwiseValues, InputsAreExchanged) {
  const int64_t n = 4096;
  for (const int past : {0, 1}) {
    Array x(DType::kFloat16, n, 0), y(DType::kFloat32, n, past), more(DType::kBool, n, 0);
    for (int64_t i = 0; i < n; ++i) {
      x.Set(i, Value(x.dtype, i)), y.Set(i, Value(y.dtype, i * i) + 0.25);
    }
    Pass<2> p = DensePass<2, float>({&x, &y}, more, n, DType::kFloat32);
    ASSERT_EQ(p.walk, past == 0 ? Walk::kUnits : Walk::kLines);
    RunOnHost<Less, float>(WithInputsExchanged(p));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(more.Get(i), x.Get(i) > y.Get(i)) << i;

    const float number = 2.5f;
    memcpy(&p.value[1], &number, sizeof(number));
    p.form[1] = Form::kValue, p.packed[1] = 0, p.in[1] = nullptr;
    RunOnHost<Less, float>(WithInputsExchanged(p));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(more.Get(i), x.Get(i) > 2.5) << i;

    p.in[1] = y.data();
    p.form[1] = Form::kNumber;
    p.step[1] = p.strides[1][0] = 0;
    RunOnHost<Less, float>(WithInputsExchanged(p));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(more.Get(i), x.Get(i) > y.Get(0)) << i;
  }
  Pass<2> tiles;
  tiles.crossed = 1, tiles.across[0] = 3;
  tiles = WithInputsExchanged(tiles);
  EXPECT_EQ(tiles.crossed, 2u);
  EXPECT_EQ(tiles.across[1], 3);
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
  // x[37, 13] in rows 20 apart, plus a number for each row of x, element by element.
  const int64_t rows = 37, cols = 13, apart = 20;
  Array x(DType::kFloat16, rows * apart, 1), b(DType::kFloat32, rows, 2);
  Array y(DType::kFloat32, rows * cols, 3);
  for (int64_t i = 0; i < rows * apart; ++i) x.Set(i, Value(x.dtype, i));
  for (int64_t i = 0; i < rows; ++i) b.Set(i, Value(b.dtype, i + 7));
  Pass<2> p = DensePass<2, float>({&x, &b}, y, rows * cols, DType::kFloat32);
  p.walk = Walk::kEach;
  p.strides[0][0] = 2, p.strides[1][0] = p.step[1] = 0, p.strides[2][0] = 4;
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

// y[11, 16] of units, with a number of each dtype for each row.
TEST(ElementwiseValues, UnitsBesideANumberOfEachRow) {
  const int64_t rows = 11, cols = 16;
  for (const DType number : kAll) {
    Array x(DType::kFloat16, rows * cols, 0), b(number, rows, 1),
        y(DType::kFloat32, rows * cols, 0);
    for (int64_t i = 0; i < rows * cols; ++i) x.Set(i, Value(x.dtype, i));
    for (int64_t i = 0; i < rows; ++i) b.Set(i, Value(number, i + 7));
    Array same(DType::kFloat16, rows * cols, 0);
    Pass<2> p = DensePass<2, float>({&x, &same}, y, rows * cols, DType::kFloat32);
    ASSERT_EQ(p.walk, Walk::kUnits);
    p.in[1] = b.data();
    p.dtype[1] = number;
    p.bytes[1] = static_cast<uint32_t>(BytesOf(number));
    p.held[1] = static_cast<uint32_t>(p.bytes[1] > 4 ? DType::kFloat32 : number);
    p.round[1] = p.held[1];
    p.form[1] = Form::kNumber;
    p.packed[1] = 0;
    p.length = cols, p.whole_to = 2, p.dense_to = 0;
    p.straight = p.halved = 0;
    p.units = 2 * rows, p.blocks = 1;
    p.strides[0][0] = 16, p.strides[1][0] = p.step[1] = 0, p.strides[2][0] = 32;
    p.ndim = 2;
    p.dims[0] = 2, p.dims[1] = rows;
    p.shift[0] = 1, p.multiplier[0] = 1;
    p.strides[0][1] = cols * 2, p.strides[1][1] = p.bytes[1], p.strides[2][1] = cols * 4;
    RunOnHost<Sum, float>(p);
    for (int64_t i = 0; i < rows * cols; ++i) {
      ASSERT_EQ(y.Get(i), x.Get(i) + b.Get(i / cols)) << static_cast<int>(number) << " " << i;
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite
