// SPDX-License-Identifier: Apache-2.0
#include "primitive/copy.h"

#include <algorithm>
#include <cstdint>

#include "primitive/cuda/elementwise/host.h"
#include "primitive/cuda/moves/copy_launch.h"
#include "primitive/cuda/moves/copy_plan.h"

namespace oneflow_lite {
namespace {

class CudaCast final : public Copy {
 public:
  explicit CudaCast(const Spec& spec)
      : pass_({{spec.from}, cuda::CastsThrough(spec.from, spec.to), spec.to},
              cuda::FindCast(cuda::CastsThrough(spec.from, spec.to), spec.to)) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    return pass_.Run(stream, kName, g, {{{src}}}, dst);
  }

 private:
  cuda::CudaPass<1> pass_;
};

// Copies of rows that lie densely in themselves, as long as they fit in one launch.
class PartsInOneLaunch {
 public:
  explicit PartsInOneLaunch(int element_bytes) : element_bytes_(element_bytes) {}

  // Whether the part was taken.
  bool Add(const Copy::Part& p) {
    const Elementwise<2>& g = p.g;
    const bool rows = g.ndim == 2, any = g.ndim > 0;
    if (parts_.count == cuda::CopyParts::kMost || g.ndim > 2) return false;
    for (int i = 0; any && i < 2; ++i) {
      if (g.strides[i][g.ndim - 1] != 1) return false;
    }
    const int64_t row = any ? g.dims[g.ndim - 1] : 1;
    const int64_t src_row = rows ? g.strides[0][0] : row, dst_row = rows ? g.strides[1][0] : row;
    const uint64_t aligned =
        aligned_ |
        static_cast<uint64_t>(row | src_row | dst_row) * static_cast<uint64_t>(element_bytes_) |
        reinterpret_cast<uintptr_t>(p.src) | reinterpret_cast<uintptr_t>(p.dst);
    const int64_t bytes = g.numel * element_bytes_;
    if (bytes > (aligned % 16 == 0 ? kMostPacked : kMostBytes - bytes_)) return false;
    bytes_ += bytes;
    aligned_ = aligned;
    parts_.part[parts_.count] = {p.src, p.dst, {}, src_row, dst_row, 0, 0};
    rows_[parts_.count++] = {row, g.numel / row};
    return true;
  }

  Status Run(Stream& stream) {
    const uint64_t word = aligned_ & (~aligned_ + 1);  // the widest that divides all
    parts_.word_bytes = static_cast<int>(word < 16 ? word : 16);
    const auto in_words = [&](int64_t n) { return n * element_bytes_ / parts_.word_bytes; };
    for (int i = 0; i < parts_.count; ++i) {
      cuda::CopyParts::Part& part = parts_.part[i];
      part.row_words = cuda::Divisor(in_words(rows_[i].length));
      part.words = static_cast<uint32_t>(part.row_words.value * rows_[i].count);
      part.src_row = in_words(part.src_row), part.dst_row = in_words(part.dst_row);
    }
    return cuda::RunOn(stream, Copy::kName,
                       [&](cudaStream_t s) { return cuda::LaunchCopyParts(parts_, s); });
  }

 private:
  // Of all parts, and of each where all are words of 16 bytes: beyond this a launch of its own
  // costs a part nothing.
  static constexpr int64_t kMostBytes = int64_t{2} << 20, kMostPacked = int64_t{64} << 20;
  struct Rows {
    int64_t length, count;
  };
  int element_bytes_;
  int64_t bytes_ = 0;
  uint64_t aligned_ = 16;
  cuda::CopyParts parts_{};
  Rows rows_[cuda::CopyParts::kMost];
};

// The copy as one of a launch of several.
cuda::ShiftedRows::Part ShiftedPart(const cuda::CopyPlan& plan, const void* src, void* dst) {
  Elementwise<2> rows = plan.g;
  const int64_t length = rows.dims[--rows.ndim];
  const int64_t packs = cuda::MostPacks(length, 16 / plan.element_bytes);
  rows.numel /= length;
  return {src,
          dst,
          cuda::ToStrided(rows),
          static_cast<int32_t>(length),
          cuda::Divisor(packs),
          static_cast<uint32_t>(rows.numel * packs)};
}

// How many parts in front are copies of shifted rows, as many as one launch takes and none of them
// more than twice as large as another: each gets as many blocks as the largest.
size_t ShiftedTogether(absl::Span<const Copy::Part> parts, int element_bytes,
                       cuda::ShiftedRows* together) {
  *together = {0, element_bytes, {}};
  int64_t least = INT64_MAX, most = 0;
  for (const Copy::Part& p : parts) {
    if (together->count == cuda::ShiftedRows::kMost) break;
    const cuda::CopyPlan plan = cuda::PlanCopy(p.g, element_bytes, p.src, p.dst);
    least = std::min(least, p.g.numel), most = std::max(most, p.g.numel);
    if (!plan.shifted || most > 2 * least) break;
    together->part[together->count++] = ShiftedPart(plan, p.src, p.dst);
  }
  return static_cast<size_t>(together->count);
}

// Dense lines that share the elements of a dense result out among themselves, in turns.
bool Interleaves(absl::Span<const Copy::Part> parts, int element_bytes,
                 cuda::InterleavedLines* lines) {
  const size_t n = parts.size();
  if (n < 2 || n > cuda::InterleavedLines::kMost || element_bytes > 8) return false;
  *lines = {static_cast<int>(n), element_bytes, parts[0].g.numel, {}};
  for (size_t l = 0; l < n; ++l) {
    const Elementwise<2>& g = parts[l].g;
    const auto* first = static_cast<const char*>(parts[0].dst);
    const bool turn = parts[l].dst == first + l * static_cast<size_t>(element_bytes);
    if (g.ndim != 1 || g.numel != lines->length || g.strides[0][0] != 1 || !turn ||
        g.strides[1][0] != static_cast<int64_t>(n)) {
      return false;
    }
    lines->line[l] = parts[l].src;
  }
  return true;
}

// Without conversion.
class CudaCopy final : public Copy {
 public:
  explicit CudaCopy(DType dtype) : element_bytes_(static_cast<int>(SizeOf(dtype))) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    const cuda::CopyPlan plan = cuda::PlanCopy(g, element_bytes_, src, dst);
    if (plan.access_bytes > 0) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::FindTransposingCopy(plan.element_bytes, plan.access_bytes)(
            cuda::ToStrided(plan.g), src, dst, s);
      });
    }
    const int64_t* dims = plan.g.dims;
    if (plan.repeats == cuda::Repeats::kElements) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::FindRepeat(plan.element_bytes)(dims[0], dims[1], src, dst, s);
      });
    }
    if (plan.repeats == cuda::Repeats::kLine) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::LaunchRepeatLine(dims[1] * plan.element_bytes, dims[0], src, dst, s);
      });
    }
    if (plan.shifted) {
      const cuda::ShiftedRows rows{1, plan.element_bytes, {ShiftedPart(plan, src, dst)}};
      return cuda::RunOn(stream, kName,
                         [&](cudaStream_t s) { return cuda::LaunchShiftedRows(rows, s); });
    }
    const DType moved = cuda::MovedAs(plan.element_bytes);
    const cuda::CudaPass<1> pass({{moved}, moved, moved}, cuda::FindMove(moved));
    return pass.Run(stream, kName, plan.g, {{{src}}}, dst);
  }

  Status LaunchAll(Stream& stream, absl::Span<const Part> parts) const override {
    cuda::InterleavedLines lines;
    if (Interleaves(parts, element_bytes_, &lines)) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::LaunchInterleave(lines, parts[0].dst, s);
      });
    }
    while (parts.size() > 1) {
      PartsInOneLaunch together(element_bytes_);
      size_t n = 0;
      while (n < parts.size() && together.Add(parts[n])) ++n;
      cuda::ShiftedRows rows;
      if (n < 2 && (n = ShiftedTogether(parts, element_bytes_, &rows)) > 1) {
        OFL_RETURN_IF_ERROR(cuda::RunOn(
            stream, kName, [&](cudaStream_t s) { return cuda::LaunchShiftedRows(rows, s); }));
      } else if (n < 2) {
        n = 1;
        OFL_RETURN_IF_ERROR(Launch(stream, parts[0].g, parts[0].src, parts[0].dst));
      } else {
        OFL_RETURN_IF_ERROR(together.Run(stream));
      }
      parts.remove_prefix(n);
    }
    return Copy::LaunchAll(stream, parts);
  }

 private:
  int element_bytes_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  if (spec.from == spec.to) return std::make_unique<CudaCopy>(spec.from);
  return std::make_unique<CudaCast>(spec);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCUDA, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
