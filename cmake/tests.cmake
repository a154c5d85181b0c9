# Owns how a test program is declared: det_test(NAME SOURCES a.cc b.cc LINK target... [LABELS l...]).
# All share one Catch2 main; each runs as one CTest entry; tests/run.sh counts their test cases.
find_package(Catch2 2 REQUIRED)
add_library(det_catch_main OBJECT ${CMAKE_SOURCE_DIR}/tests/catch_main.cc)
target_link_libraries(det_catch_main PUBLIC Catch2::Catch2)

function(det_test name)
  cmake_parse_arguments(T "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE det_catch_main ${T_LINK})
  target_compile_definitions(${name} PRIVATE
    DET_SOURCE_DIR="${CMAKE_SOURCE_DIR}" DET_BUILD_DIR="${CMAKE_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(T_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}")
  endif()
endfunction()
