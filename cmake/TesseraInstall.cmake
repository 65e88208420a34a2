# What `cmake --install` puts where: the program, the library with its C headers, pkg-config's file, bash completion.

if(TESSERA_SANITIZE)
  return()
endif()

include(GNUInstallDirs)
install(TARGETS tessera RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS libtessera LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tessera_mlir)
  install(TARGETS tessera_mlir LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tessera)
endif()
install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES tools/tessera-completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tessera)
# When installing: a prefix given then, too, is the file's.
install(CODE "
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
  set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
  get_filename_component(CMAKE_INSTALL_PREFIX \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
  configure_file(\"${CMAKE_SOURCE_DIR}/cmake/tessera.pc.in\" \"${CMAKE_BINARY_DIR}/tessera.pc\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
