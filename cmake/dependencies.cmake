# SPDX-License-Identifier: Apache-2.0

# Each library comes from its package; where one is missing, say which package that is.
function(oneflow_lite_missing what debian_package)
  message(FATAL_ERROR "oneflow_lite: ${what} was not found. On Debian and Ubuntu it is the package "
                      "${debian_package}; `make setup` installs all there are to install.")
endfunction()

find_package(absl QUIET)
if(NOT absl_FOUND)
  oneflow_lite_missing("Abseil" libabsl-dev)
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig QUIET)
if(NOT PkgConfig_FOUND)
  oneflow_lite_missing("pkg-config" pkg-config)
endif()
pkg_check_modules(HWY QUIET IMPORTED_TARGET libhwy)
if(NOT HWY_FOUND)
  oneflow_lite_missing("Highway" libhwy-dev)
endif()
pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
if(NOT OPENBLAS_FOUND)
  oneflow_lite_missing("OpenBLAS" libopenblas-openmp-dev)
endif()
if(OPENBLAS_LIBRARY_DIRS MATCHES "pthread|serial")
  message(WARNING "oneflow_lite: ${OPENBLAS_LIBRARY_DIRS} is not OpenBLAS in its OpenMP flavour; "
                  "its threads will compete with ours. Install libopenblas-openmp-dev.")
endif()

# glibc's vector functions of x86-64; erf is among those that came last, in 2.35.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES mvec m)
check_cxx_source_compiles([[
  #include <immintrin.h>
  extern "C" __m128 _ZGVbN4v_erff(__m128);
  int main(int argc, char**) { return (int)_mm_cvtss_f32(_ZGVbN4v_erff(_mm_set1_ps(argc))); }
]] OFL_LIBMVEC)
unset(CMAKE_REQUIRED_LIBRARIES)
if(OFL_LIBMVEC)
  set(OFL_LIBMVEC_LIBRARY mvec)
endif()

if(OFL_CUDA STREQUAL "AUTO")
  find_program(OFL_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(OFL_NVCC)
    set(OFL_CUDA ON)
    message(STATUS "oneflow_lite: CUDA found (${OFL_NVCC}), building the CUDA half")
  else()
    set(OFL_CUDA OFF)
    message(STATUS "oneflow_lite: CUDA not found, building for the CPU only")
  endif()
elseif(OFL_CUDA)
  message(STATUS "oneflow_lite: building the CUDA half (OFL_CUDA=${OFL_CUDA})")
else()
  message(STATUS "oneflow_lite: building for the CPU only (OFL_CUDA=${OFL_CUDA})")
endif()

# What every file of ours is compiled with.
add_library(ofl_flags INTERFACE)
target_include_directories(ofl_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(ofl_flags INTERFACE
  absl::status absl::statusor absl::strings absl::inlined_vector absl::span)
target_compile_options(ofl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter
  -Wno-missing-field-initializers -fno-math-errno>)
# Of absl::InlinedVector GCC 12 says so wrongly, and in a precompiled header it forgets that this is
# a header of the system.
target_compile_options(ofl_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-array-bounds>)
# The one file that needs to know; all others are the same with and without CUDA.
if(OFL_CUDA)
  set_source_files_properties(oneflow_lite/core/device_backend.cpp
                              PROPERTIES COMPILE_DEFINITIONS OFL_WITH_CUDA)
endif()
if(OFL_SANITIZE)
  # Null is found by the crash, a wrong vptr by AddressSanitizer; their checks would double the time
  # of this build. So would the further instruction sets, which run the same code.
  target_compile_options(ofl_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${OFL_SANITIZE} -fno-sanitize=null,vptr
    -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_compile_definitions(ofl_flags INTERFACE HWY_COMPILE_ONLY_STATIC)
  target_link_options(ofl_flags INTERFACE -fsanitize=${OFL_SANITIZE})
endif()
