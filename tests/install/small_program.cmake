# Builds the program without io_uring, TLS and scripts, and runs whole-system tests with it; those of what it
# lacks are skipped.
# Usage: cmake -DSOURCE=... -DCOMPILER=... -DWORK=... -P small_program.cmake

set(build "${WORK}/build")
foreach(arguments IN ITEMS
        "-S;${SOURCE};-B;${build};-G;Ninja;-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_BUILD_TYPE=Release;-DEDDY_URING=OFF;-DEDDY_TLS=OFF;-DEDDY_SCRIPTS=OFF"
        "--build;${build};--target;eddy")
    execute_process(COMMAND "${CMAKE_COMMAND}" ${arguments} RESULT_VARIABLE status OUTPUT_VARIABLE output
                    ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "cmake ${arguments} ended with ${status}:\n${output}")
    endif()
endforeach()
set(ENV{EDDY_BINARY} "${build}/eddy")
execute_process(COMMAND "${build}/eddy" version OUTPUT_VARIABLE told)
if(NOT told MATCHES "\nbuilt with: no io_uring, TLS or scripts\n")
    message(FATAL_ERROR "It says of itself:\n${told}")
endif()
find_program(python python3 REQUIRED)
foreach(script IN ITEMS demo_test flags_test cache_dump_test cache_guard_test db_test lifecycle_test)
    execute_process(COMMAND "${python}" -B "${SOURCE}/tests/${script}.py" RESULT_VARIABLE status
                    OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${script}.py ended with ${status}:\n${output}")
    endif()
endforeach()
