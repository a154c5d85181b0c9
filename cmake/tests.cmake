# Test programs: det_test(NAME SOURCES a.cc b.cc LINK target... [LABELS l...]).
# All share one Catch2 main. Each is one CTest entry; tests/run.sh counts their test cases.
# Debian 12 has Catch2 2, Debian 13 has Catch2 3. Tests use the names of version 2.
find_package(Catch2 REQUIRED)
add_library(det_catch INTERFACE)
target_link_libraries(det_catch INTERFACE Catch2::Catch2)
if(Catch2_VERSION VERSION_LESS 3)
  add_library(det_catch_main OBJECT ${CMAKE_SOURCE_DIR}/tests/catch_main.cc)
  target_link_libraries(det_catch_main PUBLIC det_catch)
  # Catch2 itself is not under test.
  target_compile_options(det_catch_main PRIVATE -O0 -g0)
  if(DET_SANITIZE)
    target_compile_options(det_catch_main PRIVATE -fno-sanitize=all)
  endif()
else()
  target_include_directories(det_catch INTERFACE ${CMAKE_SOURCE_DIR}/tests/catch2_v3)
  add_library(det_catch_main INTERFACE)
  target_link_libraries(det_catch_main INTERFACE det_catch Catch2::Catch2WithMain)
endif()

# The only source that names the folders: a definition for every test would make all of them compile again in
# another folder in spite of the compiler cache.
add_library(det_test_paths STATIC ${CMAKE_SOURCE_DIR}/tests/base/test_paths.cc)
target_include_directories(det_test_paths PUBLIC ${CMAKE_SOURCE_DIR}/tests/base)
target_compile_definitions(det_test_paths PRIVATE
  DET_SOURCE_DIR="${CMAKE_SOURCE_DIR}" DET_BUILD_DIR="${CMAKE_BINARY_DIR}")

# Test code is compiled with -O1; the tested libraries keep their own optimisation level.
set(det_test_level -O1)
# Declares the precompiled header <name>_test: the headers of the tested code, and Catch2.
function(det_precompiled_test name)
  cmake_parse_arguments(P "" "" "HEADERS;LINK" ${ARGN})
  det_precompiled(${name}_test LEVEL ${det_test_level}
    HEADERS ${CMAKE_SOURCE_DIR}/cmake/precompiled/std.h <catch2/catch.hpp> ${P_HEADERS}
    LINK det_catch det_base ${P_LINK})
endfunction()

function(det_test name)
  cmake_parse_arguments(T "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE det_catch_main det_test_paths ${T_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(header std_test)
  foreach(library ${T_LINK})
    if(library MATCHES "^det_(access|agent|api|cli|cli_session|http|proto|wire)$")
      set(header wire_test)
    elseif(library MATCHES "^(det_harness|det::torch|det::det)$")
      set(header torch_test)
    endif()
  endforeach()
  det_speed(${name} ${header} LEVEL ${det_test_level})
  add_test(NAME ${name} COMMAND ${name})
  if(T_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}")
  endif()
endfunction()
