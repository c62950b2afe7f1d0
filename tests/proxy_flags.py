"""Tests of each flag of a proxy by its effect, run by flags_test.py."""

import contextlib
import os
import socket
import ssl

import harness
from flag_effects import FlagTest, effect_of
from harness import all_of, connect, eventually, free_port
from shm_client import ShmClient


@harness.on_each_backend
class ProxyFlags(FlagTest):
    """Its backends are listeners of the test."""

    def setUp(self):
        self.running = self.daemon()
        self.first = self.listening()
        self.second = self.listening()

    def listening(self, backlog=100):
        made = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        made.settimeout(harness.DEADLINE_S)
        self.addCleanup(made.close)
        return made

    @staticmethod
    def at(*backends):
        return ",".join("%s:%d" % each.getsockname() for each in backends)

    def proxy(self, *flags, backends=None):
        return self.create(self.running, "proxy", "r", "--backend", backends or self.at(self.first), *flags)

    def converse(self, client, backend):
        """A line each way; returns the backend's end."""
        peer = backend.accept()[0]
        self.addCleanup(peer.close)
        peer.settimeout(harness.DEADLINE_S)
        client.sendall(b"question")
        self.assertEqual(peer.recv(8, socket.MSG_WAITALL), b"question")
        peer.sendall(b"answer")
        self.assertEqual(self.received(client, 6), b"answer")
        return peer

    @staticmethod
    def received(client, size):
        return client.receive(size) if isinstance(client, ShmClient) else client.recv(size)

    @effect_of("proxy", "port", "bind", "backend")
    def test_port_and_backend(self):
        port = self.proxy("--bind", "127.0.0.3")
        self.assertRaises(OSError, connect, port)
        with socket.create_connection(("127.0.0.3", port), harness.DEADLINE_S) as old:
            peer = self.converse(old, self.first)
            self.running.must("edit", "r", "--backend", self.at(self.second))
            with socket.create_connection(("127.0.0.3", port), harness.DEADLINE_S) as fresh:
                self.converse(fresh, self.second)
            old.sendall(b"stays")
            self.assertEqual(peer.recv(5), b"stays")
        self.assert_refused(self.running.run("create", "proxy", "x", "-p", "0"), 1, "--backend HOST:PORT")

    @effect_of("proxy", "unix", "listen")
    def test_addresses(self):
        for flag, value in (("--unix", "{}"), ("--listen", "unix://{}")):
            path = os.path.join(self.folder(), "s")
            self.running.must("create", "proxy", "r", flag, value.format(path), "--backend", self.at(self.first), "-s")
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                self.converse(client, self.first)
            self.running.must("remove", "-f", "r")

    @effect_of("proxy", "tcp-keepalive", "allow-users")
    def test_accepting(self):
        self.assert_probes(self.running, self.proxy("--tcp-keepalive", "100s"))
        self.assert_users("proxy", "--backend", self.at(self.first))

    @effect_of("proxy", "protocol")
    def test_protocol(self):
        port = self.proxy("--protocol", "tcp")
        with connect(port) as client:
            self.converse(client, self.first)
        refused = self.running.run("create", "proxy", "x", "-p", "0", "--backend", ":1", "--protocol", "http")
        self.assert_refused(refused, 1, "--protocol", "tcp")

    @effect_of("proxy", "strategy")
    def test_strategy(self):
        port = self.proxy(backends=self.at(self.first, self.second))
        with connect(port) as stays:
            self.converse(stays, self.first)
            with connect(port) as leaves:
                self.converse(leaves, self.second).close()
            eventually(lambda: self.running.list()["r"]["connections"] == 1, "it is gone")
            self.running.must("edit", "r", "--strategy", "least-connections")
            for _ in range(3):
                with connect(port) as leaves:
                    self.converse(leaves, self.second).close()
                eventually(lambda: self.running.list()["r"]["connections"] == 1, "it is gone")

    @effect_of("proxy", "connect-timeout")
    def test_connect_timeout(self):
        silent = self.listening(backlog=0)
        with contextlib.ExitStack() as stack:
            stack.enter_context(connect(silent.getsockname()[1]))  # its queue is full
            port = self.proxy("--connect-timeout", "50ms", backends=self.at(silent, self.second))
            with connect(port) as client:
                self.converse(client, self.second)
        failures = self.running.metric("eddy_proxy_backend_failures_total", runtime="r", type="proxy",
                                       backend=f"tcp://{self.at(silent)}")
        self.assertEqual(failures, 1)

    @effect_of("proxy", "idle-timeout")
    def test_idle_timeout(self):
        port = self.proxy("--idle-timeout", "50ms")
        with connect(port) as silent:
            self.assertEqual(all_of(silent), b"")

    @effect_of("proxy", "threads")
    def test_threads(self):
        port = self.proxy("--threads", "3")
        self.assertEqual(sum(name.startswith("px-r-") for name in self.running.thread_names()), 3)
        for _ in range(6):
            with connect(port) as client:
                self.converse(client, self.first)

    @effect_of("proxy", "max-connections")
    def test_max_connections(self):
        port = self.proxy("--max-connections", "1")
        with connect(port) as first:
            self.converse(first, self.first)
            with contextlib.suppress(ConnectionResetError):  # it may come before connect() has returned
                with connect(port) as late:
                    self.assertEqual(all_of(late), b"")
            self.running.must("edit", "r", "--max-connections", "2")
            with connect(port) as second:
                self.converse(second, self.first)

    @effect_of("proxy", "tls", "cert", "key", "ca", "client-auth")
    def test_tls(self):
        made = harness.Certificates(self.folder())
        port = free_port()
        created = self.running.run("create", "proxy", "r", "-p", str(port), "--backend", self.at(self.first), "--tls",
                                   "--cert", made.cert, "--key", made.key, "--ca", made.ca, "-s")
        if "does not have" in created.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(created.status, 0, created)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            with made.connect(port) as client:
                client.sendall(b"x")
                if not client.recv(1):
                    raise ConnectionError
        self.first.settimeout(0)
        self.assertRaises(BlockingIOError, self.first.accept)  # it is refused before it gets a backend
        self.first.settimeout(harness.DEADLINE_S)
        for auth, own in (("required", True), ("no", False)):
            self.running.must("edit", "r", "--client-auth", auth)
            with made.connect(port, own) as client:
                self.converse(client, self.first).close()

    @effect_of("proxy", "shm", "shm-path")
    def test_shared_memory(self):
        port = self.proxy("--shm")
        for at in (f"@eddy-{port}", os.path.join(self.folder(), "shm.sock")):
            if not at.startswith("@"):
                self.running.must("edit", "r", "--shm-path", at)
            client = ShmClient(at)
            client.sendall = client.send
            # A restart waits for connections to end.
            self.converse(client, self.first).close()
            client.close()
