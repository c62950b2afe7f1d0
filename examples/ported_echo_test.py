#!/usr/bin/env python3
"""Starts the ported echo server of docs/from-asio.md and speaks to it as its clients would.

Usage: ported_echo_test.py PROGRAM
"""

import os
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from harness import DEADLINE_S, eventually, free_port  # noqa: E402

PROGRAM = None


def connect(port):
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    except ConnectionRefusedError:
        return None


def receive(peer, size):
    """Exactly `size` bytes, or those that came before the end."""
    received = b""
    while len(received) < size:
        piece = peer.recv(size - len(received))
        if not piece:
            break
        received += piece
    return received


class PortedEcho(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.server = subprocess.Popen([PROGRAM, str(self.port)], stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.client().close()

    def stop(self):
        self.server.kill()
        self.server.communicate()

    def client(self):
        def try_again():
            self.assertIsNone(self.server.poll(), "the server has ended")
            return connect(self.port)

        peer = eventually(try_again, "a connection to the server")
        self.addCleanup(peer.close)
        return peer

    def test_sends_back_what_it_gets(self):
        peer = self.client()
        for text in (b"x", b"hello, everybody\n", bytes(range(256)) * 40):
            peer.sendall(text)
            self.assertEqual(receive(peer, len(text)), text)

    def test_serves_clients_beside_each_other(self):
        peers = [self.client() for _ in range(20)]
        for number, peer in enumerate(peers):
            peer.sendall(b"from %d" % number)
        for number, peer in reversed(list(enumerate(peers))):
            expected = b"from %d" % number
            self.assertEqual(receive(peer, len(expected)), expected)

    def test_closes_when_a_client_has_finished_and_goes_on(self):
        peer = self.client()
        peer.sendall(b"last words")
        peer.shutdown(socket.SHUT_WR)
        self.assertEqual(receive(peer, 100), b"last words")
        other = self.client()
        other.sendall(b"next")
        self.assertEqual(receive(other, 4), b"next")

    def test_says_that_its_port_is_taken(self):
        second = subprocess.run([PROGRAM, str(self.port)], stderr=subprocess.PIPE, timeout=DEADLINE_S)
        self.assertEqual(second.returncode, 1)
        self.assertIn(b"port %d: " % self.port, second.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
