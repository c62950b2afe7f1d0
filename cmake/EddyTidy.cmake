# The check of the code's manners, and the tests of the tools, as tests of ctest's.

foreach(test tidy tidy_test run_tests_test dev_test)
    if(EXISTS "${PROJECT_SOURCE_DIR}/tools/${test}.py")
        add_test(NAME ${test} COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/${test}.py"
                 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
        set_tests_properties(${test} PROPERTIES TIMEOUT 60 LABELS tidy
                             ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
    endif()
endforeach()
