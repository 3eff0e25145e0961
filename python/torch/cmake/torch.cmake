# SPDX-License-Identifier: Apache-2.0
#
# The headers of PyTorch's stable ABI, held to what release 2.10 has, and the one library that
# exports it. It is found by its name when it is already in the process: no path is written down.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter
             OPTIONAL_COMPONENTS Development.Module)
if(NOT DEFINED OFL_TORCH_DIR)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE OFL_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE missing)
  if(missing)
    message(FATAL_ERROR "oneflow_lite_torch: ${Python_EXECUTABLE} has no PyTorch (2.10 or newer)")
  endif()
endif()
if(NOT EXISTS ${OFL_TORCH_DIR}/include/torch/csrc/stable/library.h)
  message(FATAL_ERROR "oneflow_lite_torch: ${OFL_TORCH_DIR} is older than PyTorch 2.10")
endif()
message(STATUS "oneflow_lite_torch: PyTorch in ${OFL_TORCH_DIR}")
add_library(stable_torch INTERFACE)
target_include_directories(stable_torch SYSTEM INTERFACE ${OFL_TORCH_DIR}/include)
target_compile_definitions(stable_torch INTERFACE TORCH_TARGET_VERSION=0x020a000000000000)
target_link_libraries(stable_torch INTERFACE ${OFL_TORCH_DIR}/lib/libtorch_cpu.so)
