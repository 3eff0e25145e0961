// SPDX-License-Identifier: Apache-2.0
// The row kernels as a C library: nvcc library.c -I<include> -L<lib> -loneflow_lite_rows
#include <cuda_runtime_api.h>
#include <ofl_rows.h>
#include <stdio.h>

int main(void) {
  const int64_t rows = 4, cols = 50257;
  float *x, *y, last = 0;
  if (cudaMalloc((void **)&x, 2 * rows * cols * sizeof(float)) != cudaSuccess) {
    printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 77;
  }
  y = x + rows * cols;
  cudaMemset(x, 0, rows * cols * sizeof(float));  // every logit is 0
  ofl_status status = ofl_softmax(/*stream=*/NULL, OFL_FLOAT32, rows, cols, x, y);
  if (status == OFL_OK) {  // as a struct: strides, statistics, workspace
    ofl_norm_args norm = {.dtype = OFL_FLOAT32, .rows = rows, .cols = cols, .x = y, .y = x};
    status = ofl_rms_norm_with(NULL, &norm);
  }
  if (status != OFL_OK) printf("%s\n", ofl_rows_last_error());
  cudaMemcpy(&last, x + rows * cols - 1, sizeof(last), cudaMemcpyDeviceToHost);
  printf("%s: equal values have the root mean square %g\n", ofl_rows_error_string(status), last);
  return status != OFL_OK || last < 0.999f || last > 1.001f;
}
