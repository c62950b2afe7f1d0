#!/usr/bin/env python3
"""A UDP server on all addresses: the address that its answers come from, and datagrams with a forged sender."""

import socket
import struct
import time
import unittest

import harness
from harness import eventually, free_port


def forge(sender, receiver, payload):
    """Sends a UDP datagram over IPv4 that names any sender. Only root may."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        # Without checksums: the kernel computes that of IP, and UDP over IPv4 may have none.
        udp = struct.pack("!HHHH", sender[1], receiver[1], 8 + len(payload), 0) + payload
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0,
                         socket.inet_aton(sender[0]), socket.inet_aton(receiver[0]))
        raw.sendto(ip + udp, (receiver[0], 0))


def may_forge():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).close()
    except PermissionError:
        return False
    return True


@harness.on_each_backend
class OnAllAddresses(harness.EddyTest):
    def create(self, *names):
        self.running = self.daemon()
        self.ports = {}
        for name in names:
            self.ports[name] = free_port(socket.SOCK_DGRAM)
            self.running.must("create", "server", name, "-p", str(self.ports[name]), "--udp", "--bind", "*", "-s")

    def stats(self, name):
        return self.running.json("stats", name)

    def client(self, name, host="127.0.0.1"):
        """One that gets messages: it has sent two. It is connected, and so gets nothing from another address."""
        made = socket.socket(type=socket.SOCK_DGRAM)
        self.addCleanup(made.close)
        made.settimeout(harness.DEADLINE_S)
        made.connect((host, self.ports[name]))
        for _ in range(2):
            before = self.stats(name)["messages_in"]
            made.send(b"here")
            eventually(lambda: self.stats(name)["messages_in"] > before, "it has arrived")
        return made

    def until_silence(self, *names):
        """Until no server has got a message for a while; returns how many they have got."""
        def count():
            return [self.stats(name)["messages_in"] for name in names]

        def silent():
            before = count()
            time.sleep(0.5)
            return before == count()

        eventually(silent, "what circulates ends")
        return sum(count())

    def test_answers_come_from_the_address_that_was_asked(self):
        self.create("x")
        far = self.client("x", "127.0.0.2")
        near = self.client("x")
        for _ in range(2):
            self.assertEqual(far.recv(100), b"here")
        near.send(b"news")
        self.assertEqual(far.recv(100), b"news")
        self.assertIn("delivered to 2", self.running.must("send", "x", "to all"))
        for each in (far, near):
            self.assertEqual(each.recv(100), b"to all")

    def test_a_page_s_webrtc_sends_no_message(self):
        self.create("x")
        listener = self.client("x")
        page = socket.socket(type=socket.SOCK_DGRAM)
        self.addCleanup(page.close)
        page.connect(("127.0.0.1", self.ports["x"]))
        for _ in range(3):
            page.send(b"\0\x01\0\x08\x21\x12\xa4\x42" + b"i" * 12 + b"\0\x06\0\x04page")
        eventually(lambda: self.stats("x")["dropped"] == 3, "it is dropped")
        self.client("x")
        for _ in range(2):
            self.assertEqual(listener.recv(100), b"here")
        self.assertEqual(self.stats("x")["messages_in"], 4)

    @unittest.skipUnless(may_forge(), "only root forges")
    def test_one_forged_datagram_joins_no_servers(self):
        self.create("x", "y")
        forge(("127.0.0.2", self.ports["y"]), ("127.0.0.1", self.ports["x"]), b"forged")
        eventually(lambda: self.stats("x")["messages_in"] == 1, "it has arrived")
        a, b, c = self.client("x"), self.client("x"), self.client("y")
        for _ in range(2):
            self.assertEqual(a.recv(100), b"here")
        a.send(b"message")
        self.assertEqual(b.recv(100), b"message")
        c.send(b"other")
        eventually(lambda: self.stats("y")["messages_in"] == 3, "it has arrived")
        self.assertEqual(self.until_silence("x", "y"), 1 + 4 + 1 + 3)

    @unittest.skipUnless(may_forge(), "only root forges")
    def test_a_server_is_no_peer_of_itself(self):
        self.create("x")
        for host in ("127.0.0.1", "127.0.0.5"):
            for _ in range(2):
                forge((host, self.ports["x"]), ("127.0.0.1", self.ports["x"]), b"forged")
        eventually(lambda: self.stats("x")["dropped"] == 4, "they are dropped")
        self.client("x").send(b"message")
        self.assertEqual(self.until_silence("x"), 3)

    @unittest.skipUnless(may_forge(), "only root forges")
    def test_what_circulates_ends(self):
        self.create("x", "y")
        for _ in range(2):
            for host in ("127.0.0.2", "127.0.0.3"):
                forge((host, self.ports["y"]), ("127.0.0.1", self.ports["x"]), b"forged")
                forge((host, self.ports["x"]), ("127.0.0.1", self.ports["y"]), b"forged")
        speaker = self.client("x")
        speaker.send(b"round and round")
        # All of it, but for the speaker's and the forged ones.
        self.assertGreater(self.until_silence("x", "y"), 100)


if __name__ == "__main__":
    harness.main()
