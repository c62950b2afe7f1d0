# The target eddy::eddy, and the files with which `find_package(eddy CONFIG)` and pkg-config find it
# installed.

get_property(built GLOBAL PROPERTY EDDY_BUILT_LAYERS)
add_library(eddy_library INTERFACE)
add_library(eddy::eddy ALIAS eddy_library)
set_target_properties(eddy_library PROPERTIES EXPORT_NAME eddy)
set(exported eddy_library)
foreach(layer IN LISTS EDDY_LIBRARY_LAYERS)
    if(layer IN_LIST built)
        target_link_libraries(eddy_library INTERFACE eddy_${layer})
        list(APPEND exported eddy_${layer})
        # Static libraries: whoever needs another stands before it.
        string(PREPEND libraries " -leddy_${layer}")
    endif()
endforeach()

if(NOT EDDY_INSTALL)
    return()
endif()

# Each entry is "liburing liburing>=2.3 liburing-dev": what the static libraries link, for CMake, for
# pkg-config and for Debian.
get_property(linked GLOBAL PROPERTY EDDY_LINKED_MODULES)
set(find_modules "")
set(required_modules "")
set(debian_depends "")
foreach(entry IN LISTS linked)
    separate_arguments(entry UNIX_COMMAND "${entry}")
    list(GET entry 0 name)
    list(GET entry 1 module)
    list(GET entry 2 debian)
    string(APPEND find_modules "pkg_check_modules(${name} REQUIRED QUIET IMPORTED_TARGET \"${module}\")\n")
    string(REPLACE ">=" " >= " module "${module}")
    list(APPEND required_modules "${module}")
    list(APPEND debian_depends "${debian}")
endforeach()
list(JOIN required_modules ", " required_modules)
list(JOIN debian_depends ", " debian_depends)

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/eddy")
install(TARGETS ${exported} EXPORT eddy-targets COMPONENT dev
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT eddy-targets NAMESPACE eddy:: DESTINATION "${package_dir}" COMPONENT dev)
foreach(layer IN LISTS EDDY_LIBRARY_LAYERS)
    if(layer IN_LIST built)
        install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/eddy/${layer}"
                DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/eddy" COMPONENT dev
                FILES_MATCHING PATTERN "*.hpp")
    endif()
endforeach()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/eddy-config.cmake.in"
    "${PROJECT_BINARY_DIR}/eddy-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/eddy-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/eddy-config.cmake"
              "${PROJECT_BINARY_DIR}/eddy-config-version.cmake"
        DESTINATION "${package_dir}" COMPONENT dev)

# From where the file lies, since `cmake --install --prefix` may name another prefix.
file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/eddy.pc.in" "${PROJECT_BINARY_DIR}/eddy.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/eddy.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT dev)

# `cpack` in the build folder makes two packages: libeddy-dev, and eddy with the program.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Eddy authors")
set(CPACK_PACKAGE_VENDOR "Eddy")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_COMPONENTS_ALL dev)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libeddy-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "pkgconf, ${debian_depends}")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Eddy, the C++23 library of coroutine I/O: headers and static libraries")
if(TARGET eddy)
    list(APPEND CPACK_COMPONENTS_ALL program)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME eddy)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
    set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION}")
endif()
set(CPACK_STRIP_FILES ON)
include(CPack)
