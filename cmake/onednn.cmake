# SPDX-License-Identifier: Apache-2.0
#
# Products of bfloat16 on the CPU: liboneflow_lite_onednn.so, which is opened at the first of them.
# Without oneDNN they go through float32. Its threads must be ours or none, so that one thread each
# is what it takes. Found without its package for CMake, which wants OpenCL's headers in Debian.
find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(ONEDNN_LIBRARY dnnl)
if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)
  set(CMAKE_REQUIRED_INCLUDES ${ONEDNN_INCLUDE})
  check_cxx_source_compiles([[
    #include <oneapi/dnnl/dnnl_config.h>
    #include <oneapi/dnnl/dnnl_version.h>
    static_assert(DNNL_VERSION_MAJOR > 2 || DNNL_VERSION_MINOR >= 5);
    static_assert(DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP ||
                  DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_SEQ);
    int main() {}
  ]] OFL_ONEDNN)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(NOT OFL_ONEDNN)
  message(STATUS "oneflow_lite: oneDNN not found, building products of bfloat16 on the CPU by way "
                 "of float32; on Debian and Ubuntu it is the package libdnnl-dev")
  return()
endif()
message(STATUS "oneflow_lite: oneDNN found (${ONEDNN_LIBRARY}), for products of bfloat16 on the CPU")

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/primitive/cpu/onednn/*.cpp)
add_library(oneflow_lite_onednn SHARED ${sources})
target_include_directories(oneflow_lite_onednn SYSTEM PRIVATE ${ONEDNN_INCLUDE})
target_link_libraries(oneflow_lite_onednn PRIVATE oneflow_lite ofl_flags ${ONEDNN_LIBRARY})
# libdnnl needs OpenCL's loader, which is no matter of ours.
target_link_options(oneflow_lite_onednn PRIVATE -Wl,--allow-shlib-undefined)
set_target_properties(oneflow_lite_onednn PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN")
