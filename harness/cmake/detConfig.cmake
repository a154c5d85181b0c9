# find_package(det): the target det::det, with LibTorch.
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
include(${CMAKE_CURRENT_LIST_DIR}/libtorch.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/detTargets.cmake)
