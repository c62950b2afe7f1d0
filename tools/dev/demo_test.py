"""Tests of demo.py, with a stand-in for the program."""

import os
import signal
import socket
import subprocess
import sys

from dev import demo
from dev.testing_folder import DEFAULT_SIGNALS, FolderTest

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEADLINE_S = 60
PROGRAM = """#!/bin/sh
case $1 in
    daemon) trap 'rm -f up; exit 0' TERM; DAEMON; touch up; while :; do sleep 0.05; done ;;
    ls) [ -e up ] ;;
    create) echo "made $3" ;;
esac
"""
RUN = f"""
import sys
sys.path.insert(0, {TOOLS!r})
from dev import building, command_line, demo
building.build = lambda: None
sys.exit(command_line.main(["run"]))
"""


class Demo(FolderTest):
    def start(self, daemon=":"):
        self.write("build/release/eddy", PROGRAM.replace("DAEMON", daemon))
        os.chmod("build/release/eddy", 0o755)
        command = subprocess.Popen([sys.executable, "-B", "-c", DEFAULT_SIGNALS + RUN],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        return command

    def test_a_signal_stops_the_daemon(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            command = self.start()
            said = ""
            while "Ctrl-C stops it." not in said:
                line = command.stdout.readline()
                self.assertTrue(line, said)
                said += line
            for name in ("demo-cache", "demo-server", "demo-site"):
                self.assertIn(f"made {name}\n", said)
            self.assertTrue(os.path.exists("build/demo/site/index.html"))
            command.send_signal(number)
            said, _ = command.communicate(timeout=DEADLINE_S)
            self.assertEqual((command.returncode, said), (0, "The daemon has stopped.\n"))

    def test_a_daemon_that_does_not_start(self):
        command = self.start("echo no room; exit 3")
        said, _ = command.communicate(timeout=DEADLINE_S)
        self.assertEqual(command.returncode, 1)
        self.assertIn("no room\neddy-dev: the daemon does not answer on ", said)

    def test_a_daemon_that_runs_already(self):
        self.write("up")
        said, _ = self.start().communicate(timeout=DEADLINE_S)
        self.assertIn("a daemon listens on ", said)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.assertTrue(demo.is_taken(port))
            self.assertGreater(demo.free_port(port), port)
