#!/usr/bin/env python3
"""Tests of tidy.py, each on a small tree of its own: first that it passes, then what makes it fail."""

import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402

# A tree without a fault, which the tests then spoil.
CLEAN = {
    "include/eddy/base/result.hpp": "// Results.\n#pragma once\n#include <expected>\n",
    "src/base/CMakeLists.txt": "eddy_layer(base SOURCES result.cpp TESTS result_test.cpp)\n",
    "src/base/result.cpp": "// Results.\n#include <eddy/base/result.hpp>\n#include <fmt/format.h>\n",
    "src/base/result_test.cpp": "// Tests.\n#include <eddy/base/result.hpp>\n#include <gtest/gtest.h>\n",
    "src/io/CMakeLists.txt": "eddy_layer(io\n    SOURCES uring/ring.cpp # loop.cpp\n    LAYERS base)\n",
    "src/io/uring/ring.hpp": "// The ring.\n#pragma once\n#include <liburing.h>\n",
    "src/io/uring/ring.cpp": '// The ring.\n#include "io/uring/ring.hpp"\n#include <eddy/base/result.hpp>\n',
    "fuzz/CMakeLists.txt": "eddy_fuzz(resp LAYERS base)\n",
    "fuzz/resp_fuzz.cpp": "// Fuzzes.\n#include <eddy/base/result.hpp>\n",
    "fuzz/corpus/resp/one.txt": "\t \tany bytes " + "XX" + "X",
    "build/release/x.cpp": "no comment\n",
    "out/CMakeCache.txt": "a build elsewhere\n",
    "out/y.cpp": "no comment\n",
}


class TidyTest(unittest.TestCase):
    def setUp(self):
        # The records are of another tree.
        for record in (tidy.LONG_FUNCTIONS, tidy.ASSERTIONS, tidy.THROWS, tidy.FOREIGN_WRITES):
            patched = mock.patch.dict(record, clear=True)
            patched.start()
            self.addCleanup(patched.stop)

    def faults(self, changes=None):
        """The faults of the clean tree with `changes`, where None as a text removes a file."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **(changes or {})}.items():
                if text is None:
                    continue
                if path == "include/eddy/base/result.hpp":
                    # Most tests write this header again for some other rule.
                    text += "\n/// \\file\n/// Any thread.\n"
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            return tidy.check(root)[0]

    def assert_fault(self, changes, path, words, line=None):
        faults = self.faults(changes)
        self.assertEqual(len(faults), 1, faults)
        self.assertEqual(faults[0][0], path)
        self.assertIn(words, faults[0][2])
        if line is not None:
            self.assertEqual(faults[0][1], line)

    def listed(self, path, text, extra=None):
        """A source at `path` with its CMakeLists.txt, and a CMake list for its layer."""
        folder, name = os.path.dirname(path), os.path.basename(path)
        return {path: text, folder + "/CMakeLists.txt": f"x({name})\n", **(extra or {})}

    def test_a_folder_of_many_files_has_rooms(self):
        names = [f"part{i}.cpp" for i in range(tidy.MAX_FOLDER_FILES + 1)]
        files = {f"src/net/{name}": "// Part of it.\n" for name in names}
        files["src/net/CMakeLists.txt"] = "".join(f"x({name})\n" for name in names)
        self.assert_fault(files, "src/net", "make rooms of it")
        del files["src/net/" + names.pop()], files["src/net/" + names.pop()]
        files["src/net/CMakeLists.txt"] = "".join(f"x({name})\n" for name in names)
        self.assertEqual(self.faults(files), [])

    def test_clean_tree_passes(self):
        self.assertEqual(self.faults(), [])

    def test_layer_includes_upwards(self):
        text = "// Results.\n#include <eddy/base/result.hpp>\n#include \"io/uring/ring.hpp\"\n"
        self.assert_fault({"src/base/result.cpp": text}, "src/base/result.cpp", "base may not include io", 3)

    def test_wire_does_not_include_io(self):
        changes = self.listed("src/wire/a.cpp", '// A.\n#include "io/uring/ring.hpp"\n')
        self.assert_fault(changes, "src/wire/a.cpp", "wire may not include io")

    def test_engines_do_not_include_each_other(self):
        changes = self.listed("src/cache/engine/a.cpp", '// A.\n#include "proxy/b.hpp"\n',
                              {"src/proxy/b.hpp": "// B.\n#pragma once\n"})
        self.assert_fault(changes, "src/cache/engine/a.cpp", "cache may not include proxy")

    def test_rooms_of_the_cache_include_downwards(self):
        headers = {f"src/cache/{room}/b.hpp": "// B.\n#pragma once\n" for room in ("types", "engine")}
        text = '// A.\n#include "cache/types/b.hpp"\n#include "cache/engine/b.hpp"\n'
        changes = self.listed("src/cache/keyspace/a.cpp", text, headers)
        self.assert_fault(changes, "src/cache/keyspace/a.cpp", "keyspace stands below engine", 3)
        changes = self.listed("src/cache/engine/a.cpp", text, headers)
        self.assertEqual(self.faults(changes), [])
        changes = self.listed("src/cache/attic/a.cpp", "// A.\n")
        self.assert_fault(changes, "src/cache/attic/a.cpp", "no such room")

    def test_only_the_cache_has_the_state_of_the_engine(self):
        include = '#include "cache/engine/engine_state.hpp"'
        call = "int f(engine& of) { return of.internals().count; }"

        def in_runtime(line):
            return {
                "src/cache/CMakeLists.txt": "eddy_layer(cache SOURCES engine/a.cpp)\n",
                "src/cache/engine/engine_state.hpp": "// State.\n#pragma once\n",
                "src/cache/engine/a.cpp": f"// A.\n{include}\n{call}\n",
                "src/runtime/CMakeLists.txt": "eddy_layer(runtime SOURCES cache/a.cpp)\n",
                "src/runtime/cache/a.cpp": f"// A.\n{line}\n",
            }

        self.assertEqual(self.faults(in_runtime("// internals().count")), [])
        self.assert_fault(in_runtime(include), "src/runtime/cache/a.cpp", "only the cache includes", 2)
        self.assert_fault(in_runtime(call), "src/runtime/cache/a.cpp", "only the cache calls internals()", 2)

    def test_rooms_write_the_state_of_their_subjects(self):
        state = ("// State.\n#pragma once\nstruct client_state {\n    explicit client_state(int& env);\n\n"
                 "    std::uint16_t slow_path = 0;  // bits\n    std::vector<int> monitors;\n    byte_buffer pushes;\n};\n")

        def in_room(room, line):
            return {
                "src/cache/CMakeLists.txt": f"eddy_layer(cache SOURCES {room}/a.cpp)\n",
                "src/cache/clients/client_state.hpp": state,
                f"src/cache/{room}/a.cpp": f'// A.\n#include "cache/clients/client_state.hpp"\n{line}\n',
            }

        path = "src/cache/script/a.cpp"
        writes = ("s.clients.slow_path = 1;", "c.state.clients.slow_path |= 1;", "++s.clients.slow_path;",
                  "home->internals().clients.slow_path--;", "clients.monitors.push_back(1);",
                  "s.clients.monitors[0] = 1;", "auto old = std::exchange(s.clients.pushes, {});",
                  "auto old = std::move(s.clients.pushes);")
        for line in writes:
            with self.subTest(line=line):
                self.assert_fault(in_room("script", line), path, "writes clients.", 3)
                self.assertEqual(self.faults(in_room("clients", line)), [])
        reads = ("if (s.clients.slow_path == 1) {}", "x = s.clients.slow_path;", "x |= s.clients.slow_path & y;",
                 "s.clients.monitors.size();", "// s.clients.slow_path = 1;", "options.clients.max = 1;")
        for line in reads:
            with self.subTest(line=line):
                self.assertEqual(self.faults(in_room("script", line)), [])
        tidy.FOREIGN_WRITES["script"] = {"clients.slow_path": 1}
        self.assertEqual(self.faults(in_room("script", writes[0])), [])
        self.assert_fault(in_room("script", writes[0] + "\n" + writes[1]), path, "at 2 places", 4)
        self.assert_fault(in_room("script", reads[0]), "tools/tidy.py", "lower FOREIGN_WRITES")

    def test_circles_of_units_are_bounded(self):
        def circle(count):
            changes = {"src/net/CMakeLists.txt": " ".join(f"u{i}.cpp" for i in range(count)) + "\n"}
            for i in range(count):
                following = (i + 1) % count
                changes[f"src/net/u{i}.hpp"] = "// A unit.\n#pragma once\n"
                changes[f"src/net/u{i}.cpp"] = \
                    f'// A unit.\n#include "net/u{i}.hpp"\n#include "net/u{following}.hpp"\n'
            return changes

        self.assertEqual(self.faults(circle(tidy.LARGEST_CIRCLE_ELSEWHERE)), [])
        self.assert_fault(circle(tidy.LARGEST_CIRCLE_ELSEWHERE + 1), "src/net", "include each other in a circle")

    def test_circles_are_found_whole(self):
        links = {"a": {"b", "e"}, "b": {"c"}, "c": {"a", "d"}, "d": {"d2"}, "d2": {"d"}, "e": {"d"}, "f": set()}
        self.assertEqual(sorted(tidy.circles(links)), [["a", "b", "c"], ["d", "d2"]])

    def test_a_smaller_circle_lowers_the_record(self):
        changes = self.listed("src/tls/a.cpp", '// A.\n#include "tls/a.hpp"\n#include "tls/b.hpp"\n', {
            "src/tls/a.hpp": "// A.\n#pragma once\n",
            "src/tls/b.hpp": '// B.\n#pragma once\n#include "tls/a.hpp"\n'})
        self.assert_fault(changes, "tools/tidy.py", "lower LARGEST_CIRCLE")

    def test_runtimes_do_not_include_each_other(self):
        changes = self.listed("src/runtime/cache/a.cpp", '// A.\n#include "runtime/server/b.hpp"\n',
                              {"src/runtime/server/b.hpp": "// B.\n#pragma once\n"})
        self.assert_fault(changes, "src/runtime/cache/a.cpp", "runtime cache may not include the runtime server")

    def test_runtimes_share_their_interface(self):
        changes = self.listed("src/runtime/cache/a.cpp", '// A.\n#include "runtime/instance.hpp"\n',
                              {"src/runtime/instance.hpp": "// B.\n#pragma once\n"})
        self.assertEqual(self.faults(changes), [])

    def test_only_the_program_joins_cli_and_daemon(self):
        header = {"src/daemon/d.hpp": "// D.\n#pragma once\n"}
        text = '// A.\n#include "daemon/d.hpp"\n'
        self.assertEqual(self.faults(self.listed("src/cli/main.cpp", text, header)), [])
        self.assert_fault(self.listed("src/cli/a.cpp", text, header), "src/cli/a.cpp", "cli may not include daemon")

    def test_unknown_layer(self):
        self.assert_fault(self.listed("src/util/a.cpp", "// A.\n"), "src/util/a.cpp", "is no layer")

    def test_include_of_a_missing_file(self):
        changes = self.listed("src/net/a.cpp", "// A.\n#include <eddy/io/gone.hpp>\n")
        self.assert_fault(changes, "src/net/a.cpp", "is no file of ours")

    def test_private_header_by_its_full_path(self):
        text = '// The ring.\n#include "ring.hpp"\n'
        self.assert_fault({"src/io/uring/ring.cpp": text}, "src/io/uring/ring.cpp", "by its path below src/")

    def test_public_header_includes_private_one(self):
        changes = {"include/eddy/io/loop.hpp": '// L.\n#pragma once\n#include "io/uring/ring.hpp"\n/// Any thread.\n',
                   "tests/CMakeLists.txt": "x(t.cpp)\n", "tests/t.cpp": "// T.\n#include <eddy/io/loop.hpp>\n"}
        self.assert_fault(changes, "include/eddy/io/loop.hpp", "which is not installed")

    def test_kernel_queues_stay_in_their_folders(self):
        for header in ("liburing.h", "sys/epoll.h", "linux/io_uring.h"):
            changes = self.listed("src/net/a.cpp", f"// A.\n#include <{header}>\n")
            self.assert_fault(changes, "src/net/a.cpp", "use the loop")

    def test_lua_stays_in_its_layer(self):
        for folder in ("daemon", "script", "cache/engine"):
            changes = self.listed(f"src/{folder}/a.cpp", "// A.\n#include <luajit-2.1/lua.hpp>\n")
            self.assert_fault(changes, f"src/{folder}/a.cpp", "only src/lua")
        self.assertEqual(self.faults(self.listed("src/lua/a.cpp", "// A.\n#include <lua.hpp>\n")), [])

    def test_lua_is_called_in_its_layer(self):
        text = "// A.\nint top(lua_State* in) { return lua_gettop(in); }  // not lua_settop()\n"
        self.assert_fault(self.listed("src/cache/engine/a.cpp", text), "src/cache/engine/a.cpp", "only src/lua calls lua_gettop()", 2)
        self.assertEqual(self.faults(self.listed("src/lua/a.cpp", text)), [])

    def test_public_headers_show_no_third_party(self):
        for header in ("fmt/core.h", "nlohmann/json.hpp", "ares.h", "xxhash.h", "openssl/ssl.h", "gtest/gtest.h"):
            text = f"// Results.\n#pragma once\n#include <{header}>\n"
            self.assert_fault({"include/eddy/base/result.hpp": text}, "include/eddy/base/result.hpp", "third-party")

    def test_optional_headers_have_their_library_and_stay_apart(self):
        text = "// JSON.\n#pragma once\n#include <%s>\n/// Any thread.\nint parse();\n"
        path = "include/eddy/http/json.hpp"
        self.assertNotIn("third-party", str(self.faults({path: text % "nlohmann/json.hpp"})))
        self.assertIn("third-party", str(self.faults({path: text % "fmt/core.h"})))
        user = "// Results.\n#pragma once\n#include <eddy/http/json.hpp>\n"
        self.assertIn("ours do without", str(self.faults({"include/eddy/base/result.hpp": user})))

    def test_fmt_in_a_private_header(self):
        text = "// The ring.\n#pragma once\n#include <fmt/core.h>\n"
        self.assert_fault({"src/io/uring/ring.hpp": text}, "src/io/uring/ring.hpp", ".cpp files")

    def test_unportable_library_in_a_public_header(self):
        for use in ("#include <format>", "std::jthread t;", "std::move_only_function<void()> f;"):
            text = f"// Results.\n#pragma once\n{use}\n"
            self.assert_fault({"include/eddy/base/result.hpp": text}, "include/eddy/base/result.hpp", "missing")
        text = "// Results.\n#pragma once\n// Not std::jthread.\n"
        self.assertEqual(self.faults({"include/eddy/base/result.hpp": text}), [])

    def test_awaited_function_that_does_not_say_what_it_yields(self):
        path = "include/eddy/base/result.hpp"

        def header(*lines):
            return {path: "// Results.\n#pragma once\n" + "\n".join(lines) + "\n"}

        function = "[[nodiscard]] awaiting<read_operation> read(int size) {}"
        self.assert_fault(header("/// Reads.", function), path, "what co_await yields", 4)
        self.assert_fault(header("/// Yields 1.", "int a;", "template <class T>", "task<T> b();"), path, "yields", 6)
        for comment in ("/// Yields a result<>.", "/// Reads. It\n/// yields a lease.", "/// The same for text."):
            self.assertEqual(self.faults(header(comment, "template <class T>", function)), [])
        for hidden in (("namespace detail {", function, "}  // namespace detail"),
                       ("class a {", "private:", function, "};"), (function[:-2] + "= delete;",), (function[:-9] + "int", "  size) = delete;")):
            self.assertEqual(self.faults(header(*hidden)), [])

    def test_source_in_no_list(self):
        self.assert_fault({"src/io/loop/loop.cpp": "// L.\n"}, "src/io/loop/loop.cpp", "no CMakeLists.txt names")
        self.assert_fault({"src/base/sult.cpp": "// L.\n"}, "src/base/sult.cpp", "no CMakeLists.txt names")
        self.assert_fault({"fuzz/http1_fuzz.cpp": "// L.\n"}, "fuzz/http1_fuzz.cpp", "no CMakeLists.txt names")

    def test_header_that_nobody_includes(self):
        changes = {"src/io/spare.hpp": "// S.\n#pragma once\n"}
        self.assert_fault(changes, "src/io/spare.hpp", "nobody includes")

    def test_opening_comment(self):
        changes = {"src/base/result.cpp": "#include <eddy/base/result.hpp>\n"}
        self.assert_fault(changes, "src/base/result.cpp", "first line")

    def test_pragma_once(self):
        changes = {"include/eddy/base/result.hpp": "// Results.\n"}
        self.assert_fault(changes, "include/eddy/base/result.hpp", "#pragma once")

    def test_long_file(self):
        text = "// Results.\n#include <eddy/base/result.hpp>\n" + "int x;\n" * (tidy.MAX_CPP_LINES - 2)
        self.assertEqual(self.faults({"src/base/result.cpp": text}), [])
        self.assert_fault({"src/base/result.cpp": text + "int y;\n"}, "src/base/result.cpp", f"over {tidy.MAX_CPP_LINES} lines")

    def test_comments_say_first_what_the_thing_is(self):
        path = "src/net/part.cpp"
        self.assert_fault(self.listed(path, "// Part.\n// Of a peer.\n\nint n;  // Has bytes\n"), path,
                          "opens with \"Has\"", 4)
        self.assert_fault({"tools/part.py": '"""Part."""\n\n\ndef one():\n    """What it does."""\n'}, "tools/part.py",
                          "opens with \"What\"", 5)
        self.assertEqual(self.faults({"docs/page.md": "# Part\n\nWhat it does.\n"}), [])

    def test_parts_are_no_persons(self):
        path = "src/net/part.cpp"
        self.assert_fault(self.listed(path, "// Part.\n\n/// Notifies whoever waits.\nint n;\n"), path, "\"whoever\"", 3)
        self.assert_fault({"docs/page.md": "# Part\n\nIt `tells` and\ntells it.\n"}, "docs/page.md", "\"tells\"", 4)
        self.assertEqual(self.faults({"docs/page.md": "# Part\n\n```\nwho\n```\n\n    whoever\n"}), [])

    def test_stray_text(self):
        for text, words in (("a\tb\n", "a tab"), ("a \n", "end of the line"), ("a", "does not end"),
                            ("FIX" + "ME later\n", "finish it"), ("// XX" + "X\n", "finish it"),
                            ("see /wo" + "rk/main\n", "one machine")):
            self.assert_fault({"docs/a.md": text}, "docs/a.md", words)
        self.assertEqual(self.faults({"docs/a.md": "mktemp /tmp/eddy.XX" + "XXXX, net" + "work/a\n"}), [])

    def test_quoted_code(self):
        example = "// An example.\nint one;\nint two;\n"
        files = {"examples/a.cpp": example, "examples/CMakeLists.txt": "add_executable(a a.cpp)\n"}
        page = "<!-- examples/a.cpp -->\n```cpp\nint one;\n```\n"
        self.assertEqual(self.faults({**files, "docs/a.md": page}), [])
        self.assert_fault({**files, "docs/a.md": page.replace("one", "three")}, "docs/a.md", "not in examples/a.cpp")
        self.assert_fault({**files, "docs/a.md": page.partition("\n")[2]}, "docs/a.md", "no file is named")
        self.assert_fault({**files, "README.md": page.replace("one", "three")}, "README.md", "not in examples/a.cpp")

    def test_quoted_code_of_a_class(self):
        files = {"java/A.java": "// An example.\nclass A {\n    int one;\n\n    int two;\n}\n"}
        page = "<!-- java/A.java -->\n```java\nint one;\n\nint two;\n```\n"
        self.assertEqual(self.faults({**files, "README.md": page, "java/README.md": page}), [])
        self.assert_fault({**files, "java/README.md": page.replace("one", "three")}, "java/README.md", "not in java/A.java")

    def test_cpp_in_a_page_that_is_no_quotation(self):
        for line in ("co_await peer.read();", "    co_return 1;", "#include <eddy/io/loop.hpp>"):
            self.assert_fault({"README.md": f"Write:\n\n    {line}\n"}, "README.md", "nobody compiles", 3)
        for text in ("as `co_await` does\n", "    eddy daemon &\n", "    target_link_libraries(a PRIVATE eddy::eddy)\n"):
            self.assertEqual(self.faults({"README.md": text}), [])

    def test_code_at_the_beginning_of_a_header(self):
        path = "include/eddy/base/result.hpp"
        files = {"examples/a.cpp": "// A.\nvoid f() {\n  int one = 1;  // one\n  use(one);\n  more();\n}\n",
                 "examples/CMakeLists.txt": "add_executable(a a.cpp)\n"}

        def header(*lines):
            return {**files, path: "// Results.\n//\n" + "".join(f"//     {line}\n" for line in lines) + "#pragma once\n"}

        for lines in (("int one = 1;", "use(one);   // it"), ("void f() {", "    int one", "        = 1;"),
                      ("int one = 1;", "... // and so on", "more();"), ("tcp://127.0.0.1:80   an address",)):
            self.assertEqual(self.faults(header(*lines)), [])
        for lines in (("int two = 1;",), ("use(one);", "int one = 1;"), ("more();", "...", "use(one);")):
            self.assert_fault(header(*lines), path, "nobody compiles it", 3)

    def test_code_in_the_comment_of_a_class(self):
        path = "include/eddy/base/result.hpp"
        files = {"examples/a.cpp": "// A.\nvoid f() {\n  int one = 1;\n}\n",
                 "examples/CMakeLists.txt": "add_executable(a a.cpp)\n"}

        def header(indent, slashes, code):
            return {**files, path: "// Results.\n#pragma once\n" +
                    f"{indent}{slashes} So:\n{indent}{slashes}\n{indent}{slashes}     {code}\n{indent}int x;\n"}

        for indent in ("", "    "):
            self.assertEqual(self.faults(header(indent, "///", "int one = 1;")), [])
            self.assert_fault(header(indent, "///", "int two = 2;"), path, "nobody compiles it", 5)
            self.assertEqual(self.faults(header(indent, "///", "[a-z]   no code")), [])
            self.assertEqual(self.faults(header(indent, "//", "int two = 2;")), [])
            self.assertEqual(self.faults(header(indent, "///", "int two = 2;") | {"include/eddy/base/result.hpp":
                "// Results.\n#pragma once\n/// - a list,\n///   that continues;\n"}), [])

    def test_result_without_its_errors(self):
        path = "include/eddy/base/result.hpp"

        def header(*lines):
            return {path: "// Results.\n#pragma once\n" + "\n".join(lines) + "\n"}

        for function in ("result<> open();", "    static result<int> size() const {", "task<result<>> sync();"):
            self.assert_fault(header("/// Does it. Yields nothing.", function), path, "how it fails", 4)
            for comment in ("errc::closed once closed.", "Fails once closed.", "Errors are open(2)'s.", "ENODEV for none.",
                            "The same for text.", "As listen(), in parts."):
                self.assertEqual(self.faults(header(f"/// Yields a size. {comment}", function)), [])
            for hidden in (("namespace detail {", function, "}  // namespace detail"), ("class a {", "private:", function, "};"),
                           ("class read_operation {", "public:", "/// Yields.", function, "};")):
                self.assertEqual(self.faults(header(*hidden)), [])
        for other in ("    result<> got = read();", "int size();", "result<> open() = delete;"):
            self.assertEqual(self.faults(header(other)), [])

    def test_bytes_without_their_life(self):
        path = "include/eddy/base/result.hpp"

        def header(*lines):
            return {path: "// Results.\n#pragma once\n" + "\n".join(lines) + "\n"}

        for function in ("task<> put(const_bytes bytes);", "    awaiting<take> get(mutable_bytes into) {",
                         "task<> all(std::span<const const_bytes> pieces);", "task<> name(std::string_view text);",
                         "task<> to(int count,\n         const endpoint& peer);"):
            self.assert_fault(header("/// Does it. Yields nothing.", function), path, "must live", 4)
            for comment in ("They must live until then.", "The bytes stay valid.", "It stays the caller's.", "It is copied.",
                            "The same for text."):
                self.assertEqual(self.faults(header(f"/// Yields nothing. {comment}", function)), [])
            self.assertEqual(self.faults(header("class a {", "private:", function, "};")), [])
        for other in ("task<> one(std::string text);", "void now(const_bytes bytes);", "task<> none();\nvoid now(const_bytes bytes);",
                      "task<> gone(const_bytes bytes) = delete;", "task<> whole() { return put(as_bytes(text)); }"):
            self.assertEqual(self.faults(header("/// Yields nothing.", other)), [])

    def test_what_the_tour_leaves_out(self):
        path = "include/eddy/base/result.hpp"
        shown = ("class [[nodiscard]] queue : public base {", "    int member();", "};", "struct options {", "};", "class later;",
                 "inline int count(int a) { return std::abs(a); }", "template <class T>", "result<T> take(T from);",
                 "/// Errors are none.", "bool operator==(queue a, queue b);", "class take_operation final : public operation {",
                 "};", "queue_driver& closed_queue_driver() noexcept;", "inline int queue::member() { return 1; }",
                 "namespace detail {", "int hidden();", "}  // namespace detail", "using number = int;")
        header = "// Results.\n#pragma once\n" + "\n".join(shown).replace("result<T> take", "T take") + "\n"
        self.assertEqual([name for _, name in tidy.public_names(header)], ["queue", "options", "count", "take"])
        tour = "`<eddy/base/result.hpp>`: `queue`, `options`, `count()`, `take()`\n"
        self.assertEqual(self.faults({path: header, "docs/tour.md": tour}), [])
        self.assert_fault({path: header, "docs/tour.md": tour.replace("options", "option")}, path, "does not name options", 6)
        self.assert_fault({path: header, "docs/tour.md": tour.replace("count", "counts")}, path, "does not name count", 9)
        self.assert_fault({path: header, "docs/tour.md": tour.replace("<eddy/", "<")}, path, "this header", 1)

    def test_public_header_without_a_rule_for_threads(self):
        for layer in ("base", "io"):
            with self.subTest(layer=layer):
                self.threads_in(layer)

    def threads_in(self, layer):
        path = f"include/eddy/{layer}/a.hpp"

        def header(opening, *lines):
            return {path: f"// {opening}\n#pragma once\n" + "".join(line + "\n" for line in lines),
                    "src/io/uring/ring.cpp":
                    f"// The ring.\n#include <eddy/{layer}/a.hpp>\n#include \"io/uring/ring.hpp\"\n"}

        silent, said = ("/// A file.", "class file {", "};"), ("/// A file. One loop's thread.", "class file {", "};")
        self.assert_fault(header("Files."), path, "may use it", 1)
        # A comment that Doxygen drops does not count.
        self.assert_fault(header("Files. One loop's thread.", *silent), path, "may use file", 4)
        self.assert_fault(header("Files.", *silent[:2], "    std::thread one;  // a thread", "};"), path, "may use file", 4)
        self.assert_fault(header("Files.", *silent), path, "may use file", 4)
        self.assert_fault(header("Files.", "class [[nodiscard]] file {", "};"), path, "may use file", 3)
        for lines in (said, ("class file {", "    /// Any thread.", "};"), (*said, "class read_operation {", "};"),
                      (*said, "class file;", "namespace detail {", "class b {", "};", "}  // namespace detail")):
            self.assertEqual(self.faults(header("Files.", *lines)), [])
        for lines in (("/// \\file", "/// One loop's thread.", "", *silent), ("/// Files. One loop's thread.", "namespace eddy::files {}")):
            self.assertEqual(self.faults(header("Files.", *lines)), [])

    def test_functions_are_found_with_their_lengths(self):
        text = """// Units.
#define TWICE(x) \\
    void f() { \\
    }
namespace eddy {
struct plain {
    int a = 0;
};
const char* const rows[] = {
    call(1),
};
class door : public wall {
public:
    door(int width)
        : width_(width) {}
    template <class T>
    void open(T how) {
        how();
    }

private:
    bool is_open() const noexcept { return true; }
};
task<void> serve(std::string a,
                 std::string b) {
    const auto body = [&] {
        call(");}", R"(
}
)");
    };
    try {
        body();
    } catch (...) {
    }
}
door& door::operator=(const door&) {
    return *this;
}
void last() try {
} catch (int) {
}
}
"""
        found = [(name, line, lines) for line, name, lines in tidy.functions(text)]
        self.assertEqual(found, [("open", 16, 4), ("serve", 24, 12), ("operator=", 36, 3), ("last", 39, 3)])

    def long_function(self, lines, name="a"):
        text = "// A.\nvoid f() {\n" + "    g();\n" * (lines - 2) + "}\n"
        return self.listed(f"src/net/{name}.cpp", text)

    def test_functions_are_bounded(self):
        most = tidy.MAX_FUNCTION_LINES
        self.assertEqual(self.faults(self.long_function(most)), [])
        self.assert_fault(self.long_function(most + 1), "src/net/a.cpp", f"f has {most + 1} lines", 2)
        # Tests are no part of the product.
        self.assertEqual(self.faults(self.long_function(most + 1, "a_test")), [])

    def test_long_functions_only_shrink(self):
        with mock.patch.dict(tidy.LONG_FUNCTIONS, {("src/net/a.cpp", "f"): 100}):
            for lines in (91, 100):
                self.assertEqual(self.faults(self.long_function(lines)), [])
            self.assert_fault(self.long_function(101), "src/net/a.cpp", "at most 100 may be")
            for lines in (70, 90):
                self.assert_fault(self.long_function(lines), "tools/tidy.py", "change LONG_FUNCTIONS")

    def test_assertions_do_not_become_fewer(self):
        def layer_with(asserts, header=""):
            text = "// A. EDDY_ASSERT(none)\n" + "EDDY_ASSERT(x);\n" * asserts
            text += "int x;\n" * (1000 - text.count("\n")) + header
            return self.listed("src/net/a.cpp", text, {"src/net/testing.hpp": "// T.\n#pragma once\n" + "int y;\n" * 800,
                                                       "src/net/CMakeLists.txt": "x(a.cpp a_test.cpp)\n",
                                                       "src/net/a_test.cpp": '// T.\n#include "net/testing.hpp"\n'})

        with mock.patch.dict(tidy.ASSERTIONS, {"net": 4.0}):
            self.assertEqual(self.faults(layer_with(4)), [])
            self.assert_fault(layer_with(3), "src/net", "3.00 EDDY_ASSERT")
            self.assert_fault(layer_with(5), "tools/tidy.py", "raise ASSERTIONS")

    def test_io_paths_do_not_throw(self):
        def net_with(*lines):
            return self.listed("src/net/a.cpp", "// A.\n" + "".join(line + "\n" for line in lines))

        throwing = net_with("// They throw.", 'const char* a = "throw";', "throw 1;")
        with mock.patch.dict(tidy.THROWS, {"net": 0}):
            self.assert_fault(throwing, "src/net/a.cpp", "net throws at 1 places, at most 0 may", 4)
        with mock.patch.dict(tidy.THROWS, {"net": 1}):
            self.assertEqual(self.faults(throwing), [])
        with mock.patch.dict(tidy.THROWS, {"net": 2}):
            self.assert_fault(throwing, "tools/tidy.py", "lower THROWS")
        self.assertEqual(self.faults(self.listed("src/http/a.cpp", "// A.\nthrow 1;\n")), [])


if __name__ == "__main__":
    unittest.main()
