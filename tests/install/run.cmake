# Installs a build into a new folder; builds and runs a user's project with it, by find_package() and
# by pkg-config, with the compiler COMPILER and each newer g++ that is there; a project that asks for
# another version, or for a component that there is not, must be refused; the projects that pages of docs/
# show are built and run as they stand there; the pages' links must lead somewhere. With DEB the build's Debian
# package is tried in the same way.
# Usage: cmake -DBUILD=... [-DDEB=ON] -DCOMPILER=... -DWORK=... -P run.cmake

function(step)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN} ended with ${status}:\n${output}")
    endif()
endfunction()

set(compilers "${COMPILER}")
foreach(version 13 14 15)
    find_program(gcc_${version} g++-${version})
    if(gcc_${version})
        list(APPEND compilers "${gcc_${version}}")
    else()
        message(STATUS "not tried with g++-${version}, which is not installed")
    endif()
endforeach()

# Nothing of what is installed may name this machine's folders.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
cmake_path(GET root PARENT_PATH root)
function(check_paths folder)
    execute_process(COMMAND grep -rlF "${root}/" "${folder}" OUTPUT_VARIABLE found RESULT_VARIABLE status)
    if(NOT status EQUAL 1)
        message(FATAL_ERROR "These name ${root}:\n${found}")
    endif()
endfunction()

function(try_prefix prefix)
    file(GLOB_RECURSE pc "${prefix}/*/eddy.pc")
    cmake_path(GET pc PARENT_PATH pc_dir)
    set(ENV{PKG_CONFIG_PATH} "${pc_dir}")
    execute_process(COMMAND pkg-config --cflags --libs eddy OUTPUT_VARIABLE flags
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    foreach(compiler IN LISTS compilers)
        cmake_path(GET compiler FILENAME name)
        set(folder "${prefix}-${name}")
        step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${folder}" -G Ninja
             "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}")
        step("${CMAKE_COMMAND}" --build "${folder}")
        step("${folder}/user")
        step("${folder}/net_only")
        step("${compiler}" "${CMAKE_CURRENT_LIST_DIR}/main.cpp" -o "${folder}/by-pkg-config" ${flags})
        step("${folder}/by-pkg-config")
        message(STATUS "built and run with ${name}")
    endforeach()
endfunction()

# The project of a page of docs/: the CMakeLists.txt that it shows, and the example that it quotes first
# (tools/tidy.py compares the quotations), as NAME.cpp in an empty folder and by the command of the page; then its test.
# IN_ORDER makes NAME.cpp of what the page shows of that example, in the page's order: as its reader types it.
# The other programs that the page quotes are built beside it, in the same way.
function(try_page prefix page name)
    cmake_parse_arguments(PARSE_ARGV 3 its "IN_ORDER" "" "")
    find_program(python python3 REQUIRED)
    file(READ "${root}/docs/${page}" text)
    string(REGEX MATCH "\n    cmake_minimum_required[^\n]*\n(    [^\n]*\n)+" lists "${text}")
    string(REGEX MATCH "<!-- (examples/[a-z_]+\\.cpp) -->" quoted "${text}")
    if(NOT lists OR NOT quoted)
        message(FATAL_ERROR "docs/${page} shows no CMakeLists.txt, or no example")
    endif()
    set(program "${CMAKE_MATCH_1}")
    set(folder "${WORK}/${page}")
    string(REPLACE "\n    " "\n" lists "${lists}")
    file(MAKE_DIRECTORY "${folder}")
    if(its_IN_ORDER)
        execute_process(COMMAND "${python}" -B "${CMAKE_CURRENT_LIST_DIR}/page_program.py" "${root}/docs/${page}" "${program}"
                        OUTPUT_FILE "${folder}/${name}.cpp" COMMAND_ERROR_IS_FATAL ANY)
    else()
        file(COPY_FILE "${root}/${program}" "${folder}/${name}.cpp")
    endif()
    string(REGEX MATCHALL "<!-- examples/[a-z_]+\\.cpp -->" all "${text}")
    list(REMOVE_DUPLICATES all)
    foreach(quoted IN LISTS all)
        string(REGEX REPLACE ".*/([a-z_]+)\\.cpp.*" "\\1" other "${quoted}")
        file(STRINGS "${root}/examples/${other}.cpp" tls REGEX "eddy/tls/")
        if("examples/${other}.cpp" STREQUAL "${program}" OR "${other}" STREQUAL "${name}")
            continue()
        elseif(tls AND NOT EXISTS "${prefix}/include/eddy/tls")
            continue()
        endif()
        file(COPY_FILE "${root}/examples/${other}.cpp" "${folder}/${other}.cpp")
        string(APPEND lists "add_executable(${other} ${other}.cpp)\ntarget_link_libraries(${other} PRIVATE eddy::eddy)\n")
    endforeach()
    file(WRITE "${folder}/CMakeLists.txt" "${lists}")
    step("${CMAKE_COMMAND}" -S "${folder}" -B "${folder}/build" "-DCMAKE_CXX_COMPILER=${COMPILER}"
         "-DCMAKE_PREFIX_PATH=${prefix}")
    step("${CMAKE_COMMAND}" --build "${folder}/build")
    step("${python}" -B "${root}/examples/${name}_test.py" "${folder}/build/${name}")
    message(STATUS "built and run as docs/${page} says")
endfunction()

# Each link of an installed page of that package, of those below `folder` of it, leads to an installed file, unless it
# is to a part of the source that is not installed in that form.
function(check_links prefix package folder)
    file(GLOB_RECURSE pages "${prefix}/*/doc/${package}/${folder}*.md")
    list(LENGTH pages count)
    foreach(page IN LISTS pages)
        string(REGEX REPLACE "(.*/doc/${package})/.*" "\\1" doc "${page}")
        file(READ "${page}" text)
        string(REGEX REPLACE "[][;]" "|" text "${text}")  # they mean something in a list
        string(REGEX MATCHALL "[|][(][A-Za-z0-9_./-]+[)#]" links "${text}")
        foreach(link IN LISTS links)
            string(REGEX REPLACE "^..(.*).$" "\\1" target "${link}")
            cmake_path(GET page PARENT_PATH beside)
            cmake_path(ABSOLUTE_PATH target BASE_DIRECTORY "${beside}" NORMALIZE OUTPUT_VARIABLE at)
            cmake_path(RELATIVE_PATH at BASE_DIRECTORY "${doc}" OUTPUT_VARIABLE place)
            if(NOT EXISTS "${at}" AND NOT place MATCHES "^(src|include|tests|bench|tools)/|^LICENSE$")
                message(FATAL_ERROR "${page} links to ${target}, which is not installed")
            endif()
        endforeach()
    endforeach()
    if(count LESS 5)
        message(FATAL_ERROR "only ${count} pages are installed in ${prefix}")
    endif()
    message(STATUS "the links of ${count} pages of ${package} hold")
endfunction()

# What a user of the program reads: the pages, and the document that the daemon's 404 names.
function(check_program_docs prefix)
    foreach(page IN ITEMS cache.md operations.md stacks.md programs.md console.md upgrade.md roadmap.md hooks.md
                          control-api.openapi.json)
        if(NOT EXISTS "${prefix}/share/doc/eddy/docs/${page}")
            message(FATAL_ERROR "${page} is not installed in ${prefix}/share/doc/eddy/docs")
        endif()
    endforeach()
    foreach(printed IN ITEMS bash-completion/completions/eddy zsh/vendor-completions/_eddy
                             fish/vendor_completions.d/eddy.fish)
        if(NOT EXISTS "${prefix}/share/${printed}")
            message(FATAL_ERROR "${prefix}/share/${printed} is not installed")
        endif()
    endforeach()
    file(GLOB pages "${prefix}/share/man/man1/eddy-create.1*")
    if(NOT pages)
        message(FATAL_ERROR "the manual pages of commands are not installed in ${prefix}/share/man/man1")
    endif()
    file(READ "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../docs/eddy.1" manual)
    string(REPLACE "\\-" "-" manual "${manual}")
    string(REGEX MATCHALL "[a-z-]+[.]md" named "${manual}")
    foreach(page IN LISTS named)
        if(NOT EXISTS "${prefix}/share/doc/eddy/docs/${page}")
            message(FATAL_ERROR "docs/eddy.1 names ${page}, which is not installed")
        endif()
    endforeach()
    # The changelog speaks of the library, too.
    check_links("${prefix}" eddy docs/)
endfunction()

# The packages keep Debian's rules: neither errors nor warnings, but for those that packaging/debian overrides with a reason.
function(check_by_lintian folder)
    find_program(lintian lintian)
    if(NOT lintian)
        message(STATUS "the Debian packages are not checked: there is no lintian (apt install lintian)")
        return()
    endif()
    file(GLOB packages "${folder}/*.deb")
    # A build for /usr, as that of `./eddy-dev package`, has eddy.pc in Debian's folder of the architecture.
    step("${lintian}" --allow-root --fail-on error,warning --suppress-tags pkg-config-unavailable-for-cross-compilation
         ${packages})
    list(LENGTH packages count)
    message(STATUS "lintian finds nothing in ${count} packages")
endfunction()

# A user's project that asks for what the copy in `prefix` does not have is refused with the reason. So is one that is
# compiled with `compiler`, if that is too old.
function(check_refused prefix name compiler request reason)
    set(folder "${WORK}/refused-${name}")
    file(WRITE "${folder}/CMakeLists.txt"
         "cmake_minimum_required(VERSION 3.25)\nproject(refused LANGUAGES CXX)\nfind_package(eddy ${request})\n")
    execute_process(COMMAND "${CMAKE_COMMAND}" -S "${folder}" -B "${folder}/build" -G Ninja
                            "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}"
                    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status EQUAL 0)
        message(FATAL_ERROR "find_package(eddy ${request}) is not refused:\n${output}")
    endif()
    # CMake breaks its messages into lines.
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    string(FIND "${output}" "${reason}" place)
    if(place EQUAL -1)
        message(FATAL_ERROR "find_package(eddy ${request}) is refused without \"${reason}\":\n${output}")
    endif()
    message(STATUS "refused: find_package(eddy ${request}) with ${compiler}")
endfunction()

# The first g++ below 13 that is there; empty for none.
function(find_old_compiler to)
    foreach(name g++ g++-12 g++-11)
        find_program(path ${name} NO_CACHE)
        if(path)
            execute_process(COMMAND "${path}" -dumpversion OUTPUT_VARIABLE version
                            OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
            if(version VERSION_LESS 13)
                set(${to} "${path}" PARENT_SCOPE)
                return()
            endif()
        endif()
        unset(path)
    endforeach()
    set(${to} "" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
check_paths("${WORK}/prefix")
check_links("${WORK}/prefix" libeddy-dev "")
check_program_docs("${WORK}/prefix")
try_prefix("${WORK}/prefix")
try_page("${WORK}/prefix" tutorial.md echo IN_ORDER)
try_page("${WORK}/prefix" from-asio.md echo IN_ORDER)
try_page("${WORK}/prefix" http.md hello_http)
check_refused("${WORK}/prefix" version "${COMPILER}" "0.2 CONFIG REQUIRED"
              "compatible with requested version \"0.2\"")
find_old_compiler(old)
if(old)
    check_refused("${WORK}/prefix" compiler "${old}" "CONFIG REQUIRED"
                  "Eddy needs GCC 13 or newer, or Clang 19 or newer; this is GNU")
else()
    message(STATUS "no compiler is refused: there is no g++ below 13")
endif()
check_refused("${WORK}/prefix" component "${COMPILER}" "0.1 CONFIG REQUIRED COMPONENTS io ioo"
              "eddy has no component \"ioo\". A component is a layer; this copy has: base, io,")

if(DEB)
    find_program(dpkg_deb dpkg-deb)
    if(NOT dpkg_deb)
        message(STATUS "no Debian package is tried: there is no dpkg-deb")
        return()
    endif()
    execute_process(COMMAND "${CMAKE_CPACK_COMMAND}" --config "${BUILD}/CPackConfig.cmake" -B "${WORK}/deb"
                    WORKING_DIRECTORY "${BUILD}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB package "${WORK}/deb/libeddy-dev_*.deb")
    step("${dpkg_deb}" -x "${package}" "${WORK}/system")
    check_paths("${WORK}/system")
    check_links("${WORK}/system/usr" libeddy-dev "")
    # A package's files know that they lie in /usr; what finds them need not.
    try_prefix("${WORK}/system/usr")
    check_by_lintian("${WORK}/deb")
    file(GLOB package "${WORK}/deb/eddy_*.deb")
    step("${dpkg_deb}" -x "${package}" "${WORK}/program")
    check_paths("${WORK}/program")
    step("${WORK}/program/usr/bin/eddy" version)
    check_program_docs("${WORK}/program/usr")
endif()
