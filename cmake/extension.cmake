# SPDX-License-Identifier: Apache-2.0
#
# oneflow_lite_add_extension(name source...): a shared library of ops for flow.load_library(), built
# from C++ (C++17 or later) and, where CUDA is enabled as a language, CUDA sources. It needs the
# headers of oneflow_lite/extension only and links nothing of oneflow_lite.
function(oneflow_lite_add_extension name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE oneflow_lite::extension)
  set_target_properties(${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON CUDA_RUNTIME_LIBRARY Static)
  # So that a library that fails to load can leave the process, and a mended one take its place.
  target_compile_options(${name} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>)
endfunction()
