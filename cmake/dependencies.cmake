# SPDX-License-Identifier: Apache-2.0
find_package(absl REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)

if(OFL_CUDA STREQUAL "AUTO")
  find_program(OFL_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(OFL_NVCC)
    set(OFL_CUDA ON)
    message(STATUS "oneflow_lite: CUDA found (${OFL_NVCC}), building the CUDA half")
  else()
    set(OFL_CUDA OFF)
    message(STATUS "oneflow_lite: CUDA not found, building for the CPU only")
  endif()
endif()

# What every file of ours is compiled with.
add_library(ofl_flags INTERFACE)
target_include_directories(ofl_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(ofl_flags INTERFACE
  absl::status absl::statusor absl::strings absl::inlined_vector absl::span)
target_compile_options(ofl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter -fno-math-errno>)
if(OFL_CUDA)
  target_compile_definitions(ofl_flags INTERFACE OFL_WITH_CUDA)
endif()
if(OFL_SANITIZE)
  target_compile_options(ofl_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${OFL_SANITIZE} -fno-omit-frame-pointer -g>)
  target_link_options(ofl_flags INTERFACE -fsanitize=${OFL_SANITIZE})
endif()
