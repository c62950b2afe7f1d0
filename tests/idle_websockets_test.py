#!/usr/bin/env python3
"""10,000 idle WebSockets of a server: their memory, and that each of them lives on until the server ends."""

import base64
import resource
import struct
import unittest

import harness
from harness import connect, eventually, free_port

MANY = 10_000
AT_A_TIME = 100
OPENING = (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: " + base64.b64encode(b"0123456789abcdef") + b"\r\n\r\n")
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def frame(kind, payload):
    """A client's frame of at most 125 bytes. Its mask is zero, which leaves the bytes as they are."""
    return struct.pack("!BBI", 0x80 | kind, 0x80 | len(payload), 0) + payload


def exactly(peer, size):
    got = b""
    while len(got) < size:
        piece = peer.recv(size - len(got))
        if not piece:
            raise AssertionError(f"the connection ended after {got!r}")
        got += piece
    return got


def next_frame(peer):
    """The next frame of the server: its kind and its payload, of at most 125 bytes."""
    first, size = exactly(peer, 2)
    return first & 0x0F, exactly(peer, size)


@harness.on_each_backend
class IdleWebSockets(harness.EddyTest):
    @unittest.skipIf(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < MANY + 1000, "needs 11,000 open files")
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.running = self.daemon()
        self.port = free_port()
        self.running.must("create", "server", "s", "-p", str(self.port), "--max-connections", str(MANY + 100), "-s")
        self.peers = []
        self.addCleanup(lambda: [each.close() for each in self.peers])

    def open(self):
        """One more WebSocket, whose answer has not been read."""
        self.peers.append(connect(self.port))
        self.peers[-1].sendall(OPENING)

    def finish_opening(self, peer):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += exactly(peer, 1) if head.endswith(b"\r") else peer.recv(1)
        self.assertTrue(head.startswith(b"HTTP/1.1 101 "), head)

    def connections(self):
        return self.running.show("s")["connections"]

    def test_they_cost_little_and_live_on(self):
        self.open()
        self.finish_opening(self.peers[0])
        before = self.running.resident_kib()
        for first in range(0, MANY, AT_A_TIME):
            for _ in range(AT_A_TIME):
                self.open()
            for peer in self.peers[1 + first:]:
                self.finish_opening(peer)
        eventually(lambda: self.connections() == MANY + 1, "all connections")

        def each():
            return (self.running.resident_kib() - before) * 1024 / MANY
        # After a while an idle connection gives up what it does not need.
        if not harness.sanitized():
            eventually(lambda: each() <= 4 * 1024, "the memory of connections that rest")
        print(f"{each():.0f} bytes resident for each idle WebSocket", flush=True)

        # Others are served, and what they send reaches all of these.
        with connect(self.port) as raw:
            raw.sendall(b"hello\n")
            for peer in self.peers:
                self.assertEqual(next_frame(peer), (TEXT, b"hello"))
        for number, peer in enumerate(self.peers):
            peer.sendall(frame(PING, b"%d" % number))
        for number, peer in enumerate(self.peers):
            self.assertEqual(next_frame(peer), (PONG, b"%d" % number))
        self.assertGreaterEqual(self.connections(), MANY + 1)

        # On a busy machine the command may give up before 10,000 connections have ended. The server continues to end
        # them.
        stopped = self.running.run("stop", "s")
        if stopped.status != 0:
            self.assertIn("did not answer within", stopped.err)
        for peer in self.peers:
            kind, payload = next_frame(peer)
            self.assertEqual((kind, payload[:2]), (CLOSE, struct.pack("!H", 1001)))
            self.assertEqual(peer.recv(1), b"")
        eventually(lambda: self.running.show("s")["status"] == "stopped", "the server's end")


if __name__ == "__main__":
    harness.main()
