#!/usr/bin/env python3
"""The program without io_uring, TLS and scripts: what is left works, and what it lacks is refused with the reason."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from harness import BINARY, connect, free_port  # noqa: E402


class SmallProgram(harness.EddyTest):
    def test_it_says_what_it_lacks(self):
        shown = subprocess.run([BINARY, "version"], capture_output=True, text=True, check=True,
                               timeout=harness.DEADLINE_S).stdout
        self.assertIn("\nbuilt with: no io_uring, TLS or scripts\n", shown)
        shown = subprocess.run([BINARY, "version", "--json"], capture_output=True, text=True, check=True,
                               timeout=harness.DEADLINE_S).stdout
        self.assertEqual(json.loads(shown)["built_with"], [])

    def test_a_cache_and_a_server_work(self):
        daemon = self.daemon()
        cache, server = free_port(), free_port()
        daemon.must("create", "cache", "db", "-p", str(cache), "-s")
        daemon.must("create", "server", "chat", "-p", str(server), "-s")
        with connect(cache) as client:
            client.sendall(b"SET greeting hello\r\nGET greeting\r\n")
            with client.makefile("rb") as replies:
                self.assertEqual([replies.readline() for _ in range(3)], [b"+OK\r\n", b"$5\r\n", b"hello\r\n"])
        with connect(server) as one, connect(server) as other:
            harness.eventually(lambda: daemon.list()["chat"]["connections"] == 2, "both are there")
            one.sendall(b"a line\n")
            with other.makefile("rb") as lines:
                self.assertEqual(lines.readline(), b"a line\n")

    def test_scripts_are_refused(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        with connect(port) as client:
            client.sendall(b"EVAL 'return 1' 0\r\nFUNCTION LIST\r\n")
            with client.makefile("rb") as replies:
                for _ in range(2):
                    self.assertEqual(replies.readline(), b"-ERR this eddy was built without scripts: build it with "
                                     b"-DEDDY_SCRIPTS=ON\r\n")
        script = os.path.join(self.folder(), "hooks.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write("return {}\n")
        self.assert_refused(daemon.run("create", "cache", "c", "-p", str(free_port()), "--hooks", script, "-s"), 1,
                            "built without scripts")

    def test_tls_is_refused(self):
        daemon = self.daemon()
        made = daemon.run("create", "server", "s", "--listen", f"tls://127.0.0.1:{free_port()}?cert=/c&key=/k", "-s")
        self.assert_refused(made, 1, "tls layer")

    def test_the_io_uring_backend_is_refused(self):
        self.assert_does_not_start(harness.Daemon("uring"), "backend uring cannot be used")


if __name__ == "__main__":
    harness.main()
