# The SDK for compiling trials: share/det/model_build.json (read by det-agent), the public headers, and the
# CMake package `det` for standalone programs.
# Two builds with equal SDK ids are binary compatible: a trial compiled with one runs in the other. The id
# covers the release, LibTorch, the compiler, its flags and the public headers.
file(GLOB det_public_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/det/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${det_public_headers})
set(det_sdk "${PROJECT_VERSION} torch ${Torch_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${TORCH_CXX_FLAGS}")
foreach(header ${det_public_headers})
  file(SHA256 ${header} digest)
  string(APPEND det_sdk " ${digest}")
endforeach()
string(SHA256 DET_SDK_ID "${det_sdk}")

# Clang compiles trials with a precompiled header several times faster than GCC. Agents without this program
# use the compiler of this build.
find_program(DET_CLANG NAMES clang++ clang++-19 clang++-16 clang++-14)

# Sets `out` to a JSON list of strings.
function(det_json_list out)
  list(TRANSFORM ARGN PREPEND "\"" OUTPUT_VARIABLE quoted)
  list(TRANSFORM quoted APPEND "\"")
  list(JOIN quoted ", " text)
  set(${out} "[${text}]" PARENT_SCOPE)
endfunction()

# Writes model_build.json to `path` for a det with headers and libraries in the given directories.
function(det_write_model_build path include_dir lib_dir)
  get_target_property(json_dirs nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
  set(system_dirs ${TORCH_INCLUDE_DIRS} ${json_dirs})
  list(REMOVE_ITEM system_dirs ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(REMOVE_DUPLICATES system_dirs)
  det_json_list(DET_INCLUDE_DIRS ${include_dir} ${system_dirs})
  separate_arguments(torch_flags NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
  # Hidden visibility binds a trial to its own classes. With default visibility the loader may take the vtable of
  # a class of the same name from any library of the process (libpoppler has a class Stream).
  # DWARF 4: addr2line of binutils 2.40 finds no inlined calls in Clang's DWARF 5. -g1 last, for the level is that of
  # the last option.
  set(flags -std=c++20 -O2 -gdwarf-4 -g1 -fPIC -fvisibility=hidden -Wall ${torch_flags})
  det_json_list(DET_CXX_FLAGS ${flags})
  set(DET_PRECOMPILED null)
  if(DET_CLANG)
    # Headers of another time but equal content, such as those of a second checkout, are the same.
    det_json_list(clang_cxx_flags ${flags} -fpch-validate-input-files-content)
    det_json_list(clang_header_flags -fpch-instantiate-templates)
    string(CONCAT DET_PRECOMPILED
      "{\n    \"compiler\": \"${DET_CLANG}\",\n    \"cxx_flags\": ${clang_cxx_flags},\n"
      "    \"header_flags\": ${clang_header_flags},\n    \"header\": \"${include_dir}/det/precompiled.h\"\n  }")
  endif()
  set(torch_dir)
  if(NOT DET_SYSTEM_TORCH)
    set(torch_dir -L${TORCH_INSTALL_PREFIX}/lib -Wl,-rpath,${TORCH_INSTALL_PREFIX}/lib)
  endif()
  det_json_list(DET_LINK_FLAGS -shared -Wl,--no-undefined -L${lib_dir} -Wl,-rpath,${lib_dir} -ldet -ldet_core
    ${torch_dir} -ltorch -ltorch_cpu -lc10)
  configure_file(${PROJECT_SOURCE_DIR}/harness/cmake/model_build.json.in ${path} @ONLY)
endfunction()

det_write_model_build(${CMAKE_BINARY_DIR}/share/det/model_build.json
  ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
# The installed file contains the placeholder {prefix}, which its reader replaces, so an installation can be
# moved.
det_write_model_build(${CMAKE_CURRENT_BINARY_DIR}/model_build.json
  {prefix}/${CMAKE_INSTALL_INCLUDEDIR} {prefix}/${CMAKE_INSTALL_LIBDIR})

# The component sdk contains everything needed for training: `cmake --install build --component sdk`.
install(TARGETS det_harness det_core_api EXPORT det
  LIBRARY COMPONENT sdk NAMELINK_COMPONENT sdk)
install(TARGETS det-harness det-launch COMPONENT sdk)
if(TARGET det_cluster)
  install(TARGETS det_cluster det-fork-server COMPONENT sdk)
endif()
install(FILES ${det_public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/det COMPONENT sdk)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/model_build.json DESTINATION ${CMAKE_INSTALL_DATADIR}/det COMPONENT sdk)
install(EXPORT det NAMESPACE det:: FILE detTargets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/det COMPONENT sdk)
install(FILES cmake/detConfig.cmake cmake/libtorch.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/det COMPONENT sdk)

# The same package in the build directory, for programs built against it, such as a trial's startup-hook.sh.
# find_package searches next to the directories of the PATH, which include the build's bin.
export(EXPORT det NAMESPACE det:: FILE ${CMAKE_BINARY_DIR}/lib/cmake/det/detTargets.cmake)
configure_file(cmake/detConfig.cmake ${CMAKE_BINARY_DIR}/lib/cmake/det/detConfig.cmake COPYONLY)
configure_file(cmake/libtorch.cmake ${CMAKE_BINARY_DIR}/lib/cmake/det/libtorch.cmake COPYONLY)
