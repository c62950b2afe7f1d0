#!/usr/bin/env python3
"""Test of the chat of docs/tutorial.md: starts it and talks in it.

Usage: chat_test.py PROGRAM
"""

import signal

import programs
from programs import DEADLINE_S, eventually, receive


class Chat(programs.ServerTest):
    def members(self, count):
        """So many clients that the chat knows: each has received a byte of the one that came last."""
        peers = [self.client() for _ in range(count)]
        for peer in peers[:-1]:
            peer.settimeout(0.05)

            def heard():
                peers[-1].sendall(b"?")
                try:
                    return peer.recv(1)
                except TimeoutError:
                    return b""

            eventually(heard, "the chat's answer")
        # The earlier bytes end here, before all later messages.
        peers[-1].sendall(b"\n")
        for peer in peers[:-1]:
            peer.settimeout(DEADLINE_S)
            while peer.recv(1) != b"\n":
                pass
        return peers

    def test_tells_all_others_what_one_says(self):
        first, second, third = self.members(3)
        first.sendall(b"hello, everybody\n")
        for other in (second, third):
            self.assertEqual(receive(other, 17), b"hello, everybody\n")
        second.sendall(b"hello, you two\n")
        for other in (first, third):  # the first did not get its own message
            self.assertEqual(receive(other, 15), b"hello, you two\n")

    def test_goes_on_when_somebody_leaves(self):
        first, second, third = self.members(3)
        second.close()
        first.sendall(b"still here\n")
        self.assertEqual(receive(third, 11), b"still here\n")

    def test_ends_in_order_at_a_signal(self):
        first, second = self.members(2)
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(DEADLINE_S), 0)
        self.assertEqual(self.server.stdout.read(), b"Good-bye.\n")
        for peer in (first, second):
            self.assertEqual(peer.recv(1), b"")

    def test_says_that_its_port_is_taken(self):
        second = self.second_on_the_same_port()
        self.assertEqual(second.returncode, 1)
        self.assertIn(b"chat: ", second.stderr)


if __name__ == "__main__":
    programs.main(Chat)
