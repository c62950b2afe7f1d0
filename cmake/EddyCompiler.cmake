# Which compilers are good enough, and the flags for every target of the project.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    message(FATAL_ERROR
        "Eddy needs GCC 13 or newer, or Clang 19 or newer; this is GCC ${CMAKE_CXX_COMPILER_VERSION}. "
        "GCC 12 destroys temporaries in co_await expressions twice. "
        "On Debian 12 run `apt install clang-19 lld-19` and configure with `cmake --preset release` "
        "or with -DCMAKE_CXX_COMPILER=clang++-19.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
    message(FATAL_ERROR
        "Eddy needs Clang 19 or newer, or GCC 13 or newer; this is Clang ${CMAKE_CXX_COMPILER_VERSION}. "
        "Older ones do not accept std::expected of libstdc++. "
        "Run `apt install clang-19 lld-19` and configure with `cmake --preset release` "
        "or with -DCMAKE_CXX_COMPILER=clang++-19.")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    message(WARNING "Eddy is built and tested with Clang and GCC only; this is ${CMAKE_CXX_COMPILER_ID}.")
endif()
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "Eddy runs on Linux only: its loop is made of io_uring and epoll.")
endif()
if(EDDY_COVERAGE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "EDDY_COVERAGE needs Clang and llvm-cov: configure with `cmake --preset coverage`.")
endif()
if(EDDY_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "EDDY_FUZZ needs Clang for libFuzzer: configure with `cmake --preset asan`.")
endif()

# What follows is for our own builds. A parent project that adds us keeps its own flags.
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or Sanitize" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g" CACHE STRING "" FORCE)
# Where time goes a sanitized run below -O1 is several times slower and finds nothing more;
# eddy_compile() names what is not optimised at all.
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1" CACHE STRING "" FORCE)

find_program(EDDY_CCACHE ccache)
if(EDDY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Checkouts in different folders share what they compile, which the prefix map below allows. The
    # sloppiness is what its manual asks for with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros "${EDDY_CCACHE}")
endif()
# Paths in debug information and in messages start at the root of the source, as "./src/...".
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")

# A profile without frame pointers is guesswork, and they cost about a percent.
add_compile_options(-fno-omit-frame-pointer -fno-plt)
if(CMAKE_BUILD_TYPE MATCHES "Debug|Sanitize")
    add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fcolor-diagnostics)
endif()
if(EDDY_SANITIZE)
    add_compile_options("-fsanitize=${EDDY_SANITIZE}" -fno-sanitize-recover=all)
    add_link_options("-fsanitize=${EDDY_SANITIZE}")
    # Every program carries the sanitizers' options, so that none depends on the environment.
    set(EDDY_PROGRAM_SOURCES "${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cpp")
    find_program(EDDY_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer)
    if(EDDY_SYMBOLIZER)
        set_property(SOURCE "${EDDY_PROGRAM_SOURCES}" PROPERTY COMPILE_DEFINITIONS
                     "EDDY_SYMBOLIZER=\"${EDDY_SYMBOLIZER}\"")
    endif()
endif()
# Code that runs once, at the start, stands together: scattered over the program, it had 2.5 MB of the rest read
# into memory.
include(CheckLinkerFlag)
check_linker_flag(CXX "-Wl,-z,keep-text-section-prefix" EDDY_LINKER_GROUPS_CODE)
if(EDDY_LINKER_GROUPS_CODE AND NOT EDDY_SANITIZE)
    add_link_options("-Wl,-z,keep-text-section-prefix")
endif()
if(EDDY_COVERAGE)
    add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
    add_link_options(-fprofile-instr-generate)
endif()
