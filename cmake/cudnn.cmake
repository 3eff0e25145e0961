# SPDX-License-Identifier: Apache-2.0
#
# Sets OFL_CUDNN where there are the headers of cuDNN and of its frontend, which NVIDIA's packages
# for Python have: nvidia-cudnn-frontend, and nvidia-cudnn-jit-cu13 or nvidia-cudnn-cu13.
find_package(Python QUIET COMPONENTS Interpreter)
set(cudnn_packages)
if(Python_Interpreter_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import sys; print(';'.join(filter(None, sys.path)))"
                  OUTPUT_VARIABLE cudnn_packages OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
set(cudnn_frontend_folders ${cudnn_packages})
list(TRANSFORM cudnn_frontend_folders APPEND /include)
set(cudnn_folders)
foreach(folder IN LISTS cudnn_packages)
  list(APPEND cudnn_folders ${folder}/nvidia/cudnn_jit/include ${folder}/nvidia/cudnn/include)
endforeach()
find_path(OFL_CUDNN_FRONTEND_INCLUDE cudnn_frontend_shim.h HINTS ${cudnn_frontend_folders})
find_path(OFL_CUDNN_INCLUDE cudnn_backend.h HINTS ${cudnn_folders} ${CUDAToolkit_INCLUDE_DIRS})
if(OFL_CUDNN_FRONTEND_INCLUDE AND OFL_CUDNN_INCLUDE)
  set(OFL_CUDNN ON)
  message(STATUS "oneflow_lite: attention through cuDNN (${OFL_CUDNN_FRONTEND_INCLUDE})")
else()
  set(OFL_CUDNN OFF)
  message(STATUS "oneflow_lite: attention without cuDNN, composed: no headers; to have it, "
                 "`pip install nvidia-cudnn-frontend nvidia-cudnn-jit-cu13`")
endif()
