"""Tests of each flag of a site by its effect, run by flags_test.py."""

import contextlib
import http.client
import json
import os
import socket

import harness
from flag_effects import FlagTest, effect_of, read_text
from harness import connect, eventually, free_port, read_line

@harness.on_each_backend
class HttpFlags(FlagTest):
    def setUp(self):
        self.root = self.folder()
        with open(os.path.join(self.root, "index.html"), "wb") as file:
            file.write(b"the index")

    def site(self, daemon, *flags):
        return self.create(daemon, "http", "r", "--root", self.root, *flags)

    def get(self, port, path="/", host="127.0.0.1", fields=()):
        with contextlib.closing(http.client.HTTPConnection(host, port, timeout=harness.DEADLINE_S)) as over:
            over.request("GET", path, headers=dict(fields))
            got = over.getresponse()
            return got.status, got.headers, got.read()

    @effect_of("http", "port", "bind", "root", "index", "listing", "hidden", "spa")
    def test_files(self):
        daemon = self.daemon()
        port = self.site(daemon, "--bind", "127.0.0.4")
        self.assertEqual(self.get(port, host="127.0.0.4")[2], b"the index")
        self.assertRaises(OSError, connect, port)
        daemon.must("edit", "r", "--unset", "bind", "--index", "other", "--listing")
        self.assertIn(b"index.html", self.get(port)[2])
        with open(os.path.join(self.root, ".hidden"), "wb") as file:
            file.write(b"secret")
        self.assertEqual(self.get(port, "/.hidden")[0], 404)
        daemon.must("edit", "r", "--hidden", "--spa", "index.html")
        self.assertEqual(self.get(port, "/.hidden")[2], b"secret")
        self.assertEqual(self.get(port, "/no/such/file")[2], b"the index")

    @effect_of("http", "sendfile")
    def test_sendfile(self):
        path = os.path.join(self.root, "large")
        with open(path, "wb") as file:
            file.write(b"x" * 100_000)
        port = self.site(self.daemon(), "--sendfile")
        with connect(port) as client:
            client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            client.recv(1, socket.MSG_PEEK)
            with open(path, "r+b") as file:
                file.write(b"-" * 100_000)  # in place: the response under way shares the kernel's memory of it
            got = b"".join(iter(lambda: client.recv(1 << 20), b""))
        self.assertEqual(got[-1:], b"-")

    @effect_of("http", "tcp-keepalive", "allow-users")
    def test_accepting(self):
        daemon = self.daemon()
        self.assert_probes(daemon, self.site(daemon, "--tcp-keepalive", "100s"))
        self.assert_users("http", "--root", self.root)

    @effect_of("http", "unix", "listen")
    def test_addresses(self):
        daemon = self.daemon()
        path = os.path.join(daemon.folder, "r.sock")
        daemon.must("create", "http", "r", "--unix", path, "--root", self.root, "-s")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_line(client), "HTTP/1.1 200 OK")
        port = free_port()
        daemon.must("create", "http", "l", "--listen", f"tcp://127.0.0.1:{port}", "--root", self.root, "-s")
        self.assertEqual(self.get(port)[0], 200)

    @effect_of("http", "tls", "cert", "key", "ca", "client-auth")
    def test_tls(self):
        daemon = self.daemon()
        made = harness.Certificates(self.folder())
        port = self.site(daemon, "--tls", "--cert", made.cert, "--key", made.key, "--ca", made.ca)
        for auth, own in (("required", True), ("no", False)):
            daemon.must("edit", "r", "--client-auth", auth)
            with made.connect(port, own) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(read_line(client), "HTTP/1.1 200 OK")

    @effect_of("http", "threads", "max-connections", "cache", "cache-control", "compress")
    def test_serving(self):
        daemon = self.daemon()
        port = self.site(daemon, "--threads", "2", "--cache", "1M", "--cache-control", "max-age=60", "--compress")
        self.assertEqual(sum(name.startswith("ht-r-") for name in daemon.thread_names()), 2)
        for _ in range(3):
            status, fields, content = self.get(port)
            self.assertEqual((status, fields["Cache-Control"], content), (200, "max-age=60", b"the index"))
        with open(os.path.join(self.root, "index.html"), "wb") as file:
            file.write(b"a longer index" * 100)
        eventually(lambda: self.get(port, fields={"Accept-Encoding": "br"})[1]["Content-Encoding"] == "br", "it is seen")
        daemon.must("edit", "r", "--max-connections", "1")
        with connect(port) as first:
            first.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_line(first), "HTTP/1.1 200 OK")
            self.assertEqual(self.get(port)[0], 503)

    @effect_of("http", "max-header", "request-timeout", "idle-timeout", "write-timeout")
    def test_limits_on_clients(self):
        daemon = self.daemon()
        port = self.site(daemon, "--max-header", "512", "--request-timeout", "100ms", "--idle-timeout", "200ms",
                         "--write-timeout", "200ms")
        self.assertEqual(self.get(port, fields={"X": "x" * 600})[0], 431)
        with connect(port) as slow:
            slow.sendall(b"GET / HT")
            self.assertEqual(read_line(slow), "HTTP/1.1 408 Request Timeout")
        with connect(port) as silent:
            self.assertEqual(silent.recv(1), b"")
        os.truncate(os.path.join(self.root, "index.html"), 64 << 20)
        with connect(port) as reads_nothing:
            reads_nothing.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            eventually(lambda: daemon.list()["r"]["connections"] == 0, "it was closed")

    @effect_of("http", "access-log", "access-format")
    def test_access_log(self):
        daemon = self.daemon()
        path = os.path.join(daemon.folder, "access")
        port = self.site(daemon, "--access-log", path, "--access-format", "json")
        self.get(port)
        eventually(lambda: os.path.exists(path) and read_text(path), "it is logged")
        self.assertEqual(json.loads(read_text(path))["status"], 200)
        for edited, line in (("common", '"GET / HTTP/1.1" 200 9\n'), ("combined", '"GET / HTTP/1.1" 200 9 "-" "me"\n')):
            daemon.must("edit", "r", "--access-format", edited)
            self.get(port, fields={"User-Agent": "me"})
            eventually(lambda: read_text(path).endswith(line), "it is logged")
