#!/usr/bin/env python3
"""MIGRATE between caches and real Redis and Valkey servers: the replies are Redis's, values of all types arrive as
they were, and nothing that was acknowledged is lost, whichever side writes or dies meanwhile.
"""

import contextlib
import os
import socket
import threading
import unittest

import harness
from cache_client import Redis, Traffic, client_of
from harness import eventually, free_port

WAIT_MS = "30000"
# For a wait that is to end.
SHORT_MS = "200"


class Talker(threading.Thread):
    """Takes connections and answers each command with the next of the `replies`; silent, or gone, behind them."""

    def __init__(self, test, replies, closes=False):
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.replies, self.closes = replies, closes
        self.connections = []
        self.commands = 0
        test.addCleanup(self.end)
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.connections.append(connection)
            stream = connection.makefile("rb")
            for reply in self.replies:
                line = stream.readline()
                if not line:
                    break
                for _ in range(int(line[1:])):
                    stream.read(int(stream.readline()[1:]) + 2)
                self.commands += 1
                connection.sendall(reply)
            stream.close()
            if self.closes:
                connection.close()

    def end(self):
        self.listening.close()
        for each in self.connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Migration(harness.EddyTest):
    maxDiff = None

    def cache(self, daemon, name, *more):
        port = free_port()
        daemon.must("create", "cache", name, "-p", str(port), "--mode", "admin", "-s", *more)
        return client_of(self, port)

    def move(self, source, target, *keys, more=(), database=0):
        return source("MIGRATE", "127.0.0.1", target.port, "", database, WAIT_MS, *more, "KEYS", *keys)


class BesideServers:
    """Needs Migration and the name of a `program`."""

    def server(self, *arguments):
        return client_of(self, Redis(self, *arguments, program=self.program).port)

    def test_replies_are_those_of_redis(self):
        target = self.server("--requirepass", "secret")
        unused = free_port()
        silent = Talker(self, [])
        falls_silent = Talker(self, [b"+OK\r\n"])
        leaves = Talker(self, [b"+OK\r\n"], closes=True)
        babbles = Talker(self, [b"+OK\r\n", b"?" * 10_000])
        self.assertEqual(target("AUTH", "secret"), "+OK")
        self.assertEqual(target("ACL", "SETUSER", "mover", "on", ">open", "~*", "+@all"), "+OK")

        def said(source):
            target("FLUSHALL")
            replies = []
            for name in "abcdefgh":
                source("SET", name, name * 3)
            to = ("MIGRATE", "127.0.0.1", target.port)
            key = ("AUTH", "secret")
            replies.append(source(*to, "a", 0, 1000))
            replies.append(source(*to, "a", 0, 1000, "AUTH", "wrong"))
            replies.append(source(*to, "a", 0, 1000, "AUTH2", "mover", "wrong"))
            replies.append(source("MGET", *"abc"))
            replies.append(source(*to, "a", 0, 1000, *key))
            replies.append(source(*to, "a", 0, 1000, *key))
            replies.append(source(*to, "b", 0, 1000, "COPY", "AUTH2", "mover", "open"))
            replies.append(source(*to, "b", 0, 1000, *key))
            replies.append(source(*to, "b", 0, 1000, "REPLACE", *key))
            replies.append(source("MGET", *"abc"))
            replies.append(source(*to, "c", 99, 1000, *key))
            replies.append(source(*to, "c", 3, 1000, *key))
            # One of them is there: the others move.
            target("SET", "e", "theirs")
            replies.append(source(*to, "", 0, 1000, *key, "KEYS", *"defgx"))
            replies.append(source("MGET", *"defgh"))
            replies.append(target("MGET", *"abdefg"))
            # A port without a listener, and servers that do not answer.
            for port in (silent.port, falls_silent.port):
                replies.append(source("MIGRATE", "127.0.0.1", port, "h", 0, 150))
            # Redis notices the first when it writes; for the other it depends on the moment.
            for port in (unused, leaves.port, "port"):
                replies.append(source("MIGRATE", "127.0.0.1", port, "h", 0, 150).split()[0])
            replies.append(source("MIGRATE", "", target.port, "h", 0, 150))
            replies.append(source("GET", "h"))
            replies.append(source("DBSIZE"))
            return replies

        redis, cache = self.server(), self.cache(self.daemon(), "db")
        self.assertEqual(said(redis), said(cache))
        # Redis has sent it to another database, and keeps it.
        self.assertEqual(target("EXISTS", "c"), 0)
        self.assertRegex(cache("MIGRATE", "127.0.0.1", babbles.port, "h", 0, 1000), "^-IOERR")
        self.assertEqual(cache("GET", "h"), b"hhh")

    def test_all_that_there_is_comes_over_and_back(self):
        cache, server = self.cache(self.daemon(), "db"), self.server()
        traffic = Traffic(7)
        for _ in range(10):
            cache.all(traffic.batch(100))
        cache("SELECT", "0")
        keys = [key for key in cache("KEYS", "*") if cache("PERSIST", key) in (0, 1)]
        self.assertGreater(len(keys), 100)
        before = {key: cache("DEBUG", "DIGEST-VALUE", key)[0] for key in keys}
        for source, target in ((cache, server), (server, cache)):
            for begin in range(0, len(keys), 50):
                self.assertEqual(self.move(source, target, *keys[begin:begin + 50]), "+OK")
            self.assertEqual(source("EXISTS", *keys), 0)
            self.assertEqual({key: target("DEBUG", "DIGEST-VALUE", key)[0] for key in keys}, before)

    def test_times_come_along(self):
        cache, server = self.cache(self.daemon(), "db"), self.server()
        cache("SET", "a", "1", "PX", "1000000")
        cache("SET", "b", "1")
        self.assertEqual(self.move(cache, server, "a", "b", database=5), "+OK")
        server("SELECT", "5")
        self.assertTrue(900_000 < server("PTTL", "a") <= 1_000_000)
        self.assertEqual(server("PTTL", "b"), -1)

    def test_who_writes_meanwhile_loses_nothing(self):
        for threads in ("1", "2"):
            cache, server = self.cache(self.daemon(), "db", "--threads", threads), self.server()
            names = [f"list {i}" for i in range(40)]
            for name in names:
                cache("RPUSH", name, "first")
            acknowledged = dict.fromkeys(names, 1)
            lock = threading.Lock()

            def write(number):
                client = client_of(self, cache.port)
                alive = list(names)
                while alive:
                    for name in list(alive):
                        if client("RPUSHX", name, number) == 0:
                            alive.remove(name)
                        else:
                            with lock:
                                acknowledged[name] += 1

            writers = [threading.Thread(target=write, args=(i,)) for i in range(4)]
            for each in writers:
                each.start()
            for begin in range(0, len(names), 4):
                self.assertEqual(self.move(cache, server, *names[begin:begin + 4]), "+OK")
            for each in writers:
                each.join()
            self.assertEqual({name: server("LLEN", name) for name in names}, acknowledged)


class BesideRedis(BesideServers, Migration):
    program = "redis-server"


@unittest.skipUnless(os.environ.get("EDDY_REDIS_7_2"), "EDDY_REDIS_7_2 names no server; ./eddy-dev test fetches one")
class BesideRedis72(BesideServers, Migration):
    program = os.environ.get("EDDY_REDIS_7_2")


class BetweenCaches(Migration):
    def test_a_target_that_dies_leaves_each_key_somewhere(self):
        source_at, target_at = self.daemon(), self.daemon()
        source = self.cache(source_at, "db")
        target = self.cache(target_at, "db", "--dir", self.folder(), "--appendonly", "yes", "--appendfsync", "always")
        keys = [f"key {i}" for i in range(3000)]
        source.all([("SET", key, key * 300) for key in keys])
        answers = []
        moving = threading.Thread(target=lambda: answers.append(self.move(source, target, *keys)))
        watcher = client_of(self, target.port)
        moving.start()
        eventually(lambda: watcher("DBSIZE") > 200 or answers, "some keys to be there")
        target_at.kill()
        moving.join()
        target_at.start()
        target = client_of(self, target.port)
        self.assertTrue(answers[0] == "+OK" or answers[0].startswith("-IOERR"), answers)
        here = [bool(each) for each in source.all([("EXISTS", key) for key in keys])]
        there = [bool(each) for each in target.all([("EXISTS", key) for key in keys])]
        self.assertEqual([key for key, a, b in zip(keys, here, there) if not a and not b], [])
        # A second call moves the rest.
        self.assertEqual(self.move(source, target, *keys, more=("REPLACE",)), "+OK")
        self.assertEqual(source("DBSIZE"), 0)
        self.assertEqual(target("DBSIZE"), len(keys))
        self.assertEqual(target("GET", keys[-1]).decode(), keys[-1] * 300)

    def test_a_start_finds_what_was_moved_gone(self):
        source_at = self.daemon()
        source = self.cache(source_at, "db", "--dir", self.folder(), "--appendonly", "yes", "--appendfsync", "always")
        target = self.cache(self.daemon(), "db")
        for name in "abc":
            source("SET", name, 1)
        self.assertEqual(self.move(source, target, "a", "b"), "+OK")
        source_at.kill()
        source_at.start()
        self.assertEqual(client_of(self, source.port)("KEYS", "*"), [b"c"])

    def test_replicas_hear_of_it(self):
        daemon = self.daemon()
        source, target, replica = (self.cache(daemon, name) for name in ("source", "target", "replica"))
        for name in "abc":
            source("SET", name, 1)
        source("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        replica("REPLICAOF", "127.0.0.1", source.port)
        eventually(lambda: replica("DBSIZE") == 3, "the copy")
        self.assertEqual(self.move(source, target, "a", "b"), "+OK")
        eventually(lambda: replica("KEYS", "*") == [b"c"], "the replica to hear of it")
        # WAIT is about it, as about each change that the client has made.
        self.assertEqual(source("WAIT", 1, WAIT_MS), 1)
        self.assertEqual(replica("CLIENT", "PAUSE", WAIT_MS, "WRITE"), "+OK")
        self.assertEqual(self.move(source, target, "c"), "+OK")
        self.assertEqual(source("WAIT", 1, SHORT_MS), 0)
        self.assertEqual(replica("CLIENT", "UNPAUSE"), "+OK")
        self.assertEqual(source("WAIT", 1, WAIT_MS), 1)

    def test_a_silent_server_holds_up_those_alone_who_write_its_keys(self):
        source = self.cache(self.daemon(), "source")
        silent = Talker(self, [])
        source("MSET", "a", 1, "b", 1)
        mover, writer = client_of(self, source.port), client_of(self, source.port)
        number = writer("CLIENT", "ID")
        mover.send("MIGRATE", "127.0.0.1", silent.port, "a", 0, WAIT_MS)
        eventually(lambda: silent.connections, "the connection")
        writer.send("INCR", "a")
        eventually(lambda: " qbuf=0 " not in source("CLIENT", "LIST", "ID", number).decode(), "the writer to wait")
        self.assertEqual(source("GET", "a"), b"1")
        self.assertEqual(source("INCR", "b"), 2)
        silent.end()
        self.assertRegex(mover.reply(), "^-IOERR")
        self.assertEqual(writer.reply(), 2)

    def test_nothing_is_removed_during_a_pause(self):
        daemon = self.daemon()
        source, target = self.cache(daemon, "source"), self.cache(daemon, "target")
        source("SET", "a", 1)
        mover = client_of(self, source.port)
        self.assertEqual(target("CLIENT", "PAUSE", WAIT_MS, "WRITE"), "+OK")
        mover.send("MIGRATE", "127.0.0.1", target.port, "a", 0, WAIT_MS)
        eventually(lambda: "cmd=select" in target("CLIENT", "LIST").decode(), "the connection")
        self.assertEqual(source("CLIENT", "PAUSE", WAIT_MS, "WRITE"), "+OK")
        self.assertEqual(target("CLIENT", "UNPAUSE"), "+OK")
        eventually(lambda: target("EXISTS", "a") == 1, "the key to be there")
        self.assertEqual(source("GET", "a"), b"1")
        self.assertEqual(source("CLIENT", "UNPAUSE"), "+OK")
        self.assertEqual(mover.reply(), "+OK")
        self.assertEqual(source("EXISTS", "a"), 0)

    def test_by_tls(self):
        made = harness.Certificates(self.folder())
        cert, key = made.named("db.example")
        flags = ("--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", made.ca)
        daemon = self.daemon()
        port = free_port()
        if "does not have" in daemon.run("create", "cache", "other", "--tls-port", str(port), *flags).err:
            self.skipTest("this build has no TLS")
        target = self.cache(daemon, "target", "--tls-port", str(port), *flags)
        source = self.cache(daemon, "source", "--tls-replication", "yes", *flags)
        source("SET", "a", 1)
        self.assertRegex(source("MIGRATE", "127.0.0.1", target.port, "a", 0, SHORT_MS), "^-IOERR")
        self.assertEqual(source("MIGRATE", "127.0.0.1", port, "a", 0, WAIT_MS), "+OK")
        self.assertEqual(target("GET", "a"), b"1")

    def test_a_stop_does_not_wait_for_it(self):
        daemon = self.daemon()
        source = self.cache(daemon, "source")
        silent = Talker(self, [])
        source("SET", "a", 1)
        mover = client_of(self, source.port)
        mover.send("MIGRATE", "127.0.0.1", silent.port, "a", 0, WAIT_MS)
        eventually(lambda: silent.connections, "the connection")
        daemon.must("stop", "source")


if __name__ == "__main__":
    harness.main()
