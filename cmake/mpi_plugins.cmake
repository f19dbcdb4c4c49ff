# Plugins that carry messages between ranks by MPI, one for each library that is here: one source, compiled against either's
# mpi.h. They know nothing of libphloem, which loads the one that is asked for (src/comm/wire/transport_open.c). Beside each,
# the libraries that are preloaded into programs of that MPI: one reorders their ranks (src/preload/), one is what phloem
# sim run puts before it (src/preload/sim/).
function(ph_add_mpi_module target name)
  add_library(${target} MODULE ${ARGN})
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:phloem_flags,INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:phloem_flags,INTERFACE_COMPILE_OPTIONS>)
  target_include_directories(${target} PRIVATE src)
  target_link_options(${target} PRIVATE -Wl,--as-needed $<TARGET_PROPERTY:phloem_flags,INTERFACE_LINK_OPTIONS>)
  target_link_libraries(${target} PRIVATE PkgConfig::${name} ${CMAKE_DL_LIBS})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/phloem)
endfunction()

function(ph_add_mpi_plugin name title module package)
  unset(__pkg_config_checked_${name} CACHE) # look again at each configuration: packages come and go
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    message(STATUS "Ranks over ${title}: no (Debian's package: ${package})")
    file(REMOVE ${CMAKE_BINARY_DIR}/libphloem_${name}.so ${CMAKE_BINARY_DIR}/libphloem_reorder_${name}.so
      ${CMAKE_BINARY_DIR}/libphloem_sim_mpi_${name}.so)
    return()
  endif()
  message(STATUS "Ranks over ${title}: ${${name}_VERSION}")
  ph_add_mpi_module(phloem_${name} ${name} src/comm/wire/mpi_transport.c)
  file(GLOB reorder_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/preload/reorder_*.c)
  ph_add_mpi_module(phloem_reorder_${name} ${name} ${reorder_sources})
  string(COMPARE EQUAL ${name} mpich is_mpich)
  target_compile_definitions(phloem_reorder_${name} PRIVATE PH_MPICH=${is_mpich})
  set_target_properties(phloem_reorder_${name} PROPERTIES C_VISIBILITY_PRESET hidden) # but for what stands before MPI
  file(GLOB sim_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/preload/sim/*.c)
  ph_add_mpi_module(phloem_sim_mpi_${name} ${name} ${sim_sources} src/preload/schedules.c)
  target_compile_definitions(phloem_sim_mpi_${name} PRIVATE PH_MPICH=${is_mpich})
  target_compile_options(phloem_sim_mpi_${name} PRIVATE -Wno-deprecated-declarations)
  set_target_properties(phloem_sim_mpi_${name} PROPERTIES C_VISIBILITY_PRESET hidden) # but for MPI's functions
endfunction()

if(NOT PH_FUZZ)
  ph_add_mpi_plugin(openmpi "Open MPI" ompi-c libopenmpi-dev)
  ph_add_mpi_plugin(mpich MPICH mpich libmpich-dev)
endif()
