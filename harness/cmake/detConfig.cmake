# Package configuration for find_package(det): targets det::det (with LibTorch) and det::core (the Core API).
# With only COMPONENTS core, LibTorch is not searched for.
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
if(NOT "${det_FIND_COMPONENTS}" STREQUAL "core")
  include(${CMAKE_CURRENT_LIST_DIR}/libtorch.cmake)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/detTargets.cmake)
set(det_core_FOUND TRUE)
