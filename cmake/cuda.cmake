# SPDX-License-Identifier: Apache-2.0
#
# The CUDA half: liboneflow_lite_cuda.so, which the core opens at the first use of CUDA.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(OFL_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(OFL_NVCC)
    set(CMAKE_CUDA_COMPILER ${OFL_NVCC})
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  if(EXISTS /dev/nvidiactl)
    set(CMAKE_CUDA_ARCHITECTURES native)  # the machine's own GPU
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
endif()
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
message(STATUS "oneflow_lite: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, "
               "architectures ${CMAKE_CUDA_ARCHITECTURES}")

# The row kernels by themselves: compiled once, for the framework and for the C library. What else
# the rooms of primitive/cuda hold is the framework's.
include(cmake/row_kernels.cmake)
ofl_row_kernel_sources(row_sources ${PROJECT_SOURCE_DIR})
set(cuda_rooms attention elementwise fused linalg losses matmul moves optimizers random reduce sort)
list(TRANSFORM cuda_rooms REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/primitive/cuda/\\1/*.c[pu]*"
     OUTPUT_VARIABLE cuda_rooms)
file(GLOB cuda_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/oneflow_lite/core/cuda/*.cpp
  ${PROJECT_SOURCE_DIR}/primitive/cuda/*.cpp ${PROJECT_SOURCE_DIR}/primitive/cuda/*.cu ${cuda_rooms})
list(FILTER cuda_sources INCLUDE REGEX "[.](cpp|cu)$")
add_library(ofl_row_kernels OBJECT ${row_sources})
target_include_directories(ofl_row_kernels PRIVATE ${PROJECT_SOURCE_DIR})

# Attention goes through cuDNN, which is opened when first needed; its headers and those of its
# frontend are needed here. They come from Python packages, or from the system.
include(cmake/cudnn.cmake)
if(OFL_CUDNN)
  list(FILTER cuda_sources EXCLUDE REGEX "/attention/no_cudnn[.]cpp$")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/primitive/cuda/attention/cudnn.cpp PROPERTIES
    COMPILE_DEFINITIONS "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB"
    COMPILE_OPTIONS "-O1;-isystem${OFL_CUDNN_FRONTEND_INCLUDE};-isystem${OFL_CUDNN_INCLUDE}")
else()
  list(FILTER cuda_sources EXCLUDE REGEX "/attention/cudnn[.]cpp$")
endif()

add_library(oneflow_lite_cuda SHARED ${cuda_sources})
target_link_libraries(oneflow_lite_cuda
  PRIVATE oneflow_lite ofl_flags ofl_row_kernels CUDA::cudart_static ${CMAKE_DL_LIBS})
# Launches are counted (oneflow_lite/core/cuda/launches.cpp).
foreach(function cudaLaunchKernel cudaLaunchKernelExC cudaMemcpyAsync cudaMemsetAsync
        cudaGraphLaunch)
  target_link_options(oneflow_lite_cuda PRIVATE LINKER:--wrap=${function})
endforeach()
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_link_options(oneflow_lite_cuda PRIVATE LINKER:--wrap=__cudaLaunchKernel)
endif()
# 6 MB of code for sm_90 instead of 50. A module is unpacked once, when its first kernel is launched.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  foreach(target ofl_row_kernels oneflow_lite_cuda)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
  endforeach()
endif()
# The toolkit's headers for the host files; cuBLASLt is opened by name when first needed.
target_include_directories(oneflow_lite_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
set_target_properties(oneflow_lite_cuda PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN")

# The row kernels as a C library (primitive/cuda/c_api/ofl_rows.h). It exports ofl_* alone and needs
# neither the framework nor Abseil nor the C++ library.
if(OFL_ROWS)
  set(c_api ${PROJECT_SOURCE_DIR}/primitive/cuda/c_api)
  file(GLOB sources CONFIGURE_DEPENDS ${c_api}/*.cpp ${c_api}/*.cu)
  add_library(ofl_rows_c_api OBJECT ${sources})
  target_include_directories(ofl_rows_c_api PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(ofl_rows_c_api SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(ofl_rows_c_api
    PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -fno-exceptions>)

  add_library(oneflow_lite_rows SHARED)
  target_include_directories(oneflow_lite_rows
    INTERFACE $<BUILD_INTERFACE:${c_api}> $<INSTALL_INTERFACE:include>)
  target_link_libraries(oneflow_lite_rows
    PRIVATE ofl_row_kernels ofl_rows_c_api CUDA::cudart_static ${CMAKE_DL_LIBS})
  set_target_properties(oneflow_lite_rows PROPERTIES
    LINKER_LANGUAGE CXX
    LINK_DEPENDS ${c_api}/exports.map)
  target_link_options(oneflow_lite_rows PRIVATE
    -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--no-undefined
    -Wl,--version-script=${c_api}/exports.map)
endif()
