# Each public header must compile as the first and only include of a file, twice over.
# The object library `check_headers` is no part of `all`; the test of that name builds it.

file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
     "${PROJECT_SOURCE_DIR}/include/eddy/*.hpp")
# <eddy/http/json.hpp> is for programs that have nlohmann-json.
find_path(EDDY_JSON_INCLUDE nlohmann/json.hpp)
mark_as_advanced(EDDY_JSON_INCLUDE)
if(NOT EDDY_JSON_INCLUDE)
    list(FILTER headers EXCLUDE REGEX "http/json\\.hpp$")
endif()
set(sources "")
foreach(header IN LISTS headers)
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" name "${header}")
    set(source "${PROJECT_BINARY_DIR}/check_headers/${name}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <@header@>\n#include <@header@>\n" @ONLY)
    list(APPEND sources "${source}")
endforeach()
if(NOT sources)
    return()
endif()

# No library but Threads is linked: a public header may not lean on a third-party one.
add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${sources})
eddy_target_settings(check_headers)
set_target_properties(check_headers PROPERTIES INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/include")
add_test(NAME check_headers
         COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target check_headers)
# Two builds at once in one folder would disturb each other.
set_tests_properties(check_headers PROPERTIES TIMEOUT 900 LABELS headers RUN_SERIAL ON)
