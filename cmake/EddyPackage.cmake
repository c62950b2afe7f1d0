# The target eddy::eddy, and the files with which `find_package(eddy CONFIG)` and pkg-config find it
# installed.

get_property(built GLOBAL PROPERTY EDDY_BUILT_LAYERS)
add_library(eddy_library INTERFACE)
add_library(eddy::eddy ALIAS eddy_library)
set_target_properties(eddy_library PROPERTIES EXPORT_NAME eddy)
set(exported eddy_library)
set(component_names "")
foreach(layer IN LISTS EDDY_LIBRARY_LAYERS)
    if(layer IN_LIST built)
        target_link_libraries(eddy_library INTERFACE eddy_${layer})
        list(APPEND exported eddy_${layer})
        list(APPEND component_names ${layer})
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
# One package may have several modules.
list(REMOVE_DUPLICATES debian_depends)
list(JOIN required_modules ", " required_modules)
list(JOIN debian_depends ", " debian_depends)
list(JOIN component_names ", " component_names)

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/eddy")
install(TARGETS ${exported} EXPORT eddy-targets COMPONENT dev
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT eddy-targets NAMESPACE eddy:: DESTINATION "${package_dir}" COMPONENT dev)
foreach(layer IN LISTS EDDY_LIBRARY_LAYERS)
    if(layer IN_LIST built AND EXISTS "${PROJECT_SOURCE_DIR}/include/eddy/${layer}")
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
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/eddy.pc.in" "${PROJECT_BINARY_DIR}/eddy.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/eddy.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT dev)

# What a Debian package must have beside its files, and what its reader looks for. Side by side as in
# the source, so that links among the pages and to the examples hold. Other links become plain text.
set(doc_dir "${CMAKE_INSTALL_DATAROOTDIR}/doc")
set(changes "${PROJECT_SOURCE_DIR}/CHANGELOG.md")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${doc_dir}/libeddy-dev" RENAME copyright
        COMPONENT dev)
install(FILES "${changes}" "${PROJECT_SOURCE_DIR}/ARCHITECTURE.md" DESTINATION "${doc_dir}/libeddy-dev"
        COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples"
        DESTINATION "${doc_dir}/libeddy-dev" COMPONENT dev
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.cpp" PATTERN "*.lua" PATTERN "*.mustache" PATTERN "*.css" PATTERN "*.toml" PATTERN "*.openapi.json" PATTERN "__pycache__" EXCLUDE
        PATTERN "hand_over*")
# The program that docs/from-asio.md ports.
install(FILES "${PROJECT_SOURCE_DIR}/bench/echo/echo_asio.cpp" DESTINATION "${doc_dir}/libeddy-dev/bench/echo"
        COMPONENT dev)
# After the files of the component, as this list has them.
function(mend_links package component)
    install(CODE "set(EDDY_PAGES \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/EddyInstalledLinks.cmake\")" COMPONENT "${component}")
endfunction()
mend_links(libeddy-dev dev)
if(TARGET eddy)
    install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${doc_dir}/eddy" RENAME copyright
            COMPONENT program)
    install(FILES "${changes}" "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${doc_dir}/eddy" COMPONENT program)
    # The pages for users of the program, what they link to, and the document of the control API.
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${doc_dir}/eddy" COMPONENT program
            FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.openapi.json"
            REGEX "/(abi|comparison|from-asio|glossary|http|lifetimes|sequences|simulator|tour|tutorial)\\.md$" EXCLUDE)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/hooks" "${PROJECT_SOURCE_DIR}/examples/lua"
                      "${PROJECT_SOURCE_DIR}/examples/stack" "${PROJECT_SOURCE_DIR}/examples/streaming"
            DESTINATION "${doc_dir}/eddy/examples" COMPONENT program)
    mend_links(eddy program)
    set(manual "${PROJECT_SOURCE_DIR}/docs/eddy.1")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manual}")
    find_program(EDDY_GZIP gzip)
    mark_as_advanced(EDDY_GZIP)
    if(EDDY_GZIP)
        # Without a time, so that the same page gives the same package.
        execute_process(COMMAND "${EDDY_GZIP}" -9nc "${manual}"
                        OUTPUT_FILE "${PROJECT_BINARY_DIR}/eddy.1.gz" COMMAND_ERROR_IS_FATAL ANY)
        set(manual "${PROJECT_BINARY_DIR}/eddy.1.gz")
    endif()
    install(FILES "${manual}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
    # The service; its program is that of the package, /usr/bin/eddy, and packaging/install.sh names another.
    install(FILES "${PROJECT_SOURCE_DIR}/packaging/eddy.service" DESTINATION lib/systemd/system COMPONENT program)
    install(FILES "${PROJECT_SOURCE_DIR}/packaging/eddy.sysusers" DESTINATION lib/sysusers.d RENAME eddy.conf
            COMPONENT program)
    # Pages of commands and scripts of shells, which the program prints itself.
    set(printed "${PROJECT_BINARY_DIR}/printed")
    set(compress "")
    if(EDDY_GZIP)
        set(compress COMMAND sh -c "exec \"$1\" -9nf \"$2\"/*.1" sh "${EDDY_GZIP}" "${printed}/man1")
    endif()
    add_custom_command(OUTPUT "${printed}/stamp"
        COMMAND "${CMAKE_COMMAND}" -E rm -rf "${printed}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${printed}/man1"
        COMMAND eddy help --man --all "${printed}/man1"
        ${compress}
        COMMAND eddy completion bash > "${printed}/eddy.bash"
        COMMAND eddy completion zsh > "${printed}/eddy.zsh"
        COMMAND eddy completion fish > "${printed}/eddy.fish"
        COMMAND "${CMAKE_COMMAND}" -E touch "${printed}/stamp"
        DEPENDS eddy VERBATIM)
    add_custom_target(eddy_printed ALL DEPENDS "${printed}/stamp")
    install(DIRECTORY "${printed}/man1/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
    install(FILES "${printed}/eddy.bash" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions"
            RENAME eddy COMPONENT program)
    install(FILES "${printed}/eddy.zsh" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions"
            RENAME _eddy COMPONENT program)
    install(FILES "${printed}/eddy.fish" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d"
            COMPONENT program)
endif()
# The jar of the Java module, which `./eddy-dev package` compiles.
set(EDDY_JAR "" CACHE FILEPATH "The Java module's jar, for a package of its own")
if(EDDY_JAR)
    install(FILES "${EDDY_JAR}" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/java" RENAME "eddy-shm-${PROJECT_VERSION}.jar"
            COMPONENT java)
    install(CODE "file(CREATE_LINK eddy-shm-${PROJECT_VERSION}.jar
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/java/eddy-shm.jar\" SYMBOLIC)" COMPONENT java)
    install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${doc_dir}/libeddy-java" RENAME copyright COMPONENT java)
    install(FILES "${PROJECT_SOURCE_DIR}/java/README.md" DESTINATION "${doc_dir}/libeddy-java" COMPONENT java)
    install(FILES "${PROJECT_SOURCE_DIR}/java/src/example/java/io/eddy/example/Greeting.java"
            DESTINATION "${doc_dir}/libeddy-java/examples/io/eddy/example" COMPONENT java)
    mend_links(libeddy-java java)
endif()

# `cpack` in the build folder makes two packages: libeddy-dev, and eddy with the program.
# `./eddy-dev package` does so in a folder of its own, and for /usr, so that Debian's folders for
# libraries are used.
set(CPACK_GENERATOR DEB)
# The domain is one that can have no mailbox (RFC 2606).
set(EDDY_PACKAGE_CONTACT "The Eddy authors <eddy@packages.invalid>" CACHE STRING "Who made the packages: Name <address>")
set(CPACK_PACKAGE_CONTACT "${EDDY_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_VENDOR "Eddy")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# As packaging/debian/changelog has it.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
file(STRINGS "${PROJECT_SOURCE_DIR}/packaging/debian/changelog" newest LIMIT_COUNT 1)
if(NOT newest MATCHES "^eddy \\(${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}\\)")
    message(FATAL_ERROR "packaging/debian/changelog does not begin with version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
endif()
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/debian/stage.cmake")
set(CPACK_COMPONENTS_ALL dev)
# The first line of a description is the synopsis; one for all would stand before each.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libeddy-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# CMake's package file and eddy.pc both ask pkg-config for what the archives link.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "pkgconf, ${debian_depends}")
# The second is for <eddy/http/json.hpp>.
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "g++ (>= 4:13) | clang-19, nlohmann-json3-dev, cmake")
set(CPACK_DEBIAN_DEV_DESCRIPTION
"C++23 library of coroutine I/O on io_uring and epoll
Tasks with structured concurrency and cancellation; streams, listeners,
datagrams, TLS, names, timers, files, pipes and child processes; executors
and strands over many loops; an HTTP/1.1 server and client; codecs for RESP
and HTTP/1.1; and a simulator with virtual time for a user's own tests.
.
This package has the headers and the static libraries, with files for CMake
(find_package(eddy)) and pkg-config, documentation and examples. It needs
GCC 13 or Clang 19, or newer ones.")
if(TARGET eddy)
    list(APPEND CPACK_COMPONENTS_ALL program)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME eddy)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
    # For the user, where systemd-sysusers is not there.
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS adduser)
    # Whom tls:// trusts.
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS ca-certificates)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "logrotate, libeddy-java")
    foreach(script IN ITEMS postinst prerm postrm conffiles)
        list(APPEND CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/packaging/debian/${script}")
    endforeach()
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_STRICT_PERMISSION ON)
    set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
"daemon for network endpoints: caches, sites, proxies and more
Eddy runs a machine's network endpoints and shows them as Docker does with
containers: caches that any Redis client can use; HTTP sites; proxies for TCP,
UDP, HTTP and TLS; servers that pass messages among their clients over TCP,
UDP, WebSocket and Unix sockets; clients of other servers; streams of events
that take over the clients of a web server; programs that are started again
when they fail, and processes of others that are watched. Lua scripts extend
them.
.
One daemon, a service of systemd, keeps them; the command eddy makes, starts,
stops and watches them, and an HTTP interface on a Unix socket does the same
for programs.")
endif()
if(EDDY_JAR)
    list(APPEND CPACK_COMPONENTS_ALL java)
    set(CPACK_DEBIAN_JAVA_PACKAGE_NAME libeddy-java)
    set(CPACK_DEBIAN_JAVA_PACKAGE_SECTION java)
    set(CPACK_DEBIAN_JAVA_PACKAGE_SUGGESTS "eddy, default-jre-headless (>= 2:1.17)")
    set(CPACK_DEBIAN_JAVA_DESCRIPTION
"sockets over shared memory between processes, for Java 17 and newer
Streams between processes of one machine that pass bytes through shared
memory, as java.net.Socket and ServerSocket, channels and non-blocking readers
and writers. The other side is Java, too, a C++ program with libeddy-dev, or a
runtime of the daemon eddy, such as a cache.")
endif()
set(CPACK_STRIP_FILES ON)
include(CPack)
