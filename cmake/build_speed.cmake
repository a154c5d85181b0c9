# Precompiled headers and unity builds. Both change how long a build takes, not its result. The preset
# `separate` turns both off and compiles each source alone, which finds missing includes.
#
#   det_speed(TARGET HEADER [BATCH n] [LEVEL -On])
#     HEADER  precompiled header: std, wire or torch; in tests std_test, wire_test or torch_test
#     BATCH   maximum number of sources in a translation unit (default 16); two units of 8 take a fifth more CPU
#             time, a unit of more than 30 needs over 2 GiB of memory
#     LEVEL   optimisation level; -O1 for rooms that wait for disks, networks and other processes (a quarter less
#             CPU time of the compiler), -Og for the command line, nothing for rooms that compute
#
# GCC uses a precompiled header only under the flags that it was compiled with. Therefore executables are
# compiled with -fPIC, as libraries are, and a source with definitions of its own sets
# SKIP_PRECOMPILE_HEADERS.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
option(CMAKE_UNITY_BUILD "Compile several sources as one translation unit" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13
   AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Parts of -O2 since GCC 13. GCC refuses a precompiled header that was compiled with other values of them, and
  # rooms of different levels share headers.
  add_compile_options(-munroll-only-small-loops -mvzeroupper)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A precompiled header that does not match costs time; it is no error.
  add_compile_options(-Wno-error=invalid-pch)
  # Collect garbage from 1 GiB on: 10 % less CPU time and 12 % more memory than with GCC's 128 MiB.
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")
  # In a unity build GCC attributes the anonymous namespace of a source to a header.
  add_compile_options(-Wno-subobject-linkage)
endif()

# det_precompiled(NAME HEADERS h... LINK target... [LEVEL -On]): declares the precompiled header NAME.
function(det_precompiled name)
  cmake_parse_arguments(P "" "LEVEL" "HEADERS;LINK" ${ARGN})
  set(owner det_pch_${name})
  add_library(${owner} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled/empty.cc)
  target_link_libraries(${owner} PRIVATE ${P_LINK})
  target_compile_options(${owner} PRIVATE ${P_LEVEL})
  target_precompile_headers(${owner} PRIVATE ${P_HEADERS})
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    # ccache preprocesses a source before it looks for it. GCC would include the former precompiled header there,
    # so that two different changes of a header look alike. Without the former file it includes the sources.
    set(launcher ${CMAKE_SOURCE_DIR}/cmake/precompiled/compile.sh ${CMAKE_CXX_COMPILER_LAUNCHER})
    set_target_properties(${owner} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
  endif()
endfunction()

function(det_speed target header)
  cmake_parse_arguments(S "" "BATCH;LEVEL" "" ${ARGN})
  if(TARGET det_pch_${header})
    target_precompile_headers(${target} REUSE_FROM det_pch_${header})
  endif()
  target_compile_options(${target} PRIVATE ${S_LEVEL})
  if(S_LEVEL STREQUAL "-Og")
    # GCC takes empty optionals for uninitialized there.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(S_BATCH)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${S_BATCH})
  endif()
endfunction()
