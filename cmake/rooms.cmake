# Owns the rule "who may include whom". A room is a source folder that one target opens to those who link it:
# det_room(TARGET PATH) puts a link to PATH alone on TARGET's public include path, so that
# `#include "PATH/x.h"` compiles only for targets that link TARGET, directly or through another.
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
