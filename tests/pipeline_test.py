#!/usr/bin/env python3
"""Clients that write a whole pipeline before they read its first reply, as most libraries do."""

import contextlib
import os
import re
import socket
import subprocess
import threading

import harness
from cache_client import Client
from harness import free_port

VALUE = b"v" * 1000

# Debian's python3-redis is the system interpreter's; the tests may run on another one.
REDIS_PY = """
import sys, redis
client = redis.Redis(port=int(sys.argv[1]))
pipeline = client.pipeline(transaction=False)
for i in range(100_000):
    pipeline.set(f"py:{i}", f"{i}:" + "x" * 200)
    pipeline.get(f"py:{i}")
replies = pipeline.execute()
assert len(replies) == 200_000, len(replies)
for i in range(100_000):
    assert replies[2 * i] is True, replies[2 * i]
    assert replies[2 * i + 1].startswith(b"%d:" % i), replies[2 * i + 1]
"""


def read_replies(connection, expected):
    """As many bytes; whether they are these."""
    view = memoryview(expected)
    at = 0
    while at < len(expected):
        got = connection.recv(1 << 20)
        if not got:
            raise ConnectionError(f"the connection ended after {at} bytes of replies")
        if view[at:at + len(got)] != got:
            return False
        at += len(got)
    return True


class PipelineTest(harness.EddyTest):
    def cache(self, daemon, *flags):
        daemon.must("create", "cache", "db", *flags, "-s")

    def client(self, port):
        made = Client(port)
        self.addCleanup(made.close)
        return made

    def hold(self, connection, requests, replies):
        """Writes all by one call, and reads only then."""
        self.addCleanup(connection.close)
        connection.settimeout(harness.DEADLINE_S)
        connection.sendall(requests)
        self.assertTrue(read_replies(connection, replies), "other replies came")

    def hold_gets(self, connection, count):
        client = Client(0, over=connection)
        self.assertEqual(client("SET", "key", VALUE), "+OK")
        self.hold(connection, Client.encoded(("GET", "key")) * count, b"$1000\r\n%s\r\n" % VALUE * count)

    @staticmethod
    def unix(path):
        made = socket.socket(socket.AF_UNIX)
        made.connect(path)
        return made


@harness.on_each_backend
class Whole(PipelineTest):
    def test_over_tcp(self):
        for threads in ("1", "3"):
            daemon, port = self.daemon(), free_port()
            self.cache(daemon, "-p", str(port), "--threads", threads)
            self.hold_gets(socket.create_connection(("127.0.0.1", port)), 300_000)
            daemon.must("stop", "db")

    def test_over_a_unix_socket(self):
        daemon, path = self.daemon(), os.path.join(self.folder(), "s")
        self.cache(daemon, "--unix", path)
        self.hold_gets(self.unix(path), 300_000)
        self.hold_gets(self.unix(path), 6_000)
        self.hold(self.unix(path), Client.encoded(("SET", "k", "v")) * 39_000, b"+OK\r\n" * 39_000)
        daemon.must("stop", "db")

    @harness.needs("tls")
    def test_over_tls(self):
        made = harness.Certificates(self.folder())
        daemon, port = self.daemon(), free_port()
        self.cache(daemon, "--tls-port", str(port), "--tls-cert-file", made.cert, "--tls-key-file", made.key,
                   "--tls-auth-clients", "no")
        self.hold_gets(made.connect(port), 300_000)
        daemon.must("stop", "db")

    def test_more_commands_than_the_query_buffer_takes(self):
        # Their replies are small, so that none of the commands has to wait.
        daemon, port = self.daemon(), free_port()
        self.cache(daemon, "-p", str(port))
        count = 150_000
        self.hold(socket.create_connection(("127.0.0.1", port)), Client.encoded(("SET", "key", VALUE)) * count,
                  b"+OK\r\n" * count)
        daemon.must("stop", "db")

    def test_by_redis_py(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import redis"], capture_output=True).returncode != 0:
            self.skipTest("python3-redis is not installed")
        daemon, port = self.daemon(), free_port()
        self.cache(daemon, "-p", str(port))
        done = subprocess.run(["/usr/bin/python3", "-c", REDIS_PY, str(port)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        daemon.must("stop", "db")

    def test_behind_what_waits(self):
        """A command that waits, a pause and a transaction, with a long pipeline behind them."""
        daemon, port = self.daemon(), free_port()
        self.cache(daemon, "-p", str(port))
        other = self.client(port)
        gets = Client.encoded(("GET", "key")) * 20_000
        values = b"$1000\r\n%s\r\n" % VALUE * 20_000
        self.assertEqual(other("SET", "key", VALUE), "+OK")

        def hold(*heads, opened=lambda: None):
            connection = socket.create_connection(("127.0.0.1", port))
            self.addCleanup(connection.close)
            connection.settimeout(harness.DEADLINE_S)
            requests = b"".join(Client.encoded(words) for words, _ in heads)
            connection.sendall(requests + gets)
            opened()
            self.assertTrue(read_replies(connection, b"".join(reply for _, reply in heads) + values))

        hold((("BLPOP", "list", "0"), b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"),
             opened=lambda: self.assertEqual(other("RPUSH", "list", "x"), 1))
        hold((("CLIENT", "PAUSE", "300"), b"+OK\r\n"))
        hold((("MULTI",), b"+OK\r\n"), (("SET", "a", "1"), b"+QUEUED\r\n"), (("EXEC",), b"*1\r\n+OK\r\n"))
        hold((("SUBSCRIBE", "a"), b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
             (("UNSUBSCRIBE", "a"), b"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n"))
        daemon.must("stop", "db")


@harness.on_each_backend
class Slow(PipelineTest):
    """One that never reads is ended by a limit, and costs no more than the limits until then."""

    def never_reading(self, port, sent):
        """A connection, and the thread that writes to it without end; the thread ends when the connection does."""
        connection = socket.create_connection(("127.0.0.1", port))
        connection.settimeout(harness.DEADLINE_S)
        self.addCleanup(connection.close)
        requests = Client.encoded(("GET", "key")) * 10_000

        def write():
            try:
                while True:
                    sent.append(connection.send(requests))
            except OSError:
                pass
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        return connection, writer

    def test_at_the_limit_of_the_query_buffer(self):
        for threads in ("1", "3"):
            daemon, port = self.daemon(), free_port()
            self.cache(daemon, "-p", str(port), "--threads", threads)
            looker = self.client(port)
            self.assertEqual(looker("CONFIG", "GET", "client-query-buffer-limit"),
                             [b"client-query-buffer-limit", b"67108864"])
            self.assertEqual(looker("CONFIG", "SET", "client-query-buffer-limit", "16mb"), "+OK")
            self.assertEqual(looker("SET", "key", VALUE), "+OK")
            before = daemon.resident_kib()
            sent = []
            connection, writer = self.never_reading(port, sent)
            most = [0, 0]
            while writer.is_alive() and looker.info("stats")["client_query_buffer_limit_disconnections"] == "0":
                # Others are served meanwhile.
                self.assertEqual(looker("GET", "key"), VALUE)
                most[0] = max(most[0], daemon.resident_kib() - before)
                found = [int(n) for n in re.findall(r" tot-mem=(\d+)", looker("CLIENT", "LIST").decode())]
                most[1] = max(most[1], sum(found))
            self.assertGreater(sum(sent), 16 << 20)
            self.assertGreater(most[1], 16 << 20)
            self.assertLess(most[1], 26 << 20)
            if not harness.sanitized():
                self.assertLess(most[0], 48 << 10, "KiB")
            self.assertEqual(looker.info("stats")["client_query_buffer_limit_disconnections"], "1")
            # The cache ends its side at once, but lingers for up to 30 s while the client still writes.
            harness.all_of(connection)
            with contextlib.suppress(OSError):  # it was reset
                connection.shutdown(socket.SHUT_RDWR)
            writer.join()
            self.assertIn("over client-query-buffer-limit", daemon.must("logs", "db"))
            daemon.must("stop", "db")

    def test_at_the_limit_of_its_output(self):
        daemon, port = self.daemon(), free_port()
        self.cache(daemon, "-p", str(port))
        looker = self.client(port)
        self.assertEqual(looker("CONFIG", "SET", "client-output-buffer-limit", "normal 4mb 0 0"), "+OK")
        self.assertEqual(looker("SET", "key", VALUE), "+OK")
        self.never_reading(port, [])[1].join()
        self.assertEqual(looker.info("stats")["client_output_buffer_limit_disconnections"], "1")
        daemon.must("stop", "db")

    def test_at_the_limit_of_all_clients(self):
        daemon, port = self.daemon(), free_port()
        self.cache(daemon, "-p", str(port), "--maxmemory-clients", "12M")
        looker = self.client(port)
        self.assertEqual(looker("SET", "key", VALUE), "+OK")
        self.never_reading(port, [])[1].join()
        self.assertEqual(looker.info("stats")["evicted_clients"], "1")
        daemon.must("stop", "db")


if __name__ == "__main__":
    harness.main()
