// SPDX-License-Identifier: Apache-2.0
//
// softmax on CUDA at the widths where its kernels change hands (primitive/cuda/rows/policy.h),
// at odd offsets and with rows that must become NaN, against float64 on the CPU. Skips where there
// is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cuda_softmax_testing.h"
#include "row_boundaries.h"

namespace oneflow_lite {
namespace {

struct DTypeNames {
  template <class T>
  static std::string GetName(int) {
    return Name(DTypeOf<T>());
  }
};
using Floats = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(CudaSoftmaxTest, Floats, DTypeNames);

TYPED_TEST(CudaSoftmaxTest, NarrowRowsOfEveryWidth) {
  for (int64_t cols = 1; cols <= 40; ++cols) {
    this->Run({70, cols});
    if (this->HasFailure()) return;
  }
}

// The group tier: 4, 8, 16, 32 lanes, then 2, 3 (16-bit rows), 4, 8 packs per lane.
// Whole rows of up to 32 packs take two to a group, whose last may not be there.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheGroupTiersBoundaries) {
  for (int64_t packs : {4, 8, 16, 32, 64, 96, 128, 256}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                         (packs + 1) * this->kPack - 1, (packs + 1) * this->kPack}) {
      this->Run({5, cols});
      if (this->HasFailure()) return;
    }
  }
}

// Enough rows to fill the device: a block's registers end at 4096 packs (512 threads of 8), for
// float64 and gradients at 2048; from there on clusters of 2 and 4 blocks hold a row. Whole rows
// change their kernels at 1280 and 2048 packs, in float32 at 256 and 3072; 5120 packs take 3
// blocks.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheBlockTiersBoundaries) {
  for (int64_t packs : {256, 384, 1280, 1408, 1536, 1792, 2048, 3072, 4096, 5120, 8192}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                         (packs + 1) * this->kPack}) {
      this->Run({67, cols});
      if (this->HasFailure()) return;
    }
  }
}

// Gradients beyond the registers of 16 blocks, 28672 packs in half, 40960 in double, 49152 in
// float: the others wait in shared memory, and what is outside packs is read column by column.
TYPED_TEST(CudaSoftmaxTest, GradientsThatRegistersDoNotHold) {
  for (int64_t cols : {65536 * this->kPack, 65535 * this->kPack + 1, 50000 * this->kPack + 1}) {
    this->Run({3, cols});
    this->Run({3, cols}, 1, 1);
    if (this->HasFailure()) return;
  }
  this->Run({67, 28673 * this->kPack + 1});
}

// Rows of float32 by the ten thousand have kernels of 3 and 8 packs a thread, to 2304 packs and
// from 3073 to 4096: rows that repeat give what one of them gives.
TYPED_TEST(CudaSoftmaxTest, RowsByTheTenThousand) {
  if (sizeof(TypeParam) != 4) return;
  const int64_t rows = 64 * int64_t{this->stream_->properties().multiprocessors};
  for (const int64_t packs : {1024, 2304, 2305, 3073, 4096}) {
    this->RunRepeated(rows, packs * this->kPack, 4);
    if (this->HasFailure()) return;
  }
}

// The same where input and output lie differently: columns of 8 and 16 lanes up to 40 or 64, words
// up to 384, 16-bit gradients 223 (a lane has one more every 16 columns, from 96 or 144 on every
// 32), a warp up to 128 packs, a block's registers up to 1536 (gradients) or 2304, then clusters of
// 2 and more.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheTiersBoundariesAtOddOffsets) {
  const auto run = [&](int64_t rows, int64_t cols) {
    this->Run({rows, cols}, 1, 0);
    this->Run({rows, cols}, 0, 1);
    this->Run({rows, cols}, this->kPack - 1, 1);
  };
  for (int64_t cols :
       {31,  32,  33,  40,  41,  47,  48,  49,  63,  64,  65,  79,  80,  95,  96,  97,  111,
        112, 127, 128, 129, 130, 137, 143, 144, 145, 159, 160, 161, 191, 192, 223, 224, 225,
        255, 256, 257, 263, 264, 287, 288, 319, 320, 321, 351, 352, 383, 384, 385}) {
    run(37, cols);
    if (this->HasFailure()) return;
  }
  for (int64_t packs : {33, 64, 128, 192, 256, 1024, 1536, 2048, 2304, 3072, 4608, 8192}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, (packs + 1) * this->kPack}) {
      run(67, cols);
      if (this->HasFailure()) return;
    }
  }
}

// Few rows: one block up to 512 packs, clusters of 4 to 16 blocks (256 packs a block at least) in
// registers up to 32768 or 65536 packs, gradients in registers and shared memory; from 65537 packs
// on, or 16384 where there are no clusters, the whole grid with workspace; without, 16 blocks'
// shared memory.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundTheClusterAndGridTiersBoundaries) {
  for (int64_t packs : {257, 512, 1024, 2048, 4096, 16384, 32768, 65536}) {
    for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                         (packs + 1) * this->kPack}) {
      this->Run({2, cols});
      if (this->HasFailure()) return;
    }
  }
}

// What of rows wider than all registers waits in shared memory; the rest is read again. Two rows:
// in 16 blocks each or, with workspace, in half the device's. Ten rows of 16 blocks are more than
// run at once: so that several blocks share a multiprocessor, each keeps 58 KB of its part, or 110
// where the part is between that and 256 KB. A pack takes 16 bytes, of gradients 32.
TYPED_TEST(CudaSoftmaxTest, WidthsAroundWhatIsKeptOnChip) {
  const auto& device = this->stream_->properties();
  const auto most = static_cast<int64_t>(device.shared_memory_per_block);
  struct Boundary {
    int64_t rows, blocks, bytes;  // per row, per block
  };
  for (const Boundary& b :
       {Boundary{2, 16, most}, Boundary{2, device.multiprocessors / 2, most},
        Boundary{10, 16, 58 << 10}, Boundary{10, 16, 110 << 10}, Boundary{10, 16, 256 << 10}}) {
    for (const int64_t bytes_per_pack : {16, 32}) {
      const int64_t packs = MostPacksKept(b.blocks, b.bytes, bytes_per_pack);
      for (int64_t cols : {packs * this->kPack - 1, packs * this->kPack, packs * this->kPack + 1,
                           (packs + 1) * this->kPack}) {
        this->RunRepeated(b.rows, cols, 1);
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, AwkwardAndVeryWideRows) {
  for (const Shape3& s : {Shape3{3, 1000}, Shape3{3, 4097}, Shape3{2, 50257}, Shape3{2, 128256},
                          Shape3{300, 5001}, Shape3{67, 151936}, Shape3{1, 1000003},
                          Shape3{2, 1000003}, Shape3{70, 300002}, Shape3{70, 600011}}) {
    this->Run(s);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(CudaSoftmaxTest, OddOffsetsOfInputAndOutput) {
  for (int64_t cols : {1, 2, 5, 33, 257, 1000, 2049, 20001, 140001, 1000003}) {
    for (const auto& [x, y] : {std::pair{1, 0}, {0, 1}, {1, 1}, {3, 2}}) {
      this->Run({3, cols}, x, y);
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, AnAxisThatIsNotTheLast) {
  for (const Shape3& s :
       {Shape3{3, 5, 7}, Shape3{2, 1, 9}, Shape3{2, 1000, 64}, Shape3{1, 17, 4096},
        Shape3{2, 5000, 33}, Shape3{40, 3, 8}, Shape3{1, 20000, 16}, Shape3{3, 300, 2},
        Shape3{1200, 17, 3}, Shape3{1200, 40, 5}, Shape3{2, 9, 5003}, Shape3{150, 128, 129}}) {
    this->Run(s);
    this->Run(s, 1, 2);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(CudaSoftmaxTest, SpecialRowsStayAmongThemselves) {
  using T = TypeParam;
  for (int64_t cols : {1, 7, 64, 137, 301, 1000, 3000, 20000, 33000, 200000}) {
    const Shape3 s{7, cols};
    if (LeftOut(DTypeOf<T>(), s.numel())) continue;
    const std::vector<T> x = this->SpecialRows(s);
    typename TestFixture::Buffer bx(this, s.numel(), 0);
    for (const bool log : {false, true}) {
      for (const bool with_workspace : {false, true}) {
        SCOPED_TRACE(testing::Message() << "cols " << cols << ", log " << log);
        const SoftmaxShape shape{.rows = s.rows, .cols = cols};
        const size_t needed = this->forward_[log]->WorkspaceBytes(*this->stream_, shape);
        typename TestFixture::Buffer workspace(this, static_cast<int64_t>(needed / sizeof(T)), 0);
        bx.Write(x);  // in place
        const Status status = this->forward_[log]->Launch(
            *this->stream_, shape, bx.data, bx.data, with_workspace ? workspace.data : nullptr);
        ASSERT_TRUE(status.ok()) << status;
        this->CheckForward(log, s, x, bx.Read());
        if (this->HasFailure()) return;
      }
    }
  }
}

// A word of a row that lies otherwise when read than when written may hold its neighbour's NaN.
TYPED_TEST(CudaSoftmaxTest, SpecialRowsAtOddOffsets) {
  using T = TypeParam;
  for (int64_t cols : {33, 41, 64, 137, 200, 301, 384, 600}) {
    const Shape3 s{7, cols};
    const std::vector<T> x = this->SpecialRows(s);
    for (const auto& [x_offset, y_offset] : {std::pair{1, 0}, {0, 1}, {3, 2}}) {
      typename TestFixture::Buffer bx(this, s.numel(), x_offset), by(this, s.numel(), y_offset);
      bx.Write(x);
      for (const bool log : {false, true}) {
        SCOPED_TRACE(testing::Message() << "cols " << cols << ", log " << log);
        by.Write(this->Poison(s.numel()));
        const SoftmaxShape shape{.rows = s.rows, .cols = cols};
        ASSERT_TRUE(
            this->forward_[log]->Launch(*this->stream_, shape, bx.data, by.data, nullptr).ok());
        this->CheckForward(log, s, x, by.Read());
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, TheSameCallGivesTheSameBits) {
  using T = TypeParam;
  for (int64_t cols : {1000, 100000, 1000003}) {
    const Shape3 s{2, cols};
    if (LeftOut(DTypeOf<T>(), s.numel())) continue;
    const SoftmaxShape shape{.rows = s.rows, .cols = cols};
    typename TestFixture::Buffer x(this, s.numel(), 0), y(this, s.numel(), 0);
    typename TestFixture::Buffer w(
        this,
        static_cast<int64_t>(this->forward_[0]->WorkspaceBytes(*this->stream_, shape) / sizeof(T)),
        0);
    x.Write(this->RandomValues(s.numel(), 2));
    std::vector<T> first;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(this->forward_[0]->Launch(*this->stream_, shape, x.data, y.data, w.data).ok());
      const std::vector<T> again = y.Read();
      if (i == 0) first = again;
      EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(T)), 0);
    }
  }
}

TYPED_TEST(CudaSoftmaxTest, NothingHappensWhereThereIsNothing) {
  for (const SoftmaxShape& shape : {SoftmaxShape{.rows = 0, .cols = 5}, {.rows = 5, .cols = 0}}) {
    EXPECT_TRUE(this->forward_[0]->Launch(*this->stream_, shape, nullptr, nullptr, nullptr).ok());
    EXPECT_TRUE(
        this->backward_[0]->Launch(*this->stream_, shape, nullptr, nullptr, nullptr, nullptr).ok());
  }
}

// More than 2^31 elements in all: the last rows must be right too.
TEST(CudaSoftmaxSizeTest, MoreThanTwoToThe31Elements) {
  const auto backend = GetBackend(DeviceType::kCUDA);
  if (!backend.ok()) GTEST_SKIP() << backend.status().message();
  constexpr int64_t kCols = 64, kRows = (int64_t{1} << 31) / kCols + 1000, kTail = 500;
  const Ref<Stream> stream = (*backend)->DefaultStream(0);
  const auto memory = (*backend)->Allocate(kRows * kCols * sizeof(float16), *stream);
  if (!memory.ok()) GTEST_SKIP() << memory.status().message();
  auto* x = static_cast<float16*>(*memory);
  std::vector<float16> host(kTail * kCols);
  for (size_t i = 0; i < host.size(); ++i) host[i] = float16(static_cast<float>(i % 13));
  float16* tail = x + (kRows - kTail) * kCols;
  const size_t bytes = host.size() * sizeof(float16);
  ASSERT_TRUE((*backend)->CopyFromHost(tail, host.data(), bytes, *stream).ok());
  const auto softmax = NewPrimitive<SoftmaxFactory>(DeviceType::kCUDA, {.dtype = DType::kFloat16});
  ASSERT_TRUE(softmax.ok());
  ASSERT_TRUE((*softmax)->Launch(*stream, {.rows = kRows, .cols = kCols}, x, x, nullptr).ok());
  std::vector<float16> y(host.size());
  ASSERT_TRUE((*backend)->CopyToHost(y.data(), tail, bytes, *stream).ok());
  for (int64_t r = 0; r < kTail; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < kCols; ++c) sum += static_cast<float>(y[r * kCols + c]);
    ASSERT_NEAR(sum, 1, 2e-3) << "row " << r;
  }
  (*backend)->Free(x, 0, Device{DeviceType::kCUDA, 0});
  (*backend)->EmptyCache(0);
}

}  // namespace
}  // namespace oneflow_lite
