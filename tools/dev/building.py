"""Builds of CMake's presets in build/PRESET: reasons of failures, and times of steps."""

import contextlib
import os
import re
import sys

from dev import apt, packages
from dev.output import Failure, read_lines, say
from dev.steps import LOGS, log_of, logged

STEPS = f"{LOGS}/steps.log"
PROGRAM = "build/release/eddy"
# Shown of a build's log: from the first failure on, or else the end.
FAILURE_LINES = 80
END_LINES = 40
NINJA_FIELDS = 5


def jobs():
    """Compilers and tests at once: EDDY_JOBS, or one for each usable core."""
    chosen = os.environ.get("EDDY_JOBS") or str(len(os.sched_getaffinity(0)))
    if not re.fullmatch("[1-9][0-9]*", chosen):
        raise Failure(f"EDDY_JOBS is how many compilers and tests run at once, not {chosen}")
    return int(chosen)


def show_failure(step):
    """The part of a failed step's log that has the reason."""
    lines = read_lines(log_of(step))
    first = next((at for at, line in enumerate(lines) if line.startswith("FAILED:")), None)
    shown = lines[-END_LINES:] if first is None else lines[first:first + FAILURE_LINES]
    for line in shown:
        say(line)
    say(f"    The whole log is {log_of(step)}.")


def cache_lines(folder):
    """The lines of a build folder's CMakeCache.txt; none if it was not made yet."""
    try:
        return read_lines(f"{folder}/CMakeCache.txt")
    except OSError:
        return []


def check_place(folder):
    """Fails if a build folder was made elsewhere: most of its files name the checkout's place."""
    key = "CMAKE_HOME_DIRECTORY:INTERNAL="
    homes = (line.removeprefix(key) for line in cache_lines(folder) if line.startswith(key))
    home = next(homes, "")
    is_here = False
    with contextlib.suppress(OSError):
        is_here = os.path.samefile(home, ".")
    if home and not is_here:
        raise Failure(f"{folder} was made when this checkout was in {home}, and cannot be used "
                      f"here. Remove it and try again: rm -rf {os.getcwd()}/{folder}")


def is_on(option):
    """True if build/release was made with the option."""
    return any(re.match(f"{option}:[A-Z]*=ON", line) for line in cache_lines("build/release"))


def configure(preset, *options):
    """Makes build/PRESET by CMake; True on success. If not, the reason is printed."""
    check_place(f"build/{preset}")
    if logged(f"{preset}-configure", ["cmake", "--preset", preset, *options]) == 0:
        return True
    show_failure(f"{preset}-configure")
    return False


def configure_release(*options):
    """The same of build/release, for one part of it.

    Parts that the folder has stay as they are. The others are left out: the preset would need the
    libraries of benchmarks and tests.
    """
    left_out = []
    if not is_on("EDDY_TESTS"):
        left_out += ["-DEDDY_TESTS=OFF", "-DEDDY_CHECK_HEADERS=OFF"]
    if not is_on("EDDY_BENCH"):
        left_out.append("-DEDDY_BENCH=OFF")
    return configure("release", *left_out, *options)


def ninja_steps(preset):
    """The lines of ninja's log: start and end in ms, file's time, output, command's digest."""
    try:
        return read_lines(f"build/{preset}/.ninja_log")
    except OSError:
        return []


def compile_targets(preset, *targets):
    """Builds the targets of build/PRESET, or the default; True on success.

    If not, the reason is printed. The seconds of each step are appended to the log `steps`.
    """
    before = set(ninja_steps(preset))
    wanted = ["--target", *targets] if targets else []
    status = logged(f"{preset}-build",
                    ["cmake", "--build", f"build/{preset}", "-j", str(jobs()), *wanted])
    if status != 0:
        show_failure(f"{preset}-build")
    with open(STEPS, "a", encoding="utf-8", errors="surrogateescape") as file:
        for line in ninja_steps(preset):
            fields = line.split()
            # Not by their number: ninja drops old lines as it starts.
            if line not in before and len(fields) == NINJA_FIELDS:
                seconds = (int(fields[1]) - int(fields[0])) / 1000
                file.write(f"{seconds:.1f} {preset}: {fields[3]}\n")
    return status == 0


def require(is_done):
    """Ends the command with status 1 after a failure that was printed."""
    if not is_done:
        sys.exit(1)


def build():
    """build/release/eddy alone: what tests and benchmarks need comes with those commands."""
    apt.need(*packages.BUILD)
    say(f"Building {PROGRAM}")
    require(configure_release() and compile_targets("release", "eddy"))


def use_built_program():
    """EDDY_BINARY, for scripts: the caller's, or else the program of this checkout, built now."""
    if not os.environ.get("EDDY_BINARY"):
        build()
        os.environ["EDDY_BINARY"] = os.path.abspath(PROGRAM)


def reference():
    """The library's reference, by Doxygen."""
    apt.need(*packages.BUILD, "doxygen")
    require(configure_release() and compile_targets("release", "doc"))
    say("Written: build/release/doc/html/index.html")
    return 0
