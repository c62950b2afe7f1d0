"""Tests of command_line.py, and of the commands that start one program."""

import os
import re
from unittest import mock

from dev import apt, benchmarks, command_line, fuzzing, output, packages, suites
from dev.output import Failure
from dev.testing_folder import FolderTest


class CommandLine(FolderTest):
    def test_help(self):
        # It asks no other program.
        for program in ("apt-cache", "dpkg-query", "cmake"):
            self.stand_in(program)
        for words in ([], ["help"], ["-h"], ["--help"], ["build", "--help"], ["test", "-h"], [""]):
            self.assertEqual(self.said(command_line.dispatch, words), (0, output.usage() + "\n"))
        self.assertEqual(self.calls(), [])

    def test_each_command_is_in_the_help(self):
        shown = set(re.findall(r"^    ([a-z-]+)", output.usage(), re.M))
        self.assertEqual(
            shown, {name for name in command_line.COMMANDS if not name.startswith("-")})

    def test_an_unknown_command(self):
        with self.assertRaisesRegex(Failure, "there is no command frobnicate"):
            self.said(command_line.dispatch, ["frobnicate"])

    def test_durations(self):
        self.assertEqual([output.minutes(seconds) for seconds in (0, 59.9, 60, 3661)],
                         ["0:00", "0:59", "1:00", "61:01"])


class Scripts(FolderTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(apt, "need")
        patch.start()
        self.addCleanup(patch.stop)
        patch = mock.patch.multiple(packages, test=lambda: [], bench=lambda: [])
        patch.start()
        self.addCleanup(patch.stop)
        self.stand_in("cmake")

    def test_benchmarks_with_their_descriptions(self):
        self.write("bench/run_a.py", '#!/usr/bin/env python3\n"""Echo of "lines", and more.\n"""\n')
        self.write("bench/run_b.py", "#!/usr/bin/env python3\n# A comment\n")
        self.assertEqual(self.said(benchmarks.bench)[1].splitlines()[1:],
                         ["    a                Echo of ", "    b                A comment"])

    def test_an_unknown_benchmark(self):
        for name in ("nope", "all"):
            with self.assertRaisesRegex(Failure, f"there is no benchmark {name}"):
                benchmarks.bench(name)

    def test_a_fuzz_target_with_its_corpus_and_dictionary(self):
        self.write("build/asan/fuzz/http", "#!/bin/sh\necho \"$@\" >arguments\n")
        os.chmod("build/asan/fuzz/http", 0o755)
        self.write("fuzz/corpus/http/one")
        self.write("fuzz/dictionary/http.dict")
        self.assertEqual(self.said(fuzzing.fuzz, "http", "5")[0], 0)
        self.assertEqual(self.read("arguments").split(), [
                "-max_total_time=5", "-timeout=30", "-print_final_stats=1",
                "-dict=fuzz/dictionary/http.dict", "-artifact_prefix=build/asan/fuzz/http-",
                "build/asan/fuzz/found/http", "fuzz/corpus/http"])
        with self.assertRaisesRegex(Failure, "there is no fuzz target resp"):
            self.said(fuzzing.fuzz, "resp")

    def test_conformance_suites(self):
        with self.assertRaisesRegex(Failure, "the conformance suites are websocket and redis"):
            self.said(suites.conformance, "http")
