# Installs the build BUILD into a new folder and builds, links and runs a user's project with it.
# Usage: cmake -DBUILD=... -DCOMPILER=... -DWORK=... -P run.cmake

function(step)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN} ended with ${status}:\n${output}")
    endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" -G Ninja
     "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
step("${CMAKE_COMMAND}" --build "${WORK}/build")
step("${WORK}/build/user")
