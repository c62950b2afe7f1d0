#!/usr/bin/env python3
"""Runner of a build's tests: ctest's list, with many GoogleTest tests in one process.

ctest starts a process for each test, which with sanitizers costs as much as the tests. This runner takes ctest's
list, gives a process a batch of one program's tests, and still counts, times and names each test: after a crash or a
timeout the rest of the batch runs in a new process. Scripts and other programs run as ctest runs them.

Usage: run_tests.py BUILD [OPTION...] [-- CTEST-OPTION...]     e.g. -- -L integration
  --stage NAME     the name under which the marker knows these tests (the build folder's)
  --jobs N         processes at once (one more than processors); up to twice as many while a processor is idle
  --marker FILE    leave out what has passed with the same inputs: see unchanged.py
  --passed FILE    write what passed, for the marker
  --times FILE     write seconds and names, the slowest first; also read, to start the longest first
The last line is "P passed, F failed, S skipped, U unchanged". The status is 0 if none failed.

A few tests that fail run once more, alone, when the others have ended. What passes then counts, and a line names it
as unsteady. A crash, a timeout or a sanitizer's report is a failure at once.
"""

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import unchanged  # noqa: E402

BATCH_TESTS = 100      # at most in a process
BATCH_S = 5.0          # of expected time in a process, at most; a longer test has one of its own
UNKNOWN_S = 0.05       # expected of a test that never ran
OUTPUT_BYTES = 60_000  # shown of a failed test, its end
POLL_S = 0.05
# Tests that sleep leave processors idle. After each interval with so much idle time, in processors, one more process
# runs; a machine with other work gets none.
IDLE_INTERVAL_S = 0.5
IDLE_PROCESSORS = 0.5
# Failures of a run that are tried once more. More of them have a cause in common.
SECOND_TRIES = 3
SANITIZER = re.compile(rb"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")

# The properties of tests that are honoured. Another one stops the run: it would be ignored in silence.
KNOWN = {"COST", "DISABLED", "ENVIRONMENT", "LABELS", "PASS_REGULAR_EXPRESSION", "RUN_SERIAL",
         "SKIP_REGULAR_EXPRESSION", "SKIP_RETURN_CODE", "TIMEOUT", "WORKING_DIRECTORY"}


class Test:
    """One test of ctest's."""

    def __init__(self, listed):
        properties = {entry["name"]: entry["value"] for entry in listed.get("properties", [])}
        unknown = set(properties) - KNOWN
        if unknown:
            raise ValueError(f"{listed['name']} has properties that run_tests.py does not know: {', '.join(sorted(unknown))}")
        self.name = re.sub(r"\s+# GetParam\(\).*", "", listed["name"])
        self.command = listed.get("command")
        self.environment = properties.get("ENVIRONMENT", [])
        self.folder = properties.get("WORKING_DIRECTORY")
        self.timeout = float(properties.get("TIMEOUT", 1500))
        self.cost = float(properties.get("COST", 0))
        self.alone = bool(properties.get("RUN_SERIAL"))
        self.disabled = bool(properties.get("DISABLED"))
        self.skip_status = properties.get("SKIP_RETURN_CODE")
        self.skip = properties.get("SKIP_REGULAR_EXPRESSION", [])
        self.passes = properties.get("PASS_REGULAR_EXPRESSION", [])
        # A single test of a GoogleTest program, as gtest_discover_tests() declares it.
        self.filter = None
        rest = self.command[1:] if self.command else []
        if (len(rest) == 2 and rest[1] == "--gtest_also_run_disabled_tests"
                and (match := re.fullmatch(r"--gtest_filter=([^*?:-]+)", rest[0]))):
            self.filter = match[1]

    def group(self):
        """Tests of equal groups can share a process."""
        return (self.command[0], tuple(self.environment), self.folder, self.timeout) if self.filter else None

    def digest(self, inputs):
        if not self.command:
            return None
        command = [self.command[0]] if self.filter else self.command
        return inputs.digest(command, self.environment, self.folder)


def batches(tests, expected):
    """Lists of tests, each for one process, the longest first. `expected` maps names to seconds."""
    def seconds(test):
        return expected.get(test.name, test.cost or UNKNOWN_S)

    groups = collections.OrderedDict()
    single = []
    for test in tests:
        if test.filter:
            groups.setdefault(test.group(), []).append(test)
        else:
            single.append([test])
    made = single
    for group in groups.values():
        batch, total = [], 0.0
        for test in sorted(group, key=seconds, reverse=True):
            if batch and (total + seconds(test) > BATCH_S or len(batch) == BATCH_TESTS):
                made.append(batch)
                batch, total = [], 0.0
            batch.append(test)
            total += seconds(test)
        made.append(batch)
    return sorted(made, key=lambda batch: sum(map(seconds, batch)), reverse=True)


class Process:
    """One process in a group of its own, with its output in a file that grows."""

    def __init__(self, command, environment, folder):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, cwd=folder,
            env={**os.environ, **dict(entry.split("=", 1) for entry in environment)}, start_new_session=True)
        self.reader = os.dup(self.output.fileno())
        self.at = 0

    def wait(self, seconds):
        """The status if it has ended by then, or None."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def new_output(self):
        data = b""
        while block := os.pread(self.reader, 1 << 20, self.at):
            data += block
            self.at += len(block)
        return data

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def close(self):
        # Processes left running would disturb the tests after it.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        os.close(self.reader)
        self.output.close()


SEE_ABOVE = "see above"


def ended(status):
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


class Run:
    """The state of all workers. Results: name -> (passed | failed | skipped, seconds)."""

    def __init__(self, total, out=None):
        self.lock = threading.Lock()
        self.results = []
        self.failures = []
        # Failures that no second try may hide.
        self.certain = set()
        self.total = total
        self.out = out or sys.stdout
        self.running = set()
        self.stopped = False

    def report(self, name, result, seconds, output=b"", why=""):
        with self.lock:
            self.results.append((name, result, seconds))
            shown = {"passed": "Passed", "failed": "***Failed", "skipped": "***Skipped"}[result]
            print(f"{len(self.results):5}/{self.total} Test {name} {shown} {seconds:8.2f} sec", file=self.out, flush=True)
            if result == "failed":
                self.failures.append(name)
                if why not in (SEE_ABOVE, ended(1)) or SANITIZER.search(output):
                    self.certain.add(name)
                text = output[-OUTPUT_BYTES:].decode(errors="replace")
                print(f"{text.rstrip()}\n{name}: {why}", file=self.out, flush=True)

    def start(self, command, environment, folder):
        with self.lock:
            if self.stopped:
                raise KeyboardInterrupt
            process = Process(command, environment, folder)
            self.running.add(process)
            return process

    def finish(self, process):
        process.close()
        with self.lock:
            self.running.discard(process)

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                process.kill()

    def run_one(self, test):
        """A script, or a program of its own kind."""
        begin = time.monotonic()
        if not test.command:
            self.report(test.name, "failed", 0, b"", "its program is not built, or cannot list its tests")
            return
        process = self.start(test.command, test.environment, test.folder)
        status = process.wait(test.timeout)
        if status is None:
            process.kill()
        output = process.new_output()
        self.finish(process)
        seconds = time.monotonic() - begin
        text = output.decode(errors="replace")
        if status is None:
            self.report(test.name, "failed", seconds, output, f"did not end within {test.timeout:g} s")
        elif (test.skip_status is not None and status == test.skip_status
              or any(re.search(pattern, text, re.MULTILINE) for pattern in test.skip)):
            self.report(test.name, "skipped", seconds)
        elif test.passes:
            good = any(re.search(pattern, text) for pattern in test.passes)
            self.report(test.name, "passed" if good else "failed", seconds, output, "its output is not what it should be")
        else:
            self.report(test.name, "failed" if status else "passed", seconds, output, ended(status))

    def run_batch(self, batch):
        """GoogleTest tests of one program. A test that ends the process is followed by a new process."""
        left = {test.filter: test for test in batch}
        while left:
            left = self._run_part(left)

    def _run_part(self, left):
        some = next(iter(left.values()))
        command = [some.command[0], "--gtest_filter=" + ":".join(left), "--gtest_also_run_disabled_tests",
                   "--gtest_color=no"]
        process = self.start(command, some.environment, some.folder)
        passed = []
        current, began, output, text = None, time.monotonic(), b"", b""
        status = None
        while True:
            status = process.wait(POLL_S) if status is None else status
            data = process.new_output()
            text += data
            # All whole lines; a result can follow what a test left on its line.
            *lines, text = text.split(b"\n")
            if status is not None and text:
                lines, text = lines + [text], b""
            for line in lines:
                output += line + b"\n"
                if match := re.search(rb"\[ RUN      \] (\S+)$", line):
                    if match[1].decode() in left:
                        current, began, output = match[1].decode(), time.monotonic(), b""
                elif current and (match := re.search(
                        rb"\[ +(OK|FAILED|SKIPPED) +\] " + re.escape(current.encode()) + rb"(?:, .*)? \(\d+ ms\)$", line)):
                    kind = {b"OK": "passed", b"FAILED": "failed", b"SKIPPED": "skipped"}[match[1]]
                    seconds = time.monotonic() - began
                    if kind == "passed":
                        # Reported after the process has ended well.
                        passed.append((left.pop(current), seconds))
                    else:
                        self.report(left.pop(current).name, kind, seconds, output, SEE_ABOVE)
                    current, began, output = None, time.monotonic(), b""
            if status is not None:
                break
            if time.monotonic() - began > some.timeout:
                process.kill()
                output += text + process.new_output()
                break
        self.finish(process)
        if current or (left and status != 0 and not passed and current is None):
            # It ended within a test, or before the first one.
            test = left.pop(current or next(iter(left)))
            why = f"did not end within {test.timeout:g} s" if status is None else ended(status)
            self.report(test.name, "failed", time.monotonic() - began, output, why)
            status = 0
        elif left and status == 0:
            for name in list(left):
                self.report(left.pop(name).name, "failed", 0, output, "its program did not run it")
        if status in (0, 1):
            for test, seconds in passed:
                self.report(test.name, "passed", seconds)
        elif len(passed) == 1:
            # After its last test, as with leaks.
            self.report(passed[0][0].name, "failed", passed[0][1], output, ended(status or -9))
        else:
            self._name_the_cause(passed, output, status)
        return left

    # The process failed after its tests had passed, as it does for leaks: one by one shows the test. The
    # failure stays, also when each test passes alone.
    def _name_the_cause(self, passed, output, status):
        failed = len(self.failures)
        for test, _ in passed:
            self._run_part({test.filter: test})
        if len(self.failures) == failed and passed:
            self.report(f"{os.path.basename(passed[0][0].command[0])} ({len(passed)} tests in one process)", "failed", 0,
                        output, f"{ended(status or -9)}, but not with one test alone: " +
                        " ".join(test.filter for test, _ in passed))


def listed(build, options):
    """The tests that ctest would run."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *options],
                           stdout=subprocess.PIPE, check=False)
    if shown.returncode != 0:
        raise ValueError(f"ctest cannot list the tests of {build}: it {ended(shown.returncode)}")
    return [Test(entry) for entry in json.loads(shown.stdout)["tests"]]


class Idle:
    """Idle time of the machine's processors."""

    def __init__(self):
        self.at, self.ticks = time.monotonic(), self._ticks()

    @staticmethod
    def _ticks():
        """Idle ticks of all processors since the boot; 0 where they are not known."""
        try:
            with open("/proc/stat", encoding="ascii") as file:
                fields = file.readline().split()
            return int(fields[4]) + int(fields[5])  # idle and iowait
        except (OSError, ValueError, IndexError):
            return 0

    def processors(self):
        """Idle processors on average since the last call."""
        at, ticks = time.monotonic(), self._ticks()
        average = (ticks - self.ticks) / os.sysconf("SC_CLK_TCK") / max(at - self.at, 0.001)
        self.at, self.ticks = at, ticks
        return average


def run(tests, jobs, expected, out=None, idle_processors=None):
    """Runs them all; the Run has the results. `idle_processors` replaces Idle().processors."""
    state = Run(len(tests), out)
    todo = []
    for test in tests:
        if test.disabled:
            state.report(test.name, "skipped", 0)
        else:
            todo.append(test)
    queue = collections.deque(batches([test for test in todo if not test.alone], expected))
    faults = []

    def work(most=len(todo)):
        """Runs batches, at most so many."""
        try:
            for _ in range(most):
                if state.stopped:
                    return
                with state.lock:
                    if not queue:
                        return
                    batch = queue.popleft()
                if batch[0].filter:
                    state.run_batch(batch)
                else:
                    state.run_one(batch[0])
        except KeyboardInterrupt:
            pass
        except BaseException as fault:  # a fault of this runner must fail the run
            faults.append(fault)
            raise

    def start(most=len(todo)):
        worker = threading.Thread(target=work, args=(most,), daemon=True)
        worker.start()
        return worker

    idle_processors = idle_processors or Idle().processors
    try:
        workers = [start() for _ in range(jobs)]
        while workers:
            workers[0].join(IDLE_INTERVAL_S)
            workers = [worker for worker in workers if worker.is_alive()]
            if idle_processors() >= IDLE_PROCESSORS and queue and len(workers) < 2 * jobs:
                workers.append(start(1))
        if not faults:
            queue.extend(batches([test for test in todo if test.alone], expected))
            work()
    except KeyboardInterrupt:
        state.stop()
        raise
    if faults:
        raise faults[0]
    return state


def try_again(state, tests):
    """Runs the few failures of a run once more, alone. The names of what passes now, which the run then counts."""
    if state.certain or not 0 < len(state.failures) <= SECOND_TRIES:
        return []
    print("\nOnce more, alone:", file=state.out, flush=True)
    chosen = [test for test in tests if test.name in state.failures]
    second = run(chosen, 1, {}, state.out, lambda: 0)
    passed = {name: seconds for name, result, seconds in second.results if result == "passed"}
    state.results = [(name, "passed", passed[name]) if name in passed else (name, result, seconds)
                     for name, result, seconds in state.results]
    state.failures = [name for name in state.failures if name not in passed]
    return list(passed)


def read_times(path):
    times = {}
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                seconds, _, name = line.rstrip("\n").partition(" ")
                times[name] = float(seconds)
    except (OSError, ValueError):
        return {}
    return times


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--stage")
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--marker")
    parser.add_argument("--passed")
    parser.add_argument("--times")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    stage = options.stage or os.path.basename(os.path.abspath(options.build))

    tests = listed(options.build, arguments[at + 1:])
    inputs = unchanged.Inputs(root, options.build)
    digests = {id(test): test.digest(inputs) for test in tests} if options.marker or options.passed else {}
    marker = unchanged.Marker(options.marker) if options.marker else None
    chosen = [test for test in tests if not (marker and marker.has(stage, digests[id(test)], test.name))]
    left_out = [test for test in tests if test not in set(chosen)]

    state = run(chosen, options.jobs, read_times(options.times) if options.times else {})
    unsteady = try_again(state, chosen)
    count = collections.Counter(result for _, result, _ in state.results)
    if options.times:
        # Tests that did not run this time keep their time.
        times = {**read_times(options.times), **{name: seconds for name, _, seconds in state.results}}
        with open(options.times, "w", encoding="utf-8") as file:
            file.writelines(f"{seconds:.2f} {name}\n" for name, seconds in sorted(times.items(), key=lambda item: -item[1]))
    if options.passed:
        names = {name for name, result, _ in state.results if result == "passed"}
        passed = {}
        for test in tests:
            if digests[id(test)] and (test in left_out or test.name in names):
                passed.setdefault(digests[id(test)], []).append(test.name)
        with open(options.passed, "w", encoding="utf-8") as file:
            json.dump({"stage": stage, "passed": passed}, file)
    if unsteady:
        print(f"Unsteady, passed at a second try: {' '.join(unsteady)}")
    if state.failures:
        print("\nThese failed:\n    " + "\n    ".join(state.failures))
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped, {len(left_out)} unchanged")
    return 1 if state.failures else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except ValueError as fault:
        print(f"run_tests.py: {fault}\n0 passed, 1 failed, 0 skipped, 0 unchanged")
        sys.exit(1)
