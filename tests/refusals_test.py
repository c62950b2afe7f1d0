#!/usr/bin/env python3
"""States in which a server refuses commands: a cache and real Redis servers go through them, and say the same.

Where the versions of Redis differ, the cache answers as 7.2: that one is used, too, where EDDY_REDIS_7_2 names it.
"""

import os
import re
import shutil

import harness
from cache_client import Client, Redis, client_of
from harness import eventually, free_port

NUMBERS = re.compile(r"[0-9a-f]{40}")


class Side:
    """A server that is taken through a state: its clients, and their replies."""

    def __init__(self, test, port, folder):
        self.test, self.port, self.folder = test, port, folder
        self.client, self.told = client_of(test, port), []

    def another(self):
        made = Client(self.port)
        self.test.addCleanup(made.close)
        return made

    def ask(self, *words, by=None):
        self.hear(words, (by or self.client)(*words))

    def hear(self, words, reply):
        self.told.append((" ".join(map(str, words))[:120], reply))

    def set(self, name, value):
        self.test.assertEqual(self.client("CONFIG", "SET", name, value), "+OK")


WRITE = "return redis.call('SET', KEYS[1], 'v')"


def ask_for_writes(side):
    """All ways to write, and some to read."""
    side.ask("SET", "a", 1)
    side.ask("SET", "a")
    side.ask("APPEND", "a", 1)
    side.ask("GET", "a")
    side.ask("PING")
    side.ask("ECHO", "x")
    side.ask("EVAL", WRITE, 1, "a")
    side.ask("EVAL", "return redis.pcall('SET', KEYS[1], 'v')", 1, "a")
    side.ask("EVAL", "return redis.pcall('SET', KEYS[1], 'v').err", 1, "a")
    side.ask("EVAL", "return redis.call('GET', KEYS[1])", 1, "a")
    side.ask("EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])", 1, "a")
    side.ask("EVAL", "#!lua\n" + WRITE, 1, "a")
    side.ask("EVAL", "#!lua flags=allow-oom\n" + WRITE, 1, "a")
    side.ask("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "a")
    side.ask("MULTI")
    side.ask("SET", "a", 1)
    side.ask("GET", "a")
    side.ask("EXEC")
    side.ask("PUBLISH", "c", "m")
    side.ask("BLPOP", "none", 0.01)
    side.ask("PFCOUNT", "a")
    side.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "none", ">")
    side.ask("DEL", "none")
    side.ask("FLUSHALL")


def without_memory(side):
    side.ask("SET", "a", 0)
    side.set("maxmemory", 1)
    ask_for_writes(side)
    side.set("maxmemory", 0)


def without_disk(side):
    side.ask("SET", "a", 0)
    side.set("save", "3600 1")
    shutil.rmtree(side.folder)
    side.client("BGSAVE")
    eventually(lambda: side.client.info("persistence")["rdb_last_bgsave_status"] == "err", "a save that fails")
    ask_for_writes(side)
    side.set("stop-writes-on-bgsave-error", "no")
    side.ask("SET", "a", 1)
    side.set("save", "")


def without_replicas(side):
    side.ask("SET", "a", 0)
    side.set("min-replicas-to-write", 1)
    ask_for_writes(side)
    side.set("min-replicas-to-write", 0)
    side.ask("SET", "a", 1)


def as_a_replica(side):
    side.ask("SET", "a", 0)
    side.ask("REPLICAOF", "127.0.0.1", free_port())
    ask_for_writes(side)
    side.set("replica-serve-stale-data", "no")
    ask_for_writes(side)
    side.ask("SUBSCRIBE", "c", by=side.another())
    side.ask("WAIT", 0, 10)
    side.ask("REPLICAOF", "NO", "ONE")
    side.ask("SET", "a", 1)


def during_a_script(side):
    side.set("lua-time-limit", 50)
    side.ask("SCRIPT", "KILL")
    side.ask("FUNCTION", "KILL")
    runs = side.another()

    def run(*words):
        runs.send(*words)
        eventually(lambda: str(side.client("GET", "a")).startswith("-BUSY"), "a script that takes long")

    loop = "while true do end"
    run("EVAL", loop, 0)
    ask_for_writes(side)
    side.ask("SELECT", 1)
    side.ask("NOSUCH")
    side.ask("HELLO", 9)
    side.ask("CLIENT", "ID", "x")
    side.ask("CONFIG", "GET", "port")
    side.ask("SCRIPT", "EXISTS", "x")
    side.ask("SCRIPT", "FLUSH")
    side.ask("FUNCTION", "STATS", "x")
    side.ask("FUNCTION", "KILL")
    side.ask("MULTI")
    side.ask("DISCARD")
    side.ask("WATCH", "a")
    side.ask("UNWATCH")
    side.ask("RESET")
    side.ask("REPLCONF", "capa", "eof")
    side.ask("SCRIPT", "KILL")
    side.hear(["the script"], runs.reply())
    side.ask("SCRIPT", "KILL")

    side.ask("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() while true do end end)")
    run("FCALL", "f", 0)
    side.ask("SCRIPT", "KILL")
    side.ask("FUNCTION", "DELETE", "l")
    side.ask("FUNCTION", "KILL")
    side.hear(["the function"], runs.reply())

    run("EVAL", "redis.call('SET', KEYS[1], 'v') " + loop, 1, "a")
    side.ask("SCRIPT", "KILL")
    side.ask("FUNCTION", "KILL")
    # The only way out.
    side.client.send("SHUTDOWN", "NOSAVE")
    side.test.assertTrue(side.client.ended())


def waiting_for_the_disk(side, fsync):
    side.ask("WAITAOF", 0, 0, 0)
    side.ask("WAITAOF", 1, 0, 0)
    side.ask("WAITAOF", 2, 0, 0)
    side.ask("WAITAOF", -1, 0, 0)
    side.ask("WAITAOF", 0, -1, 0)
    side.ask("WAITAOF", 0, 0, -1)
    side.ask("WAITAOF", "x", 0, 0)
    side.ask("WAITAOF", 0, "x", 0)
    side.ask("WAITAOF", 0, 0, "x")
    side.ask("WAITAOF", 0, 1, 20)
    side.set("appendfsync", fsync)
    side.set("appendonly", "yes")
    eventually(lambda: side.client.info("persistence")["aof_rewrite_in_progress"] == "0", "the first file")
    side.ask("SET", "a", 1)
    side.ask("WAITAOF", 1, 0, 0)
    side.ask("WAITAOF", 0, 0, 0)
    side.ask("WAITAOF", 1, 1, 20)
    side.ask("MULTI")
    side.ask("SET", "b", 1)
    side.ask("WAITAOF", 0, 0, 0)
    side.ask("EXEC")
    side.ask("EVAL", "return redis.call('WAITAOF', 0, 0, 0)", 0)
    side.set("appendfsync", "no")
    side.ask("INCR", "n")
    waiting = side.another()
    waiting("INCR", "n")
    waiting.send("WAITAOF", 1, 0, 0)
    eventually(lambda: side.client.info("clients")["blocked_clients"] == "1", "a client that waits")
    side.set("appendonly", "no")
    side.hear(["waits while it is switched off"], waiting.reply())
    # Redis itself never answers WAITAOF 1 0 0 once the file was switched off and on.
    side.set("appendonly", "no")
    side.ask("REPLICAOF", "127.0.0.1", free_port())
    side.ask("WAITAOF", 0, 0, 0)
    side.ask("WAITAOF", 1, 0, 0)
    side.ask("REPLICAOF", "NO", "ONE")


class Refusals(harness.EddyTest):
    def servers(self):
        yield "redis-server"
        if "EDDY_REDIS_7_2" in os.environ:
            yield os.environ["EDDY_REDIS_7_2"]

    def through(self, state, only_7_2=False, but_for=()):
        """`but_for` are beginnings of what Redis 7.0 answers in other words."""
        met = 0
        for program in self.servers():
            with self.subTest(program=program):
                redis = Redis(self, program=program)
                theirs = Side(self, redis.port, redis.folder)
                is_7_0 = theirs.client.info("server")["redis_version"].startswith("7.0.")
                if is_7_0 and only_7_2:
                    continue
                met += 1
                daemon, port, folder = self.daemon(), free_port(), self.folder()
                daemon.must("create", "cache", "db", "-p", str(port), "--dir", folder, "--mode", "admin", "-s")
                ours = Side(self, port, folder)
                for side in (theirs, ours):
                    state(side)
                differ = [f"{words}:\n  Redis: {one}\n  Eddy:  {other}"
                          for (words, one), (_, other) in zip(theirs.told, ours.told)
                          if self.without_names(one) != self.without_names(other)
                          and not (is_7_0 and words.startswith(tuple(but_for)))]
                self.assertEqual(len(theirs.told), len(ours.told))
                self.assertEqual(differ, [], "\n".join(differ))
        if met == 0:
            self.skipTest("there is no Redis 7.2 here: EDDY_REDIS_7_2 names one")

    @staticmethod
    def without_names(reply):
        """Without the hashes of scripts."""
        return NUMBERS.sub("", reply) if isinstance(reply, str) else reply

    def test_without_memory(self):
        self.through(without_memory)

    def test_without_a_disk(self):
        self.through(without_disk)

    def test_without_replicas(self):
        self.through(without_replicas)

    def test_as_a_replica(self):
        self.through(as_a_replica)

    @harness.needs("scripts")
    def test_during_a_script(self):
        self.through(during_a_script, but_for=("the script", "the function"))

    def test_waiting_for_the_disk(self):
        for fsync in ("always", "everysec"):
            self.through(lambda side, fsync=fsync: waiting_for_the_disk(side, fsync), only_7_2=True)


if __name__ == "__main__":
    harness.main()
