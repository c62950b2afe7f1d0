#!/usr/bin/env python3
"""Proxies in front of real backends: a cache byte for byte, PostgreSQL, shared memory, and backends that die."""

import contextlib
import hashlib
import http.client
import os
import random
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import unittest

import harness
from cache_client import Client
from harness import DEADLINE_S, all_of, connect, eventually, free_port
from hooks_test import Postgres
from shm_client import ShmClient

# Sends without an end to each client, and prints its port.
ENDLESS = """
import socket, sys
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
peer = listening.accept()[0]
while True:
    peer.sendall(b"x" * 65536)
"""


class ProxyTest(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()

    def proxy(self, *backends, flags=(), name="gw"):
        port = free_port()
        self.running.must("create", "proxy", name, "-p", str(port), "--backend", ",".join(map(str, backends)), "-s",
                          *flags)
        return port

    def cache(self, *flags, name="db"):
        port = free_port()
        self.running.must("create", "cache", name, "-p", str(port), "-s", *flags)
        return port

    def gauge(self, name, backend):
        return self.running.metric(f"eddy_proxy_{name}", runtime="gw", type="proxy", backend=backend)


def pipeline(seed, count):
    """Random commands, the replies of which depend on nothing but the commands."""
    dice = random.Random(seed)
    made = bytearray()
    for _ in range(count):
        key = f"k{dice.randrange(50)}"
        words = dice.choice((("SET", key, bytes(dice.randbytes(dice.choice((3, 300, 30_000))))), ("GET", key),
                             ("APPEND", key, "more"), ("STRLEN", key), ("DEL", key), ("INCR", "n"), ("EXISTS", key)))
        made += Client.encoded(words)
    return bytes(made)


def talk(over, request):
    """Sends all of it and ends, while the replies are read: what comes until the end."""
    def send():
        over.sendall(request)
        over.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    got = all_of(over)
    sender.join(DEADLINE_S)
    return got


@harness.on_each_backend
class Caches(ProxyTest):
    def test_pipelines_have_the_same_replies(self):
        straight, behind = self.cache(), self.cache(name="other")
        port = self.proxy(f"127.0.0.1:{behind}")
        for seed in range(4):
            request = pipeline(seed, 3000)
            with connect(straight) as one, connect(port) as other:
                wanted, got = talk(one, request), talk(other, request)
            self.assertEqual(len(got), len(wanted))
            self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(wanted).digest())
        shown = self.running.json("stats", "gw")
        self.assertEqual(shown["errors"], 0)
        self.assertEqual(shown["bytes_in"], sum(len(pipeline(seed, 3000)) for seed in range(4)))

    def test_threads_and_many_clients(self):
        port = self.proxy(f"127.0.0.1:{self.cache()}", flags=("--threads", "2", "--strategy", "least-connections"))
        clients = [Client(port) for _ in range(100)]
        for i, client in enumerate(clients):
            self.assertEqual(client("SET", f"k{i}", "v" * i), "+OK")
        for i, client in enumerate(clients):
            self.assertEqual(client("GET", f"k{i}"), b"v" * i)
        self.assertEqual(self.running.list()["gw"]["connections"], 100)
        for client in clients:
            client.socket.close()
            client.stream.close()
        eventually(lambda: self.running.list()["gw"]["connections"] == 0, "they are gone")

    def test_shared_memory_on_both_sides(self):
        behind = self.cache("--shm")
        port = self.proxy(f"shm://:{behind}", flags=("--shm",))
        client = ShmClient(f":{port}")
        self.addCleanup(client.close)
        value = random.Random(7).randbytes(300_000)
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n")
        client.send(value + b"\r\n")
        self.assertEqual(client.receive(5), b"+OK\r\n")
        client.send(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
        self.assertEqual(client.receive(9 + 300_000 + 2), b"$300000\r\n" + value + b"\r\n")
        client.send(b"PING\r\n" * 1000)
        self.assertEqual(client.receive(7000), b"+PONG\r\n" * 1000)

    def test_a_cache_that_restarts_is_found_again(self):
        behind = self.cache()
        port = self.proxy(f"127.0.0.1:{behind}")
        client = Client(port)
        self.assertEqual(client("PING"), "+PONG")
        self.running.must("stop", "db")
        self.assertEqual(client.stream.read(1), b"")
        client.stream.close()
        client.socket.close()
        with contextlib.suppress(ConnectionResetError):  # it may come before connect() has returned
            with connect(port) as refused:
                self.assertEqual(all_of(refused), b"")
        self.assertIn("no backend took a connection", self.running.must("logs", "gw"))
        self.running.must("start", "db")
        again = Client(port)
        self.assertEqual(again("PING"), "+PONG")
        again.stream.close()
        again.socket.close()

    def test_it_runs_again_with_the_daemon(self):
        port = self.proxy(f"127.0.0.1:{self.cache()}")
        self.running.stop()
        self.running.start()
        again = eventually(lambda: Client(port), "it serves")
        self.assertEqual(again("PING"), "+PONG")
        again.stream.close()
        again.socket.close()
        shown = self.running.show("gw")
        self.assertEqual((shown["type"], shown["status"]), ("proxy", "running"))


@harness.on_each_backend
class Descriptors(harness.EddyTest):
    def test_clients_leave_descriptors_to_the_daemon(self):
        running = self.daemon(limit_files=200)
        port = free_port()
        backend = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.addCleanup(backend.close)
        running.must("create", "proxy", "gw", "-p", str(port), "--backend", ":%d" % backend.getsockname()[1], "-s")
        clients = []
        for _ in range(150):
            # One that is refused may be reset before connect(2) has returned.
            with contextlib.suppress(ConnectionResetError):
                clients.append(connect(port))
        # Clients beyond the limit wait, or are closed if connecting to the backend fails: the log names either, and the
        # remedy.
        eventually(lambda: "ulimit -n" in running.must("logs", "gw"), "the log names the limit")
        running.must("create", "cache", "db", "-p", str(free_port()), "-s")
        for each in clients:
            each.close()
        backend.settimeout(0)

        def gone():
            with contextlib.suppress(BlockingIOError):
                while True:
                    backend.accept()[0].close()
            return running.list()["gw"]["connections"] == 0
        eventually(gone, "they are gone")
        backend.settimeout(DEADLINE_S)
        with connect(port) as fresh:
            fresh.sendall(b"hello")
            read = b""
            while not read:  # clients that closed while they waited may have had the listener's turn before this one
                with backend.accept()[0] as peer:
                    peer.settimeout(DEADLINE_S)
                    read = peer.recv(5)
            self.assertEqual(read, b"hello")


@harness.on_each_backend
class DyingBackends(ProxyTest):
    def dying(self):
        process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, int(process.stdout.readline())

    def test_a_kill_amid_a_transfer_ends_the_client(self):
        for sends in (False, True):  # unread bytes of the client make a reset of the backend's end
            process, behind = self.dying()
            port = self.proxy(f"127.0.0.1:{behind}")
            with connect(port) as client:
                self.assertTrue(client.recv(1 << 20))
                if sends:
                    client.sendall(b"never read")
                    eventually(lambda: self.gauge("backend_bytes_sent_total", f"tcp://127.0.0.1:{behind}") == 10, "it is there")
                process.kill()
                was_reset = False
                try:
                    while client.recv(1 << 20):
                        pass
                except ConnectionResetError:
                    was_reset = True
                self.assertEqual(was_reset, sends, "a reset stays one: what has come must not look whole")
            eventually(lambda: self.running.list()["gw"]["connections"] == 0, "the tunnel is gone")
            self.assertEqual(self.gauge("backend_connections", f"tcp://127.0.0.1:{behind}"), 0)
            self.running.must("remove", "-f", "gw")

    def test_slow_readers_cost_little(self):
        before = self.running.resident_kib()
        process, behind = self.dying()
        port = self.proxy(f"127.0.0.1:{behind}")
        with connect(port) as client:
            client.recv(1)
            name = f"tcp://127.0.0.1:{behind}"

            def has_stalled(seen=[-1]):
                seen.append(self.gauge("backend_bytes_received_total", name))
                return seen[-1] == seen[-2] > 0
            eventually(has_stalled, "the backend waits")
            if not harness.sanitized():  # a sanitizer keeps what is freed
                self.assertLess(self.running.resident_kib() - before, 16 * 1024)
            process.kill()
            all_of(client)


class OneByOne(threading.Thread):
    """A backend in this process: calls `serve` with each connection, one after the other."""

    def __init__(self, test, serve):
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listening.getsockname()[1]
        self.serve = serve
        self.start()
        test.addCleanup(self.end)

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                peer = self.listening.accept()[0]
                peer.settimeout(DEADLINE_S)
                with peer:
                    self.serve(peer)

    def end(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.join(DEADLINE_S)


def refuse_early(peer):
    """Reads a part of a request, answers, and closes with the rest unread, which is a reset."""
    peer.recv(65536)
    peer.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


@harness.on_each_backend
class EarlyAnswers(ProxyTest):
    TRIES = 30

    def test_python_gets_the_refusal_of_an_upload(self):
        port = self.proxy(f":{OneByOne(self, refuse_early).port}")
        lost = []
        for size in (1 << 20, 8 << 20):
            for _ in range(self.TRIES):
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
                try:
                    client.request("POST", "/", body=bytes(size))
                    answer = client.getresponse()
                    self.assertEqual((answer.status, answer.read()), (413, b"too large"))
                except OSError as failure:
                    lost.append(f"{size} bytes: {failure!r}")
                finally:
                    client.close()
        self.assertEqual(lost, [])
        eventually(lambda: self.running.list()["gw"]["connections"] == 0, "no client lingers for ever")

    def test_a_client_that_reads_after_its_last_byte_gets_the_refusal(self):
        port = self.proxy(f":{OneByOne(self, refuse_early).port}")
        for _ in range(self.TRIES):
            with connect(port) as client:
                client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 6000000\r\n\r\n" + bytes(6_000_000))
                self.assertTrue(all_of(client).endswith(b"too large"))


@harness.on_each_backend
class Cuts(ProxyTest):
    def test_a_reset_is_no_end_of_tls(self):
        certificates = harness.Certificates(self.folder())

        def serve(peer):
            peer.recv(5)
            peer.sendall(b"part of it")
            peer.recv(2)
            reset(peer)
        port = self.proxy(f":{OneByOne(self, serve).port}",
                          flags=("--tls", "--cert", certificates.cert, "--key", certificates.key))
        trust = ssl.create_default_context(cafile=certificates.ca)
        with trust.wrap_socket(connect(port), server_hostname="127.0.0.1", suppress_ragged_eofs=False) as client:
            client.sendall(b"hello")
            self.assertEqual(client.recv(100), b"part of it")
            client.sendall(b"ok")
            self.assertRaises((ConnectionResetError, ssl.SSLEOFError), client.recv, 100)

    def test_an_end_of_tls_without_close_notify_is_no_end_of_tcp(self):
        certificates = harness.Certificates(self.folder())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.cert, certificates.key)

        def serve(peer):
            with context.wrap_socket(peer, server_side=True) as secure:
                secure.recv(5)
                secure.sendall(b"part of it")
        port = self.proxy(f"tls://127.0.0.1:{OneByOne(self, serve).port}?ca={certificates.ca}")
        with connect(port) as client:
            client.sendall(b"hello")
            self.assertEqual(client.recv(100), b"part of it")
            self.assertRaises(ConnectionResetError, client.recv, 100)


class Databases(ProxyTest):
    def test_psql_through_a_proxy_to_postgresql(self):
        if shutil.which("psql") is None:
            raise unittest.SkipTest("there is no psql: apt install postgresql")
        server = Postgres()
        self.addCleanup(server.remove)
        server.start()
        port = self.proxy(f"unix://{server.folder}/.s.PGSQL.5432")
        environment = dict(server.environment, PGHOST="127.0.0.1", PGPORT=str(port))

        def sql(text):
            return subprocess.run([os.path.join(server.bin, "psql"), "-XqtA", "-c", text], check=True, env=environment,
                                  stdout=subprocess.PIPE, timeout=DEADLINE_S).stdout.decode().strip()
        sql("CREATE TABLE t AS SELECT i, md5(i::text) AS hash FROM generate_series(1, 200000) AS i")
        straight = server.sql("COPY t TO STDOUT")
        self.assertEqual(hashlib.sha256(sql("COPY t TO STDOUT").encode()).digest(),
                         hashlib.sha256(straight.encode()).digest())
        self.assertEqual(sql("SELECT count(*) FROM t"), "200000")
        server.stop()  # its clients are reset, as by a failure
        self.assertRaises(subprocess.CalledProcessError, sql, "SELECT 1")


if __name__ == "__main__":
    harness.main()
