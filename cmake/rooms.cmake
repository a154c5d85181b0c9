# Include rules between rooms. A room is a source folder that one target makes available to the targets that
# link it: det_room(TARGET PATH) puts a link to PATH, and nothing else, on TARGET's public include path.
# Therefore `#include "PATH/x.h"` compiles only in targets that link TARGET, directly or through another one.
#
# Links of an earlier configuration go first: a room may have moved into the folder of another.
file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/rooms)
function(det_room target path)
  set(root ${CMAKE_BINARY_DIR}/rooms/${target})
  get_filename_component(parent ${root}/${path} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${path} ${root}/${path} SYMBOLIC)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    target_include_directories(${target} INTERFACE ${root})
  else()
    target_include_directories(${target} PUBLIC ${root})
  endif()
endfunction()
