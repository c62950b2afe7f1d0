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
# What an installed copy needs for TLS, if it has it.
set(EDDY_CONFIG_TLS "")
set(EDDY_PC_TLS "")
if(TARGET eddy_tls)
    set(EDDY_CONFIG_TLS "pkg_check_modules(openssl REQUIRED QUIET IMPORTED_TARGET \"openssl>=3.0\")\n")
    set(EDDY_PC_TLS ", openssl >= 3.0")
endif()
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/eddy")
install(TARGETS ${exported} EXPORT eddy-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT eddy-targets NAMESPACE eddy:: DESTINATION "${package_dir}")
if(EXISTS "${PROJECT_SOURCE_DIR}/include/eddy")
    # Without the layer its header is not there, either: __has_include tells.
    set(without "")
    if(NOT TARGET eddy_tls)
        set(without PATTERN "eddy/tls" EXCLUDE)
    endif()
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/eddy" TYPE INCLUDE
            FILES_MATCHING PATTERN "*.hpp" ${without})
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/eddy-config.cmake.in"
    "${PROJECT_BINARY_DIR}/eddy-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/eddy-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/eddy-config.cmake"
              "${PROJECT_BINARY_DIR}/eddy-config-version.cmake" DESTINATION "${package_dir}")

# From where the file lies, since `cmake --install --prefix` may name another prefix.
file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/eddy.pc.in" "${PROJECT_BINARY_DIR}/eddy.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/eddy.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
