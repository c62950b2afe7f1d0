#!/usr/bin/env python3
"""The daemon when its state is damaged, cannot be written, or comes from elsewhere."""

import json
import os
import subprocess
import unittest

import harness
from harness import connect, eventually, free_port


def fill(path):
    """Fills the disk of a file."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


@harness.on_each_backend
class State(harness.EddyTest):
    def test_damaged_files_do_not_stop_the_rest(self):
        folder = self.folder()
        port = free_port()
        first = self.daemon(folder=folder)
        first.must("create", "server", "good", "-p", str(port), "-s")
        for name in ("cut", "garbage", "empty"):
            first.must("create", "server", name, "-p", str(free_port()), "-s")
        first.stop()

        def path(name):
            return os.path.join(first.state, "runtimes", name + ".json")
        with open(path("cut"), "r+b") as file:
            file.truncate(40)
        with open(path("garbage"), "wb") as file:
            file.write(os.urandom(1000))
        with open(path("empty"), "wb"):
            pass
        second = self.daemon(folder=folder)
        self.assertEqual(second.must("ps", "-q"), "good\n")
        self.assertEqual(sorted(second.list()), ["good"])
        with connect(port):
            pass
        log = second.read_log()
        for name in ("cut", "garbage", "empty"):
            self.assertIn(f"{name}.json is damaged", log)
            self.assertTrue(os.path.exists(os.path.join(second.state, "damaged", name + ".json")))
            self.assertFalse(os.path.exists(path(name)))
        second.must("create", "server", "cut", "-p", str(free_port()))

    def test_the_files_are_readable_json_for_their_owner_alone(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", "9000", "--owner", "", "-g", "web")
        path = os.path.join(daemon.state, "runtimes", "a.json")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(daemon.state).st_mode & 0o777, 0o700)
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        self.assertEqual(record["version"], 1)
        self.assertEqual(record["options"], {"port": 9000})
        self.assertEqual((record["name"], record["type"], record["group"], record["running"]),
                         ("a", "server", "web", False))

    def test_a_full_disk_undoes_the_change_and_says_so(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        folder = self.folder()
        disk = os.path.join(folder, "disk")
        with harness.small_disk(disk, 1024) as mounted:
            if not mounted:
                self.skipTest("a tmpfs cannot be mounted here")
            daemon = harness.Daemon(self.backend, folder, state=os.path.join(disk, "state"))
            daemon.start()
            try:
                port = free_port()
                daemon.must("create", "server", "on", "-p", str(port), "-s")
                daemon.must("create", "server", "off", "-p", str(free_port()))
                filler = os.path.join(disk, "filler")
                fill(filler)
                before = daemon.show("off")
                self.assert_refused(daemon.run("create", "server", "new", "-p", "1"), 2,
                                    "disk is full", "not created")
                self.assert_refused(daemon.run("start", "off"), 2, "disk is full")
                self.assert_refused(daemon.run("edit", "off", "--max-connections", "5"), 2,
                                    "disk is full", "not changed")
                after = daemon.show("off")
                for key in ("options", "status", "name"):
                    self.assertEqual(after[key], before[key])
                self.assertEqual(sorted(daemon.list()), ["off", "on"])
                with connect(port):
                    pass
                # Stopping and removing work on a full disk, of all things.
                self.assert_refused(daemon.run("stop", "on"), 2, "is stopped", "disk is full")
                self.assertEqual(daemon.list()["on"]["status"], "stopped")
                daemon.must("remove", "off")
                os.remove(filler)
                daemon.must("stop", "on")
                daemon.must("create", "server", "new", "-p", str(free_port()), "-s")
                daemon.kill()
                daemon.start()
                self.assertEqual(daemon.must("ps", "-q"), "new\n")
            finally:
                daemon.stop()

    def test_an_end_that_a_full_disk_does_not_take_is_stored_later(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        folder = self.folder()
        disk = os.path.join(folder, "disk")
        end = os.path.join(folder, "end")
        with harness.small_disk(disk, 1024) as mounted:
            if not mounted:
                self.skipTest("a tmpfs cannot be mounted here")
            daemon = harness.Daemon(self.backend, folder, state=os.path.join(disk, "state"))
            daemon.start()
            try:
                daemon.must("add", "sh", "--name", "job", "-s", "--", "-c", f"while [ ! -e {end} ]; do sleep 0.02; done")
                filler = os.path.join(disk, "filler")
                fill(filler)
                with open(end, "w", encoding="ascii"):
                    pass
                eventually(lambda: "will run again with the next daemon" in daemon.read_log(), "a line about its end")
                self.assertIn("tried again", daemon.read_log())
                self.assertEqual(daemon.show("job")["detail"], "exited with status 0")
                os.remove(filler)
                # It comes at once when something else is stored.
                daemon.must("create", "server", "other", "-p", str(free_port()))
                eventually(lambda: "its end is stored now" in daemon.read_log(), "it is stored")
                daemon.kill()
                daemon.start()
                self.assertEqual(daemon.show("job")["status"], "stopped")
                self.assertEqual(daemon.read_log().count("will run again"), 1)
            finally:
                daemon.stop()

    def test_folders_that_cannot_be_used(self):
        folder = self.folder()
        taken = os.path.join(folder, "file")
        with open(taken, "w", encoding="ascii"):
            pass
        lonely = harness.Daemon(folder=folder)
        for flags, text in ((["--state", taken], taken),
                            (["--state", os.path.join(taken, "below")], taken),
                            (["--socket", os.path.join(taken, "s.sock")], "--socket"),
                            (["--socket", "/" + "x" * 200], "107"),
                            (["--state", "/proc/nothing"], "--state")):
            result = lonely.run("daemon", "--io-backend", self.backend, *flags)
            self.assert_refused(result, 2, text)
            self.assertEqual(result.out, "")

    def test_no_permission_for_the_state(self):
        if not harness.is_root():
            self.skipTest("only root can become another user")
        folder = self.folder()
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "state"), 0o700)
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                 harness.BINARY, "daemon", "--state", os.path.join(folder, "state"),
                                 "--socket", "/tmp/eddy-nobody-test.sock"],
                                capture_output=True, check=False, timeout=harness.DEADLINE_S)
        if b"setpriv" in result.stderr:
            self.skipTest("another user cannot run the program where it lies")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"ermission denied", result.stderr)
        self.assertIn(b"--state", result.stderr)

    def test_a_state_of_a_newer_version_is_left_alone(self):
        folder = self.folder()
        first = self.daemon(folder=folder)
        first.must("create", "server", "a", "-p", str(free_port()))
        first.stop()
        path = os.path.join(first.state, "runtimes", "a.json")
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        record["version"] = 99
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file)
        second = self.daemon(folder=folder)
        self.assertEqual(second.list(), {})
        with open(os.path.join(second.state, "damaged", "a.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), record)

    def test_many_runtimes_survive_a_restart(self):
        folder = self.folder()
        first = self.daemon(folder=folder)
        for i in range(60):
            status, _ = first.request("POST", "/v1/runtimes",
                                      {"type": "server", "name": f"r{i}",
                                       "options": {"port": free_port()}, "start": i % 2 == 0})
            self.assertIn(status, (201, 409))
        running = first.must("ps", "-q")
        first.kill()
        second = self.daemon(folder=folder)
        self.assertEqual(len(second.list()), 60)
        self.assertEqual(second.must("ps", "-q"), running)


if __name__ == "__main__":
    harness.main()
