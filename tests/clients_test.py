#!/usr/bin/env python3
"""The cache with those real clients that are packages of the distribution: redis-cli, redis-benchmark,
hiredis and redis-py. `./eddy-dev clients` tries the others, too.
"""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
import unittest

import harness

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "run.py")


def hinting_cli():
    """A redis-cli of 7.2 or later, which asks the server for its hints; or None."""
    compared = os.environ.get("EDDY_REDIS_7_2")
    for path in (shutil.which("redis-cli"), compared and os.path.join(os.path.dirname(compared), "redis-cli")):
        if path and os.path.exists(path):
            shown = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
            version = re.search(r"(\d+)\.(\d+)\.", shown)
            if version and (int(version[1]), int(version[2])) >= (7, 2):
                return path
    return None


class Terminal:
    """A program at a terminal of 24 lines of 300 columns."""

    def __init__(self, words, home):
        self.end, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 300, 0, 0))
        self.process = subprocess.Popen(words, stdin=its_end, stdout=its_end, stderr=its_end,
                                        env=dict(os.environ, TERM="xterm", HOME=home))
        os.close(its_end)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.process.kill()
        self.process.wait()
        os.close(self.end)

    def type(self, text):
        os.write(self.end, text.encode())

    def wait_for(self, text):
        """Waits for the text; returns all output until then, without colours and movements."""
        shown, end = b"", time.monotonic() + harness.DEADLINE_S
        while True:
            plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown.decode(errors="replace"))
            if text in plain:
                return plain
            left = end - time.monotonic()
            if left < 0 or not select.select([self.end], [], [], left)[0]:
                raise AssertionError(f"{text!r} was not shown, but {plain!r}")
            shown += os.read(self.end, 65536)


class Clients(harness.EddyTest):
    def try_client(self, name):
        done = subprocess.run([sys.executable, RUN, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=harness.SCRIPT_TIMEOUT_S, check=False)
        if "skipped: " in done.stdout:
            self.skipTest(done.stdout.split("skipped: ")[1].splitlines()[0])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_redis_cli(self):
        self.try_client("redis-cli")

    def test_redis_cli_shows_what_commands_take(self):
        cli = hinting_cli()
        if cli is None:
            self.skipTest("there is no redis-cli of 7.2 or later")
        running, port = self.daemon(), harness.free_port()
        running.must("create", "cache", "db", "-p", str(port), "-s")
        with Terminal([cli, "-p", str(port)], self.folder()) as terminal:
            terminal.wait_for("> ")
            erase = "\x15"
            for typed, hint in [
                    ("set ", "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|"
                             "PXAT unix-time-milliseconds|KEEPTTL]"),
                    ("hexpire ", "key seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]"),
                    ("hexpire h 10 nx ", "FIELDS numfields field [field ...]"),
                    ("config set ", "parameter value [parameter value ...]")]:
                terminal.type(erase + typed)
                terminal.wait_for("> " + typed + hint)
            terminal.type(erase + "help config get\r")
            terminal.wait_for("summary: Reads settings.")

    def test_redis_benchmark(self):
        self.try_client("redis-benchmark")

    def test_hiredis(self):
        self.try_client("hiredis")

    def test_redis_py(self):
        self.try_client("redis-py-debian")


if __name__ == "__main__":
    harness.main()
