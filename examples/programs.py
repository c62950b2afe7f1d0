"""Fixtures of the example programs' tests: a server that is started on a free port, and its clients."""

import os
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from harness import DEADLINE_S, eventually, free_port, sanitized  # noqa: E402, F401


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


class ServerTest(unittest.TestCase):
    """A test with the server `program`, which takes its port and these `arguments`."""

    program = None
    arguments = ()

    def setUp(self):
        self.port = free_port()
        self.server = subprocess.Popen([self.program, str(self.port), *self.arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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

    def second_on_the_same_port(self):
        """How a second server ends, whose port is taken."""
        return subprocess.run([self.program, str(self.port), *self.arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=DEADLINE_S)


def main(test):
    """Runs the tests of a module whose last argument is the program."""
    test.program = sys.argv.pop()
    unittest.main()
