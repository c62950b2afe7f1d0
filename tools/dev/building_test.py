"""Tests of building.py, with a stand-in for CMake."""

import os

from dev import building
from dev.output import Failure
from dev.testing_folder import FolderTest


class Building(FolderTest):
    def test_jobs(self):
        self.assertEqual(building.jobs(), len(os.sched_getaffinity(0)))
        os.environ["EDDY_JOBS"] = "7"
        self.assertEqual(building.jobs(), 7)
        os.environ["EDDY_JOBS"] = "many"
        self.assertRaises(Failure, building.jobs)

    def test_a_failed_build_shows_its_first_failure(self):
        lines = ["[1/3] a", "FAILED: b", "error", *map(str, range(100))]
        self.write("build/log/x.log", "\n".join(lines) + "\n")
        said = self.said(building.show_failure, "x")[1].splitlines()
        self.assertEqual(said, lines[1:81] + ["    The whole log is build/log/x.log."])

    def test_a_failure_without_a_mark_shows_the_end(self):
        lines = [*map(str, range(100))]
        self.write("build/log/x.log", "\n".join(lines) + "\n")
        self.assertEqual(self.said(building.show_failure, "x")[1].splitlines()[:-1], lines[60:])

    def test_options_of_the_cache(self):
        self.write("build/release/CMakeCache.txt", "EDDY_TESTS:BOOL=ON\nEDDY_BENCH:BOOL=OFF\n")
        self.assertTrue(building.is_on("EDDY_TESTS"))
        self.assertFalse(building.is_on("EDDY_BENCH"))
        self.assertFalse(building.is_on("EDDY_TEST"))

    def test_the_times_of_new_steps_are_noted(self):
        old = "0\t900\t1\told.o\taa\n"
        self.write("build/release/.ninja_log", f"# ninja log v5\n{old}0\t1\t1\tolder.o\tab\n")
        # As ninja, which drops old lines as it starts.
        self.write("next", f"# ninja log v5\n{old}0\t1540\t1\tnew.o\tac\n")
        self.stand_in("cmake", "cp next build/release/.ninja_log")
        self.assertTrue(building.compile_targets("release", "eddy"))
        self.assertEqual(self.read(building.STEPS), "1.5 release: new.o\n")
        self.assertEqual(self.calls(), [
            f"cmake --build build/release -j {building.jobs()} --target eddy"])

    def test_a_build_that_fails(self):
        self.stand_in("cmake", "echo reason; exit 1")
        done, said = self.said(building.compile_targets, "release")
        self.assertFalse(done)
        self.assertIn("reason", said)
        self.assertRaises(SystemExit, building.require, done)

    def test_a_program_of_the_caller_is_not_built(self):
        os.environ["EDDY_BINARY"] = "/opt/eddy"
        building.use_built_program()
        self.assertEqual((os.environ["EDDY_BINARY"], self.calls()), ("/opt/eddy", []))
