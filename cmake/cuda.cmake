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

file(GLOB sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/oneflow_lite/core/cuda/*.cpp
  ${PROJECT_SOURCE_DIR}/primitive/cuda/*.cpp ${PROJECT_SOURCE_DIR}/primitive/cuda/*.cu)
add_library(oneflow_lite_cuda SHARED ${sources})
target_link_libraries(oneflow_lite_cuda
  PRIVATE oneflow_lite ofl_flags CUDA::cudart_static ${CMAKE_DL_LIBS})
# 6 MB of code for sm_90 instead of 50. A module is unpacked once, when its first kernel is launched.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  target_compile_options(oneflow_lite_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
# The toolkit's headers for the host files; cuBLASLt is opened by name when first needed.
target_include_directories(oneflow_lite_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
set_target_properties(oneflow_lite_cuda PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN")
