# Program det-master: the only target that links all components of the master.
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
add_subdirectory(config)
add_subdirectory(engines)
add_executable(det-master main.cc certificates.cc database.cc first_start.cc import_command.cc
  offline_command.cc rotate_command.cc)
target_link_libraries(det-master PRIVATE det_engines det_master_config det_http det_api det_loop det_import det_db det_core PkgConfig::sodium)
target_compile_definitions(det-master PRIVATE DET_VERSION="${PROJECT_VERSION}")
det_speed(det-master wire LEVEL -O1)
install(TARGETS det-master RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT master)
