"""Tests of processes.py and steps.py: status, logs, and the end of children after a signal."""

import os
import signal
import subprocess
import sys
import time

from dev import steps
from dev.processes import NOT_FOUND, foreground, status_of, succeeds
from dev.testing_folder import DEFAULT_SIGNALS, FolderTest

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEADLINE_S = 60
# One process that is no direct child, too.
STEP = """
echo $$ >pids
sh -c 'trap "" HUP INT; echo $$ >>pids; echo ready; exec sleep 1000' &
wait
"""
PROGRAM = f"""
import sys
sys.path.insert(0, {TOOLS!r})
from dev import processes, steps
processes.raise_interrupts()
try:
    steps.logged("step", ["sh", "-c", sys.argv[1]])
except processes.Interrupted as interrupt:
    processes.end_by(interrupt.number)
"""


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


class Processes(FolderTest):
    def wait_until(self, condition):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_statuses_are_those_of_a_shell(self):
        self.assertEqual((status_of(0), status_of(3), status_of(-15)), (0, 3, 143))
        self.assertEqual(foreground(["sh", "-c", "exit 7"]), 7)
        self.assertFalse(succeeds(["no-such-program"]))

    def test_a_program_that_is_not_there(self):
        status, said = self.said(foreground, ["no-such-program"])
        self.assertEqual(status, NOT_FOUND)
        self.assertEqual(said, "eddy-dev: no-such-program: command not found\n")

    def test_a_step_writes_its_log(self):
        command = ["sh", "-c", "echo out; echo err >&2; cat; exit 3"]
        status, said = self.said(steps.logged, "step", command)
        self.assertEqual((status, said), (3, ""))
        self.assertEqual(self.read("build/log/step.log"), "out\nerr\n")

    def test_a_step_whose_program_is_not_there(self):
        self.assertEqual(steps.logged("step", ["no-such-program"]), NOT_FOUND)
        self.assertIn("no-such-program", self.read("build/log/step.log"))

    def test_a_signal_ends_a_step_with_all_its_processes(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                self.write("build/log/step.log")
                command = subprocess.Popen(
                    [sys.executable, "-B", "-c", DEFAULT_SIGNALS + PROGRAM, STEP])
                self.addCleanup(command.wait)
                self.addCleanup(command.kill)
                self.wait_until(lambda: "ready" in self.read("build/log/step.log"))
                pids = self.read("pids").split()
                command.send_signal(number)
                self.assertEqual(command.wait(DEADLINE_S), -number)
                for pid in pids:
                    self.wait_until(lambda pid=pid: not is_running(pid))

    def test_an_ignored_signal_stays_ignored(self):
        done = subprocess.run(
            ["nohup", sys.executable, "-B", "-c", PROGRAM, "kill -HUP $PPID"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_progress_is_the_last_mark_of_the_last_lines(self):
        for text, expected in (
                ("", ""), ("[1/9] a\n[2/9] b\n", "[2/9]"), ("[1/9] a\r[2/9] b\r", "[2/9]"),
                ("   7/12 Test a Passed\nnot [3/4]\n", "   7/12 Test"),
                ("[1/9] a\n" + "warning\n" * 5, "")):
            self.write("log", text)
            self.assertEqual(steps.progress("log"), expected, text)
        self.assertEqual(steps.progress("no-such-log"), "")
