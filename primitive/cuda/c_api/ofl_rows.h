// SPDX-License-Identifier: Apache-2.0
//
// The CUDA row kernels as a C library, liboneflow_lite_rows.so: C99, no header of CUDA's needed.
//
//   ofl_status status = ofl_softmax(stream, OFL_FLOAT16, rows, cols, x, y);
//   if (status != OFL_OK) fprintf(stderr, "%s\n", ofl_rows_last_error());
//
// A function without a suffix takes dense rows. Its twin `..._with` takes a struct, in which fields
// that are left out (0, NULL) have defaults:
//
//   ofl_norm_args a = {.dtype = OFL_FLOAT16, .rows = rows, .cols = cols, .x_stride = 2 * cols,
//                      .eps = 1e-5, .x = x, .weight = weight, .y = y, .rstd = rstd};
//   status = ofl_rms_norm_with(stream, &a);
//
// All functions launch on `stream`, a stream of the current device, and neither allocate nor
// synchronise: they may be captured into a graph and called by many threads. Pointers are to memory
// that the device can read, aligned to the element only. Strides count elements and 0 stands for
// dense rows; outputs are dense. Where rows or columns are 0, pointers may be null. The same call
// gives the same bits. Statistics, losses, factors have the compute type: float64 of float64, else
// float32.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define OFL_ROWS_VERSION 1  // of this interface; structs change only with it
int ofl_rows_version(void);

typedef struct CUstream_st* ofl_stream;  // a cudaStream_t; NULL: the default stream

typedef int32_t ofl_dtype;
enum { OFL_FLOAT16 = 1, OFL_BFLOAT16 = 2, OFL_FLOAT32 = 3, OFL_FLOAT64 = 4, OFL_BOOL = 5 };

typedef int32_t ofl_status;
enum {
  OFL_OK = 0,
  OFL_NULL_POINTER = 1,   // a pointer that is needed is null
  OFL_INVALID_SIZE = 2,   // a size or stride is negative, too small, or too large to address
  OFL_UNKNOWN_DTYPE = 3,  // not one of the above, or 0: left out
  OFL_UNSERVED = 4,       // known dtypes, or arguments, that have no kernel together
  OFL_MISALIGNED = 5,     // a pointer is not aligned to its element, workspace not to 16 bytes
  OFL_INVALID_VALUE = 6,  // a number lies outside its range
  OFL_WORKSPACE = 7,      // the workspace is missing or too small
  OFL_CUDA_ERROR = 1000   // and above: OFL_CUDA_ERROR + a cudaError_t
};
// What a status means, in a few words. Never null; the text is static.
const char* ofl_rows_error_string(ofl_status status);
// What went wrong in this thread's last call that failed: function, argument, what was given. Valid
// until the thread's next call that fails.
const char* ofl_rows_last_error(void);

// --- softmax and log_softmax ---------------------------------------------------------------------
//
// A row that holds +inf or NaN, or only -inf, becomes NaN. y may be x, and dx may be dy, where both
// are dense.
ofl_status ofl_softmax(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                       const void* x, void* y);
ofl_status ofl_log_softmax(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                           const void* x, void* y);
// dx = y (dy - sum(y dy)) and dx = dy - exp(y) sum(dy); y is the forward's output.
ofl_status ofl_softmax_backward(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                                const void* y, const void* dy, void* dx);
ofl_status ofl_log_softmax_backward(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                                    const void* y, const void* dy, void* dx);

// Workspace is optional, but for a norm's backward: few wide rows are faster with it. A function
// `..._workspace` says how many bytes a call can make use of on the current device, whatever its
// pointers: often 0.
typedef struct {
  ofl_dtype dtype, y_dtype;  // y_dtype: dtype (also 0), or float32 where dtype has 16 bits
  int32_t log;               // not 0: log_softmax
  // inner > 1: the middle axis of [rows / inner, cols, inner], all dense; y_dtype is dtype.
  int64_t rows, cols, inner, x_stride;
  const void* x;
  void* y;
  void* workspace;
  size_t workspace_bytes;
} ofl_softmax_args;
ofl_status ofl_softmax_with(ofl_stream stream, const ofl_softmax_args* args);
ofl_status ofl_softmax_workspace(const ofl_softmax_args* args, size_t* bytes);

typedef struct {
  ofl_dtype dtype;
  int32_t log;
  int64_t rows, cols, inner, y_stride, dy_stride;
  const void *y, *dy;
  void* dx;
  void* workspace;
  size_t workspace_bytes;
} ofl_softmax_backward_args;
ofl_status ofl_softmax_backward_with(ofl_stream stream, const ofl_softmax_backward_args* args);
ofl_status ofl_softmax_backward_workspace(const ofl_softmax_backward_args* args, size_t* bytes);

// --- layer_norm and rms_norm ---------------------------------------------------------------------
//
// s = x + residual (s = x without a residual), y = (s - mean) rstd weight + bias; rms_norm has
// neither mean nor bias. weight and bias may be null.
ofl_status ofl_layer_norm(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                          double eps, const void* x, const void* weight, const void* bias, void* y);
ofl_status ofl_rms_norm(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols, double eps,
                        const void* x, const void* weight, void* y);

// y may be x; sum, given where residual is, receives s and may be x or residual.
typedef struct {
  ofl_dtype dtype, weight_dtype;  // weight_dtype, of weight and bias: dtype (also 0) or float32
  int64_t rows, cols, x_stride;
  double eps;
  const void *x, *residual, *weight, *bias;
  void *y, *sum, *mean, *rstd;  // all but y may be null
  void* workspace;
  size_t workspace_bytes;
} ofl_norm_args;
ofl_status ofl_layer_norm_with(ofl_stream stream, const ofl_norm_args* args);
ofl_status ofl_rms_norm_with(ofl_stream stream, const ofl_norm_args* args);
ofl_status ofl_layer_norm_workspace(const ofl_norm_args* args, size_t* bytes);
ofl_status ofl_rms_norm_workspace(const ofl_norm_args* args, size_t* bytes);

// Either x (the forward's s), mean and rstd; or, memory-efficient, the forward's y, with weight,
// bias and rstd, from which (y - bias) / weight. Gradients that are null are not computed; dbias
// alone needs dy alone. dsum, the gradient of `sum`, is added to dx. dx may be dy. Needs workspace.
typedef struct {
  ofl_dtype dtype, weight_dtype;  // weight_dtype: of dweight and dbias too
  int64_t rows, cols, x_stride;
  const void *dy, *x, *y, *weight, *bias, *mean, *rstd, *dsum;
  void *dx, *dweight, *dbias;
  void* workspace;
  size_t workspace_bytes;
} ofl_norm_backward_args;
ofl_status ofl_layer_norm_backward_with(ofl_stream stream, const ofl_norm_backward_args* args);
ofl_status ofl_rms_norm_backward_with(ofl_stream stream, const ofl_norm_backward_args* args);
ofl_status ofl_layer_norm_backward_workspace(const ofl_norm_backward_args* args, size_t* bytes);
ofl_status ofl_rms_norm_backward_workspace(const ofl_norm_backward_args* args, size_t* bytes);

// --- cross entropy with class targets ------------------------------------------------------------
//
// loss[r] = -log softmax(x[r])[target[r]]; 0 where the target is -100. stats, 2 rows numbers, is
// for the backward. A target outside [0, classes): its loss is NaN, its gradient 0.
ofl_status ofl_cross_entropy(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t classes,
                             const void* x, const int64_t* target, void* loss, void* stats);

typedef struct {
  ofl_dtype dtype;
  int32_t has_ignore_index;  // 0: ignore_index is -100
  int64_t rows, classes, x_stride, ignore_index;
  double smoothing;  // in [0, 1]
  const void* x;
  const int64_t* target;
  void *loss, *stats;
  void* workspace;
  size_t workspace_bytes;
} ofl_cross_entropy_args;
ofl_status ofl_cross_entropy_with(ofl_stream stream, const ofl_cross_entropy_args* args);
ofl_status ofl_cross_entropy_workspace(const ofl_cross_entropy_args* args, size_t* bytes);

// dx may be x where that is dense.
typedef struct {
  ofl_dtype dtype;
  int32_t has_ignore_index;
  int64_t rows, classes, x_stride, ignore_index;
  double smoothing;
  const void* x;
  const int64_t* target;
  const void *stats, *dloss;  // dloss of row r lies at r * dloss_stride; null: 1
  int64_t dloss_stride;       // 0: one number for all rows
  void* dx;
} ofl_cross_entropy_backward_args;
ofl_status ofl_cross_entropy_backward_with(ofl_stream stream,
                                           const ofl_cross_entropy_backward_args* args);

// x, dense, becomes its gradient for dloss = *scale, loss[r] becomes *scale times the loss.
typedef struct {
  ofl_dtype dtype;
  int32_t has_ignore_index;
  int64_t rows, classes, ignore_index;
  double smoothing;
  void* x;
  const int64_t* target;
  const void* scale;  // one number on the device; null: 1
  void* loss;
  void* workspace;
  size_t workspace_bytes;
} ofl_cross_entropy_in_place_args;
ofl_status ofl_cross_entropy_in_place_with(ofl_stream stream,
                                           const ofl_cross_entropy_in_place_args* args);
ofl_status ofl_cross_entropy_in_place_workspace(const ofl_cross_entropy_in_place_args* args,
                                                size_t* bytes);

// weight, one number: 1 / the number of targets that are not ignore_index.
ofl_status ofl_mean_weight(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t ignore_index,
                           const int64_t* target, void* weight);
// value, of dtype: weight times the sum of the losses; weight as above, 1 where target is null. By
// one block: for some 10,000 rows.
ofl_status ofl_reduce_loss(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t ignore_index,
                           const void* loss, const int64_t* target, void* value, void* weight);
// x[r, :] *= factor[r * factor_stride]; rows whose factor is 1 are not read.
ofl_status ofl_scale_rows(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                          const void* factor, int64_t factor_stride, void* x);

// --- softmax(scale x + mask) ---------------------------------------------------------------------
//
// The mask is bool (not 0: keep) or added, in dtype or, where that has 16 bits, float32. y may be
// x, dx may be dy.
typedef struct {
  ofl_dtype dtype, mask_dtype;
  // Query q of a matrix sees the first cols - queries + q + 1 columns where `causal`; what it does
  // not see is not read. zero_masked_rows: rows of nothing but -inf become 0, not NaN.
  int32_t causal, zero_masked_rows;
  int64_t rows, cols, queries;  // queries: rows of a matrix; 0: all
  double scale;                 // has no default: 1 leaves x as it is
  const void *x, *mask;         // mask may be null
  // The mask of row r starts at the sum of c[d] mask_strides[d], with c the coordinates of r in
  // mask_dims, outermost first; a stride of 0 broadcasts. mask_dims of 0: a dense mask [rows,
  // cols].
  int64_t mask_dims[3], mask_strides[3], mask_col_stride;
  void* y;
  void* workspace;
  size_t workspace_bytes;
} ofl_scale_mask_softmax_args;
ofl_status ofl_scale_mask_softmax_with(ofl_stream stream, const ofl_scale_mask_softmax_args* args);
ofl_status ofl_scale_mask_softmax_workspace(const ofl_scale_mask_softmax_args* args, size_t* bytes);

// dx = scale y (dy - sum(y dy)); 0 where a causal query does not see.
typedef struct {
  ofl_dtype dtype;
  int32_t causal;
  int64_t rows, cols, queries;
  double scale;
  const void *y, *dy;
  void* dx;
  void* workspace;
  size_t workspace_bytes;
} ofl_scale_mask_softmax_backward_args;
ofl_status ofl_scale_mask_softmax_backward_with(ofl_stream stream,
                                                const ofl_scale_mask_softmax_backward_args* args);
ofl_status ofl_scale_mask_softmax_backward_workspace(
    const ofl_scale_mask_softmax_backward_args* args, size_t* bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
