#!/usr/bin/env python3
"""Output of `eddy ls`, `show`, `stats` and `logs`: on terminals, as JSON, for patterns and for names that are not
there."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import unittest

import harness
from harness import free_port


def at_terminal(daemon, columns, *words):
    """The lines that a command shows on a terminal of so many columns, without colours."""
    end, its_end = pty.openpty()
    try:
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([harness.BINARY, *words], stdin=subprocess.DEVNULL, stdout=its_end, stderr=its_end,
                                   env=dict(daemon.environment(), NO_COLOR="1"))
        os.close(its_end)
        its_end = None
        shown = b""
        try:
            while piece := os.read(end, 65536):
                shown += piece
        except OSError:
            pass  # the terminal's other end is closed
        process.wait(harness.DEADLINE_S)
        return shown.decode().replace("\r", "").splitlines()
    finally:
        os.close(end)
        if its_end is not None:
            os.close(its_end)


class Listing(harness.EddyTest):
    def test_ls_fits_the_terminal(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()), "-g", "some-group")
        daemon.must("create", "server", "a-name-of-some-length", "-p", str(free_port()), "-o", "a", "-s")
        daemon.must("create", "server", "broken", "-p", str(free_port()), "--bind", "192.0.2.1")
        daemon.run("start", "broken")
        for columns in (30, 60, 80, 100):
            *table, last = at_terminal(daemon, columns, "ls")
            self.assertEqual(len(table), 4, table)
            self.assertLessEqual(max(map(len, table)), columns)
            self.assertIn("1 failed; `eddy ls --wide` says why", last)
        self.assertIn("CREATED", at_terminal(daemon, 120, "ls")[0])
        self.assertIn("192.0.2.1", "".join(at_terminal(daemon, 80, "ls", "--wide")))
        self.assertIn("192.0.2.1", at_terminal(daemon, 80, "ls", "broken")[-1])

    def test_a_name_gives_an_object_and_a_pattern_an_array(self):
        daemon = self.daemon()
        for name in ("one", "two"):
            daemon.must("create", "server", name, "-p", str(free_port()))
        for command in ("show", "stats"):
            def names(*words, command=command):
                found = json.loads(daemon.must(command, "--json", *words))
                return [each["name"] for each in found] if isinstance(found, list) else found["name"]
            self.assertEqual(names("one"), "one")
            self.assertEqual(names("on*"), ["one"])
            self.assertEqual(names("one", "two"), ["one", "two"])
            self.assertEqual(names("*"), ["one", "two"])
            self.assertIn("an array", daemon.must("help", command))

    def test_ls_of_a_name_that_is_not_there_fails_as_stop_does(self):
        daemon = self.daemon()
        daemon.must("create", "server", "one", "-p", str(free_port()))
        refused = daemon.run("stop", "nosuch")
        self.assertEqual(refused.status, 1)
        for command in ("ls", "ps"):
            for flags in ((), ("-q",), ("--json",)):
                result = daemon.run(command, "nosuch", *flags)
                self.assertEqual((result.status, result.out, result.err), (1, "", refused.err))
            # A pattern may match no runtime, which is no error.
            self.assertEqual(daemon.must(command, "no*", "-q"), "")
        self.assertEqual(daemon.must("ps", "one", "-q"), "", "it is there, and does not run")

    def test_logs_of_several_are_in_the_order_of_their_times(self):
        daemon = self.daemon()
        for name in ("one", "another"):
            daemon.must("create", "server", name, "-p", str(free_port()))
        daemon.must("start", "one")
        for words in (("*",), ("one", "another"), ("one", "o*", "another")):
            texts = [line.split(" ") for line in daemon.must("logs", *words).splitlines()]
            self.assertEqual([each[0] for each in texts], ["one", "another", "one"])
            times = [[word for word in each if word.startswith("20")][0] for each in texts]
            self.assertEqual(times, sorted(times))
        self.assertRegex(daemon.must("logs", "-n", "1", "one*"), r"^one \| 20\S+Z started on \S+\n$")
        lines = [json.loads(line) for line in daemon.must("logs", "--json", "o*").splitlines()]
        self.assertEqual([(each["name"], each["line"][:7]) for each in lines], [("one", "created"), ("one", "started")])
        refused = daemon.run("logs", "one", "nosuch")
        self.assertEqual(refused.status, 1)
        self.assertIn("nosuch", refused.err)
        self.assertIn("created", refused.out)
        self.assert_refused(daemon.run("logs", "no*"), 1, "no*")

    def test_logs_of_several_are_followed(self):
        daemon = self.daemon()
        for name in ("one", "two"):
            daemon.must("create", "server", name, "-p", str(free_port()))
        shown = subprocess.Popen([harness.BINARY, "logs", "-f", "-n", "0", "*"], env=daemon.environment(),
                                 stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(shown.stdout.close)
        self.addCleanup(shown.wait)
        self.addCleanup(shown.kill)
        harness.eventually(lambda: daemon.metric("eddy_control_connections") == 3, "it follows both")
        for name in ("two", "one"):
            daemon.must("start", name)
            self.assertRegex(harness.line_of(shown), rb"^%s \| 20\S+Z started on " % name.encode())
        daemon.must("remove", "-f", "*")
        self.assertEqual(shown.wait(harness.DEADLINE_S), 0, "there is nothing to follow any more")

    def test_at_most_so_many_are_followed(self):
        daemon = self.daemon()
        for i in range(33):
            status, answer = daemon.request("POST", "/v1/runtimes", {"type": "server", "name": f"s{i}",
                                                                     "options": {"port": 0}})
            self.assertEqual(status, 201, answer)
        self.assert_refused(daemon.run("logs", "-f", "*"), 1, "at most 32", "33")
        self.assertEqual(len(daemon.must("logs", "*").splitlines()), 33)

    def test_logs_survive_a_restart_of_the_daemon(self):
        daemon = self.daemon()
        daemon.must("create", "server", "one", "-p", str(free_port()), "-s")
        daemon.must("create", "server", "two", "-p", str(free_port()))
        before = daemon.must("logs", "one")

        def kept():
            path = os.path.join(daemon.state, "journals", "one.log")
            if not os.path.exists(path):
                return ""
            with open(path, encoding="utf-8") as file:
                return file.read()

        for end in (daemon.stop, daemon.kill):
            harness.eventually(lambda text=before: kept() == text, "it is on the disk")
            end()
            daemon.start()
            after = daemon.must("logs", "one")
            self.assertTrue(after.startswith(before), (before, after))
            self.assertRegex(after[len(before):], r"(Z stopped\n)?\S+Z started on ")
            before = after
        daemon.must("remove", "two")
        daemon.must("create", "server", "two", "-p", str(free_port()))
        self.assertEqual(len(daemon.must("logs", "two").splitlines()), 1, "the other one's lines went with it")

    def test_words_of_redis_are_understood(self):
        daemon = self.daemon()
        self.assert_refused(daemon.run("create", "cache", "db", "--requirepass", "x"), 1, '--config "requirepass PASSWORD"')
        self.assert_refused(daemon.run("create", "cache", "db", "--eviction", "noeviction"), 1, "did you mean none?")

    def test_a_relative_socket_is_one_of_the_working_folder(self):
        daemon = self.daemon()
        daemon.must("create", "cache", "db", "--unix", "db.sock")
        self.assertEqual(daemon.show("db")["options"]["unix"], os.path.join(os.getcwd(), "db.sock"))
        daemon.must("create", "cache", "other", "--unix", "@abstract")
        self.assertEqual(daemon.show("other")["options"]["unix"], "@abstract")

    def test_so_are_relative_paths_within_uris(self):
        daemon, here = self.daemon(), os.getcwd()
        daemon.must("create", "proxy", "gw", "--listen", "unix://./gw.sock", "--backend", ":1,unix://db.sock")
        options = daemon.show("gw")["options"]
        self.assertEqual((options["listen"], options["backend"]), (f"unix://{here}/gw.sock", f":1,unix://{here}/db.sock"))
        daemon.must("edit", "gw", "--backend", "shm://@x,unix://./other.sock")
        self.assertEqual(daemon.show("gw")["options"]["backend"], f"shm://@x,unix://{here}/other.sock")
        daemon.must("create", "stream", "llm", "--handoff", "unix://llm.sock")
        self.assertEqual(daemon.show("llm")["options"]["handoff"], f"unix://{here}/llm.sock")


if __name__ == "__main__":
    harness.main()
