#!/usr/bin/env python3
"""Search for torn snapshots of a cache: a few large values change, are removed and replaced, while dump files,
bases of the append-only file and replicas' full copies are made without end.

EDDY_SNAPSHOT_SECONDS=N is the time of each of its two searches, with one thread and with three. EDDY_SEED=N, or
random, chooses the commands.
"""

import contextlib
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
from cache_client import Client, client_of
from harness import eventually, free_port
from replication_test import Stranger, have_same_data

SECONDS = float(os.environ.get("EDDY_SNAPSHOT_SECONDS", "10"))
SEED = os.environ.get("EDDY_SEED", "1")
if SEED == "random":
    SEED = str(random.SystemRandom().randrange(1 << 32))


class Pair:
    """Pushes each number to one list, and then to another: at each instant the first one is ahead by one at most."""

    LARGEST = 8000

    def __init__(self, number):
        self.first, self.second = f"pair:{number}:first", f"pair:{number}:second"
        self.pushed = 0
        self.size = 0

    def write(self, client, chance):
        count = chance.choice((1, 10, 200))
        words = []
        if self.size > chance.randrange(self.LARGEST // 2, self.LARGEST):
            # The first list is the one that goes first, too.
            words += [(chance.choice(("DEL", "UNLINK")), key) for key in (self.first, self.second)]
            self.size = 0
        for n in range(self.pushed + 1, self.pushed + count + 1):
            words += [("RPUSH", self.first, n), ("RPUSH", self.second, n)]
        replies = client.all(words)
        if not all(isinstance(each, int) for each in replies):
            raise AssertionError(f"refused: {[each for each in replies if not isinstance(each, int)][:3]}")
        self.pushed += count
        self.size += count

    def last_of(self, test, client, key, when):
        """The last number of a list without a gap, and how many it has."""
        replies = client.all([("MULTI",), ("LLEN", key), ("LINDEX", key, 0), ("LINDEX", key, -1), ("EXEC",)])
        size, first, last = replies[-1]
        if size == 0:
            return None, 0
        test.assertEqual(int(last) - int(first) + 1, size, f"{key} has gaps {when}")
        return int(last), size

    def check(self, test, client, when):
        """Checks a dataset that does not change meanwhile."""
        first, size = self.last_of(test, client, self.first, when)
        second, _ = self.last_of(test, client, self.second, when)
        if first is None:
            return
        if second is None:
            test.assertEqual(size, 1, f"{self.second} is missing {when}")
        else:
            test.assertIn(first - second, (0, 1), f"{self.second} is not of {self.first}'s instant {when}")


class Churn:
    """Random commands on a few large values of all types, in databases of their own."""

    KEYS = {"list": "RPUSH", "set": "SADD", "hash": "HSET", "sorted": "ZADD", "stream": "XADD", "text": "SETRANGE"}
    DATABASES = (1, 2)

    def key(self, kind, chance):
        return f"{kind} {chance.randrange(2)}"

    def growth(self, kind, key, chance):
        """A command that adds many elements, or a few."""
        count = chance.choice((1, 1, 5, 3000))
        numbers = [chance.randrange(9000) for _ in range(count)]
        if kind == "hash":
            return ["HSET", key, *(each for n in numbers for each in (f"field {n}", chance.randrange(1000)))]
        if kind == "sorted":
            return ["ZADD", key, *(each for n in numbers for each in (n * 0.5, f"member {n}"))]
        if kind == "stream":
            return ["XADD", key, "*", *("field", "v" * 40) * min(count, 50)]
        if kind == "text":
            return ["SETRANGE", key, chance.randrange(1_500_000), "text" * count]
        return [self.KEYS[kind], key, *numbers]

    def command(self, chance):
        kind = chance.choice(list(self.KEYS))
        key = self.key(kind, chance)
        if chance.random() < 0.7:
            return self.growth(kind, key, chance)
        return chance.choice((
            ("DEL", key), ("UNLINK", key), ("SET", key, "replaced"), ("RENAME", key, self.key(kind, chance)),
            ("COPY", key, self.key(kind, chance), "REPLACE"), ("PEXPIRE", key, chance.randrange(300)),
            ("MOVE", key, chance.choice(self.DATABASES)), ("SELECT", chance.choice(self.DATABASES)),
            ("SWAPDB", *self.DATABASES), ("FLUSHDB", chance.choice(("SYNC", "ASYNC"))),
            ("LPOP", key, 100), ("LTRIM", key, 50, -50), ("SPOP", key, 20), ("HDEL", key, "field 7", "field 8"),
            ("ZPOPMIN", key, 20), ("XTRIM", key, "MAXLEN", 100), ("APPEND", key, "more"),
            ("EVAL", "return redis.pcall(unpack(ARGV))", 0, *self.growth(kind, key, chance)[:7]),
            ("EVAL", "return redis.pcall('DEL', ARGV[1])", 0, key)))

    def write(self, client, chance):
        commands = [self.command(chance) for _ in range(chance.choice((1, 5, 20)))]
        if commands and chance.random() < 0.2:
            commands = [("MULTI",), *commands, ("EXEC",)]
        client.all(commands)


class Beside:
    """Threads that work until the test's end, and what went wrong in them."""

    def __init__(self):
        self.stop = threading.Event()
        self.faults = []
        self.threads = []
        self.programs = []

    def start(self, work):
        def until_stop():
            try:
                while not self.stop.is_set():
                    work()
            except Exception as fault:  # pylint: disable=broad-except
                self.faults.append(fault)
        self.threads.append(threading.Thread(target=until_stop))
        self.threads[-1].start()

    def check(self):
        if self.faults:
            raise self.faults[0]

    def end(self):
        self.stop.set()
        for each in self.threads:
            each.join()
        for each in self.programs:
            each.kill()
            each.wait()


class Snapshots(harness.EddyTest):
    PAIRS = 4

    def search(self, threads):
        print(f"EDDY_SEED={SEED} EDDY_SNAPSHOT_SECONDS={SECONDS:g}", file=sys.stderr)
        self.chance = random.Random(f"{SEED} {threads}")
        self.disk, self.port = self.folder(), free_port()
        self.reader_disk, self.reader_port = self.folder(), free_port()
        self.own_daemon = daemon = self.daemon()
        daemon.must("create", "cache", "db", "-p", str(self.port), "--dir", self.disk, "--mode", "admin",
                    "--threads", str(threads), "--save", "off", "--appendonly", "yes", "--appendfsync", "no", "-s")
        daemon.must("create", "cache", "reader", "-p", str(self.reader_port), "--dir", self.reader_disk,
                    "--mode", "admin", "--save", "off")
        client = self.cache = client_of(self, self.port)
        client("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
        client("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        self.pairs = [Pair(i) for i in range(self.PAIRS)]
        counts = dict.fromkeys(("save", "bgsave", "rewrite", "copy"), 0)
        replica = self.replica(daemon)
        beside = Beside()
        try:
            for writer in (*self.pairs, Churn(), Churn()):
                self.start_writer(beside, writer)
            self.start_benchmark(beside)
            beside.start(lambda: self.copy_again(replica))
            end = time.monotonic() + SECONDS
            while time.monotonic() < end or not all(counts.values()):
                kind = min(counts, key=lambda each: (counts[each], self.chance.random()))
                counts[kind] += 1
                self.check_snapshot(getattr(self, kind)(), f"in {kind} {counts[kind]}")
                beside.check()
        except Exception:
            for name in ("db", "copy"):
                print(daemon.must("logs", name)[-2000:], file=sys.stderr)
            raise
        finally:
            beside.end()
        beside.check()
        print(f"snapshots without a fault: {counts}, and {replica.info('stats')['total_commands_processed']} "
              "commands by a replica", file=sys.stderr)
        self.check_end(daemon, replica)

    # --- Work beside the snapshots

    def start_writer(self, beside, writer):
        client, chance = client_of(self, self.port), random.Random(self.chance.random())
        if isinstance(writer, Churn):
            client("SELECT", "1")
        beside.start(lambda: writer.write(client, chance))

    def start_benchmark(self, beside):
        """Pushes faster than Python can, to lists that do not grow for ever."""
        if shutil.which("redis-benchmark") is None:
            return
        words = ["redis-benchmark", "-p", str(self.port), "-c", "4", "-r", "4", "-n", "1000000000", "-q",
                 "rpush", "bench:__rand_int__", "x"]
        beside.programs.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        client, chance = client_of(self, self.port), random.Random(self.chance.random())

        def remove_some():
            client("DEL", f"bench:{chance.randrange(4):012}")
            beside.stop.wait(chance.random() / 5)
        beside.start(remove_some)

    def replica(self, daemon):
        port = free_port()
        daemon.must("create", "cache", "copy", "-p", str(port), "--mode", "admin", "-s")
        return client_of(self, port)

    def copy_again(self, replica):
        """A full copy, since what it wrote itself is no part of the master's history."""
        replica("REPLICAOF", "NO", "ONE")
        replica("SET", "its own", "1")
        replica("REPLICAOF", "127.0.0.1", self.port)
        eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link")
        # It continues with the stream's commands, which the next copy may interrupt anywhere.
        for each in self.pairs:
            each.last_of(self, replica, each.first, "in the replica")
            each.last_of(self, replica, each.second, "in the replica")

    # --- Images

    def dump(self):
        with open(os.path.join(self.disk, "dump.rdb"), "rb") as file:
            return file.read()

    def save(self):
        def saved():
            reply = self.cache("SAVE")
            # Another snapshot is on its way.
            self.assertIn(reply, ("+OK", "-ERR Background save already in progress"))
            return reply == "+OK"
        eventually(saved, "SAVE")
        return self.dump()

    def bgsave(self):
        eventually(lambda: self.cache("BGSAVE").startswith("+"), "BGSAVE")
        eventually(lambda: self.cache.info()["rdb_bgsave_in_progress"] == "0", "the end of BGSAVE")
        self.assertEqual(self.cache.info()["rdb_last_bgsave_status"], "ok")
        return self.dump()

    def rewrite(self):
        rewrites = int(self.cache.info()["aof_rewrites"])
        self.cache("BGREWRITEAOF")
        eventually(lambda: int(self.cache.info()["aof_rewrites"]) > rewrites
                   and self.cache.info()["aof_rewrite_in_progress"] == "0", "the rewrite")
        self.assertEqual(self.cache.info()["aof_last_bgrewrite_status"], "ok")
        base, = glob.glob(os.path.join(self.disk, "appendonlydir", "*.base.rdb"))
        with open(base, "rb") as file:
            return file.read()

    def copy(self):
        with contextlib.closing(Stranger(self, self.port)) as stranger:
            self.assertTrue(stranger.ask("?", "-1").startswith("+FULLRESYNC"))
            return stranger.take_copy()

    def check_snapshot(self, content, what):
        path = os.path.join(self.reader_disk, "dump.rdb")
        with open(path, "wb") as file:
            file.write(content)
        try:
            if shutil.which("redis-check-rdb") is not None:
                done = subprocess.run(["redis-check-rdb", path], capture_output=True, check=False, encoding="utf-8",
                                      errors="replace")
                self.assertEqual(done.returncode, 0, f"{what}: {done.stdout}{done.stderr}")
            started = self.own_daemon.run("start", "reader")
            self.assertEqual(started.status, 0, f"{what}: {started}")
            with contextlib.closing(client_of(self, self.reader_port)) as reader:
                for each in self.pairs:
                    each.check(self, reader, what)
            self.own_daemon.must("stop", "reader")
        except AssertionError:
            print("kept:", shutil.copy(path, tempfile.mkdtemp(prefix="eddy-torn-")), file=sys.stderr)
            raise

    # --- The end

    def check_end(self, daemon, replica):
        """The replica has all, and the append-only file gives it back."""
        eventually(lambda: all("expires=0" in each for each in self.cache.info("keyspace").values()),
                   "the end of keys that expire")
        eventually(lambda: replica.info("replication").get("master_link_status") == "up", "the link")
        have_same_data(self.cache, replica)
        digest = self.cache("DEBUG", "DIGEST")
        daemon.must("stop", "copy")
        daemon.must("stop", "db")
        daemon.must("start", "db")
        self.cache = client_of(self, self.port)
        self.assertEqual(self.cache("DEBUG", "DIGEST"), digest)
        for each in self.pairs:
            each.check(self, self.cache, "after a restart")
            self.assertEqual(each.last_of(self, self.cache, each.second, "after a restart")[0], each.pushed)

    def test_snapshots_of_large_values_are_of_one_instant(self):
        self.search(1)

    def test_snapshots_of_large_values_with_three_threads(self):
        self.search(3)


if __name__ == "__main__":
    unittest.main()
