"""Tests of build_times.py."""

from dev import build_times
from dev.output import Failure
from dev.testing_folder import FolderTest

LOG = """\
# ninja log v5
0\t9000\t1\tagain.o\taa
0\t1500\t1\tb c.o\tab
100\t2600\t1\tmade.h\tac
100\t2600\t1\tmade.cpp\tac
0\t500\t2\tagain.o\taa
"""


class BuildTimes(FolderTest):
    def write_outputs(self, preset):
        for name in ("again.o", "b c.o", "made.h", "made.cpp"):
            self.write(f"build/{preset}/{name}", "")

    def test_the_slowest_first_each_as_it_last_ran(self):
        self.write("build/release/.ninja_log", LOG + "0\t9999\t3\tgone.o\tad\n")
        self.write_outputs("release")
        status, said = self.said(build_times.show)
        self.assertEqual(status, 0)
        self.assertEqual(said.splitlines()[1:], [
            "      2.5  made.h", "      1.5  b c.o", "      0.5  again.o",
            "      4.5  all 3 steps, one after another"])

    def test_count_and_preset(self):
        self.write("build/asan/.ninja_log", LOG)
        self.write_outputs("asan")
        said = self.said(build_times.show, "asan", "--count", "1")[1].splitlines()
        self.assertEqual(len(said), 3)
        self.assertIn("build/asan", said[0])
        self.assertEqual(build_times.parse([]), ("release", 10))

    def test_errors(self):
        for words in (["--count"], ["--count", "0"], ["--count", "x"], ["--all"]):
            with self.assertRaisesRegex(Failure, "build-times takes a preset and --count N"):
                build_times.show(*words)
        with self.assertRaisesRegex(Failure, "build/release has no times of a build"):
            build_times.show()
