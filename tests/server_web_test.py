#!/usr/bin/env python3
"""WebSocket and HTTP on the port of a server: raw clients, WebSockets and files, over TLS and on several threads."""

import base64
import os
import socket
import struct

import harness
from harness import connect, eventually, free_port, read_line
from shm_client import ShmClient

TEXT, CLOSE = 1, 8


class Web:
    """A WebSocket over a socket. Payloads are short."""

    def __init__(self, over, target="/", fields=""):
        self.over = over
        self.received = b""
        key = base64.b64encode(os.urandom(16))
        over.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{fields}".encode()
                     + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
        head = read_line(over)
        assert head == "HTTP/1.1 101 Switching Protocols", head
        self.fields = list(iter(lambda: read_line(over), ""))

    def send(self, kind, payload):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.over.sendall(struct.pack("!BB", 0x80 | kind, 0x80 | len(payload)) + mask + masked)

    def exactly(self, size):
        while len(self.received) < size:
            piece = self.over.recv(65536)
            assert piece, "the server has closed"
            self.received += piece
        taken, self.received = self.received[:size], self.received[size:]
        return taken

    def receive(self):
        first, size = self.exactly(2)
        return first & 0xf, self.exactly(size)


@harness.on_each_backend
class OneAudience(harness.EddyTest):
    def create(self, *flags):
        self.root = self.folder()
        with open(os.path.join(self.root, "index.html"), "w") as file:
            file.write("<p>hello")
        self.running = self.daemon()
        self.port = free_port()
        made = self.running.run("create", "server", "x", "-p", str(self.port), "--http", self.root, *flags, "-s")
        if "does not have" in made.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(made.status, 0, made)

    def check(self, client):
        """`client()` is a new connection. There are more clients of each kind than loops."""
        webs = [Web(client()) for _ in range(4)]
        raws = [client() for _ in range(4)]
        eventually(lambda: self.running.list()["x"]["connections"] == 8, "all are there")
        for number, sender in enumerate(webs):
            text = b"web %d" % number
            sender.send(TEXT, text)
            for each in webs:
                if each is not sender:
                    self.assertEqual(each.receive(), (TEXT, text))
            for each in raws:
                self.assertEqual(read_line(each), text.decode())
        for number, sender in enumerate(raws):
            text = b"raw %d" % number
            sender.sendall(text + b"\n")
            for each in webs:
                self.assertEqual(each.receive(), (TEXT, text))
            for each in raws:
                if each is not sender:
                    self.assertEqual(read_line(each), text.decode())
        self.assertIn("delivered to 8", self.running.must("send", "x", "to all"))
        for each in webs:
            self.assertEqual(each.receive(), (TEXT, b"to all"))
        for each in raws:
            self.assertEqual(read_line(each), "to all")

        browser = client()
        browser.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(read_line(browser), "HTTP/1.1 200 OK")
        while read_line(browser):
            pass
        self.assertEqual(browser.recv(100), b"<p>hello")

        webs[0].send(CLOSE, struct.pack("!H", 1000))
        self.assertEqual(webs[0].receive(), (CLOSE, struct.pack("!H", 1000)))
        eventually(lambda: self.running.list()["x"]["connections"] == 7, "one has gone")
        # "Going away" (RFC 6455, 7.4.1).
        self.running.must("stop", "x")
        for each in webs[1:]:
            self.assertEqual(each.receive(), (CLOSE, struct.pack("!H", 1001)))

    def plain(self):
        made = connect(self.port)
        self.addCleanup(made.close)
        return made

    def secure(self):
        made = self.certificates.connect(self.port)
        self.addCleanup(made.close)
        return made

    def test_on_several_threads(self):
        self.create("--threads", "3")
        self.check(self.plain)

    def test_over_tls_on_one_thread(self):
        self.certificates = harness.Certificates(self.folder())
        self.create("--tls", "--cert", self.certificates.cert, "--key", self.certificates.key)
        self.check(self.secure)

    def test_over_tls_on_several_threads(self):
        self.certificates = harness.Certificates(self.folder())
        self.create("--threads", "3", "--tls", "--cert", self.certificates.cert, "--key", self.certificates.key)
        self.check(self.secure)


@harness.on_each_backend
class NoAudience(harness.EddyTest):
    """Requests that a server must not forward, over each transport."""

    BEGINNINGS = (b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n", b"GET /\r\n",
                  b"get / HTTP/1.1\n", b"\r\nGET / HTTP/1.1\r\n", b"M-SEARCH * HTTP/1.1\r\n", b"GET  x\r\n",
                  b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n", b"FOO / HTTP/0.9\r\n",
                  b"FOO / HTTP/1.1\rCookie: secret\r\r\n")
    # Closed without an answer: WebRTC by TCP, framed and for TURN, and PROXY protocol headers.
    FOREIGN = (b"\0\x14\0\x01\0\0\x21\x12\xa4\x42" + b"i" * 12, b"\0\x03\0\0\x21\x12\xa4\x42" + b"i" * 12,
               b"PROXY TCP4 127.0.0.1 127.0.0.1 5 6\r\n", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")
    REST = b"Host: x\r\nCookie: secret\r\nConnection: close\r\nContent-Length: 7\r\n\r\nsecret\n"

    def check(self, daemon, client, all_of_client):
        """`client()` is a new connection, `all_of_client(it)` what comes until its end."""
        speaker, listener = client(), client()
        eventually(lambda: daemon.list()["x"]["connections"] == 2, "both are on their threads")
        speaker.sendall(b"first\n")
        self.assertEqual(read_line(listener), "first")
        listener.sendall(b"second\n")
        self.assertEqual(read_line(speaker), "second")
        for number, begin in enumerate(self.BEGINNINGS):
            browser = client()
            browser.sendall(begin + self.REST)
            self.assertTrue(all_of_client(browser).startswith(b"HTTP/1.1 "), begin)
            browser.close()
            eventually(lambda: daemon.list()["x"]["connections"] == 2, "it has gone")
            browser = client()
            browser.sendall(begin[:1])
            eventually(lambda: daemon.list()["x"]["connections"] == 3, "it is known")
            browser.sendall(begin[1:] + self.REST)
            self.assertTrue(all_of_client(browser).startswith(b"HTTP/1.1 "), begin)
            browser.close()
            eventually(lambda: daemon.list()["x"]["connections"] == 2, "it has gone")
            speaker.sendall(b"marker %d\n" % number)
            self.assertEqual(read_line(listener), f"marker {number}")
        for number, begin in enumerate(self.FOREIGN):
            browser = client()
            browser.sendall(begin + b"GET / HTTP/1.1\r\n" + self.REST)
            self.assertEqual(all_of_client(browser), b"", begin)
            browser.close()
            eventually(lambda: daemon.list()["x"]["connections"] == 2, "it has gone")
            speaker.sendall(b"foreign %d\n" % number)
            self.assertEqual(read_line(listener), f"foreign {number}")
        journal = daemon.must("logs", "x")
        self.assertIn("STUN", journal)
        self.assertIn("PROXY protocol header", journal)

    def create(self, *flags):
        daemon = self.daemon()
        made = daemon.run("create", "server", "x", *flags, "-s")
        if "does not have" in made.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(made.status, 0, made)
        return daemon

    def opened(self, client):
        self.addCleanup(client.close)
        return client

    def test_over_tcp_on_several_threads(self):
        port = free_port()
        daemon = self.create("-p", str(port), "--threads", "3")
        self.check(daemon, lambda: self.opened(connect(port)), harness.all_of)

    def test_a_page_of_http_opens_no_websocket_over_tls(self):
        certificates = harness.Certificates(self.folder())
        port = free_port()
        self.create("-p", str(port), "--tls", "--cert", certificates.cert, "--key", certificates.key)

        def status(host, origin):
            page = self.opened(certificates.connect(port))
            page.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n"
                         "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
            return read_line(page).split()[1]

        self.assertEqual(status("localhost", "https://localhost"), "101")
        self.assertEqual(status("localhost:9000", "https://localhost:9000"), "101")
        self.assertEqual(status("localhost", "http://localhost"), "403")
        self.assertEqual(status("localhost:9000", "http://localhost:9000"), "403")

    def test_over_tls_beside_files(self):
        certificates = harness.Certificates(self.folder())
        port = free_port()
        daemon = self.create("-p", str(port), "--tls", "--cert", certificates.cert, "--key", certificates.key,
                             "--http", self.folder())
        self.check(daemon, lambda: self.opened(certificates.connect(port)), harness.all_of)

    def test_over_a_unix_socket(self):
        path = os.path.join(self.folder(), "s")
        daemon = self.create("--unix", path)

        def client():
            made = self.opened(socket.socket(socket.AF_UNIX))
            made.settimeout(harness.DEADLINE_S)
            made.connect(path)
            return made

        self.check(daemon, client, harness.all_of)

    def test_over_shared_memory(self):
        path = os.path.join(self.folder(), "s")
        daemon = self.create("-p", str(free_port()), "--shm", "--shm-path", path)
        self.check(daemon, lambda: self.opened(ShmStream(path)), lambda client: client.rest())


class ShmStream:
    """The part of a socket that NoAudience uses, over shared memory."""

    def __init__(self, path):
        self.over = ShmClient(path)
        self.sendall, self.recv, self.close = self.over.send, self.over.receive, self.over.close

    def rest(self):
        return self.recv(1 << 20)


if __name__ == "__main__":
    harness.main()
