# Precompiled headers for our own builds: the standard library, GoogleTest and JSON cost most files
# more to read than everything of ours. Builds for users, as packages are, go without, and so find
# what a file of the library forgot to include.
#
# A precompiled header serves only targets that are compiled by the same flags, so there is one for
# each kind. A layer whose files mostly include the same headers of ours has one of its own with them:
# reading these, and making what they instantiate, is more than half of the time of such a file.

option(EDDY_PRECOMPILE "Precompile the headers that most files include" ${EDDY_DEVELOPER})
if(NOT PROJECT_IS_TOP_LEVEL OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(EDDY_PRECOMPILE OFF)
endif()
if(EDDY_PRECOMPILE)
    # ccache takes precompiled headers that hold no time of their making.
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

set(EDDY_PRECOMPILED
    <algorithm> <array> <atomic> <bit> <cerrno> <charconv> <chrono> <cmath> <coroutine> <cstddef>
    <cstdint> <cstdio> <cstdlib> <cstring> <deque> <exception> <expected> <filesystem> <fstream>
    <functional> <iostream> <iterator> <limits> <map> <memory> <memory_resource> <mutex> <new>
    <optional> <random> <set> <span> <sstream> <stop_token> <string> <string_view> <system_error>
    <thread> <unordered_map> <utility> <variant> <vector>)

# eddy_precompile(TARGET KIND [HEADERS HEADER...] [DEPENDS LIBRARY...]): TARGET reads the headers
# above and these, which the libraries need, from one file, which all targets of its KIND share. A HEADER is
# <library.hpp>, or layer/own.hpp below src/ or include/eddy/.
function(eddy_precompile target kind)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "HEADERS;DEPENDS")
    if(NOT EDDY_PRECOMPILE)
        return()
    endif()
    set(host eddy_precompiled_${kind})
    if(NOT TARGET ${host})
        set(source "${PROJECT_BINARY_DIR}/${host}.cpp")
        file(GENERATE OUTPUT "${source}" CONTENT "int main() {}\n")
        get_target_property(type ${target} TYPE)
        if(type STREQUAL "EXECUTABLE")
            add_executable(${host} EXCLUDE_FROM_ALL "${source}")
            # What headers of ours declare is in libraries that are not built yet, and is not called.
            target_link_options(${host} PRIVATE -Wl,--unresolved-symbols=ignore-all)
        else()
            add_library(${host} STATIC EXCLUDE_FROM_ALL "${source}")
        endif()
        eddy_target_settings(${host})
        get_target_property(options ${target} COMPILE_OPTIONS)
        set_target_properties(${host} PROPERTIES COMPILE_OPTIONS "${options}")
        target_include_directories(${host} PRIVATE "${PROJECT_SOURCE_DIR}/include")
        target_link_libraries(${host} PRIVATE ${arg_DEPENDS})
        set(headers ${EDDY_PRECOMPILED})
        foreach(header IN LISTS arg_HEADERS)
            if(header MATCHES "^<")
                list(APPEND headers "${header}")
            elseif(EXISTS "${PROJECT_SOURCE_DIR}/src/${header}")
                list(APPEND headers "${PROJECT_SOURCE_DIR}/src/${header}")
            elseif(EXISTS "${PROJECT_SOURCE_DIR}/include/eddy/${header}")
                list(APPEND headers "${PROJECT_SOURCE_DIR}/include/eddy/${header}")
            else()
                message(FATAL_ERROR "There is no header ${header} to precompile for ${target}.")
            endif()
        endforeach()
        target_precompile_headers(${host} PRIVATE ${headers})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${host})
endfunction()
