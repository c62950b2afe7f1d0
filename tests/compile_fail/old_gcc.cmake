# GCC 12, the default of Debian 12, miscompiles co_await: the headers and CMake must refuse it, and say
# so. Tried with the first g++ below 13 that is there.
# Usage: cmake -DROOT=... -DWORK=... -P old_gcc.cmake

set(old "")
set(tried "")
foreach(name g++ g++-12 g++-11)
    find_program(path ${name} NO_CACHE)
    if(path)
        execute_process(COMMAND "${path}" -dumpversion OUTPUT_VARIABLE version
                        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        string(APPEND tried " ${name} is ${version}.")
        if(version VERSION_LESS 13)
            set(old "${path}")
            break()
        endif()
    endif()
    unset(path)
endforeach()
if(NOT old)
    message("Skipped: there is no g++ below 13 to be refused.${tried}")
    return()
endif()

function(check_refused what reason)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status EQUAL 0)
        message(FATAL_ERROR "${what} is not refused with ${old} ${version}:\n${output}")
    endif()
    # CMake breaks its messages into lines.
    string(REGEX REPLACE "[ \n]+" " " said "${output}")
    string(FIND "${said}" "${reason}" place)
    if(place EQUAL -1)
        message(FATAL_ERROR "${what} is refused without \"${reason}\":\n${output}")
    endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(WRITE "${WORK}/user.cpp" "#include <eddy/io/loop.hpp>\n")
check_refused("a header" "Eddy needs GCC 13 or Clang 19"
              "${old}" -std=c++23 -fsyntax-only "-I${ROOT}/include" "${WORK}/user.cpp")
check_refused("a build" "Eddy needs GCC 13 or newer, or Clang 19 or newer; this is GCC"
              "${CMAKE_COMMAND}" -S "${ROOT}" -B "${WORK}/build" -G Ninja "-DCMAKE_CXX_COMPILER=${old}")
message(STATUS "refused: ${old} ${version}")
