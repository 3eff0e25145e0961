# SPDX-License-Identifier: Apache-2.0
#
# The CUDA kernels, with the runtime inside: it opens the driver's library when it is first used, so
# that the operators load where there is none.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${OFL_NVCC})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 90-real)
endif()
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
message(STATUS "oneflow_lite_torch: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, "
               "architectures ${CMAKE_CUDA_ARCHITECTURES}")

include(${OFL_ROOT}/cmake/row_kernels.cmake)
ofl_row_kernel_sources(sources ${OFL_ROOT})
set(from ${OFL_ROOT}/primitive/cuda)
list(APPEND sources ${OFL_ROOT}/oneflow_lite/core/cuda/cuda_status.cpp
  ${from}/host.cpp ${from}/architecture.cu)
foreach(op softmax layer_norm rms_norm cross_entropy scale_mask_softmax)
  list(APPEND sources ${from}/${op}.cpp)
endforeach()
foreach(dtype float16 bfloat16 float32 float64)
  list(APPEND sources ${CMAKE_CURRENT_SOURCE_DIR}/invariant/rows_${dtype}.cu)
endforeach()
add_library(cuda_row_kernels OBJECT ${sources})
target_include_directories(cuda_row_kernels PRIVATE ${OFL_ROOT})
target_include_directories(cuda_row_kernels SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(cuda_row_kernels PRIVATE without_abseil)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  target_compile_options(cuda_row_kernels PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()

target_sources(oneflow_lite_torch PRIVATE bindings/cuda_device.cpp invariant/primitives.cpp)
target_compile_definitions(oneflow_lite_torch PRIVATE OFL_TORCH_WITH_CUDA)
target_include_directories(oneflow_lite_torch SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(oneflow_lite_torch PRIVATE cuda_row_kernels CUDA::cudart_static)
