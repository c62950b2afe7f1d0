# Installs the build BUILD into a new folder; builds and runs a user's project with it, by
# find_package() and by pkg-config, with the compiler COMPILER and each newer g++ that is there.
# Usage: cmake -DBUILD=... -DCOMPILER=... -DWORK=... -P run.cmake

function(step)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN} ended with ${status}:\n${output}")
    endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")

set(compilers "${COMPILER}")
foreach(version 13 14 15)
    find_program(gcc_${version} g++-${version})
    if(gcc_${version})
        list(APPEND compilers "${gcc_${version}}")
    else()
        message(STATUS "not tried with g++-${version}, which is not installed")
    endif()
endforeach()

file(GLOB_RECURSE pc "${WORK}/prefix/*/eddy.pc")
cmake_path(GET pc PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} "${pc_dir}")
execute_process(COMMAND pkg-config --cflags --libs eddy OUTPUT_VARIABLE flags
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")

foreach(compiler IN LISTS compilers)
    cmake_path(GET compiler FILENAME name)
    set(folder "${WORK}/${name}")
    step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${folder}" -G Ninja
         "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
    step("${CMAKE_COMMAND}" --build "${folder}")
    step("${folder}/user")
    step("${compiler}" "${CMAKE_CURRENT_LIST_DIR}/main.cpp" -o "${folder}/by-pkg-config" ${flags})
    step("${folder}/by-pkg-config")
    message(STATUS "built and run with ${name}")
endforeach()
