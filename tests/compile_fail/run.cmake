# Compiles SOURCE twice with COMPILER: as it is, which must succeed, and with EDDY_REFUSED defined,
# which must fail for the reason that its line "// Refused: REGEX" gives. So a case that stopped
# compiling for another reason is seen, too. PCH, where given, has the headers precompiled for COMPILER, a Clang.

file(STRINGS "${SOURCE}" lines REGEX "^// Refused: ")
list(LENGTH lines count)
if(NOT count EQUAL 1)
    message(FATAL_ERROR "${SOURCE} needs one line '// Refused: REGEX'")
endif()
string(REPLACE "// Refused: " "" reason "${lines}")

set(command "${COMPILER}" -std=c++23 -fsyntax-only -Wall -Wextra -Werror "-I${INCLUDE}")
if(PCH)
    list(APPEND command -include-pch "${PCH}")
endif()

execute_process(COMMAND ${command} "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "the good half of ${SOURCE} does not compile:\n${said}")
endif()
execute_process(COMMAND ${command} -DEDDY_REFUSED "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiles, though it is a mistake")
endif()
if(NOT said MATCHES "${reason}")
    message(FATAL_ERROR "${SOURCE} fails for another reason than \"${reason}\":\n${said}")
endif()
