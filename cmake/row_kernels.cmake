# SPDX-License-Identifier: Apache-2.0
#
# ofl_row_kernel_sources(OUT ROOT): the sources of the row kernels in the tree at ROOT. An op's
# kernels come from one template, a file for each element type, written into the build folder.
function(ofl_row_kernel_sources out root)
  set(rooms ${root}/primitive/cuda)
  set(sources)
  set(float16 __half Float16)
  set(bfloat16 __nv_bfloat16 BFloat16)
  set(float32 float Float32)
  set(float64 double Float64)
  foreach(template softmax/softmax norms/layer_norm norms/rms_norm cross_entropy/cross_entropy
                   scale_mask/scale_mask_softmax)
    get_filename_component(op ${template} NAME)
    foreach(dtype float16 bfloat16 float32 float64)
      list(GET ${dtype} 0 OFL_DTYPE)
      list(GET ${dtype} 1 OFL_DTYPE_NAME)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/row_kernels/${op}_${dtype}.cu)
      configure_file(${rooms}/${template}.cu.in ${source} @ONLY)
      list(APPEND sources ${source})
    endforeach()
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
