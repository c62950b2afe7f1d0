# The target `doc`: the library's reference, made by Doxygen from the public headers. It fails where
# something public has no words of its own, and so does the test of the same name.

find_program(EDDY_DOXYGEN doxygen)
if(EDDY_DOXYGEN)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in" "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
    add_custom_target(doc COMMAND "${EDDY_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
                      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" VERBATIM)
else()
    add_custom_target(doc COMMAND "${CMAKE_COMMAND}" -E echo "Doxygen is missing: run `apt install doxygen`."
                      COMMAND "${CMAKE_COMMAND}" -E false)
endif()

# The headers are the same for every build.
if(NOT EDDY_TESTS OR EDDY_SANITIZE)
    return()
endif()
if(EDDY_DOXYGEN)
    add_test(NAME doc COMMAND "${EDDY_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
else()
    add_test(NAME doc COMMAND "${CMAKE_COMMAND}" -E echo
             "Skipped: Doxygen is missing (`apt install doxygen`).")
    set_tests_properties(doc PROPERTIES SKIP_REGULAR_EXPRESSION "^Skipped: ")
endif()
set_tests_properties(doc PROPERTIES TIMEOUT 120 LABELS integration)
