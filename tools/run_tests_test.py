#!/usr/bin/env python3
"""Tests of run_tests.py and unchanged.py, with a program that behaves as GoogleTest's do."""

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run_tests  # noqa: E402
import unchanged  # noqa: E402

# Each test's name says what it does.
PROGRAM = '''#!/usr/bin/env python3
import os, sys, time
names = [a for a in sys.argv if a.startswith("--gtest_filter=")][0].split("=", 1)[1].split(":")
status = 0
for name in names:
    if "absent" in name:
        continue
    print("[ RUN      ] " + name, flush=True)
    if "crashes" in name:
        print("a last word", flush=True)
        os.abort()
    if "hangs" in name:
        time.sleep(60)
    if "leaks" in name:
        status = 23
    if "untidy" in name:
        print("no end of line", end="")
    tried = sys.argv[0] + "." + name.replace("/", ".")
    if "fails" in name or ("unsteady" in name and not os.path.exists(tried)):
        open(tried, "w").close()
        status = status or 1
        if "reports" in name:
            print("WARNING: ThreadSanitizer: data race")
        print("x_test.cpp:1: Failure")
        print("[  FAILED  ] " + name + ", where GetParam() = uring (3 ms)", flush=True)
    elif "skips" in name:
        print("[  SKIPPED ] " + name + " (0 ms)", flush=True)
    else:
        print("[       OK ] " + name + " (0 ms)", flush=True)
if "together" in names[0] and len(names) > 1:
    status = 23
sys.exit(status)
'''


def executable(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.program = executable(os.path.join(self.folder, "x_test"), PROGRAM)

    def gtest(self, name, **properties):
        return run_tests.Test({
            "name": "x_test/" + name,
            "command": [self.program, "--gtest_filter=" + name, "--gtest_also_run_disabled_tests"],
            "properties": [{"name": key, "value": value} for key, value in properties.items()]})

    def other(self, name, command, **properties):
        return run_tests.Test({"name": name, "command": command,
                               "properties": [{"name": key, "value": value} for key, value in properties.items()]})

    def results(self, tests, jobs=1, idle_processors=lambda: 0):
        self.out = io.StringIO()
        state = run_tests.run(tests, jobs, {}, self.out, idle_processors)
        return {name.removeprefix("x_test/"): result for name, result, _ in state.results}

    def test_one_process_runs_many_tests(self):
        tests = [self.gtest(f"a.t{i}") for i in range(run_tests.BATCH_TESTS + 1)]
        self.assertEqual([len(batch) for batch in run_tests.batches(tests, {})], [run_tests.BATCH_TESTS, 1])
        self.assertEqual(set(self.results(tests, 2).values()), {"passed"})

    def test_long_tests_have_a_process_of_their_own_and_begin_first(self):
        tests = [self.gtest("a.short"), self.gtest("a.long"), self.gtest("a.brief")]
        made = run_tests.batches(tests, {"x_test/a.long": run_tests.BATCH_S})
        self.assertEqual([[test.filter for test in batch] for batch in made], [["a.long"], ["a.short", "a.brief"]])

    def test_other_environments_are_other_processes(self):
        tests = [self.gtest("a.b"), self.gtest("a.c", ENVIRONMENT=["X=1"])]
        self.assertEqual(len(run_tests.batches(tests, {})), 2)

    def test_failures_and_skips_are_counted_one_by_one(self):
        self.assertEqual(self.results([self.gtest(name) for name in ("a.fine", "a.fails/uring", "a.skips", "a.untidy")]),
                         {"a.fine": "passed", "a.fails/uring": "failed", "a.skips": "skipped", "a.untidy": "passed"})
        self.assertIn("x_test.cpp:1: Failure", self.out.getvalue())

    def test_a_crash_fails_its_test_and_the_others_run(self):
        self.assertEqual(self.results([self.gtest(name) for name in ("a.first", "a.crashes", "a.last")]),
                         {"a.first": "passed", "a.crashes": "failed", "a.last": "passed"})
        self.assertIn("a last word", self.out.getvalue())
        self.assertIn("ended by signal 6", self.out.getvalue())

    def test_a_test_that_hangs_fails_and_the_others_run(self):
        tests = [self.gtest(name, TIMEOUT=10.0) for name in ("a.first", "a.hangs", "a.last")]
        self.assertEqual(self.results(tests), {"a.first": "passed", "a.hangs": "failed", "a.last": "passed"})
        self.assertIn("did not end within 10 s", self.out.getvalue())

    def test_a_leak_fails_the_test_that_has_it(self):
        self.assertEqual(self.results([self.gtest(name) for name in ("a.fine", "a.leaks", "a.too")]),
                         {"a.fine": "passed", "a.leaks": "failed", "a.too": "passed"})

    def test_what_fails_only_together_is_a_failure(self):
        found = self.results([self.gtest(name) for name in ("a.together", "a.b")])
        self.assertEqual(list(found.values()).count("failed"), 1, found)
        self.assertIn("not with one test alone: a.together a.b", self.out.getvalue())

    def test_a_test_that_the_program_does_not_know_fails(self):
        self.assertEqual(self.results([self.gtest("a.absent"), self.gtest("a.fine")]),
                         {"a.absent": "failed", "a.fine": "passed"})

    def test_a_program_that_is_not_built_fails(self):
        self.assertEqual(self.results([self.other("x_NOT_BUILT", None)]), {"x_NOT_BUILT": "failed"})

    def test_other_programs_run_as_ctest_runs_them(self):
        shell = ["sh", "-c"]
        self.assertEqual(self.results([
            self.other("good", [*shell, "exit 0"]),
            self.other("bad", [*shell, "exit 3"]),
            self.other("skipped", [*shell, "exit 77"], SKIP_RETURN_CODE=77),
            self.other("says_skipped", [*shell, "echo Skipped: x"], SKIP_REGULAR_EXPRESSION=["^Skipped: "]),
            self.other("says", [*shell, "echo works.; exit 1"], PASS_REGULAR_EXPRESSION=["works\\."]),
            self.other("is_silent", [*shell, "exit 0"], PASS_REGULAR_EXPRESSION=["works\\."]),
            self.other("late", [*shell, "sleep 60"], TIMEOUT=0.2),
            self.other("environment", [*shell, '[ "$X" = 1 ]'], ENVIRONMENT=["X=1"]),
            self.other("folder", [*shell, f'[ "$PWD" = "{self.folder}" ]'], WORKING_DIRECTORY=self.folder),
            self.other("alone", [*shell, "exit 0"], RUN_SERIAL=True),
            self.other("disabled", [*shell, "exit 1"], DISABLED=True),
        ], 3), {"good": "passed", "bad": "failed", "skipped": "skipped", "says_skipped": "skipped", "says": "passed",
                "is_silent": "failed", "late": "failed", "environment": "passed", "folder": "passed",
                "alone": "passed", "disabled": "skipped"})

    def meeting(self, *names):
        """Tests that pass once all of them have begun."""
        met = " && ".join(f"[ -e {each} ]" for each in names)
        return [self.other(name, ["sh", "-c", f"touch {name}; until {met}; do sleep 0.05; done"], TIMEOUT=60,
                           WORKING_DIRECTORY=self.folder) for name in names]

    def crowd(self, most):
        """Tests that pass if at most so many of them run at once."""
        command = f"touch run.$$; n=$(ls run.* | wc -l); sleep 0.7; rm run.$$; [ $n -le {most} ]"
        return [self.other(f"t{i}", ["sh", "-c", command], WORKING_DIRECTORY=self.folder) for i in range(5)]

    def test_more_processes_run_while_a_processor_is_idle(self):
        self.assertEqual(self.results(self.meeting("a", "b"), 1, lambda: 1), {"a": "passed", "b": "passed"})

    def test_no_more_than_twice_as_many_run(self):
        self.assertEqual(set(self.results(self.crowd(2), 1, lambda: 1).values()), {"passed"})

    def test_a_busy_machine_gets_no_more_processes(self):
        self.assertEqual(set(self.results(self.crowd(1)).values()), {"passed"})

    def test_idle_processors_are_counted(self):
        idle = run_tests.Idle()
        time.sleep(0.1)
        self.assertLess(idle.processors(), os.cpu_count() + 1)
        self.assertGreaterEqual(idle.processors(), 0)

    def test_an_unknown_property_is_refused(self):
        with self.assertRaisesRegex(ValueError, "WILL_FAIL"):
            self.other("x", ["true"], WILL_FAIL=True)


class SelectionTest(unittest.TestCase):
    """Changes that alter a digest, in a small tree with a build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.realpath(folder.name)
        for path, text in {"src/files/one.rdb": "data", "src/x.cpp": "// source", "docs/page.md": "page",
                           "tests/harness.py": "import os", "tests/x_test.py": "import harness",
                           "tests/y_test.py": "import harness", "fuzz/corpus/x/1": "input"}.items():
            self.write(path, text)
        os.makedirs(os.path.join(self.root, "build/asan/found"))
        self.program = executable(os.path.join(self.root, "build/asan/x_test"), PROGRAM)
        self.write("build/asan/eddy", "program")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def digest(self, command, environment=()):
        return unchanged.Inputs(self.root, os.path.join(self.root, "build/asan")).digest(command, environment, self.root)

    def program_digest(self):
        return self.digest([self.program])

    def script_digest(self):
        return self.digest([sys.executable, os.path.join(self.root, "tests/x_test.py")],
                           ["EDDY_BINARY=" + os.path.join(self.root, "build/asan/eddy"), "X=1"])

    def test_a_digest_stays_while_nothing_changes(self):
        self.assertRegex(self.program_digest(), "^[0-9a-f]{64}$")
        self.assertEqual(self.program_digest(), self.program_digest())
        self.assertEqual(self.script_digest(), self.script_digest())

    def test_a_program_is_its_content_and_the_data(self):
        before = self.program_digest()
        self.write("src/x.cpp", "// a source, which counts once it is compiled")
        self.write("tests/x_test.py", "another script")
        os.utime(self.program, (1, 1))
        self.assertEqual(self.program_digest(), before)
        self.write("src/files/one.rdb", "other data")
        changed = self.program_digest()
        self.assertNotEqual(changed, before)
        executable(self.program, PROGRAM + "\n")
        self.assertNotEqual(self.program_digest(), changed)

    def test_a_script_is_its_text_its_neighbours_and_the_program(self):
        seen = {self.script_digest()}
        self.write("tests/y_test.py", "another test")
        self.write("docs/page.md", "a page that it does not read")
        self.assertIn(self.script_digest(), seen)
        for path, text in (("build/asan/eddy", "another program"), ("tests/harness.py", "another harness"),
                           ("tests/x_test.py", "open('docs/page.md')"), ("docs/page.md", "a page that it reads")):
            self.write(path, text)
            self.assertNotIn(self.script_digest(), seen, path)
            seen.add(self.script_digest())

    def test_arguments_and_environment_count(self):
        corpus = os.path.join(self.root, "fuzz/corpus/x")
        seen = {self.digest([self.program, "-runs=0", corpus])}
        self.write("build/asan/found/x", "what a fuzzer collects does not count")
        self.assertIn(self.digest([self.program, "-runs=0", corpus]), seen)
        self.assertNotIn(self.digest([self.program, "-runs=1", corpus]), seen)
        self.assertNotIn(self.digest([self.program, "-runs=0", corpus], ["X=1"]), seen)
        self.write("fuzz/corpus/x/2", "another input")
        self.assertNotIn(self.digest([self.program, "-runs=0", corpus]), seen)

    def test_the_environment_of_the_run_counts(self):
        before = self.program_digest()
        os.environ["EDDY_RUNS"] = "1000"
        self.addCleanup(os.environ.pop, "EDDY_RUNS")
        self.assertNotEqual(self.program_digest(), before)

    def test_what_is_not_understood_has_no_digest(self):
        self.assertIsNone(self.digest(["cmake", "-P", os.path.join(self.root, "tests/run.cmake")]))
        self.assertIsNone(self.digest([os.path.join(self.root, "build/asan/absent")]))
        self.assertIsNone(self.digest([sys.executable, "/elsewhere/x_test.py"]))
        self.assertIsNone(self.digest([]))
        os.environ["EDDY_SEED"] = "random"
        self.addCleanup(os.environ.pop, "EDDY_SEED")
        self.assertIsNone(self.program_digest())

    def test_a_marker_knows_names_by_stage_and_digest(self):
        path = os.path.join(self.root, "cache/marker.json")
        marker = unchanged.Marker(path)
        self.assertFalse(marker.has("asan", "d", "t"))
        marker.merge("asan", {"d": ["t"]})
        marker.save()
        marker = unchanged.Marker(path)
        self.assertTrue(marker.has("asan", "d", "t"))
        for other in (("tsan", "d", "t"), ("asan", "e", "t"), ("asan", "d", "u"), ("asan", None, "t")):
            self.assertFalse(marker.has(*other))
        marker.merge("asan", {"d": ["u"]})
        self.assertTrue(marker.has("asan", "d", "t") and marker.has("asan", "d", "u"))

    def test_a_marker_keeps_the_newest_digests(self):
        marker = unchanged.Marker(os.path.join(self.root, "marker.json"))
        marker.merge("asan", {"old": ["t"]})
        marker.merge("asan", {f"d{i}": ["t"] for i in range(unchanged.DIGESTS_KEPT)})
        self.assertFalse(marker.has("asan", "old", "t"))
        self.assertTrue(marker.has("asan", "d0", "t"))

    def test_a_broken_marker_is_an_empty_one(self):
        path = os.path.join(self.root, "marker.json")
        for text in ("", "{", "[]", '{"version": 0, "stages": {"asan": {"d": ["t"]}}}', '{"version": 1}',
                     '{"version": 1, "stages": {"asan": ["d"]}}', '{"version": 1, "stages": {"asan": {"d": 3}}}'):
            self.write("marker.json", text)
            self.assertFalse(unchanged.Marker(path).has("asan", "d", "t"), text)


class WholeTest(unittest.TestCase):
    """The command itself, on a build that ctest lists."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.program = executable(os.path.join(self.folder, "x_test"), PROGRAM)
        self.marker = os.path.join(self.folder, "marker.json")
        self.passed = os.path.join(self.folder, "passed.json")

    def declare(self, *names):
        with open(os.path.join(self.folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            for name in names:
                file.write(f'add_test(x_test/{name} "{self.program}" "--gtest_filter={name}" '
                           '"--gtest_also_run_disabled_tests")\n')

    def run_all(self, *options):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = run_tests.main([self.folder, "--stage", "asan", "--passed", self.passed, *options])
        return status, out.getvalue().strip().split("\n")[-1]

    def remember(self):
        unchanged.remember(self.marker, [self.passed])

    def test_what_passes_at_a_second_try_is_named(self):
        self.declare("a.fine", "a.unsteady")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(run_tests.main([self.folder]), 0)
        self.assertEqual(out.getvalue().strip().split("\n")[-2:],
                         ["Unsteady, passed at a second try: x_test/a.unsteady", "2 passed, 0 failed, 0 skipped, 0 unchanged"])

    def test_reports_crashes_and_many_failures_have_no_second_try(self):
        many = [f"a.unsteady{i}" for i in range(run_tests.SECOND_TRIES + 1)]
        for names in (["a.unsteady_reports"], ["a.unsteady", "a.crashes"], many):
            self.declare(*names)
            status, last = self.run_all()
            self.assertEqual((status, last), (1, f"0 passed, {len(names)} failed, 0 skipped, 0 unchanged"))

    def test_what_passed_is_left_out_until_it_changes(self):
        self.declare("a.fine", "a.good", "a.skips")
        self.assertEqual(self.run_all("--marker", self.marker), (0, "2 passed, 0 failed, 1 skipped, 0 unchanged"))
        self.assertEqual(self.run_all("--marker", self.marker), (0, "2 passed, 0 failed, 1 skipped, 0 unchanged"))
        self.remember()
        # A skipped test has not passed.
        self.assertEqual(self.run_all("--marker", self.marker), (0, "0 passed, 0 failed, 1 skipped, 2 unchanged"))
        self.remember()
        self.assertEqual(self.run_all("--marker", self.marker), (0, "0 passed, 0 failed, 1 skipped, 2 unchanged"))
        self.assertEqual(self.run_all(), (0, "2 passed, 0 failed, 1 skipped, 0 unchanged"))
        self.declare("a.fine", "a.good", "a.skips", "a.added")
        self.assertEqual(self.run_all("--marker", self.marker), (0, "1 passed, 0 failed, 1 skipped, 2 unchanged"))
        executable(self.program, PROGRAM + "# changed\n")
        self.assertEqual(self.run_all("--marker", self.marker), (0, "3 passed, 0 failed, 1 skipped, 0 unchanged"))

    def test_what_failed_is_never_remembered(self):
        self.declare("a.fine", "a.fails")
        self.assertEqual(self.run_all("--marker", self.marker), (1, "1 passed, 1 failed, 0 skipped, 0 unchanged"))
        self.remember()
        self.assertEqual(self.run_all("--marker", self.marker), (1, "0 passed, 1 failed, 0 skipped, 1 unchanged"))

    def test_times_put_the_longest_first(self):
        times = os.path.join(self.folder, "times.txt")
        self.declare("a.fine")
        self.run_all("--times", times)
        self.assertEqual(list(run_tests.read_times(times)), ["x_test/a.fine"])

    def test_a_build_without_tests_is_no_failure(self):
        self.declare()
        self.assertEqual(self.run_all(), (0, "0 passed, 0 failed, 0 skipped, 0 unchanged"))

    def test_the_command_line(self):
        self.declare("a.fine", "b.fails")
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_tests.py")
        done = subprocess.run([sys.executable, "-B", tool, self.folder, "--", "-R", "fails"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout.strip().split("\n")[-1]),
                         (1, "0 passed, 1 failed, 0 skipped, 0 unchanged"))
        with open(self.passed, "w", encoding="utf-8") as file:
            json.dump({"stage": "asan", "passed": {"d": ["t"]}}, file)
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unchanged.py")
        subprocess.run([sys.executable, "-B", tool, "remember", self.marker, self.passed], check=True)
        self.assertTrue(unchanged.Marker(self.marker).has("asan", "d", "t"))


if __name__ == "__main__":
    unittest.main()
