#!/usr/bin/env python3
"""The append-only file: kill -9, rewrites, damage, full disks, and files from and for Redis.

EDDY_CRASHES=N chooses how often the daemon is killed while clients write.
"""

import contextlib
import glob
import os
import random
import re
import shutil
import subprocess
import threading
import time
import unittest

import harness
from cache_client import Client, Redis, client_of
from cache_dump_test import fill
from harness import eventually, free_port

CRASHES = int(os.environ.get("EDDY_CRASHES", "6"))


class AofTest(harness.EddyTest):
    def client(self, port):
        return client_of(self, port)

    def cache(self, daemon, port, folder, *more):
        daemon.must("create", "cache", "db", "-p", str(port), "--dir", folder, "--mode", "admin",
                    "--save", "off", "--appendonly", "yes", *more, "-s")
        return self.client(port)

    def redis(self, folder, *more):
        server = Redis(self, "--appendonly", "yes", *more, folder=folder)
        return server, self.client(server.port)

    @staticmethod
    def parts(folder, kind="*"):
        return sorted(glob.glob(os.path.join(folder, "appendonlydir", "*." + kind)))

    def check(self, folder):
        if shutil.which("redis-check-aof") is None:
            return
        manifest = os.path.join(folder, "appendonlydir", "appendonly.aof.manifest")
        done = subprocess.run(["redis-check-aof", manifest], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def rewritten(self, client, times):
        eventually(lambda: int(client.info()["aof_rewrites"]) >= times
                   and client.info()["aof_rewrite_in_progress"] == "0", "the rewrite")
        self.assertEqual(client.info()["aof_last_bgrewrite_status"], "ok")


class Rows:
    """Counts in a key and in a list, together only by MULTI."""

    def __init__(self, name):
        self.key, self.list = f"{name}:key", f"{name}:list"
        self.acknowledged = self.known = 0

    def works(self):
        return [self.write]

    def write(self, client):
        n = self.acknowledged + 1
        if n % 3 == 0:
            for words in (("MULTI",), ("SET", self.key, n), ("RPUSH", self.list, n)):
                client(*words)
            if not isinstance(client("EXEC"), list):
                return False
        elif client("SET", self.key, n) != "+OK" or not isinstance(client("RPUSH", self.list, n), int):
            return False
        self.acknowledged = n
        return True

    def check(self, test, client, when):
        there = int(client("GET", self.key) or 0)
        test.assertGreaterEqual(there, self.acknowledged, when)
        test.assertLessEqual(there, self.acknowledged + 1, when)
        rows = [int(each) for each in client("LRANGE", self.list, 0, -1)]
        # Every element is there once; one more may have been on its way.
        last = self.acknowledged + (1 if rows and rows[-1] > self.acknowledged else 0)
        test.assertEqual(rows, list(range(self.known + 1, last + 1)), when)
        # A round begins with an empty list, so that the last of a thousand takes no longer.
        self.known = self.acknowledged = max(there, last)
        client("DEL", self.list)


class Scripts(Rows):
    """The same by a script, whose commands are one unit."""

    def write(self, client):
        n = self.acknowledged + 1
        code = "redis.call('SET',KEYS[1],ARGV[1]) return redis.call('RPUSH',KEYS[2],ARGV[1])"
        if not isinstance(client("EVAL", code, 2, self.key, self.list, n), int):
            return False
        self.acknowledged = n
        return True

    def check(self, test, client, when):
        there = int(client("GET", self.key) or 0)
        rows = client("LRANGE", self.list, -1, -1)
        test.assertEqual(there, int(rows[0]) if rows else self.known, when)
        super().check(test, client, when)


class Large:
    """Values that are received to where they stay."""

    PAD = b"x" * 70_000

    def __init__(self, key):
        self.key = key
        self.acknowledged = 0

    def works(self):
        return [self.write]

    def write(self, client):
        n = self.acknowledged + 1
        if client("SET", self.key, b"%d:" % n + self.PAD) != "+OK":
            return False
        self.acknowledged = n
        return True

    def check(self, test, client, when):
        number, _, pad = client("GET", self.key).partition(b":")
        test.assertEqual(pad, self.PAD, when)
        test.assertIn(int(number) - self.acknowledged, (0, 1), when)
        self.acknowledged = int(number)


class Queue:
    """One pushes, and one waits for it."""

    def __init__(self, key):
        self.key = key
        self.acknowledged = 0  # what was taken
        self.pushed = 0

    def works(self):
        return [self.push, self.take]

    def push(self, client):
        if not isinstance(client("RPUSH", self.key, self.pushed + 1), int):
            return False
        self.pushed += 1
        return True

    def take(self, client):
        got = client("BLPOP", self.key, 0)
        if not isinstance(got, list):
            return False
        self.acknowledged = int(got[1])
        return True

    def check(self, test, client, when):
        rows = [int(each) for each in client("LRANGE", self.key, 0, -1)]
        first = rows[0] if rows else max(self.pushed, self.acknowledged) + 1
        test.assertEqual(rows, list(range(first, first + len(rows))), when)
        # Popped elements are not there again, and only pops on their way are missing.
        test.assertIn(first - self.acknowledged, (1, 2), when)
        test.assertIn(first + len(rows) - 1 - self.pushed, (0, 1), when)
        self.pushed = max(self.pushed, self.acknowledged, rows[-1] if rows else 0)
        client("DEL", self.key)
        self.acknowledged = self.pushed


@harness.on_each_backend
class Aof(AofTest):
    def test_what_was_acknowledged_survives_kill_9(self):
        self.kill_while_clients_write("always")

    def test_it_does_so_without_a_sync_for_each(self):
        self.kill_while_clients_write("everysec")

    def kill_while_clients_write(self, policy):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        self.cache(daemon, port, disk, "--appendfsync", policy)
        chance = random.Random(os.environ.get("EDDY_SEED", "1"))
        writers = [Rows("one"), Rows("another"), Scripts("script"), Large("large"), Queue("queue")]
        for crash in range(CRASHES):
            daemon.must("edit", "db", "--threads", str(1 + crash // 2 % 2))
            stop = threading.Event()
            runs = [threading.Thread(target=self.until_killed, args=(port, work, stop))
                    for writer in writers for work in writer.works()]
            for run in runs:
                run.start()
            before = [writer.acknowledged for writer in writers]
            eventually(lambda: all(writer.acknowledged > then
                                   for writer, then in zip(writers, before)), "writes")
            other = self.client(port)
            if crash % 4 == 1:
                other("BGREWRITEAOF")
            time.sleep(chance.random() * 0.2)
            # The crash comes while this one is under way.
            if crash % 2 == 0:
                other("BGREWRITEAOF")
                time.sleep(chance.random() * 0.01)
            daemon.kill()
            stop.set()
            for run in runs:
                run.join()
            daemon = self.daemon(folder=folder)
            client = self.client(port)
            for writer in writers:
                writer.check(self, client, f"crash {crash}")
            self.check(disk)

    @staticmethod
    def until_killed(port, work, stop):
        client = None
        try:
            client = Client(port)
            while not stop.is_set() and work(client):
                pass
        except (OSError, ValueError):
            return
        finally:
            if client is not None:
                with contextlib.suppress(OSError):
                    client.close()

    def test_everything_is_there_again_after_a_rewrite_and_a_kill(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        first = self.daemon(folder=folder)
        client = self.cache(first, port, disk, "--appendfsync", "no")
        fill(client, "first")
        client("BGREWRITEAOF")
        fill(client, "second")
        self.rewritten(client, 2)
        fill(client, "third")
        eventually(lambda: client.info()["aof_buffer_length"] == "0", "the write")
        digest = client("DEBUG", "DIGEST")
        first.kill()
        self.assertEqual(len(self.parts(disk, "base.rdb")), 1)
        self.check(disk)
        self.daemon(folder=folder)
        client = self.client(port)
        self.assertEqual(client("DEBUG", "DIGEST"), digest)
        self.assertEqual(client.info()["aof_enabled"], "1")

    def test_an_orderly_stop_writes_everything(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk, "--appendfsync", "no")
        fill(client, "first")
        digest = client("DEBUG", "DIGEST")
        daemon.must("stop", "db")
        self.check(disk)
        daemon.must("start", "db")
        self.assertEqual(self.client(port)("DEBUG", "DIGEST"), digest)

    def test_the_advice_for_a_damaged_file_can_be_followed_as_it_is_printed(self):
        folder, port = self.folder(), free_port()
        disk = os.path.join(self.folder(), "a folder's name")
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk, "--appendfsync", "no")
        for i in range(3):
            client("SET", f"key{i}", i)
        client.all([("MULTI",), ("SET", "a", 1), ("SET", "b", 1), ("EXEC",)])
        daemon.must("stop", "db")
        part, = self.parts(disk, "incr.aof")
        with open(part, "rb") as file:
            good = file.read()
        for bad in (good.replace(b"*3\r\n$3\r\nSET\r\n$4\r\nkey2", b"!3\r\n$3\r\nSET\r\n$4\r\nkey2"),
                    good.replace(b"SET\r\n$4\r\nkey2", b"SOT\r\n$4\r\nkey2"),
                    good.replace(b"$3\r\nSET\r\n$1\r\nb", b"$3\r\nSOT\r\n$1\r\nb")):
            with open(part, "wb") as file:
                file.write(bad)
            refused = daemon.run("start", "db")
            self.assertNotEqual(refused.status, 0)
            self.assertNotIn("--fix", refused.err)
            command = re.search(r"with: (truncate .*)$", refused.err.strip(), re.MULTILINE).group(1)
            subprocess.run(["sh", "-c", command], check=True)
            self.assertGreater(os.path.getsize(part), 0)
            daemon.must("start", "db")
            self.check(disk)
            client = self.client(port)
            self.assertEqual(client("EXISTS", "key0", "key1"), 2)
            self.assertEqual(client("EXISTS", "key2", "a", "b"), 1 if b"SOT\r\n$1" in bad else 0)
            client.close()
            daemon.must("stop", "db")

    def test_it_is_switched_on_and_off_while_it_runs(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        daemon.must("create", "cache", "db", "-p", str(port), "--dir", disk, "--mode", "admin",
                    "--save", "off", "-s")
        client = self.client(port)
        client("SET", "before", 1)
        self.assertEqual(client.info()["aof_enabled"], "0")
        self.assertEqual(client("CONFIG", "SET", "appendonly", "yes"), "+OK")
        self.rewritten(client, 1)
        self.assertEqual(client.info()["aof_enabled"], "1")
        client("SET", "meanwhile", 1)
        self.assertEqual(client("CONFIG", "SET", "appendonly", "no"), "+OK")
        eventually(lambda: client.info()["aof_enabled"] == "0", "its end")
        client("SET", "later", 1)
        daemon.must("stop", "db")
        self.check(disk)
        _, redis = self.redis(disk)
        self.assertEqual(redis("GET", "before"), b"1")
        self.assertEqual(redis("GET", "meanwhile"), b"1")
        self.assertIsNone(redis("GET", "later"))

    def test_while_it_is_off_a_rewrite_writes_the_base_alone(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        daemon.must("create", "cache", "db", "-p", str(port), "--dir", disk, "--mode", "admin",
                    "--save", "off", "-s")
        client = self.client(port)
        fill(client, "first")
        digest = client("DEBUG", "DIGEST")
        for times, preamble in ((1, "yes"), (2, "no")):
            client("CONFIG", "SET", "aof-use-rdb-preamble", preamble)
            self.assertEqual(client("BGREWRITEAOF"), "+Background append only file rewriting started")
            self.rewritten(client, times)
            base = f"appendonly.aof.{times}.base." + ("rdb" if preamble == "yes" else "aof")
            folder_now = os.path.join(disk, "appendonlydir")
            eventually(lambda: sorted(os.listdir(folder_now)) == [base, "appendonly.aof.manifest"],
                       "the base alone")
            with open(os.path.join(folder_now, "appendonly.aof.manifest")) as file:
                self.assertEqual(file.read(), f"file {base} seq {times} type b\n")
        self.assertEqual(client.info()["aof_enabled"], "0")
        daemon.must("stop", "db")
        _, redis = self.redis(disk)
        self.assertEqual(redis("DEBUG", "DIGEST"), digest)

    def test_it_is_rewritten_by_itself(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk)
        client("CONFIG", "SET", "auto-aof-rewrite-min-size", "50kb")
        before = int(client.info()["aof_rewrites"])
        for _ in range(200):
            client("SET", "k", "v" * 1000)
        self.rewritten(client, before + 1)
        # By itself it may be rewritten once more meanwhile.
        def is_small():
            base = self.parts(disk, "base.rdb")
            with contextlib.suppress(FileNotFoundError):
                return len(base) == 1 and os.path.getsize(base[0]) < 5000
            return False

        eventually(is_small, "one small part")

    def test_redis_loads_it(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk)
        fill(client, "first")
        client("BGREWRITEAOF")
        self.rewritten(client, 2)
        fill(client, "second")
        for words in (("SPOP", "set", 5), ("XADD", "x", "*", "f", "v"),
                      ("XGROUP", "CREATE", "x", "g", 0),
                      ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">"),
                      ("SET", "short", 1, "PX", 1), ("SET", "long", 1, "EX", 1000),
                      ("EVAL", "redis.call('incr','n') redis.call('incr','n')", 0)):
            client(*words)
        eventually(lambda: client("GET", "short") is None, "the end of a key")
        digest = client("DEBUG", "DIGEST")
        daemon.must("stop", "db")
        self.check(disk)
        _, redis = self.redis(disk)
        self.assertEqual(redis("DEBUG", "DIGEST"), digest)
        self.assertEqual(redis("XPENDING", "x", "g")[0], 1)

    def test_files_of_redis_are_loaded(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        server, redis = self.redis(disk, "--aof-timestamp-enabled", "yes")
        fill(redis, "first")
        redis("BGREWRITEAOF")
        eventually(lambda: redis.info()["aof_rewrite_in_progress"] == "0", "the rewrite")
        fill(redis, "second")
        redis("MULTI")
        redis("SET", "t", 1)
        redis("XADD", "x", "MAXLEN", "~", 5, "LIMIT", 10, "*", "f", "v")
        redis("EXEC")
        digest = redis("DEBUG", "DIGEST")
        server.stop()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk)
        self.assertEqual(client("DEBUG", "DIGEST"), digest)
        client("SET", "more", 1)
        client("BGREWRITEAOF")
        self.rewritten(client, 1)
        self.check(disk)

    @staticmethod
    def fill_more(client):
        """Data beside that of fill(): groups with pending entries, functions, large values of each type."""
        for i in range(300):
            client("XADD", "x", f"{i + 1}-{i}", "field", i, f"other {i % 3}", "v" * i)
            client("RPUSH", "long list", f"element {i}", "e" * (i % 100))
            client("HSET", "large hash", f"field {i}", "v" * (i % 200))
            client("ZADD", "ranks", i / 3 - 50, f"member {i}" * 5)
        client("ZADD", "ranks", "inf", "last", "-inf", "first", "1e-300", "small")
        client("SET", "large", "x" * 1_000_000)
        client("RPUSH", "list of large", "a" * 100_000, "", "b" * 5000, -7)
        client("SET", "k" * 10_000, "long name")
        client("XGROUP", "CREATE", "x", "g", 0)
        client("XGROUP", "CREATE", "x", "other", "$", "ENTRIESREAD", 300)
        client("XREADGROUP", "GROUP", "g", "c", "COUNT", 100, "STREAMS", "x", ">")
        client("XREADGROUP", "GROUP", "g", "d", "COUNT", 50, "STREAMS", "x", ">")
        client("XACK", "x", "g", "3-2", "4-3")
        client("XGROUP", "CREATECONSUMER", "x", "g", "idle")
        client("XDEL", "x", "200-199", "300-299")
        client("XADD", "emptied", "7-1", "f", "v")
        client("XDEL", "emptied", "7-1")
        client("XGROUP", "CREATE", "made", "g", "$", "MKSTREAM")
        client("PFADD", "counted", *range(1000))
        client("PEXPIREAT", "large hash", 9_000_000_000_000)
        client("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)")

    def facts(self, client):
        """The digest, and facts that DEBUG DIGEST leaves out."""
        found = [client("DEBUG", "DIGEST"), client("FCALL", "f", 0), client("PEXPIRETIME", "large hash")]
        for stream in ("x", "emptied", "made"):
            described = client("XINFO", "STREAM", stream)
            named = dict(zip(described[::2], described[1::2]))
            found += [named[name] for name in (b"length", b"last-generated-id", b"max-deleted-entry-id",
                                               b"entries-added", b"groups")]
        for group in ("g", "other"):
            pending = client("XPENDING", "x", group, "-", "+", 1000)
            found.append([(entry, consumer, times) for entry, consumer, _, times in pending])
        groups = client("XINFO", "GROUPS", "x")
        # In some versions of Redis the lag is another one behind a removed entry.
        found.append([group[:10] for group in groups])
        found.append(sorted(consumer[1] for consumer in client("XINFO", "CONSUMERS", "x", "g")))
        return found

    def test_without_the_preamble_a_rewrite_writes_commands(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        first = self.daemon(folder=folder)
        client = self.cache(first, port, disk, "--config", "aof-use-rdb-preamble no")
        self.assertEqual(client("CONFIG", "GET", "aof-use-rdb-preamble")[1], b"no")
        fill(client, "first")
        self.fill_more(client)
        client("HSET", "timed", *range(200))
        client("HPEXPIREAT", "timed", 9_000_000_000_000, "FIELDS", 2, 10, 20)
        client("HPEXPIRE", "timed", 1, "FIELDS", 1, 30)
        before = int(client.info()["aof_rewrites"])
        # Long enough for changes meanwhile.
        client("CONFIG", "SET", "rdb-key-save-delay", 200)
        client("BGREWRITEAOF")
        eventually(lambda: client.info()["aof_rewrite_in_progress"] == "1", "the rewrite's start")
        for i in range(300):
            client("APPEND", f"text {i}", "changed")
            client("RPUSH", "long list", "changed")
            client("HSET", "large hash", f"field {i}", "changed")
            client("ZINCRBY", "ranks", 1, f"member {i}" * 5)
        client("DEL", "set", "list of large")
        client("XACK", "x", "g", "7-6")
        client("CONFIG", "SET", "rdb-key-save-delay", 0)
        self.rewritten(client, before + 1)
        facts = self.facts(client)
        field_times = client("HPEXPIRETIME", "timed", "FIELDS", 3, 10, 20, 40)
        self.assertEqual(field_times, [9_000_000_000_000, 9_000_000_000_000, -1])
        eventually(lambda: client.info()["aof_buffer_length"] == "0", "the write")
        first.kill()
        self.assertEqual(self.parts(disk, "base.rdb"), [])
        base, = self.parts(disk, "base.aof")
        with open(base, "rb") as file:
            self.assertEqual(file.read(10), b"*3\r\n$8\r\nFU")
        self.check(disk)
        second = self.daemon(folder=folder)
        client = self.client(port)
        self.assertEqual(self.facts(client), facts)
        self.assertEqual(client("HPEXPIRETIME", "timed", "FIELDS", 3, 10, 20, 40), field_times)
        # The next one follows the setting.
        client("CONFIG", "SET", "aof-use-rdb-preamble", "yes")
        client("BGREWRITEAOF")
        eventually(lambda: self.parts(disk, "base.rdb"), "the rewrite")
        self.rewritten(client, 1)
        self.assertEqual(self.parts(disk, "base.aof"), [])
        second.kill()
        self.daemon(folder=folder)
        self.assertEqual(self.facts(self.client(port)), facts)

    def test_commands_of_a_rewrite_go_to_redis_and_back(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk, "--config", "aof-use-rdb-preamble no")
        fill(client, "first")
        self.fill_more(client)
        before = int(client.info()["aof_rewrites"])
        client("BGREWRITEAOF")
        self.rewritten(client, before + 1)
        fill(client, "second")
        facts = self.facts(client)
        daemon.must("stop", "db")
        self.check(disk)
        server, redis = self.redis(disk, "--aof-use-rdb-preamble", "no", "--enable-debug-command", "yes")
        self.assertEqual(self.facts(redis), facts)
        redis("SET", "of redis", 1)
        redis("BGREWRITEAOF")
        eventually(lambda: redis.info()["aof_rewrite_in_progress"] == "0"
                   and redis.info()["aof_rewrite_scheduled"] == "0", "the rewrite")
        redis("SET", "behind", 1)
        facts = self.facts(redis)
        server.stop()
        self.assertEqual(len(self.parts(disk, "base.aof")), 1)
        self.assertEqual(self.parts(disk, "base.rdb"), [])
        daemon.must("start", "db")
        client = self.client(port)
        self.assertEqual(self.facts(client), facts)
        self.assertEqual(client("CONFIG", "GET", "aof-use-rdb-preamble")[1], b"no")

    def test_a_kill_while_commands_are_rewritten_loses_nothing(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk, "--appendfsync", "always",
                            "--config", "aof-use-rdb-preamble no")
        fill(client, "first")
        self.fill_more(client)
        for round_ in range(3):
            client("CONFIG", "SET", "rdb-key-save-delay", 2000)
            client("BGREWRITEAOF")
            eventually(lambda: client.info()["aof_rewrite_in_progress"] == "1", "the rewrite's start")
            for i in range(20 * round_):
                client("INCR", f"number {i}")
            facts = self.facts(client)
            daemon.kill()
            daemon = self.daemon(folder=folder)
            client = self.client(port)
            self.assertEqual(self.facts(client), facts)

    def test_an_incomplete_end_is_cut_off(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk)
        client("SET", "a", 1)
        daemon.must("stop", "db")
        part = self.parts(disk, "incr.aof")[-1]
        size = os.path.getsize(part)
        for tail in (b"*3\r\n$3\r\nSET\r\n$1\r\nb", b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"):
            with open(part, "ab") as file:
                file.write(tail)
            daemon.must("start", "db")
            client = self.client(port)
            self.assertEqual(client("GET", "a"), b"1")
            self.assertEqual(client("DBSIZE"), 1)
            self.assertEqual(os.path.getsize(part), size)
            daemon.must("stop", "db")

    def test_damage_is_told_with_its_place_and_left(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk)
        client("SET", "a", 1)
        daemon.must("stop", "db")
        part = self.parts(disk, "incr.aof")[-1]
        with open(part, "ab") as file:
            place = file.tell()
            file.write(b"garbage\r\n*1\r\n$4\r\nPING\r\n")
        with open(part, "rb") as file:
            before = file.read()
        refused = daemon.run("start", "db")
        self.assertNotEqual(refused.status, 0)
        self.assertIn(part, refused.err)
        self.assertIn(f"byte {place}", refused.err)
        with open(part, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_an_incomplete_base_is_damage(self):
        folder, disk, port = self.folder(), self.folder(), free_port()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, port, disk)
        client("CONFIG", "SET", "aof-use-rdb-preamble", "no")
        for i in range(50):
            client("SET", f"k{i}", i)
        client("BGREWRITEAOF")
        eventually(lambda: self.parts(disk, "base.aof"), "a base of commands")
        eventually(lambda: client.info()["aof_rewrite_in_progress"] == "0", "the rewrite has ended")
        daemon.must("stop", "db")
        part = self.parts(disk, "base.aof")[-1]
        size = os.path.getsize(part) // 2
        os.truncate(part, size)
        refused = daemon.run("start", "db")
        self.assertNotEqual(refused.status, 0, "a base is listed once it is complete")
        self.assertIn(part, refused.err)
        self.assertEqual(os.path.getsize(part), size)

    def test_two_caches_do_not_share_a_folder(self):
        folder, disk = self.folder(), self.folder()
        daemon = self.daemon(folder=folder)
        self.cache(daemon, free_port(), disk)
        refused = daemon.run("create", "cache", "other", "-p", str(free_port()), "--dir", disk,
                             "--appendonly", "yes", "-s")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("in use by another cache", refused.err)

    def test_a_full_disk_refuses_writes_until_there_is_room(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        with harness.small_disk(self.folder(), 2048) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            daemon = self.daemon()
            port = free_port()
            client = self.cache(daemon, port, disk)
            for i in range(100):
                said = client("SET", f"k{i}", os.urandom(100000))
                if said != "+OK":
                    break
                eventually(lambda: client.info()["aof_buffer_length"] == "0"
                           or client.info()["aof_last_write_status"] == "err", "the write")
            self.assertTrue(said.startswith("-MISCONF Errors writing to the AOF file: "), said)
            self.assertEqual(client.info()["aof_last_write_status"], "err")
            self.assertIsNone(client("GET", "no"))
            subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
            eventually(lambda: client("SET", "again", 1) == "+OK", "writes")
            digest = client("DEBUG", "DIGEST")
            daemon.must("stop", "db")
            self.check(disk)
            daemon.must("start", "db")
            self.assertEqual(self.client(port)("DEBUG", "DIGEST"), digest)
            daemon.must("stop", "db")

    def test_a_rewrite_on_a_full_disk_fails_and_all_goes_on(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        with harness.small_disk(self.folder(), 3072) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            daemon = self.daemon()
            port = free_port()
            client = self.cache(daemon, port, disk, "--config", "auto-aof-rewrite-percentage 0")
            # Two thirds of the disk, so that there is no room for the same once more.
            for i in range(20):
                self.assertEqual(client("SET", f"k{i}", os.urandom(100000)), "+OK")
            eventually(lambda: client.info()["aof_buffer_length"] == "0", "the writes")
            before = self.parts(disk)
            self.assertTrue(client("BGREWRITEAOF").startswith("+Background append only file rewriting"))
            eventually(lambda: client.info()["aof_last_bgrewrite_status"] == "err", "the failure")
            eventually(lambda: client.info()["aof_rewrite_in_progress"] == "0", "its end")
            # The unfinished rewrite is gone, and the old file is still appended to.
            self.assertEqual(client.info()["aof_enabled"], "1")
            self.assertEqual(self.parts(disk, "base.*")[:1], [each for each in before if ".base." in each])
            self.assertEqual([each for each in os.listdir(os.path.join(disk, "appendonlydir"))
                              if "temp" in each], [])
            self.assertEqual(client("SET", "after", 1), "+OK")
            self.assertEqual(client.info()["aof_last_write_status"], "ok")
            self.assertEqual(len(client("GET", "k0")), 100000)
            digest = client("DEBUG", "DIGEST")
            eventually(lambda: client.info()["aof_buffer_length"] == "0", "the writes")
            daemon.kill()
            daemon = self.daemon(folder=daemon.folder)
            client = self.client(port)
            self.assertEqual(client("DEBUG", "DIGEST"), digest)
            # With room it works.
            subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
            client("BGREWRITEAOF")
            self.rewritten(client, 1)
            self.assertEqual(client("DEBUG", "DIGEST"), digest)
            self.check(disk)
            daemon.must("stop", "db")

    def test_what_the_disk_has_not_is_not_acknowledged(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        with harness.small_disk(self.folder(), 2048) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            daemon = self.daemon()
            port = free_port()
            client = self.cache(daemon, port, disk, "--appendfsync", "always")
            self.assertEqual(client("SET", "a", 1), "+OK")
            # More than may wait: the file ends there, and a new one begins.
            with self.assertRaisesRegex(OSError, "ended|reset"):
                client("SET", "big", bytes(80_000_000))
            other = Client(port)
            self.addCleanup(other.close)
            self.assertTrue(other("SET", "b", 1).startswith("-MISCONF "))
            daemon.kill()
            daemon = self.daemon(folder=daemon.folder)
            client = self.client(port)
            self.assertEqual(client("GET", "a"), b"1")
            self.assertEqual(client("EXISTS", "big"), 0)
            daemon.must("stop", "db")


if __name__ == "__main__":
    harness.main()
