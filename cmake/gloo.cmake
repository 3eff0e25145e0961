# SPDX-License-Identifier: Apache-2.0
#
# The CPU's collectives: liboneflow_lite_gloo.so, which is opened when ranks first communicate on
# CPUs. Without Gloo all else is built.
find_package(Gloo QUIET)
if(NOT TARGET gloo)
  message(STATUS "oneflow_lite: Gloo not found, building without collectives on the CPU; on Debian "
                 "and Ubuntu it is the package libgloo-dev")
  return()
endif()
message(STATUS "oneflow_lite: Gloo found (${GLOO_VERSION}), building collectives on the CPU")

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/primitive/cpu/gloo/*.cpp)
add_library(oneflow_lite_gloo SHARED ${sources})
target_link_libraries(oneflow_lite_gloo PRIVATE oneflow_lite ofl_flags gloo)
# Gloo's headers have warnings of their own.
target_include_directories(oneflow_lite_gloo SYSTEM BEFORE PRIVATE
  $<TARGET_PROPERTY:gloo,INTERFACE_INCLUDE_DIRECTORIES>)
set_source_files_properties(${PROJECT_SOURCE_DIR}/primitive/cpu/gloo/reduce_parts.cpp PROPERTIES
  COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3;-fno-trapping-math>")
set_target_properties(oneflow_lite_gloo PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN")
