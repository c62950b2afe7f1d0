#!/usr/bin/env python3
"""Keys over the ends and restarts of a cache: a stop that cannot save is refused, a loss is reported, and
edits and reloads carry the keys over.
"""

import os
import pty
import signal
import subprocess

import harness
from cache_client import client_of
from harness import eventually, free_port

KEYS = 1000


class KeepingTest(harness.EddyTest):
    def cache(self, daemon, *flags, name="db"):
        """A running cache with KEYS keys, and a client of it."""
        port = free_port()
        daemon.must("create", "cache", name, "-p", str(port), *flags, "-s")
        client = client_of(self, port)
        client.all([("SET", f"key {i}", i) for i in range(KEYS)])
        return client

    def obstacle(self, disk, name="dump.rdb"):
        """Has the dump be impossible to write; the path is to be removed to end that."""
        path = os.path.join(disk, name + ".tmp")
        os.mkdir(path)
        return path

    def assert_serves(self, client, keys=KEYS):
        """On the connection that was there before."""
        self.assertEqual(client("DBSIZE"), keys)
        self.assertEqual(client("SET", "key 0", "again"), "+OK")

    def keys_at(self, port):
        client = client_of(self, port)
        return client("DBSIZE")


@harness.on_each_backend
class Stops(KeepingTest):
    def test_a_stop_that_cannot_save_is_refused(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        obstacle = self.obstacle(disk)
        for words in (["stop", "db"], ["remove", "db"]):
            result = daemon.run(*words)
            self.assert_refused(result, 2, "was not stopped, and goes on as before", "dump.rdb.tmp",
                                "eddy stop --force db")
            self.assertEqual(result.out, "")
            self.assertEqual(daemon.list()["db"]["status"], "running")
            self.assert_serves(client)
        self.assertIn("does not stop", daemon.must("logs", "db"))
        os.rmdir(obstacle)
        self.assertEqual(daemon.run("stop", "db").err, "")
        daemon.must("start", "db")
        self.assertEqual(self.keys_at(client.port), KEYS)

    def test_a_forced_stop_loses_and_says_what(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        self.obstacle(disk)
        result = daemon.run("stop", "--force", "db")
        self.assertEqual((result.status, result.out), (0, "db stopped\n"))
        self.assertIn(f"db lost {KEYS} changes since the last save: could not create", result.err)
        self.assertIn("lost", daemon.show("db"))
        daemon.must("start", "db")
        self.assertNotIn("lost", daemon.show("db"))
        self.assertEqual(self.keys_at(client.port), 0)

    def test_a_full_disk_keeps_the_dump_and_the_append_only_file_from_a_stop(self):
        for flags in (["--save", "3600 1"], ["--save", "off", "--appendonly", "yes"]):
            with harness.small_disk(self.folder(), 2048) as disk:
                if disk is None:
                    self.skipTest("no file system can be mounted here")
                daemon = self.daemon()
                client = self.cache(daemon, "--dir", disk, *flags)
                filler = os.path.join(disk, "filler")
                with open(filler, "wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(b"x" * 4096)
                    except OSError:
                        pass
                # The rest of the file's last block would take it otherwise.
                client("SET", "big", os.urandom(64 << 10))
                self.assert_refused(daemon.run("stop", "db"), 2, "was not stopped")
                self.assertEqual(client("DBSIZE"), KEYS + 1)
                os.remove(filler)
                daemon.must("stop", "db")
                daemon.must("start", "db")
                self.assertEqual(self.keys_at(client.port), KEYS + 1)
                daemon.must("remove", "db")

    def test_a_daemon_that_cannot_save_stays_and_obeys_the_second_signal(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        other = self.cache(daemon, name="other")
        self.obstacle(disk)
        daemon.signal(signal.SIGTERM)
        eventually(lambda: "not stopped, and goes on as before" in daemon.read_log(), "the refusal")
        self.assertIn("send SIGTERM again", daemon.read_log())
        for each in (client, other):
            self.assert_serves(each)
        self.assertEqual(daemon.must("ps", "-q"), "db\nother\n")
        self.assertEqual(daemon.stop(), 0)
        log = daemon.read_log()
        self.assertRegex(log, r"db\S* stopped; lost \d+ changes since the last save")
        self.assertRegex(log, rf"other\S* stopped; lost {KEYS} keys: it has no --dir")

    def test_a_daemon_that_can_save_again_loses_nothing(self):
        folder, disk = self.folder(), self.folder()
        first = self.daemon(folder=folder)
        client = self.cache(first, "--dir", disk)
        obstacle = self.obstacle(disk)
        first.signal(signal.SIGTERM)
        eventually(lambda: "not stopped, and goes on as before" in first.read_log(), "the refusal")
        client("SET", "later", "1")
        os.rmdir(obstacle)
        self.assertEqual(first.stop(), 0)
        self.daemon(folder=folder)
        self.assertEqual(self.keys_at(client.port), KEYS + 1)

    def test_shutdown_of_a_client_is_refused_and_can_be_forced(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk, "--mode", "admin")
        self.obstacle(disk)
        self.assertEqual(client("SHUTDOWN"), "-ERR Errors trying to SHUTDOWN. Check logs.")
        self.assert_serves(client)
        client.send("SHUTDOWN", "FORCE")
        self.assertTrue(client.ended())
        eventually(lambda: daemon.list()["db"]["status"] == "stopped", "the end")

    def test_a_stop_without_a_folder_says_what_is_lost(self):
        daemon = self.daemon()
        self.cache(daemon)
        result = daemon.run("stop", "db")
        self.assertEqual((result.status, result.out), (0, "db stopped\n"))
        self.assertEqual(result.err, f"eddy: db lost {KEYS} keys: it has no --dir\n")
        self.assertIn(f"stopped; lost {KEYS} keys", daemon.must("logs", "db"))
        daemon.must("start", "db")
        self.assertEqual(daemon.run("stop", "db").err, "")
        self.assertEqual(daemon.run("remove", "db").err, "")
        self.cache(daemon)
        answer = daemon.json("stop", "db")
        self.assertEqual(answer[0]["lost"], f"{KEYS} keys: it has no --dir")
        self.assertEqual(daemon.run("remove", "db").err, "", "it was reported once")
        self.cache(daemon)
        self.assertIn(f"db lost {KEYS} keys", daemon.run("remove", "db").err)

    def test_nothing_is_said_of_a_replica_and_of_what_is_saved(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        daemon.must("create", "cache", "replica", "-p", str(free_port()), "--replicate",
                    f"127.0.0.1:{client.port}", "-s")
        replica = client_of(self, daemon.show("replica")["port"])
        eventually(lambda: replica("DBSIZE") == KEYS, "the copy")
        for name in ("replica", "db"):
            self.assertEqual(daemon.run("stop", name).err, "")

    def test_create_says_that_nothing_is_kept(self):
        daemon = self.daemon()
        result = daemon.run("create", "cache", "a", "-p", str(free_port()), "-s")
        self.assertEqual(result.err.count("\n"), 1)
        self.assertIn("a keeps nothing on disk", result.err)
        self.assertIn("--dir FOLDER", result.err)
        for words in (["cache", "b", "-p", str(free_port()), "--dir", self.folder()],
                      ["server", "c", "-p", str(free_port())]):
            self.assertEqual(daemon.run("create", *words).err, "")
        result = daemon.run("--json", "create", "cache", "d", "-p", str(free_port()))
        self.assertEqual(result.err, "")


class Removing(KeepingTest):
    def on_terminal(self, daemon, *words):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        try:
            process = subprocess.run([harness.BINARY, *words], env=daemon.environment(),
                                     stdin=terminal, stdout=terminal, stderr=subprocess.PIPE,
                                     timeout=harness.DEADLINE_S, check=False)
        finally:
            os.close(terminal)
        return process.returncode, process.stderr.decode()

    def test_a_terminal_is_asked_for_the_flag_where_one_runs(self):
        daemon = self.daemon()
        client = self.cache(daemon)
        daemon.must("create", "server", "idle", "-p", str(free_port()))
        status, err = self.on_terminal(daemon, "remove", "*")
        self.assertEqual(status, 1)
        self.assertIn("eddy remove -f db", err)
        self.assertEqual(sorted(daemon.list()), ["db", "idle"])
        self.assert_serves(client)
        self.assertEqual(self.on_terminal(daemon, "remove", "idle"), (0, ""))
        status, err = self.on_terminal(daemon, "remove", "-f", "db")
        self.assertEqual(status, 0)
        self.assertIn(f"db lost {KEYS} keys", err)
        self.assertEqual(daemon.list(), {})


if __name__ == "__main__":
    harness.main()
