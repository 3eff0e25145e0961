# SPDX-License-Identifier: Apache-2.0
#
# What the kernels' host code uses of Abseil: its templates from the system's headers, and a few
# names of ours in place of Status and its messages (abseil/). Nothing of Abseil is linked.
find_path(ABSEIL_INCLUDE absl/functional/function_ref.h REQUIRED)
add_library(without_abseil INTERFACE)
target_include_directories(without_abseil BEFORE INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/abseil)
if(NOT ABSEIL_INCLUDE STREQUAL "/usr/include")
  target_include_directories(without_abseil SYSTEM INTERFACE ${ABSEIL_INCLUDE})
endif()
