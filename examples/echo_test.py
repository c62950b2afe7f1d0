#!/usr/bin/env python3
"""Test of an echo server, that of docs/tutorial.md or of docs/from-asio.md: starts it and acts as its clients.

Usage: echo_test.py PROGRAM
"""

import resource
import socket

import programs
from programs import receive, sanitized


class Echo(programs.ServerTest):
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

    def test_serves_on_after_it_had_no_descriptors_left(self):
        if sanitized(self.program):
            self.skipTest("a sanitizer's own checks need descriptors")
        first = self.client()
        first.sendall(b"one")
        self.assertEqual(receive(first, 3), b"one")
        # Open descriptors stay usable; there is no further one.
        limit = resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
        waiting = self.client()  # the kernel has connected it
        waiting.sendall(b"two")
        first.sendall(b"three")
        self.assertEqual(receive(first, 5), b"three")
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, limit)
        self.assertEqual(receive(waiting, 3), b"two")

    def test_says_that_its_port_is_taken(self):
        second = self.second_on_the_same_port()
        self.assertEqual(second.returncode, 1)
        self.assertIn(b"port %d: " % self.port, second.stderr)


if __name__ == "__main__":
    programs.main(Echo)
