# PH_STATIC_LIBRARIES: what the Python wheel is made of. All libraries but glibc are linked statically and show no symbol, so
# that they live in one process with others of their kind. Sets `dependencies` and what the search for oneDNN would find.
set(static_folder ${PROJECT_SOURCE_DIR}/build/static) # kept: oneDNN takes minutes
execute_process(COMMAND sh ${PROJECT_SOURCE_DIR}/tools/static_libraries.sh ${static_folder} COMMAND_ERROR_IS_FATAL ANY)
set(PH_OPENMP OFF)
set(DNNL_LIBRARY ${static_folder}/lib/libdnnl.a)
set(DNNL_INCLUDE_FOLDER ${static_folder}/include)

set(dependencies)
foreach(name IN ITEMS jansson hwloc microhttpd nghttp2)
  list(APPEND dependencies ${static_folder}/lib/lib${name}.a)
endforeach()
foreach(name IN ITEMS yaml z zstd crypto xxhash) # Debian's are fit
  find_library(static_${name} lib${name}.a REQUIRED)
  list(APPEND dependencies ${static_${name}})
endforeach()
list(APPEND dependencies ${CMAKE_DL_LIBS})

add_library(phloem_static_libraries INTERFACE)
target_include_directories(phloem_static_libraries SYSTEM INTERFACE ${static_folder}/include)
target_link_options(phloem_static_libraries INTERFACE -s -static-libgcc -Wl,--gc-sections -Wl,--exclude-libs,ALL)
list(APPEND dependencies phloem_static_libraries)

# ph_install_wheel(): the component that scikit-build-core puts into the wheel, beside the package of bindings/python.
function(ph_install_wheel)
  install(FILES $<TARGET_FILE:phloem> DESTINATION phloem/lib RENAME libphloem.so COMPONENT wheel)
  install(PROGRAMS $<TARGET_FILE:phloem_cli> DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
  install(DIRECTORY ${static_folder}/copyright DESTINATION phloem COMPONENT wheel)
  foreach(package IN ITEMS libyaml-dev zlib1g-dev libzstd-dev libssl-dev libxxhash-dev libstdc++-12-dev)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION phloem/copyright RENAME ${package} COMPONENT wheel OPTIONAL)
  endforeach()
endfunction()
