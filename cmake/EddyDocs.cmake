# The target `doc`: the library's reference, made by Doxygen from the public headers. It fails where a
# public name of a header has no words of its own.

find_program(EDDY_DOXYGEN doxygen)
if(NOT EDDY_DOXYGEN)
    add_custom_target(doc COMMAND "${CMAKE_COMMAND}" -E echo "Doxygen is missing: run `apt install doxygen`."
                      COMMAND "${CMAKE_COMMAND}" -E false)
    return()
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in" "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
add_custom_target(doc COMMAND "${EDDY_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
                  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" VERBATIM)
