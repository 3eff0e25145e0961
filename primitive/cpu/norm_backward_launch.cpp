// SPDX-License-Identifier: Apache-2.0
//
// How the norms' gradients are shared out among threads. dweight and dbias are summed over chunks
// of rows in the compute type, and the chunks' sums merged in their order, compensated. The chunks
// depend on the shape alone, so the number of threads does not show in the result.
#include <algorithm>

#include "primitive/cpu/convert.h"
#include "primitive/cpu/norm.h"
#include "primitive/cpu/norm_backward.h"
#include "primitive/cpu/row_plan.h"

namespace oneflow_lite {
namespace {

// Few wide rows are cut by columns: all rows' sums first, then dx and the sums over rows of each
// part. Else rows go in chunks: at least 64 of them, where there are rows enough, so that many
// threads find work; of at most 128 rows, so that float32 sums stay exact and the chunks' sums
// small beside x.
struct Plan {
  static constexpr int64_t kFewRows = 64, kWide = 4096, kColumns = 2048;
  // From here on dx is stored past the caches: 4096 x 768 float32 (38 MB) takes 0.69 instead of
  // 0.86 ms, and as long as before (1.0 ms) with a reader of dx behind it.
  static constexpr int64_t kStreamBytes = int64_t{32} << 20;

  explicit Plan(const NormShape& shape)
      : by_columns(shape.rows <= kFewRows && shape.cols >= kWide),
        chunk_rows(by_columns ? shape.rows : std::clamp<int64_t>(shape.rows / 64, 16, 128)),
        chunks((shape.rows + chunk_rows - 1) / chunk_rows),
        row_parts(RowParts(shape.cols).count) {}

  bool by_columns;
  int64_t chunk_rows, chunks, row_parts;
};

// Where things lie in the workspace, in bytes; `row` is one row of the compute type. The sums over
// rows start at other places of a page than the operands, most of which begin at one: a load waits
// for an earlier store whose address is the same modulo 4096, and for each vector both sums are
// stored before the weight is read (1024 x 4096 float32 took 3.1 instead of 2.7 ms).
struct Layout {
  static constexpr size_t kPage = 4096, kApart = 1024;

  Layout(const NormShape& shape, const Plan& plan, DType compute)
      : row((shape.cols * SizeOf(compute) + 63) / 64 * 64),
        inverse(row),
        bias(2 * row),
        dweight(PageAfter(3 * row) + kApart),  // of each chunk
        dbias(PageAfter(dweight + plan.chunks * row) + 2 * kApart),
        merged(dbias + plan.chunks * row),
        sums(merged + row),
        gradients(sums + (plan.by_columns ? shape.rows * plan.row_parts * sizeof(RowSums) : 0)),
        total(gradients + (plan.by_columns ? shape.rows * sizeof(RowGradient) : 0)) {}

  static size_t PageAfter(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  size_t row, inverse, bias, dweight, dbias, merged, sums, gradients, total;
};

class Launcher {
 public:
  Launcher(const NormBackwardKernels& kernels, const NormSpec& spec, const NormShape& shape,
           const LayerNormBackward::Args& args, void* workspace)
      : kernels_(kernels),
        spec_(spec),
        compute_(ComputeType(spec.dtype)),
        plan_(shape),
        at_(shape, plan_, compute_),
        workspace_(static_cast<char*>(workspace)),
        task_{shape, args} {
    Widen(&task_.args.weight, workspace_);
    Widen(&task_.args.bias, workspace_ + at_.bias);
    if (args.y && args.weight) {
      kernels.invert(shape.cols, task_.args.weight, workspace_ + at_.inverse);
      task_.inverse = workspace_ + at_.inverse;
    }
  }

  void Run() const {
    plan_.by_columns ? ByColumns() : ByRows();
    if (task_.args.dweight) Merge(workspace_ + at_.dweight, task_.args.dweight);
    if (task_.args.dbias) Merge(workspace_ + at_.dbias, task_.args.dbias);
  }

 private:
  void Widen(const void** column, void* wide) const {
    if (!*column || spec_.weight_dtype == compute_) return;
    FindConvert(spec_.weight_dtype, compute_)(task_.shape.cols, *column, wide);
    *column = wide;
  }

  void ByRows() const {
    const auto& [shape, args, inverse] = task_;
    const bool stream =
        args.dx && args.dx != args.dy &&
        (args.dsum ? 4 : 3) * shape.rows * shape.cols * static_cast<int64_t>(SizeOf(spec_.dtype)) >=
            Plan::kStreamBytes;
    const int64_t grain = std::max<int64_t>(1, RowGrain(shape.cols) / plan_.chunk_rows);
    ParallelFor(plan_.chunks, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const ColumnRange out = Zeroed(i, 0, task_.shape.cols);
        const int64_t end = std::min((i + 1) * plan_.chunk_rows, task_.shape.rows);
        for (int64_t row = i * plan_.chunk_rows; row < end; ++row) {
          const RowSums sums = kernels_.sums(task_, row, 0, task_.shape.cols);
          kernels_.apply(task_, row, kernels_.finish(task_, row, sums), out, stream);
        }
      }
      if (stream) kernels_.flush();
    });
  }

  void ByColumns() const {
    const int64_t rows = task_.shape.rows, cols = task_.shape.cols;
    const RowParts parts(cols);
    auto* sums = reinterpret_cast<RowSums*>(workspace_ + at_.sums);
    auto* gradients = reinterpret_cast<RowGradient*>(workspace_ + at_.gradients);
    ParallelFor(rows * parts.count, RowGrain(parts.Size(0)), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t part = i % parts.count;
        sums[i] = kernels_.sums(task_, i / parts.count, parts.Begin(part), parts.Size(part));
      }
    });
    for (int64_t row = 0; row < rows; ++row) {
      RowSums all{};
      for (int64_t i = row * parts.count; i < (row + 1) * parts.count; ++i) {
        all = {all.g + sums[i].g, all.gd + sums[i].gd, all.d + sums[i].d};
      }
      gradients[row] = kernels_.finish(task_, row, all);
    }
    const int64_t blocks = (cols + Plan::kColumns - 1) / Plan::kColumns;
    ParallelFor(blocks, RowGrain(rows * Plan::kColumns), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t begin = i * Plan::kColumns;
        const ColumnRange out = Zeroed(0, begin, std::min(Plan::kColumns, cols - begin));
        for (int64_t row = 0; row < rows; ++row) {
          kernels_.apply(task_, row, gradients[row], out, /*stream=*/false);
        }
      }
    });
  }

  // The sums of one chunk over columns [begin, begin + n), set to 0, where they are wanted.
  ColumnRange Zeroed(int64_t chunk, int64_t begin, int64_t n) const {
    const size_t item = SizeOf(compute_);
    const auto zeroed = [&](const void* wanted, size_t at) -> void* {
      if (!wanted) return nullptr;
      char* sums = workspace_ + at + chunk * at_.row;
      std::fill_n(sums + begin * item, n * item, '\0');
      return sums;
    };
    return {begin, n, zeroed(task_.args.dweight, at_.dweight), zeroed(task_.args.dbias, at_.dbias)};
  }

  void Merge(const char* chunks, void* out) const {
    const int64_t item = SizeOf(compute_);
    const bool converts = spec_.weight_dtype != compute_;
    char* merged = converts ? workspace_ + at_.merged : static_cast<char*>(out);
    const int64_t cols = task_.shape.cols;
    ParallelFor(cols, RowGrain(plan_.chunks), [&](int64_t begin, int64_t end) {
      kernels_.merge(end - begin, plan_.chunks, at_.row / item, chunks + begin * item,
                     merged + begin * item);
    });
    if (converts) FindConvert(compute_, spec_.weight_dtype)(cols, merged, out);
  }

  const NormBackwardKernels& kernels_;
  const NormSpec& spec_;
  DType compute_;
  Plan plan_;
  Layout at_;
  char* workspace_;
  NormBackwardTask task_;
};

}  // namespace

NormBackward::NormBackward(const NormSpec& spec, bool centred)
    : spec_(spec),
      from_x_(FindNormBackwardKernels(spec.dtype, centred, false)),
      from_y_(FindNormBackwardKernels(spec.dtype, centred, true)) {}

size_t NormBackward::WorkspaceBytes(const NormShape& shape) const {
  if (shape.rows <= 0 || shape.cols <= 0) return 0;
  return Layout(shape, Plan(shape), ComputeType(spec_.dtype)).total;
}

Status NormBackward::Launch(const NormShape& shape, const LayerNormBackward::Args& args,
                            void* workspace) const {
  Launcher(args.y ? from_y_ : from_x_, spec_, shape, args, workspace).Run();
  return OkStatus();
}

}  // namespace oneflow_lite
