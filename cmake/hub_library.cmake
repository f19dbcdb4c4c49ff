# libphloem_hub: the parameter hub for programs that want nothing else of Phloem. It is made of the objects of net and hub, and
# of those members of libphloem.a that these need. Its table of kernels names only those that a hub calls, so that neither
# the others nor the libraries that they stand on (oneDNN, libgomp) come along.

# What it shows. ph_fail too: in a program with libphloem and libphloem_hub both record errors by the same one, which comes
# first, and ph_error_text reads what either has recorded.
set(PH_HUB_SYMBOLS ph_hub_* ph_status_* ph_dtype_* ph_version ph_fail ph_error_text)
set(PH_HUB_LIBRARIES crypto hwloc jansson microhttpd xxhash z zstd m pthread) # whoever links the static one needs them
set(PH_HUB_HEADERS hub.h hub_server.h kernel.h status.h tensor.h version.h)

# No OpenMP team is in it either.
add_library(phloem_hub_kernels OBJECT src/kernel/kernel_list.c src/base/thread/parallel_no_openmp.c)
target_link_libraries(phloem_hub_kernels PRIVATE phloem_flags)
target_compile_definitions(phloem_hub_kernels PRIVATE ${isa_definitions} PH_TABLE_KERNEL_LIST=PH_HUB_KERNEL_LIST)
set(hub_objects
  $<FILTER:$<FILTER:$<TARGET_OBJECTS:phloem_objects>,INCLUDE,/src/\(net|hub\)/|/src/base/version\\.c|/src/tensor/tensor\\.c>,EXCLUDE,/grpc_[a-z]+\\.c>
  $<TARGET_OBJECTS:phloem_hub_kernels>)

# ---- shared ----
set(hub_map ${CMAKE_BINARY_DIR}/phloem_hub.map)
list(JOIN PH_HUB_SYMBOLS "; " hub_symbols)
file(CONFIGURE OUTPUT ${hub_map} CONTENT "{ global: ${hub_symbols}; local: *; };\n")
add_library(phloem_hub SHARED ${hub_objects})
set_target_properties(phloem_hub PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINKER_LANGUAGE C LINK_DEPENDS ${hub_map} EXPORT_NAME hub)
target_link_libraries(phloem_hub PRIVATE phloem_static)
target_link_options(phloem_hub PRIVATE -Wl,--as-needed -Wl,--version-script=${hub_map})
target_include_directories(phloem_hub INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# ---- static: one object, whose inner names are its own affair ----
set(hub_object ${CMAKE_BINARY_DIR}/phloem_hub.o)
list(TRANSFORM PH_HUB_SYMBOLS PREPEND --keep-global-symbol= OUTPUT_VARIABLE kept_symbols)
add_custom_command(OUTPUT ${hub_object} DEPENDS ${hub_objects} phloem_static COMMAND_EXPAND_LISTS VERBATIM
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${hub_object} ${hub_objects} $<TARGET_FILE:phloem_static>
  COMMAND ${CMAKE_OBJCOPY} --wildcard ${kept_symbols} ${hub_object})
add_library(phloem_hub_static STATIC ${hub_object})
set_target_properties(phloem_hub_static PROPERTIES OUTPUT_NAME phloem_hub LINKER_LANGUAGE C EXPORT_NAME hub_static)
target_link_libraries(phloem_hub_static INTERFACE ${PH_HUB_LIBRARIES})
target_include_directories(phloem_hub_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# ---- install: with all else, or alone by cmake --install BUILD --component hub ----
install(TARGETS phloem_hub phloem_hub_static EXPORT phloem_hub_targets COMPONENT hub
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT phloem_hub_targets NAMESPACE phloem:: FILE phloem-hub-targets.cmake COMPONENT hub
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/phloem)
install(FILES ${CMAKE_BINARY_DIR}/phloem-config.cmake ${CMAKE_BINARY_DIR}/phloem-config-version.cmake COMPONENT hub
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/phloem)
list(TRANSFORM PH_HUB_HEADERS PREPEND include/phloem/ OUTPUT_VARIABLE hub_headers)
install(FILES ${hub_headers} COMPONENT hub DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/phloem)
list(TRANSFORM PH_HUB_LIBRARIES PREPEND -l OUTPUT_VARIABLE PH_HUB_LINK_FLAGS)
list(JOIN PH_HUB_LINK_FLAGS " " PH_HUB_LINK_FLAGS)
configure_file(cmake/phloem-hub.pc.in ${CMAKE_BINARY_DIR}/phloem-hub.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/phloem-hub.pc COMPONENT hub DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
