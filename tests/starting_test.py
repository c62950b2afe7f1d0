#!/usr/bin/env python3
"""The start of a daemon whose runtimes have much to read: it answers at once, and its end does not wait for them."""

import os
import subprocess

import harness
from cache_client import Client, client_of, dump
from harness import connect, eventually, free_port

ENDLESS = b"".join(Client.encoded(words) for words in
                   (("SELECT", "0"), ("SET", "a", "1"), ("EVAL", "while true do end", "0"), ("SET", "b", "1")))


def contents(folder):
    """All files of a folder, by their names."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return found


class StartingTest(harness.EddyTest):
    def begin(self, daemon):
        """Starts it and returns as soon as its socket answers."""
        daemon.begin()
        eventually(lambda: daemon.process.poll() is not None or daemon.run("ls").status == 0, "an answer")
        self.assertIsNone(daemon.process.poll(), daemon.read_log())


@harness.on_each_backend
@harness.needs("scripts")
class EndlessStart(StartingTest):
    """A cache whose append-only file has a script that does not end: its start never does."""

    def setUp(self):
        self.folder_of_slow, self.port, self.slow_port = self.folder(), free_port(), free_port()
        self.eddy = self.daemon(flags=["--loops", "1"])
        self.eddy.must("create", "cache", "slow", "-p", str(self.slow_port), "--dir", self.folder_of_slow, "--appendonly",
                       "yes", "--config", "busy-reply-threshold 1", "-s")
        self.eddy.must("create", "server", "quick", "-p", str(self.port), "-s")
        self.eddy.stop()
        part = os.path.join(self.folder_of_slow, "appendonlydir", "appendonly.aof.1.incr.aof")
        with open(part, "wb") as file:
            file.write(ENDLESS)
        self.files = contents(self.folder_of_slow)
        self.begin(self.eddy)

    def check_files(self):
        self.assertEqual(contents(self.folder_of_slow), self.files)

    def test_the_socket_answers_and_the_others_run(self):
        daemon = self.eddy
        eventually(lambda: daemon.list()["quick"]["status"] == "running", "the other one")
        with connect(self.port):
            eventually(lambda: daemon.show("quick")["connections"] == 1, "a client")
        self.assertEqual(daemon.list()["slow"]["status"], "starting")
        self.assertIn("starting", daemon.must("ls"))
        shown = daemon.show("slow")
        self.assertEqual((shown["status"], shown["uptime_s"]), ("starting", None))
        self.assertEqual(daemon.metric("eddy_runtimes", status="starting"), 1)
        self.assertEqual(daemon.metric("eddy_runtimes", status="running"), 1)
        self.assertEqual(daemon.metric("eddy_runtime_up", runtime="slow", type="cache"), 0)
        self.assertEqual(daemon.request("GET", "/v1/runtimes/slow/stats")[1]["status"], "starting")
        self.assertIs(daemon.request("GET", "/v1/daemon")[1]["ready"], False)
        # Its clients are answered, too.
        client = client_of_loading(self, self.slow_port)
        self.assertIn("LOADING", client("GET", "a"))
        # Other runtimes can be changed meanwhile.
        daemon.must("create", "server", "new", "-p", str(free_port()), "-s")
        daemon.must("stop", "quick")
        self.assert_refused(daemon.run("edit", "slow", "--maxmemory", "1G"), 1, '"slow" is still starting', "eddy stop slow")
        self.assert_refused(daemon.run("reload", "slow"), 1, '"slow" is still starting')
        self.assert_refused(daemon.run("send", "slow", "x"), 1, '"slow" is still starting')
        self.check_files()

    def test_the_daemons_end_does_not_wait_for_it(self):
        self.assertEqual(self.eddy.stop(), 0)
        self.check_files()
        self.assertIn("stopped", self.eddy.read_log())
        self.begin(self.eddy)
        self.assertEqual(self.eddy.list()["slow"]["status"], "starting", "it is tried again")

    def test_a_stop_ends_it_and_the_daemon_is_ready_then(self):
        self.eddy.must("stop", "slow")
        self.assertEqual(self.eddy.list()["slow"]["status"], "stopped")
        self.check_files()
        eventually(lambda: self.eddy.request("GET", "/v1/daemon")[1]["ready"], "the end of the start")
        self.assertIn("eddy daemon ready: ", self.eddy.process.stdout.readline().decode())
        self.assertEqual(self.eddy.stop(), 0)
        # It was stopped, so the next daemon leaves it alone.
        self.eddy.start()
        self.assertEqual(self.eddy.list()["slow"]["status"], "stopped")

    def test_a_remove_ends_it(self):
        self.eddy.must("remove", "slow")
        self.assertEqual(list(self.eddy.list()), ["quick"])
        self.check_files()
        # A create that starts it likewise; it advises nothing that needs the runtime.
        with subprocess.Popen([harness.BINARY, "create", "cache", "slow", "-p", str(self.slow_port), "--dir",
                               self.folder_of_slow, "--appendonly", "yes", "--config", "busy-reply-threshold 1", "-s"],
                              env=self.eddy.environment(), stderr=subprocess.PIPE, text=True) as starting:
            eventually(lambda: self.eddy.list().get("slow", {}).get("status") == "starting", "the start")
            self.eddy.must("remove", "slow")
            _, err = starting.communicate(timeout=harness.DEADLINE_S)
        self.assertNotEqual(starting.returncode, 0)
        self.assertRegex(err, "stopped|removed")
        self.assertNotIn("eddy edit", err)
        self.assertNotIn("eddy start", err)


@harness.on_each_backend
class LargeStart(StartingTest):
    """Dump files that take a while to read: more and more keys, until the daemon was seen at it."""

    def attempt(self, keys):
        daemon, folders, ports = self.daemon(), [self.folder(), self.folder()], [free_port(), free_port()]
        for number, (folder, port) in enumerate(zip(folders, ports)):
            daemon.must("create", "cache", f"db{number}", "-p", str(port), "--dir", folder, "--save", "3600 1", "-s")
        daemon.stop()
        for folder in folders:
            with open(os.path.join(folder, "dump.rdb"), "wb") as file:
                file.write(dump(keys, 4))
        before = [contents(folder) for folder in folders]
        self.begin(daemon)
        listed = [each["status"] for each in daemon.list().values()]
        seen = "starting" in listed
        self.assertEqual(daemon.stop(), 0)
        if not seen:
            return False
        self.assertEqual([contents(folder) for folder in folders], before)
        # The next one, left alone, has all keys, and says when.
        daemon.start()
        self.assertIs(daemon.request("GET", "/v1/daemon")[1]["ready"], True)
        for port in ports:
            client = client_of(self, port)
            self.assertEqual(client("DBSIZE"), keys)
            client.close()
        daemon.stop()
        return True

    def test_what_is_read_stays_as_it_is_when_the_daemon_is_stopped(self):
        keys = 500_000
        while not self.attempt(keys):
            keys *= 2
            self.assertLess(keys, 5_000_000, "the start was never seen")


def client_of_loading(test, port):
    def attempt():
        try:
            return Client(port)
        except OSError:
            return None
    made = eventually(attempt, f"an answer on port {port}")
    test.addCleanup(made.close)
    return made


if __name__ == "__main__":
    harness.main()
