#!/usr/bin/env python3
"""Redis's own test suite, run from outside against a cache.

Usage: redis_suite.py [--redis] [--slow] [UNIT...]; ./eddy-dev conformance redis calls it.

A UNIT is a file of the suite, such as unit/type/list; all without one. Each has a fresh cache with `--mode admin`. Tests that
the suite itself does not run against a server from outside (its tag external:skip) are left out, and without --slow those of its
tag `slow`. The suite is that of Redis's source package in Debian 12, unpacked below build/rivals/; it needs Tcl and redis-tools.
Encodings are not compared, as 7.2's differ.

tests/redis_suite/SUITE.txt lists the tests that fail, each with its reason. The run fails with a test that fails and is not in
the list, and with one that is in the list and passes. Lines of the list that begin with `-` are of tests, or whole units, that are
left out, since what comes behind their failure would fail, too; those with `?` are of tests that may pass. --redis runs
redis-server of PATH, which must be of the suite's version, in place of the cache: nothing may fail, and nothing is left out.
Logs are in build/redis_suite/.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))

import harness  # noqa: E402

LOGS = os.path.join(ROOT, "build", "redis_suite")
# Limits in seconds of a unit, with and without the slow tests. The test that runs at the limit has failed.
UNIT_S = 300
SLOW_UNIT_S = 1800

# The source package in Debian's archive, its digest, and the suite's further arguments.
SUITES = {
    "7.0": ("redis-7.0.15", "pool/main/r/redis/redis_7.0.15.orig.tar.gz",
            "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982", ["--ignore-encoding"]),
}


def unpacked(suite):
    """The suite's folder, with the tools that it calls."""
    name, path, digest, _ = SUITES[suite]
    folder = os.path.join(ROOT, "build", "rivals", f"{name}-source")
    subprocess.run([os.path.join(ROOT, "tools", "unpack_packages.sh"), folder, "debian", path, digest], check=True)
    for tool in ("redis-cli", "redis-benchmark"):
        found = shutil.which(tool)
        link = os.path.join(folder, name, "src", tool)
        if found and not os.path.lexists(link):
            os.symlink(found, link)
    return os.path.join(folder, name)


@contextlib.contextmanager
def cache():
    """The port of a fresh cache."""
    port = harness.free_port()
    with harness.Daemon(flags=["--drain", "1s", "--log-level", "warn"]) as daemon:
        files = os.path.join(daemon.folder, "files")
        daemon.must("create", "cache", "db", "-p", str(port), "--mode", "admin", "--dir", files, "--save", "off", "-s")
        yield port


@contextlib.contextmanager
def redis_server():
    """The port of a fresh redis-server."""
    port = harness.free_port()
    with tempfile.TemporaryDirectory(prefix="eddy-") as folder:
        with open(os.path.join(folder, "log"), "wb") as log:
            server = subprocess.Popen(
                ["redis-server", "--port", str(port), "--dir", folder, "--save", "", "--enable-debug-command", "yes",
                 "--enable-protected-configs", "yes", "--enable-module-command", "yes"], stdout=log, stderr=log)
        try:
            def answers():
                with contextlib.suppress(OSError):
                    harness.connect(port).close()
                    return True
                return False
            harness.eventually(answers, "redis-server")
            yield port
        finally:
            server.kill()
            server.wait()


def units_of(folder):
    """The units of the suite that a server from outside can be tried with."""
    listed = subprocess.run(["tclsh", "tests/test_helper.tcl", "--list-tests"], cwd=folder, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.split()
    return [unit for unit in listed if unit.startswith("unit/") and not unit.startswith("unit/moduleapi/")]


class Unit:
    """Result of one unit: the tests that passed, and the names of failed ones."""

    def __init__(self, name, output, ended):
        self.name = name
        self.passed = []
        self.failed = []
        plain = re.sub(r"\x1b\[[0-9;]*m|\[[0-9;]+m", "", output)
        # The list at the end, whose lines begin with stars, repeats what has failed.
        for kind, text in re.findall(r"^\[(ok|err|exception)\]: (.*)", plain, re.MULTILINE):
            if kind == "ok":
                self.passed.append(re.sub(r" \(\d+ ms\)$", "", text))
            else:
                self.failed.append(re.sub(r" in tests/\S+\.tcl$", "", text))
        if not ended:
            last = (self.passed + self.failed or ["its beginning"])[-1]
            self.failed.append(f"no end after: {last}")


def run_unit(folder, logs, server, name, left_out, options, limit_s):
    for test in left_out:
        options = options + ["--skiptest", test]
    log = os.path.join(logs, name.replace("/", "_") + ".log")
    with server() as port, open(log, "wb") as out:
        process = subprocess.Popen(
            ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), "--baseport",
             str(harness.free_port()), "--durable", "--single", name, *options],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            process.wait(limit_s)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
            # The suite's clients are processes of its own group.
            os.killpg(process.pid, 9)
            process.wait()
    with open(log, encoding="utf-8", errors="replace") as file:
        return Unit(name, file.read(), ended)


def expectations(suite):
    """For each mark of a line (none, `-` and `?`): unit -> names of its tests, or "" for the unit itself."""
    found = {"": {}, "-": {}, "?": {}}
    with open(os.path.join(ROOT, "tests", "redis_suite", f"{suite}.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if not line or line.startswith("#"):
                continue
            mark = line[0] if line[:2] in ("- ", "? ") else ""
            unit, _, name = line[2 if mark else 0:].partition(": ")
            found[mark].setdefault(unit, []).append(name)
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--suite", choices=sorted(SUITES), default="7.0")
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("unit", nargs="*")
    chosen = parser.parse_args()
    for tool in ("tclsh", "redis-cli") + (("redis-server",) if chosen.redis else ()):
        if not shutil.which(tool):
            sys.exit(f"redis_suite.py: there is no {tool}; apt has it in tcl, redis-tools and redis-server")

    folder = unpacked(chosen.suite)
    logs = os.path.join(LOGS, chosen.suite)
    os.makedirs(logs, exist_ok=True)
    options = SUITES[chosen.suite][3] + ([] if chosen.slow else ["--tags", "-slow"])
    expected = {"": {}, "-": {}, "?": {}} if chosen.redis else expectations(chosen.suite)
    passed = wrong = failed_as_expected = 0
    units = chosen.unit or [unit for unit in units_of(folder) if "" not in expected["-"].get(unit, [])]
    for name in units:
        unit = run_unit(folder, logs, redis_server if chosen.redis else cache, name, expected["-"].get(name, []), options,
                        SLOW_UNIT_S if chosen.slow else UNIT_S)
        listed = expected[""].get(name, [])
        unexpected = [test for test in unit.failed if test not in listed + expected["?"].get(name, [])]
        mended = [test for test in listed if test in unit.passed and test not in unit.failed]
        passed += len(unit.passed)
        failed_as_expected += len(unit.failed) - len(unexpected)
        wrong += len(unexpected) + len(mended)
        print(f"{name}: {len(unit.passed)} passed, {len(unit.failed)} failed", flush=True)
        for test in unexpected:
            print(f"  FAILED: {test}", flush=True)
        for test in mended:
            print(f"  passes, and is listed as one that fails: {test}", flush=True)
    print(f"{passed} passed, {failed_as_expected} failed as listed, {wrong} otherwise; logs in {os.path.relpath(logs, ROOT)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
