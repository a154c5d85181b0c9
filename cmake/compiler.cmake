# Compiler and linker settings of all targets.
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC reports false positives in inlined std::string code (bug 105651 and similar ones).
  add_compile_options(-Wno-restrict -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 16)
  # The same in std::vector and std::optional of strings.
  add_compile_options(-Wno-error=free-nonheap-object -Wno-error=maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # The warning reports every function that returns a reference and takes a temporary as another argument.
  add_compile_options(-Wno-dangling-reference)
endif()
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(-Wl,-z,relro,-z,now)

# __FILE__ is relative to the source tree: the same in every folder.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

find_program(DET_CCACHE ccache)
if(DET_CCACHE)
  # Paths relative to the source tree: all build directories share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DET_CCACHE})
endif()

find_program(DET_MOLD mold)
if(DET_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(DET_SANITIZE)
  add_compile_options(-fsanitize=${DET_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DET_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-maybe-uninitialized)  # GCC loses track of initialization in instrumented code
  endif()
  if(DET_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(DET_SANITIZE MATCHES "address.*undefined")
    # The address sanitizer finds accesses through null and outside of objects too. These checks take a seventh of
    # the compilation.
    add_compile_options(-fno-sanitize=null,object-size)
  endif()
  if(DET_SANITIZE MATCHES thread)
    # Debian's protobuf was built without TSan; its Map changes layout under this macro and crashes.
    add_compile_options(-U__SANITIZE_THREAD__)
  endif()
endif()
