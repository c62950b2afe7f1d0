#!/usr/bin/env python3
"""A cache whose system's clock is set while it runs: forwards by a day, and back. Keys expire by the new time; waits,
upkeep, files and replication are unaffected.

libfaketime (https://github.com/wolfcw/libfaketime) gives the daemon a wall clock of its own, which a file sets while it
runs; the monotonic clock stays the kernel's.
"""

import glob
import os
import time

import harness
from cache_client import Client, Redis, client_of
from harness import eventually, free_port

DAY = 86_400
# Most seconds between two reads of a clock.
SLACK = 50

LIBRARIES = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))


class Clock:
    """A wall clock that is set by a file."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "clock")
        self.set(0)

    def set(self, seconds):
        """So much before or behind the real one."""
        with open(self.path + ".new", "w", encoding="ascii") as file:
            file.write(f"{seconds:+d}\n")
        os.rename(self.path + ".new", self.path)

    def prefix(self):
        """The command before a program that runs it by this clock."""
        return ["env", f"LD_PRELOAD={LIBRARIES[0]}", f"FAKETIME_TIMESTAMP_FILE={self.path}", "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"]


class ClockedDaemon(harness.Daemon):
    def __init__(self, clock, **options):
        super().__init__(**options)
        self.clock = clock

    def command(self):
        return self.clock.prefix() + super().command()


class ClockTest(harness.EddyTest):
    def setUp(self):
        if not LIBRARIES:
            self.skipTest("libfaketime is not installed: apt-get install libfaketime")
        if harness.sanitized():
            self.skipTest("a sanitizer has the clock's functions itself")
        self.clock = Clock(self.folder())
        self.set_by = 0

    def daemon(self, **options):
        daemon = ClockedDaemon(self.clock, backend=self.backend, **options)
        self.addCleanup(daemon.__exit__)
        return daemon.start()

    def cache(self, *flags):
        daemon, port = self.daemon(), free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "--mode", "admin", *flags, "-s")
        return daemon, self.client(port)

    def client(self, port):
        return client_of(self, port)

    def jump(self, client, seconds):
        """Sets the clock to so much before or behind the real one, and sees that the server has it."""
        self.clock.set(seconds)
        self.set_by = seconds
        eventually(lambda: abs(int(client("TIME")[0]) - self.now()) < SLACK, "the clock to be set")

    def now(self):
        return time.time() + self.set_by

    def assert_about(self, seconds, expected):
        self.assertLess(abs(int(seconds) - expected), SLACK)


@harness.on_each_backend
class Keys(ClockTest):
    """They end as in Redis, which cannot be run so: its jemalloc and libfaketime wait for each other."""

    def server(self):
        return self.cache()[1]

    def test_forwards_those_whose_time_has_come_are_gone(self):
        client = self.server()
        client("SET", "hour", "1", "EX", 3600)
        client("SET", "unread", "1", "EX", 3600)
        client("SET", "days", "1", "EX", 2 * DAY)
        client("SET", "always", "1")
        at = client("PEXPIRETIME", "days")
        self.jump(client, DAY)
        self.assertEqual(client("GET", "hour"), None)
        self.assertEqual(client("EXISTS", "hour"), 0)
        self.assertEqual(client("PTTL", "hour"), -2)
        self.assertEqual(client("GET", "days"), b"1")
        self.assert_about(client("PTTL", "days") // 1000, DAY)
        self.assertEqual(client("PEXPIRETIME", "days"), at)
        self.assertEqual(client("PTTL", "always"), -1)
        # No client reads the key.
        eventually(lambda: client("DBSIZE") == 2, "upkeep")
        client("SET", "new", "1", "EX", 100)
        self.assert_about(client("TTL", "new"), 100)

    def test_backwards_they_stay_until_their_time_comes(self):
        client = self.server()
        client("SET", "minute", "1", "EX", 60 + SLACK)
        at = client("PEXPIRETIME", "minute")
        self.jump(client, -DAY)
        self.assertEqual(client("GET", "minute"), b"1")
        self.assertEqual(client("PEXPIRETIME", "minute"), at)
        self.assert_about(client("PTTL", "minute") // 1000, DAY + 60 + SLACK)
        # Upkeep does not wait for a day.
        for i in range(100):
            client("SET", f"soon {i}", "1", "PX", 50)
        eventually(lambda: client("DBSIZE") == 1, "upkeep")
        self.jump(client, 60 + 3 * SLACK)
        self.assertEqual(client("GET", "minute"), None)
        eventually(lambda: client("DBSIZE") == 0, "upkeep")

    def test_stream_ids_do_not_go_back(self):
        client = self.server()
        last = (0, 0)
        for seconds in (0, -DAY, DAY, 0, -DAY):
            self.jump(client, seconds)
            for _ in range(3):
                added = tuple(int(part) for part in client("XADD", "stream", "*", "a", "b").split(b"-"))
                self.assertGreater(added, last)
                last = added
            # A new one begins at the time that it is now.
            first = client("XADD", f"from {seconds}", "*", "a", "b")
            if client("XLEN", f"from {seconds}") == 1:
                self.assert_about(int(first.split(b"-")[0]) // 1000, self.now())

    def test_nothing_has_been_idle_for_less_than_no_time(self):
        client = self.server()
        client("XADD", "stream", "1-1", "a", "b")
        client("XGROUP", "CREATE", "stream", "group", "0")
        client("XREADGROUP", "GROUP", "group", "me", "STREAMS", "stream", ">")
        self.jump(client, -DAY)
        self.assertEqual(client("XPENDING", "stream", "group", "-", "+", 1)[0][2], 0)
        consumer = client("XINFO", "CONSUMERS", "stream", "group")[0]
        told = dict(zip(consumer[::2], consumer[1::2]))
        self.assertEqual(told[b"idle"], 0)
        self.assertEqual(client("XCLAIM", "stream", "group", "you", 1, "1-1"), [])
        self.jump(client, DAY)
        self.assert_about(client("XPENDING", "stream", "group", "-", "+", 1)[0][2] // 1000, DAY)
        self.assertEqual(len(client("XCLAIM", "stream", "group", "you", DAY // 2 * 1000, "1-1")), 1)


    def test_fields_of_hashes_end_as_keys_do(self):
        client = self.server()
        client("HSET", "hash", "hour", "1", "days", "1")
        self.assertEqual(client("HEXPIRE", "hash", 3600, "FIELDS", 1, "hour"), [1])
        self.assertEqual(client("HEXPIRE", "hash", 2 * DAY, "FIELDS", 1, "days"), [1])
        self.jump(client, -DAY)
        self.assert_about(client("HTTL", "hash", "FIELDS", 1, "hour")[0], DAY + 3600)
        self.jump(client, DAY)
        self.assertEqual(client("HMGET", "hash", "hour", "days"), [None, b"1"])
        self.assert_about(client("HTTL", "hash", "FIELDS", 1, "days")[0], DAY)
        self.jump(client, 3 * DAY)
        eventually(lambda: client("DBSIZE") == 0, "upkeep")


@harness.on_each_backend
class Running(ClockTest):
    def test_waits_end_when_their_time_has_passed(self):
        for threads in ("1", "2"):
            for jump in (DAY, -DAY):
                self.clock.set(0)
                daemon, client = self.cache("--threads", threads)
                waits = [(("BLPOP", "list", 2), None), (("XREAD", "BLOCK", 2000, "STREAMS", "stream", "$"), None),
                         (("WAIT", 1, 2000), 0), (("BZPOPMIN", "sorted", 2), None)]
                clients = [self.client(client.port) for _ in waits]
                endless = self.client(client.port)
                endless.send("BLPOP", "endless", 0)
                began = time.monotonic()
                for each, (words, _) in zip(clients, waits):
                    each.send(*words)
                eventually(lambda: client.info("clients")["blocked_clients"] == "5", "all to wait")
                self.jump(client, jump)
                for each, (words, reply) in zip(clients, waits):
                    self.assertEqual(each.reply(), reply, words)
                    self.assertGreaterEqual(time.monotonic() - began, 2, words)
                self.assertEqual(client.info("clients")["blocked_clients"], "1")
                self.assertEqual(client("RPUSH", "endless", "x"), 1)
                self.assertEqual(endless.reply(), [b"endless", b"x"])
                daemon.must("stop", "db")

    def test_a_pause_ends_when_its_time_has_passed(self):
        for jump in (DAY, -DAY):
            self.clock.set(0)
            daemon, client = self.cache()
            writer = self.client(client.port)
            began = time.monotonic()
            self.assertEqual(client("CLIENT", "PAUSE", 2000, "WRITE"), "+OK")
            writer.send("SET", "key", "value")
            self.jump(client, jump)
            self.assertEqual(writer.reply(), "+OK")
            self.assertGreaterEqual(time.monotonic() - began, 2)
            daemon.must("stop", "db")

    def test_what_is_told_of_times_goes_by_the_new_one(self):
        _, client = self.cache("--dir", self.folder(), "--save", "3600 1000000")
        client("CONFIG", "SET", "latency-monitor-threshold", 1, "slowlog-log-slower-than", 1000)
        for jump in (DAY, -DAY, 0):
            self.jump(client, jump)
            self.assertEqual(client("DEBUG", "SLEEP", "0.01"), "+OK")
            _, at_s, took_us = client("SLOWLOG", "GET", 1)[0][:3]
            self.assert_about(at_s, self.now())
            self.assertGreaterEqual(took_us, 10_000)
            self.assertLess(took_us, SLACK * 1_000_000)
            _, at_s, latest_ms = client("LATENCY", "LATEST")[0][:3]
            self.assert_about(at_s, self.now())
            self.assertLess(latest_ms, SLACK * 1000)
            client("SET", "key", jump)
            self.assertEqual(client("SAVE"), "+OK")
            self.assert_about(client("LASTSAVE"), self.now())
            told = client.info("everything")
            self.assert_about(told["rdb_last_save_time"], self.now())
            self.assert_about(int(told["server_time_usec"]) // 1_000_000, self.now())
            self.assertGreaterEqual(int(told["uptime_in_seconds"]), 0)
            self.assertLess(int(told["rdb_last_bgsave_time_sec"]), SLACK)
            self.assertIn(b" age=", client("CLIENT", "LIST"))

    def test_save_points_and_the_disk_go_on(self):
        _, client = self.cache("--dir", self.folder(), "--save", "1 1", "--appendonly", "yes")
        for jump in (DAY, -DAY, 0):
            self.jump(client, jump)
            saves = int(client.info("persistence")["rdb_saves"])
            client("SET", "key", jump)
            # With everysec: a second or two later.
            self.assertEqual(client("WAITAOF", 1, 0, 0), [1, 0])
            eventually(lambda: int(client.info("persistence")["rdb_saves"]) > saves, "a save by its point")

    def test_it_does_nothing_while_nobody_asks(self):
        daemon, client = self.cache()
        client("SET", "key", "value", "EX", 3 * DAY)
        for jump in (DAY, -DAY):
            self.jump(client, jump)

            # More than once: on a busy machine a tick that was another's can be counted as ours.
            def is_idle():
                ticks, began = daemon.cpu_ticks(), time.monotonic()
                eventually(lambda: time.monotonic() - began > 2, "two seconds")
                return daemon.cpu_ticks() - ticks <= 2
            eventually(is_idle, "at most two ticks of 10 ms in two seconds")

    def test_the_daemon_goes_on(self):
        daemon, client = self.cache()
        for jump in (DAY, -DAY, 0):
            self.jump(client, jump)
            self.assertEqual(daemon.list()["db"]["status"], "running")
            daemon.must("reload", "db")
            client = self.client(client.port)
            self.assertEqual(client("SET", "key", "value"), "+OK")
            self.assertEqual(daemon.must("db", "db", "GET", "key"), "value\n")


@harness.on_each_backend
class Files(ClockTest):
    """Keys have the time at which they end, whenever they are loaded."""

    def fill(self, client):
        client("SET", "hour", "1", "EX", 3600)
        client("SET", "days", "1", "PX", 2 * DAY * 1000)
        client("HSET", "hash", "a", "1", "b", "1")
        client("EXPIRE", "hash", 2 * DAY)
        client("HEXPIRE", "hash", 3600, "FIELDS", 1, "a")
        return client("PEXPIRETIME", "days")

    def check(self, client, at):
        self.assertEqual(client("EXISTS", "hour"), 0)
        self.assertEqual(client("PEXPIRETIME", "days"), at)
        self.assert_about(client("TTL", "days"), DAY)
        self.assert_about(client("TTL", "hash"), DAY)
        self.assertEqual(client("HMGET", "hash", "a", "b"), [None, b"1"])

    def test_a_dump_file_that_is_loaded_a_day_later(self):
        daemon, client = self.cache("--dir", self.folder(), "--save", "3600 1")
        at = self.fill(client)
        daemon.must("stop", "db")
        self.clock.set(DAY)
        daemon.must("start", "db")
        client = self.client(client.port)
        self.jump(client, DAY)
        self.check(client, at)
        self.assertEqual(client.info("persistence")["rdb_last_load_keys_expired"], "1")
        # Keys written now are loaded a day earlier.
        client("SET", "later", "1", "EX", 3600)
        daemon.must("stop", "db")
        self.clock.set(0)
        daemon.must("start", "db")
        client = self.client(client.port)
        self.jump(client, 0)
        self.assert_about(client("TTL", "later"), DAY + 3600)
        self.assertEqual(client("PEXPIRETIME", "days"), at)
        self.assertEqual(client("EXISTS", "hour"), 0)

    def test_an_append_only_file_that_is_loaded_a_day_later(self):
        folder = self.folder()
        daemon = self.daemon(folder=folder)
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "--dir", self.folder(), "--save", "off", "--appendonly",
                    "yes", "--appendfsync", "always", "-s")
        at = self.fill(self.client(port))
        daemon.kill()
        self.clock.set(DAY)
        daemon = self.daemon(folder=folder)
        client = self.client(port)
        self.jump(client, DAY)
        self.check(client, at)
        client("SET", "later", "1", "EX", 3600)
        daemon.kill()
        self.clock.set(-DAY)
        daemon = self.daemon(folder=folder)
        client = self.client(port)
        self.jump(client, -DAY)
        self.assert_about(client("TTL", "later"), 2 * DAY + 3600)
        self.assertEqual(client("PEXPIRETIME", "days"), at)
        # The key had expired and was removed.
        self.assertEqual(client("EXISTS", "hour"), 0)
        self.assertEqual(client("HMGET", "hash", "a", "b"), [None, b"1"])


@harness.on_each_backend
class Links(ClockTest):
    """With a Redis whose clock is not set."""

    QUICK = ("repl-ping-replica-period", "1", "repl-timeout", "5")

    def links(self, master):
        """The numbers of its replicas' connections."""
        listed = master("CLIENT", "LIST", "TYPE", "replica").decode()
        return [line.split(" ")[0] for line in listed.splitlines() if line]

    @staticmethod
    def lag(master):
        return int(master.info("replication")["slave0"].rpartition("lag=")[2])

    def stays(self, master, replica, jumping):
        eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link")
        links = eventually(lambda: self.links(master), "a replica")
        for seconds in (DAY, -DAY, 0):
            self.jump(jumping, seconds)
            master("SET", "key", seconds)
            eventually(lambda: replica("GET", "key") == str(seconds).encode(), "the write to come")
            # The checks of timeouts have run meanwhile.
            offset = int(master.info("replication")["master_repl_offset"])
            ping = len(Client.encoded(("PING",)))
            eventually(lambda: int(master.info("replication")["master_repl_offset"]) >= offset + 2 * ping, "PINGs")
            self.assertEqual(replica.info("replication")["master_link_status"], "up")
            self.assertEqual(master("WAIT", 1, 0), 1)
        self.assertEqual(self.links(master), links)
        self.assertEqual(master.info("stats")["sync_full"], "1")
        if jumping is master:
            self.assertIn(self.lag(master), range(5))
        else:
            # Redis may reply -1.
            eventually(lambda: self.lag(master) in range(5), "a short lag")

    def test_a_cache_that_follows(self):
        redis = Redis(self, *[("--" if i % 2 == 0 else "") + word for i, word in enumerate(self.QUICK)])
        master = self.client(redis.port)
        _, replica = self.cache()
        replica("CONFIG", "SET", *self.QUICK)
        master("SET", "hour", "1", "EX", 3600)
        replica("REPLICAOF", "127.0.0.1", redis.port)
        eventually(lambda: replica("DBSIZE") == 1, "the copy")
        # Its own clock decides what it shows, its master's what there is.
        self.jump(replica, DAY)
        self.assertEqual(replica("GET", "hour"), None)
        self.assertEqual(replica("DBSIZE"), 1)
        self.jump(replica, 0)
        self.assertEqual(replica("GET", "hour"), b"1")
        self.stays(master, replica, replica)

    def test_a_cache_that_leads(self):
        _, master = self.cache()
        master("CONFIG", "SET", *self.QUICK)
        master("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        redis = Redis(self, *[("--" if i % 2 == 0 else "") + word for i, word in enumerate(self.QUICK)])
        replica = self.client(redis.port)
        replica("REPLICAOF", "127.0.0.1", master.port)
        self.stays(master, replica, master)
        # Keys that expire by the master's clock are removed here, too.
        master("SET", "hour", "1", "EX", 3600)
        eventually(lambda: replica("GET", "hour") == b"1", "the write to come")
        self.jump(master, DAY)
        eventually(lambda: replica("EXISTS", "hour") == 0 and replica("DBSIZE") == 1, "its end to come")


if __name__ == "__main__":
    harness.main()
