#!/usr/bin/env python3
"""`eddy top`, and `eddy stats` of several: rates, terminals of different sizes, keys, and output for programs."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios

import harness
from flag_effects import FlagTest
from harness import connect, eventually, read_line


class Terminal:
    """A command on a terminal of a size."""

    def __init__(self, test, daemon, columns, lines, *words):
        self.end, its_end = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(its_end)
        self.process = subprocess.Popen([harness.BINARY, *words], stdin=its_end, stdout=its_end, stderr=its_end,
                                        start_new_session=True, env=dict(daemon.environment(), NO_COLOR="1"))
        self.its_end = its_end
        self.shown = b""
        test.addCleanup(os.close, self.end)
        test.addCleanup(os.close, its_end)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def resize(self, columns, lines):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def frames(self):
        """The screens so far, each as lines; the last one may be incomplete."""
        while select.select([self.end], [], [], 0)[0]:
            self.shown += os.read(self.end, 65536)
        return [frame.replace("\r", "").split("\n")[:-1] for frame in self.shown.decode().split("\x1b[H\x1b[2J")[1:]]

    def last(self, condition, what):
        """Waits for a whole screen for which the condition holds."""
        def found():
            frames = self.frames()
            return len(frames) > 1 and condition(frames[-2]) and frames[-2]
        return eventually(found, what)


class Top(FlagTest):
    def some(self, daemon, count=3):
        return [self.create(daemon, "cache" if i == 0 else "server", f"r{i}", port=0 if i else None) for i in range(count)]

    def test_rates(self):
        daemon = self.daemon()
        port = self.some(daemon)[0]
        process = subprocess.Popen([harness.BINARY, "top", "--json", "--interval", "100ms"], env=daemon.environment(),
                                   stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        with connect(port) as client:
            while True:
                client.sendall(b"PING\r\n")
                read_line(client)
                rates = {each["name"]: each for each in json.loads(harness.line_of(process))}
                self.assertEqual(set(rates), {"r0", "r1", "r2"})
                if rates["r0"]["messages_in_per_s"] > 0:
                    break
            self.assertGreater(rates["r0"]["bytes_in_per_s"], rates["r0"]["messages_in_per_s"])
            self.assertGreaterEqual(rates["r0"]["p99_us"], rates["r0"]["p50_us"])
            self.assertGreater(rates["r0"]["memory_bytes"], 0)
            self.assertEqual((rates["r1"]["messages_in_per_s"], rates["r1"]["p50_us"], rates["r1"]["memory_bytes"]), (0, None, None))
        once = json.loads(daemon.must("top", "--once", "--interval", "50ms", "--json", "r[12]"))
        self.assertEqual([each["name"] for each in once], ["r1", "r2"])

    def test_it_is_plain_where_there_is_no_terminal(self):
        daemon = self.daemon()
        self.some(daemon)
        shown = daemon.must("top", "--once", "--interval", "50ms")
        self.assertNotIn("\x1b", shown)
        self.assertEqual(shown.split()[:5], ["NAME", "TYPE", "STATUS", "CONNECTIONS", "IN/S"])
        self.assert_refused(daemon.run("top", "--sort", "beauty"), 1, "requests", "p99")
        self.assert_refused(daemon.run("top", "--interval", "soon"), 1, "--interval")

    def test_it_fits_the_terminal_and_obeys_keys(self):
        daemon = self.daemon()
        self.some(daemon, 30)
        screen = Terminal(self, daemon, 60, 12, "top", "--interval", "100ms")
        frame = screen.last(lambda lines: len(lines) > 2, "a table")
        self.assertIn("by requests", frame[0])
        self.assertLess(len(frame), 12)
        self.assertRegex(frame[-1], r"^\.\.\. and 2\d more$")
        self.assertTrue(all(len(line) <= 60 for line in frame), frame)
        os.write(screen.end, b"t")
        frame = screen.last(lambda lines: "by type" in lines[0], "another order")
        self.assertTrue(frame[2].startswith("r0 "), frame)
        screen.resize(200, 50)
        screen.process.send_signal(signal.SIGWINCH)
        frame = screen.last(lambda lines: len(lines) == 32, "more lines")
        self.assertIn("MEMORY", frame[1])
        self.assertFalse(termios.tcgetattr(screen.its_end)[3] & termios.ICANON)
        os.write(screen.end, b"q")
        self.assertEqual(screen.process.wait(harness.DEADLINE_S), 0)
        self.assertEqual(termios.tcgetattr(screen.its_end), screen.before, "the terminal is as before")

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        daemon = self.daemon()
        self.some(daemon, 1)
        for number in (signal.SIGINT, signal.SIGTERM):
            screen = Terminal(self, daemon, 80, 24, "top", "--interval", "100ms")
            screen.last(lambda lines: len(lines) > 2, "a table")
            screen.process.send_signal(number)
            self.assertEqual(screen.process.wait(harness.DEADLINE_S), -number)
            self.assertEqual(termios.tcgetattr(screen.its_end), screen.before)

    def test_stats_of_several_is_a_table_that_fits(self):
        daemon = self.daemon()
        self.some(daemon, 30)
        screen = Terminal(self, daemon, 70, 10, "stats", "--watch", "--interval", "100ms", "*")
        frame = screen.last(lambda lines: len(lines) > 2, "a table")
        self.assertLess(len(frame), 10)
        self.assertRegex(frame[-1], r"^\.\.\. and 2\d more$")
        self.assertTrue(all(len(line) <= 70 for line in frame), frame)
        self.assertEqual(len(daemon.must("stats", "*").splitlines()), 31)
        self.assertEqual(len(daemon.must("stats", "r1", "r2").splitlines()), 3)
        self.assert_refused(daemon.run("stats", "x*"), 1, "x*")
        daemon.must("remove", "-f", "*")
        self.assertEqual(daemon.must("top", "--once", "--interval", "50ms").split()[:1], ["NAME"])


if __name__ == "__main__":
    harness.main()
