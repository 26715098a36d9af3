# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: the library, its headers, and what lets other builds find them (pkg-config and a
# CMake package, templates in packaging/).  Programs are installed by their own folders.

include(CMakePackageConfigHelpers)

# The component `runtime` is what the Python package brings with it.
install(TARGETS hanare EXPORT hanareTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS hanare_run_library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(DIRECTORY include/hanare DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hanare)
install(EXPORT hanareTargets NAMESPACE hanare:: DESTINATION ${package_dir})
configure_package_config_file(packaging/hanareConfig.cmake.in
  ${PROJECT_BINARY_DIR}/packaging/hanareConfig.cmake INSTALL_DESTINATION ${package_dir})
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/hanareConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/hanareConfig.cmake
  ${PROJECT_BINARY_DIR}/packaging/hanareConfigVersion.cmake DESTINATION ${package_dir})

# Units name their program by its absolute path, which only the installation knows: --prefix may be
# another than that of the build.
if(IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
  set(unit_program "${CMAKE_INSTALL_BINDIR}/hanare")
else()
  set(unit_program "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/hanare")
endif()
set(unit ${PROJECT_BINARY_DIR}/packaging/hanare-server.service)
install(CODE "
  get_filename_component(HANARE_PROGRAM \"${unit_program}\" ABSOLUTE)
  configure_file(\"${PROJECT_SOURCE_DIR}/packaging/systemd/hanare-server.service.in\" \"${unit}\" @ONLY)")
install(FILES ${unit} DESTINATION lib/systemd/system)
install(FILES packaging/man/hanare-server.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# The prefix in hanare.pc is relative to the file, so that `cmake --install --prefix` and moved
# trees work; only a configured absolute library directory makes it absolute.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH pc_up "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
  string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
  set(pc_prefix "\${pcfiledir}/${pc_up}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(packaging/hanare.pc.in ${PROJECT_BINARY_DIR}/packaging/hanare.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/hanare.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
