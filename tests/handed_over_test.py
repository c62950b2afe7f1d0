#!/usr/bin/env python3
"""Runtimes that listen on handoff://: real TCP clients, accepted by another program and handed over."""

import os
import socket
import threading
import urllib.request

import harness
from harness import DEADLINE_S, connect, eventually, free_port


class Front:
    """A program that accepts TCP clients and hands each over, unread."""

    def __init__(self, path, kind=socket.SOCK_SEQPACKET):
        self.path, self.kind = path, kind
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            with client:
                hand_over(self.path, client, self.kind)

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join(DEADLINE_S)


def hand_over(path, client, kind=socket.SOCK_SEQPACKET, message=b'{"user_id": 7}'):
    with socket.socket(socket.AF_UNIX, kind) as sender:
        sender.settimeout(DEADLINE_S)
        sender.connect(path)
        socket.send_fds(sender, [message], [client.fileno()] if client else [])


@harness.on_each_backend
class HandedOver(harness.EddyTest):
    def setUp(self):
        self.path = os.path.join(self.folder(), "clients.sock")
        self.uri = f"handoff://{self.path}"
        self.running = self.daemon()

    def front(self, **options):
        made = Front(self.path, **options)
        self.addCleanup(made.close)
        return made

    def ping(self, port):
        with connect(port) as client:
            client.sendall(b"PING\r\n")
            return client.recv(100)

    def test_a_cache_answers_them(self):
        for threads in ("1", "2"):
            self.running.must("create", "cache", "db", "--listen", self.uri, "--threads", threads, "-s")
            front = Front(self.path)
            for _ in range(5):
                self.assertEqual(self.ping(front.port), b"+PONG\r\n")
            self.running.must("stop", "db")
            self.running.must("start", "db")
            self.assertEqual(self.ping(front.port), b"+PONG\r\n")
            front.close()
            self.running.must("remove", "db")
            self.assertFalse(os.path.exists(self.path))

    def test_a_site_sends_them_files(self):
        root = self.folder()
        with open(os.path.join(root, "index.html"), "w") as page:
            page.write("<p>handed over")
        for threads in ("1", "2"):
            self.running.must("create", "http", "site", "--root", root, "--listen", f"{self.uri}?type=stream&mode=0600",
                              "--threads", threads, "-s")
            self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
            front = Front(self.path, kind=socket.SOCK_STREAM)
            for _ in range(5):
                with urllib.request.urlopen(f"http://127.0.0.1:{front.port}/", timeout=DEADLINE_S) as response:
                    self.assertEqual((response.status, response.read()), (200, b"<p>handed over"))
            front.close()
            self.running.must("remove", "site")

    def test_an_http_proxy_forwards_their_requests(self):
        port = free_port()
        self.running.must("create", "server", "room", "-p", str(port), "-s")
        for threads in ("1", "2"):
            with socket.create_server(("127.0.0.1", 0)) as backend:
                backend.settimeout(DEADLINE_S)
                self.running.must("create", "proxy", "gw", "--listen", self.uri, "--protocol", "http", "--threads", threads,
                                  "--backend", ":%d" % backend.getsockname()[1], "--route", "/ws=room", "-s")
                front = Front(self.path)
                with connect(front.port) as client:
                    client.sendall(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
                    with backend.accept()[0] as peer:
                        peer.settimeout(DEADLINE_S)
                        got = b""
                        while not got.endswith(b"\r\n\r\nhi"):
                            got += peer.recv(1000)
                        # The client's own address, not the other program's.
                        self.assertIn(b"\r\nX-Forwarded-For: 127.0.0.1\r\n", got)
                        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                        self.assertRegex(client.recv(1000), rb"(?s)^HTTP/1.1 200 OK\r\n.*\r\n\r\nok$")
                with connect(front.port) as client:
                    client.sendall(b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                                   b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
                    self.assertIn(b"101 Switching Protocols", client.recv(1000))
                    eventually(lambda: self.running.show("room")["connections"] == 1, "it is there")
                    self.running.must("send", "room", "hello")
                    self.assertEqual(client.recv(100), b"\x81\x05hello")
                front.close()
            self.running.must("remove", "-f", "gw")

    def test_clients_of_a_server_reach_each_other(self):
        self.running.must("create", "server", "chat", "--listen", self.uri, "-s")
        front = self.front()
        with connect(front.port) as one, connect(front.port) as other:
            eventually(lambda: self.running.show("chat")["connections"] == 2, "both clients")
            one.sendall(b"hello\n")
            self.assertEqual(other.recv(100), b"hello\n")

    def test_bad_handoffs_leave_the_others_alone(self):
        self.running.must("create", "cache", "db", "--listen", f"{self.uri}?allow={os.geteuid()}", "-s")
        silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(silent.close)
        silent.connect(self.path)
        hand_over(self.path, None)
        reader, writer = os.pipe()
        for end in (reader, writer):
            self.addCleanup(os.close, end)
        with open(reader, "rb", closefd=False) as pipe:
            hand_over(self.path, pipe)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            hand_over(self.path, listening)
        self.assertEqual(self.ping(self.front().port), b"+PONG\r\n")
        eventually(lambda: self.running.metric("eddy_runtime_errors_total", runtime="db", type="cache") == 3, "the failures")
        self.assertIn("a handoff brought no client: no_descriptor", self.running.must("logs", "db"))

    def test_mistakes_are_explained(self):
        self.assert_refused(self.running.run("create", "cache", "db", "--listen", f"{self.uri}?mode=rw"), 1,
                            "mode= is octal digits")
        self.assert_refused(self.running.run("create", "stream", "s", "--handoff", f"{self.uri}?mode=0600"), 1,
                            "--handoff-type")
        self.running.must("create", "cache", "db", "--listen", self.uri, "-s")
        self.assertIn("nothing connects to it", self.running.run("db", "db", "PING").err)


if __name__ == "__main__":
    harness.main()
