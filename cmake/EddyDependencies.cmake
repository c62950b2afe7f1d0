# Every library that Eddy uses, found on this machine and never fetched from a network.
# A missing one stops the configuration with the name of its Debian and Ubuntu package.
#
# Targets for DEPENDS in eddy_layer():
#   PkgConfig::liburing (with EDDY_URING)  PkgConfig::cares  Threads::Threads
#   PkgConfig::openssl (with EDDY_TLS)  PkgConfig::luajit (with EDDY_SCRIPTS)
#   PkgConfig::libedit  eddy_toml (the program's)
#   PkgConfig::zlib  PkgConfig::brotlienc  PkgConfig::brotlidec  PkgConfig::zstd  eddy_mustache  eddy_fmt
#   nlohmann_json::nlohmann_json
# and in developer mode, for TEST_DEPENDS and the benchmarks:
#   GTest::gtest GTest::gtest_main GTest::gmock rapidcheck rapidcheck_gtest
#   benchmark::benchmark eddy_asio eddy_boost PkgConfig::libuv
#   eddy_llhttp (where llhttp is installed)

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
    message(FATAL_ERROR "Eddy needs pkg-config: run `apt install pkg-config`.")
endif()

# eddy_need_config(fmt libfmt-dev) finds a CMake package.
function(eddy_need_config package apt)
    find_package(${package} QUIET CONFIG GLOBAL)
    if(NOT ${package}_FOUND)
        message(FATAL_ERROR "Eddy needs the library ${package}: run `apt install ${apt}` "
                            "(or `./eddy-dev build`, which installs all that is missing).")
    endif()
    set(${package}_VERSION "${${package}_VERSION}" PARENT_SCOPE)
endfunction()

# eddy_need_pkg(liburing liburing>=2.3 liburing-dev) makes the target PkgConfig::liburing. With LINKED
# at the end, the installed library needs it again, at link time.
function(eddy_need_pkg name module apt)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL "${module}")
    if(NOT ${name}_FOUND)
        message(FATAL_ERROR "Eddy needs the library ${module}: run `apt install ${apt}` "
                            "(or `./eddy-dev build`, which installs all that is missing).")
    endif()
    if(ARGV3 STREQUAL LINKED)
        set_property(GLOBAL APPEND PROPERTY EDDY_LINKED_MODULES "${name} ${module} ${apt}")
    endif()
endfunction()

# What the chosen layers need, and no more.
if(EDDY_URING)
    eddy_need_pkg(liburing "liburing>=2.3" liburing-dev LINKED)
endif()
if(net IN_LIST EDDY_LAYERS)
    eddy_need_pkg(cares "libcares>=1.18" libc-ares-dev LINKED)
endif()
if(EDDY_TLS AND tls IN_LIST EDDY_LAYERS)
    eddy_need_pkg(openssl "openssl>=3.0" libssl-dev LINKED)
endif()
if(http IN_LIST EDDY_LAYERS)
    eddy_need_pkg(zlib "zlib>=1.2.11" zlib1g-dev LINKED)
    eddy_need_pkg(brotlienc "libbrotlienc>=1.0" libbrotli-dev LINKED)
    eddy_need_pkg(brotlidec "libbrotlidec>=1.0" libbrotli-dev LINKED)
    eddy_need_pkg(zstd "libzstd>=1.4" libzstd-dev LINKED)
    # A header without a package file. Nothing of it is left once the library is built.
    find_path(EDDY_MUSTACHE_INCLUDE kainjow/mustache.hpp)
    if(NOT EDDY_MUSTACHE_INCLUDE)
        message(FATAL_ERROR "Eddy needs the library mustache: run `apt install libkainjow-mustache-dev` "
                            "(or `./eddy-dev build`, which installs all that is missing).")
    endif()
    add_library(eddy_mustache INTERFACE)
    target_include_directories(eddy_mustache SYSTEM INTERFACE "${EDDY_MUSTACHE_INCLUDE}")
endif()
if(EDDY_SCRIPTS AND lua IN_LIST EDDY_LAYERS)
    eddy_need_pkg(luajit "luajit>=2.1" libluajit-5.1-dev)
endif()
if(cli IN_LIST EDDY_LAYERS)
    eddy_need_pkg(libedit libedit libedit-dev)
    # Headers alone: Debian's package file names its shared library, which nothing needs.
    find_path(EDDY_TOML_INCLUDE toml++/toml.h)
    if(NOT EDDY_TOML_INCLUDE)
        message(FATAL_ERROR "Eddy needs the library toml++: run `apt install libtomlplusplus-dev` "
                            "(or `./eddy-dev build`, which installs all that is missing).")
    endif()
    add_library(eddy_toml INTERFACE)
    target_include_directories(eddy_toml SYSTEM INTERFACE "${EDDY_TOML_INCLUDE}")
endif()
if(runtime IN_LIST EDDY_LAYERS)
    eddy_need_config(fmt libfmt-dev)
    eddy_need_config(nlohmann_json nlohmann-json3-dev)
    # {fmt} of headers alone is compiled with each file that formats: a third of such a file's time. So it is
    # compiled once, in the version for which cmake/fmt.cpp is written. Debian's library of it is a shared one.
    if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
        add_library(eddy_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt.cpp")
        target_compile_features(eddy_fmt PUBLIC cxx_std_20)
        set_target_properties(eddy_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
        get_target_property(include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
        target_include_directories(eddy_fmt SYSTEM PUBLIC "${include}")
    else()
        add_library(eddy_fmt INTERFACE)
        target_link_libraries(eddy_fmt INTERFACE fmt::fmt-header-only)
    endif()
endif()

if(EDDY_TESTS OR EDDY_FUZZ OR EDDY_CHECK_HEADERS)
    find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
    if(NOT Python3_FOUND)
        message(FATAL_ERROR "Eddy's tests need Python 3.9 or newer: run `apt install python3`.")
    endif()
endif()
if(EDDY_TESTS)
    eddy_need_config(GTest "libgtest-dev libgmock-dev")
    eddy_need_config(rapidcheck librapidcheck-dev)
endif()
if(EDDY_BENCH)
    eddy_need_config(benchmark libbenchmark-dev)
    # Asio is a header without a package file in Debian 12; the benchmarks use it as a rival only.
    find_path(EDDY_ASIO_INCLUDE asio.hpp)
    if(NOT EDDY_ASIO_INCLUDE)
        message(FATAL_ERROR "Eddy's benchmarks need Asio: run `apt install libasio-dev`, "
                            "or configure with -DEDDY_BENCH=OFF.")
    endif()
    add_library(eddy_asio INTERFACE)
    target_include_directories(eddy_asio SYSTEM INTERFACE "${EDDY_ASIO_INCLUDE}")
    target_compile_definitions(eddy_asio INTERFACE ASIO_STANDALONE)
    target_link_libraries(eddy_asio INTERFACE Threads::Threads)
    find_path(EDDY_BOOST_INCLUDE boost/asio.hpp)
    if(NOT EDDY_BOOST_INCLUDE)
        message(FATAL_ERROR "Eddy's benchmarks need Boost.Asio: run `apt install libboost-dev`, "
                            "or configure with -DEDDY_BENCH=OFF.")
    endif()
    add_library(eddy_boost INTERFACE)
    target_include_directories(eddy_boost SYSTEM INTERFACE "${EDDY_BOOST_INCLUDE}")
    target_link_libraries(eddy_boost INTERFACE Threads::Threads)
    eddy_need_pkg(libuv "libuv>=1.40" libuv1-dev)
endif()

# A second opinion for tests, fuzz targets and benchmarks: a library in newer systems (libllhttp-dev), sources in
# Debian 12 (node-llhttp). Nothing but these needs it, so it may be missing.
if(EDDY_TESTS OR EDDY_FUZZ OR EDDY_BENCH)
    find_path(EDDY_LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include PATH_SUFFIXES llhttp)
    find_library(EDDY_LLHTTP_LIBRARY llhttp)
    find_path(EDDY_LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH)
    if(EDDY_LLHTTP_INCLUDE AND EDDY_LLHTTP_LIBRARY)
        add_library(eddy_llhttp INTERFACE)
        target_link_libraries(eddy_llhttp INTERFACE "${EDDY_LLHTTP_LIBRARY}")
    elseif(EDDY_LLHTTP_INCLUDE AND EDDY_LLHTTP_SOURCES)
        if(NOT CMAKE_C_COMPILER)
            string(REGEX REPLACE "clang\\+\\+" "clang" CMAKE_C_COMPILER "${CMAKE_CXX_COMPILER}")
            string(REGEX REPLACE "g\\+\\+" "gcc" CMAKE_C_COMPILER "${CMAKE_C_COMPILER}")
        endif()
        enable_language(C)
        add_library(eddy_llhttp STATIC
            "${EDDY_LLHTTP_SOURCES}/api.c" "${EDDY_LLHTTP_SOURCES}/http.c" "${EDDY_LLHTTP_SOURCES}/llhttp.c")
        # As fast as it can be, whatever the preset: it is measured beside Eddy's parser.
        target_compile_options(eddy_llhttp PRIVATE -w -O3)
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
            target_compile_options(eddy_llhttp PRIVATE -msse4.2)
        endif()
        target_compile_definitions(eddy_llhttp PUBLIC LLHTTP_STRICT_MODE=1)
    else()
        message(STATUS "llhttp is not installed (`apt install node-llhttp`): nothing is compared with it.")
    endif()
    if(TARGET eddy_llhttp)
        get_target_property(type eddy_llhttp TYPE)
        set(scope PUBLIC)
        if(type STREQUAL "INTERFACE_LIBRARY")
            set(scope INTERFACE)
        endif()
        target_include_directories(eddy_llhttp SYSTEM ${scope} "${EDDY_LLHTTP_INCLUDE}")
        target_compile_definitions(eddy_llhttp INTERFACE EDDY_LLHTTP)
    endif()
endif()
