# Packages. `cpack --config build/release/CPackConfig.cmake` creates det-master, det-agent, det-cli and
# libdet-dev as .deb. With -G TGZ it creates one archive that runs from any directory.
if(NOT DET_CLUSTER OR NOT DET_HARNESS)
  return()
endif()
set(det_unit_dir lib/systemd/system)
foreach(part master agent)
  install(FILES deploy/systemd/det-${part}.service DESTINATION ${det_unit_dir} COMPONENT ${part})
  install(FILES deploy/${part}.yaml DESTINATION share/det/etc COMPONENT ${part})
endforeach()

set(CPACK_PACKAGE_VENDOR Determinant)
set(CPACK_PACKAGE_CONTACT "the Determinant developers")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_NAME determinant)
set(CPACK_PACKAGE_FILE_NAME determinant-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL master agent cli sdk)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)

set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# libdet is in no Debian package: det-agent depends on libdet-dev by name.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MASTER_PACKAGE_NAME det-master)
set(CPACK_COMPONENT_MASTER_DESCRIPTION "Determinant: master of a deep-learning training cluster, with its web UI")
set(CPACK_DEBIAN_MASTER_PACKAGE_DEPENDS "postgresql, libcurl4, adduser")
set(CPACK_DEBIAN_AGENT_PACKAGE_NAME det-agent)
set(CPACK_COMPONENT_AGENT_DESCRIPTION "Determinant: agent that builds and runs trials")
set(CPACK_DEBIAN_AGENT_PACKAGE_DEPENDS "libdet-dev (= ${PROJECT_VERSION}), adduser, util-linux, bubblewrap, libcurl4")
set(CPACK_DEBIAN_CLI_PACKAGE_NAME det-cli)
set(CPACK_DEBIAN_CLI_PACKAGE_DEPENDS "libcurl4")
set(CPACK_COMPONENT_CLI_DESCRIPTION "Determinant: the det command")
set(CPACK_DEBIAN_SDK_PACKAGE_NAME libdet-dev)
set(CPACK_COMPONENT_SDK_DESCRIPTION "Determinant: training library, and what compiles trials")
# Clang compiles trials with a precompiled header; g++ accepts more of C++20. One of them is sufficient.
set(CPACK_DEBIAN_SDK_PACKAGE_RECOMMENDS "clang, g++")
set(det_torch_package libtorch-dev)
if(DET_LIBTORCH MATCHES "CUDA [0-9]")
  set(det_torch_package libtorch-cuda-dev)
endif()
set(CPACK_DEBIAN_SDK_PACKAGE_DEPENDS
  "g++ | clang, ${det_torch_package}, libopenblas0-openmp, nlohmann-json3-dev, libcurl4")

# Maintainer scripts: create the user and the configuration file of a service. They start nothing.
foreach(part master agent)
  string(TOUPPER ${part} component)
  set(DET_PART ${part})
  set(DET_USER determinant)
  if(part STREQUAL agent)
    set(DET_USER determinant-agent)
  endif()
  configure_file(${CMAKE_SOURCE_DIR}/deploy/packages/postinst.in ${CMAKE_BINARY_DIR}/package-${part}/postinst @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  configure_file(${CMAKE_SOURCE_DIR}/deploy/packages/prerm.in ${CMAKE_BINARY_DIR}/package-${part}/prerm @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA
    ${CMAKE_BINARY_DIR}/package-${part}/postinst ${CMAKE_BINARY_DIR}/package-${part}/prerm)
endforeach()
include(CPack)
