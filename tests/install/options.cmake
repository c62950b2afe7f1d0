# Configures the project with each option that leaves something out: the library which it is about must not be asked
# for, in CMake's package file and in eddy.pc, and the others must be. Nothing is compiled.
# Usage: cmake -DSOURCE=... -DCOMPILER=... -DWORK=... -P options.cmake

cmake_minimum_required(VERSION 3.25)

# What eddy.pc requires for the library's parts.
set(module_of_EDDY_URING liburing)
set(module_of_EDDY_TLS openssl)

function(try name layers)
    set(options "")
    foreach(option IN LISTS ARGN)
        list(APPEND options "-D${option}=OFF")
    endforeach()
    if(layers)
        string(REPLACE "," "\\;" listed "${layers}")
        list(APPEND options "-DEDDY_LAYERS=${listed}")
    endif()
    file(REMOVE_RECURSE "${WORK}/${name}")
    execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/${name}" -G Ninja
                            "-DCMAKE_CXX_COMPILER=${COMPILER}" ${options}
                    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${options} does not configure:\n${output}")
    endif()
    file(READ "${WORK}/${name}/eddy.pc" pc)
    file(READ "${WORK}/${name}/eddy-config.cmake" config)
    foreach(option IN ITEMS EDDY_URING EDDY_TLS)
        foreach(text IN ITEMS "${pc}" "${config}")
            string(FIND "${text}" "${module_of_${option}}" place)
            if(option IN_LIST ARGN AND NOT place EQUAL -1)
                message(FATAL_ERROR "${module_of_${option}} is asked for with ${options}:\n${text}")
            elseif(NOT option IN_LIST ARGN AND NOT layers AND place EQUAL -1)
                message(FATAL_ERROR "${module_of_${option}} is not asked for with ${options}:\n${text}")
            endif()
        endforeach()
    endforeach()
    message(STATUS "configured: ${name}")
endfunction()

try(without_uring "" EDDY_URING)
try(without_tls "" EDDY_TLS)
try(without_scripts "" EDDY_SCRIPTS)
try(without_all "" EDDY_URING EDDY_TLS EDDY_SCRIPTS)
try(two_layers "base,io")
try(library "base,io,wire,net,tls,transport,http")
