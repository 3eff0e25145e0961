# SPDX-License-Identifier: Apache-2.0
#
# The CPU's loops leave ofl_primitive, the layer that they belong to, for two libraries whose
# precompiled headers have Highway for each instruction set too.

# Plain loops that are left to the compiler's vectoriser, which -O2 keeps on a short leash. A
# precompiled header brings along the -O that it was parsed with.
set(plain_loops binary binary_division binary_math ternary convert reduce reduce_grad scan creation
    select unary_truth index index_rows loss random permutation dropout)
list(TRANSFORM plain_loops REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/primitive/cpu/\\1.cpp")
get_target_property(primitives ofl_primitive SOURCES)
set(vector_loops)
foreach(source ${primitives})
  file(STRINGS ${source} highway REGEX "primitive/cpu/foreach_target.h")
  if(highway)
    list(APPEND vector_loops ${source})
  endif()
endforeach()
list(REMOVE_ITEM vector_loops ${plain_loops})
list(REMOVE_ITEM primitives ${plain_loops} ${vector_loops})
set_target_properties(ofl_primitive PROPERTIES SOURCES "${primitives}")

foreach(kind vector_loops plain_loops)
  add_library(ofl_${kind} OBJECT ${${kind}})
  target_link_libraries(ofl_${kind} PUBLIC ofl_flags PRIVATE PkgConfig::HWY)
  # Of later versions it is not known that foreach_target.h runs twice.
  if(HWY_VERSION VERSION_LESS 1.1)
    target_precompile_headers(ofl_${kind} PRIVATE primitive/cpu/precompiled.h)
    # What GCC says wrongly of its own intrinsics, once it forgets whose header they came from.
    target_compile_options(ofl_${kind} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-uninitialized>)
  endif()
endforeach()
target_compile_options(ofl_plain_loops PRIVATE $<$<CONFIG:Release>:-O3;-fno-trapping-math>)
target_link_libraries(ofl_primitive PRIVATE PkgConfig::HWY PkgConfig::OPENBLAS)

# Random numbers are the same on every CPU, with a fused product or without.
set_source_files_properties(primitive/cpu/random.cpp primitive/cpu/dropout.cpp PROPERTIES
  COMPILE_OPTIONS -ffp-contract=off SKIP_PRECOMPILE_HEADERS ON)
