#!/usr/bin/env python3
"""Keys over the ends and restarts of a cache: a stop that cannot save is refused, a loss is reported, and
edits and reloads carry the keys over.
"""

import itertools
import os
import pty
import shutil
import signal
import socket
import subprocess

import harness
from cache_client import Client, client_of
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
        """Makes the dump impossible to write, until the returned path is removed."""
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
                big = Client(client.port)
                self.addCleanup(big.close)
                big.send("SET", "big", os.urandom(64 << 10))
                # On a connection of its own: it may be closed, as the change is not on the disk.
                eventually(lambda: client("DBSIZE") == KEYS + 1, "the change")
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
        self.assertRegex(log, r" db +stopped; lost \d+ changes since the last save")
        self.assertRegex(log, rf" other +stopped; lost {KEYS} keys: it has no --dir")

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


@harness.on_each_backend
class Edits(KeepingTest):
    def edited(self, daemon, *flags):
        result = daemon.run("edit", "db", *flags)
        self.assertEqual(result.status, 0, result)
        # A restart is announced.
        self.assertRegex(result.err, r"\Aeddy: changing --.* restarts db: .*\n\Z" if "restarted" in result.out else r"\A\Z")
        return result.out

    def test_a_password_or_user_in_memory_alone_is_not_forgotten_by_a_restart(self):
        daemon = self.daemon()
        client = self.cache(daemon, "--mode", "admin")
        client("ACL", "SETUSER", "bob", "on", ">secret", "+@all", "~*")
        daemon.must("reload", "db")  # it forgets nothing
        self.assert_refused(daemon.run("edit", "db", "--threads", "2"), 1, "ACL SETUSER", "--aclfile")
        client("ACL", "DELUSER", "bob")
        client("CONFIG", "SET", "requirepass", "secret")
        self.assert_refused(daemon.run("edit", "db", "--threads", "2"), 1, "the password", "CONFIG REWRITE")
        client("CONFIG", "REWRITE")
        self.assertEqual(self.edited(daemon, "--threads", "2"), "db changed and restarted\n")
        stranger = client_of(self, client.port)
        self.assertRegex(stranger("GET", "key 1"), "NOAUTH")
        stranger("AUTH", "secret")
        self.assertEqual(stranger("DBSIZE"), KEYS)

    def test_what_config_set_changes_is_changed_while_running(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        for flags, name, value in ((["--maxmemory", "20M"], "maxmemory", b"20971520"),
                                   (["--eviction", "allkeys-lru"], "maxmemory-policy", b"allkeys-lru"),
                                   (["--config", "hz 50; slowlog-max-len 7"], "slowlog-max-len", b"7"),
                                   (["--maxmemory-clients", "5M"], "maxmemory-clients", b"5242880"),
                                   (["--save", "off"], "save", b""),
                                   (["--appendonly", "yes"], "appendonly", b"yes"),
                                   (["--appendfsync", "always"], "appendfsync", b"always"),
                                   (["--idle-timeout", "90500ms"], "timeout", b"91")):
            self.assertEqual(self.edited(daemon, *flags), "db changed while running\n")
            self.assertEqual(client("CONFIG", "GET", name), [name.encode(), value])
            self.assertEqual(client("DBSIZE"), KEYS)
        self.edited(daemon, "--mode", "readonly")
        self.assertTrue(client("SET", "a", "1").startswith("-"))
        self.edited(daemon, "--mode", "readwrite")
        self.assertEqual(client("SET", "key 0", "1"), "+OK")
        self.edited(daemon, "--config", "requirepass secret")
        self.assertTrue(Client(client.port)("PING").startswith("-NOAUTH"))
        # A value by CONFIG SET stays until the option itself changes.
        client("CONFIG", "SET", "maxmemory", "30000000")
        self.edited(daemon, "--config", "requirepass secret; hz 20")
        self.assertEqual(client("CONFIG", "GET", "maxmemory"), [b"maxmemory", b"30000000"])

    def test_a_restart_carries_the_keys_over(self):
        for folder in ([], ["--dir", self.folder()], ["--dir", self.folder(), "--save", "off"],
                       ["--dir", self.folder(), "--save", "off", "--appendonly", "yes"]):
            daemon = self.daemon()
            client = self.cache(daemon, *folder, "--mode", "admin")
            client.all([("SELECT", 5), ("RPUSH", "list", *range(3000)), ("PEXPIREAT", "list", 2 ** 42),
                        ("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 7 end)"),
                        ("SELECT", 0)])
            digest, port = client("DEBUG", "DIGEST"), client.port
            for flags in (["--threads", "2"], ["--max-queue", "2MiB"], ["-p", str(free_port())],
                          ["--threads", "1", "--maxmemory", "100M"]):
                self.assertEqual(self.edited(daemon, *flags), "db changed and restarted\n")
                port = daemon.show("db")["port"]
                client = client_of(self, port)
                self.assertEqual(client("DEBUG", "DIGEST"), digest, flags)
                self.assertEqual(client("FCALL", "f", 0), 7)
            self.assertEqual(daemon.run("reload", "db").err, "")
            client = client_of(self, port)
            self.assertEqual(client("DEBUG", "DIGEST"), digest)
            self.assertEqual(client("SET", "key 0", "again"), "+OK")
            self.assertNotIn("lost", daemon.read_log())
            daemon.must("remove", "db")

    def test_a_folder_for_a_running_cache_begins_with_its_keys(self):
        folder = self.folder()
        disk = os.path.join(self.folder(), "lib", "db")
        first = self.daemon(folder=folder)
        client = self.cache(first)
        self.edited(first, "--dir", disk, "--save", "off")
        self.assertEqual(os.listdir(disk), ["dump.rdb"])
        for each in (disk, os.path.dirname(disk)):
            self.assertEqual(os.stat(each).st_mode & 0o777, 0o700)
        first.kill()
        second = self.daemon(folder=folder)
        self.assertEqual(self.keys_at(client.port), KEYS)
        # From one folder to another, and to none.
        other = self.folder()
        self.edited(second, "--dir", other, "--appendonly", "yes")
        self.assertEqual(self.keys_at(client.port), KEYS)
        second.kill()
        third = self.daemon(folder=folder)
        self.assertEqual(self.keys_at(client.port), KEYS)
        self.edited(third, *(word for name in ("dir", "save", "appendonly") for word in ("--unset", name)))
        self.assertEqual(self.keys_at(client.port), KEYS)

    def test_of_two_sets_of_keys_the_user_says_which_one_counts(self):
        daemon, disk = self.daemon(), self.folder()
        other = self.cache(daemon, "--dir", disk, name="other")
        other("SET", "only here", "1")
        daemon.must("stop", "other")
        client = self.cache(daemon)
        self.assert_refused(daemon.run("edit", "db", "--dir", disk), 1, f"{disk}/dump.rdb",
                            f"has {KEYS} keys", "--discard-keys")
        self.assert_serves(client)
        self.assertIn("restarted", self.edited(daemon, "--dir", disk, "--discard-keys"))
        self.assertEqual(client_of(self, client.port)("EXISTS", "only here"), 1)

    def test_a_refused_edit_changes_nothing(self):
        daemon, folder = self.daemon(), self.folder()
        client = self.cache(daemon)
        damaged = os.path.join(folder, "damaged")
        with open(damaged, "w", encoding="ascii") as file:
            file.write("damaged\n")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = str(other.getsockname()[1])
            before = daemon.show("db")
            for flags in (["-p", taken], ["--tls-port", taken, "--tls-cert-file", damaged, "--tls-auth-clients", "no"],
                          ["--tls-port", "0", "--tls-cert-file", damaged, "--tls-auth-clients", "no"],
                          ["--tls-port", "0", "--tls-cert-file", folder + "/none", "--tls-auth-clients", "no"],
                          ["--hooks", damaged], ["--hooks", folder + "/none"], ["--aclfile", damaged],
                          ["--aclfile", folder + "/none"], ["--bind", "192.0.2.1"], ["--dir", damaged + "/below"],
                          ["--maxmemory", "1M", "--rename-command", "GET=SET"], ["--redis-version", "8.4"]):
                result = daemon.run("edit", "db", *flags)
                self.assertIn(result.status, (1, 2), flags)
                self.assertNotIn("is stopped", result.err)
                self.assert_serves(client)
                self.assertEqual(daemon.show("db")["options"], before["options"])
            self.assertEqual(daemon.show("db")["status"], "running")
        self.assertIn("restarted", self.edited(daemon, "-p", taken))

    def test_what_fails_only_later_gives_the_keys_back(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon)
        with open(os.path.join(disk, "dump.rdb"), "w", encoding="ascii") as file:
            file.write("damaged\n")
        self.assert_refused(daemon.run("edit", "db", "--dir", disk, "--discard-keys"), 2,
                            "keeps its old options", "dump.rdb")
        self.assertEqual(self.keys_at(client.port), KEYS)
        self.assertNotIn("dir", daemon.show("db")["options"])
        # The first dump of a new folder.
        empty = self.folder()
        self.obstacle(empty)
        self.assert_refused(daemon.run("edit", "db", "--dir", empty), 2, "keeps its old options", "dump.rdb.tmp")
        self.assertEqual(self.keys_at(client.port), KEYS)

    def test_keys_that_cannot_be_carried_over_stay(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        folder = self.folder()
        with harness.small_disk(os.path.join(folder, "disk"), 1024) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            daemon = self.daemon(folder=folder, state=os.path.join(disk, "state"))
            client = self.cache(daemon)
            client("SET", "big", os.urandom(2 << 20))
            self.assert_refused(daemon.run("edit", "db", "--threads", "2"), 2,
                                f"its {KEYS + 1} keys cannot be carried over", "the disk is full", disk,
                                "--discard-keys")
            self.assert_serves(client, KEYS + 1)
            self.assertNotIn("threads", daemon.show("db")["options"])
            daemon.must("edit", "db", "--threads", "2", "--discard-keys")
            self.assertEqual(self.keys_at(client.port), 0)
            daemon.stop()

    def test_a_replica_never_copies_emptiness(self):
        daemon = self.daemon()
        client = self.cache(daemon)
        daemon.must("create", "cache", "replica", "-p", str(free_port()), "--replicate",
                    f"127.0.0.1:{client.port}", "-s")
        replica = client_of(self, daemon.show("replica")["port"])
        eventually(lambda: replica("DBSIZE") == KEYS, "the copy")
        self.edited(daemon, "--threads", "2")
        client = client_of(self, client.port)
        client("SET", "later", "1")
        eventually(lambda: replica("EXISTS", "later") == 1, "the link")
        self.assertEqual(replica("DBSIZE"), KEYS + 1)

    def test_a_cache_whose_dump_cannot_be_written_restarts_with_its_keys(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        self.assertEqual(client("SAVE"), "+OK")
        client("SET", "later", "1")
        obstacle = self.obstacle(disk)
        self.edited(daemon, "--threads", "2")
        self.assertEqual(self.keys_at(client.port), KEYS + 1)
        os.rmdir(obstacle)
        daemon.must("stop", "db")
        daemon.must("start", "db")
        self.assertEqual(self.keys_at(client.port), KEYS + 1)

    def test_a_restart_does_not_need_the_first_dump(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        obstacle = self.obstacle(disk)
        self.assertEqual(self.edited(daemon, "--threads", "2"), "db changed and restarted\n")
        self.assertEqual(daemon.run("reload", "db").err, "")
        self.assertEqual(self.keys_at(client.port), KEYS)
        self.assert_refused(daemon.run("stop", "db"), 2, "was not stopped")
        # Neither the new folder nor its own can be written: it runs as before.
        other = self.folder()
        other_obstacle = self.obstacle(other)
        self.assert_refused(daemon.run("edit", "db", "--dir", other), 2, "keeps its old options", other)
        self.assertEqual(daemon.show("db")["status"], "running")
        self.assertEqual(self.keys_at(client.port), KEYS)
        for each in (obstacle, other_obstacle):
            os.rmdir(each)
        daemon.must("stop", "db")
        daemon.must("start", "db")
        self.assertEqual(self.keys_at(client.port), KEYS)

    def test_an_append_only_file_that_cannot_be_written_refuses_a_restart(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        with harness.small_disk(os.path.join(self.folder(), "disk"), 1024) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            daemon = self.daemon()
            client = self.cache(daemon, "--dir", disk, "--save", "off", "--appendonly", "yes")
            big = Client(client.port)
            self.addCleanup(big.close)
            big.send("SET", "big", os.urandom(2 << 20))
            # On a connection of its own: it may be closed, as the change is not on the disk.
            eventually(lambda: client("DBSIZE") == KEYS + 1, "the change")
            self.assert_refused(daemon.run("edit", "db", "--threads", "2"), 2, "append-only file", "--discard-keys")
            self.assertEqual(daemon.show("db")["status"], "running")
            self.assertEqual(client("DBSIZE"), KEYS + 1)
            daemon.must("stop", "--force", "db")
            daemon.must("remove", "db")


@harness.on_each_backend
class RemovedFiles(KeepingTest):
    """Files that were removed by hand are written again before a cache ends."""

    def ends(self, daemon):
        threads = itertools.cycle(("2", "1"))
        return {"edit": lambda: daemon.must("edit", "db", "--threads", next(threads)),
                "stop": lambda: (daemon.must("stop", "db"), daemon.must("start", "db")),
                "the daemon's end": lambda: (daemon.stop(), daemon.start())}

    def test_a_dump_that_is_gone_is_written_again(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk)
        for name, end in self.ends(daemon).items():
            with self.subTest(end=name):
                client = client_of(self, client.port)
                self.assertEqual(client("SAVE"), "+OK")
                os.remove(os.path.join(disk, "dump.rdb"))
                end()
                self.assertEqual(self.keys_at(client.port), KEYS)

    def test_an_append_only_file_that_is_gone_is_written_again(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk, "--appendonly", "yes", "--save", "off")
        folder = os.path.join(disk, "appendonlydir")
        parts = {"the folder": lambda: shutil.rmtree(folder)}
        for part in ("manifest", "base.rdb", "incr.aof"):
            parts[part] = lambda part=part: [os.remove(os.path.join(folder, each))
                                             for each in os.listdir(folder) if each.endswith(part)]
        for name, end in self.ends(daemon).items():
            for part, remove in parts.items():
                with self.subTest(end=name, part=part):
                    remove()
                    end()
                    self.assertEqual(self.keys_at(client.port), KEYS)

    def test_one_that_cannot_be_written_again_refuses_the_stop(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk, "--appendonly", "yes", "--save", "off")
        folder = os.path.join(disk, "appendonlydir")
        shutil.rmtree(folder)
        with open(folder, "w", encoding="utf-8"):
            pass
        self.assert_refused(daemon.run("stop", "db"), 2, "was not stopped", folder)
        self.assert_serves(client)
        os.remove(folder)
        daemon.must("stop", "db")
        daemon.must("start", "db")
        self.assertEqual(self.keys_at(client.port), KEYS)

    def test_keys_of_debug_populate_are_changes(self):
        daemon, disk = self.daemon(), self.folder()
        client = self.cache(daemon, "--dir", disk, "--mode", "admin")
        self.assertEqual(client("SAVE"), "+OK")
        self.assertEqual(client("DEBUG", "POPULATE", "10", "more"), "+OK")
        daemon.must("stop", "db")
        daemon.must("start", "db")
        self.assertEqual(self.keys_at(client.port), KEYS + 10)


@harness.on_each_backend
class Certificates(KeepingTest):
    def subject(self, made, port):
        with made.connect(port) as connection:
            return connection.getpeercert()["serialNumber"]

    def test_renewed_files_are_read_without_a_restart(self):
        daemon = self.daemon()
        made, renewed = (harness.Certificates(self.folder()) for _ in range(2))
        port = free_port()
        for threads in ("1", "2"):
            flags = ["--tls-port", str(port), "--tls-cert-file", made.cert, "--tls-key-file", made.key,
                     "--tls-auth-clients", "no", "--threads", threads]
            try:
                client = self.cache(daemon, *flags)
            except AssertionError as refused:
                if "does not have" in str(refused):
                    self.skipTest("this build has no TLS")
                raise
            good = {}
            for path, name in ((made.cert, "cert"), (made.key, "key")):
                with open(path, "rb") as file:
                    good[name] = file.read()
            before = self.subject(made, port)
            with open(made.cert, "w", encoding="ascii") as file:
                file.write("x\n")
            self.assert_refused(daemon.run("reload", "db"), 1, "was not reloaded, and goes on as before", made.cert)
            self.assertEqual(self.subject(made, port), before)
            shutil.copy(renewed.cert, made.cert)
            self.assert_refused(daemon.run("reload", "db"), 1, "was not reloaded, and goes on as before")
            self.assertEqual(self.subject(made, port), before, "its key is another one")
            shutil.copy(renewed.key, made.key)
            self.assertEqual(daemon.must("reload", "db").split()[:2], ["db", "reloaded"])
            self.assertNotEqual(self.subject(renewed, port), before)
            self.assert_serves(client)
            for path, name in ((made.cert, "cert"), (made.key, "key")):
                with open(path, "wb") as file:
                    file.write(good[name])
            daemon.must("remove", "db")


class Removing(KeepingTest):
    def on_terminal(self, daemon, *words):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        os.write(master, b"no\n")  # to a question
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
        self.assertIn("db, which runs, is removed", err)
        self.assertIn("nothing was removed", err)
        self.assertEqual(sorted(daemon.list()), ["db", "idle"])
        self.assert_serves(client)
        self.assertEqual(self.on_terminal(daemon, "remove", "idle"), (0, ""))
        status, err = self.on_terminal(daemon, "remove", "-f", "db")
        self.assertEqual(status, 0)
        self.assertIn(f"db lost {KEYS} keys", err)
        self.assertEqual(daemon.list(), {})

    def test_a_terminal_is_asked_for_the_flag_where_what_it_owns_runs(self):
        daemon = self.daemon()
        daemon.must("create", "server", "boss", "-p", str(free_port()))
        daemon.must("create", "server", "child", "-p", str(free_port()), "-o", "boss", "-s")
        status, err = self.on_terminal(daemon, "remove", "boss")
        self.assertEqual(status, 1)
        self.assertIn("removing boss also removes child", err)
        self.assertEqual(sorted(daemon.list()), ["boss", "child"])
        self.assertEqual(self.on_terminal(daemon, "remove", "-f", "boss"), (0, ""))
        self.assertEqual(daemon.list(), {})


if __name__ == "__main__":
    harness.main()
