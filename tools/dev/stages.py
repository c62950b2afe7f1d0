"""Stages of `./eddy-dev test`."""

import os
import re
import time

from dev import apt, building, formatting, packages, rivals
from dev.output import read_lines, say, show_tail
from dev.processes import foreground
from dev.steps import log_of, logged

# The first for users of the code; the rest is added by --all.
FIRST = ("format", "tidy", "release", "headers", "integration")
MORE = ("bench", "asan", "tsan", "fuzz")
QUICK = ("format", "tidy", "release")
# Stages that leave out tests which passed with the same inputs: see tools/unchanged.py.
SELECTED = ("asan", "tsan", "fuzz")
TIDY_CHECKS = (
    ("tidy", ["python3", "tools/tidy.py"]),
    ("tidy_test", ["python3", "tools/tidy_test.py"]),
    ("run_tests_test", ["python3", "tools/run_tests_test.py"]),
    ("dev_test", ["python3", "-B", "tools/dev_test.py"]))
# Code above a loop runs the same code on io_uring and on epoll, whose own tests are those of
# io, net and tls. With sanitizers one of them is enough, beside the simulator.
ABOVE_IO = "^(runtime|runtime_[a-z]+|http)_test/.*/epoll($| )"
RELEASE_OPTIONS = ("-DEDDY_TESTS=ON", "-DEDDY_CHECK_HEADERS=ON")
# Shown of a failed stage's log, at most.
FAILURE_LINES = 400
CHECK_LINES = 60
END_LINES = 40

LAST_LINE = re.compile(r"([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped, ([0-9]+) unchanged")
NO_FAILURE = re.compile(r" *[0-9]+/[0-9]+ Test .* (Passed|\*\*\*Skipped) +[0-9.]+ sec")


class Stages:
    """One method for each stage. `tally` has the counts, `logs` names those of tests that ran."""

    def __init__(self, tally):
        self.tally = tally
        self.logs = []
        self.begin = time.monotonic()
        # True if build/release is built; None before the attempt.
        self.is_release_built = None

    def run(self, stage):
        self.begin = time.monotonic()
        getattr(self, stage)()

    def format(self):
        say("--- format")
        self._check("format", formatting.check_command())

    def tidy(self):
        say("--- tidy")
        for name, command in TIDY_CHECKS:
            self._check(name, command)

    def release(self):
        if self._build_release():
            say("--- release: test")
            self._test("release", "release", "-LE", "^(tidy|headers|integration)$")

    def headers(self):
        if self._build_release():
            say("--- headers")
            self._test("headers", "release", "-L", "^headers$")

    def integration(self):
        if self._build_release():
            say("--- integration")
            rivals.valkey_8()
            rivals.redis_7_2()
            rivals.newest_servers()
            rivals.lua_drivers()
            self._test("integration", "release", "-L", "^integration$")

    def bench(self):
        """Builds the benchmarks."""
        apt.need(*packages.bench())
        if self._build("bench", "release", ["all"], *RELEASE_OPTIONS, "-DEDDY_BENCH=ON"):
            self.tally.count("bench", 1, 0, self.begin)

    def asan(self):
        if self._build("asan", "asan", ["gtests", "example_programs", "eddy"]):
            say("--- asan: test")
            self._test("asan", "asan", "-LE", "^(tidy|replay|fuzz)$", "-E", ABOVE_IO)

    def tsan(self):
        """Without what has no second thread: the simulator, caches on one loop.

        The whole program's tests are the asan stage's.
        """
        if self._build("tsan", "tsan", ["gtests"]):
            say("--- tsan: test")
            self._test("tsan", "tsan", "-LE", "^(tidy|integration)$",
                       "-E", f"/sim($| )|^runtime_cache_test/io/cache_|{ABOVE_IO}")

    def fuzz(self):
        if self._build("fuzz", "asan", ["fuzzers"]):
            say("--- fuzz: replay and run")
            self._test("fuzz", "asan", "-L", "^(replay|fuzz)$")

    def _build_release(self):
        if self.is_release_built is None:
            self.is_release_built = self._build(
                "release", "release", ["all"], *RELEASE_OPTIONS, "-DEDDY_BENCH=OFF")
        return self.is_release_built

    def _build(self, stage, preset, targets, *options):
        """Builds it; True on success. A failure counts once."""
        say(f"--- {stage}: build")
        if building.configure(preset, *options) and building.compile_targets(preset, *targets):
            return True
        self.tally.count(stage, 0, 1, self.begin, "it does not build")
        return False

    def _check(self, stage, command):
        """One check that is no test of ctest's."""
        begin = time.monotonic()
        if logged(stage, command) == 0:
            self.tally.count(stage, 1, 0, begin)
        else:
            show_tail(log_of(stage), CHECK_LINES)
            self.tally.count(stage, 0, 1, begin)

    def _test(self, stage, preset, *choice):
        """Runs the tests that ctest's options choose, and counts them.

        With EDDY_TEST_MARKER, tests of SELECTED stages that passed with the same inputs are left
        out.
        """
        marker = os.environ.get("EDDY_TEST_MARKER", "")
        passed_file = log_of(f"{stage}-passed").replace(".log", ".json")
        # With the marker, which outlives a checkout, also how long tests take: the longest begin
        # first.
        folder = (os.path.dirname(marker) or ".") if marker else f"build/{preset}"
        times = f"{folder}/{'eddy-' if marker else ''}times-{stage}.txt"
        # One more than there are processors: many tests wait for a clock or for another process. While a processor
        # is idle, run_tests.py runs more.
        options = ["--stage", stage, "--jobs", str(building.jobs() + 1), "--times", times]
        if os.path.exists(passed_file):
            os.remove(passed_file)
        if marker and stage in SELECTED:
            options += ["--passed", passed_file]
            if not os.environ.get("EDDY_TEST_ALL"):
                options += ["--marker", marker]
        log = log_of(f"{stage}-test")
        status = logged(f"{stage}-test", ["python3", "-B", "tools/run_tests.py", f"build/{preset}",
                                          *options, "--", *choice])
        passed, failed, note = self._read_result(log, status)
        # At once: a run that fails, or is ended, later need not be repeated up to here.
        if os.path.exists(passed_file) and os.path.getsize(passed_file):
            foreground(["python3", "-B", "tools/unchanged.py", "remember", marker, passed_file])
        self.logs.append(log)
        self.tally.count(stage, passed, failed, self.begin, note)

    def _read_result(self, log, status):
        """Passed, failed and a note, of the log of run_tests.py. Prints what failed."""
        lines = read_lines(log)
        if found := LAST_LINE.fullmatch(lines[-1] if lines else ""):
            passed, failed, skipped, unchanged = map(int, found.groups())
        else:
            passed, failed, skipped, unchanged = 0, 1, 0, 0
            show_tail(log, END_LINES)
        if status != 0 and failed == 0:
            failed = 1
        self.tally.unchanged += unchanged
        if failed:
            for line in [line for line in lines if not NO_FAILURE.fullmatch(line)][:FAILURE_LINES]:
                say(line)
            return passed, failed, log
        note = f"{unchanged} unchanged since they passed  " if unchanged else ""
        note += "".join(f"{line}  " for line in lines if line.startswith("Unsteady, "))
        return passed, failed, note + (f"{skipped} skipped: {log}" if skipped else "")
