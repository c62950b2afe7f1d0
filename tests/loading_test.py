#!/usr/bin/env python3
"""Replies of a cache that reads its files, or its master's data: its progress, and the commands that run meanwhile;
beside a Redis that loads."""

import os
import socket
import threading

import harness
from cache_client import USED_MEMORY, Client, Redis, dump
from harness import DEADLINE_S, eventually, free_port

LOADING = "-LOADING Redis is loading the dataset in memory"
FIELDS = ["loading_start_time", "loading_total_bytes", "loading_rdb_used_mem", "loading_loaded_bytes",
          "loading_loaded_perc", "loading_eta_seconds"]
# The server whose replies are compared: 7.2 where there is one.
REDIS = os.environ.get("EDDY_REDIS_7_2") or "redis-server"


def sections(client, *names):
    """The names of the fields, in their order."""
    return [line.split(":")[0] for line in client("INFO", *names).decode().split("\r\n") if ":" in line]


class SlowMaster:
    """Sends a part of its data, and the rest when it is let."""

    def __init__(self, test, data, part, tells_size=True):
        self.data, self.part, self.tells_size = data, part, tells_size
        self.may_go_on = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(DEADLINE_S)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        test.addCleanup(self.close)

    def close(self):
        self.may_go_on.set()
        self.listener.close()
        self.thread.join()

    def serve(self):
        try:
            peer, _ = self.listener.accept()
        except OSError:
            return
        peer.settimeout(DEADLINE_S)
        with peer, peer.makefile("rb") as lines:
            try:
                self.lead(peer, lines)
            except OSError:
                pass  # it has left

    def lead(self, peer, lines):
        while True:
            line = lines.readline()
            if not line:
                return
            words = []
            for _ in range(int(line[1:])):
                words.append(lines.read(int(lines.readline()[1:]) + 2)[:-2].upper())
            if words[0] == b"PSYNC":
                break
            peer.sendall(b"+PONG\r\n" if words[0] == b"PING" else b"+OK\r\n")
        mark = b"m" * 40
        size = b"%d" % len(self.data) if self.tells_size else b"EOF:" + mark
        peer.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 100\r\n$" + size + b"\r\n" + self.data[:self.part])
        self.may_go_on.wait(DEADLINE_S)
        peer.sendall(self.data[self.part:] + (b"" if self.tells_size else mark))
        while lines.read(1):
            pass


class LoadingTest(harness.EddyTest):
    def client(self, port):
        made = eventually(lambda: self.try_to_connect(port), f"somebody on port {port}")
        self.addCleanup(made.close)
        return made

    @staticmethod
    def try_to_connect(port):
        try:
            return Client(port)
        except OSError:
            return None

    def check(self, fields, total):
        """Checks their consistency. Returns the number of bytes loaded."""
        loaded = int(fields["loading_loaded_bytes"])
        self.assertEqual(fields["loading"], "1")
        self.assertEqual(fields["async_loading"], "0")
        self.assertEqual(int(fields["loading_total_bytes"]), total)
        self.assertLessEqual(loaded, total)
        self.assertEqual(fields["loading_loaded_perc"], f"{100 * loaded / total:.2f}")
        self.assertGreaterEqual(int(fields["loading_eta_seconds"]), 0)
        return loaded


@harness.on_each_backend
class Follower(LoadingTest):
    """The data of a master, which stops in the middle of it."""

    def replica(self, master, *more):
        daemon, port = self.daemon(), free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "--mode", "admin", "-s", *more)
        client = self.client(port)
        client("SET", "old", "1")
        client("REPLICAOF", "127.0.0.1", master.port)
        return daemon, client

    def test_it_tells_how_much_it_has_of_its_masters_data(self):
        data = dump(100, 1000)
        half = len(data) // 2
        master = SlowMaster(self, data, half)
        daemon, client = self.replica(master)
        fields = eventually(lambda: self.fields_from(client, half - 2000), "half of the data")
        self.assertLessEqual(self.check(fields, len(data)), half)
        self.assertEqual(int(fields["loading_rdb_used_mem"]), USED_MEMORY)
        now = int(client("TIME")[0])
        self.assertLess(now - int(fields["loading_start_time"]), 2 * DEADLINE_S)
        self.assertLessEqual(int(fields["loading_start_time"]), now)
        self.assertEqual(client("GET", "key:1"), LOADING)
        # It stands still, so the end is further away each second.
        eventually(lambda: int(client.info("persistence")["loading_eta_seconds"]) > 1, "time to pass")
        master.may_go_on.set()
        eventually(lambda: client.info("persistence")["loading"] == "0", "the end")
        self.assertEqual(client("DBSIZE"), 100)
        self.assertEqual([name for name in sections(client, "persistence") if name in FIELDS], [])
        daemon.must("stop", "db")

    def test_without_a_size_the_masters_memory_stands_for_it(self):
        data = dump(100, 1000)
        half = len(data) // 2
        daemon, client = self.replica(SlowMaster(self, data, half, tells_size=False))
        fields = eventually(lambda: self.fields_from(client, half - 2000), "half of the data")
        self.assertEqual(fields["loading_total_bytes"], "0")
        self.assertEqual(fields["loading_loaded_perc"],
                         f"{100 * int(fields['loading_loaded_bytes']) / USED_MEMORY:.2f}")
        daemon.must("stop", "db")

    def test_more_than_the_masters_memory_is_not_more_than_all(self):
        data = dump(100, 1000, memory=1000)
        half = len(data) // 2
        daemon, client = self.replica(SlowMaster(self, data, half, tells_size=False))
        fields = eventually(lambda: self.fields_from(client, half - 2000), "half of the data")
        self.assertEqual(fields["loading_loaded_perc"], "99.99")
        daemon.must("stop", "db")

    def test_it_can_be_shut_down_and_its_old_file_stays(self):
        data, folder = dump(100, 1000), self.folder()
        daemon, client = self.replica(SlowMaster(self, data, len(data) // 2), "--dir", folder, "--save", "3600 1")
        # The copy may have begun before it was written.
        before = os.path.join(folder, "dump.rdb")
        eventually(lambda: client.info("persistence")["loading"] == "1", "the copy to begin")
        written = open(before, "rb").read() if os.path.exists(before) else None
        client.send("SHUTDOWN")
        self.assertTrue(client.ended())
        eventually(lambda: daemon.list()["db"]["status"] == "stopped", "the end")
        self.assertEqual(open(before, "rb").read() if os.path.exists(before) else None, written)

    def fields_from(self, client, least):
        fields = client.info("persistence")
        return fields if int(fields.get("loading_loaded_bytes", 0)) >= least else None


@harness.on_each_backend
class Start(LoadingTest):
    """Files that take a while to read: more and more keys, until a client has seen it."""

    def while_it_starts(self, daemon, port, begin, look):
        """Starts the cache, and calls look(client) with clients that connect meanwhile until it returns true."""
        result = []
        starting = threading.Thread(target=lambda: result.append(begin()))
        starting.start()
        client, seen = None, None
        while starting.is_alive() and not seen:
            client = client or self.try_to_connect(port)
            seen = client and look(client)
        starting.join()
        if client is not None:
            self.addCleanup(client.close)
        return client, seen, result[0]

    def growing(self, attempt):
        keys = 500_000
        while not attempt(keys):
            keys *= 2
            self.assertLess(keys, 20_000_000, "nobody was quick enough")

    def seen_loading(self, seen, client):
        """Collects what INFO says until there are some."""
        fields = client.info("persistence")
        if fields["loading"] == "1" and int(fields["loading_loaded_bytes"]) > 0:
            seen.append(fields)
        return len(seen) >= 5

    def test_it_tells_how_much_it_has_of_its_dump_file(self):
        def attempt(keys):
            daemon, port, folder, seen = self.daemon(), free_port(), self.folder(), []
            with open(os.path.join(folder, "dump.rdb"), "wb") as file:
                size = file.write(dump(keys, 4))
            begin = lambda: daemon.must("create", "cache", "db", "-p", str(port), "--dir", folder, "-s")
            client, enough, _ = self.while_it_starts(daemon, port, begin, lambda c: self.seen_loading(seen, c))
            loaded = [self.check(fields, size) for fields in seen]
            self.assertEqual(loaded, sorted(loaded))
            self.assertEqual({fields["loading_rdb_used_mem"] for fields in seen} - {str(USED_MEMORY)}, set())
            client = client or self.client(port)
            self.assertEqual(client("DBSIZE"), keys)
            self.assertEqual(client.info("persistence")["loading"], "0")
            daemon.must("remove", "db")
            return enough
        self.growing(attempt)

    def test_it_tells_how_much_it_has_of_its_append_only_file(self):
        def attempt(keys):
            daemon, port, folder, seen = self.daemon(), free_port(), self.folder(), []
            with open(os.path.join(folder, "dump.rdb"), "wb") as file:
                file.write(dump(keys // 2, 4))
            daemon.must("create", "cache", "db", "-p", str(port), "--dir", folder, "--appendonly", "yes", "-s")
            client = self.client(port)
            for begin in range(0, keys // 2, 10_000):
                client.all([("SET", f"more:{i}", i) for i in range(begin, begin + 10_000)])
            client.close()
            daemon.must("stop", "db")
            parts = os.path.join(folder, "appendonlydir")
            sizes = [os.path.getsize(os.path.join(parts, name)) for name in os.listdir(parts) if "manifest" not in name]
            self.assertEqual(len(sizes), 2)
            begin = lambda: daemon.must("start", "db")
            client, enough, _ = self.while_it_starts(daemon, port, begin, lambda c: self.seen_loading(seen, c))
            loaded = [self.check(fields, sum(sizes)) for fields in seen]
            self.assertEqual(loaded, sorted(loaded))
            client = client or self.client(port)
            self.assertEqual(client("DBSIZE"), keys)
            daemon.must("remove", "db")
            return enough
        self.growing(attempt)

    def test_it_can_be_shut_down(self):
        for more in ((), ("--appendonly", "yes")):
            def attempt(keys):
                daemon, port, folder, asked = self.daemon(), free_port(), self.folder(), []
                path, data = os.path.join(folder, "dump.rdb"), dump(keys, 4)
                with open(path, "wb") as file:
                    file.write(data)
                begin = lambda: daemon.run("create", "cache", "db", "-p", str(port), "--dir", folder, "--mode", "admin",
                                           "--save", "3600 1", *more, "-s")

                def look(client):
                    if not asked and client.info("persistence")["loading"] == "1":
                        client.send("SHUTDOWN", "SAVE")
                        asked.append(client.ended())
                    return asked
                _, seen, result = self.while_it_starts(daemon, port, begin, look)
                if seen:
                    self.assertNotEqual(result.status, 0)
                    self.assertIn("it was stopped before it had read its files", result.err)
                    eventually(lambda: daemon.list()["db"]["status"] == "stopped", "the end")
                    # The file is unchanged, and the next start loads it.
                    with open(path, "rb") as file:
                        self.assertEqual(file.read(), data)
                    daemon.must("start", "db")
                    self.assertEqual(self.client(port)("DBSIZE"), keys)
                daemon.must("remove", "db")
                return seen
            self.growing(attempt)


@harness.on_each_backend
@harness.needs("scripts")
class EndlessScript(LoadingTest):
    def begin(self):
        """A start in the middle of a script that does not end."""
        daemon, port, folder = self.daemon(), free_port(), self.folder()
        os.mkdir(os.path.join(folder, "appendonlydir"))
        part = b"".join(Client.encoded(words) for words in
                        (("SELECT", "0"), ("SET", "a", "1"), ("EVAL", "while true do end", "0"), ("SET", "b", "1")))
        for name, content in (("appendonly.aof.1.incr.aof", part),
                              ("appendonly.aof.manifest", b"file appendonly.aof.1.incr.aof seq 1 type i\n")):
            with open(os.path.join(folder, "appendonlydir", name), "wb") as file:
                file.write(content)
        starting = threading.Thread(target=lambda: daemon.run(
            "create", "cache", "db", "-p", str(port), "--dir", folder, "--appendonly", "yes", "--mode", "admin",
            "--config", "busy-reply-threshold 1", "-s"))
        starting.start()
        self.addCleanup(starting.join)
        client = self.client(port)
        eventually(lambda: str(client("INFO")).startswith("-BUSY"), "the script to take long")

        def check():
            with open(os.path.join(folder, "appendonlydir", "appendonly.aof.1.incr.aof"), "rb") as file:
                self.assertEqual(file.read(), part)
        return daemon, client, check

    def test_it_can_be_shut_down(self):
        daemon, client, check = self.begin()
        self.assertEqual(client("GET", "a"), LOADING)
        self.assertEqual(client("SCRIPT", "KILL"), LOADING)
        client.send("SHUTDOWN", "NOSAVE")
        self.assertTrue(client.ended())
        eventually(lambda: daemon.list()["db"]["status"] == "stopped", "the end")
        check()

    def test_eddy_stops_and_removes_it(self):
        daemon, client, check = self.begin()
        daemon.must("stop", "db")
        self.assertTrue(client.ended())
        self.assertEqual(daemon.list()["db"]["status"], "stopped")
        check()
        daemon, client, check = self.begin()
        daemon.must("remove", "db")
        self.assertTrue(client.ended())
        check()

    def test_the_daemon_can_be_stopped(self):
        daemon, client, check = self.begin()
        self.assertEqual(daemon.stop(), 0)
        self.assertTrue(client.ended())
        check()


class BesideRedis(LoadingTest):
    # Commands that would end the other's load, its connection or the test; REPLICAOF may end a load here.
    EXCEPT = {"shutdown", "replicaof", "slaveof"}
    # These run since 7.2.
    NEWER = {"cluster|shards", "cluster|slots"}

    def both(self):
        """A cache and a Redis that load for as long as the test takes."""
        data = dump(2000, 1000)
        master = SlowMaster(self, data, len(data) // 2)
        daemon, port = self.daemon(), free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "--mode", "admin", "-s")
        cache = self.client(port)
        # To prevent READONLY errors, which come first.
        cache("CONFIG", "SET", "replica-read-only", "no")
        cache("REPLICAOF", "127.0.0.1", master.port)
        folder = self.folder()
        with open(os.path.join(folder, "dump.rdb"), "wb") as file:
            file.write(data)
        redis = Redis(self, "--key-load-delay", "100000", "--loading-process-events-interval-bytes", "1024",
                      "--enable-module-command", "yes", program=REDIS, folder=folder)
        other = self.client(redis.port)
        self.assertEqual(other.info("persistence")["loading"], "1")
        eventually(lambda: cache.info("persistence")["loading"] == "1", "the copy to begin")
        return cache, other

    def test_the_fields_are_those_of_redis(self):
        cache, other = self.both()
        self.assertEqual(sections(cache, "persistence")[-6:], FIELDS)
        self.assertEqual(sections(other, "persistence")[-6:], FIELDS)
        fields = other.info("persistence")
        for form in ("loading_loaded_perc", "loading_eta_seconds"):
            self.assertRegex(fields[form], r"^\d+(\.\d\d)?$")
            self.assertEqual("." in cache.info("persistence")[form], "." in fields[form])

    def test_the_same_commands_run(self):
        cache, other = self.both()
        left_out = self.EXCEPT | (self.NEWER if other.info("server")["redis_version"].startswith("7.0.") else set())
        calls = []
        for facts in cache("COMMAND"):
            for name, arity, *_ in [facts[:2], *[form[:2] for form in facts[9]]]:
                if name.decode() in left_out or name == facts[0] and facts[9] and abs(arity) > 1:
                    continue
                words = name.decode().split("|")
                calls.append(words + ["x"] * (abs(arity) - len(words)))
        self.assertGreater(len(calls), 300)
        told = []
        for server in (cache, other):
            clients = [self.client(server.port) for _ in calls]
            for client, words in zip(clients, calls):
                client.send(*words)
            told.append([self.first_line(client) for client in clients])
            self.assertEqual(server.info("persistence")["loading"], "1")
            for client in clients:
                client.close()
        ours, theirs = ([line == LOADING for line in each] for each in told)
        differ = [(words, mine, its) for words, mine, its, one, another in zip(calls, *told, ours, theirs)
                  if one != another and not its.startswith("-ERR unknown ")]
        self.assertEqual(differ, [])
        # The comparison is not empty: some run, and others do not.
        known = [its for its in told[1] if not its.startswith("-ERR unknown ")]
        self.assertGreater(known.count(LOADING), 150)
        self.assertGreater(len(known) - known.count(LOADING), 80)

    @staticmethod
    def first_line(client):
        return client.stream.readline().strip().decode()


if __name__ == "__main__":
    harness.main()
