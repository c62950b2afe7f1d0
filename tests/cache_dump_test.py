#!/usr/bin/env python3
"""A cache that keeps its keys on disk: killed, restarted, full disks, and files from and for Redis."""

import os
import shutil
import subprocess
import unittest

import harness
from cache_client import Redis, client_of
from harness import eventually, free_port


def fill(client, tag):
    """Keys of all types, some in another database, some that expire."""
    for database in (0, 5):
        client("SELECT", database)
        for i in range(300):
            client("SET", f"text {i}", f"{tag} {i}" * (i % 30))
            client("SET", f"number {i}", i - 100)
            client("RPUSH", "list", tag, i)
            client("HSET", f"hash {i % 3}", f"field {i}", tag)
            client("SADD", "set", i)
            client("SADD", "words", f"{tag} {i}")
            client("ZADD", "sorted", i * 0.5, f"member {i}")
        client("EXPIRE", "text 7", 100000)
        client("SET", "big", os.urandom(300000))
    client("SELECT", 0)


@harness.on_each_backend
class CacheDump(harness.EddyTest):
    def client(self, port):
        return client_of(self, port)

    def cache(self, daemon, port, folder, *more):
        daemon.must("create", "cache", "db", "-p", str(port), "--dir", folder, "--mode", "admin",
                    *more, "-s")
        return self.client(port)

    def test_what_bgsave_has_written_survives_kill_9(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        first = self.daemon(folder=folder)
        client = self.cache(first, port, disk, "--save", "off")
        fill(client, "first")
        digest = client("DEBUG", "DIGEST")
        self.assertEqual(client("BGSAVE"), "+Background saving started")
        eventually(lambda: client.info()["rdb_bgsave_in_progress"] == "0", "the end of the save")
        self.assertEqual(client.info()["rdb_last_bgsave_status"], "ok")
        client("SET", "too late", "1")
        # In the middle of another one.
        client("BGSAVE")
        first.kill()
        second = self.daemon(folder=folder)
        client = self.client(port)
        now = client("DEBUG", "DIGEST")
        if client("EXISTS", "too late") == 0:
            self.assertEqual(now, digest)
        client("DEL", "too late")
        self.assertEqual(client("DEBUG", "DIGEST"), digest)
        self.assertEqual(os.listdir(disk), ["dump.rdb"])
        self.assertIn("loaded", second.must("logs", "db"))

    def test_an_orderly_stop_saves_all(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        first = self.daemon(folder=folder)
        client = self.cache(first, port, disk)
        fill(client, "kept")
        digest = client("DEBUG", "DIGEST")
        first.stop()
        second = self.daemon(folder=folder)
        client = self.client(port)
        self.assertEqual(client("DEBUG", "DIGEST"), digest)
        self.assertEqual(client.info()["rdb_changes_since_last_save"], "0")

    def test_redis_loads_ours_and_we_load_redis_s(self):
        disk, port = self.folder(), free_port()
        daemon = self.daemon()
        client = self.cache(daemon, port, disk)
        fill(client, "ours")
        digest = client("DEBUG", "DIGEST")
        self.assertEqual(client("SAVE"), "+OK")
        theirs = self.client(Redis(self, folder=disk).port)
        self.assertEqual(theirs("DEBUG", "DIGEST"), digest)
        checked = subprocess.run(["redis-check-rdb", os.path.join(disk, "dump.rdb")],
                                 stdout=subprocess.PIPE, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)

        other = self.folder()
        fill(theirs, "theirs")
        digest = theirs("DEBUG", "DIGEST")
        theirs("CONFIG", "SET", "save", "")
        self.assertEqual(theirs("SAVE"), "+OK")
        shutil.copy(os.path.join(disk, "dump.rdb"), other)
        port = free_port()
        daemon.must("create", "cache", "copy", "-p", str(port), "--dir", other, "--mode", "admin",
                    "-s")
        self.assertEqual(self.client(port)("DEBUG", "DIGEST"), digest)

    def test_a_full_disk_is_told_and_nothing_is_lost(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        port = free_port()
        with harness.small_disk(self.folder(), 1024) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            daemon = self.daemon()
            client = self.cache(daemon, port, disk, "--save", "3600 1")
            client("SET", "a", "1")
            self.assertEqual(client("SAVE"), "+OK")
            with open(os.path.join(disk, "dump.rdb"), "rb") as file:
                good = file.read()
            client("SET", "big", os.urandom(2 << 20))
            self.assertIn("the disk is full", client("SAVE"))
            self.assertEqual(client("SET", "b", "1"), "+OK")
            self.assertEqual(client("BGSAVE"), "+Background saving started")
            eventually(lambda: client("SET", "b", "2").startswith("-MISCONF"), "the refusal of writes")
            self.assertEqual(client("GET", "a"), b"1")
            with open(os.path.join(disk, "dump.rdb"), "rb") as file:
                self.assertEqual(file.read(), good)
            self.assertEqual(os.listdir(disk), ["dump.rdb"])
            self.assertIn("the disk is full", daemon.must("logs", "db"))
            client("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
            client("DEL", "big")
            self.assertEqual(client("SAVE"), "+OK")
            self.assertEqual(client.info()["rdb_last_bgsave_status"], "ok")
            daemon.must("stop", "db")

    def test_a_damaged_file_keeps_the_cache_from_starting(self):
        disk, port = self.folder(), free_port()
        path = os.path.join(disk, "dump.rdb")
        daemon = self.daemon()
        client = self.cache(daemon, port, disk)
        fill(client, "good")
        client("SAVE")
        daemon.must("stop", "db")
        with open(path, "rb") as file:
            good = file.read()
        bad = good[:1000] + bytes([good[1000] ^ 255]) + good[1001:]
        with open(path, "wb") as file:
            file.write(bad)
        self.assert_refused(daemon.run("start", "db"), 2, path, "at byte")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), bad)
        with open(path, "wb") as file:
            file.write(good)
        daemon.must("start", "db")
        self.assertEqual(self.client(port)("DBSIZE"), client_size(good))


def client_size(dump):
    """The number of keys of database 0 by the file's RESIZEDB, behind SELECTDB 0."""
    at = dump.index(b"\xfe\x00\xfb") + 3
    first = dump[at]
    return first if first < 64 else (first & 63) << 8 | dump[at + 1]


if __name__ == "__main__":
    harness.main()
