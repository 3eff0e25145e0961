# SPDX-License-Identifier: Apache-2.0
#
# The installed tree is the Python package's folder and a C++ prefix in one:
#
#   <prefix>/_oneflow_lite.*.so, *.py          import oneflow_lite          (component python)
#   <prefix>/lib/liboneflow_lite*.so           found through $ORIGIN        (component cpp)
#   <prefix>/lib/cmake/oneflow_lite/           find_package(oneflow_lite)
#   <prefix>/include/                          the C++ API and the header-only CUDA kernels
#
# A C++ install without Python: cmake --install <build> --prefix <prefix> --component cpp
# The C library of the row kernels, liboneflow_lite_rows.so and ofl_rows.h, is the component rows: a
# wheel does without, since it holds the same kernels as liboneflow_lite_cuda.so. So it does without
# the component onednn, whose oneDNN has 40 MB and must share OpenMP with this library.
include(CMakePackageConfigHelpers)
set(config_dir lib/cmake/oneflow_lite)

# Programs must use the Abseil that this library was built with: write its release down.
file(WRITE ${PROJECT_BINARY_DIR}/abseil_probe.cpp [[
#include "absl/base/config.h"
#ifdef ABSL_USES_STD_STRING_VIEW
ofl_string_view 1;
#else
ofl_string_view 0;
#endif
ofl_release ABSL_LTS_RELEASE_VERSION;
]])
get_target_property(absl_include absl::config INTERFACE_INCLUDE_DIRECTORIES)
list(TRANSFORM absl_include PREPEND -I)
execute_process(
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 ${absl_include} -E -P
          ${PROJECT_BINARY_DIR}/abseil_probe.cpp
  OUTPUT_VARIABLE absl_probe COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "ofl_string_view ([01])" _ "${absl_probe}")
set(OFL_ABSL_STRING_VIEW ${CMAKE_MATCH_1})
if(absl_probe MATCHES "ofl_release ([0-9]+)")
  set(OFL_ABSL_RELEASE ${CMAKE_MATCH_1})
else()
  set(OFL_ABSL_RELEASE 0)  # between releases
endif()
set(installed_headers ${PROJECT_BINARY_DIR}/include)
configure_file(cmake/abseil_check.h.in ${installed_headers}/oneflow_lite/core/abseil_check.h @ONLY)

set_target_properties(oneflow_lite PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS oneflow_lite EXPORT oneflow_liteTargets LIBRARY DESTINATION lib COMPONENT cpp)
if(TARGET oneflow_lite_cuda)
  install(TARGETS oneflow_lite_cuda LIBRARY DESTINATION lib COMPONENT cpp)
endif()
if(TARGET oneflow_lite_gloo)
  install(TARGETS oneflow_lite_gloo LIBRARY DESTINATION lib COMPONENT cpp)
endif()
if(TARGET oneflow_lite_onednn)
  install(TARGETS oneflow_lite_onednn LIBRARY DESTINATION lib COMPONENT onednn)
endif()
if(TARGET oneflow_lite_rows)
  install(TARGETS oneflow_lite_rows EXPORT rowsTargets LIBRARY DESTINATION lib COMPONENT rows)
  install(FILES primitive/cuda/c_api/ofl_rows.h DESTINATION include COMPONENT rows)
  install(EXPORT rowsTargets NAMESPACE oneflow_lite:: DESTINATION ${config_dir} COMPONENT rows)
endif()
install(DIRECTORY ${installed_headers}/ DESTINATION include COMPONENT cpp)
install(DIRECTORY oneflow_lite/core oneflow_lite/framework oneflow_lite/extension
        DESTINATION include/oneflow_lite COMPONENT cpp FILES_MATCHING PATTERN "*.h"
        PATTERN "cuda" EXCLUDE)
install(DIRECTORY functional DESTINATION include COMPONENT cpp FILES_MATCHING PATTERN "*.h")

# The header-only CUDA row kernels, usable without the library.
add_library(ofl_cuda_kernels INTERFACE)
set_target_properties(ofl_cuda_kernels PROPERTIES EXPORT_NAME cuda_kernels)
target_include_directories(ofl_cuda_kernels INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(ofl_cuda_kernels INTERFACE cxx_std_17)
install(TARGETS ofl_cuda_kernels EXPORT cuda_kernelsTargets)
install(DIRECTORY primitive/cuda DESTINATION include/primitive COMPONENT cpp
        FILES_MATCHING PATTERN "*.cuh" PATTERN "*.h")
install(FILES primitive/activation_kinds.h primitive/adam_math.h primitive/float_log.h
              primitive/loss_kinds.h primitive/loss_math.h primitive/multi_tensor_math.h
              primitive/op_kinds.h primitive/ordered_keys.h primitive/places.h
              primitive/random_kinds.h primitive/rank_kinds.h primitive/reduce_kinds.h
              primitive/reduce_shape.h primitive/remap_kinds.h
        DESTINATION include/primitive COMPONENT cpp)

# And all of them in one file, where there is a Python to write it.
find_package(Python QUIET COMPONENTS Interpreter)
if(Python_Interpreter_FOUND)
  file(GLOB_RECURSE row_headers CONFIGURE_DEPENDS primitive/cuda/*.h primitive/cuda/*.cuh)
  set(row_header ${installed_headers}/oneflow_lite_rows.cuh)
  add_custom_command(OUTPUT ${row_header}
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/amalgamate_rows.py -o ${row_header}
    DEPENDS scripts/amalgamate_rows.py docs/cuda_kernels.md ${row_headers})
  add_custom_target(oneflow_lite_rows_header ALL DEPENDS ${row_header})
endif()

# Ops out of tree: headers only, over the extension table.
add_library(ofl_extension INTERFACE)
set_target_properties(ofl_extension PROPERTIES EXPORT_NAME extension)
target_include_directories(ofl_extension INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(ofl_extension INTERFACE cxx_std_17)
install(TARGETS ofl_extension EXPORT extensionTargets)
install(FILES cmake/extension.cmake DESTINATION ${config_dir} COMPONENT cpp)

foreach(export oneflow_lite cuda_kernels extension)
  install(EXPORT ${export}Targets NAMESPACE oneflow_lite:: DESTINATION ${config_dir} COMPONENT cpp)
endforeach()
configure_package_config_file(cmake/oneflow_liteConfig.cmake.in
  ${PROJECT_BINARY_DIR}/oneflow_liteConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/oneflow_liteConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/oneflow_liteConfig.cmake
              ${PROJECT_BINARY_DIR}/oneflow_liteConfigVersion.cmake
        DESTINATION ${config_dir} COMPONENT cpp)
if(TARGET oneflow_lite_rows)
  install(FILES ${PROJECT_BINARY_DIR}/oneflow_liteConfig.cmake
                ${PROJECT_BINARY_DIR}/oneflow_liteConfigVersion.cmake
          DESTINATION ${config_dir} COMPONENT rows)
endif()

# A wheel gets its Python files from pyproject.toml, so that an editable install can point to them.
if(OFL_PYTHON AND NOT SKBUILD)
  install(DIRECTORY python/oneflow_lite/ DESTINATION . COMPONENT python
          PATTERN "__pycache__" EXCLUDE)
endif()
