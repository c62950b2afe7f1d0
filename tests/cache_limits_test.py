#!/usr/bin/env python3
"""Limits of a cache: memory under load, and for a large value; and TLS clients that are gone."""

import itertools
import random
import re
import shutil
import socket
import subprocess
import threading
import time

import harness
from cache_client import Client
from harness import eventually, free_port


class LimitsTest(harness.EddyTest):
    def client(self, port):
        made = Client(port)
        self.addCleanup(made.close)
        return made

    def cache(self, daemon, *flags):
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), *flags, "-s")
        return self.client(port)


@harness.on_each_backend
class CacheMemory(LimitsTest):
    def test_writers_at_maxmemory_are_refused_and_readers_are_not(self):
        clients, rounds, depth, limit = 6, 60, 200, 8 << 20
        for threads in ("1", "3"):
            daemon = self.daemon()
            looker = self.cache(daemon, "--maxmemory", str(limit), "--threads", threads)
            port = looker.port
            self.assertEqual(looker("SET", "kept", "value"), "+OK")
            wrong, refused = [], [0] * clients

            def write(number):
                mine = Client(port)
                try:
                    # One that was served before the others had begun writes until the memory is full.
                    turns = itertools.count()
                    while (turn := next(turns)) < rounds or (not refused[number] and turn < 10 * rounds):
                        commands = []
                        for i in range(depth):
                            name = f"{number}:{turn}:{i}"
                            commands.append(("SET", name, "x" * 200) if i % 3 else ("RPUSH", "l" + name, "x" * 200))
                        commands.append(("GET", "kept"))
                        replies = mine.all(commands)
                        for command, reply in zip(commands, replies):
                            if command[0] == "GET":
                                fine = reply == b"value"
                            elif isinstance(reply, str) and reply.startswith("-OOM command not allowed when used "
                                                                             "memory > 'maxmemory'"):
                                refused[number] += 1
                                fine = True
                            else:
                                fine = reply in ("+OK", 1)
                            if not fine:
                                wrong.append((command, reply))
                except OSError as error:
                    wrong.append(error)
                finally:
                    mine.close()

            writers = [threading.Thread(target=write, args=(number,)) for number in range(clients)]
            for each in writers:
                each.start()
            most = 0
            while any(each.is_alive() for each in writers):
                self.assertEqual(looker("GET", "kept"), b"value")
                most = max(most, int(looker.info("memory")["used_memory"]))
            for each in writers:
                each.join()
            self.assertEqual(wrong[:3], [])
            self.assertTrue(all(refused), refused)
            most = max(most, int(looker.info("memory")["used_memory"]))
            self.assertLess(most, limit + (1 << 20))
            # Room can be made, and is used again.
            self.assertEqual(looker("FLUSHALL"), "+OK")
            self.assertEqual(looker("SET", "kept", "value"), "+OK")
            daemon.must("stop", "db")

    def test_maxmemory_is_what_the_process_takes(self):
        if harness.sanitized():
            self.skipTest("a sanitizer's own memory is not the cache's")
        limit, largest = 64 << 20, 64 << 10
        # Beyond the counted bytes there are the allocator's free ones between blocks, and the connection's buffers: an
        # eighth to a sixth of the limit, however long this lasts.
        factor = 1.25
        daemon = self.daemon()
        client = self.cache(daemon, "--maxmemory", str(limit), "--eviction", "allkeys-lru")
        self.assertEqual(client("PING"), "+PONG")
        empty = daemon.resident_kib() * 1024
        numbers = random.Random(7)
        noise = numbers.randbytes(largest)
        sent, turn = 0, 0
        while sent < 10 * limit:
            commands = []
            for _ in range(50):
                turn += 1
                # As many small values as large ones; a key's new value often has another size.
                value = noise[:int(16 * (largest / 16) ** numbers.random())]
                key = numbers.randrange(60_000)
                kind = turn % 4
                if kind == 0:
                    commands.append(("HSET", f"h{key % 500}", f"f{key % 97}", value, "small", key))
                elif kind == 1:
                    commands.append(("RPUSH", f"l{key % 500}", value, value[:16], value[:100]))
                else:
                    commands.append(("SET", f"s{key}", value))
                sent += sum(len(word) for word in commands[-1] if isinstance(word, bytes))
            for command, reply in zip(commands, client.all(commands)):
                if not (reply == "+OK" or isinstance(reply, int)):
                    self.fail(f"{command[:2]}: {reply}")
        memory = client.info("memory")
        self.assertGreater(int(client.info("stats")["evicted_keys"]), 1000)
        self.assertLessEqual(int(memory["used_memory"]), limit)
        self.assertGreater(int(memory["used_memory"]), limit * 3 // 4, "more is evicted than has to be")
        self.assertLess((daemon.resident_kib() * 1024 - empty) / limit, factor, memory)
        daemon.must("stop", "db")

    def test_a_large_value_takes_twice_its_size_while_it_comes(self):
        if harness.sanitized():
            self.skipTest("a sanitizer keeps what is freed")
        size, piece = 256 << 20, b"x" * (1 << 20)
        daemon = self.daemon()
        client = self.cache(daemon)
        before = self.peak(daemon)
        client.socket.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n" % size)
        for _ in range(size // len(piece)):
            client.socket.sendall(piece)
        client.socket.sendall(b"\r\n")
        self.assertEqual(client.reply(), "+OK")
        self.assertLess(self.peak(daemon) - before, 2.1 * size)
        daemon.must("stop", "db")

    def test_a_size_that_is_only_claimed_takes_nothing(self):
        daemon = self.daemon()
        client = self.cache(daemon)
        before = self.peak(daemon)
        others = [self.client(client.port) for _ in range(20)]
        for each in others:
            each.socket.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\n" + b"x" * 100_000)
        for _ in range(20):
            self.assertEqual(client("PING"), "+PONG")
        self.assertLess(self.peak(daemon) - before, 32 << 20)
        daemon.must("stop", "db")

    @staticmethod
    def peak(daemon):
        """Bytes that the process has held at most."""
        with open(f"/proc/{daemon.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) * 1024


@harness.on_each_backend
class CacheSoftLimits(LimitsTest):
    """A client over the soft limit for a second is disconnected, though nothing more is sent."""

    LIMIT = "0 100kb 1"

    def slow(self, port):
        """A client that takes little."""
        stream = socket.socket()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.settimeout(harness.DEADLINE_S)
        stream.connect(("127.0.0.1", port))
        made = Client(port, over=stream)
        self.addCleanup(made.close)
        return made

    def output_of(self, looker, name):
        """Bytes that wait for the client of that name, or None when it is gone."""
        for line in looker("CLIENT", "LIST").decode().split("\n"):
            if f" name={name} " in line:
                return int(re.search(r" omem=(\d+)", line).group(1))
        return None

    def until_gone(self, looker, name):
        eventually(lambda: self.output_of(looker, name) is None, "the end of its connection")
        self.assertEqual(looker.info("stats")["client_output_buffer_limit_disconnections"], "1")

    def test_a_subscriber(self):
        for threads in ("1", "2"):
            daemon = self.daemon()
            looker = self.cache(daemon, "--threads", threads, "--config",
                                f"client-output-buffer-limit pubsub {self.LIMIT}")
            subscriber = self.slow(looker.port)
            subscriber("CLIENT", "SETNAME", "slow")
            subscriber("SUBSCRIBE", "news")
            # Far more than the kernel may take from it later.
            while (self.output_of(looker, "slow") or 0) < 2_000_000:
                self.assertEqual(looker("PUBLISH", "news", "x" * 50_000), 1)
            self.until_gone(looker, "slow")

            # No client exceeds the limit now, so there is no reason to wake up.
            def sleeps():
                before, began = daemon.wake_ups(), time.monotonic()
                eventually(lambda: time.monotonic() - began > 2, "two seconds")
                return daemon.wake_ups() == before
            eventually(sleeps, "two seconds without a wake-up")
            daemon.must("stop", "db")

    def test_one_who_does_not_take_a_reply(self):
        for threads in ("1", "2"):
            daemon = self.daemon()
            looker = self.cache(daemon, "--threads", threads, "--config",
                                f"client-output-buffer-limit normal {self.LIMIT}")
            self.assertEqual(looker("SETRANGE", "large", 32 << 20, "x"), (32 << 20) + 1)
            reader = self.slow(looker.port)
            reader("CLIENT", "SETNAME", "slow")
            reader.send("GET", "large")
            eventually(lambda: (self.output_of(looker, "slow") or 0) > 200_000, "the reply")
            self.until_gone(looker, "slow")
            daemon.must("stop", "db")

    def test_a_limit_that_is_set_while_a_reply_waits(self):
        daemon = self.daemon()
        looker = self.cache(daemon)
        looker("SETRANGE", "large", 32 << 20, "x")
        reader = self.slow(looker.port)
        reader("CLIENT", "SETNAME", "slow")
        reader.send("GET", "large")
        eventually(lambda: (self.output_of(looker, "slow") or 0) > 200_000, "the reply")
        self.assertEqual(looker("CONFIG", "SET", "client-output-buffer-limit", f"normal {self.LIMIT}"), "+OK")
        self.until_gone(looker, "slow")
        daemon.must("stop", "db")

    def test_a_replica(self):
        daemon = self.daemon()
        looker = self.cache(daemon, "--config", f"client-output-buffer-limit replica {self.LIMIT};"
                                                "repl-diskless-sync-delay 0")
        replica = self.slow(looker.port)
        self.assertEqual(replica("REPLCONF", "capa", "eof", "capa", "psync2"), "+OK")
        replica.send("PSYNC", "?", "-1")
        eventually(lambda: "state=online" in looker.info("replication").get("slave0", "") or
                   replica.send("REPLCONF", "ACK", "0"), "the copy to be sent")
        sent = 0
        while sent < 16 << 20:
            self.assertEqual(looker("SET", "key", "x" * 500_000), "+OK")
            sent += 500_000
        eventually(lambda: looker.info("replication")["connected_slaves"] == "0", "the end of its connection")
        self.assertEqual(looker.info("stats")["client_output_buffer_limit_disconnections"], "1")
        daemon.must("stop", "db")


@harness.on_each_backend
class CacheKeepalive(LimitsTest):
    def test_tls_clients_are_asked_by_the_kernel_too(self):
        if shutil.which("ss") is None:
            self.skipTest("ss is not installed")
        made = harness.Certificates(self.folder())
        for threads in ("1", "2"):
            daemon, port = self.daemon(), free_port()
            created = daemon.run("create", "cache", "db", "--tls-port", str(port), "--tls-cert-file", made.cert,
                                 "--tls-key-file", made.key, "--tls-auth-clients", "no", "--threads", threads, "-s")
            if "does not have" in created.err:
                self.skipTest("this build has no TLS")
            self.assertEqual(created.status, 0, created)
            client = Client(port, over=made.connect(port))
            self.addCleanup(client.close)
            self.assertEqual(client("CONFIG", "GET", "tcp-keepalive"), [b"tcp-keepalive", b"300"])

            # Once the last reply is acknowledged there is no other timer.
            def shown():
                return subprocess.run(["ss", "-Htno", "state", "established", "sport", "=", f":{port}"],
                                      capture_output=True, text=True, check=True).stdout
            eventually(lambda: re.search(r"timer:\(keepalive,(4min|5min)", shown()), "the timer")
            daemon.must("stop", "db")


if __name__ == "__main__":
    harness.main()
