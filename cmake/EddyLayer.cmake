# The functions that layers, fuzz targets, benchmarks and whole-system tests are declared with.
#
# A layer is a folder under src/ with one CMakeLists.txt, which calls
#
#   eddy_layer(net
#       SOURCES tcp.cpp udp.cpp dns.cpp        # paths relative to src/net
#       TESTS   tcp_test.cpp dns_test.cpp      # GoogleTest, into one program net_test
#       LAYERS  base io                        # the layers it includes
#       DEPENDS PkgConfig::cares eddy_fmt      # see cmake/EddyDependencies.cmake
#       TEST_DEPENDS rapidcheck rapidcheck_gtest        # optional, for the tests alone
#       TEST_LAYERS transport                  # optional; must stand before this layer
#       PRECOMPILE io/loop.hpp                 # optional: headers of ours that most of its SOURCES include
#       TEST_PRECOMPILE net/testing.hpp        # optional: the same of its TESTS
#       OF transport                           # optional: this library is a part of that layer
#       PRECOMPILE_AS transport)               # optional: shares the headers precompiled for that library and its tests
#
# This makes the static library eddy_net with the alias eddy::net, and in developer mode the
# program net_test, each of whose tests is one of ctest's. A layer of headers only has no SOURCES.
# Include public headers as <eddy/net/tcp.hpp> and private ones as "net/name.hpp".
# A new file needs no more than its name in SOURCES or TESTS; headers are not listed.
#
# The other functions:
#
#   eddy_program(eddy SOURCES main.cpp LAYERS cli daemon)      -> <build dir>/eddy, installed
#   eddy_fuzz(resp SOURCES resp_fuzz.cpp LAYERS wire)          -> <build dir>/fuzz/resp
#   eddy_bench(cache SOURCES cache_bench.cpp LAYERS cache)     -> <build dir>/bench/cache
#   eddy_gtest(stack_test SOURCES stack_test.cpp LAYERS transport LABEL integration)
#   eddy_integration_test(cli_test.py)                         -> ctest `integration/cli_test`

include(GNUInstallDirs)
include(GoogleTest)  # here, so that what it sets is known in all folders

# A test that waits for longer than this has hung, also on a machine that compiles meanwhile. Sanitizers make work up
# to twenty times as slow.
set(EDDY_TEST_TIMEOUT_S 180)
if(EDDY_SANITIZE)
    set(EDDY_TEST_TIMEOUT_S 360)
endif()
# A script of the whole program is dozens of tests.
math(EXPR EDDY_SCRIPT_TIMEOUT_S "4 * ${EDDY_TEST_TIMEOUT_S}")

# Settings common to all our targets.
function(eddy_target_settings target)
    target_compile_features(${target} PUBLIC cxx_std_23)
    set_target_properties(${target} PROPERTIES
        CXX_EXTENSIONS OFF CXX_SCAN_FOR_MODULES OFF POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    if(EDDY_DEVELOPER)
        target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Werror)
    endif()
    if(EDDY_LTO)
        set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
    endif()
endfunction()

# The layers whose own tests have no second thread: the thread sanitizer would find nothing in them.
# Those of cache and http that have are programs of their own.
set(EDDY_LAYERS_OF_ONE_THREAD wire lua http cache cli)
# The layers that hand bytes on and are seldom where time goes. Most of their files read JSON.
set(EDDY_PLAIN_LAYERS runtime daemon cli)
# Those of them through which no client's bytes go.
set(EDDY_COLD_LAYERS daemon cli)

# How a library or a test of `layer` is compiled. Optimising takes as long as everything else that a
# compiler does to a file, with sanitizers twice as long. So what gains little by it goes without:
# all tests, with sanitizers the plain layers, and with the thread sanitizer those whose own tests it leaves out. A test at -O0 takes half of the compiler's time at -O3; -O1 and
# -Og save next to nothing, since most of it is inlining. The layers themselves stay at -O3, as they are
# released. Only their templates and inline functions that a test instantiates are the test's, and programs
# built by users without optimisation have them so, too.
# The headers OWN of the layer, and what they need of the libraries DEPENDS, are precompiled with the others, under the
# name AS, which several libraries of a layer may share.
function(eddy_compile target kind layer)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "AS" "OWN;DEPENDS")
    if(NOT arg_AS)
        set(arg_AS ${layer})
    endif()
    # Libraries of ours have no headers to find.
    list(FILTER arg_DEPENDS EXCLUDE REGEX "^eddy::")
    set(variant "")
    set(headers "")
    set(libraries "")
    if(kind STREQUAL "test")
        list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
        list(APPEND libraries GTest::gmock GTest::gtest)
        set(variant unoptimised_)
    elseif(EDDY_SANITIZE AND layer IN_LIST EDDY_PLAIN_LAYERS)
        set(variant unoptimised_)
    elseif(EDDY_SANITIZE STREQUAL "thread" AND layer IN_LIST EDDY_LAYERS_OF_ONE_THREAD)
        set(variant unoptimised_)
    elseif(layer IN_LIST EDDY_COLD_LAYERS)
        target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
        set(variant cold_)
    endif()
    if(variant STREQUAL "unoptimised_")
        target_compile_options(${target} PRIVATE -O0)
    endif()
    if(layer IN_LIST EDDY_PLAIN_LAYERS)
        string(APPEND variant plain_)
        list(APPEND headers <fmt/format.h> <nlohmann/json.hpp>)
        list(APPEND libraries eddy_fmt nlohmann_json::nlohmann_json)
    endif()
    if(arg_OWN)
        string(PREPEND variant ${arg_AS}_)
        list(APPEND headers ${arg_OWN})
        list(APPEND libraries ${arg_DEPENDS})
    endif()
    eddy_precompile(${target} ${variant}${kind} HEADERS ${headers} DEPENDS ${libraries})
endfunction()

# Links `layers`, or sets `result` to those which are absent from this build.
function(eddy_absent_layers result)
    set(absent "")
    foreach(layer IN LISTS ARGN)
        if(NOT TARGET eddy_${layer})
            list(APPEND absent ${layer})
        endif()
    endforeach()
    set(${result} "${absent}" PARENT_SCOPE)
endfunction()

# A target is left out, with a warning, when EDDY_LAYERS leaves out a layer that it needs.
macro(eddy_skip_without_layers what)
    eddy_absent_layers(absent ${ARGN})
    if(absent)
        message(WARNING "${what} is left out: it needs the layers ${absent}, which are not built.")
        return()
    endif()
endmacro()

function(eddy_layer layer)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "OF;PRECOMPILE_AS"
                          "SOURCES;TESTS;LAYERS;DEPENDS;TEST_DEPENDS;TEST_LAYERS;PRECOMPILE;TEST_PRECOMPILE")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "eddy_layer(${layer}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
    endif()
    eddy_skip_without_layers("The layer ${layer}" ${arg_LAYERS})
    if(NOT arg_OF)
        set(arg_OF ${layer})
    endif()
    if(NOT arg_PRECOMPILE_AS)
        set(arg_PRECOMPILE_AS ${layer})
    endif()

    set(target eddy_${layer})
    set(public INTERFACE)
    if(arg_SOURCES)
        set(public PUBLIC)
        add_library(${target} STATIC ${arg_SOURCES})
        eddy_target_settings(${target})
        if(EDDY_FUZZ)
            target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
        endif()
        eddy_compile(${target} library ${arg_OF} AS ${arg_PRECOMPILE_AS}
                     OWN ${arg_PRECOMPILE} DEPENDS ${arg_DEPENDS})
    else()
        add_library(${target} INTERFACE)
        target_compile_features(${target} INTERFACE cxx_std_23)
    endif()
    add_library(eddy::${layer} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer})
    target_include_directories(${target} ${public}
        "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    foreach(below IN LISTS arg_LAYERS)
        target_link_libraries(${target} ${public} eddy_${below})
    endforeach()

    foreach(dependency IN LISTS arg_DEPENDS)
        if(NOT TARGET ${dependency})
            message(FATAL_ERROR "eddy_layer(${layer}): there is no target ${dependency}; "
                                "cmake/EddyDependencies.cmake lists those there are.")
        endif()
        # Headers alone leave nothing to link, so an installed copy need not find them again.
        get_target_property(links ${dependency} INTERFACE_LINK_LIBRARIES)
        get_target_property(type ${dependency} TYPE)
        if(type STREQUAL "INTERFACE_LIBRARY" AND NOT links)
            set(dependency "$<BUILD_INTERFACE:${dependency}>")
        endif()
        if(arg_SOURCES)
            target_link_libraries(${target} PRIVATE "${dependency}")
        else()
            target_link_libraries(${target} INTERFACE "${dependency}")
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY EDDY_BUILT_LAYERS ${layer})

    if(EDDY_SANITIZE STREQUAL "thread" AND arg_OF IN_LIST EDDY_LAYERS_OF_ONE_THREAD)
        set(arg_TESTS "")
    endif()
    if(EDDY_TESTS AND arg_TESTS)
        eddy_absent_layers(absent ${arg_TEST_LAYERS})
        if(absent)
            message(FATAL_ERROR "eddy_layer(${layer}): TEST_LAYERS ${absent} do not stand before it.")
        endif()
        eddy_gtest(${layer}_test SOURCES ${arg_TESTS} LAYERS ${layer} ${arg_TEST_LAYERS} OF ${arg_OF}
                   DEPENDS ${arg_DEPENDS} ${arg_TEST_DEPENDS}
                   PRECOMPILE ${arg_TEST_PRECOMPILE} PRECOMPILE_AS ${arg_PRECOMPILE_AS})
    endif()
endfunction()

# One GoogleTest program, each of whose tests becomes a test of ctest's. The target gtests builds all.
if(EDDY_TESTS)
    add_custom_target(gtests)
endif()
function(eddy_gtest name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;OF;PRECOMPILE_AS" "SOURCES;LAYERS;DEPENDS;PRECOMPILE")
    eddy_skip_without_layers("The test ${name}" ${arg_LAYERS})
    if(NOT arg_LABEL)
        set(arg_LABEL unit)
    endif()
    add_executable(${name} ${arg_SOURCES} ${EDDY_PROGRAM_SOURCES})
    eddy_target_settings(${name})
    if(NOT arg_OF)
        list(GET arg_LAYERS 0 arg_OF)
    endif()
    eddy_compile(${name} test ${arg_OF} AS ${arg_PRECOMPILE_AS} OWN ${arg_PRECOMPILE} DEPENDS ${arg_DEPENDS})
    list(TRANSFORM arg_LAYERS PREPEND eddy::)
    target_link_libraries(${name} PRIVATE ${arg_LAYERS} ${arg_DEPENDS}
                          GTest::gmock GTest::gtest GTest::gtest_main)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    add_dependencies(gtests ${name})
    # Listing the tests when ctest starts, not while building, keeps a crash in a static
    # initialiser from failing the build.
    gtest_discover_tests(${name}
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        TEST_PREFIX "${name}/"
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        PROPERTIES TIMEOUT ${EDDY_TEST_TIMEOUT_S} LABELS ${arg_LABEL})
endfunction()

function(eddy_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LAYERS;DEPENDS")
    eddy_skip_without_layers("The program ${name}" ${arg_LAYERS})
    add_executable(${name} ${arg_SOURCES} ${EDDY_PROGRAM_SOURCES})
    eddy_target_settings(${name})
    list(TRANSFORM arg_LAYERS PREPEND eddy::)
    target_link_libraries(${name} PRIVATE ${arg_LAYERS} ${arg_DEPENDS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
    if(EDDY_INSTALL)
        install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
    endif()
endfunction()

# A libFuzzer target, which sees what its input reaches in the layers. ctest replays the corpus
# fuzz/corpus/<name> and then fuzzes for a moment, with the words of fuzz/dictionary/<name>.dict if
# there are any.
set(EDDY_FUZZ_SECONDS 10 CACHE STRING "How long ctest runs each fuzz target")
function(eddy_fuzz name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LAYERS;DEPENDS")
    if(NOT EDDY_FUZZ)
        return()
    endif()
    eddy_skip_without_layers("The fuzz target ${name}" ${arg_LAYERS})
    if(NOT arg_SOURCES)
        set(arg_SOURCES ${name}_fuzz.cpp)
    endif()
    set(target fuzz_${name})
    add_executable(${target} ${arg_SOURCES} ${EDDY_PROGRAM_SOURCES})
    eddy_target_settings(${target})
    list(TRANSFORM arg_LAYERS PREPEND eddy::)
    target_link_libraries(${target} PRIVATE ${arg_LAYERS} ${arg_DEPENDS})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    add_dependencies(fuzzers ${target})

    # New inputs go to a folder of the build; only minimised ones are worth keeping in the corpus.
    set(corpus "${PROJECT_SOURCE_DIR}/fuzz/corpus/${name}")
    set(found "${PROJECT_BINARY_DIR}/fuzz/found/${name}")
    file(MAKE_DIRECTORY "${found}")
    if(EXISTS "${corpus}")
        add_test(NAME "replay/${name}" COMMAND ${target} -runs=0 "${corpus}")
        set_tests_properties("replay/${name}" PROPERTIES TIMEOUT 300 LABELS replay)
    else()
        set(corpus "")
    endif()
    set(dictionary "${PROJECT_SOURCE_DIR}/fuzz/dictionary/${name}.dict")
    if(EXISTS "${dictionary}")
        set(dictionary "-dict=${dictionary}")
    else()
        set(dictionary "")
    endif()
    add_test(NAME "fuzz/${name}" COMMAND ${target} "-max_total_time=${EDDY_FUZZ_SECONDS}"
             -timeout=30 -rss_limit_mb=2048 -print_final_stats=1 ${dictionary}
             "-artifact_prefix=${PROJECT_BINARY_DIR}/fuzz/${name}-" "${found}" ${corpus})
    math(EXPR timeout_s "${EDDY_FUZZ_SECONDS} * 2 + 120")
    set_tests_properties("fuzz/${name}" PROPERTIES TIMEOUT ${timeout_s} LABELS fuzz)
endfunction()
if(EDDY_FUZZ)
    add_custom_target(fuzzers)
endif()

function(eddy_bench name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LAYERS;DEPENDS")
    if(NOT EDDY_BENCH)
        return()
    endif()
    eddy_skip_without_layers("The benchmark ${name}" ${arg_LAYERS})
    set(target bench_${name})
    add_executable(${target} ${arg_SOURCES} ${EDDY_PROGRAM_SOURCES})
    eddy_target_settings(${target})
    list(TRANSFORM arg_LAYERS PREPEND eddy::)
    target_link_libraries(${target} PRIVATE ${arg_LAYERS} ${arg_DEPENDS})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endfunction()

# A Python script that drives the program from outside. It finds it in $EDDY_BINARY.
function(eddy_integration_test script)
    cmake_path(GET script STEM name)
    if(NOT TARGET eddy)
        return()
    endif()
    add_test(NAME "integration/${name}"
             COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/${script}"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties("integration/${name}" PROPERTIES
        TIMEOUT ${EDDY_SCRIPT_TIMEOUT_S} LABELS integration
        ENVIRONMENT "EDDY_BINARY=$<TARGET_FILE:eddy>;PYTHONDONTWRITEBYTECODE=1;EDDY_SCRIPT_TIMEOUT_S=${EDDY_SCRIPT_TIMEOUT_S}")
endfunction()
