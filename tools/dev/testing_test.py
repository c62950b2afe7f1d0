"""Tests of testing.py, stages.py and tally.py: choice of stages, counts, and the status."""

import os
import time
from unittest import mock

from dev import apt, packages, stages, testing
from dev.output import Failure
from dev.tally import Tally
from dev.testing_folder import FolderTest

RUN_TESTS = """
case "$*" in *run_tests.py*)
    echo "  1/3 Test a one Passed     1.20 sec"
    echo "  2/3 Test b ***Failed     3.00 sec"
    echo "the reason"
    echo "  3/3 Test c ***Skipped     0.00 sec"
    echo "RESULT"
esac
"""
GOOD = RUN_TESTS.replace("RESULT", "5 passed, 0 failed, 2 skipped, 3 unchanged")
BAD = RUN_TESTS.replace("RESULT", "1 passed, 1 failed, 1 skipped, 0 unchanged") + "exit 1"


class Choice(FolderTest):
    def test_stages_by_option(self):
        self.assertEqual(testing.choose([]), stages.FIRST)
        self.assertEqual(testing.choose(["--quick"]), ("format", "tidy", "release"))
        self.assertEqual(testing.choose(["--all"]), stages.FIRST + stages.MORE)
        self.assertEqual(testing.choose(["--quick", "--more"]), stages.MORE)
        self.assertEqual(testing.choose(["--only", "tsan"]), ("tsan",))
        for stage in testing.choose(["--all"]):
            self.assertTrue(callable(getattr(stages.Stages, stage)))

    def test_errors(self):
        for words in (["--only"], ["--only", "all"], ["--only", "format tidy"], ["quick"],
                      ["--quick", "x"]):
            self.assertRaises(Failure, testing.choose, words)

    def test_the_ten_slowest(self):
        lines = [f"{number}.5 x" for number in range(12)]
        self.assertEqual(testing.slowest(lines), [f"{number}.5 x" for number in range(11, 1, -1)])

    def test_names_of_tests_have_spaces(self):
        self.write("log", "  1/3 Test a one Passed     1.20 sec\nno test\n"
                          "  2/3 Test b ***Failed 3.00 sec\n")
        self.assertEqual(testing.test_times(["log"]), ["1.20 a one", "3.00 b"])


class Counts(FolderTest):
    def test_a_file_carries_the_counts(self):
        self.write("tally")
        first = Tally("tally")
        self.said(first.count, "asan", 5, 0, time.monotonic(), "note")
        first.unchanged = 2
        first.save()
        second = Tally("tally")
        self.said(second.count, "tsan", 1, 1, time.monotonic())
        self.assertEqual(second.last_line(), "6 passed, 1 failed, 2 unchanged since they passed")
        self.assertEqual(second.summary, [
            "asan         ok           5 passed    0 failed    0:00  note",
            "tsan         FAILED       1 passed    1 failed    0:00  "])
        self.assertFalse(second.is_good())

    def test_nothing_tested_is_not_good(self):
        self.assertFalse(Tally().is_good())


class Runs(FolderTest):
    def setUp(self):
        super().setUp()
        for owner, name in ((apt, "need"), (testing, "note_folder")):
            patch = mock.patch.object(owner, name)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.multiple(
            packages, test=lambda: [], bench=lambda: [], compiler=lambda: None)
        patch.start()
        self.addCleanup(patch.stop)
        self.stand_in("cmake")
        self.stand_in("clang-format-19")

    def test_each_stage_is_counted(self):
        self.stand_in("python3", GOOD)
        status, said = self.said(testing.test, "--more")
        self.assertEqual(status, 0)
        self.assertEqual(said.splitlines()[-1],
                         "16 passed, 0 failed, 9 unchanged since they passed")
        self.assertIn("3 unchanged since they passed  2 skipped: build/log/tsan-test.log", said)
        self.assertIn("The slowest tests, in seconds:\n    3.00 b\n", said)

    def test_a_failed_test_is_shown(self):
        self.stand_in("python3", BAD)
        status, said = self.said(testing.test, "--only", "asan")
        self.assertEqual(status, 1)
        self.assertIn("Test b ***Failed     3.00 sec\nthe reason\n", said)
        self.assertNotIn("1/3 Test a", said)
        self.assertEqual(said.splitlines()[-1], "1 passed, 1 failed")

    def test_a_runner_without_a_result_is_a_failure(self):
        self.stand_in("python3", "exit 0")
        said = self.said(testing.test, "--only", "asan")[1]
        self.assertEqual(said.splitlines()[-1], "0 passed, 1 failed")

    def test_a_release_that_does_not_build_ends_the_run(self):
        self.stand_in("cmake", "exit 1")
        self.stand_in("python3")
        status, said = self.said(testing.test, "--all")
        self.assertEqual(status, testing.NOT_BUILT)
        self.assertIn("it does not build", said)
        self.assertNotIn("asan", said)

    def test_the_marker_leaves_tests_out(self):
        self.stand_in("python3", GOOD)
        os.environ["EDDY_TEST_MARKER"] = "kept/marker.json"
        self.said(testing.test, "--only", "fuzz")
        options = "--times kept/eddy-times-fuzz.txt --passed build/log/fuzz-passed.json"
        self.assertIn(f"{options} --marker kept/marker.json -- ", self.calls()[-1])
        os.environ["EDDY_TEST_ALL"] = "1"
        self.said(testing.test, "--only", "fuzz")
        self.assertIn(f"{options} -- ", self.calls()[-1])
